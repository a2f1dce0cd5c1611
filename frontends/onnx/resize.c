/* Resize and Upsample: along one axis after another each result is a sum of a few elements times a weight, all of which
 * are known when compiling. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

#define MOST_TAPS 64

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

/* The position in the original. */
static double position(const Resize *r, const Line *l, int64_t i)
{
    double x = (double)i, in = (double)l->in, out = l->scale * in;
    if (strcmp(r->transform, "asymmetric") == 0)
        return x / l->scale;
    if (strcmp(r->transform, "align_corners") == 0)
        return out == 1 ? 0 : x * (in - 1) / (out - 1);
    if (strcmp(r->transform, "tf_crop_and_resize") == 0)
        return out == 1 ? (l->end - l->start) * (in - 1) / 2
                        : l->start * (in - 1) + x * (l->end - l->start) * (in - 1) / (out - 1);
    if (strcmp(r->transform, "pytorch_half_pixel") == 0 && out == 1)
        return -0.5;
    if (strcmp(r->transform, "tf_half_pixel_for_nn") == 0)
        return (x + 0.5) / l->scale;
    double half = (x + 0.5) / l->scale - 0.5;
    if (strcmp(r->transform, "half_pixel_symmetric") == 0)
        half += in / 2 * (1 - (double)l->out / out);
    return half;
}

static double cubic(double a, double x)
{
    x = fabs(x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Weights of the elements from `*first` on around a position whose fraction, in (0, 1], is counted from its left
 * neighbour. Returns how many. */
static int weigh(const Resize *r, const Line *l, double fraction, double *weight, int64_t *first)
{
    bool is_cubic = strcmp(r->mode, "cubic") == 0;
    double scale = r->antialias ? fmin(l->scale, 1) : 1, reach = is_cubic ? 2 : 1, sum = 0;
    *first = (int64_t)floor(-reach / scale) + 1;
    int64_t count = 2 - 2 * *first;
    for (int64_t i = 0; i < count && i < MOST_TAPS; i++) {
        double x = ((double)(*first + i) - fraction) * scale;
        weight[i] = is_cubic ? cubic(r->a, x) : fmax(1 - fabs(x), 0);
        sum += weight[i];
    }
    for (int64_t i = 0; i < count && i < MOST_TAPS; i++)
        weight[i] = r->antialias ? weight[i] / sum : weight[i];
    return count > MOST_TAPS ? -1 : (int)count;
}

static int64_t nearest(const Resize *r, double x)
{
    if (strcmp(r->nearest, "round_prefer_floor") == 0)
        return (int64_t)ceil(x - 0.5);
    if (strcmp(r->nearest, "round_prefer_ceil") == 0)
        return (int64_t)floor(x + 0.5);
    return (int64_t)(strcmp(r->nearest, "ceil") == 0 ? ceil(x) : floor(x));
}

/* Fills, for result i, tap by tap, positions and weights, `out` apart. */
static void fill_taps(const Resize *r, const Line *l, int64_t i, int count, int64_t *at, double *weight)
{
    double x = position(r, l, i), left = ceil(x) - 1, own[MOST_TAPS], sum = 0;
    int64_t first = 0;
    if (strcmp(r->mode, "nearest") == 0) {
        at[i] = least(most(nearest(r, x), 0), l->in - 1);
        return;
    }
    weigh(r, l, x - left, own, &first);
    for (int t = 0; t < count; t++) {
        int64_t from = (int64_t)left + first + t;
        if (r->exclude && (from < 0 || from >= l->in))
            own[t] = 0;
        sum += own[t];
        at[t * l->out + i] = least(most(from, 0), l->in - 1);
    }
    for (int t = 0; t < count; t++)
        weight[t * l->out + i] = r->exclude ? own[t] / sum : own[t];
}

static const char *known_vector(OnnxNode *n, DType dtype, const double *list, int64_t count, uint32_t trailing,
                                const char *word)
{
    int64_t dim[MAX_RANK] = {count, 1, 1, 1, 1, 1, 1, 1};
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, dtype, 1 + trailing, dim));
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(tensor, i, list[i]);
    const char *base = onnx_identifier(n->onnx, n->proto->output[0]);
    return onnx_name_value(n->onnx, onnx_known_value(n->onnx, tensor, onnx_text(n, "%s.%s", base, word)));
}

/* What lies outside of the original is a number. */
static const char *extrapolate(OnnxNode *n, const Resize *r, const Line *l, uint32_t trailing, DType dtype,
                               const char *y)
{
    double *outside = ARENA_ARRAY(n->onnx->arena, double, l->out + 1);
    bool any = false;
    for (int64_t i = 0; i < l->out; i++) {
        double x = position(r, l, i);
        outside[i] = x < 0 || x > (double)(l->in - 1);
        any |= outside[i] != 0;
    }
    if (!any || strcmp(r->transform, "tf_crop_and_resize") != 0)
        return y;
    return onnx_text(n, "select(%s, %s, %s)", known_vector(n, DT_BOOL, outside, l->out, trailing, "outside"),
                     onnx_number(n, dtype, r->extrapolation), y);
}

static const char *resize_axis(OnnxNode *n, const Resize *r, const Line *l, uint32_t axis, const char *x)
{
    double weight[MOST_TAPS];
    int64_t first;
    uint32_t trailing = onnx_rank(n, 0) - 1 - axis;
    bool is_nearest = strcmp(r->mode, "nearest") == 0;
    DType dtype = onnx_type(n, 0)->dtype;
    int count = is_nearest ? 1 : weigh(r, l, 1, weight, &first);
    if (count < 0 || l->out > ONNX_FOLDED)
        return onnx_no(n, "it shrinks or grows too much"), NULL;
    int64_t *at = ARENA_ARRAY(n->onnx->arena, int64_t, l->out * count + 1);
    double *weights = ARENA_ARRAY(n->onnx->arena, double, l->out *count + 1);
    for (int64_t i = 0; i < l->out; i++)
        fill_taps(r, l, i, count, at, weights);
    Text sum = {0};
    for (int t = 0; t < count; t++) {
        const char *read = onnx_text(n, "gather(%s, %s, axis = %u)", x,
                                     onnx_known_list(n, at + t * l->out, (uint32_t)l->out, "source"), axis);
        if (is_nearest)
            text_printf(&sum, "%s", read);
        else
            text_printf(&sum, "%s%s * %s", t ? " + " : "", read,
                        known_vector(n, dtype, weights + t * l->out, l->out, trailing, "weight"));
    }
    const char *to = onnx_temp(n, "resized");
    bool good = onnx_emit(n, "%s = %s", to, extrapolate(n, r, l, trailing, dtype, sum.ptr));
    text_free(&sum);
    return good ? to : NULL;
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

static bool set_scales(OnnxNode *n, Line *line, const int64_t *axes, uint32_t count, const double *scale)
{
    for (uint32_t i = 0; i < count; i++) {
        Line *l = &line[axes[i]];
        l->scale = scale[i];
        if (!(scale[i] > 0) || scale[i] * (double)l->in > INT32_MAX)
            return onnx_no(n, "a scale is %g", scale[i]);
        l->out = (int64_t)floor(scale[i] * (double)l->in);
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

static bool resize(OnnxNode *n, const Resize *r, const Line *line)
{
    const char *x = onnx_in(n, 0);
    for (uint32_t d = 0; d < onnx_rank(n, 0); d++) {
        bool same = line[d].out == line[d].in && line[d].scale == 1 && line[d].start == 0 && line[d].end == 1;
        if (!same && !line[d].in)
            return onnx_no(n, "it makes something of an empty axis");
        if (!same && !(x = resize_axis(n, r, &line[d], d, x)))
            return false;
    }
    return onnx_emit(n, "%s = %s", onnx_out(n, 0), x);
}

static void start_lines(const OnnxNode *n, Line *line)
{
    for (uint32_t d = 0; d < onnx_rank(n, 0); d++)
        line[d] = (Line){onnx_dim(n, 0, d), onnx_dim(n, 0, d), 1, 0, 1};
}

static bool check_mode(OnnxNode *n, const Resize *r)
{
    return strcmp(r->mode, "nearest") == 0 || dtype_is_float(onnx_type(n, 0)->dtype) ||
           onnx_no(n, "it interpolates integers");
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
                .nearest = onnx_string(n, "nearest_mode", old ? "floor" : "round_prefer_floor"),
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
    bool crops = strcmp(r.transform, "tf_crop_and_resize") == 0;
    return check_mode(n, &r) && set_sizes(n, line, counted, count) && (!crops || set_region(n, line, counted, count)) &&
           resize(n, &r, line);
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
