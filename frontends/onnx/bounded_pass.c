/* Ops that hand on what is as large as data say (bounded.c): they move whole entries along, or compute each by itself.
 * All others refuse such operands.  What an op makes of the padding is padding. */
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

static bool pass_transposed(OnnxNode *n, uint32_t axis)
{
    const int64_t *perm;
    uint32_t count, rank = onnx_rank(n, 0);
    bool given = onnx_ints(n, "perm", &perm, &count) && count == rank;
    for (uint32_t d = 0; d < rank; d++)
        if ((given ? perm[d] : (int64_t)(rank - 1 - d)) == axis)
            n->count_axis[0] = d;
    return true;
}

static bool pass_gathered(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    int64_t along;
    const OnnxValue *other = onnx_has(n, !operand) ? n->in[!operand] : NULL;
    if (!other || !onnx_axis(n, "axis", 0, onnx_rank(n, 0), &along) || (operand == 0 && along == axis) ||
        (other->count && (operand == 0 || other->count_axis != along))) /* it would be counted along two axes */
        return false;
    n->count_axis[0] = operand == 1 ? (uint32_t)along + axis : axis < along ? axis : axis - 1 + onnx_rank(n, 1);
    return true;
}

/* Dimensions of 1 that go, or that come: both count among those of the longer shape. */
static bool pass_squeezed(OnnxNode *n, uint32_t axis, bool comes)
{
    const int64_t *axes;
    uint32_t count, rank = onnx_rank(n, 0);
    if (n->opset >= 13 && !onnx_has(n, 1))
        return false;
    if (n->opset < 13 ? !onnx_ints(n, "axes", &axes, &count) : !onnx_known_ints(n, 1, &axes, &count))
        return false;
    bool taken[2 * MAX_RANK] = {false};
    uint32_t longer = comes ? rank + count : rank, to = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t d = axes[i] < 0 ? axes[i] + longer : axes[i];
        if (d < 0 || d >= longer || longer > MAX_RANK || (!comes && d == axis))
            return false;
        taken[d] = true;
    }
    for (uint32_t d = 0, own = 0; d < longer; d++) {
        if (comes && !taken[d] && own++ == axis)
            to = d;
        if (!comes && d < axis)
            to += !taken[d];
    }
    n->count_axis[0] = to;
    return true;
}

/* The first so many entries, or parts along other axes */
static bool pass_sliced(OnnxNode *n, const OnnxValue *value)
{
    const int64_t *begin, *end, *axes = NULL, *step = NULL;
    uint32_t count, ends, all = 0, steps = 0;
    if (onnx_slice_is_open(n))
        return true; /* it looks at the count by itself */
    if (n->opset < 10 || !onnx_known_ints(n, 1, &begin, &count) || !onnx_known_ints(n, 2, &end, &ends) ||
        (onnx_has(n, 3) && !onnx_known_ints(n, 3, &axes, &all)) ||
        (onnx_has(n, 4) && !onnx_known_ints(n, 4, &step, &steps)))
        return false;
    for (uint32_t i = 0; i < count && i < ends && (!axes || i < all) && (!step || i < steps); i++) {
        int64_t axis = axes ? axes[i] : i, extent = onnx_dim(n, 0, value->count_axis);
        axis += axis < 0 ? onnx_rank(n, 0) : 0;
        if (axis != value->count_axis)
            continue;
        if (begin[i] != 0 || end[i] < 0 || (step && step[i] != 1))
            return false;
        if (end[i] >= extent)
            continue;
        const char *few = onnx_temp(n, "many");
        if (!onnx_emit(n, "%s = minimum(%s, %lld)", few, onnx_name_value(n->onnx, value->count), (long long)end[i]))
            return false;
        n->count = onnx_written(n, few);
        n->count->whole = value->count->whole;
    }
    return true;
}

/* Each entry becomes so many. */
static bool multiply_count(OnnxNode *n, int64_t by)
{
    n->count = onnx_scaled_count(n, n->count, (OnnxScale){by, 0, 1});
    return n->count != NULL;
}

/* The extents that a reshape asks for, as numbers: 0 is the operand's own, -1 what is left. */
static bool resolve_extents(const OnnxNode *n, const int64_t *asked, uint32_t count, int64_t *dim)
{
    int64_t rest = 1, open = -1, elements = shape_elements(&onnx_type(n, 0)->shape);
    for (uint32_t d = 0; d < count; d++) {
        bool own = asked[d] == 0 && !onnx_int(n, "allowzero", 0);
        if ((own && d >= onnx_rank(n, 0)) || (asked[d] == -1 && open >= 0) || asked[d] < -1)
            return false;
        dim[d] = own ? onnx_dim(n, 0, d) : asked[d];
        if (dim[d] == -1)
            open = d;
        else
            rest = number_times(rest, dim[d]);
    }
    if (open >= 0 && (rest < 1 || elements % rest))
        return false;
    if (open >= 0)
        dim[open] = elements / rest;
    return (open >= 0 ? number_times(rest, dim[open]) : rest) == elements;
}

/* Entries stay in order: as many elements stand before the axis along which they lie.  What is behind it is folded in
 * another way, or into it, which makes several entries of each. */
static bool fold_entries(OnnxNode *n, uint32_t axis, const int64_t *dim, uint32_t count)
{
    int64_t extent = onnx_dim(n, 0, axis), before = 1, first = 1;
    uint32_t at = 0;
    for (uint32_t d = 0; d < axis; d++)
        before = number_times(before, onnx_dim(n, 0, d));
    while (at < count && (first != before || dim[at] < extent || dim[at] % extent))
        first = number_times(first, dim[at++]);
    if (at == count)
        return false;
    n->counted = 1;
    n->count_axis[0] = at;
    return dim[at] == extent || multiply_count(n, dim[at] / extent);
}

static bool pass_reshaped(OnnxNode *n, uint32_t axis)
{
    const int64_t *asked;
    uint32_t count;
    int64_t dim[MAX_RANK];
    OnnxValue *own_count = n->count;
    n->counted = 0;
    if (n->opset < 5 || onnx_dim(n, 0, axis) < 1 || !onnx_known_extents(n, 1, &asked, &count) || count > MAX_RANK ||
        n->count != own_count || !resolve_extents(n, asked, count, dim))
        return false;
    bool says_where = n->counted; /* the extents name the count, at one of them */
    uint32_t said = n->count_axis[0];
    return fold_entries(n, axis, dim, count) && (!says_where || (n->count == own_count && n->count_axis[0] == said));
}

static bool pass_flattened(OnnxNode *n, uint32_t axis)
{
    int64_t from = onnx_int(n, "axis", 1), dim[2] = {1, 1};
    uint32_t rank = onnx_rank(n, 0);
    from += from < 0 ? rank : 0;
    for (uint32_t d = 0; d < rank; d++)
        dim[d >= from] = number_times(dim[d >= from], onnx_dim(n, 0, d));
    return onnx_dim(n, 0, axis) > 0 && fold_entries(n, axis, dim, 2);
}

/* To as many entries, or to more along other dimensions */
static bool pass_expanded(OnnxNode *n, const OnnxValue *value)
{
    const int64_t *dim;
    uint32_t count, rank = onnx_rank(n, 0);
    n->counted = 0;
    if (!onnx_known_extents(n, 1, &dim, &count) || count < rank || count > MAX_RANK)
        return false;
    uint32_t axis = value->count_axis + count - rank;
    bool good = n->counted ? n->count == value->count && n->count_axis[0] == axis : dim[axis] == 1;
    n->counted = 1;
    n->count_axis[0] = axis;
    return good;
}

static bool is_elementwise(const OnnxNode *n)
{
    for (const OnnxRow *row = onnx_elementwise; row->op; row++)
        if (row == n->row)
            return n->opset >= 7 && strcmp(row->op, "SwiGLU") != 0 && strcmp(row->op, "Dropout") != 0;
    return false;
}

/* Each entry by itself, with those of operands that have as many, or one for all */
static bool pass_elements(OnnxNode *n, const OnnxValue *value)
{
    Shape shape = onnx_broadcast_shape(n);
    uint32_t behind = value->type->shape.rank - value->count_axis; /* dimensions from the right */
    for (uint32_t i = 0; i < n->in_count; i++) {
        const OnnxValue *other = n->in[i];
        if (!onnx_has(n, i) || other == value || other->type->shape.rank < behind)
            continue;
        uint32_t axis = other->type->shape.rank - behind;
        bool same = other->count == value->count && other->count_axis == axis;
        if (!same && (other->count || other->type->shape.dim[axis] != 1))
            return false;
    }
    n->count_axis[0] = shape.rank - behind;
    return true;
}

/* Side by side along another axis: all must have as many. */
static bool pass_joined(OnnxNode *n, const OnnxValue *value)
{
    int64_t along;
    if (!onnx_axis(n, "axis", 0, onnx_rank(n, 0), &along) || along == value->count_axis)
        return false;
    for (uint32_t i = 0; i < n->in_count; i++)
        if (!n->in[i] || n->in[i]->count != value->count || n->in[i]->count_axis != value->count_axis)
            return false;
    return true;
}

static bool passes(OnnxNode *n, uint32_t operand, const OnnxValue *value)
{
    const char *op = n->proto->op_type;
    n->count = value->count;
    n->counted = 1;
    n->count_axis[0] = value->count_axis;
    if (strcmp(op, "Transpose") == 0)
        return pass_transposed(n, value->count_axis);
    if (strcmp(op, "Squeeze") == 0 || strcmp(op, "Unsqueeze") == 0)
        return operand == 0 && pass_squeezed(n, value->count_axis, *op == 'U');
    if (strcmp(op, "Slice") == 0)
        return operand == 0 && pass_sliced(n, value);
    if (strcmp(op, "Reshape") == 0)
        return operand == 0 && pass_reshaped(n, value->count_axis);
    if (strcmp(op, "Flatten") == 0)
        return operand == 0 && pass_flattened(n, value->count_axis);
    if (strcmp(op, "Expand") == 0)
        return operand == 0 && pass_expanded(n, value);
    if (strcmp(op, "Concat") == 0)
        return pass_joined(n, value);
    if (is_elementwise(n))
        return pass_elements(n, value);
    return strcmp(op, "Gather") == 0 && pass_gathered(n, operand, value->count_axis);
}

bool onnx_check_counts(OnnxNode *n)
{
    for (uint32_t i = 0; i < n->in_count; i++) {
        const OnnxValue *value = n->in[i];
        if (!value || !value->count || passes(n, i, value) || onnx_mask_count(n, i) || onnx_pass_alone(n, i))
            continue;
        if (value->count->whole) { /* else it would be refused */
            n->count = NULL;
            n->counted = 0;
            continue;
        }
        n->hint = "of a known size is what a mask leaves out by Where, or the first k entries of a TopK";
        return onnx_no(n,
                       "'%s' is as large as data say: it can be a result, or go on to what moves or computes each "
                       "entry by itself",
                       n->proto->input[i]);
    }
    return true;
}
