/* Stores: what a kernel keeps of a position. */
#include "kernel/lower/strip.h"

void lower_store_at(Lower *lower, ValueId value, const Index *position, const Expr *expr)
{
    bool strip = lower->strip && strip_holds(lower->strip, value);
    uint32_t buffer = strip ? lower->strip->buffer : lower_buffer(lower, value, true);
    Index address = strip ? strip_address(lower, position) : lower_value_address(lower, value, position);
    stmt_store(lower->arena, lower->block, buffer, address, expr);
}

/* Channels that only fill up the last block are zeros, and nothing is read to make them. */
static void store_padded(Lower *lower, ValueId value, const Index *position)
{
    const Type *type = value_type(lower->graph, value);
    Stmt *inside = stmt_if(lower->arena, lower->block, position[1], 0, type->shape.dim[1]);
    Block *outer = lower_enter(lower, &inside->body);
    lower_store_at(lower, value, position, lower_value(lower, value, position));
    lower_enter(lower, &inside->other);
    lower_store_at(lower, value, position, expr_number(lower->arena, type->dtype, 0));
    lower_leave(lower, outer);
}

/* The results that the kernel writes to memory; returns how many. */
static uint32_t stored_values(const Lower *lower, ValueId **list)
{
    uint32_t count = 0, capacity = 0;
    *list = NULL;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++)
            if (kernel_stores(lower, node->out[r]))
                ARENA_PUSH(lower->arena, *list, count, capacity, node->out[r]);
    }
    return count;
}

static void store_result(Lower *lower, ValueId value, const Index *position)
{
    const Type *type = value_type(lower->graph, value);
    if (type->layout.block && type->shape.dim[1] % type->layout.block)
        store_padded(lower, value, position);
    else
        lower_store_at(lower, value, position, lower_value(lower, value, position));
}

/* A cast to an integer stays one: in vectors, that is what a store makes of f32. */
static const Expr *bound_value(Lower *lower, const Expr *expr)
{
    if (expr->kind == EXPR_LOCAL || expr->kind == EXPR_NUMBER)
        return expr;
    if (expr->kind == EXPR_CAST && dtype_is_int(expr->dtype))
        return expr_cast(lower->arena, expr->dtype, bound_value(lower, expr->arg[0]));
    const Local *local = lower_local(lower, "t", expr->dtype, true);
    stmt_local(lower->arena, lower->block, local, expr);
    return expr_local(lower->arena, local);
}

/* One by one, each would be written while the next still reads what it may lie over. */
static void bind_values(Lower *lower, const ValueId *value, uint32_t count, const Index *position)
{
    for (uint32_t i = 0; i < count; i++) {
        const Expr *expr = lower_value(lower, value[i], position), *bound = bound_value(lower, expr);
        if (bound != expr)
            lower_remember(lower, value[i], position, bound);
    }
}

void lower_stores(Lower *lower, const Index *position)
{
    ValueId *value;
    if (lower->band.value != NONE && !lower->band.filled) {
        const Expr *expr = lower_value(lower, lower->band.value, position);
        stmt_store(lower->arena, lower->block, lower->band.buffer, lower_band_address(lower, position), expr);
        return;
    }
    uint32_t count = stored_values(lower, &value);
    if (count > 1 && kernel_stores_together(lower->kernel))
        bind_values(lower, value, count, position);
    for (uint32_t i = 0; i < count; i++)
        store_result(lower, value[i], position);
}
