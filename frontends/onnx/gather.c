/* What is read and written at positions that are data.
 *
 * Elements at positions along several axes are read from the flat tensor at one position each: the sum of position
 * times stride. */
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

#define MOST_RANKED 4096 /* elements that are compared with each other */

static int64_t stride_of(const Shape *shape, uint32_t axis)
{
    int64_t stride = 1;
    for (uint32_t d = axis + 1; d < shape->rank; d++)
        stride *= shape->dim[d];
    return stride;
}

/* Positions as i64, counted from the beginning. */
static const char *positions(OnnxNode *n, const char *index, DType dtype, int64_t extent)
{
    const char *wide = dtype == DT_I64 ? index : onnx_text(n, "cast(%s, to = i64)", index);
    return onnx_text(n, "select(%s < 0, %s + %lld, %s)", index, wide, (long long)extent, wide);
}

/* One slice at a position that is known: a view, x[:, 3]. */
static bool write_pick(OnnxNode *n, int64_t axis, double position)
{
    Text text = {0};
    for (int64_t d = 0; d < axis; d++)
        text_printf(&text, ":, ");
    bool good = onnx_emit(n, "%s = %s[%s%.0f]", onnx_out(n, 0), onnx_in(n, 0), text.ptr ? text.ptr : "", position);
    text_free(&text);
    return good;
}

static bool write_gather(OnnxNode *n)
{
    int64_t axis;
    double position;
    if (!onnx_axis(n, "axis", 0, onnx_rank(n, 0), &axis))
        return false;
    double extent = (double)onnx_dim(n, 0, axis);
    if (onnx_rank(n, 1) == 0 && onnx_known_number(n, 1, &position) && position >= -extent && position < extent)
        return write_pick(n, axis, position);
    const char *at = axis ? onnx_text(n, ", axis = %lld", (long long)axis) : "";
    return onnx_emit(n, "%s = gather(%s, %s%s)", onnx_out(n, 0), onnx_in(n, 0), onnx_in(n, 1), at);
}

/* The flat positions of the elements of operand `i`, which counts along `axis`, in a tensor of this shape. */
static const char *element_positions(OnnxNode *n, uint32_t i, const Shape *shape, int64_t axis)
{
    const Type *type = onnx_type(n, i);
    const char *list = onnx_list(n, type->shape.dim, type->shape.rank);
    Text sum = {0};
    text_printf(&sum, "%s", positions(n, onnx_in(n, i), type->dtype, shape->dim[axis]));
    if (stride_of(shape, (uint32_t)axis) != 1)
        text_printf(&sum, " * %lld", (long long)stride_of(shape, (uint32_t)axis));
    for (uint32_t d = 0; d < shape->rank; d++)
        if (d != axis && type->shape.dim[d] > 1)
            text_printf(&sum, " + iota(axis = %u, shape = %s) * %lld", d, list, (long long)stride_of(shape, d));
    const char *name = onnx_temp(n, "at");
    bool good = onnx_emit(n, "%s = %s", name, sum.ptr);
    text_free(&sum);
    return good ? name : NULL;
}

static const char *flat(OnnxNode *n, const char *x, const Shape *shape)
{
    return shape->rank == 1 ? x : onnx_text(n, "reshape(%s, shape = [%lld])", x, (long long)shape_elements(shape));
}

static bool check_elements(OnnxNode *n, int64_t *axis)
{
    uint32_t rank = onnx_rank(n, 0);
    return onnx_axis(n, "axis", 0, rank, axis) &&
           (onnx_rank(n, 1) == rank || onnx_no(n, "its positions have not as many dimensions as its operand"));
}

static bool write_gather_elements(OnnxNode *n)
{
    int64_t axis;
    const Shape *shape = &onnx_type(n, 0)->shape;
    const char *at = check_elements(n, &axis) ? element_positions(n, 1, shape, axis) : NULL;
    return at && onnx_emit(n, "%s = gather(%s, %s)", onnx_out(n, 0), flat(n, onnx_in(n, 0), shape), at);
}

/* Positions of slices: the last dimension of operand 1 has one for each of the first dimensions after the batch. */
typedef struct Slices {
    uint32_t batch, given;
    int64_t rows, row; /* slices of the operand; elements in each */
    Shape index;       /* without its last dimension */
} Slices;

static bool take_slices(OnnxNode *n, Slices *s)
{
    const Shape *shape = &onnx_type(n, 0)->shape, *index = &onnx_type(n, 1)->shape;
    *s = (Slices){.batch = (uint32_t)onnx_int(n, "batch_dims", 0), .rows = 1, .row = 1, .index = *index};
    if (!index->rank || s->batch >= index->rank || index->dim[index->rank - 1] < 1 ||
        s->batch + index->dim[index->rank - 1] > shape->rank)
        return onnx_no(n, "its positions do not fit its operand");
    s->given = (uint32_t)index->dim[index->rank - 1];
    s->index.rank--;
    for (uint32_t d = 0; d < shape->rank; d++)
        *(d < s->batch + s->given ? &s->rows : &s->row) *= shape->dim[d];
    return true;
}

static const char *slice_positions(OnnxNode *n, const Slices *s)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    const char *index = onnx_in(n, 1), *list = onnx_list(n, s->index.dim, s->index.rank);
    uint32_t last = s->index.rank;
    Text sum = {0};
    for (uint32_t k = 0; k < s->given; k++) {
        const char *column = onnx_temp(n, "column");
        if (!onnx_emit(n, "%s = reshape(slice(%s, axes = %u, begin = %u, end = %u), shape = %s)", column, index, last,
                       k, k + 1, list))
            return text_free(&sum), NULL;
        text_printf(&sum, "%s%s * %lld", k ? " + " : "",
                    positions(n, column, onnx_type(n, 1)->dtype, shape->dim[s->batch + k]),
                    (long long)(stride_of(shape, s->batch + k) / most(s->row, 1)));
    }
    for (uint32_t d = 0; d < s->batch; d++)
        text_printf(&sum, " + iota(axis = %u, shape = %s) * %lld", d, list,
                    (long long)(stride_of(shape, d) / most(s->row, 1)));
    const char *name = onnx_temp(n, "at");
    bool good = onnx_emit(n, "%s = %s", name, sum.ptr);
    text_free(&sum);
    return good ? name : NULL;
}

static bool write_gather_nd(OnnxNode *n)
{
    Slices s;
    const Shape *shape = &onnx_type(n, 0)->shape;
    if (!take_slices(n, &s))
        return false;
    Shape result = s.index;
    for (uint32_t d = s.batch + s.given; d < shape->rank && result.rank < MAX_RANK; d++)
        result.dim[result.rank++] = shape->dim[d];
    const char *at = slice_positions(n, &s);
    return at &&
           onnx_emit(n, "%s = reshape(gather(reshape(%s, shape = [%lld, %lld]), %s), shape = %s)", onnx_out(n, 0),
                     onnx_in(n, 0), (long long)s.rows, (long long)s.row, at, onnx_list(n, result.dim, result.rank));
}

/* Scatters: what is added up reaches zeros first, where elements are replaced: they are those with a count. */
static bool scatter(OnnxNode *n, const char *table, const int64_t *flat_shape, uint32_t rank, const char *at,
                    const char *update, const int64_t *update_shape, const char *reduction)
{
    const Type *type = onnx_type(n, 0);
    const char *shape = onnx_list(n, type->shape.dim, type->shape.rank), *list = onnx_list(n, flat_shape, rank);
    if (strcmp(reduction, "add") == 0)
        return onnx_emit(n, "%s = reshape(scatter_add(%s, %s, %s), shape = %s)", onnx_out(n, 0), table, at, update,
                         shape);
    if (strcmp(reduction, "none") != 0)
        return onnx_no(n, "it scatters by %s", reduction);
    bool is_bool = type->dtype == DT_BOOL;
    const char *dtype = is_bool ? "i32" : dtype_name(type->dtype);
    const char *ones = onnx_list(n, update_shape, rank);
    const char *name = onnx_temp(n, "update"), *sum = onnx_temp(n, "scattered"), *hit = onnx_temp(n, "hit");
    return onnx_emit(n, is_bool ? "%s = cast(%s, to = i32)" : "%s = %s", name, update) &&
           onnx_emit(n, "%s = scatter_add(full(0, %s, %s), %s, %s)", sum, list, dtype, at, name) &&
           onnx_emit(n, "%s = scatter_add(full(0, %s, i32), %s, full(1, %s, i32)) != 0", hit, list, at, ones) &&
           onnx_emit(n, "%s = reshape(select(%s, %s%s, %s), shape = %s)", onnx_out(n, 0), hit, sum,
                     is_bool ? " != 0" : "", table, shape);
}

static const char *reduction_of(const OnnxNode *n)
{
    return onnx_string(n, "reduction", "none");
}

static bool write_scatter_elements(OnnxNode *n)
{
    int64_t axis;
    const Shape *shape = &onnx_type(n, 0)->shape, *update = &onnx_type(n, 2)->shape;
    const char *at = check_elements(n, &axis) ? element_positions(n, 1, shape, axis) : NULL;
    if (!at)
        return false;
    int64_t elements = shape_elements(shape), count = shape_elements(update);
    return scatter(n, flat(n, onnx_in(n, 0), shape), &elements, 1,
                   onnx_text(n, "reshape(%s, shape = [%lld])", at, (long long)count), flat(n, onnx_in(n, 2), update),
                   &count, reduction_of(n));
}

static bool write_scatter_nd(OnnxNode *n)
{
    Slices s;
    const char *at = take_slices(n, &s) ? slice_positions(n, &s) : NULL;
    if (!at)
        return false;
    int64_t slices = shape_elements(&s.index), flat_shape[] = {s.rows, s.row}, update_shape[] = {slices, s.row};
    const char *table =
        onnx_text(n, "reshape(%s, shape = [%lld, %lld])", onnx_in(n, 0), (long long)s.rows, (long long)s.row);
    const char *update =
        onnx_text(n, "reshape(%s, shape = [%lld, %lld])", onnx_in(n, 2), (long long)slices, (long long)s.row);
    return scatter(n, table, flat_shape, 2, onnx_text(n, "reshape(%s, shape = [%lld])", at, (long long)slices), update,
                   update_shape, reduction_of(n));
}

/* Positions that are known */

static bool write_compress(OnnxNode *n)
{
    int64_t axis = 0;
    bool along = onnx_attribute(n, "axis") != NULL;
    const Tensor *chosen = onnx_known(n, 1);
    const Shape *shape = &onnx_type(n, 0)->shape;
    if (!chosen)
        return false;
    if (along && !onnx_axis(n, "axis", 0, shape->rank, &axis))
        return false;
    int64_t extent = along ? shape->dim[axis] : shape_elements(shape), given = shape_elements(&chosen->type->shape);
    int64_t *list = ARENA_ARRAY(n->onnx->arena, int64_t, least(extent, given) + 1);
    uint32_t count = 0;
    for (int64_t i = 0; i < least(extent, given); i++)
        if (tensor_number(chosen, i) != 0)
            list[count++] = i;
    const char *x = along ? onnx_in(n, 0) : flat(n, onnx_in(n, 0), shape);
    return onnx_emit(n, "%s = gather(%s, %s, axis = %lld)", onnx_out(n, 0), x, onnx_known_list(n, list, count, "kept"),
                     (long long)axis);
}

static bool write_non_zero(OnnxNode *n)
{
    const Tensor *known = onnx_known(n, 0);
    if (!known)
        return false;
    const Shape *shape = &known->type->shape;
    int64_t elements = shape_elements(shape), count = 0, next = 0;
    for (int64_t i = 0; i < elements; i++)
        count += tensor_number(known, i) != 0;
    int64_t dim[] = {shape->rank, count};
    Tensor *result = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_I64, 2, dim));
    for (int64_t i = 0; i < elements; i++) {
        if (tensor_number(known, i) == 0)
            continue;
        for (uint32_t d = 0; d < shape->rank; d++)
            ((int64_t *)result->data)[d * count + next] = i / stride_of(shape, d) % shape->dim[d];
        next++;
    }
    onnx_set_known(n, 0, result);
    return true;
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

/* The k largest or smallest along an axis, in their order.  The rank of an element is how many come before it; equal
 * ones keep their order. */
static bool write_top_k(OnnxNode *n)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t axis, k = onnx_int(n, "k", 0), axes[MAX_RANK], back[MAX_RANK], column[MAX_RANK + 1], row[MAX_RANK + 1];
    double number;
    uint32_t rank = shape->rank, next = 0;
    if (!onnx_axis(n, "axis", -1, rank, &axis) ||
        (n->opset >= 10 && (!onnx_known(n, 1) || !onnx_known_number(n, 1, &number))))
        return false;
    if (n->opset >= 10)
        k = number >= 1 && number <= MOST_RANKED ? (int64_t)number : 0;
    int64_t extent = shape->dim[axis];
    if (k < 1 || k > extent || extent > MOST_RANKED || rank == MAX_RANK)
        return onnx_no(n, "it chooses %lld of %lld: 1 to %d of as many are supported", (long long)k, (long long)extent,
                       MOST_RANKED);
    for (uint32_t d = 0; d < rank; d++)
        if (d != axis)
            axes[next++] = d;
    axes[next] = axis;
    for (uint32_t d = 0; d < rank; d++) {
        back[axes[d]] = d;
        column[d] = row[d] = shape->dim[axes[d]];
    }
    column[rank] = row[rank - 1] = 1;
    row[rank] = extent;
    bool largest = onnx_int(n, "largest", 1) != 0, is_float = dtype_is_float(onnx_type(n, 0)->dtype);
    int64_t square[] = {extent, extent}, chosen[] = {k, extent};
    const char *each = onnx_temp(n, "each"), *all = onnx_temp(n, "all"), *place = onnx_temp(n, "place"),
               *hit = onnx_temp(n, "chosen");
    const char *pairs = onnx_list(n, square, 2), *best = onnx_list(n, chosen, 2), *order = onnx_list(n, back, rank);
    const char *moved = onnx_text(n, "transpose(%s, axes = %s)", onnx_in(n, 0), onnx_list(n, axes, rank));
    const char *zero = onnx_number(n, onnx_type(n, 0)->dtype, 0);
    const char *value = is_float ? onnx_text(n, "reduce_max(select(%s, %s, -inf), axes = -1)", hit, all)
                                 : onnx_text(n, "reduce_sum(select(%s, %s, %s), axes = -1)", hit, all, zero);
    return onnx_emit(n, "%s = reshape(%s, shape = %s)", each, moved, onnx_list(n, column, rank + 1)) &&
           onnx_emit(n, "%s = reshape(%s, shape = %s)", all, each, onnx_list(n, row, rank + 1)) &&
           onnx_emit(n,
                     "%s = reduce_sum(cast(%s %s %s or (%s == %s and iota(axis = 1, shape = %s) < iota(axis = 0, shape "
                     "= %s)), to = i64), axes = -1)",
                     place, all, largest ? ">" : "<", each, all, each, pairs, pairs) &&
           onnx_emit(n, "%s = reshape(%s, shape = %s) == iota(axis = 0, shape = %s)", hit, place,
                     onnx_list(n, row, rank + 1), best) &&
           (!onnx_wants(n, 0) || onnx_emit(n, "%s = transpose(%s, axes = %s)", onnx_out(n, 0), value, order)) &&
           (!onnx_wants(n, 1) ||
            onnx_emit(n, "%s = transpose(reduce_sum(select(%s, iota(axis = 1, shape = %s), 0), axes = -1), axes = %s)",
                      onnx_out(n, 1), hit, best, order));
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
    {"Compress", 9, write_compress, NULL, NULL, false},
    {"NonZero", 9, write_non_zero, NULL, NULL, false},
    {"OneHot", 9, write_one_hot, NULL, NULL, false},
    {"TopK", 1, write_top_k, NULL, NULL, false},
    {"ReverseSequence", 10, write_reverse_sequence, NULL, NULL, false},
    {0},
};
