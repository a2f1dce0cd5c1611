/* The loops of a weight's gradient: chunks of pixels; panels of outputs; blocks of channels; taps; and in a tile the
 * images, lines and pixels of the chunk for which the tap is inside the image. */
#include "kernel/lower/gradient.h"

#include "base/number.h"

typedef struct Body {
    Gradient *g;
    Lower *lower;
    Arena *arena;
} Body;

static Index sum2(const Body *body, Index a, Index b)
{
    return index_add(body->arena, a, b);
}

static Index times(const Body *body, const Var *var, int64_t factor)
{
    return index_scale(body->arena, index_var(body->arena, var), factor);
}

static Block *loop_over(const Body *body, Block *block, const Var *var, LoopKind kind)
{
    return var->high == 0 ? block : &stmt_for(body->arena, block, var, 0, var->high + 1, 1, kind)->body;
}

static Index small_loop(const Body *body, Block **block, const char *name, int64_t extent)
{
    const Var *var = index_var_new(body->arena, name, 0, extent - 1);
    *block = loop_over(body, *block, var, LOOP_SERIAL);
    return index_var(body->arena, var);
}

/* An address computed once, in a variable. */
static Index named_address(const Body *body, Block *block, const char *name, Index address)
{
    if (address.count == 0)
        return address;
    const Local *local = lower_local(body->lower, name, DT_I64, false);
    stmt_local(body->arena, block, local, expr_index(body->arena, DT_I64, address));
    return index_data(body->arena, expr_local(body->arena, local), INT32_MIN, INT32_MAX);
}

/* Positions of the chunk */

static Index image_in_chunk(const Body *body)
{
    return sum2(body, index_var(body->arena, body->g->image), times(body, body->g->chunk, -body->g->images));
}

static Block *images_of_chunk(const Body *body, Block *block)
{
    const Gradient *g = body->g;
    if (g->image->high == 0)
        return block;
    Stmt *loop = stmt_for(body->arena, block, g->image, 0, g->images, 1, LOOP_ROLLED);
    loop->low = times(body, g->chunk, g->images);
    loop->high = sum2(body, loop->low, index_constant(g->images));
    return &loop->body;
}

static Stmt *lines_of_chunk(const Body *body, Block *block)
{
    const Gradient *g = body->g;
    Stmt *loop = stmt_for(body->arena, block, g->line, 0, g->lines, 1, LOOP_ROLLED);
    loop->low = times(body, g->part, g->lines);
    loop->high = sum2(body, loop->low, index_constant(g->lines));
    return loop;
}

/* Scratch */

static int64_t sums_count(const Gradient *g)
{
    return g->panels * g->conv.channels * g->taps * g->width;
}

static void clear_sums(const Body *body, Block *block)
{
    const Gradient *g = body->g;
    const Var *v = index_var_new(body->arena, "v", 0, sums_count(g) / g->lanes - 1);
    block = loop_over(body, block, v, LOOP_SERIAL);
    block = &stmt_lanes(body->arena, block, g->lane, (uint32_t)g->lanes)->body;
    stmt_store(body->arena, block, lower_scratch(body->lower, g->piece[GRADIENT_SUMS]),
               sum2(body, times(body, v, g->lanes), index_var(body->arena, g->lane)),
               expr_number(body->arena, DT_F32, 0));
}

/* Stores the operand's element at a position, or zero where one of the guards fails. */
static void copy_element(const Body *body, Block *block, ValueId value, const Index *position, const Guard *guard,
                         uint32_t guards, uint32_t scratch, Index to)
{
    Lower *lower = body->lower;
    Guarded guarded;
    Block *outer = lower_enter(lower, block);
    lower_guard_open(lower, &guarded);
    const Expr *element = lower_value(lower, value, position);
    element = lower_guard_close(lower, &guarded, element, guard, guards, expr_number(body->arena, DT_F32, 0));
    stmt_store(body->arena, lower->block, scratch, to, element);
    lower_leave(lower, outer);
}

/* The chunk's part of the image, [image][channel][h][w], padded. */
static void copy_image(const Body *body, Block *block)
{
    Gradient *g = body->g;
    Arena *arena = body->arena;
    uint32_t scratch = lower_scratch(body->lower, g->piece[GRADIENT_IMAGE]);
    Index image = small_loop(body, &block, "i", g->images), channel = small_loop(body, &block, "c", g->conv.channels);
    Index h = small_loop(body, &block, "h", g->copy_h), w = small_loop(body, &block, "w", g->copy_w);
    Index to = sum2(body, index_scale(arena, image, g->conv.channels), channel);
    to = sum2(body, index_scale(arena, to, g->copy_h), h);
    to = sum2(body, index_scale(arena, to, g->copy_w), w);
    Index line = sum2(body, sum2(body, times(body, g->part, g->lines * g->h.stride), h), index_constant(-g->h.before));
    Index pixel = sum2(body, w, index_constant(-g->w.before));
    Index position[MAX_RANK] = {sum2(body, times(body, g->chunk, g->images), image), channel, line};
    position[1 + g->conv.window.rank] = pixel;
    Guard guard[] = {{line, g->h.in}, {pixel, g->w.in}};
    copy_element(body, block, g->node->in[0], position, guard, 2, scratch, to);
    g->x = (PixelAddress){.buffer = scratch, .channel = g->copy_h * g->copy_w, .h = g->copy_w, .w = 1};
    g->x.base = index_scale(arena, image_in_chunk(body), g->conv.channels * g->x.channel);
    g->x.base = sum2(body, g->x.base, times(body, g->part, -g->lines * g->h.stride * g->copy_w));
}

/* The panel's outputs of the chunk, [image][h][w][output]; those past the last are zeros. */
static void pack_panel(const Body *body, Block *block)
{
    Gradient *g = body->g;
    Arena *arena = body->arena;
    if (!g->d_packed)
        return;
    uint32_t scratch = lower_scratch(body->lower, g->piece[GRADIENT_PANEL]);
    Index image = small_loop(body, &block, "i", g->images), o = small_loop(body, &block, "o", g->width);
    Index h = small_loop(body, &block, "h", g->lines), w = small_loop(body, &block, "w", g->w.out);
    Index to = sum2(body, index_scale(arena, image, g->lines), h);
    to = sum2(body, index_scale(arena, to, g->w.out), w);
    to = sum2(body, index_scale(arena, to, g->width), o);
    Index output = sum2(body, times(body, g->panel, g->width), o);
    Index position[MAX_RANK] = {sum2(body, times(body, g->chunk, g->images), image), output,
                                sum2(body, times(body, g->part, g->lines), h)};
    position[1 + g->conv.window.rank] = w;
    Guard guard = {output, g->conv.outputs};
    copy_element(body, block, g->node->in[1], position, &guard, 1, scratch, to);
    g->d = (PixelAddress){.buffer = scratch, .channel = g->lanes, .h = g->w.out * g->width, .w = g->width};
    g->d.base = index_scale(arena, image_in_chunk(body), g->lines * g->d.h);
    g->d.base = sum2(body, g->d.base, times(body, g->part, -g->lines * g->d.h));
    g->d.base = sum2(body, g->d.base, index_var(arena, g->lane));
}

/* A tile */

typedef struct Tile {
    Index kh, kw;                       /* the tap of all rows, or of the first */
    const Local *acc;                   /* [rows][vectors] */
    Index sums;                         /* of the first row, in lane 0 */
    int64_t sums_row;                   /* from row to row */
    int64_t offset[GRADIENT_MOST_ROWS]; /* of a row's element from the first row's */
} Tile;

static void each_sum(const Body *body, Block *block, const Tile *tile, bool store)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    uint32_t scratch = lower_scratch(body->lower, g->piece[GRADIENT_SUMS]);
    for (int64_t r = 0; r < g->rows; r++)
        for (int64_t v = 0; v < g->vectors; v++) {
            Index at = sum2(body, tile->sums, index_constant(r * tile->sums_row + v * g->lanes));
            Index row = index_constant(r), vector = index_constant(v);
            at = sum2(body, at, index_var(arena, g->lane));
            if (store)
                stmt_store(arena, block, scratch, at, expr_local_at(arena, tile->acc, row, vector));
            else
                stmt_assign(arena, block, tile->acc, row, vector, expr_load(arena, DT_F32, scratch, at));
        }
}

/* The windows in a dimension whose tap is inside the image; along taps all are, in the padded copy. */
static void clamp_windows(const Body *body, Stmt *loop, const WindowDimension *d, Index tap)
{
    Arena *arena = body->arena;
    if (body->g->along_taps)
        return;
    int64_t lift = ceil_div((d->size - 1) * d->dilation, d->stride); /* keeps dividends positive */
    Index start = sum2(body, index_scale(arena, tap, -d->dilation), index_constant(d->before + lift * d->stride));
    Index low = index_div(arena, sum2(body, start, index_constant(d->stride - 1)), d->stride);
    Index high = index_div(arena, sum2(body, start, index_constant(d->in - 1)), d->stride);
    loop->low_least = sum2(body, low, index_constant(-lift));
    loop->high_most = sum2(body, high, index_constant(1 - lift));
    loop->clamp_low = index_high(loop->low_least) > 0;
    loop->clamp_high = index_low(loop->high_most) < d->out;
}

/* Where the first row's element of a line is, at pixel 0. */
static Index line_of_image(const Body *body, const Tile *tile)
{
    const Gradient *g = body->g;
    Index h = sum2(body, times(body, g->line, g->h.stride), index_scale(body->arena, tile->kh, g->h.dilation));
    Index w = index_scale(body->arena, tile->kw, g->w.dilation), at = g->x.base;
    if (!g->along_taps) {
        h = sum2(body, h, index_constant(-g->h.before));
        w = sum2(body, w, index_constant(-g->w.before));
        at = sum2(body, at, times(body, g->group, g->rows * g->x.channel));
    } else
        at = sum2(body, at, times(body, g->channels, g->x.channel));
    at = sum2(body, at, index_scale(body->arena, h, g->x.h));
    return sum2(body, at, index_scale(body->arena, w, g->x.w));
}

/* Every row's sums get the products of its element with the vectors of a pixel. */
static void add_pixel(const Body *body, Block *block, const Tile *tile, Index x, Index d)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    Index at = sum2(body, d, times(body, g->pixel, g->d.w));
    const Expr **second = ARENA_ARRAY(arena, const Expr *, g->vectors);
    for (int64_t v = 0; v < g->vectors; v++)
        second[v] = expr_load(arena, DT_F32, g->d.buffer, sum2(body, at, index_constant(v * g->d.channel)));
    OuterProduct step = {.rows = (uint32_t)g->rows,
                         .vectors = (uint32_t)g->vectors,
                         .sum = tile->acc,
                         .vector = lower_registers(body->lower, "d", DT_F32, true, 1, g->vectors),
                         .element = lower_local(body->lower, "s", DT_F32, false),
                         .valid = UINT32_MAX,
                         .first = {g->x.buffer, DT_F32, sum2(body, x, times(body, g->pixel, g->w.stride * g->x.w))},
                         .offset = tile->offset,
                         .second = second};
    stmt_local(arena, block, step.vector, NULL);
    stmt_local(arena, block, step.element, NULL);
    lower_outer_product(body->lower, block, &step);
}

static void pixels_of_chunk(const Body *body, Block *block, const Tile *tile)
{
    const Gradient *g = body->g;
    block = images_of_chunk(body, block);
    Stmt *lines = lines_of_chunk(body, block);
    clamp_windows(body, lines, &g->h, tile->kh);
    Index d = sum2(body, g->d.base, times(body, g->line, g->d.h));
    Index lane = index_var(body->arena, g->lane);
    d = sum2(body, d, index_scale(body->arena, lane, -1));
    Index x = named_address(body, &lines->body, "at", line_of_image(body, tile));
    d = sum2(body, named_address(body, &lines->body, "from", d), lane);
    Stmt *pixels = stmt_for(body->arena, &lines->body, g->pixel, 0, g->w.out, 1, LOOP_ROLLED);
    clamp_windows(body, pixels, &g->w, tile->kw);
    add_pixel(body, &pixels->body, tile, x, d);
}

static void emit_tile(const Body *body, Block *block, Tile *tile, Index row)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    Index sums = sum2(body, times(body, g->panel, g->conv.channels * g->taps), row);
    block = &stmt_lanes(arena, block, g->lane, (uint32_t)g->lanes)->body;
    tile->acc = lower_registers(body->lower, "acc", DT_F32, true, g->rows, g->vectors);
    tile->sums = named_address(body, block, "sums_at", index_scale(arena, sums, g->width));
    stmt_local(arena, block, tile->acc, NULL);
    each_sum(body, block, tile, false);
    pixels_of_chunk(body, block, tile);
    each_sum(body, block, tile, true);
}

/* Rows are channels, at each tap. */
static void tiles_of_channels(const Body *body, Block *block)
{
    const Gradient *g = body->g;
    Tile tile = {.sums_row = g->taps * g->width};
    for (int64_t r = 0; r < g->rows; r++)
        tile.offset[r] = r * g->x.channel;
    block = loop_over(body, block, g->channels, LOOP_SERIAL);
    block = loop_over(body, block, g->group, LOOP_SERIAL);
    tile.kh = small_loop(body, &block, "kh", g->h.size);
    tile.kw = small_loop(body, &block, "kw", g->w.size);
    Index channel = sum2(body, times(body, g->channels, g->block), times(body, g->group, g->rows));
    Index tap = sum2(body, index_scale(body->arena, tile.kh, g->w.size), tile.kw);
    emit_tile(body, block, &tile, sum2(body, index_scale(body->arena, channel, g->taps), tap));
}

/* Rows are taps, of each channel. */
static void tiles_of_taps(const Body *body, Block *block)
{
    const Gradient *g = body->g;
    Tile tile = {.sums_row = g->width};
    for (int64_t r = 0; r < g->rows; r++)
        tile.offset[r] = r / g->w.size * g->h.dilation * g->x.h + r % g->w.size * g->w.dilation * g->x.w;
    block = loop_over(body, block, g->channels, LOOP_SERIAL);
    block = loop_over(body, block, g->group, LOOP_SERIAL);
    Index first = times(body, g->group, g->rows);
    tile.kh = index_div(body->arena, first, g->w.size);
    tile.kw = index_mod(body->arena, first, g->w.size);
    emit_tile(body, block, &tile, sum2(body, times(body, g->channels, g->taps), first));
}

/* Results */

static void finish_element(Lower *lower, void *context, const Index *position)
{
    const Body *body = context;
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    ValueId result = g->node->out[0];
    const Shape *shape = value_shape(lower->graph, result);
    Index row = index_flatten(arena, position + 1, shape->dim + 1, shape->rank - 1);
    Index at = sum2(body, index_scale(arena, index_div(arena, position[0], g->width), g->conv.channels * g->taps), row);
    at = sum2(body, index_scale(arena, at, g->width), index_mod(arena, position[0], g->width));
    lower->bound[result] = expr_load(arena, DT_F32, lower_scratch(lower, g->piece[GRADIENT_SUMS]), at);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

void gradient_emit(Gradient *g)
{
    Lower *lower = g->lower;
    Body body = {g, lower, lower->arena};
    clear_sums(&body, lower->block);
    if (!g->along_taps) {
        g->x.buffer = lower_buffer(lower, g->x.source, false);
        g->x.base = sum2(&body, g->x.base, index_constant(-lower->kernel->buffer[g->x.buffer].begin));
    }
    if (!g->d_packed) {
        g->d.buffer = lower_buffer(lower, g->d.source, false);
        g->d.base = sum2(&body, g->d.base, index_constant(-lower->kernel->buffer[g->d.buffer].begin));
    }
    Block *block = loop_over(&body, lower->block, g->chunk, LOOP_SERIAL);
    block = loop_over(&body, block, g->part, LOOP_SERIAL);
    if (g->along_taps)
        copy_image(&body, block);
    block = loop_over(&body, block, g->panel, LOOP_PARALLEL);
    pack_panel(&body, block);
    (g->along_taps ? tiles_of_taps : tiles_of_channels)(&body, block);
    lower_nest_each(lower, value_type(lower->graph, g->node->out[0]), finish_element, &body);
}
