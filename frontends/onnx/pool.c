/* Windows, and pooling over them. */
#include <string.h>

#include "base/number.h"
#include "onnx/window.h"

/* Windows */

static bool take_list(OnnxNode *n, const char *name, uint32_t rank, int64_t *list, int64_t fallback)
{
    const int64_t *given;
    uint32_t count;
    bool named = onnx_ints(n, name, &given, &count) && count;
    if (named && count != rank)
        return onnx_no(n, "%s has %u entries for %u dimensions", name, count, rank);
    for (uint32_t d = 0; d < rank; d++) {
        list[d] = named ? given[d] : fallback;
        if (list[d] < 1 || list[d] > INT32_MAX)
            return onnx_no(n, "%s is %lld", name, (long long)list[d]);
    }
    return true;
}

static bool take_pads(OnnxNode *n, OnnxWindow *w)
{
    const int64_t *given;
    uint32_t count;
    if (!onnx_ints(n, "pads", &given, &count) || !count)
        return true;
    if (count != 2 * w->rank)
        return onnx_no(n, "pads has %u entries for %u dimensions", count, w->rank);
    for (uint32_t d = 0; d < w->rank; d++) {
        w->before[d] = given[d];
        w->after[d] = given[d + w->rank];
        if (given[d] < 0 || given[d + w->rank] < 0)
            return onnx_no(n, "its padding is negative");
        if (given[d] > INT32_MAX || given[d + w->rank] > INT32_MAX)
            return onnx_no(n, "its padding is %lld", (long long)most(given[d], given[d + w->rank]));
    }
    return true;
}

/* SAME_UPPER and SAME_LOWER: as many windows as pixels by stride. */
static void pad_same(const OnnxNode *n, OnnxWindow *w, bool upper)
{
    for (uint32_t d = 0; d < w->rank; d++) {
        int64_t in = onnx_dim(n, 0, d + 2), out = ceil_div(in, w->stride[d]);
        int64_t total = most((out - 1) * w->stride[d] + (w->size[d] - 1) * w->dilation[d] + 1 - in, 0);
        w->before[d] = upper ? total / 2 : total - total / 2;
        w->after[d] = total - w->before[d];
    }
}

bool onnx_window(OnnxNode *n, const int64_t *size, OnnxWindow *w)
{
    const char *automatic = onnx_string(n, "auto_pad", "NOTSET");
    uint32_t rank = onnx_rank(n, 0);
    if (rank < 3)
        return onnx_no(n, "its image has %u dimensions", rank);
    *w = (OnnxWindow){.rank = rank - 2, .ceil = onnx_int(n, "ceil_mode", 0) != 0};
    for (uint32_t d = 0; size && d < w->rank; d++)
        w->size[d] = size[d];
    if (!size && !onnx_attribute(n, "kernel_shape"))
        return onnx_no(n, "it has no kernel_shape");
    if ((!size && !take_list(n, "kernel_shape", w->rank, w->size, 1)) ||
        !take_list(n, "strides", w->rank, w->stride, 1) || !take_list(n, "dilations", w->rank, w->dilation, 1))
        return false;
    if (strcmp(automatic, "NOTSET") == 0)
        return take_pads(n, w);
    if (strncmp(automatic, "SAME", 4) == 0)
        pad_same(n, w, strcmp(automatic, "SAME_UPPER") == 0);
    return true;
}

static bool is_all(const int64_t *list, uint32_t count, int64_t value)
{
    bool all = true;
    for (uint32_t i = 0; i < count; i++)
        all &= list[i] == value;
    return all;
}

/* One number where all are the same. */
static const char *short_list(const OnnxNode *n, const int64_t *list, uint32_t count)
{
    return count && is_all(list, count, list[0]) ? onnx_text(n, "%lld", (long long)list[0]) : onnx_list(n, list, count);
}

static const char *pad_text(const OnnxNode *n, const OnnxWindow *w)
{
    int64_t pad[2 * MAX_RANK];
    memcpy(pad, w->before, w->rank * sizeof *pad);
    memcpy(pad + w->rank, w->after, w->rank * sizeof *pad);
    return short_list(n, pad, 2 * w->rank);
}

const char *onnx_window_text(const OnnxNode *n, const OnnxWindow *w, int64_t default_stride)
{
    bool padded = !is_all(w->before, w->rank, 0) || !is_all(w->after, w->rank, 0);
    bool strided = !is_all(w->stride, w->rank, default_stride), dilated = !is_all(w->dilation, w->rank, 1);
    const char *stride = strided ? onnx_text(n, ", stride = %s", short_list(n, w->stride, w->rank)) : "";
    const char *pad = padded ? onnx_text(n, ", pad = %s", pad_text(n, w)) : "";
    const char *dilation = dilated ? onnx_text(n, ", dilation = %s", short_list(n, w->dilation, w->rank)) : "";
    return onnx_text(n, "%s%s%s", stride, pad, dilation);
}

/* Pools */

const char *onnx_pool_text(OnnxNode *n, const OnnxWindow *w, const char *x, const char *pool, const char *rest)
{
    return onnx_text(n, "%s(%s, window = %s%s%s%s)", pool, x, short_list(n, w->size, w->rank),
                     onnx_window_text(n, w, 0), w->ceil ? ", ceil = true" : "", rest);
}

static bool has_pixels(OnnxNode *n, const OnnxWindow *w)
{
    bool has = true;
    for (uint32_t d = 0; d < w->rank; d++)
        has &= onnx_dim(n, 0, d + 2) > 0;
    return has || onnx_no(n, "its image has no pixels");
}

/* Does the padded image hold a window?  What max_pool says itself where not; max_pool_indices has no words for it. */
static bool holds_window(OnnxNode *n, const OnnxWindow *w)
{
    static const char *const extent[] = {"wide", "high", "deep"}; /* of the last dimension, the one before, others */
    for (uint32_t d = 0; d < w->rank; d++) {
        int64_t span = (w->size[d] - 1) * w->dilation[d] + 1, from_last = w->rank - 1 - d;
        int64_t padded = onnx_dim(n, 0, d + 2) + w->before[d] + w->after[d], sticks_out = w->ceil ? w->stride[d] : 1;
        if (span - padded >= sticks_out)
            return onnx_no(n, "the window is %lld %s, the padded image only %lld", (long long)span,
                           extent[from_last < 2 ? from_last : 2], (long long)padded);
    }
    return true;
}

/* Positions that count the last dimension first, as ones that count it last: digits in the reverse order */
static bool write_by_column(OnnxNode *n, const OnnxWindow *w, const char *index)
{
    Text sum = {0};
    int64_t image = 1, before = 1, behind;
    for (uint32_t d = 0; d < w->rank; d++)
        image *= onnx_dim(n, 0, d + 2);
    text_printf(&sum, "%s // %lld * %lld", index, (long long)image, (long long)image);
    behind = image;
    for (uint32_t d = 0; d < w->rank; d++) {
        int64_t extent = onnx_dim(n, 0, d + 2);
        behind /= extent;
        text_printf(&sum, " + %s // %lld %% %lld * %lld", index, (long long)behind, (long long)extent,
                    (long long)before);
        before *= extent;
    }
    bool good = onnx_emit(n, "%s = %s", onnx_out(n, 1), sum.ptr);
    text_free(&sum);
    return good;
}

/* With the positions of the largest, of which some models count the columns of an image first. */
static bool write_max_pool_indices(OnnxNode *n, const OnnxWindow *w)
{
    bool by_column = onnx_int(n, "storage_order", 0) && w->rank > 1;
    if (!holds_window(n, w))
        return false;
    const char *index = by_column ? onnx_temp(n, "index") : onnx_out(n, 1);
    if (!onnx_emit(n, "(%s, %s) = max_pool_indices(%s, window = %s%s%s)", onnx_out(n, 0), index, onnx_in(n, 0),
                   short_list(n, w->size, w->rank), onnx_window_text(n, w, 0), w->ceil ? ", up = true" : ""))
        return false;
    return !by_column || write_by_column(n, w, index);
}

static bool write_max_pool(OnnxNode *n)
{
    OnnxWindow window;
    DType dtype = onnx_type(n, 0)->dtype;
    if (!onnx_window(n, NULL, &window) || !has_pixels(n, &window))
        return false;
    if (onnx_wants(n, 1))
        return write_max_pool_indices(n, &window);
    if (dtype_is_float(dtype))
        return onnx_emit(n, "%s = %s", onnx_out(n, 0), onnx_pool_text(n, &window, onnx_in(n, 0), "max_pool", ""));
    const char *wide = onnx_text(n, "cast(%s, to = f32)", onnx_in(n, 0));
    return onnx_emit(n, "%s = cast(%s, to = %s)", onnx_out(n, 0), onnx_pool_text(n, &window, wide, "max_pool", ""),
                     dtype_name(dtype));
}

/* The positions are those of the image that the windows make, which lies at the beginning of a larger one. */
static bool write_max_unpool(OnnxNode *n)
{
    OnnxWindow w;
    const int64_t *wanted;
    int64_t dim[MAX_RANK], zero[MAX_RANK] = {0}, more[MAX_RANK] = {0};
    uint32_t count, rank = onnx_rank(n, 0);
    if (!onnx_window(n, NULL, &w) || (onnx_has(n, 2) && !onnx_known_ints(n, 2, &wanted, &count)))
        return false;
    if (!shape_eq(&onnx_type(n, 0)->shape, &onnx_type(n, 1)->shape))
        return onnx_no(n, "it has not a position for each element");
    for (uint32_t d = 0; d < rank; d++)
        dim[d] = d < 2 ? onnx_dim(n, 0, d)
                       : number_times(onnx_dim(n, 0, d) - 1, w.stride[d - 2]) + w.size[d - 2] - w.before[d - 2] -
                             w.after[d - 2];
    const char *y = onnx_text(n, "max_unpool(%s, %s, %s)", onnx_in(n, 0), onnx_in(n, 1), onnx_list(n, dim, rank));
    if (!onnx_has(n, 2))
        return onnx_emit(n, "%s = %s", onnx_out(n, 0), y);
    if (count != rank || !is_all(w.before, w.rank, 0) || !is_all(w.after, w.rank, 0))
        return onnx_no(n, "its output_shape does not fit, or it has padding, too");
    for (uint32_t d = 0; d < rank; d++) {
        more[d] = wanted[d] - dim[d];
        if (wanted[d] > INT32_MAX || more[d] < 0 || (d < 2 && more[d]))
            return onnx_no(n, "its output_shape is less than its windows make");
    }
    return onnx_emit(n, "%s = pad(%s, before = %s, after = %s)", onnx_out(n, 0), y, onnx_list(n, zero, rank),
                     onnx_list(n, more, rank));
}

static bool write_average_pool(OnnxNode *n)
{
    OnnxWindow window;
    if (!onnx_window(n, NULL, &window) || !has_pixels(n, &window))
        return false;
    const char *rest = onnx_int(n, "count_include_pad", 0) ? ", count_pad = true" : "";
    return onnx_emit(n, "%s = %s", onnx_out(n, 0), onnx_pool_text(n, &window, onnx_in(n, 0), "avg_pool", rest));
}

static bool write_lp_pool(OnnxNode *n)
{
    OnnxWindow w;
    int64_t p = onnx_int(n, "p", 2);
    if (!onnx_window(n, NULL, &w) || !has_pixels(n, &w))
        return false;
    if (p < 1 || p > INT16_MAX)
        return onnx_no(n, "its p is %lld", (long long)p);
    return onnx_emit(n, "%s = lp_pool(%s, window = %s%s%s%s)", onnx_out(n, 0), onnx_in(n, 0),
                     short_list(n, w.size, w.rank), p == 2 ? "" : onnx_text(n, ", p = %lld", (long long)p),
                     onnx_window_text(n, &w, 0), w.ceil ? ", up = true" : "");
}

static bool write_global(OnnxNode *n)
{
    if (onnx_rank(n, 0) < 3)
        return onnx_no(n, "its image has %u dimensions", onnx_rank(n, 0));
    return onnx_emit(n, "%s = %s(%s, keep = true)", onnx_out(n, 0), n->row->text, onnx_in(n, 0));
}

static bool write_global_lp(OnnxNode *n)
{
    int64_t p = onnx_int(n, "p", 2);
    if (onnx_rank(n, 0) < 3 || p < 1 || p > INT16_MAX)
        return onnx_no(n, "its image has %u dimensions, and its p is %lld", onnx_rank(n, 0), (long long)p);
    return onnx_emit(n, "%s = global_lp_pool(%s, %lld, keep = true)", onnx_out(n, 0), onnx_in(n, 0), (long long)p);
}

const OnnxRow onnx_pool[] = {
    {"MaxPool", 1, write_max_pool, NULL, NULL, false},
    {"MaxUnpool", 9, write_max_unpool, NULL, NULL, false},
    {"AveragePool", 1, write_average_pool, NULL, NULL, false},
    {"LpPool", 2, write_lp_pool, NULL, NULL, false},
    {"GlobalAveragePool", 1, write_global, "global_avg_pool", NULL, false},
    {"GlobalMaxPool", 1, write_global, "global_max_pool", NULL, false},
    {"GlobalLpPool", 2, write_global_lp, NULL, NULL, false},
    {0},
};
