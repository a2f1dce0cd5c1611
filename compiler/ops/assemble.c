/* Assembly: concat, stack and pad put a result together from their operands. */
#include "ops/infer.h"

#include <inttypes.h>

#include "ir/attr.h"
#include "ops/axis.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/meaning.h"

static bool infer_concat(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    Shape shape = *infer_in_shape(graph, node, 0);
    uint32_t axis;

    if (!infer_check_axis(graph, node, attr_int(n, "axis"), shape.rank, &axis))
        return false;
    for (uint32_t i = 1; i < n->in_count; i++) {
        Shape other = *infer_in_shape(graph, node, i);
        if (!infer_check_same_dtype(graph, node, 0, i))
            return false;
        if (!other.rank)
            return infer_fail(graph, node, "joins tensors along a dimension (axis = N): " STR_FMT,
                              STR_ARG(infer_show_operand(graph, node, i)));
        int64_t sum = shape.dim[axis] + (other.rank > axis ? other.dim[axis] : 0); /* extents are below 2^54 */
        other.dim[axis] = shape.dim[axis];
        if (!shape_eq(&shape, &other))
            return infer_fail(graph, node, "shapes differ outside of dimension %u: " STR_FMT ", " STR_FMT, axis,
                              STR_ARG(infer_show_operand(graph, node, 0)), STR_ARG(infer_show_operand(graph, node, i)));
        shape.dim[axis] = sum;
        int64_t elements;
        if (!shape_checked_elements(&shape, &elements))
            return infer_fail(graph, node, "the result would have too many elements");
    }
    return infer_set_plain(graph, node, 0, infer_in_type(graph, node, 0)->dtype, &shape);
}

static bool infer_stack(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Shape *slice = infer_in_shape(graph, node, 0);
    Shape shape = *slice;

    for (uint32_t i = 1; i < n->in_count; i++)
        if (!infer_check_same_dtype(graph, node, 0, i))
            return false;
        else if (!shape_eq(slice, infer_in_shape(graph, node, i)))
            return infer_fail(graph, node, "shapes differ: " STR_FMT ", " STR_FMT,
                              STR_ARG(infer_show_operand(graph, node, 0)), STR_ARG(infer_show_operand(graph, node, i)));
    if (slice->rank == MAX_RANK)
        return infer_fail(graph, node, "the result would have %d dimensions, more than %d", MAX_RANK + 1, MAX_RANK);
    shape.rank++;
    if (!infer_axis_in_range(attr_int(n, "axis"), shape.rank))
        return infer_fail(graph, node, "axis %" PRId64 " is out of range: the result has %u dimensions",
                          attr_int(n, "axis"), shape.rank);
    uint32_t axis = axis_position(attr_int(n, "axis"), shape.rank);
    for (uint32_t d = axis; d < slice->rank; d++)
        shape.dim[d + 1] = slice->dim[d];
    shape.dim[axis] = n->in_count;
    return infer_set_plain(graph, node, 0, infer_in_type(graph, node, 0)->dtype, &shape);
}

static bool infer_pad(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = infer_in_type(graph, node, 0);
    int64_t before[MAX_RANK], after[MAX_RANK];
    Shape shape = x->shape;

    if (!infer_check_count(graph, node, "before", shape.rank) || !infer_check_count(graph, node, "after", shape.rank) ||
        !infer_check_least(graph, node, "before", 0) || !infer_check_least(graph, node, "after", 0))
        return false;
    attr_ints(n, "before", shape.rank, before);
    attr_ints(n, "after", shape.rank, after);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (__builtin_add_overflow(shape.dim[i], before[i], &shape.dim[i]) ||
            __builtin_add_overflow(shape.dim[i], after[i], &shape.dim[i]))
            return infer_fail(graph, node, "the result would have too many elements");
    return infer_set_plain(graph, node, 0, x->dtype, &shape);
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

/* The normal form */

bool node_is_assembly(const Node *node)
{
    return op_info(node->op)->family == FAMILY_ASSEMBLE;
}

bool node_is_stack(const Graph *graph, const Node *node, uint32_t *axis)
{
    if (node->op != OP_STACK)
        return false;
    *axis = axis_position(attr_int(node, "axis"), value_shape(graph, node->out[0])->rank);
    return true;
}

Assembly assembly_of(const Graph *graph, const Node *node)
{
    uint32_t rank = value_shape(graph, node->out[0])->rank;
    if (node->op == OP_PAD)
        return (Assembly){.rank = rank, .filled = true, .fill = attr_float(node, "value"), .axis = NONE};
    return (Assembly){.rank = rank, .axis = axis_position(attr_int(node, "axis"), rank)};
}

void assembly_begin(const Graph *graph, const Node *node, uint32_t operand, int64_t begin[MAX_RANK])
{
    Assembly assembly = assembly_of(graph, node);
    for (uint32_t d = 0; d < assembly.rank; d++)
        begin[d] = 0;
    if (assembly.filled)
        attr_ints(node, "before", assembly.rank, begin);
    else
        for (uint32_t i = 0; i < operand; i++)
            begin[assembly.axis] += value_shape(graph, node->in[i])->dim[assembly.axis];
}

/* Evaluation: operands are written to their places in the result through an index map. */

static void write_part(const Shape *part, const int64_t *begin, const Tensor *x, Tensor *out)
{
    Strided map = strided_plain(&out->type->shape);
    for (uint32_t d = 0; d < map.rank; d++) {
        map.dim[d] = part->dim[d];
        map.offset += begin[d] * map.stride[d];
    }
    strided_write(out->data, x->data, &map, dtype_bytes(out->type->dtype));
}

/* As of a concat of operands with an extent of 1 at the axis. */
static void eval_stack(uint32_t axis, const Node *node, const Tensor *const *in, Tensor *out)
{
    Shape part = out->type->shape;
    int64_t begin[MAX_RANK] = {0};
    part.dim[axis] = 1;
    for (uint32_t i = 0; i < node->in_count; i++, begin[axis]++)
        write_part(&part, begin, in[i], out);
}

void eval_assemble(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    Assembly assembly = assembly_of(graph, node);
    int64_t begin[MAX_RANK];
    if (node->op == OP_STACK) {
        eval_stack(assembly.axis, node, in, out[0]);
        return;
    }
    if (assembly.filled)
        elements_fill(out[0], assembly.fill);
    assembly_begin(graph, node, 0, begin);
    for (uint32_t i = 0; i < node->in_count; i++) {
        write_part(&in[i]->type->shape, begin, in[i], out[0]);
        if (!assembly.filled)
            begin[assembly.axis] += in[i]->type->shape.dim[assembly.axis];
    }
}
