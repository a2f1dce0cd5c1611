/* Other shapes of the same elements, parts of them, and what is put together of parts. */
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

static bool put_reshape(OnnxNode *n, const char *x, const int64_t *dim, uint32_t rank)
{
    return onnx_emit(n, "%s = reshape(%s, shape = %s)", onnx_out(n, 0), x, onnx_list(n, dim, rank));
}

/* 0 copies an extent, -1 is what is left */
static bool write_reshape(OnnxNode *n)
{
    const int64_t *given;
    uint32_t count, open = UINT32_MAX;
    int64_t dim[MAX_RANK], product = 1, size = shape_elements(&onnx_type(n, 0)->shape);
    if (!onnx_known_extents(n, 1, &given, &count))
        return false;
    if (count > MAX_RANK)
        return onnx_no(n, "its result has %u dimensions", count);
    for (uint32_t d = 0; d < count; d++) {
        dim[d] = given[d];
        if (given[d] == 0 && !onnx_int(n, "allowzero", 0)) {
            if (d >= onnx_rank(n, 0))
                return onnx_no(n, "it copies an extent that is not there");
            dim[d] = onnx_dim(n, 0, d);
        }
        if (dim[d] == -1)
            open = d;
        else
            product = number_times(product, dim[d]);
    }
    if (open != UINT32_MAX)
        dim[open] = product ? size / product : 0;
    Shape shape = shape_of(count, dim);
    if (shape_eq(&shape, &onnx_type(n, 0)->shape) && onnx_has(n, 0) && !n->in[0]->count) {
        onnx_set_value(n, 0, n->in[0]);
        return true;
    }
    return onnx_write_picked(n, &shape) || put_reshape(n, onnx_in(n, 0), dim, count);
}

static bool write_flatten(OnnxNode *n)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t axis = onnx_int(n, "axis", 1), dim[2] = {1, 1};
    axis = axis < 0 ? axis + shape->rank : axis;
    if (axis < 0 || axis > shape->rank)
        return onnx_no(n, "axis is %lld, for %u dimensions", (long long)axis, shape->rank);
    for (uint32_t d = 0; d < shape->rank; d++)
        dim[d >= axis] *= shape->dim[d];
    if (axis == 1)
        return onnx_emit(n, "%s = flatten(%s)", onnx_out(n, 0), onnx_in(n, 0));
    return put_reshape(n, onnx_in(n, 0), dim, 2);
}

static bool write_transpose(OnnxNode *n)
{
    const int64_t *perm;
    uint32_t count;
    bool given = onnx_ints(n, "perm", &perm, &count) && count;
    if (onnx_rank(n, 0) < 2) {
        onnx_set_value(n, 0, n->in[0]);
        return true;
    }
    return given
               ? onnx_emit(n, "%s = transpose(%s, axes = %s)", onnx_out(n, 0), onnx_in(n, 0), onnx_list(n, perm, count))
               : onnx_emit(n, "%s = transpose(%s)", onnx_out(n, 0), onnx_in(n, 0));
}

static bool has_axis(const int64_t *axes, uint32_t count, int64_t axis)
{
    for (uint32_t i = 0; i < count; i++)
        if (axes[i] == axis)
            return true;
    return false;
}

static bool write_squeeze(OnnxNode *n)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    const int64_t *axes;
    uint32_t count, rank = 0;
    int64_t dim[MAX_RANK];
    if (!onnx_axes(n, 13, shape->rank, &axes, &count))
        return false;
    for (uint32_t d = 0; d < shape->rank; d++) {
        bool gone = count ? has_axis(axes, count, d) : shape->dim[d] == 1;
        if (gone && shape->dim[d] != 1)
            return onnx_no(n, "it drops an extent of %lld", (long long)shape->dim[d]);
        if (!gone)
            dim[rank++] = shape->dim[d];
    }
    return put_reshape(n, onnx_in(n, 0), dim, rank);
}

static bool write_unsqueeze(OnnxNode *n)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    const int64_t *axes;
    uint32_t count, given = 0, next = 0;
    int64_t dim[MAX_RANK];
    if (n->opset < 13)
        onnx_ints(n, "axes", &axes, &given);
    else if (!onnx_has(n, 1) || !onnx_known_ints(n, 1, &axes, &given))
        return onnx_no(n, "it has no axes");
    uint32_t rank = shape->rank + given;
    if (rank > MAX_RANK)
        return onnx_no(n, "its result has %u dimensions", rank);
    if (!onnx_axes(n, 13, rank, &axes, &count))
        return false;
    for (uint32_t d = 0; d < rank; d++)
        dim[d] = has_axis(axes, count, d) ? 1 : shape->dim[next++];
    return put_reshape(n, onnx_in(n, 0), dim, rank);
}

static bool write_expand(OnnxNode *n)
{
    const int64_t *given;
    uint32_t count;
    if (!onnx_known_extents(n, 1, &given, &count))
        return false;
    if (count > MAX_RANK)
        return onnx_no(n, "its result has %u dimensions", count);
    Shape wanted = shape_of(count, given), shape;
    if (!shape_broadcast(&onnx_type(n, 0)->shape, &wanted, &shape))
        return onnx_no(n, "the shapes do not fit each other");
    if (shape_eq(&shape, &onnx_type(n, 0)->shape)) {
        onnx_set_value(n, 0, n->in[0]);
        return true;
    }
    return onnx_emit(n, "%s = broadcast(%s, shape = %s)", onnx_out(n, 0), onnx_in(n, 0),
                     onnx_list(n, shape.dim, shape.rank));
}

/* Slices: lists as attributes at first, as operands from opset 10 on */

typedef struct Slices {
    const int64_t *begin, *end, *axes, *step;
    uint32_t count, ends, axis_count, step_count;
} Slices;

static bool take_slices(OnnxNode *n, Slices *s)
{
    *s = (Slices){0};
    if (n->opset < 10) {
        onnx_ints(n, "starts", &s->begin, &s->count);
        onnx_ints(n, "ends", &s->end, &s->ends);
        onnx_ints(n, "axes", &s->axes, &s->axis_count);
    } else if (!onnx_known_ints(n, 1, &s->begin, &s->count) || !onnx_known_ints(n, 2, &s->end, &s->ends) ||
               (onnx_has(n, 3) && !onnx_known_ints(n, 3, &s->axes, &s->axis_count)) ||
               (onnx_has(n, 4) && !onnx_known_ints(n, 4, &s->step, &s->step_count))) {
        return false;
    }
    bool fits =
        s->ends == s->count && (!s->axes || s->axis_count == s->count) && (!s->step || s->step_count == s->count);
    return (fits && s->count <= onnx_rank(n, 0)) || onnx_no(n, "its lists have not as many entries as each other");
}

/* As the operator says: both ends are clamped, and negative ones count from the end.  A slice that goes backwards
 * begins at an element even so: at the first where its begin lies before it, where Python's would be empty. */
static bool clamp_slice(OnnxNode *n, const Slices *s, uint32_t i, int64_t *axis, int64_t *begin, int64_t *end,
                        int64_t *step)
{
    uint32_t rank = onnx_rank(n, 0);
    *axis = s->axes ? s->axes[i] : i;
    *axis += *axis < 0 ? rank : 0;
    *step = s->step ? s->step[i] : 1;
    if (*axis < 0 || *axis >= rank || *step == 0)
        return onnx_no(n, "an axis or a step is impossible");
    int64_t extent = onnx_dim(n, 0, *axis), low = *step > 0 ? 0 : -1, high = *step > 0 ? extent : extent - 1;
    *begin = s->begin[i] < 0 ? most(s->begin[i], -extent - 1) + extent : s->begin[i];
    *end = s->end[i] < 0 ? most(s->end[i], -extent - 1) + extent : s->end[i];
    *begin = least(most(*begin, 0), high);
    *end = least(most(*end, low), high + (*step < 0));
    if (*step < 0 && *end < 0)
        *end = -extent - 1; /* before the first; -1 would be the last */
    if (*step < 0 && *begin < 0)
        *begin = -extent - 1;
    *step = most(*step, -INT32_MAX);
    return true;
}

static bool write_slice(OnnxNode *n)
{
    Slices s;
    int64_t axis[MAX_RANK], begin[MAX_RANK], end[MAX_RANK], step[MAX_RANK];
    bool stepped = false;
    if (onnx_slice_is_open(n))
        return onnx_write_open_slice(n);
    if (!take_slices(n, &s))
        return false;
    for (uint32_t i = 0; i < s.count; i++) {
        if (!clamp_slice(n, &s, i, &axis[i], &begin[i], &end[i], &step[i]))
            return false;
        stepped |= step[i] != 1;
    }
    const char *steps = stepped ? onnx_text(n, ", step = %s", onnx_list(n, step, s.count)) : "";
    return onnx_emit(n, "%s = slice(%s, axes = %s, begin = %s, end = %s%s)", onnx_out(n, 0), onnx_in(n, 0),
                     onnx_list(n, axis, s.count), onnx_list(n, begin, s.count), onnx_list(n, end, s.count), steps);
}

/* Sizes of the parts: given, or as equal as they can be. */
static bool take_sizes(OnnxNode *n, int64_t extent, const int64_t **sizes, uint32_t *count)
{
    if (n->opset < 13)
        onnx_ints(n, "split", sizes, count);
    else if (onnx_has(n, 1) && !onnx_known_ints(n, 1, sizes, count))
        return false;
    if (*count)
        return *count == n->out_count || onnx_no(n, "it names %u sizes for %u results", *count, n->out_count);
    *count = n->out_count;
    int64_t *equal = ARENA_ARRAY(n->onnx->arena, int64_t, *count + 1), each = ceil_div(extent, *count);
    for (uint32_t i = 0; i < *count; i++)
        equal[i] = least(each, most(extent - each * i, 0));
    *sizes = equal;
    return true;
}

static bool write_split(OnnxNode *n)
{
    const int64_t *sizes = NULL;
    uint32_t count = 0;
    int64_t axis;
    if (!onnx_axis(n, "axis", 0, onnx_rank(n, 0), &axis))
        return false;
    if (onnx_split_is_open(n, axis))
        return onnx_write_open_split(n, axis);
    if (!take_sizes(n, onnx_dim(n, 0, axis), &sizes, &count))
        return false;
    if (count == 1) {
        onnx_set_value(n, 0, n->in[0]);
        return true;
    }
    Text names = {0};
    for (uint32_t i = 0; i < count; i++)
        text_printf(&names, "%s%s", i ? ", " : "", onnx_out(n, i));
    bool good = onnx_emit(n, "(%s) = split(%s, axis = %lld, sizes = %s)", names.ptr, onnx_in(n, 0), (long long)axis,
                          onnx_list(n, sizes, count));
    text_free(&names);
    return good;
}

static bool write_concat(OnnxNode *n)
{
    Text parts = {0};
    int64_t axis;
    if (!onnx_axis(n, "axis", 0, onnx_rank(n, 0), &axis))
        return false;
    if (n->in_count == 1) {
        onnx_set_value(n, 0, n->in[0]);
        return true;
    }
    for (uint32_t i = 0; i < n->in_count; i++)
        if (onnx_has(n, i) && n->in[i]->count && n->in[i]->count_axis == axis)
            return onnx_write_counted_concat(n, axis);
    for (uint32_t i = 0; i < n->in_count; i++)
        text_printf(&parts, "%s, ", onnx_in(n, i));
    bool good = onnx_emit(n, "%s = concat(%saxis = %lld)", onnx_out(n, 0), parts.ptr, (long long)axis);
    text_free(&parts);
    return good;
}

/* Copies along the axis of what is as large as data say: what is there of each follows what is there of the one before.
 */
static bool write_counted_tile(OnnxNode *n, const char *times, int64_t by)
{
    const OnnxValue *value = n->in[0];
    uint32_t axis = value->count_axis;
    long long extent = value->type->shape.dim[axis];
    const char *all = onnx_temp(n, "copies"), *own = onnx_temp(n, "own"), *at = onnx_temp(n, "at");
    return onnx_emit(n, "%s = tile(%s, %s)", all, onnx_in(n, 0), times) &&
           onnx_emit(n, "%s = maximum(%s, 1)", own, onnx_name_value(n->onnx, value->count)) &&
           onnx_emit(n, "%s = iota(shape = [%lld], dtype = i64)", at, extent * (long long)by) &&
           onnx_emit(n, "%s = gather(%s, minimum(%s // %s * %lld + %s %% %s, %lld), axis = %u)", onnx_out(n, 0), all,
                     at, own, extent, at, own, extent * (long long)by - 1, axis);
}

static bool write_tile(OnnxNode *n)
{
    const int64_t *times;
    uint32_t count, rank = onnx_rank(n, 0);
    int64_t elements = shape_elements(&onnx_type(n, 0)->shape);
    if (!onnx_known_ints(n, 1, &times, &count))
        return false;
    if (count != rank)
        return onnx_no(n, "it repeats %u dimensions of %u", count, rank);
    for (uint32_t d = 0; d < rank; d++) {
        elements = number_times(elements, times[d]);
        if (times[d] < 0 || times[d] > INT32_MAX)
            return onnx_no(n, "it repeats a dimension %lld times", (long long)times[d]);
    }
    if (elements == INT64_MAX)
        return onnx_no(n, "its result is too large");
    const char *list = onnx_list(n, times, count);
    if (n->in[0]->count && times[n->in[0]->count_axis] > 1)
        return write_counted_tile(n, list, times[n->in[0]->count_axis]);
    return onnx_emit(n, "%s = tile(%s, %s)", onnx_out(n, 0), onnx_in(n, 0), list);
}

/* Padding */

static bool take_padding(OnnxNode *n, int64_t *before, int64_t *after)
{
    const int64_t *pads, *axes = NULL;
    uint32_t count, axis_count = 0, rank = onnx_rank(n, 0);
    if (n->opset < 11)
        onnx_ints(n, "pads", &pads, &count);
    else if (!onnx_known_ints(n, 1, &pads, &count) || (onnx_has(n, 3) && !onnx_known_ints(n, 3, &axes, &axis_count)))
        return false;
    uint32_t padded = axes ? axis_count : rank;
    if (count != 2 * padded)
        return onnx_no(n, "it has %u numbers of padding for %u dimensions", count, padded);
    for (uint32_t i = 0; i < padded; i++) {
        int64_t axis = !axes ? i : axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return onnx_no(n, "it pads an axis that is not there");
        before[axis] = pads[i];
        after[axis] = pads[i + padded];
        if (most(before[axis], after[axis]) > INT32_MAX || least(before[axis], after[axis]) < -INT32_MAX)
            return onnx_no(n, "its padding is impossible");
    }
    return true;
}

static bool pad_by_mode(OnnxNode *n, const char *mode, const int64_t *before, const int64_t *after)
{
    uint32_t rank = onnx_rank(n, 0);
    if (strcmp(mode, "edge") != 0 && strcmp(mode, "reflect") != 0 && strcmp(mode, "wrap") != 0)
        return onnx_no(n, "its mode is %s", mode);
    for (uint32_t d = 0; d < rank; d++) {
        int64_t extent = onnx_dim(n, 0, d), count = extent + before[d] + after[d];
        if (count < 0 || count > INT32_MAX || (!extent && count))
            return onnx_no(n, "its padding is impossible");
    }
    return onnx_emit(n, "%s = pad_mode(%s, %s, %s, \"%s\")", onnx_out(n, 0), onnx_in(n, 0), onnx_list(n, before, rank),
                     onnx_list(n, after, rank), mode);
}

/* Negative padding cuts. */
static const char *cut(OnnxNode *n, const char *x, int64_t *before, int64_t *after)
{
    int64_t begin[MAX_RANK], end[MAX_RANK], axes[MAX_RANK];
    uint32_t rank = onnx_rank(n, 0);
    bool cuts = false;
    for (uint32_t d = 0; d < rank; d++) {
        axes[d] = d;
        begin[d] = most(-before[d], 0);
        end[d] = onnx_dim(n, 0, d) - most(-after[d], 0);
        cuts |= before[d] < 0 || after[d] < 0;
        before[d] = most(before[d], 0);
        after[d] = most(after[d], 0);
    }
    return !cuts ? x
                 : onnx_text(n, "slice(%s, axes = %s, begin = %s, end = %s)", x, onnx_list(n, axes, rank),
                             onnx_list(n, begin, rank), onnx_list(n, end, rank));
}

/* With an operand that is known only when running */
static bool pad_by_operand(OnnxNode *n, const int64_t *before, const int64_t *after)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t dim[MAX_RANK];
    uint32_t rank = shape->rank;
    if (shape_elements(&onnx_type(n, 2)->shape) != 1)
        return onnx_no(n, "what it pads with is no number");
    const char *value = onnx_rank(n, 2) ? onnx_text(n, "reshape(%s, shape = [])", onnx_in(n, 2)) : onnx_in(n, 2);
    for (uint32_t d = 0; d < rank; d++)
        dim[d] = shape->dim[d] + least(before[d], 0) + least(after[d], 0);
    int64_t begin[MAX_RANK], end[MAX_RANK];
    memcpy(begin, before, sizeof begin);
    memcpy(end, after, sizeof end);
    const char *x = cut(n, onnx_in(n, 0), begin, end), *own = onnx_temp(n, "own");
    return onnx_emit(n, "%s = pad(full(1, %s, bool), before = %s, after = %s)", own, onnx_list(n, dim, rank),
                     onnx_list(n, begin, rank), onnx_list(n, end, rank)) &&
           onnx_emit(n, "%s = select(%s, pad(%s, before = %s, after = %s), %s)", onnx_out(n, 0), own, x,
                     onnx_list(n, begin, rank), onnx_list(n, end, rank), value);
}

static bool write_pad(OnnxNode *n)
{
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    const char *mode = onnx_string(n, "mode", "constant");
    DType dtype = onnx_type(n, 0)->dtype;
    double value = onnx_float(n, "value", 0);
    uint32_t rank = onnx_rank(n, 0);
    if (!take_padding(n, before, after))
        return false;
    if (strcmp(mode, "constant") != 0)
        return pad_by_mode(n, mode, before, after);
    bool given = n->opset >= 11 && onnx_has(n, 2);
    if (given && !onnx_elements(n->in[2]))
        return pad_by_operand(n, before, after);
    if (given && !onnx_known_number(n, 2, &value))
        return onnx_no(n, "what it pads with is no number");
    const char *x = cut(n, onnx_in(n, 0), before, after);
    if (given &&
        !onnx_is_attribute(onnx_elements(n->in[2]))) { /* it is 0 among what is less by it: integers wrap around */
        const char *by = onnx_literal(n->onnx, onnx_elements(n->in[2]));
        return onnx_emit(n, "%s = pad(%s - %s, before = %s, after = %s) + %s", onnx_out(n, 0), x, by,
                         onnx_list(n, before, rank), onnx_list(n, after, rank), by);
    }
    return onnx_emit(n, "%s = pad(%s, before = %s, after = %s, value = %s)", onnx_out(n, 0), x,
                     onnx_list(n, before, rank), onnx_list(n, after, rank),
                     dtype == DT_BOOL ? value != 0 ? "1" : "0" : onnx_number(n, dtype, value));
}

/* The middle of what is too large; a border where it is too small. */
static bool write_center_crop_pad(OnnxNode *n)
{
    const int64_t *wanted, *axes, all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    uint32_t count, axis_count, rank = onnx_rank(n, 0);
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    if (!onnx_known_ints(n, 1, &wanted, &count))
        return false;
    if (!onnx_ints(n, "axes", &axes, &axis_count) || !axis_count) {
        axes = all;
        axis_count = rank;
    }
    if (count != axis_count)
        return onnx_no(n, "it has %u extents for %u axes", count, axis_count);
    for (uint32_t i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || wanted[i] < 0 || wanted[i] > INT32_MAX)
            return onnx_no(n, "an axis or an extent is impossible");
        int64_t more = wanted[i] - onnx_dim(n, 0, axis);
        before[axis] = more >= 0 ? more / 2 : -(-more / 2);
        after[axis] = more - before[axis];
    }
    const char *x = cut(n, onnx_in(n, 0), before, after);
    return onnx_emit(n, "%s = pad(%s, before = %s, after = %s)", onnx_out(n, 0), x, onnx_list(n, before, rank),
                     onnx_list(n, after, rank));
}

/* Channels and pixels */

static bool write_depth_to_space(OnnxNode *n)
{
    int64_t b = onnx_int(n, "blocksize", 0);
    bool crd = strcmp(onnx_string(n, "mode", "DCR"), "CRD") == 0;
    if (onnx_rank(n, 0) != 4 || b < 1 || b > INT16_MAX || onnx_dim(n, 0, 1) % (b * b))
        return onnx_no(n, "its channels cannot be made blocks");
    return onnx_emit(n, "%s = depth_to_space(%s, %lld%s)", onnx_out(n, 0), onnx_in(n, 0), (long long)b,
                     crd ? ", mode = \"CRD\"" : "");
}

static bool write_space_to_depth(OnnxNode *n)
{
    int64_t b = onnx_int(n, "blocksize", 0);
    if (onnx_rank(n, 0) != 4 || b < 1 || b > INT16_MAX || onnx_dim(n, 0, 2) % b || onnx_dim(n, 0, 3) % b)
        return onnx_no(n, "its pixels cannot be made blocks");
    bool crd = strcmp(onnx_string(n, "mode", "DCR"), "CRD") == 0;
    return onnx_emit(n, "%s = space_to_depth(%s, %lld%s)", onnx_out(n, 0), onnx_in(n, 0), (long long)b,
                     crd ? ", mode = \"CRD\"" : "");
}

/* Above or below a diagonal that is known only when running */
static bool write_moving_triangle(OnnxNode *n, bool upper)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    const int64_t *last = shape->dim + shape->rank - 2;
    const char *x = onnx_in(n, 0), *right = onnx_temp(n, "right"), *list = onnx_list(n, last, 2);
    if (shape_elements(&onnx_type(n, 1)->shape) != 1)
        return onnx_no(n, "its diagonal is no number");
    return onnx_emit(n, "%s = iota(axis = 1, shape = %s, dtype = i64) - iota(axis = 0, shape = %s, dtype = i64)", right,
                     list, list) &&
           onnx_emit(n, "%s = select(%s %s %s, %s, full(0, [], %s))", onnx_out(n, 0), right,
                     upper ? ">=" : "<=", onnx_in(n, 1), x, dtype_name(onnx_type(n, 0)->dtype));
}

/* One triangle of the last two dimensions; the other is 0. */
static bool write_trilu(OnnxNode *n)
{
    const int64_t *list;
    uint32_t count, rank = onnx_rank(n, 0);
    int64_t k = 0;
    bool upper = onnx_int(n, "upper", 1) != 0;
    if (rank < 2)
        return onnx_no(n, "it takes a triangle of %u dimensions", rank);
    if (onnx_has(n, 1) && !n->in[1]->known)
        return write_moving_triangle(n, upper);
    if (onnx_has(n, 1) && !onnx_known_ints(n, 1, &list, &count))
        return false;
    if (onnx_has(n, 1) && count == 1)
        k = list[0];
    const char *offset = k ? onnx_text(n, ", %lld", (long long)k) : "";
    return onnx_emit(n, "%s = %s(%s%s)", onnx_out(n, 0), upper ? "triu" : "tril", onnx_in(n, 0), offset);
}

const OnnxRow onnx_view[] = {
    {"Reshape", 5, write_reshape, NULL, NULL, false},
    {"Flatten", 1, write_flatten, NULL, NULL, false},
    {"Transpose", 1, write_transpose, NULL, NULL, false},
    {"Squeeze", 1, write_squeeze, NULL, NULL, false},
    {"Unsqueeze", 1, write_unsqueeze, NULL, NULL, false},
    {"Expand", 8, write_expand, NULL, NULL, false},
    {"Slice", 1, write_slice, NULL, NULL, false},
    {"Split", 2, write_split, NULL, NULL, false},
    {"Concat", 4, write_concat, NULL, NULL, false},
    {"Tile", 6, write_tile, NULL, NULL, false},
    {"Pad", 2, write_pad, NULL, NULL, false},
    {"CenterCropPad", 18, write_center_crop_pad, NULL, NULL, false},
    {"DepthToSpace", 1, write_depth_to_space, NULL, NULL, false},
    {"SpaceToDepth", 1, write_space_to_depth, NULL, NULL, false},
    {"Trilu", 14, write_trilu, NULL, NULL, false},
    {0},
};
