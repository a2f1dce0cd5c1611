/* Where a value's elements are: through views by index maps, in memory by layout. */
#include "kernel/lower/strip.h"

#include <assert.h>
#include <string.h>

bool kernel_value_is_inline(const Graph *graph, ValueId value)
{
    const Node *node = value_producer(graph, value);
    return node && (node_is_view(node) || node_is_formula(node)) && node->kernel == NONE;
}

bool kernel_value_is_view(const Graph *graph, ValueId value)
{
    return kernel_value_is_inline(graph, value) && value_producer(graph, value)->in_count > 0;
}

ValueId kernel_view_owner(const Graph *graph, ValueId value)
{
    while (kernel_value_is_view(graph, value))
        value = value_producer(graph, value)->in[0];
    return value;
}

void lower_broadcast_position(const Shape *shape, const Shape *result, const Index *position, Index *operand)
{
    uint32_t skip = result->rank - shape->rank;
    for (uint32_t i = 0; i < shape->rank; i++)
        operand[i] = shape->dim[i] == 1 ? index_constant(0) : position[skip + i];
}

void kernel_view_position(Arena *arena, const Graph *graph, const Node *node, uint32_t result, const Index *position,
                          Index *operand)
{
    const Shape *from = value_shape(graph, node->in[0]), *to = value_shape(graph, node->out[result]);
    View view = view_of(graph, node, result);
    if (view.kind == VIEW_RESHAPE) {
        Index flat = index_flatten(arena, position, to->dim, to->rank);
        index_unflatten(arena, flat, from->dim, from->rank, operand);
        return;
    }
    for (uint32_t d = 0; d < view.rank; d++) {
        Index along = view.from[d] == NONE ? index_constant(0) : position[view.from[d]];
        operand[d] = index_add(arena, index_scale(arena, along, view.step[d]), index_constant(view.begin[d]));
        if (view.slid == d)
            operand[d] = index_add(arena, operand[d], index_scale(arena, position[to->rank - 1], view.further));
    }
}

/* Blocked: [n][c / block][spatial ...][c % block]. */
Nest lower_nest(const Type *type)
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

void lower_nest_position(Arena *arena, const Nest *nest, const Index *loop, Index *position)
{
    uint32_t rank = nest->type->shape.rank, block = nest->type->layout.block;
    for (uint32_t i = 0; i < rank; i++)
        position[i] = loop[i];
    if (block)
        position[1] = index_add(arena, index_scale(arena, loop[1], block), loop[rank]);
}

/* Reshapes and transpositions only: from a position of the operand to that of the result. */
static void rearranged_position(Arena *arena, const Graph *graph, const Node *node, Index *position)
{
    const Shape *from = value_shape(graph, node->in[0]), *to = value_shape(graph, node->out[0]);
    View view = view_of(graph, node, 0);
    Index result[MAX_RANK];
    if (view.kind == VIEW_RESHAPE)
        index_unflatten(arena, index_flatten(arena, position, from->dim, from->rank), to->dim, to->rank, result);
    else
        for (uint32_t d = 0; d < view.rank; d++)
            result[view.from[d]] = position[d];
    memcpy(position, result, to->rank * sizeof *result);
}

bool kernel_assembles(const Graph *graph, const Node *node)
{
    bool copies = op_info(node->op)->family == FAMILY_LAYOUT && !value_type(graph, node->in[0])->layout.block &&
                  !value_type(graph, node->out[0])->layout.block;
    return copies || node_is_assembly(node);
}

Index lower_address_before(const Graph *graph, Arena *scratch, ValueId value, const Index *at)
{
    Index position[MAX_RANK + 1], operand[MAX_RANK + 1];
    memcpy(position, at, value_shape(graph, value)->rank * sizeof *position);
    for (; kernel_value_is_view(graph, value); value = value_producer(graph, value)->in[0]) {
        const Node *view = value_producer(graph, value);
        kernel_view_position(scratch, graph, view, graph->value[value].result, position, operand);
        memcpy(position, operand, sizeof position);
    }
    Nest nest = lower_nest(value_type(graph, value));
    if (nest.type->layout.block) {
        position[nest.type->shape.rank] = index_mod(scratch, position[1], nest.type->layout.block);
        position[1] = index_div(scratch, position[1], nest.type->layout.block);
    }
    return index_flatten(scratch, position, nest.extent, nest.rank);
}

static bool is_rearrangement(const Graph *graph, ValueId value)
{
    const Node *node = value_producer(graph, value);
    return node && node->kernel == NONE && view_is_rearrangement(graph, node);
}

ValueId lower_rearranged_value(const Graph *graph, ValueId value)
{
    while (is_rearrangement(graph, value))
        value = value_producer(graph, value)->in[0];
    return value;
}

/* A position of the value becomes one of the value it lies in. */
static void position_in_owner(Arena *arena, const Graph *graph, ValueId value, const Storage *place, Index *position)
{
    const Node *node = value_producer(graph, place->inside);
    ValueId part = node->in[place->operand];
    while (value != part) { /* forwards, from the value to the operand */
        ValueId view = part;
        while (value_producer(graph, view)->in[0] != value)
            view = value_producer(graph, view)->in[0];
        rearranged_position(arena, graph, value_producer(graph, view), position);
        value = view;
    }
    uint32_t rank = value_shape(graph, part)->rank;
    int64_t before[MAX_RANK] = {0};
    if (node_is_assembly(node))
        assembly_begin(graph, node, place->operand, before);
    for (uint32_t d = 0; d < rank; d++)
        position[d] = index_add(arena, position[d], index_constant(before[d]));
}

ValueId kernel_value_whole(const Lower *lower, ValueId value)
{
    const Storage *storage = &lower->storage->at[value];
    while (storage->inside != NONE && !storage->settled)
        storage = &lower->storage->at[storage->inside];
    return storage->whole;
}

static Index address_at(Arena *arena, const Storage *storage, const Index *loop, uint32_t rank)
{
    Index address = index_constant(storage->begin);
    for (uint32_t d = 0; d < rank; d++)
        address = index_add(arena, address, index_scale(arena, loop[d], storage->stride[d]));
    return address;
}

static Index address_in_whole(const Lower *lower, Arena *arena, ValueId value, const Index *position)
{
    const Type *type = value_type(lower->graph, value);
    const Storage *storage = &lower->storage->at[value];
    Nest nest = lower_nest(type);
    Index loop[MAX_RANK + 1];
    memcpy(loop, position, type->shape.rank * sizeof *loop);
    if (storage->inside != NONE && !storage->settled) {
        position_in_owner(arena, lower->graph, value, storage, loop);
        return address_in_whole(lower, arena, storage->inside, loop);
    }
    if (type->layout.block) {
        Index channel = loop[1];
        loop[1] = index_div(arena, channel, type->layout.block);
        loop[type->shape.rank] = index_mod(arena, channel, type->layout.block);
    }
    return storage->inside != NONE ? address_at(arena, storage, loop, nest.rank)
                                   : index_flatten(arena, loop, nest.extent, nest.rank);
}

Index lower_memory_address(const Lower *lower, ValueId value, const Index *position)
{
    return address_in_whole(lower, lower->arena, value, position);
}

bool kernel_only_reads(const Graph *graph, const Node *node)
{
    return node->joined || node_is_view(node) || node_is_dynamic_slice(node) ||
           (node_is_assembly(node) && !assembly_of(graph, node).filled);
}

Index lower_value_address(Lower *lower, ValueId value, const Index *position)
{
    Index address = lower_memory_address(lower, value, position);
    return index_add(lower->arena, address, index_constant(-lower->sight[kernel_value_whole(lower, value)].begin));
}

/* Of all that the value's kernel writes, with the channels that fill up a block, and of what a view sees. */
void kernel_value_range(const Lower *lower, Arena *scratch, ValueId value, int64_t *begin, int64_t *end)
{
    const Graph *graph = lower->graph;
    Nest nest = lower_nest(value_type(graph, value));
    Index loop[MAX_RANK + 1], position[MAX_RANK + 1];
    for (uint32_t d = 0; d < nest.rank; d++)
        loop[d] = index_var(scratch, index_var_new(scratch, "i", 0, nest.extent[d] - 1));
    lower_nest_position(scratch, &nest, loop, position);
    for (; kernel_value_is_view(graph, value); value = value_producer(graph, value)->in[0]) {
        kernel_view_position(scratch, graph, value_producer(graph, value), graph->value[value].result, position, loop);
        memcpy(position, loop, sizeof position);
    }
    Index address = address_in_whole(lower, scratch, value, position);
    *begin = index_low(address);
    *end = index_high(address) + 1;
}

Index strip_address(const Lower *lower, const Index *position)
{
    const Strip *strip = lower->strip;
    uint32_t row = strip->product.batch_rank;
    Arena *arena = lower->arena;
    Index at = index_add(arena, position[row], index_scale(arena, strip->first, -1));
    return index_add(arena, index_scale(arena, at, strip->apart), position[row + 1]);
}
