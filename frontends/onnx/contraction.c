/* Products and convolutions. */
#include <string.h>

#include "onnx/window.h"

static bool write_matmul(OnnxNode *n)
{
    return onnx_emit(n, "%s = %s @ %s", onnx_out(n, 0), onnx_in(n, 0), onnx_in(n, 1));
}

/* dense@fc(x, units), with a weight [in, units] or [units, in] */
static bool write_dense(OnnxNode *n)
{
    static const OnnxParam param[] = {{1, "weight"}, {2, "bias"}};
    const OnnxLayer *layer = onnx_layer(n, param, 2);
    return onnx_emit(n, "%s = dense@%s(%s, %lld%s)", onnx_out(n, 0), layer->label, onnx_in(n, 0),
                     (long long)onnx_dim(n, 2, 0), onnx_int(n, "transB", 0) ? ", transposed = true" : "") &&
           onnx_layer_fits(n, layer);
}

static bool is_dense(const OnnxNode *n)
{
    static const OnnxParam param[] = {{1, "weight"}, {2, "bias"}};
    uint32_t in = onnx_int(n, "transB", 0) ? 1 : 0;
    return onnx_owns(n, param, 2) && onnx_rank(n, 0) == 2 && onnx_rank(n, 1) == 2 && onnx_rank(n, 2) == 1 &&
           onnx_dim(n, 1, in) == onnx_dim(n, 0, 1) && onnx_dim(n, 2, 0) == onnx_dim(n, 1, 1 - in) &&
           onnx_type(n, 0)->dtype == onnx_type(n, 1)->dtype && !onnx_int(n, "transA", 0);
}

/* alpha * A @ B + beta * C, where A and B may be transposed.  A product of halves may be beyond them before alpha. */
static bool write_gemm(OnnxNode *n)
{
    DType dtype = onnx_wide_dtype(n);
    double alpha = onnx_float(n, "alpha", 1), beta = onnx_float(n, "beta", 1);
    if (alpha == 1 && beta == 1 && is_dense(n))
        return write_dense(n);
    const char *(*in)(OnnxNode *, uint32_t) = alpha == 1 ? onnx_in : onnx_widened;
    const char *a = in(n, 0), *b = in(n, 1);
    if (onnx_rank(n, 0) != 2 || onnx_rank(n, 1) != 2)
        return onnx_no(n, "its operands are no matrices");
    if (!dtype_is_float(dtype) && (alpha != 1 || beta != 1))
        return onnx_no(n, "it multiplies integers by fractions");
    if (onnx_int(n, "transA", 0))
        a = onnx_text(n, "transpose(%s)", a);
    const char *product = onnx_int(n, "transB", 0) ? onnx_text(n, "matmul(%s, %s, transpose_y = true)", a, b)
                                                   : onnx_text(n, "%s @ %s", a, b);
    if (alpha != 1)
        product = onnx_text(n, "%s * %s", product, onnx_number(n, dtype, alpha));
    if (onnx_has(n, 2) && beta != 0) {
        const char *c = beta == 1 ? in(n, 2) : onnx_text(n, "%s * %s", in(n, 2), onnx_number(n, dtype, beta));
        product = onnx_text(n, "%s + %s", product, c);
    }
    return alpha == 1 ? onnx_emit(n, "%s = %s", onnx_out(n, 0), product) : onnx_put_rounded(n, 0, product);
}

/* Convolutions of 1, 2 and 3 dimensions */

static bool check_convolution(OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    if (rank < 3 || rank > 5)
        return onnx_no(n, "convolutions of 1 to 3 dimensions are supported, not of %d", (int)rank - 2);
    if (onnx_rank(n, 1) != rank)
        return onnx_no(n, "its weight has not as many dimensions as its image");
    return true;
}

/* conv@conv1(x, channels, window, ...), where the weights have the extents that it makes up itself */
static bool write_conv_layer(OnnxNode *n, const OnnxWindow *window, int64_t groups)
{
    static const OnnxParam param[] = {{1, "weight"}, {2, "bias"}};
    uint32_t count = onnx_has(n, 2) ? 2 : 1;
    const Shape *weight = &onnx_type(n, 1)->shape;
    const OnnxLayer *layer = onnx_layer(n, param, count);
    bool square = weight->dim[2] == weight->dim[3];
    const char *size = square ? onnx_text(n, "%lld", (long long)weight->dim[2]) : onnx_list(n, weight->dim + 2, 2);
    const char *group = groups == 1 ? "" : onnx_text(n, ", groups = %lld", (long long)groups);
    return onnx_emit(n, "%s = conv@%s(%s, %lld, %s%s%s%s)", onnx_out(n, 0), layer->label, onnx_in(n, 0),
                     (long long)weight->dim[0], size, onnx_window_text(n, window, 1), group,
                     count == 2 ? "" : ", with_bias = false") &&
           onnx_layer_fits(n, layer);
}

static bool is_conv_layer(const OnnxNode *n, int64_t groups)
{
    static const OnnxParam param[] = {{1, "weight"}, {2, "bias"}};
    const Type *x = onnx_type(n, 0), *w = onnx_type(n, 1);
    return x->shape.rank == 4 && groups > 0 && x->dtype == w->dtype && w->shape.dim[1] * groups == x->shape.dim[1] &&
           (!onnx_has(n, 2) || (onnx_rank(n, 2) == 1 && onnx_dim(n, 2, 0) == w->shape.dim[0])) &&
           onnx_owns(n, param, onnx_has(n, 2) ? 2 : 1);
}

static bool write_conv(OnnxNode *n)
{
    OnnxWindow window;
    if (!check_convolution(n) || !onnx_window(n, onnx_type(n, 1)->shape.dim + 2, &window))
        return false;
    int64_t groups = onnx_int(n, "group", 1);
    if (is_conv_layer(n, groups))
        return write_conv_layer(n, &window, groups);
    const char *bias = onnx_has(n, 2) ? onnx_text(n, ", %s", onnx_in(n, 2)) : "";
    const char *group = groups == 1 ? "" : onnx_text(n, ", groups = %lld", (long long)groups);
    return onnx_emit(n, "%s = conv%ud(%s, %s%s%s%s)", onnx_out(n, 0), window.rank, onnx_in(n, 0), onnx_in(n, 1), bias,
                     onnx_window_text(n, &window, 1), group);
}

/* The extents of the image that comes out, and the padding that leads to them. */
static bool transposed_size(OnnxNode *n, OnnxWindow *w, int64_t *size)
{
    const int64_t *wanted, *more;
    uint32_t count, extras;
    bool given = onnx_ints(n, "output_shape", &wanted, &count) && count;
    const char *automatic = onnx_string(n, "auto_pad", "NOTSET");
    bool same = strncmp(automatic, "SAME", 4) == 0;

    onnx_ints(n, "output_padding", &more, &extras);
    if ((given && count < w->rank) || (extras && extras != w->rank))
        return onnx_no(n, "output_shape or output_padding has not an entry for each dimension");
    wanted += given ? count - w->rank : 0;
    for (uint32_t d = 0; d < w->rank; d++) {
        if ((extras && (more[d] < 0 || more[d] > INT32_MAX)) || (given && (wanted[d] < 0 || wanted[d] > INT32_MAX)))
            return onnx_no(n, "output_shape or output_padding is impossible");
        int64_t extra = extras ? more[d] : 0, in = onnx_dim(n, 0, d + 2);
        int64_t whole = w->stride[d] * (in - 1) + extra + (w->size[d] - 1) * w->dilation[d] + 1;
        if (!given && !same) {
            size[d] = whole - w->before[d] - w->after[d];
            continue;
        }
        size[d] = given ? wanted[d] : in * w->stride[d];
        int64_t total = whole - size[d] > 0 ? whole - size[d] : 0, half = total / 2;
        bool more_before = strcmp(automatic, "SAME_UPPER") != 0;
        w->before[d] = more_before ? total - half : half;
        w->after[d] = total - w->before[d];
    }
    return true;
}

static bool write_conv_transpose(OnnxNode *n)
{
    OnnxWindow window;
    int64_t size[MAX_RANK] = {0};
    if (!check_convolution(n) || !onnx_window(n, onnx_type(n, 1)->shape.dim + 2, &window) ||
        !transposed_size(n, &window, size))
        return false;
    int64_t groups = onnx_int(n, "group", 1);
    const char *bias = onnx_has(n, 2) ? onnx_text(n, ", %s", onnx_in(n, 2)) : "";
    const char *group = groups == 1 ? "" : onnx_text(n, ", groups = %lld", (long long)groups);
    for (uint32_t d = 0; d < window.rank; d++) {
        int64_t windows =
            window.stride[d] * (onnx_dim(n, 0, d + 2) - 1) + (window.size[d] - 1) * window.dilation[d] + 1;
        if (size[d] < 1)
            return onnx_no(n, "its output would have an extent of %lld", (long long)size[d]);
        int64_t beyond = size[d] + window.before[d] + window.after[d] - windows;
        if (beyond < 0 || beyond >= window.stride[d])
            return onnx_no(n, "its output is not what a convolution with these strides would have read");
    }
    return onnx_emit(n, "%s = conv%ud_transpose(%s, %s%s, size = %s%s%s)", onnx_out(n, 0), window.rank, onnx_in(n, 0),
                     onnx_in(n, 1), bias, onnx_list(n, size, window.rank), onnx_window_text(n, &window, 1), group);
}

/* Each channel by itself, over what came before and comes now; the last of that is kept for what follows. */
static bool write_causal_conv(OnnxNode *n)
{
    const char *activation = onnx_string(n, "activation", "none"), *image = onnx_temp(n, "image");
    bool silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!silu && strcmp(activation, "none") != 0)
        return onnx_no(n, "its activation is %s", activation);
    if (onnx_rank(n, 0) != 3 || onnx_rank(n, 1) != 3 || onnx_dim(n, 1, 2) < 1 ||
        (onnx_has(n, 3) && (onnx_rank(n, 3) != 3 || onnx_dim(n, 3, 2) != onnx_dim(n, 1, 2) - 1)))
        return onnx_no(n, "its weight or its state does not fit its image");
    long long channels = onnx_dim(n, 0, 1), length = onnx_dim(n, 0, 2), kept = onnx_dim(n, 1, 2) - 1;
    const char *x = onnx_in(n, 0), *bias = onnx_has(n, 2) ? onnx_text(n, ", %s", onnx_in(n, 2)) : "";
    const char *whole = onnx_has(n, 3) ? onnx_text(n, "concat(%s, %s, axis = 2)", onnx_in(n, 3), x)
                                       : onnx_text(n, "pad(%s, before = [0, 0, %lld], after = [0, 0, 0])", x, kept);
    const char *y = onnx_text(n, "conv1d(%s, %s%s, groups = %lld)", image, onnx_in(n, 1), bias, channels);
    return onnx_emit(n, "%s = %s", image, whole) &&
           onnx_emit(n, silu ? "%s = silu(%s)" : "%s = %s", onnx_out(n, 0), y) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = slice(%s, axes = 2, begin = %lld, end = %lld)", onnx_out(n, 1),
                                           image, length, length + kept));
}

static bool write_det(OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    if (rank < 2 || onnx_dim(n, 0, -1) != onnx_dim(n, 0, -2))
        return onnx_no(n, "its operand has no square matrices");
    return onnx_emit(n, "%s = determinant(%s)", onnx_out(n, 0), onnx_in(n, 0));
}

const OnnxRow onnx_contraction[] = {
    {"MatMul", 1, write_matmul, NULL, NULL, false},
    {"Gemm", 1, write_gemm, NULL, NULL, false},
    {"Conv", 1, write_conv, NULL, NULL, false},
    {"ConvTranspose", 1, write_conv_transpose, NULL, NULL, false},
    {"CausalConvWithState", 27, write_causal_conv, NULL, NULL, false},
    {"Einsum", 12, onnx_write_einsum, NULL, NULL, false},
    {"Det", 11, write_det, NULL, NULL, false},
    {0},
};
