/* Ops that see all entries of what is as large as data say (bounded.c): sums, maxima, orders.  What stands behind the
 * count is replaced by what changes nothing. */
#include <math.h>
#include <string.h>

#include "onnx/import.h"

/* [1, n, 1]: true for the entries that are there */
static const char *there(OnnxNode *n, const OnnxValue *value)
{
    int64_t dim[MAX_RANK];
    const Shape *shape = &value->type->shape;
    for (uint32_t d = 0; d < shape->rank; d++)
        dim[d] = d == value->count_axis ? shape->dim[d] : 1;
    const char *entries = onnx_temp(n, "there");
    return onnx_emit(n, "%s = iota(axis = %u, shape = %s, dtype = i64) < %s", entries, value->count_axis,
                     onnx_list(n, dim, shape->rank), onnx_name_value(n->onnx, value->count))
               ? entries
               : NULL;
}

/* The operand with `number`, written in its dtype, behind its count */
bool onnx_mask_operand(OnnxNode *n, uint32_t operand, const char *number)
{
    OnnxValue *value = n->in[operand];
    const char *entries = there(n, value), *masked = onnx_temp(n, "masked");
    if (!entries || !onnx_emit(n, "%s = select(%s, %s, cast(%s, to = %s))", masked, entries,
                               onnx_name_value(n->onnx, value), number, dtype_name(value->type->dtype)))
        return false;
    n->in[operand] = onnx_written(n, masked);
    return true;
}

const char *onnx_farthest(const OnnxNode *n, DType dtype, bool least)
{
    if (dtype_is_float(dtype))
        return least ? "-inf" : "inf";
    if (dtype == DT_BOOL)
        return least ? "0" : "1";
    if (dtype == DT_I64)
        return least ? "-9223372036854775807 - 1" : "9223372036854775807";
    bool is_signed = !dtype_is_unsigned(dtype);
    double range = ldexp(1, (int)dtype_bytes(dtype) * 8 - is_signed);
    if (dtype == DT_U64)
        return least ? "0" : "-1"; /* which has the bits of its largest */
    return onnx_number(n, dtype, least ? (is_signed ? -range : 0) : range - 1);
}

static bool takes(const int64_t *axes, uint32_t count, uint32_t axis)
{
    for (uint32_t i = 0; i < count; i++)
        if (axes[i] == axis)
            return true;
    return false;
}

/* Over other axes: entries are reduced each by itself. */
static bool pass_reduced(OnnxNode *n, const int64_t *axes, uint32_t count, uint32_t axis)
{
    uint32_t gone = 0;
    for (uint32_t d = 0; d < axis && !onnx_int(n, "keepdims", 1); d++)
        gone += takes(axes, count, d);
    n->count_axis[0] = axis - gone;
    return true;
}

/* The mean of those that are there is that of all, each scaled; of none it is 0. */
static bool mask_mean(OnnxNode *n)
{
    const OnnxValue *value = n->in[0];
    DType dtype = value->type->dtype;
    const char *scaled = onnx_temp(n, "scaled"), *count = onnx_name_value(n->onnx, value->count);
    long long extent = value->type->shape.dim[value->count_axis];
    if (!dtype_is_float(dtype) || !onnx_mask_operand(n, 0, "0") ||
        !onnx_emit(n, "%s = %s * (%s(%lld) / cast(maximum(%s, 1), to = %s))", scaled, onnx_in(n, 0), dtype_name(dtype),
                   extent, count, dtype_name(dtype)))
        return false;
    n->in[0] = onnx_written(n, scaled);
    return true;
}

static bool mask_reduced(OnnxNode *n, uint32_t axis)
{
    const char *op = n->proto->op_type + strlen("Reduce");
    DType dtype = onnx_type(n, 0)->dtype;
    const int64_t *axes;
    uint32_t count, rank = onnx_rank(n, 0);
    if (!onnx_axes(n, strcmp(op, "Sum") == 0 ? 13 : 18, rank, &axes, &count))
        return false;
    if (!takes(axes, count, axis) && (count || onnx_int(n, "noop_with_empty_axes", 0)))
        return pass_reduced(n, axes, count, axis);
    n->counted = 0;
    if (strcmp(op, "Mean") == 0)
        return mask_mean(n);
    bool least = strcmp(op, "Max") == 0 || strcmp(op, "LogSumExp") == 0;
    const char *number = least || strcmp(op, "Min") == 0 ? onnx_farthest(n, dtype, least)
                         : strcmp(op, "Prod") == 0       ? "1"
                                                         : "0";
    return number && onnx_mask_operand(n, 0, number);
}

/* Positions of the largest or the smallest */
static bool mask_chosen(OnnxNode *n, uint32_t axis)
{
    int64_t along, list[1];
    const char *number =
        onnx_farthest(n, onnx_type(n, 0)->dtype, n->proto->op_type[3] == 'M' && n->proto->op_type[4] == 'a');
    if (!onnx_axis(n, "axis", 0, onnx_rank(n, 0), &along))
        return false;
    list[0] = along;
    if (along != axis)
        return pass_reduced(n, list, 1, axis);
    n->counted = 0;
    return number && onnx_mask_operand(n, 0, number);
}

/* As many of the best as there are; a k that is known is one that the model has enough entries for. */
static bool mask_top_k(OnnxNode *n, uint32_t axis)
{
    int64_t along;
    bool largest = onnx_int(n, "largest", 1) != 0, known = n->opset < 10 || n->in[1]->known;
    const OnnxValue *value = n->in[0];
    const char *number = onnx_farthest(n, value->type->dtype, largest), *k = onnx_temp(n, "most");
    if (!onnx_axis(n, "axis", -1, onnx_rank(n, 0), &along))
        return false;
    if (along != axis) {
        n->counted = known ? 3 : 0;
        n->count_axis[1] = axis;
        return known;
    }
    n->counted = 0;
    if (!number || !onnx_mask_operand(n, 0, number))
        return false;
    if (known)
        return true;
    if (!onnx_emit(n, "%s = minimum(cast(reshape(%s, shape = []), to = i64), %s)", k, onnx_in(n, 1),
                   onnx_name_value(n->onnx, value->count)))
        return false;
    n->in[1] = onnx_written(n, k);
    n->count = NULL; /* the op's own */
    return true;
}

/* Boxes that are not there have scores that none is below. */
static bool mask_boxes(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    n->counted = 0;
    n->count = NULL; /* the op's own */
    if (operand == 1 && axis == 2)
        return onnx_mask_operand(n, 1, "-inf");
    return operand == 0 && axis == 1 && onnx_has(n, 1) && n->in[1]->count == n->in[0]->count;
}

/* Positions from the end are those of what is there; those that are known are from the begin. */
bool onnx_positions_of_counted(OnnxNode *n)
{
    OnnxValue *positions = n->in[1], *from_begin;
    const char *at = onnx_temp(n, "at"), *given = onnx_name_value(n->onnx, positions);
    for (int64_t i = 0; positions->known && i < shape_elements(&positions->type->shape); i++)
        if (tensor_number(positions->known, i) < 0)
            return false;
    if (positions->known)
        return true;
    if (!onnx_emit(n, "%s = select(%s < 0, %s + cast(%s, to = %s), %s)", at, given, given,
                   onnx_name_value(n->onnx, n->in[0]->count), dtype_name(positions->type->dtype), given))
        return false;
    from_begin = onnx_written(n, at);
    from_begin->count = positions->count;
    from_begin->count_axis = positions->count_axis;
    n->in[1] = from_begin;
    return true;
}

static bool take_positions(OnnxNode *n, uint32_t axis)
{
    int64_t along;
    if (!onnx_axis(n, "axis", 0, onnx_rank(n, 0), &along) || along != axis)
        return false;
    n->counted = 0;
    return onnx_positions_of_counted(n);
}

/* The same of lists of positions, of which number `which` is along the axis */
static bool take_lists(OnnxNode *n, uint32_t which, int64_t each)
{
    const OnnxValue *lists = n->in[1];
    const char *at = onnx_temp(n, "at"), *given = onnx_name_value(n->onnx, n->in[1]);
    if (!onnx_emit(
            n, "%s = select(%s < 0, %s + select(iota(axis = 0, shape = [%lld], dtype = i64) == %u, %s, i64(0)), %s)",
            at, given, given, (long long)each, which, onnx_name_value(n->onnx, n->in[0]->count), given))
        return false;
    n->counted = 0;
    n->in[1] = onnx_written(n, at);
    n->in[1]->count = lists->count;
    n->in[1]->count_axis = lists->count_axis;
    return true;
}

/* Slices at lists of positions, of each entry of a batch its own: what is counted is the batch, of both operands alike;
 * the lists; what they choose among; or the slices. */
static bool take_slices(OnnxNode *n, uint32_t operand, const OnnxValue *value)
{
    int64_t batch = onnx_int(n, "batch_dims", 0), each = onnx_dim(n, 1, -1), axis = value->count_axis;
    const OnnxValue *other = n->in[!operand];
    if (axis < batch)
        return other->count == value->count && other->count_axis == value->count_axis;
    if (operand == 1)
        return axis + 1 < onnx_rank(n, 1);
    if (axis < batch + each)
        return take_lists(n, (uint32_t)(axis - batch), each);
    n->count_axis[0] = (uint32_t)(onnx_rank(n, 1) - 1 + axis - batch - each);
    return !other->count;
}

/* Elements, or slices, go where the positions that are there say; who writes the op leaves the others out.  The result
 * has as many entries as operand 0. */
static bool take_scattered(OnnxNode *n, uint32_t operand, const OnnxValue *value)
{
    const OnnxValue *onto = n->in[0], *at = n->in[1];
    bool lists = strcmp(n->proto->op_type, "ScatterND") == 0;
    int64_t along = value->count_axis;
    n->count = onto->count;
    n->counted = onto->count != NULL;
    n->count_axis[0] = onto->count_axis;
    if (operand && lists) /* the op wants as many slices as lists, whichever of them were counted */
        return at->count && at->count_axis == value->count_axis && at->count_axis + 1 < onnx_rank(n, 1);
    if (operand)
        return at->count == value->count && at->count_axis == value->count_axis;
    if (at->count) /* positions from its end would be others */
        return true;
    return lists ? along >= onnx_dim(n, 1, -1)
                 : onnx_axis(n, "axis", 0, onnx_rank(n, 0), &along) && along != value->count_axis;
}

/* Before opset 13 it is over all axes from one on. */
static bool mask_exponents(OnnxNode *n, uint32_t axis)
{
    int64_t along;
    bool joins = n->opset < 13;
    if (!onnx_axis(n, "axis", joins ? 1 : -1, onnx_rank(n, 0), &along))
        return false;
    bool others = joins ? axis < along : axis != along;
    return others || onnx_mask_operand(n, 0, "-inf");
}

/* Pools of whole images, which are as wide as data say */
static bool mask_pooled(OnnxNode *n, uint32_t axis)
{
    const char *op = n->proto->op_type + strlen("Global");
    if (axis < 2)
        return true;
    n->counted = 0;
    if (*op == 'A')
        return mask_mean(n);
    return onnx_mask_operand(n, 0, *op == 'M' ? onnx_farthest(n, onnx_type(n, 0)->dtype, true) : "0");
}

static bool mask_others(OnnxNode *n, uint32_t operand, const OnnxValue *value)
{
    const char *op = n->proto->op_type;
    uint32_t axis = value->count_axis;
    int64_t along;
    if (strcmp(op, "Shape") == 0 || strcmp(op, "Size") == 0) {
        n->counted = 0;
        return true;
    }
    if (strcmp(op, "Gather") == 0)
        return operand == 0 && take_positions(n, axis);
    if (strcmp(op, "NonZero") == 0) {
        n->count = NULL; /* the op's own */
        n->counted = 0;
        return onnx_mask_operand(n, 0, "0");
    }
    if (strcmp(op, "Concat") == 0)
        return onnx_axis(n, "axis", 0, onnx_rank(n, operand), &along) && along == axis;
    if (strcmp(op, "Split") == 0) {
        for (uint32_t i = 0; i < COUNTED_RESULTS; i++)
            n->count_axis[i] = axis;
        n->counted = (1u << COUNTED_RESULTS) - 1;
        if (operand != 0 || !onnx_axis(n, "axis", 0, onnx_rank(n, 0), &along))
            return false;
        return along == axis || n->out_count <= COUNTED_RESULTS; /* along the axis itself it looks at the count */
    }
    if (strcmp(op, "GatherND") == 0)
        return onnx_has(n, !operand) && onnx_rank(n, 1) && take_slices(n, operand, value);
    if (strcmp(op, "Unique") == 0) {
        n->counted = 0; /* it looks at the count, and has its own */
        n->count = NULL;
        return operand == 0 &&
               (onnx_attribute(n, "axis") ? onnx_axis(n, "axis", 0, onnx_rank(n, 0), &along) && along == axis
                                          : onnx_rank(n, 0) == 1);
    }
    if (strcmp(op, "RoiAlign") == 0) /* one result for each region */
        return operand > 0 && axis == 0 && n->in[1]->count == value->count && n->in[2]->count == value->count;
    if (strcmp(op, "ScatterElements") == 0 || strcmp(op, "ScatterND") == 0)
        return take_scattered(n, operand, value);
    if (strcmp(op, "Gemm") == 0)
        return operand == 0 && axis == 0 && !onnx_int(n, "transA", 0);
    if (strcmp(op, "Softmax") == 0 || strcmp(op, "LogSoftmax") == 0)
        return mask_exponents(n, axis);
    return false;
}

bool onnx_mask_count(OnnxNode *n, uint32_t operand)
{
    const char *op = n->proto->op_type;
    const OnnxValue *value = n->in[operand];
    n->count = value->count;
    n->counted = 1;
    n->count_axis[0] = value->count_axis;
    if (strncmp(op, "Reduce", 6) == 0)
        return operand == 0 && mask_reduced(n, value->count_axis);
    if (strncmp(op, "Global", 6) == 0)
        return operand == 0 && mask_pooled(n, value->count_axis);
    if (strcmp(op, "ArgMax") == 0 || strcmp(op, "ArgMin") == 0)
        return mask_chosen(n, value->count_axis);
    if (strcmp(op, "TopK") == 0)
        return operand == 0 && mask_top_k(n, value->count_axis);
    if (strcmp(op, "NonMaxSuppression") == 0)
        return mask_boxes(n, operand, value->count_axis);
    return mask_others(n, operand, value);
}
