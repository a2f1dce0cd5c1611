/* Positions that are kept inside: of vectors and squares that would end behind the last element, and of windows that
 * stick out of an image, where loops and guards see to it but ranges do not tell. */
#include "kernel/lower/lower.h"
#include "ops/family.h"

Index lower_last_inside(Lower *lower, const char *name, Index first, int64_t last)
{
    Arena *arena = lower->arena;
    if (index_high(first) <= last)
        return first;
    const Local *local = lower_local(lower, name, DT_I64, false);
    const Expr *even = expr_index(arena, DT_I64, first), *most = expr_number(arena, DT_I64, (double)last);
    stmt_local(arena, lower->block, local, expr_word(arena, WORD_MIN, DT_I64, even, most, NULL));
    return index_data(arena, expr_local(arena, local), index_low(first), last);
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
