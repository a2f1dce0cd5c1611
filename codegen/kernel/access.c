/* Where a value's elements are: through views by index maps, in memory by layout. */
#include "kernel/kernel.h"

#include <assert.h>

bool value_is_inline(const Graph *graph, ValueId value)
{
    const Node *node = value_producer(graph, value);
    return node && (op_info(node->op)->family == FAMILY_VIEW || node->op == OP_FULL || node->op == OP_IOTA) &&
           node->kernel == NONE;
}

void broadcast_position(const Shape *shape, const Shape *result, const Index *position, Index *operand)
{
    uint32_t skip = result->rank - shape->rank;
    for (uint32_t i = 0; i < shape->rank; i++)
        operand[i] = shape->dim[i] == 1 ? index_constant(0) : position[skip + i];
}

static void slice_position(Arena *arena, const Graph *graph, const Node *node, const Index *position, Index *operand)
{
    const Shape *shape = value_shape(graph, node->in[0]);
    const Attr *axes = node_attr(node, "axes");
    uint32_t count = (uint32_t)axes->i;
    int64_t begin[MAX_RANK], step[MAX_RANK];
    attr_ints(node, "begin", count, begin);
    attr_ints(node, "step", count, step);

    for (uint32_t i = 0; i < shape->rank; i++)
        operand[i] = position[i];
    for (uint32_t i = 0; i < count; i++) {
        int64_t axis = axes->ints[i] < 0 ? axes->ints[i] + shape->rank : axes->ints[i], extent = shape->dim[axis];
        int64_t first = begin[i] < 0 ? begin[i] + extent : begin[i];
        int64_t low = 0, high = step[i] < 0 ? extent - 1 : extent;
        first = first < low ? low : first > high ? high : first;
        operand[axis] = index_add(arena, index_scale(arena, position[axis], step[i]), index_constant(first));
    }
}

static void split_position(Arena *arena, const Graph *graph, const Node *node, uint32_t result, const Index *position,
                           Index *operand)
{
    const Shape *shape = value_shape(graph, node->in[0]);
    const Attr *sizes = node_attr(node, "sizes");
    int64_t axis = attr_int(node, "axis"), begin = 0;
    axis += axis < 0 ? shape->rank : 0;
    for (uint32_t i = 0; i < result; i++)
        begin += sizes->ints[i];
    for (uint32_t i = 0; i < shape->rank; i++)
        operand[i] = position[i];
    operand[axis] = index_add(arena, position[axis], index_constant(begin));
}

static void transpose_position(const Graph *graph, const Node *node, const Index *position, Index *operand)
{
    uint32_t rank = value_shape(graph, node->in[0])->rank;
    const Attr *axes = node_attr(node, "axes");
    for (uint32_t i = 0; i < rank; i++) {
        int64_t axis = axes->i ? axes->ints[i] : rank - 1 - i;
        operand[axis < 0 ? axis + rank : axis] = position[i];
    }
}

void view_position(Arena *arena, const Graph *graph, const Node *node, uint32_t result, const Index *position,
                   Index *operand)
{
    const Shape *from = value_shape(graph, node->in[0]), *to = value_shape(graph, node->out[result]);
    switch (node->op) {
    case OP_RESHAPE: {
        Index flat = index_flatten(arena, position, to->dim, to->rank);
        index_unflatten(arena, flat, from->dim, from->rank, operand);
        break;
    }
    case OP_TRANSPOSE:
        transpose_position(graph, node, position, operand);
        break;
    case OP_BROADCAST:
        broadcast_position(from, to, position, operand);
        break;
    case OP_SLICE:
        slice_position(arena, graph, node, position, operand);
        break;
    case OP_SPLIT:
        split_position(arena, graph, node, result, position, operand);
        break;
    default:
        assert(!"a view");
    }
}

/* Blocked: [n][c / block][spatial ...][c % block]. */
Nest nest_of(const Type *type)
{
    const Shape *shape = &type->shape;
    Nest nest = {.rank = shape->rank, .type = type};
    for (uint32_t i = 0; i < shape->rank; i++)
        nest.extent[i] = shape->dim[i];
    if (type->layout.block) {
        nest.extent[1] = (shape->dim[1] + type->layout.block - 1) / type->layout.block;
        nest.extent[nest.rank++] = type->layout.block;
    }
    return nest;
}

void nest_position(Arena *arena, const Nest *nest, const Index *loop, Index *position)
{
    uint32_t rank = nest->type->shape.rank, block = nest->type->layout.block;
    for (uint32_t i = 0; i < rank; i++)
        position[i] = loop[i];
    if (block)
        position[1] = index_add(arena, index_scale(arena, loop[1], block), loop[rank]);
}

Index value_address(Lower *lower, ValueId value, const Index *position)
{
    const Shape *shape = value_shape(lower->graph, value);
    Index loop[MAX_RANK + 1];
    for (uint32_t i = 0; i < shape->rank; i++)
        loop[i] = position[i];
    for (const Placement *place = &lower->placement[value]; place->owner != NONE; place = &lower->placement[value]) {
        loop[place->axis] = index_add(lower->arena, loop[place->axis], index_constant(place->begin));
        value = place->owner;
    }
    const Type *type = value_type(lower->graph, value);
    Nest nest = nest_of(type);
    if (type->layout.block) {
        Index channel = loop[1];
        loop[1] = index_div(lower->arena, channel, type->layout.block);
        loop[type->shape.rank] = index_mod(lower->arena, channel, type->layout.block);
    }
    return index_flatten(lower->arena, loop, nest.extent, nest.rank);
}
