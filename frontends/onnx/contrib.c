/* The domain com.microsoft: what ONNX Runtime makes of patterns, and saves. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

#define CONTRIB "com.microsoft"

/* x, plus operand 1 where there is one */
static const char *biased(OnnxNode *n)
{
    return onnx_has(n, 1) ? onnx_text(n, "%s + %s", onnx_in(n, 0), onnx_in(n, 1)) : onnx_in(n, 0);
}

/* text is the function */
static bool write_biased(OnnxNode *n)
{
    return onnx_emit(n, "%s = %s(%s)", onnx_out(n, 0), n->row->text, biased(n));
}

static bool write_quick_gelu(OnnxNode *n)
{
    double alpha = onnx_float(n, "alpha", (double)1.702f);
    return onnx_emit(n, "%s = swish(%s, %s)", onnx_out(n, 0), onnx_in(n, 0),
                     onnx_number(n, onnx_type(n, 0)->dtype, alpha));
}

/* Layer normalisation over the last axis; `rms` without the mean.  Half floats are widened to f32, and only the results
 * are rounded. */
static const char *norm_epsilon(OnnxNode *n, bool rms)
{
    return onnx_number(n, onnx_wide_dtype(n), onnx_float(n, "epsilon", rms ? (double)1e-5f : (double)1e-12f));
}

/* The inverse of the deviation as result `i`, which training keeps, and some models ask for as well */
static bool put_deviation(OnnxNode *n, uint32_t i, const char *x, bool rms)
{
    const char *power = rms ? onnx_text(n, "mean(square(%s), -1, true)", x) : onnx_text(n, "variance(%s, -1, true)", x);
    return !onnx_wants(n, i) || onnx_emit(n, "%s = rsqrt(%s + %s)", onnx_out(n, i), power, norm_epsilon(n, rms));
}

static bool put_norm(OnnxNode *n, const char *x, const char *scale, const char *bias, bool rms)
{
    const char *eps = norm_epsilon(n, rms);
    const char *y = rms ? onnx_text(n, "%s * rsqrt(mean(square(%s), -1, true) + %s)", x, x, eps)
                        : onnx_text(n, "standardize(%s, axes = -1, eps = %s)", x, eps);
    return onnx_put_rounded(n, 0,
                            bias ? onnx_text(n, "%s * %s + %s", y, scale, bias) : onnx_text(n, "%s * %s", y, scale));
}

static bool write_simplified_norm(OnnxNode *n)
{
    int64_t axis;
    if (!onnx_axis(n, "axis", -1, onnx_rank(n, 0), &axis))
        return false;
    const char *x = onnx_widened(n, 0);
    return (axis + 1 == onnx_rank(n, 0) || onnx_no(n, "it normalises over several axes")) &&
           put_deviation(n, 1, x, true) && put_norm(n, x, onnx_widened(n, 1), NULL, true);
}

/* The sum of two operands and a bias, which is a result as well, normalised */
static bool write_skip_norm(OnnxNode *n)
{
    bool rms = strcmp(n->row->text, "rms") == 0;
    uint32_t bias = rms ? 3 : 4;
    if (rms && onnx_wants(n, 1))
        return onnx_no(n, "it asks for means, of which it takes none");
    bool kept = onnx_wants(n, 3) && !dtype_is_half(onnx_type(n, 0)->dtype);
    const char *sum = kept ? onnx_out(n, 3) : onnx_temp(n, "sum");
    const char *more = onnx_has(n, bias) ? onnx_text(n, " + %s", onnx_widened(n, bias)) : "";
    return onnx_emit(n, "%s = %s + %s%s", sum, onnx_widened(n, 0), onnx_widened(n, 1), more) &&
           (kept || onnx_put_rounded(n, 3, sum)) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = mean(%s, -1, true)", onnx_out(n, 1), sum)) &&
           put_deviation(n, 2, sum, rms) &&
           put_norm(n, sum, onnx_widened(n, 2), !rms && onnx_has(n, 3) ? onnx_widened(n, 3) : NULL, rms);
}

/* An operand with its first dimension moved behind the other batches (`batch`), and then the last two exchanged
 * (`flip`); a vector is as it is. */
static const char *arranged(OnnxNode *n, uint32_t i, const char *x, bool batch, bool flip)
{
    int64_t axes[MAX_RANK];
    uint32_t rank = onnx_rank(n, i);
    if (rank < 2 || (!flip && (!batch || rank == 2)))
        return x;
    for (uint32_t d = 0; d + 1 < rank; d++)
        axes[d] = batch ? (d + 1) % (rank - 1) : d;
    axes[rank - 1] = rank - 1;
    if (flip) {
        axes[rank - 1] = axes[rank - 2];
        axes[rank - 2] = rank - 1;
    }
    return onnx_text(n, "transpose(%s, axes = %s)", x, onnx_list(n, axes, rank));
}

static bool write_fused_matmul(OnnxNode *n)
{
    double alpha = onnx_float(n, "alpha", 1);
    bool flip_y = onnx_int(n, "transB", 0) && onnx_rank(n, 1) > 1;
    const char *(*in)(OnnxNode *, uint32_t) = alpha == 1 ? onnx_in : onnx_widened;
    const char *x = arranged(n, 0, in(n, 0), onnx_int(n, "transBatchA", 0) != 0, onnx_int(n, "transA", 0) != 0);
    const char *y = arranged(n, 1, in(n, 1), onnx_int(n, "transBatchB", 0) != 0, false);
    const char *product =
        flip_y ? onnx_text(n, "matmul(%s, %s, transpose_y = true)", x, y) : onnx_text(n, "%s @ %s", x, y);
    if (alpha == 1)
        return onnx_emit(n, "%s = %s", onnx_out(n, 0), product);
    return onnx_put_rounded(n, 0, onnx_text(n, "(%s) * %s", product, onnx_number(n, onnx_wide_dtype(n), alpha)));
}

/* Bytes of two numbers each, the low half first, as numbers along the last dimension, of which `count` stay: [...,
 * count] */
static const char *unpacked(OnnxNode *n, const char *bytes, int64_t rows, int64_t packed, int64_t count,
                            const char *word)
{
    int64_t unit[] = {rows, packed, 1}, all[] = {rows, 2 * packed};
    const char *low = onnx_temp(n, "low"), *wide = onnx_temp(n, word);
    return onnx_emit(n, "%s = reshape(%s, shape = %s)", low, bytes, onnx_list(n, unit, 3)) &&
                   onnx_emit(n, "%s = reshape(concat(%s %% 16, %s / 16, axis = 2), shape = %s)[:, 0:%lld]", wide, low,
                             low, onnx_list(n, all, 2), (long long)count)
               ? wide
               : NULL;
}

typedef struct Blocks { /* of weights W [rows, k] that take a few bits each */
    int64_t k, rows, bits, size, blocks;
    bool pointed, floats; /* has zero points; of the scales' type, not packed */
} Blocks;

static bool take_blocks(OnnxNode *n, Blocks *b)
{
    *b = (Blocks){.k = onnx_int(n, "K", 0),
                  .rows = onnx_int(n, "N", 0),
                  .bits = onnx_int(n, "bits", 4),
                  .size = onnx_int(n, "block_size", 0),
                  .pointed = onnx_has(n, 3)};
    if (b->k < 1 || b->rows < 1 || b->k > INT32_MAX || b->rows > INT32_MAX || b->size < 16 || b->size > INT32_MAX ||
        b->size % 2 || (b->bits != 4 && b->bits != 8) || onnx_has(n, 4))
        return onnx_no(n, "its weights are of %lld bits, or reordered", (long long)b->bits);
    b->blocks = ceil_div(b->k, b->size);
    int64_t bytes = b->size * b->bits / 8, zeros = ceil_div(b->blocks * b->bits, 8);
    const Type *w = onnx_type(n, 1), *scale = onnx_type(n, 2);
    if (w->dtype != DT_U8 || shape_elements(&w->shape) != b->rows * b->blocks * bytes ||
        shape_elements(&scale->shape) != b->rows * b->blocks || scale->dtype != onnx_type(n, 0)->dtype)
        return onnx_no(n, "its weights or scales have other extents");
    const Type *zero = b->pointed ? onnx_type(n, 3) : NULL;
    b->floats = zero && zero->dtype == scale->dtype;
    if (zero && zero->dtype != DT_U8 && !b->floats)
        return onnx_no(n, "its zero points are neither packed integers nor of the scales' type");
    if (zero && shape_elements(&zero->shape) != b->rows * (b->floats ? b->blocks : zeros))
        return onnx_no(n, "its zero points have other extents");
    return true;
}

/* An operand under a shape, if it has another */
static const char *shaped(OnnxNode *n, uint32_t i, uint32_t rank, const int64_t *dim)
{
    Shape shape = shape_of(rank, dim);
    return shape_eq(&onnx_type(n, i)->shape, &shape)
               ? onnx_in(n, i)
               : onnx_text(n, "reshape(%s, shape = %s)", onnx_in(n, i), onnx_list(n, dim, rank));
}

/* Zero points of 4 bits, [rows, blocks]; known ones as a constant */
static const char *unpacked_zeros(OnnxNode *n, const Blocks *b)
{
    int64_t bytes = ceil_div(b->blocks * b->bits, 8), dim[] = {b->rows, b->blocks};
    const Tensor *known = n->in[3]->known;
    if (!known)
        return unpacked(n, onnx_in(n, 3), b->rows, bytes, b->blocks, "zeros");
    Tensor *zeros = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_U8, 2, dim));
    for (int64_t i = 0; i < b->rows * b->blocks; i++) {
        int64_t block = i % b->blocks;
        uint8_t both = ((const uint8_t *)known->data)[i / b->blocks * bytes + block / 2];
        ((uint8_t *)zeros->data)[i] = block % 2 ? both >> 4 : both & 15;
    }
    const char *base = onnx_identifier(n->onnx, n->proto->output[0]);
    return onnx_name_value(n->onnx, onnx_known_value(n->onnx, zeros, onnx_text(n, "%s.zeros", base)));
}

/* Zero points, [rows, blocks], as floats */
static const char *put_zeros(OnnxNode *n, const Blocks *b)
{
    int64_t dim[] = {b->rows, b->blocks};
    if (b->floats)
        return shaped(n, 3, 2, dim);
    const char *q = b->bits == 8 ? shaped(n, 3, 2, dim) : unpacked_zeros(n, b);
    return q ? onnx_text(n, "cast(%s, to = %s)", q, dtype_name(onnx_type(n, 0)->dtype)) : NULL;
}

/* Bytes as they are: they become floats where they are read. */
static const char *put_bytes_product(OnnxNode *n, const Blocks *b, const char *zero)
{
    int64_t block[] = {b->rows, b->blocks, b->size}, unit[] = {b->rows, b->blocks, 1},
            whole[] = {b->rows, b->blocks * b->size};
    const char *w = onnx_temp(n, "weight"), *dtype = dtype_name(onnx_type(n, 0)->dtype);
    zero = zero ? onnx_text(n, "unsqueeze(%s, -1)", zero) : "128.0";
    return onnx_emit(n, "%s = reshape((cast(%s, to = %s) - %s) * %s, shape = %s)[:, 0:%lld]", w, shaped(n, 1, 3, block),
                     dtype, zero, shaped(n, 2, 3, unit), onnx_list(n, whole, 2), (long long)b->k)
               ? onnx_text(n, "matmul(%s, %s, transpose_y = true)", onnx_in(n, 0), w)
               : NULL;
}

/* x @ W' where W [n, k] is of 4 or 8 bits, in blocks along k with a scale and a zero point each */
static bool write_matmul_bits(OnnxNode *n)
{
    Blocks b;
    if (!take_blocks(n, &b))
        return false;
    const char *zero = b.pointed ? put_zeros(n, &b) : NULL, *y;
    if (b.pointed && !zero)
        return false;
    int64_t packed[] = {b.rows, b.blocks, b.size / 2}, scales[] = {b.rows, b.blocks};
    y = b.bits == 8 ? put_bytes_product(n, &b, zero)
                    : onnx_text(n, "matmul_nibbles(%s, %s, %s%s%s)", onnx_in(n, 0), shaped(n, 1, 3, packed),
                                shaped(n, 2, 2, scales), zero ? ", " : "", zero ? zero : "");
    const char *bias = onnx_has(n, 5) ? onnx_text(n, " + %s", onnx_in(n, 5)) : "";
    return y && onnx_emit(n, "%s = %s%s", onnx_out(n, 0), y, bias);
}

const OnnxRow onnx_contrib[] = {
    {"FastGelu", 1, write_biased, "gelu_tanh", CONTRIB, false},
    {"BiasGelu", 1, write_biased, "gelu", CONTRIB, false},
    {"QuickGelu", 1, write_quick_gelu, NULL, CONTRIB, false},
    {"SimplifiedLayerNormalization", 1, write_simplified_norm, NULL, NULL, false},
    {"SimplifiedLayerNormalization", 1, write_simplified_norm, NULL, CONTRIB, false},
    {"SkipLayerNormalization", 1, write_skip_norm, "mean", CONTRIB, false},
    {"SkipSimplifiedLayerNormalization", 1, write_skip_norm, "rms", CONTRIB, false},
    {"FusedMatMul", 1, write_fused_matmul, NULL, CONTRIB, false},
    {"TransposeMatMul", 1, write_fused_matmul, NULL, CONTRIB, false}, /* what FusedMatMul was at first */
    {"MatMulNBits", 1, write_matmul_bits, NULL, CONTRIB, false},
    {0},
};
