/* The loops of a weight's gradient: chunks of pixels; shares of channels; panels of outputs; blocks of channels; taps;
 * and in a tile the images, lines and pixels of the chunk for which the tap is inside the image. */
#include "kernel/lower/gradient.h"

#include "base/number.h"

typedef struct Body {
    Gradient *g;
    Lower *lower;
    Arena *arena;
    int64_t vectors; /* of the panels of this span */
    Index vector;    /* the first of the panel */
    Index block;     /* of channels, or the channel */
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
    Index position[MAX_RANK] = {sum2(body, times(body, g->chunk, g->images), image), gradient_channel(g, channel),
                                line};
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
    int64_t width = body->vectors * g->lanes;
    if (!g->d_packed)
        return;
    uint32_t scratch = lower_scratch(body->lower, g->piece[GRADIENT_PANEL]);
    Index image = small_loop(body, &block, "i", g->images), o = small_loop(body, &block, "o", width);
    Index h = small_loop(body, &block, "h", g->lines), w = small_loop(body, &block, "w", g->w.out);
    Index to = sum2(body, index_scale(arena, image, g->lines), h);
    to = sum2(body, index_scale(arena, to, g->w.out), w);
    to = sum2(body, index_scale(arena, to, width), o);
    Index output = sum2(body, index_scale(arena, body->vector, g->lanes), o);
    Index position[MAX_RANK] = {sum2(body, times(body, g->chunk, g->images), image), gradient_output(g, output),
                                sum2(body, times(body, g->part, g->lines), h)};
    position[1 + g->conv.window.rank] = w;
    Guard guard = {output, g->conv.outputs};
    copy_element(body, block, g->node->in[1], position, &guard, 1, scratch, to);
    g->d = (PixelAddress){.buffer = scratch, .channel = g->lanes, .h = g->w.out * width, .w = width};
    g->d.base = index_scale(arena, image_in_chunk(body), g->lines * g->d.h);
    g->d.base = sum2(body, g->d.base, times(body, g->part, -g->lines * g->d.h));
    g->d.base = sum2(body, g->d.base, index_var(arena, g->lane));
}

/* A tile */

typedef struct Tile {
    Index kh, kw;                       /* the tap of all rows, or of the first */
    Index row;                          /* of the sums: the first */
    int64_t rows, step;                 /* how many, and from one to the next */
    Index channel;                      /* of x: the first, within its block, or the channel */
    const Local *acc;                   /* [rows][vectors] */
    Index sums;                         /* of the first row, in lane 0 */
    int64_t offset[GRADIENT_MOST_ROWS]; /* of a row's element from the first row's */
} Tile;

static Index sum_index(const Body *body, const Tile *tile, int64_t row, int64_t vector)
{
    const Gradient *g = body->g;
    Index at = index_constant((row * tile->step + vector * gradient_rows(g)) * g->lanes);
    return sum2(body, sum2(body, tile->sums, at), index_var(body->arena, g->lane));
}

static void store_sums(const Body *body, Block *block, const Tile *tile)
{
    Arena *arena = body->arena;
    uint32_t scratch = lower_scratch(body->lower, body->g->piece[GRADIENT_SUMS]);
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t v = 0; v < body->vectors; v++)
            stmt_store(arena, block, scratch, sum_index(body, tile, r, v),
                       expr_local_at(arena, tile->acc, index_constant(r), index_constant(v)));
}

/* From nothing in the first chunk, else from where the one before has left them. */
static void start_sums(const Body *body, Block *block, const Tile *tile)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    uint32_t scratch = lower_scratch(body->lower, g->piece[GRADIENT_SUMS]);
    Index chunk = sum2(body, times(body, g->chunk, g->part->high + 1), index_var(arena, g->part));
    Stmt *first = chunk.count ? stmt_if(arena, block, chunk, 0, 1) : NULL;
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t v = 0; v < body->vectors; v++) {
            Index row = index_constant(r), vector = index_constant(v);
            stmt_assign(arena, first ? &first->body : block, tile->acc, row, vector, expr_number(arena, DT_F32, 0));
            if (first)
                stmt_assign(arena, &first->other, tile->acc, row, vector,
                            expr_load(arena, DT_F32, scratch, sum_index(body, tile, r, v)));
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
    Index line = g->straight ? times(body, g->part, g->lines) : index_var(body->arena, g->line);
    Index h =
        sum2(body, index_scale(body->arena, line, g->h.stride), index_scale(body->arena, tile->kh, g->h.dilation));
    Index w = index_scale(body->arena, tile->kw, g->w.dilation);
    Index at = g->along_taps ? g->x.base : index_substitute(body->arena, g->x.base, g->channels, body->block);
    if (!g->along_taps) {
        h = sum2(body, h, index_constant(-g->h.before));
        w = sum2(body, w, index_constant(-g->w.before));
    }
    at = sum2(body, at, index_scale(body->arena, tile->channel, g->x.channel));
    at = sum2(body, at, index_scale(body->arena, h, g->x.h));
    return sum2(body, at, index_scale(body->arena, w, g->x.w));
}

/* Every row's sums get the products of its element with the vectors of a pixel. */
static void add_pixel(const Body *body, Block *block, const Tile *tile, Index x, Index d)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    const Expr **second = ARENA_ARRAY(arena, const Expr *, body->vectors);
    for (int64_t v = 0; v < body->vectors; v++)
        second[v] = expr_load(arena, DT_F32, g->d.buffer, sum2(body, d, index_constant(v * g->d.channel)));
    OuterProduct step = {.rows = (uint32_t)tile->rows,
                         .vectors = (uint32_t)body->vectors,
                         .sum = tile->acc,
                         .vector = lower_registers(body->lower, "d", DT_F32, true, 1, body->vectors),
                         .element = lower_local(body->lower, "s", DT_F32, false),
                         .valid = UINT32_MAX,
                         .first = {g->x.buffer, DT_F32, x},
                         .offset = tile->offset,
                         .second = second};
    stmt_local(arena, block, step.vector, NULL);
    stmt_local(arena, block, step.element, NULL);
    lower_outer_product(body->lower, block, &step);
}

static void pixels_of_chunk(const Body *body, Block *block, const Tile *tile)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    Index line = g->straight ? times(body, g->part, g->lines) : index_var(arena, g->line);
    block = images_of_chunk(body, block);
    if (!g->straight) {
        Stmt *lines = lines_of_chunk(body, block);
        clamp_windows(body, lines, &g->h, tile->kh);
        block = &lines->body;
    }
    Index lane = index_var(arena, g->lane), d = sum2(body, g->d.base, index_scale(arena, line, g->d.h));
    if (!g->d_packed)
        d = index_substitute(arena, d, g->vector, index_constant(0));
    d = sum2(body, d, index_scale(arena, lane, -1));
    if (!g->d_packed)
        d = sum2(body, d, index_scale(arena, body->vector, g->d.channel));
    Index x = lower_named_address(body->lower, block, "at", line_of_image(body, tile));
    d = sum2(body, lower_named_address(body->lower, block, "from", d), lane);
    int64_t count = g->straight ? g->lines * g->w.out : g->w.out;
    const Var *pixel = index_var_new(arena, "w", 0, count - 1);
    Stmt *pixels = stmt_for(arena, block, pixel, 0, count, 1, LOOP_ROLLED);
    if (!g->straight)
        clamp_windows(body, pixels, &g->w, tile->kw);
    x = sum2(body, x, times(body, pixel, g->w.stride * g->x.w));
    add_pixel(body, &pixels->body, tile, x, sum2(body, d, times(body, pixel, g->d.w)));
}

static void emit_tile(const Body *body, Block *block, Tile *tile)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    Index sums = sum2(body, index_scale(arena, body->vector, gradient_rows(g)), tile->row);
    block = &stmt_lanes(arena, block, g->lane, (uint32_t)g->lanes)->body;
    tile->acc = lower_registers(body->lower, "acc", DT_F32, true, tile->rows, body->vectors);
    tile->sums = lower_named_address(body->lower, block, "sums_at", index_scale(arena, sums, g->lanes));
    stmt_local(arena, block, tile->acc, NULL);
    start_sums(body, block, tile);
    pixels_of_chunk(body, block, tile);
    store_sums(body, block, tile);
}

/* The tiles that a span cuts a block into; returns the first row in the block of this one. */
static Index tiles_of_span(const Body *body, Block **block, const PanelSpan *span)
{
    Index group = small_loop(body, block, "group", span->count);
    return sum2(body, index_constant(span->first), index_scale(body->arena, group, span->vectors));
}

/* Rows are channels, at each tap. */
static void tiles_of_channels(const Body *body, Block *block)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    for (uint32_t i = 0; i < g->row_spans; i++) {
        const PanelSpan *span = &g->row_span[i];
        Tile tile = {.rows = span->vectors, .step = g->taps};
        Block *inner = block;
        for (int64_t r = 0; r < tile.rows; r++)
            tile.offset[r] = r * g->x.channel;
        tile.channel = tiles_of_span(body, &inner, span);
        tile.kh = small_loop(body, &inner, "kh", g->h.size);
        tile.kw = small_loop(body, &inner, "kw", g->w.size);
        Index channel = sum2(body, index_scale(arena, body->block, g->block), tile.channel);
        Index tap = sum2(body, index_scale(arena, tile.kh, g->w.size), tile.kw);
        tile.row = sum2(body, index_scale(arena, channel, g->taps), tap);
        emit_tile(body, inner, &tile);
    }
}

/* Rows are taps, of each channel. */
static void tiles_of_taps(const Body *body, Block *block)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    Index kh = index_scale(arena, small_loop(body, &block, "kh", g->h.size / g->block_lines), g->block_lines);
    for (uint32_t i = 0; i < g->row_spans; i++) {
        const PanelSpan *span = &g->row_span[i];
        Tile tile = {.rows = span->vectors, .step = 1, .channel = body->block, .kh = kh};
        Block *inner = block;
        for (int64_t r = 0; r < tile.rows; r++)
            tile.offset[r] = r / g->w.size * g->h.dilation * g->x.h + r % g->w.size * g->w.dilation * g->x.w;
        tile.kw = tiles_of_span(body, &inner, span);
        tile.row = sum2(body, index_scale(arena, kh, g->w.size), tile.kw);
        tile.row = sum2(body, index_scale(arena, body->block, g->taps), tile.row);
        emit_tile(body, inner, &tile);
    }
}

/* Panels of equal width, each of which passes over a share of the channels. */
static void panels_of_span(Body *body, Block *block, const PanelSpan *span)
{
    Gradient *g = body->g;
    int64_t blocks = g->blocks / g->shares;
    Index panel = small_loop(body, &block, "panel", span->count);
    body->vectors = span->vectors;
    body->vector = sum2(body, index_constant(span->first), index_scale(body->arena, panel, span->vectors));
    pack_panel(body, block);
    Index at = small_loop(body, &block, g->along_taps ? "c" : "block", blocks);
    body->block = sum2(body, times(body, g->share, blocks), at);
    (g->along_taps ? tiles_of_taps : tiles_of_channels)(body, block);
}

static void all_chunks(Body *body)
{
    Gradient *g = body->g;
    Block *block = loop_over(body, body->lower->block, g->chunk, LOOP_SERIAL);
    block = loop_over(body, block, g->part, LOOP_SERIAL);
    if (g->along_taps)
        copy_image(body, block);
    block = loop_over(body, block, g->share, LOOP_PARALLEL);
    for (uint32_t i = 0; i < g->panel_spans; i++)
        panels_of_span(body, block, &g->panel_span[i]);
}

/* Results */

/* A row of an output, of its channels and taps. */
static void row_position(const Gradient *g, Index output, Index row, Index *position)
{
    const Shape *shape = value_shape(g->lower->graph, g->node->out[0]);
    position[0] = gradient_output(g, output);
    index_unflatten(g->lower->arena, row, shape->dim + 1, shape->rank - 1, position + 1);
}

static void finish(Lower *lower, const Gradient *g, uint32_t scratch, Index at, const Index *position)
{
    ValueId result = g->node->out[0];
    lower->bound[result] = expr_load(lower->arena, DT_F32, lower_scratch(lower, g->piece[scratch]), at);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

static void finish_element(Lower *lower, void *context, const Index *position)
{
    const Body *body = context;
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    const Shape *shape = value_shape(lower->graph, g->node->out[0]);
    Index row = index_flatten(arena, position + 1, shape->dim + 1, shape->rank - 1);
    Index at = index_scale(arena, index_div(arena, position[0], g->lanes), gradient_rows(g));
    at = index_scale(arena, sum2(body, at, row), g->lanes);
    Index whole[MAX_RANK];
    row_position(g, position[0], row, whole);
    finish(lower, g, GRADIENT_SUMS, sum2(body, at, index_mod(arena, position[0], g->lanes)), whole);
}

typedef struct Turned { /* some rows of an output, in scratch */
    const Body *body;
    Index output, at, row; /* the first */
} Turned;

static void finish_turned(Lower *lower, void *context, Index at)
{
    const Turned *turned = context;
    Index position[MAX_RANK];
    row_position(turned->body->g, turned->output, sum2(turned->body, turned->row, at), position);
    finish(lower, turned->body->g, GRADIENT_TURNED, sum2(turned->body, turned->at, at), position);
}

/* Squares of rows by outputs; what is left over comes with the end of the last one once more. */
static void turn_sums(const Body *body, Block *block, Index first)
{
    const Gradient *g = body->g;
    Arena *arena = body->arena;
    uint32_t from = lower_scratch(body->lower, g->piece[GRADIENT_SUMS]);
    uint32_t to = lower_scratch(body->lower, g->piece[GRADIENT_TURNED]);
    int64_t whole = g->turned / g->lanes, rest = g->turned % g->lanes;
    for (int i = 0; i < (rest ? 2 : 1); i++) {
        Block *inner = block;
        Index row = i ? index_constant(g->turned - g->lanes)
                      : index_scale(arena, small_loop(body, &inner, "square", whole), g->lanes);
        Index at = index_scale(arena, sum2(body, first, row), g->lanes);
        stmt_transpose(arena, inner, (uint32_t)g->lanes, to, row, gradient_turned_stride(g),
                       expr_load(arena, DT_F32, from, at), g->lanes);
    }
}

/* A vector of outputs, and some rows, at a time. */
static void finish_by_turns(const Body *body)
{
    const Gradient *g = body->g;
    Lower *lower = body->lower;
    Arena *arena = body->arena;
    const Var *rows = index_var_new(arena, "rows", 0, gradient_rows(g) / g->turned - 1);
    Block *block = loop_over(body, lower->block, g->vector, LOOP_PARALLEL);
    block = loop_over(body, block, rows, LOOP_SERIAL);
    Index row = times(body, rows, g->turned);
    turn_sums(body, block, sum2(body, times(body, g->vector, gradient_rows(g)), row));
    Index o = small_loop(body, &block, "o", g->lanes);
    Turned turned = {body, sum2(body, times(body, g->vector, g->lanes), o),
                     index_scale(arena, o, gradient_turned_stride(g)), row};
    Block *outer = lower_enter(lower, block);
    lower_vector_loop(lower, "i", g->turned, LOOP_SERIAL, block_vectorizes, finish_turned, &turned);
    lower_leave(lower, outer);
}

void gradient_emit(Gradient *g)
{
    Lower *lower = g->lower;
    Body body = {.g = g, .lower = lower, .arena = lower->arena};
    if (!g->along_taps) {
        g->x.buffer = lower_buffer(lower, g->x.source, false);
        g->x.base = sum2(&body, g->x.base, index_constant(-lower->kernel->buffer[g->x.buffer].begin));
    }
    if (!g->d_packed) {
        g->d.buffer = lower_buffer(lower, g->d.source, false);
        g->d.base = sum2(&body, g->d.base, index_constant(-lower->kernel->buffer[g->d.buffer].begin));
    }
    Block *outer = lower_enter(lower, loop_over(&body, lower->block, g->group, LOOP_PARALLEL));
    Type of_group = *value_type(lower->graph, g->node->out[0]);
    of_group.shape.dim[0] = g->conv.outputs;
    all_chunks(&body);
    if (g->turns)
        finish_by_turns(&body);
    else
        lower_nest_each(lower, &of_group, finish_element, &body);
    lower_leave(lower, outer);
}
