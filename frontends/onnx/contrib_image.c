/* Images of com.microsoft: bytes whose channels come last, padding as an operand, parts that are stretched. */
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

#define CONTRIB "com.microsoft"

/* [n, ..., c] as [n, c, ...], or (`last`) back */
static const char *moved(OnnxNode *n, const char *x, uint32_t rank, bool last)
{
    int64_t axes[MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        axes[d] = d == 0 ? 0 : last ? d % (rank - 1) + 1 : (d + rank - 3) % (rank - 1) + 1;
    return onnx_text(n, "transpose(%s, axes = %s)", x, onnx_list(n, axes, rank));
}

static bool write_bytes_pool(OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    DType dtype = onnx_type(n, 0)->dtype;
    const char *pooled = onnx_temp(n, "pooled");
    if (rank < 3 || (dtype != DT_I8 && dtype != DT_U8))
        return onnx_no(n, "its operand is no image of bytes");
    OnnxValue *first = onnx_define_value(n, "first", "%s", moved(n, onnx_in(n, 0), rank, false));
    if (!first)
        return false;
    OnnxNode *node = onnx_cover(n, "MaxPool", 12, 1);
    onnx_set_operand(node, 0, first);
    onnx_copy_attributes(node, n);
    onnx_name_results(node, &pooled, 1);
    return onnx_write_cover(n, node) && onnx_emit(n, "%s = %s", onnx_out(n, 0), moved(n, pooled, rank, true));
}

/* Image, weight, padding, bias: as ConvTranspose, whose padding is an attribute */
static bool write_padded_transpose(OnnxNode *n)
{
    const int64_t *pads = NULL;
    uint32_t count = 0;
    if (onnx_has(n, 2) && !onnx_known_ints(n, 2, &pads, &count))
        return false;
    OnnxNode *node = onnx_cover(n, "ConvTranspose", 11, 3);
    for (uint32_t i = 0; i < 4; i++)
        if (i != 2 && onnx_has(n, i))
            onnx_set_operand(node, i == 3 ? 2 : i, n->in[i]);
    onnx_copy_attributes(node, n);
    onnx_add_ints(node, "pads", pads, count);
    return onnx_write_cover(n, node);
}

/* CropAndResize: regions whose corners are elements of the image and of the result, [n, c, h, w] to [r, c, height,
 * width] */

typedef struct Axis {                             /* of height or width: names of [r, count, 1] or [r, 1, count] */
    const char *inside, *first, *second, *weight; /* second, weight: NULL where the nearest pixel is taken */
} Axis;

/* Where each element lies between lower and upper end, columns `low` and `low` + 2 of the regions: [r, count] */
static const char *coordinates(OnnxNode *n, const char *region, int64_t low, int64_t extent, int64_t count)
{
    DType dtype = onnx_wide_dtype(n);
    const char *most = onnx_number(n, dtype, (double)(extent - 1)), *name = dtype_name(dtype);
    const char *from = onnx_text(n, "%s[:, %lld:%lld]", region, (long long)low, (long long)low + 1),
               *to = onnx_text(n, "%s[:, %lld:%lld]", region, (long long)low + 2, (long long)low + 3);
    if (count == 1)
        return onnx_text(n, "(%s + %s) * 0.5 * %s", from, to, most);
    return onnx_text(n, "%s * %s + iota(shape = [%lld], dtype = %s) * ((%s - %s) * %s / %s)", from, most,
                     (long long)count, name, to, from, most, onnx_number(n, dtype, (double)(count - 1)));
}

static bool put_axis(OnnxNode *n, Axis *a, const char *region, int64_t low, int64_t extent, int64_t count)
{
    int64_t dim[] = {onnx_dim(n, 1, 0), low ? 1 : count, low ? count : 1};
    bool nearest = strcmp(onnx_string(n, "mode", "bilinear"), "nearest") == 0;
    const char *most = onnx_number(n, onnx_wide_dtype(n), (double)(extent - 1));
    const char *at = onnx_define(n, low ? "x" : "y", "reshape(%s, shape = %s)",
                                 coordinates(n, region, low, extent, count), onnx_list(n, dim, 3));
    const char *kept = at ? onnx_define(n, "kept", "clip(%s, 0.0, %s)", at, most) : NULL;
    *a = (Axis){0};
    if (!kept)
        return false;
    a->inside = onnx_text(n, "(%s >= 0.0 and %s <= %s)", at, at, most);
    a->first = onnx_text(n, nearest ? "i64(floor(%s + 0.5))" : "i64(floor(%s))", kept);
    if (!nearest) {
        a->second = onnx_text(n, "i64(ceil(%s))", kept);
        a->weight = onnx_define(n, "weight", "unsqueeze(%s - floor(%s), -1)", kept, kept);
    }
    return nearest || a->weight;
}

/* Of each region's image the pixels in these rows and columns, [r, height, width, c] */
static const char *pixels(OnnxNode *n, const char *rows, const char *base, const char *y, const char *x)
{
    return onnx_text(n, "gather(%s, (%s + %s) * %lld + %s)", rows, base, y, (long long)onnx_dim(n, 0, 3), x);
}

/* From one to another, by a weight */
static const char *between(OnnxNode *n, const char *from, const char *to, const char *weight)
{
    const char *a = onnx_define(n, "from", "%s", from), *b = a ? onnx_define(n, "to", "%s", to) : NULL;
    return b ? onnx_text(n, "%s + (%s - %s) * %s", a, b, a, weight) : "";
}

static const char *stretched(OnnxNode *n, const char *rows, const char *base, const Axis *y, const Axis *x)
{
    if (!y->second)
        return pixels(n, rows, base, y->first, x->first);
    const char *top =
        between(n, pixels(n, rows, base, y->first, x->first), pixels(n, rows, base, y->first, x->second), x->weight);
    const char *bottom =
        between(n, pixels(n, rows, base, y->second, x->first), pixels(n, rows, base, y->second, x->second), x->weight);
    return between(n, top, bottom, y->weight);
}

static bool regions_fit(OnnxNode *n)
{
    const char *mode = onnx_string(n, "mode", "bilinear");
    if (strcmp(mode, "bilinear") != 0 && strcmp(mode, "nearest") != 0)
        return onnx_no(n, "its mode is %s", mode);
    if (onnx_rank(n, 0) != 4 || onnx_rank(n, 1) != 2 || onnx_dim(n, 1, 1) != 4 || onnx_rank(n, 2) != 1 ||
        onnx_dim(n, 2, 0) != onnx_dim(n, 1, 0) || onnx_type(n, 0)->dtype != onnx_type(n, 1)->dtype ||
        !dtype_is_float(onnx_type(n, 0)->dtype) || !shape_elements(&onnx_type(n, 0)->shape))
        return onnx_no(n, "its regions do not fit its images");
    return true;
}

static bool write_crops(OnnxNode *n)
{
    const int64_t *size;
    uint32_t count;
    if (!regions_fit(n) || !onnx_known_ints(n, 3, &size, &count))
        return false;
    if (count != 2 || least(size[0], size[1]) < 1 || most(size[0], size[1]) > INT16_MAX)
        return onnx_no(n, "its crop_size is impossible");
    Axis y, x;
    int64_t h = onnx_dim(n, 0, 2), w = onnx_dim(n, 0, 3), flat[] = {onnx_dim(n, 0, 0) * h * w, onnx_dim(n, 0, 1)};
    const char *region = onnx_define(n, "regions", "%s", onnx_widened(n, 1));
    const char *rows = onnx_define(n, "rows", "reshape(transpose(%s, axes = [0, 2, 3, 1]), shape = %s)",
                                   onnx_widened(n, 0), onnx_list(n, flat, 2));
    if (!region || !rows || !put_axis(n, &y, region, 0, h, size[0]) || !put_axis(n, &x, region, 1, w, size[1]))
        return false;
    const char *base = onnx_text(n, "reshape(cast(%s, to = i64) * %lld, shape = [%lld, 1, 1])", onnx_in(n, 2),
                                 (long long)h, (long long)onnx_dim(n, 1, 0));
    const char *outside = onnx_number(n, onnx_wide_dtype(n), onnx_float(n, "extrapolation_value", 0));
    return onnx_put_rounded(n, 0,
                            onnx_text(n, "transpose(select(unsqueeze(%s and %s, -1), %s, %s), axes = [0, 3, 1, 2])",
                                      y.inside, x.inside, stretched(n, rows, base, &y, &x), outside));
}

const OnnxRow onnx_contrib_image[] = {
    {"NhwcMaxPool", 1, write_bytes_pool, NULL, CONTRIB, false},
    {"ConvTransposeWithDynamicPads", 1, write_padded_transpose, NULL, CONTRIB, false},
    {"CropAndResize", 1, write_crops, NULL, CONTRIB, false},
    {0},
};
