/* Guards: what is computed only where positions are inside. */
#include "kernel/lower/lower.h"
#include "ops/family.h"

void lower_guard_open(Lower *lower, Guarded *guarded)
{
    *guarded = (Guarded){.outer = lower->block, .memo_count = lower->memo_count};
    lower->block = &guarded->inside;
}

static bool always_holds(const Guard *guard)
{
    return index_low(guard->index) >= 0 && index_high(guard->index) < guard->limit;
}

/* What has no statements is an expression; else a local gets its value under an `if`, where they stand. */
const Expr *lower_guard_close(Lower *lower, Guarded *guarded, const Expr *inside, const Guard *guard, uint32_t count,
                              const Expr *outside)
{
    Arena *arena = lower->arena;
    bool holds = true;
    for (uint32_t i = 0; i < count; i++)
        holds &= always_holds(&guard[i]);
    lower->block = guarded->outer;
    if (holds) {
        block_append(lower->block, guarded->inside);
        return inside;
    }
    lower->memo_count = guarded->memo_count; /* names of inside mean nothing outside */
    if (!guarded->inside.first) {
        for (uint32_t i = 0; i < count; i++)
            inside = expr_within(arena, guard[i].index, guard[i].limit, inside, outside);
        return inside;
    }
    const Local *local = lower_local(lower, "t", inside->dtype, true);
    Block *block = lower->block;
    stmt_local(arena, block, local, outside);
    for (uint32_t i = count; i-- > 0;)
        if (!always_holds(&guard[i]))
            block = &stmt_if(arena, block, guard[i].index, 0, guard[i].limit)->body;
    block_append(block, guarded->inside);
    stmt_assign(arena, block, local, index_constant(0), index_constant(0), inside);
    return expr_local(arena, local);
}

/* Is its address no sum of multiples of window positions, also of those around the image, but made of their digits?
 * Those of a reshape may be. */
static bool cuts_positions(Lower *lower, ValueId value)
{
    const Graph *graph = lower->graph;
    const Var *along[MAX_RANK];
    Index position[MAX_RANK], address;
    ValueId source;
    int64_t factor;
    while (kernel_computes(lower, value) && op_info(value_producer(graph, value)->op)->family == FAMILY_CAST)
        value = value_producer(graph, value)->in[0];
    const Shape *shape = value_shape(graph, value);
    for (uint32_t d = 0; d < shape->rank; d++) {
        int64_t around = d < 2 ? 0 : shape->dim[d];
        along[d] = index_var_new(lower->arena, lower_loop_names[d], -around, shape->dim[d] - 1 + around);
        position[d] = index_var(lower->arena, along[d]);
    }
    if (!lower_memory_source(lower, value, position, &source, &address))
        return false;
    for (uint32_t d = 2; d < shape->rank; d++)
        if (shape->dim[d] > 1 && !index_factor(address, along[d], &factor))
            return true;
    return false;
}

Seen lower_see_inside(Lower *lower, ValueId value)
{
    return (Seen){value_shape(lower->graph, value), cuts_positions(lower, value)};
}

Index lower_inside(Lower *lower, const Seen *seen, uint32_t dimension, Index at)
{
    int64_t extent = seen->shape->dim[dimension];
    if (!seen->cuts || (index_low(at) >= 0 && index_high(at) < extent))
        return at;
    return index_data(lower->arena, expr_index(lower->arena, DT_I64, at), 0, extent - 1);
}
