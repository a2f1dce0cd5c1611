/* Convolutions as outer products (outer.h): the columns are pixels of the result, the depth is what their windows see.
 * A transposed convolution is one for each phase of its strides.  There the weights of neighbouring channels lie evenly
 * apart, those of neighbouring taps of a phase not with them: so the depth goes tap by tap. */
#include "kernel/lower/outer.h"

bool outer_see_phase(Outer *o, uint32_t number)
{
    o->phase = convolution_phase_of(o->lower->graph, o->node, number);
    const Convolution *conv = &o->phase.conv;
    o->product = (Product){.batch_rank = 2,
                           .rows = conv->outputs / conv->groups,
                           .columns = 1,
                           .depth = conv->channels / conv->groups,
                           .has_rows = true,
                           .has_columns = true};
    for (uint32_t d = 0; d < conv->window.rank; d++) {
        o->product.columns *= conv->window.dim[d].out;
        o->product.depth *= conv->window.dim[d].size;
    }
    return (o->product.rows >= OUTER_FEW_ROWS || o->phases > 1) && o->product.depth <= OUTER_MOST_DEPTH;
}

/* A weight: those of a row lie together. */
const Expr *outer_weight(const Outer *o, Index depth, Index row)
{
    Arena *arena = o->lower->arena;
    const Shape *shape = value_shape(o->lower->graph, o->node->in[1]);
    const ConvolutionPhase *phase = &o->phase;
    Index position[MAX_RANK];
    if (phase->transposed) {
        int64_t channels = phase->conv.channels / phase->conv.groups;
        position[0] = index_add(arena, index_scale(arena, o->batch[1], channels), o->channel);
        position[1] = row;
        for (uint32_t d = 0; d < phase->conv.window.rank; d++)
            position[d + 2] = index_add(arena, index_scale(arena, o->tap[d], phase->tap_step[d]),
                                        index_constant(phase->tap_begin[d]));
    } else {
        position[0] = index_add(arena, index_scale(arena, o->batch[1], o->product.rows), row);
        index_unflatten(arena, depth, shape->dim + 1, shape->rank - 1, position + 1);
    }
    return expr_cast(arena, o->dtype, lower_value(o->lower, o->node->in[1], position));
}

/* The step of the depth, from [channel, taps] or [taps, channel]. */
static Index step_of(const Outer *o, const Index *tap, Index channel)
{
    Arena *arena = o->lower->arena;
    const Window *window = &o->phase.conv.window;
    Index step = o->phase.transposed ? index_constant(0) : channel;
    for (uint32_t d = 0; d < window->rank; d++)
        step = index_add(arena, index_scale(arena, step, window->dim[d].size), tap[d]);
    if (!o->phase.transposed)
        return step;
    return index_add(arena, index_scale(arena, step, o->phase.conv.channels / o->phase.conv.groups), channel);
}

Index outer_open_taps(Outer *o)
{
    Lower *lower = o->lower;
    const Convolution *conv = &o->phase.conv;
    for (uint32_t d = 0; d < conv->window.rank; d++)
        o->tap[d] = lower_open_loop(lower, lower_tap_name(lower->arena, conv->window.rank - 1 - d),
                                    conv->window.dim[d].size, LOOP_SERIAL);
    o->channel = lower_open_loop(lower, "k", conv->channels / conv->groups, LOOP_IN_ORDER);
    return step_of(o, o->tap, o->channel);
}

/* Does the image differ along the dimension, or is it a view that repeats what it shows? */
static bool differs_along(const Outer *o, uint32_t dimension)
{
    const Graph *graph = o->lower->graph;
    Arena *arena = o->lower->arena;
    ValueId image = o->node->in[0];
    const Shape *shape = value_shape(graph, image);
    const Var *along = index_var_new(arena, "along", 0, shape->dim[dimension] - 1);
    Index position[MAX_RANK];
    for (uint32_t d = 0; d < shape->rank; d++)
        position[d] = d == dimension ? index_var(arena, along) : index_constant(0);
    return index_uses(lower_address_before(graph, arena, image, position), along);
}

/* What a window sees, pixel by pixel: taps outside of the image stay 0. */
void outer_bring_windows(Outer *o)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    Block *start = lower->block;
    const Window *window = &o->phase.conv.window;
    int64_t channels = o->phase.conv.channels / o->phase.conv.groups, extent[MAX_RANK];
    Index pixel[MAX_RANK], position[MAX_RANK], tap[MAX_RANK], j, channel;
    if (!window_is_inside(window))
        outer_clear(o, o->panel, o->product.depth * OUTER_COLUMNS);
    for (uint32_t d = 0; d < window->rank; d++)
        extent[d] = window->dim[d].out;
    j = outer_open_small(o, true, LOOP_SERIAL);
    index_unflatten(arena, index_add(arena, o->first[1], j), extent, window->rank, pixel);
    for (uint32_t d = 0; d < window->rank; d++)
        if (differs_along(o, d + 2))
            pixel[d] = outer_named(lower, d + 1 < window->rank ? "y" : "x", pixel[d], extent[d]);
    channel = lower_open_loop(lower, "c", channels, LOOP_SERIAL);
    position[0] = o->batch[0];
    position[1] = index_add(arena, index_scale(arena, o->batch[1], channels), channel);
    for (uint32_t d = 0; d < window->rank; d++) {
        const WindowDimension *dimension = &window->dim[d];
        lower_enter(lower, lower_clamped_taps(lower, lower->block, lower_tap_name(arena, window->rank - 1 - d),
                                              dimension, pixel[d], &tap[d]));
        position[d + 2] = lower_tap_at(arena, dimension, pixel[d], tap[d]);
    }
    Index at = index_add(arena, index_scale(arena, step_of(o, tap, channel), OUTER_COLUMNS), j);
    stmt_store(arena, lower->block, o->panel, at,
               expr_cast(arena, o->dtype, lower_value(lower, o->node->in[0], position)));
    lower_leave(lower, start);
}

/* Where an element is in the result. */
void outer_pixel(const Outer *o, Index row, Index column, Index *position)
{
    Arena *arena = o->lower->arena;
    const Window *window = &o->phase.conv.window;
    int64_t extent[MAX_RANK];
    for (uint32_t d = 0; d < window->rank; d++)
        extent[d] = window->dim[d].out;
    position[0] = o->batch[0];
    position[1] = index_add(arena, index_scale(arena, o->batch[1], o->product.rows), row);
    index_unflatten(arena, column, extent, window->rank, position + 2);
    for (uint32_t d = 0; d < window->rank; d++)
        position[d + 2] =
            index_add(arena, index_scale(arena, position[d + 2], o->phase.step[d]), index_constant(o->phase.begin[d]));
}
