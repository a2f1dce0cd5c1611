/* Assembly: concat, stack and pad put a result together from their operands. */
#include "ops/infer.h"

#include <inttypes.h>

#include "ops/attrs.h"
#include "ops/elements.h"
#include "ops/families.h"

static bool infer_concat(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    Shape shape = *in_shape(graph, node, 0);
    uint32_t axis;

    if (!check_axis(graph, node, attr_int(n, "axis"), shape.rank, &axis))
        return false;
    for (uint32_t i = 1; i < n->in_count; i++) {
        Shape other = *in_shape(graph, node, i);
        if (!check_same_dtype(graph, node, 0, i))
            return false;
        int64_t sum = shape.dim[axis] + (other.rank > axis ? other.dim[axis] : 0); /* extents are below 2^54 */
        other.dim[axis] = shape.dim[axis];
        if (!shape_eq(&shape, &other))
            return infer_fail(graph, node, "shapes differ outside of dimension %u: " STR_FMT ", " STR_FMT, axis,
                              STR_ARG(show_operand(graph, node, 0)), STR_ARG(show_operand(graph, node, i)));
        shape.dim[axis] = sum;
        int64_t elements;
        if (!shape_checked_elements(&shape, &elements))
            return infer_fail(graph, node, "the result would have too many elements");
    }
    return set_plain(graph, node, 0, in_type(graph, node, 0)->dtype, &shape);
}

static bool infer_stack(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Shape *slice = in_shape(graph, node, 0);
    Shape shape = *slice;

    for (uint32_t i = 1; i < n->in_count; i++)
        if (!check_same_dtype(graph, node, 0, i))
            return false;
        else if (!shape_eq(slice, in_shape(graph, node, i)))
            return infer_fail(graph, node, "shapes differ: " STR_FMT ", " STR_FMT,
                              STR_ARG(show_operand(graph, node, 0)), STR_ARG(show_operand(graph, node, i)));
    if (slice->rank == MAX_RANK)
        return infer_fail(graph, node, "the result would have %d dimensions, more than %d", MAX_RANK + 1, MAX_RANK);
    shape.rank++;
    if (!axis_in_range(attr_int(n, "axis"), shape.rank))
        return infer_fail(graph, node, "axis %" PRId64 " is out of range: the result has %u dimensions",
                          attr_int(n, "axis"), shape.rank);
    uint32_t axis = axis_position(attr_int(n, "axis"), shape.rank);
    for (uint32_t d = axis; d < slice->rank; d++)
        shape.dim[d + 1] = slice->dim[d];
    shape.dim[axis] = n->in_count;
    return set_plain(graph, node, 0, in_type(graph, node, 0)->dtype, &shape);
}

static bool infer_pad(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = in_type(graph, node, 0);
    int64_t before[MAX_RANK], after[MAX_RANK];
    Shape shape = x->shape;

    if (!check_count(graph, node, "before", shape.rank) || !check_count(graph, node, "after", shape.rank) ||
        !check_least(graph, node, "before", 0) || !check_least(graph, node, "after", 0))
        return false;
    attr_ints(n, "before", shape.rank, before);
    attr_ints(n, "after", shape.rank, after);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (__builtin_add_overflow(shape.dim[i], before[i], &shape.dim[i]) ||
            __builtin_add_overflow(shape.dim[i], after[i], &shape.dim[i]))
            return infer_fail(graph, node, "the result would have too many elements");
    return set_plain(graph, node, 0, x->dtype, &shape);
}

bool infer_assemble(Graph *graph, NodeId node)
{
    switch (graph->node[node].op) {
    case OP_CONCAT:
        return infer_concat(graph, node);
    case OP_STACK:
        return infer_stack(graph, node);
    default:
        return infer_pad(graph, node);
    }
}

/* Evaluation: operands are written to their places in the result through an index map. */

/* A stack is a concat of operands with an extent of 1 at the axis. */
static void eval_concat(const Node *node, const Tensor *const *in, Tensor *out)
{
    uint32_t axis = axis_position(attr_int(node, "axis"), out->type->shape.rank);
    Strided map = strided_plain(&out->type->shape);
    for (uint32_t i = 0; i < node->in_count; i++) {
        map.dim[axis] = node->op == OP_STACK ? 1 : in[i]->type->shape.dim[axis];
        strided_write(out->data, in[i]->data, &map, dtype_bytes(out->type->dtype));
        map.offset += map.dim[axis] * map.stride[axis];
    }
}

static void eval_pad(const Node *node, const Tensor *x, Tensor *out)
{
    int64_t before[MAX_RANK];
    Strided map = strided_plain(&out->type->shape);

    elements_fill(out, attr_float(node, "value"));
    attr_ints(node, "before", map.rank, before);
    for (uint32_t i = 0; i < map.rank; i++) {
        map.dim[i] = x->type->shape.dim[i];
        map.offset += before[i] * map.stride[i];
    }
    strided_write(out->data, x->data, &map, dtype_bytes(out->type->dtype));
}

void eval_assemble(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    (void)graph;
    if (node->op == OP_PAD)
        eval_pad(node, in[0], out[0]);
    else
        eval_concat(node, in, out[0]);
}
