/* The gradient of a convolution's weight as outer products (outer.h):
 *
 *     result[output, column] = sum over pixels of d[output, pixel] * x[what the column sees of the pixel]
 *
 * A column is a channel at a tap, a row an output.  What eight columns see of a chunk of pixels comes into scratch,
 * with zeros where that is outside of the image, and the rows of all outputs go over it; between chunks the sums of
 * the eight columns lie in scratch.  So each is added up chunk by chunk, however many threads there are. */
#include "kernel/lower/outer.h"

#define CHUNK_PIXELS 512 /* about: their columns stay near */
#define FEW_PIXELS   16  /* of a chunk, for which storing its sums takes longer than adding them up */

/* So many of `extent`, each of `pixels`: a part that divides them, or all where these are not too many. */
static int64_t cut(int64_t extent, int64_t pixels)
{
    int64_t room = most(1, CHUNK_PIXELS / pixels), part = number_largest_divisor(extent, room);
    bool poor = part < extent && 2 * part < room;
    return poor && extent <= OUTER_MOST_DEPTH / pixels ? extent : part;
}

/* The last dimensions whole, a part of the one before them, and one of each before that. */
static void choose_chunk(Outer *o)
{
    const Convolution *conv = &o->phase.conv;
    bool whole = true;
    int64_t pixels = 1;
    for (uint32_t d = conv->window.rank; d-- > 0;) {
        o->extent[d] = whole ? cut(conv->window.dim[d].out, pixels) : 1;
        whole &= o->extent[d] == conv->window.dim[d].out;
        pixels *= o->extent[d];
    }
    o->images = whole ? cut(conv->images, pixels) : 1;
    o->product.depth = pixels * o->images;
}

bool outer_see_weight(Outer *o)
{
    const Graph *graph = o->lower->graph;
    Convolution *conv = &o->phase.conv;
    if (!convolution_weight_gradient_of(graph, o->node, conv) || !shape_elements(value_shape(graph, o->node->in[0])) ||
        !shape_elements(value_shape(graph, o->node->in[1])))
        return false;
    o->product = (Product){.batch_rank = 1,
                           .rows = conv->outputs / conv->groups,
                           .columns = conv->channels / conv->groups,
                           .has_rows = true,
                           .has_columns = true};
    for (uint32_t d = 0; d < conv->window.rank; d++)
        o->product.columns *= conv->window.dim[d].size;
    choose_chunk(o);
    return o->product.rows >= OUTER_FEW_ROWS && o->product.depth >= FEW_PIXELS && o->product.depth <= OUTER_MOST_DEPTH;
}

/* Of operand 1, the gradient of the convolution's result. */
const Expr *outer_pixel_of_result(const Outer *o, Index row)
{
    Arena *arena = o->lower->arena;
    const Window *window = &o->phase.conv.window;
    Index position[MAX_RANK];
    position[0] = index_add(arena, o->image, o->counted);
    position[1] = index_add(arena, index_scale(arena, o->batch[0], o->product.rows), row);
    index_unflatten(arena, o->step, o->extent, window->rank, position + 2);
    for (uint32_t d = 0; d < window->rank; d++)
        position[d + 2] = index_add(arena, o->pixel[d], position[d + 2]);
    return expr_cast(arena, o->dtype, lower_value(o->lower, o->node->in[1], position));
}

/* Where an element is in the result. */
void outer_tap(const Outer *o, Index row, Index column, Index *position)
{
    Arena *arena = o->lower->arena;
    const Shape *shape = value_shape(o->lower->graph, o->node->out[0]);
    position[0] = index_add(arena, index_scale(arena, o->batch[0], o->product.rows), row);
    index_unflatten(arena, column, shape->dim + 1, shape->rank - 1, position + 1);
}

Index outer_open_pixels(Outer *o)
{
    Arena *arena = o->lower->arena;
    int64_t pixels = o->product.depth / o->images;
    o->counted = lower_open_loop(o->lower, "n", o->images, LOOP_SERIAL);
    o->step = lower_open_loop(o->lower, "k", pixels, LOOP_IN_ORDER);
    return index_add(arena, index_scale(arena, o->counted, pixels), o->step);
}

/* A loop over the pixels of the chunk in dimension d whose tap lies inside the image, which is entered. */
static Index open_inside(Outer *o, uint32_t d, Index tap, Index *in)
{
    Arena *arena = o->lower->arena;
    const WindowDimension *w = &o->phase.conv.window.dim[d];
    Index begin = index_add(arena, index_scale(arena, o->pixel[d], w->stride), index_scale(arena, tap, w->dilation));
    WindowDimension turned = {.in = w->in,
                              .out = index_high(begin) + 1,
                              .size = o->extent[d],
                              .stride = 1,
                              .dilation = w->stride,
                              .before = w->before};
    Index pixel;
    lower_enter(o->lower, lower_clamped_taps(o->lower, o->lower->block, d + 1 < o->phase.conv.window.rank ? "y" : "x",
                                             &turned, begin, &pixel));
    *in = lower_tap_at(arena, &turned, begin, pixel);
    return pixel;
}

/* What a column sees of the chunk, column by column. */
void outer_bring_taps(Outer *o)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    Block *start = lower->block;
    const Convolution *conv = &o->phase.conv;
    const Shape *shape = value_shape(lower->graph, o->node->out[0]);
    Index tap[MAX_RANK], position[MAX_RANK];
    if (!window_is_inside(&conv->window))
        outer_clear(o, o->panel, o->product.depth * OUTER_COLUMNS);
    Index j = outer_open_small(o, true, LOOP_SERIAL);
    index_unflatten(arena, index_add(arena, o->first[1], j), shape->dim + 1, shape->rank - 1, tap);
    for (uint32_t d = 0; d < shape->rank - 1; d++)
        tap[d] = outer_named(lower, d ? lower_tap_name(arena, shape->rank - 2 - d) : "c", tap[d], shape->dim[d + 1]);
    Index n = lower_open_loop(lower, "n", o->images, LOOP_SERIAL), at = n;
    position[0] = index_add(arena, o->image, n);
    position[1] = index_add(arena, index_scale(arena, o->batch[0], conv->channels / conv->groups), tap[0]);
    for (uint32_t d = 0; d < conv->window.rank; d++) {
        Index pixel = open_inside(o, d, tap[d + 1], &position[d + 2]);
        at = index_add(arena, index_scale(arena, at, o->extent[d]), pixel);
    }
    stmt_store(arena, lower->block, o->panel, index_add(arena, index_scale(arena, at, OUTER_COLUMNS), j),
               expr_cast(arena, o->dtype, lower_value(lower, o->node->in[0], position)));
    lower_leave(lower, start);
}

void outer_open_chunks(Outer *o)
{
    Lower *lower = o->lower;
    const Convolution *conv = &o->phase.conv;
    o->image =
        index_scale(lower->arena, lower_open_loop(lower, "chunk", conv->images / o->images, LOOP_SERIAL), o->images);
    for (uint32_t d = 0; d < conv->window.rank; d++)
        o->pixel[d] = index_scale(lower->arena,
                                  lower_open_loop(lower, "part", conv->window.dim[d].out / o->extent[d], LOOP_SERIAL),
                                  o->extent[d]);
}

Index outer_total(const Outer *o, Index row, Index j)
{
    return index_add(o->lower->arena, index_scale(o->lower->arena, row, OUTER_COLUMNS), j);
}

void outer_add_sum(const Outer *o, Index row, Index j, const Expr *sum)
{
    Arena *arena = o->lower->arena;
    Index at = outer_total(o, row, j);
    stmt_store(arena, o->lower->block, o->totals, at,
               expr_word(arena, WORD_ADD, o->dtype, expr_load(arena, o->dtype, o->totals, at), sum, NULL));
}
