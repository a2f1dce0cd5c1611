/* What is read and written at positions that are data. */
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

static int64_t stride_of(const Shape *shape, uint32_t axis)
{
    int64_t stride = 1;
    for (uint32_t d = axis + 1; d < shape->rank; d++)
        stride *= shape->dim[d];
    return stride;
}

static bool write_gather(OnnxNode *n)
{
    int64_t axis;
    double position;
    if (!onnx_axis(n, "axis", 0, onnx_rank(n, 0), &axis))
        return false;
    if (onnx_set_known_extents(n))
        return true;
    double extent = (double)onnx_dim(n, 0, axis);
    if (onnx_rank(n, 1) == 0 && onnx_known_number(n, 1, &position) && position >= -extent && position < extent)
        return onnx_write_pick(n, n->in[0], axis, (int64_t)position);
    const char *at = axis ? onnx_text(n, ", axis = %lld", (long long)axis) : "";
    return onnx_emit(n, "%s = gather(%s, %s%s)", onnx_out(n, 0), onnx_in(n, 0), onnx_in(n, 1), at);
}

static const char *flat(OnnxNode *n, const char *x, const Shape *shape)
{
    return shape->rank == 1 ? x : onnx_text(n, "reshape(%s, shape = [%lld])", x, (long long)shape_elements(shape));
}

/* Along all axes but one the positions are those of the operand, or fewer. */
static bool check_elements(OnnxNode *n, int64_t *axis)
{
    uint32_t rank = onnx_rank(n, 0);
    if (!onnx_axis(n, "axis", 0, rank, axis))
        return false;
    if (onnx_rank(n, 1) != rank)
        return onnx_no(n, "its positions have not as many dimensions as its operand");
    for (uint32_t d = 0; d < rank; d++)
        if (d != *axis && onnx_dim(n, 1, d) > onnx_dim(n, 0, d))
            return onnx_no(n, "its positions do not fit its operand");
    return true;
}

static bool write_gather_elements(OnnxNode *n)
{
    int64_t axis;
    return check_elements(n, &axis) && onnx_emit(n, "%s = gather_elements(%s, %s, %lld)", onnx_out(n, 0), onnx_in(n, 0),
                                                 onnx_in(n, 1), (long long)axis);
}

/* The last dimension of operand 1 has a position for each of the first dimensions of operand 0 after the batch. */
static bool check_slices(OnnxNode *n, int64_t batch)
{
    const Shape *index = &onnx_type(n, 1)->shape;
    bool fits = batch >= 0 && batch < index->rank && index->dim[index->rank - 1] >= 1 &&
                index->dim[index->rank - 1] <= onnx_rank(n, 0) - batch;
    for (uint32_t d = 0; fits && d < batch; d++)
        fits = index->dim[d] == onnx_dim(n, 0, d);
    return fits || onnx_no(n, "its positions do not fit its operand");
}

static bool write_gather_nd(OnnxNode *n)
{
    int64_t batch = onnx_int(n, "batch_dims", 0);
    const char *rest = batch ? onnx_text(n, ", batch = %lld", (long long)batch) : "";
    return check_slices(n, batch) &&
           onnx_emit(n, "%s = gather_nd(%s, %s%s)", onnx_out(n, 0), onnx_in(n, 0), onnx_in(n, 1), rest);
}

/* `, mode = "add"`; NULL after onnx_no */
static const char *reduction(OnnxNode *n)
{
    static const char *const known[] = {"add", "mul", "max", "min"};
    const char *name = onnx_string(n, "reduction", "none");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i]) == 0)
            return onnx_text(n, ", mode = \"%s\"", name);
    if (strcmp(name, "none") == 0)
        return "";
    onnx_no(n, "it scatters by %s", name);
    return NULL;
}

/* Positions behind a count lead to a slice more, which is cut off again.  Those from the end are of what is there. */
static bool write_counted_scatter(OnnxNode *n, int64_t axis, const char *mode)
{
    const OnnxValue *onto = n->in[0];
    long long extent = onnx_dim(n, 0, axis), at = axis;
    DType dtype = onnx_type(n, 1)->dtype;
    if (!onnx_mask_operand(n, 1, onnx_text(n, "%lld", extent)))
        return false;
    const char *position = onnx_in(n, 1), *end = onnx_text(n, "%lld", extent);
    if (onto->count && onto->count_axis == axis)
        end = onnx_text(n, "cast(%s, to = %s)", onnx_name_value(n->onnx, onto->count), dtype_name(dtype));
    const char *room = onnx_temp(n, "room"), *from_begin = onnx_temp(n, "at");
    return onnx_emit(n, "%s = concat(%s, slice(%s, axes = %lld, begin = 0, end = 1), axis = %lld)", room, onnx_in(n, 0),
                     onnx_in(n, 0), at, at) &&
           onnx_emit(n, "%s = select(%s < 0, %s + %s, %s)", from_begin, position, position, end, position) &&
           onnx_emit(n, "%s = slice(scatter_elements(%s, %s, %s, axis = %lld%s), axes = %lld, begin = 0, end = %lld)",
                     onnx_out(n, 0), room, from_begin, onnx_in(n, 2), at, mode, at, extent);
}

static bool write_scatter_elements(OnnxNode *n)
{
    int64_t axis;
    const char *mode = reduction(n);
    if (!mode || !check_elements(n, &axis))
        return false;
    if (!shape_eq(&onnx_type(n, 1)->shape, &onnx_type(n, 2)->shape))
        return onnx_no(n, "it has not a position for each element");
    if (n->in[1]->count && onnx_dim(n, 0, axis) > 0)
        return write_counted_scatter(n, axis, mode);
    return onnx_emit(n, "%s = scatter_elements(%s, %s, %s, axis = %lld%s)", onnx_out(n, 0), onnx_in(n, 0),
                     onnx_in(n, 1), onnx_in(n, 2), (long long)axis, mode);
}

/* Where lists of positions end: the extents that they go along, of what has a count that */
static const char *list_ends(OnnxNode *n)
{
    const OnnxValue *onto = n->in[0];
    uint32_t each = (uint32_t)onnx_dim(n, 1, -1);
    const char *ends = onnx_known_list(n, onto->type->shape.dim, each, "ends");
    return onto->count && onto->count_axis < each
               ? onnx_text(n, "select(iota(axis = 0, shape = [%u], dtype = i64) == %u, %s, %s)", each, onto->count_axis,
                           onnx_name_value(n->onnx, onto->count), ends)
               : ends;
}

/* The first of an operand along an axis */
static const char *first_of(OnnxNode *n, uint32_t operand, uint32_t axis, int64_t extent)
{
    if (onnx_dim(n, operand, axis) == extent)
        return onnx_in(n, operand);
    return onnx_text(n, "slice(%s, axes = %u, begin = 0, end = %lld)", onnx_in(n, operand), axis, (long long)extent);
}

/* The same of slices: lists of positions behind a count lead to the last one in each dimension, of which the first has
 * one more.  There are as many slices as lists, so that either may have more padding. */
static bool write_counted_slices(OnnxNode *n, const char *mode)
{
    const OnnxValue *lists = n->in[1];
    uint32_t axis = lists->count_axis;
    if (axis + 1 >= onnx_rank(n, 1) || axis >= onnx_rank(n, 2))
        return onnx_no(n, "its slices do not fit its positions");
    int64_t rows = least(onnx_dim(n, 1, axis), onnx_dim(n, 2, axis));
    long long extent = onnx_dim(n, 0, 0);
    const char *from_begin = onnx_temp(n, "at"), *room = onnx_temp(n, "room");
    const char *given = first_of(n, 1, axis, rows), *slices = first_of(n, 2, axis, rows);
    if (!onnx_emit(n, "%s = select(%s < 0, %s + %s, %s)", from_begin, given, given, list_ends(n), given))
        return false;
    n->in[1] = onnx_written(n, from_begin);
    n->in[1]->count = lists->count;
    n->in[1]->count_axis = lists->count_axis;
    return onnx_mask_operand(n, 1, "-1") &&
           onnx_emit(n, "%s = concat(%s, slice(%s, axes = 0, begin = 0, end = 1), axis = 0)", room, onnx_in(n, 0),
                     onnx_in(n, 0)) &&
           onnx_emit(n, "%s = slice(scatter_nd(%s, %s, %s%s), axes = 0, begin = 0, end = %lld)", onnx_out(n, 0), room,
                     onnx_in(n, 1), slices, mode, extent);
}

static bool write_scatter_nd(OnnxNode *n)
{
    const char *mode = reduction(n);
    if (!mode || !check_slices(n, 0))
        return false;
    if (n->in[1]->count && onnx_dim(n, 0, 0) > 0)
        return write_counted_slices(n, mode);
    return onnx_emit(n, "%s = scatter_nd(%s, %s, %s%s)", onnx_out(n, 0), onnx_in(n, 0), onnx_in(n, 1), onnx_in(n, 2),
                     mode);
}

/* What is new in a cache, from a position on for each sample of the batch; a circular one goes on at its beginning. */
static bool write_tensor_scatter(OnnxNode *n)
{
    const Shape *update = &onnx_type(n, 1)->shape;
    const char *mode = onnx_string(n, "mode", "linear");
    bool circular = strcmp(mode, "circular") == 0;
    int64_t axis, batch[MAX_RANK], steps[MAX_RANK];
    uint32_t rank = onnx_rank(n, 0);
    if (!onnx_axis(n, "axis", -2, rank, &axis))
        return false;
    if (axis == 0 || (!circular && strcmp(mode, "linear") != 0))
        return onnx_no(n, "its axis is the batch, or its mode is %s", mode);
    for (uint32_t d = 0; d < rank; d++) {
        batch[d] = d ? 1 : onnx_dim(n, 0, 0);
        steps[d] = d == axis ? onnx_dim(n, 1, d) : 1;
        if (update->rank != rank ||
            (d == axis ? update->dim[d] > onnx_dim(n, 0, d) : update->dim[d] != onnx_dim(n, 0, d)))
            return onnx_no(n, "its update does not fit its cache");
    }
    const char *at = onnx_text(n, "iota(axis = %lld, shape = %s)", (long long)axis, onnx_list(n, steps, rank));
    if (onnx_has(n, 2))
        at = onnx_text(n, "(reshape(cast(%s, to = i64), shape = %s) + %s)", onnx_in(n, 2), onnx_list(n, batch, rank),
                       at);
    if (circular)
        at = onnx_text(n, "%s %% %lld", at, (long long)onnx_dim(n, 0, axis));
    return onnx_emit(n, "%s = scatter_elements(%s, broadcast(%s, shape = %s), %s, axis = %lld)", onnx_out(n, 0),
                     onnx_in(n, 0), at, onnx_list(n, update->dim, rank), onnx_in(n, 1), (long long)axis);
}

/* depth values along a new axis: on where the position is the operand's */
static bool write_one_hot(OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    int64_t axis, dim[MAX_RANK], unit[MAX_RANK], next = 0;
    double number;
    if (!onnx_known(n, 1))
        return false;
    if (!onnx_known_number(n, 1, &number) || number < 1 || number > INT32_MAX || rank == MAX_RANK)
        return onnx_no(n, "its depth is impossible");
    if (!onnx_axis(n, "axis", -1, rank + 1, &axis))
        return false;
    int64_t extent = (int64_t)number;
    for (uint32_t d = 0; d <= rank; d++) {
        unit[d] = d == axis ? 1 : onnx_dim(n, 0, next);
        dim[d] = d == axis ? extent : onnx_dim(n, 0, next++);
    }
    const char *index = onnx_temp(n, "class"), *x = onnx_in(n, 0);
    const char *wide = onnx_text(n, "cast(%s, to = i64)", x), *values = onnx_in(n, 2);
    const char *off = onnx_temp(n, "off"), *on = onnx_temp(n, "on"), *zero = onnx_number(n, onnx_type(n, 0)->dtype, 0);
    return onnx_emit(n, "%s = reshape(select(%s < %s, %s + %lld, %s), shape = %s)", index, x, zero, wide,
                     (long long)extent, wide, onnx_list(n, unit, rank + 1)) &&
           onnx_emit(n, "%s = %s[0]", off, values) && onnx_emit(n, "%s = %s[1]", on, values) &&
           onnx_emit(n, "%s = select(iota(axis = %lld, shape = %s) == %s, %s, %s)", onnx_out(n, 0), (long long)axis,
                     onnx_list(n, dim, rank + 1), index, on, off);
}

/* The k largest or smallest along an axis, in their order; equal ones keep theirs. */
/* None of the elements along the axis */
static bool take_none(OnnxNode *n, int64_t axis)
{
    const Type *type = onnx_type(n, 0);
    Shape shape = type->shape;
    shape.dim[axis] = 0;
    for (uint32_t i = 0; i < 2; i++)
        onnx_set_known(n, i,
                       tensor_new(n->onnx->arena,
                                  module_plain_type(n->onnx->module, i ? DT_I64 : type->dtype, shape.rank, shape.dim)));
    return true;
}

static bool write_top_k(OnnxNode *n)
{
    int64_t axis, k = onnx_int(n, "k", 0);
    const int64_t *list = NULL;
    uint32_t count = 0;
    if (n->opset >= 10 && onnx_has(n, 1) && !n->in[1]->known)
        return onnx_write_bounded_top_k(n);
    if (!onnx_axis(n, "axis", -1, onnx_rank(n, 0), &axis) || (n->opset >= 10 && !onnx_known_ints(n, 1, &list, &count)))
        return false;
    if (n->opset >= 10)
        k = count == 1 ? list[0] : -1;
    if (k == 0)
        return take_none(n, axis);
    if (k < 0 || k > onnx_dim(n, 0, axis))
        return onnx_no(n, "it chooses %lld of %lld", (long long)k, (long long)onnx_dim(n, 0, axis));
    const char *least = onnx_int(n, "largest", 1) ? "" : ", largest = false";
    const char *value = onnx_out(n, 0), *index = onnx_out(n, 1);
    return onnx_emit(n, "(%s, %s) = top_k(%s, %lld, axis = %lld%s)", value, index, onnx_in(n, 0), (long long)k,
                     (long long)axis, least);
}

/* The first steps of each sequence the other way round, as many as it has. */
static bool write_reverse_sequence(OnnxNode *n)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t batch, time, unit[MAX_RANK];
    if (!onnx_axis(n, "batch_axis", 1, shape->rank, &batch) || !onnx_axis(n, "time_axis", 0, shape->rank, &time))
        return false;
    for (uint32_t d = 0; d < shape->rank; d++)
        unit[d] = d == batch ? shape->dim[d] : 1;
    const char *list = onnx_list(n, shape->dim, shape->rank), *step = onnx_temp(n, "step"),
               *length = onnx_temp(n, "length");
    const char *at = onnx_temp(n, "at");
    Text sum = {0};
    text_printf(&sum, "select(%s < %s, %s - 1 - %s, %s) * %lld", step, length, length, step, step,
                (long long)stride_of(shape, (uint32_t)time));
    for (uint32_t d = 0; d < shape->rank; d++)
        if (d != time)
            text_printf(&sum, " + iota(axis = %u, shape = %s) * %lld", d, list, (long long)stride_of(shape, d));
    bool good = onnx_emit(n, "%s = iota(axis = %lld, shape = %s)", step, (long long)time, list) &&
                onnx_emit(n, "%s = reshape(cast(%s, to = i64), shape = %s)", length, onnx_in(n, 1),
                          onnx_list(n, unit, shape->rank)) &&
                onnx_emit(n, "%s = %s", at, sum.ptr) &&
                onnx_emit(n, "%s = gather(%s, %s)", onnx_out(n, 0), flat(n, onnx_in(n, 0), shape), at);
    text_free(&sum);
    return good;
}

const OnnxRow onnx_gather[] = {
    {"Gather", 1, write_gather, NULL, NULL, false},
    {"GatherElements", 11, write_gather_elements, NULL, NULL, false},
    {"GatherND", 11, write_gather_nd, NULL, NULL, false},
    {"Scatter", 9, write_scatter_elements, NULL, NULL, false},
    {"ScatterElements", 11, write_scatter_elements, NULL, NULL, false},
    {"ScatterND", 11, write_scatter_nd, NULL, NULL, false},
    {"TensorScatter", 24, write_tensor_scatter, NULL, NULL, false},
    {"OneHot", 9, write_one_hot, NULL, NULL, false},
    {"TopK", 1, write_top_k, NULL, NULL, false},
    {"ReverseSequence", 10, write_reverse_sequence, NULL, NULL, false},
    {0},
};
