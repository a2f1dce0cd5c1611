/* Resize and Upsample: as `resize` of the library, of the axes that change. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

#define MOST_TAPS 64               /* elements that a result is made of */
#define NEAR      "0.000244140625" /* of a whole number, among means of integers */

typedef struct Resize {
    const char *transform, *mode, *nearest;
    double a; /* of cubic */
    bool exclude, antialias;
    double extrapolation;
} Resize;

typedef struct Line { /* one axis */
    int64_t in, out;
    double scale, start, end; /* the last two of a region, in parts of the extent */
} Line;

static bool crops(const Resize *r)
{
    return strcmp(r->transform, "tf_crop_and_resize") == 0;
}

static bool changes(const Resize *r, const Line *l)
{
    return l->out != l->in || l->scale != 1 || (crops(r) && (l->start != 0 || l->end != 1));
}

/* Are there more results, or wider kernels, than a text should spell out? */
static bool check_line(OnnxNode *n, const Resize *r, const Line *l)
{
    double reach = strcmp(r->mode, "cubic") == 0 ? 2 : 1;
    if (!l->in)
        return onnx_no(n, "it makes something of an empty axis");
    return !r->antialias || 2 * reach / fmin(l->scale, 1) <= MOST_TAPS || onnx_no(n, "it shrinks too much");
}

/* Words of the call, each after a comma */

static void put_word(Text *out, const char *name, const char *value, const char *otherwise)
{
    if (strcmp(value, otherwise) != 0)
        text_printf(out, ", %s = \"%s\"", name, value);
}

static void put_modes(const OnnxNode *n, Text *out, const Resize *r)
{
    bool is_nearest = strcmp(r->mode, "nearest") == 0, is_cubic = strcmp(r->mode, "cubic") == 0;
    put_word(out, "mode", r->mode, "nearest");
    put_word(out, "coordinates", r->transform, "half_pixel");
    if (is_nearest)
        put_word(out, "rounding", r->nearest, "round_prefer_floor");
    if (is_cubic && r->a != -0.75)
        text_printf(out, ", a = %s", onnx_number(n, DT_F64, r->a));
    if (!is_nearest && r->exclude)
        text_printf(out, ", exclude_outside = true");
    if (!is_nearest && r->antialias)
        text_printf(out, ", antialias = true");
    if (crops(r) && r->extrapolation != 0)
        text_printf(out, ", extrapolation = %s", onnx_number(n, DT_F64, r->extrapolation));
}

/* Factors where they are others than the extents have, and regions */
static void put_lines(const OnnxNode *n, Text *out, const Resize *r, const Line *const *line, uint32_t count)
{
    bool follow = true;
    for (uint32_t i = 0; i < count; i++)
        follow &= line[i]->scale == (double)line[i]->out / (double)line[i]->in;
    for (uint32_t i = 0; i < count && !follow; i++)
        text_printf(out, "%s%s", i ? ", " : ", scales = [", onnx_number(n, DT_F64, line[i]->scale));
    for (uint32_t i = 0; i < count && crops(r); i++)
        text_printf(out, "%s[%s, %s]",
                    i        ? ", "
                    : follow ? ", roi = ["
                             : "], roi = [",
                    onnx_number(n, DT_F64, line[i]->start), onnx_number(n, DT_F64, line[i]->end));
    if (count && (!follow || crops(r)))
        text_printf(out, "]");
}

/* Integers `y`, interpolated as floats, are cut off, as ONNX Runtime has it.
 * What comes near a whole number is that: a mean of 7 and 7 is not 6 for the sake of a last bit. */
static bool write_integers(OnnxNode *n, const char *y, DType dtype)
{
    const char *to = dtype_name(dtype), *mean = onnx_temp(n, "mean");
    if (dtype_is_unsigned(dtype))
        return onnx_emit(n, "%s = cast(%s + %s, to = %s)", onnx_out(n, 0), y, NEAR, to);
    return onnx_emit(n, "%s = %s", mean, y) &&
           onnx_emit(n, "%s = cast(%s + clip(%s, -%s, %s), to = %s)", onnx_out(n, 0), mean, mean, NEAR, NEAR, to);
}

/* The call for the axes of `x` that change; `x` itself where none does, NULL after onnx_no */
static const char *resized(OnnxNode *n, const Resize *r, const Line *line, const char *x)
{
    int64_t axes[MAX_RANK], sizes[MAX_RANK];
    const Line *changed[MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = 0; d < onnx_rank(n, 0); d++) {
        if (!changes(r, &line[d]))
            continue;
        if (!check_line(n, r, &line[d]))
            return NULL;
        axes[count] = d;
        sizes[count] = line[d].out;
        changed[count++] = &line[d];
    }
    if (!count)
        return x;
    Text words = {0};
    put_modes(n, &words, r);
    put_lines(n, &words, r, changed, count);
    const char *y = onnx_text(n, "resize(%s, %s, axes = %s%s)", x, onnx_list(n, sizes, count),
                              onnx_list(n, axes, count), words.len ? words.ptr : "");
    text_free(&words);
    return y;
}

/* Integers that are filtered go axis by axis, the last one first, and are integers again after each: rounded, and of
 * two that are as near the larger one, as runtimes that keep to bytes have it. */
static bool filter_integers(OnnxNode *n, const Resize *r, const Line *line, DType dtype)
{
    const char *x = onnx_in(n, 0), *to = dtype_name(dtype), *wide = dtype_bytes(dtype) == 1 ? "f32" : "f64";
    for (uint32_t d = onnx_rank(n, 0); d-- > 0;) {
        if (!changes(r, &line[d]))
            continue;
        Line one[MAX_RANK];
        for (uint32_t k = 0; k < onnx_rank(n, 0); k++)
            one[k] = k == d ? line[d] : (Line){line[k].in, line[k].in, 1, 0, 1};
        const char *y = resized(n, r, one, onnx_text(n, "cast(%s, to = %s)", x, wide)),
                   *name = onnx_temp(n, "filtered");
        if (!y || !onnx_emit(n, "%s = cast(floor(%s + 0.5), to = %s)", name, y, to))
            return false;
        x = name;
    }
    return onnx_emit(n, "%s = %s", onnx_out(n, 0), x);
}

/* Corners that are aligned lie as far apart as the scale says, which is more than runtimes have where a part is cut
 * off: of the first such node it is told. */
static void tell_uneven(OnnxNode *n, const Resize *r, const Line *line)
{
    if (strcmp(r->transform, "align_corners") != 0 || n->onnx->uneven_told)
        return;
    for (uint32_t d = 0; d < onnx_rank(n, 0); d++) {
        const Line *l = &line[d];
        double extent = (double)((float)l->in * (float)l->scale);
        if (extent == (double)l->out)
            continue;
        n->onnx->uneven_told = true;
        diag_warning(
            n->onnx->diag, (Place){0},
            "node %u %s '%s': with align_corners its scale makes %lld elements %g, as ONNX has it; ONNX Runtime "
            "and PyTorch go by %lld, as all do where sizes are given",
            n->onnx->node_count, n->proto->op_type, n->proto->name ? n->proto->name : "", (long long)l->in, extent,
            (long long)l->out);
        return;
    }
}

static bool resize(OnnxNode *n, const Resize *r, const Line *line)
{
    DType dtype = onnx_type(n, 0)->dtype;
    bool mixes = strcmp(r->mode, "nearest") != 0 && dtype_is_int(dtype);
    const char *wide = dtype_bytes(dtype) == 1 ? "f32" : "f64", *x = onnx_in(n, 0);
    tell_uneven(n, r, line);
    if (mixes && r->antialias)
        return filter_integers(n, r, line, dtype);
    const char *from = mixes ? onnx_text(n, "cast(%s, to = %s)", x, wide) : x, *y = resized(n, r, line, from);
    if (!y)
        return false;
    return mixes && y != from ? write_integers(n, y, dtype)
                              : onnx_emit(n, "%s = %s", onnx_out(n, 0), y == from ? x : y);
}

/* Before opset 11 the nearest element is the one before where an axis grows, and the one behind where it shrinks. */
static bool resize_to_either_side(OnnxNode *n, Resize *r, const Line *line)
{
    Line larger[MAX_RANK], smaller[MAX_RANK];
    for (uint32_t d = 0; d < onnx_rank(n, 0); d++) {
        larger[d] = smaller[d] = line[d];
        *(line[d].scale < 1 ? &larger[d] : &smaller[d]) = (Line){line[d].in, line[d].in, 1, 0, 1};
    }
    const char *x = onnx_in(n, 0);
    r->nearest = "ceil";
    x = resized(n, r, smaller, x);
    r->nearest = "floor";
    x = x ? resized(n, r, larger, x) : NULL;
    return x && onnx_emit(n, "%s = %s", onnx_out(n, 0), x);
}

/* Scales or sizes of the axes that are named, or of all */

static void keep_aspect(const OnnxNode *n, Line *line, const int64_t *axes, uint32_t count)
{
    const char *policy = onnx_string(n, "keep_aspect_ratio_policy", "stretch");
    bool larger = strcmp(policy, "not_smaller") == 0;
    double scale = larger ? 0 : INFINITY;
    if (strcmp(policy, "stretch") == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        scale = larger ? fmax(scale, line[axes[i]].scale) : fmin(scale, line[axes[i]].scale);
    for (uint32_t i = 0; i < count; i++) {
        line[axes[i]].scale = scale;
        line[axes[i]].out = (int64_t)floor(scale * (double)line[axes[i]].in + 0.5);
    }
}

/* In f32, as runtimes have it and as PyTorch states it in its files: 5 * 2.6 is 13 there, and in f64 a little less. */
static int64_t scaled_extent(int64_t extent, double scale)
{
    float product = (float)extent * (float)scale;
    return (int64_t)floorf(product);
}

static bool set_scales(OnnxNode *n, Line *line, const int64_t *axes, uint32_t count, const double *scale)
{
    for (uint32_t i = 0; i < count; i++) {
        Line *l = &line[axes[i]];
        l->scale = scale[i];
        if (!(scale[i] > 0) || scale[i] * (double)l->in > INT32_MAX)
            return onnx_no(n, "a scale is %g", scale[i]);
        l->out = scaled_extent(l->in, scale[i]);
    }
    return true;
}

static bool take_numbers(OnnxNode *n, uint32_t i, double *list, uint32_t *count, uint32_t room)
{
    const Tensor *known = onnx_has(n, i) ? onnx_known(n, i) : NULL;
    if (onnx_has(n, i) && !known)
        return false;
    *count = known ? (uint32_t)least(shape_elements(&known->type->shape), INT32_MAX) : 0;
    if (*count > room)
        return onnx_no(n, "'%s' has %u entries", n->proto->input[i], *count);
    for (uint32_t k = 0; k < *count; k++)
        list[k] = tensor_number(known, k);
    return true;
}

static bool set_sizes(OnnxNode *n, Line *line, const int64_t *axes, uint32_t count)
{
    double number[MAX_RANK];
    uint32_t scales, sizes = 0;
    uint32_t at = n->opset >= 11 ? 2 : 1;
    if (!take_numbers(n, at, number, &scales, MAX_RANK))
        return false;
    if (scales)
        return (scales == count || onnx_no(n, "it has %u scales for %u axes", scales, count)) &&
               set_scales(n, line, axes, count, number);
    if (!take_numbers(n, 3, number, &sizes, MAX_RANK))
        return false;
    if (sizes != count)
        return onnx_no(n, "it has %u sizes for %u axes", sizes, count);
    for (uint32_t i = 0; i < count; i++) {
        Line *l = &line[axes[i]];
        if (!(number[i] >= 0 && number[i] <= INT32_MAX) || l->in < 1)
            return onnx_no(n, "a size is %g", number[i]);
        l->out = (int64_t)number[i];
        l->scale = number[i] / (double)l->in;
    }
    keep_aspect(n, line, axes, count);
    return true;
}

static bool set_region(OnnxNode *n, Line *line, const int64_t *axes, uint32_t count)
{
    double region[2 * MAX_RANK];
    uint32_t given;
    if (!take_numbers(n, 1, region, &given, 2 * MAX_RANK))
        return false;
    if (given != 2 * count)
        return onnx_no(n, "its region has %u numbers for %u axes", given, count);
    for (uint32_t i = 0; i < count; i++) {
        line[axes[i]].start = region[i];
        line[axes[i]].end = region[i + count];
    }
    return true;
}

static void start_lines(const OnnxNode *n, Line *line)
{
    for (uint32_t d = 0; d < onnx_rank(n, 0); d++)
        line[d] = (Line){onnx_dim(n, 0, d), onnx_dim(n, 0, d), 1, 0, 1};
}

/* Is the word one of those in the list?  Otherwise it is no word of the library either. */
static bool is_word(const char *word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

static bool check_mode(OnnxNode *n, const Resize *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    static const char *const transforms[] = {"half_pixel",          "half_pixel_symmetric", "pytorch_half_pixel",
                                             "align_corners",       "asymmetric",           "tf_crop_and_resize",
                                             "tf_half_pixel_for_nn"};
    if (!is_word(r->mode, modes, sizeof modes / sizeof *modes) ||
        !is_word(r->nearest, roundings, sizeof roundings / sizeof *roundings) ||
        !is_word(r->transform, transforms, sizeof transforms / sizeof *transforms))
        return onnx_no(n, "its mode is not known");
    return strcmp(r->mode, "nearest") == 0 || onnx_type(n, 0)->dtype != DT_BOOL || onnx_no(n, "it interpolates truths");
}

static bool write_resize(OnnxNode *n)
{
    const int64_t *axes, all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t counted[MAX_RANK];
    uint32_t count, rank = onnx_rank(n, 0);
    Line line[MAX_RANK];
    bool old = n->opset < 11;
    Resize r = {.transform = onnx_string(n, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
                .mode = onnx_string(n, "mode", "nearest"),
                .nearest = onnx_string(n, "nearest_mode", "round_prefer_floor"),
                .a = onnx_float(n, "cubic_coeff_a", -0.75),
                .exclude = onnx_int(n, "exclude_outside", 0) != 0,
                .antialias = onnx_int(n, "antialias", 0) != 0,
                .extrapolation = onnx_float(n, "extrapolation_value", 0)};

    start_lines(n, line);
    if (!onnx_ints(n, "axes", &axes, &count) || !count) {
        axes = all;
        count = rank;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (count > rank || axes[i] >= rank || axes[i] < -(int64_t)rank)
            return onnx_no(n, "an axis is not there");
        counted[i] = axes[i] < 0 ? axes[i] + rank : axes[i];
    }
    return check_mode(n, &r) && set_sizes(n, line, counted, count) &&
           (!crops(&r) || set_region(n, line, counted, count)) &&
           (old && strcmp(r.mode, "nearest") == 0 ? resize_to_either_side(n, &r, line) : resize(n, &r, line));
}

static bool write_upsample(OnnxNode *n)
{
    double scale[MAX_RANK];
    int64_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    uint32_t count = 0, rank = onnx_rank(n, 0);
    Line line[MAX_RANK];
    const Onnx__AttributeProto *a = onnx_attribute(n, "scales");
    Resize r = {.transform = "asymmetric", .mode = onnx_string(n, "mode", "nearest"), .nearest = "floor"};
    start_lines(n, line);
    if (n->opset >= 9 && !take_numbers(n, 1, scale, &count, MAX_RANK))
        return false;
    for (size_t i = 0; n->opset < 9 && a && i < a->n_floats && i < MAX_RANK; i++)
        scale[count++] = (double)a->floats[i];
    if (count != rank)
        return onnx_no(n, "it has %u scales for %u axes", count, rank);
    if (strcmp(r.mode, "nearest") != 0)
        r.mode = "linear";
    return check_mode(n, &r) && set_scales(n, line, all, count, scale) && resize(n, &r, line);
}

const OnnxRow onnx_resize[] = {
    {"Resize", 10, write_resize, NULL, NULL, false},
    {"Upsample", 7, write_upsample, NULL, NULL, false},
    {0},
};
