/* The loops of a depthwise convolution: images, blocks of channels, rows, tiles of a row, taps.
 *
 * In rows where the whole window is inside the image all taps stand in the text when their weights are held; elsewhere
 * those of kh are a loop that its bounds cut to the image. */
#include "kernel/lower/depthwise.h"

#include "base/number.h"

typedef struct Body {
    const Depthwise *dw;
    Lower *lower;
    Arena *arena;
    const Local *held; /* [kh][kw]: weights; NULL where rows take them from memory */
    const Local *acc;  /* [outputs][pixels]: sums of the pixels that are not vectors along the row */
    Index row;
} Body;

/* Neighbouring pixels of a row, `step` columns apart, for each of the outputs; with `vectors` each is a vector along
 * the row.  Over planes several rows of one output. */
typedef struct Tile {
    const Local *acc; /* [outputs, or rows][pixels] */
    int64_t rows;
    Index column; /* of the first */
    int64_t pixels, step;
    bool vectors;
    bool edge;             /* taps kw are cut to the image, too */
    const uint32_t *valid; /* else, per tap kw: bit p when pixel p's is inside; NULL: all are */
} Tile;

static Index sum2(const Body *body, Index a, Index b)
{
    return index_add(body->arena, a, b);
}

static Index scaled(const Body *body, Index a, int64_t factor)
{
    return index_scale(body->arena, a, factor);
}

static Index small_loop(Body *body, Block **block, const char *name, int64_t begin, int64_t end, LoopKind kind)
{
    if (end - begin == 1)
        return index_constant(begin);
    const Var *var = index_var_new(body->arena, name, begin, end - 1);
    *block = &stmt_for(body->arena, *block, var, begin, end, 1, kind)->body;
    return index_var(body->arena, var);
}

/* Taps */

/* Where the first pixel's element of a tap is, in lane 0; in a variable. */
static Index element_address(const Body *body, Block *block, const Tile *tile, Index kh, Index kw)
{
    const Depthwise *dw = body->dw;
    Index h = sum2(body, scaled(body, body->row, dw->h.stride), scaled(body, kh, dw->h.dilation));
    Index w = sum2(body, scaled(body, tile->column, dw->w.stride), scaled(body, kw, dw->w.dilation));
    Index at = dw->framed ? index_constant(0) : index_substitute(body->arena, dw->x_base, dw->lane, index_constant(0));
    at = sum2(body, at, scaled(body, sum2(body, h, index_constant(-dw->h.before)), dw->x_h));
    at = sum2(body, at, scaled(body, sum2(body, w, index_constant(-dw->w.before)), dw->x_w));
    return lower_named_address(body->lower, block, "at", at);
}

/* Operand 0 or 1, made of what is loaded of the source. */
static const Expr *widened(const Body *body, Block *block, uint32_t operand, ValueId source, const Expr *loaded)
{
    Lower *lower = body->lower;
    ValueId value = body->dw->node->in[operand];
    Index nowhere[MAX_RANK] = {0};
    if (!kernel_computes(lower, value))
        return loaded;
    Block *outer = lower_enter(lower, block);
    lower->bound[source] = loaded;
    const Expr *made = lower_value(lower, value, nowhere);
    lower->bound[source] = NULL;
    lower_leave(lower, outer);
    return made;
}

static const Expr *load_element(const Body *body, Block *block, const Tile *tile, Index at)
{
    const Depthwise *dw = body->dw;
    DType dtype = value_type(body->lower->graph, dw->x_source)->dtype;
    if (dw->framed)
        return expr_load(body->arena, DT_F32, dw->x, at);
    bool spread = dw->x_whole && tile->vectors && !dw->widened;
    return widened(body, block, 0, dw->x_source,
                   (spread ? expr_load_spread : expr_load)(body->arena, dtype, dw->x, at));
}

static const Expr *load_weight(const Body *body, Block *block, int64_t output, Index kh, Index kw)
{
    const Depthwise *dw = body->dw;
    Index channel = dw->group_channels == 1 ? index_constant(0) : index_var(body->arena, dw->channel);
    if (dw->packed) {
        Index row = sum2(body, scaled(body, index_var(body->arena, dw->block), dw->h.size), kh);
        Index tap = sum2(body, scaled(body, row, dw->w.size), kw);
        DType dtype = value_type(body->lower->graph, dw->source)->dtype;
        return widened(body, block, 1, dw->source,
                       expr_load(body->arena, dtype, dw->weights,
                                 sum2(body, scaled(body, tap, dw->lanes), index_var(body->arena, dw->lane))));
    }
    Index position[MAX_RANK] = {0};
    depthwise_weight(dw, depthwise_output(dw, output), channel, kh, kw, position);
    Block *outer = lower_enter(body->lower, block);
    const Expr *weight = lower_value(body->lower, dw->node->in[1], position);
    lower_leave(body->lower, outer);
    return weight;
}

/* Adds one tap's products; `x` is the address of the first pixel's element. */
static void multiply(const Body *body, Block *block, const Tile *tile, Index x, const Expr *const *weight,
                     uint32_t valid)
{
    const Depthwise *dw = body->dw;
    Arena *arena = body->arena;
    Index lane = index_var(arena, dw->lane);
    if (tile->vectors)
        x = sum2(body, x, scaled(body, lane, dw->w.stride * dw->x_w));
    else if (dw->along == ALONG_CHANNELS)
        x = sum2(body, x, lane);
    for (int64_t p = 0; p < tile->pixels; p++) {
        if (!(valid >> p & 1))
            continue;
        Index at = sum2(body, x, index_constant(p * tile->step * dw->w.stride * dw->x_w));
        const Expr *element = load_element(body, block, tile, at);
        if (dw->outputs > 1) {
            const Local *local = lower_local(body->lower, "e", DT_F32, tile->acc->lanes);
            stmt_local(arena, block, local, element);
            element = expr_local(arena, local);
        }
        for (int64_t q = 0; q < dw->outputs; q++) {
            const Expr *acc = expr_local_at(arena, tile->acc, index_constant(q), index_constant(p));
            const Expr *product = expr_word(arena, WORD_MUL, DT_F32, element, weight[q], NULL);
            stmt_assign(arena, block, tile->acc, index_constant(q), index_constant(p),
                        expr_word(arena, WORD_ADD, DT_F32, acc, product, NULL));
        }
    }
}

static uint32_t valid_pixels(const Tile *tile, int64_t kw)
{
    uint32_t all = tile->pixels < 32 ? (1u << tile->pixels) - 1 : UINT32_MAX;
    return tile->valid ? tile->valid[kw] : all;
}

/* The tap kh of row r of the tile that meets the plane's row h, counted from the first that the tile sees; NONE. */
static uint32_t tap_of_row(const Depthwise *dw, int64_t r, int64_t h)
{
    int64_t tap = h - r * dw->h.stride;
    return tap >= 0 && tap % dw->h.dilation == 0 && tap / dw->h.dilation < dw->h.size ? (uint32_t)(tap / dw->h.dilation)
                                                                                      : NONE;
}

/* Of several rows: each element is loaded once for all whose windows it is in. */
static void multiply_rows(const Body *body, Block *block, const Tile *tile, int64_t h, int64_t kw, int64_t pixel,
                          const Expr *element)
{
    const Depthwise *dw = body->dw;
    Arena *arena = body->arena;
    uint32_t windows = 0;
    for (int64_t r = 0; r < tile->rows; r++)
        windows += tap_of_row(dw, r, h) != NONE;
    if (windows > 1) {
        const Local *local = lower_local(body->lower, "e", DT_F32, true);
        stmt_local(arena, block, local, element);
        element = expr_local(arena, local);
    }
    for (int64_t r = 0; r < tile->rows; r++) {
        uint32_t kh = tap_of_row(dw, r, h);
        if (kh == NONE)
            continue;
        Index row = index_constant(r), at = index_constant(pixel);
        const Expr *weight = expr_local_at(arena, body->held, index_constant(kh), index_constant(kw));
        const Expr *product = expr_word(arena, WORD_MUL, DT_F32, element, weight, NULL);
        stmt_assign(arena, block, tile->acc, row, at,
                    expr_word(arena, WORD_ADD, DT_F32, expr_local_at(arena, tile->acc, row, at), product, NULL));
    }
}

static void taps_of_rows(const Body *body, Block *block, const Tile *tile)
{
    const Depthwise *dw = body->dw;
    int64_t span = (tile->rows - 1) * dw->h.stride + window_span(&dw->h);
    Index x = element_address(body, block, tile, index_constant(0), index_constant(0));
    x = sum2(body, x, index_var(body->arena, dw->lane));
    for (int64_t h = 0; h < span; h++)
        for (int64_t kw = 0; kw < dw->w.size; kw++)
            for (int64_t p = 0; p < tile->pixels; p++) {
                Index at = sum2(body, x, index_constant(h * dw->x_h + depthwise_tap(dw, kw) + p * tile->step));
                multiply_rows(body, block, tile, h, kw, p, expr_load(body->arena, DT_F32, dw->x, at));
            }
}

static void held_taps(const Body *body, Block *block, const Tile *tile)
{
    const Depthwise *dw = body->dw;
    Index x = element_address(body, block, tile, index_constant(0), index_constant(0));
    for (int64_t kh = 0; kh < dw->h.size; kh++)
        for (int64_t kw = 0; kw < dw->w.size; kw++) {
            int64_t offset = kh * dw->h.dilation * dw->x_h + depthwise_tap(dw, kw);
            const Expr *weight = expr_local_at(body->arena, body->held, index_constant(kh), index_constant(kw));
            multiply(body, block, tile, sum2(body, x, index_constant(offset)), &weight, valid_pixels(tile, kw));
        }
}

/* A tap whose weights come from memory. */
static void loaded_tap(const Body *body, Block *block, const Tile *tile, Index x, Index kh, Index kw, uint32_t valid)
{
    const Expr *weight[MOST_OUTPUTS];
    for (int64_t q = 0; valid && q < body->dw->outputs; q++) {
        const Local *local = lower_local(body->lower, "w", DT_F32, body->dw->along == ALONG_CHANNELS);
        stmt_local(body->arena, block, local, load_weight(body, block, q, kh, kw));
        weight[q] = expr_local(body->arena, local);
    }
    multiply(body, block, tile, x, weight, valid);
}

static void loaded_taps(const Body *body, Block *block, const Tile *tile)
{
    const Depthwise *dw = body->dw;
    Index kh, kw;
    if (dw->group_channels > 1)
        block = &stmt_for(body->arena, block, dw->channel, 0, dw->group_channels, 1, LOOP_ROLLED)->body;
    block = lower_clamped_taps(body->lower, block, "kh", &dw->h, body->row, &kh);
    if (tile->edge || dw->w.size > MOST_TAPS) {
        const Var *var = index_var_new(body->arena, "kw", 0, dw->w.size - 1);
        if (tile->edge)
            block = lower_clamped_taps(body->lower, block, "kw", &dw->w, tile->column, &kw);
        else {
            block = &stmt_for(body->arena, block, var, 0, dw->w.size, 1, LOOP_ROLLED)->body;
            kw = index_var(body->arena, var);
        }
        loaded_tap(body, block, tile, element_address(body, block, tile, kh, kw), kh, kw, valid_pixels(tile, 0));
        return;
    }
    Index x = element_address(body, block, tile, kh, index_constant(0));
    for (int64_t k = 0; k < dw->w.size; k++)
        loaded_tap(body, block, tile, sum2(body, x, index_constant(depthwise_tap(dw, k))), kh, index_constant(k),
                   valid_pixels(tile, k));
}

/* Tiles */

static void start(const Body *body, Block *block, const Tile *tile)
{
    const Node *node = body->dw->node;
    bool together = tile->rows > 1;
    Block *outer = lower_enter(body->lower, block);
    for (int64_t q = 0; q < (together ? tile->rows : body->dw->outputs); q++)
        for (int64_t p = 0; p < tile->pixels; p++) {
            Index output = depthwise_output(body->dw, together ? 0 : q);
            stmt_assign(body->arena, body->lower->block, tile->acc, index_constant(q), index_constant(p),
                        node->in_count > 2 ? lower_value(body->lower, node->in[2], &output)
                                           : expr_number(body->arena, DT_F32, 0));
        }
    lower_leave(body->lower, outer);
}

/* What the kernel makes of the sums, for the contraction that reads it. */
static void store_in_line(const Body *body, Index column, const Index *position)
{
    const Depthwise *dw = body->dw;
    Index pixel = sum2(body, scaled(body, index_var(body->arena, dw->block), dw->w.out), column);
    Index at = sum2(body, scaled(body, pixel, dw->lanes), index_var(body->arena, dw->lane));
    stmt_store(body->arena, body->lower->block, dw->line_x, at, lower_value(body->lower, dw->line, position));
}

static void finish(const Body *body, Block *block, const Tile *tile)
{
    const Depthwise *dw = body->dw;
    ValueId result = dw->node->out[0];
    bool together = tile->rows > 1;
    Block *outer = lower_enter(body->lower, block);
    for (int64_t q = 0; q < (together ? tile->rows : dw->outputs); q++)
        for (int64_t p = 0; p < tile->pixels; p++) {
            Index position[MAX_RANK], column = sum2(body, tile->column, index_constant(p * tile->step));
            Index row = together ? sum2(body, body->row, index_constant(q)) : body->row;
            if (tile->vectors)
                column = sum2(body, column, index_var(body->arena, dw->lane));
            depthwise_result(dw, depthwise_output(dw, together ? 0 : q), row, column, position);
            body->lower->bound[result] = expr_local_at(body->arena, tile->acc, index_constant(q), index_constant(p));
            if (dw->line != NONE)
                store_in_line(body, column, position);
            else
                lower_stores(body->lower, position);
        }
    body->lower->bound[result] = NULL;
    lower_leave(body->lower, outer);
}

static void one_tile(const Body *body, Block *block, const Tile *tile)
{
    start(body, block, tile);
    if (tile->rows > 1)
        taps_of_rows(body, block, tile);
    else if (body->held && !tile->edge)
        held_taps(body, block, tile);
    else
        loaded_taps(body, block, tile);
    finish(body, block, tile);
}

static const Local *sums(const Body *body, Block *block, const char *name, bool lanes, int64_t pixels)
{
    int64_t rows = most(body->dw->outputs, body->dw->together);
    const Local *acc = lower_registers(body->lower, name, DT_F32, lanes, rows, pixels);
    stmt_local(body->arena, block, acc, NULL);
    return acc;
}

/* Columns one by one, with the taps that are inside. */
static void columns_by_bounds(Body *body, Block *block, int64_t begin, int64_t end)
{
    if (begin == end)
        return;
    Tile tile = {.acc = body->acc, .pixels = 1, .step = 1, .edge = true};
    tile.column = small_loop(body, &block, "column", begin, end, LOOP_SERIAL);
    one_tile(body, block, &tile);
}

/* The first of `count` in round `round`, begin + round * count, or less in the last round, so that it ends at `end`: it
 * makes some of the same results again. */
static Index first_of(Body *body, Block *block, const char *name, Index round, int64_t count, int64_t begin,
                      int64_t end)
{
    Index first = sum2(body, scaled(body, round, count), index_constant(begin));
    if ((end - begin) % count == 0)
        return first;
    const Expr *last = expr_number(body->arena, DT_I64, (double)(end - count));
    const Local *local = lower_local(body->lower, name, DT_I64, false);
    stmt_local(body->arena, block, local,
               expr_word(body->arena, WORD_MIN, DT_I64, expr_index(body->arena, DT_I64, first), last, NULL));
    return index_data(body->arena, expr_local(body->arena, local), begin, end - count);
}

/* Vectors of pixels. */
static void vectors_of_row(Body *body, Block *block)
{
    const Depthwise *dw = body->dw;
    int64_t columns = dw->columns_end - dw->columns_begin, span = dw->pixels * dw->lanes;
    Index round = small_loop(body, &block, "t", 0, ceil_div(columns, span), LOOP_SERIAL);
    Tile tile = {.rows = dw->together, .pixels = dw->pixels, .step = dw->lanes, .vectors = true};
    tile.column = first_of(body, block, "column", round, span, dw->columns_begin, dw->columns_end);
    block = &stmt_lanes(body->arena, block, dw->lane, (uint32_t)dw->lanes)->body;
    tile.acc = sums(body, block, "acc", true, dw->pixels);
    one_tile(body, block, &tile);
}

/* Which pixels' taps are inside, for each kw; NULL where all are. */
static const uint32_t *valid_taps(const Body *body, int64_t column, int64_t pixels)
{
    const Depthwise *dw = body->dw;
    if (column >= dw->columns_begin && column + pixels <= dw->columns_end)
        return NULL;
    uint32_t *valid = ARENA_ARRAY(body->arena, uint32_t, (size_t)dw->w.size);
    for (int64_t kw = 0; kw < dw->w.size; kw++)
        for (int64_t p = 0; p < pixels; p++) {
            int64_t w = (column + p) * dw->w.stride + kw * dw->w.dilation - dw->w.before;
            valid[kw] |= (uint32_t)(w >= 0 && w < dw->w.in) << p;
        }
    return valid;
}

/* Tiles of balanced size, the wide ones first: 13 pixels by 4 are 4, 3, 3, 3.  Equal ones inside the image are a loop.
 */
static void pixels_of_row(Body *body, Block *block, int64_t begin, int64_t end)
{
    int64_t tiles = ceil_div(end - begin, body->dw->pixels), column = begin;
    for (int64_t t = 0, run; t < tiles; t += run) {
        int64_t wide = (end - begin) % tiles, pixels = (end - begin) / tiles + (t < wide);
        Tile tile = {.acc = body->acc, .pixels = pixels, .step = 1, .valid = valid_taps(body, column, pixels)};
        run = tile.valid ? 1 : (t < wide ? wide : tiles) - t;
        Block *inner = block;
        Index round = small_loop(body, &inner, "t", 0, run, LOOP_SERIAL);
        tile.column = sum2(body, scaled(body, round, pixels), index_constant(column));
        one_tile(body, inner, &tile);
        column += run * pixels;
    }
}

/* Columns at an end of the row, where taps are outside. */
static void edge(Body *body, Block *block, int64_t begin, int64_t end)
{
    if (body->dw->edges)
        columns_by_bounds(body, block, begin, end);
    else
        pixels_of_row(body, block, begin, end);
}

static void columns(Body *body, Block *block)
{
    const Depthwise *dw = body->dw;
    edge(body, block, 0, dw->columns_begin);
    if (dw->along == ALONG_WIDTH)
        vectors_of_row(body, block);
    else
        pixels_of_row(body, block, dw->columns_begin, dw->columns_end);
    edge(body, block, dw->columns_end, dw->w.out);
}

/* Rows */

/* Of the largest tile that is not of vectors along the row; 0: there is none. */
static int64_t most_pixels(const Depthwise *dw)
{
    int64_t part[] = {dw->columns_begin, dw->w.out - dw->columns_end, dw->columns_end - dw->columns_begin}, pixels = 0;
    for (int i = 0; i < (dw->along == ALONG_WIDTH ? 2 : 3); i++)
        if (part[i])
            pixels = most(pixels, i < 2 && dw->edges ? 1 : ceil_div(part[i], ceil_div(part[i], dw->pixels)));
    return pixels;
}

static const Local *hold_weights(const Body *body, Block *block)
{
    const Depthwise *dw = body->dw;
    const Local *held = lower_registers(body->lower, "w", DT_F32, dw->along == ALONG_CHANNELS, dw->h.size, dw->w.size);
    stmt_local(body->arena, block, held, NULL);
    for (int64_t kh = 0; kh < dw->h.size; kh++)
        for (int64_t kw = 0; kw < dw->w.size; kw++) {
            Index i = index_constant(kh), j = index_constant(kw);
            stmt_assign(body->arena, block, held, i, j, load_weight(body, block, 0, i, j));
        }
    return held;
}

/* All of the result, or the one that is given. */
static void rows(Body *body, Block *block, const Index *given)
{
    const Depthwise *dw = body->dw;
    const Local *held = dw->held ? hold_weights(body, block) : NULL;
    if (most_pixels(dw))
        body->acc =
            sums(body, block, dw->along == ALONG_WIDTH ? "edge" : "acc", dw->along == ALONG_CHANNELS, most_pixels(dw));
    if (given)
        body->row = *given;
    else {
        body->row = small_loop(body, &block, "row", 0, ceil_div(dw->h.out, dw->together), LOOP_SERIAL);
        body->row = first_of(body, block, "h", body->row, dw->together, 0, dw->h.out);
    }
    if (!held) {
        columns(body, block);
        return;
    }
    Stmt *whole = stmt_if(body->arena, block, body->row, dw->rows_begin, dw->rows_end);
    body->held = held;
    columns(body, &whole->body);
    body->held = NULL;
    if (dw->rows_end - dw->rows_begin < dw->h.out)
        columns(body, &whole->other);
}

static Block *loop_over(const Body *body, Block *block, const Var *var)
{
    return var->high > 0 ? &stmt_for(body->arena, block, var, 0, var->high + 1, 1, LOOP_PARALLEL)->body : block;
}

/* Parts of a transposed one follow one another: each has names of its own, so one channel is a loop, too. */
static Block *each_channel(const Body *body, Block *block)
{
    const Var *var = body->dw->block;
    return body->dw->part.transposed ? &stmt_for(body->arena, block, var, 0, var->high + 1, 1, LOOP_PARALLEL)->body
                                     : loop_over(body, block, var);
}

/* Channels of which each has its plane; the zeros around these are the same, and made once for some together. */
static Block *channels_together(const Body *body, Block *block)
{
    const Depthwise *dw = body->dw;
    int64_t channels = dw->block->high + 1, some = depthwise_planes_together(dw);
    if (some == 1) {
        block = each_channel(body, block);
        depthwise_clear(dw->lower, block, dw->x, depthwise_plane_elements(dw));
        depthwise_bring_plane(dw, block);
        return block;
    }
    const Var *part = index_var_new(body->arena, "part", 0, ceil_div(channels, some) - 1);
    block = loop_over(body, block, part);
    depthwise_clear(dw->lower, block, dw->x, depthwise_plane_elements(dw));
    Stmt *loop = stmt_for(body->arena, block, dw->block, 0, channels, 1, LOOP_SERIAL);
    if (part->high > 0) {
        loop->low = index_scale(body->arena, index_var(body->arena, part), some);
        loop->high = index_add(body->arena, loop->low, index_constant(some));
        loop->clamp_high = channels % some != 0;
        loop->high_most = index_constant(channels);
    }
    depthwise_bring_plane(dw, &loop->body);
    return &loop->body;
}

void depthwise_emit(Depthwise *dw)
{
    Body body = {.dw = dw, .lower = dw->lower, .arena = dw->lower->arena};
    Block *block = loop_over(&body, dw->lower->block, dw->image);
    if (dw->framed)
        block = channels_together(&body, block);
    else
        block = each_channel(&body, block);
    if (dw->along == ALONG_CHANNELS)
        block = &stmt_lanes(body.arena, block, dw->lane, (uint32_t)dw->lanes)->body;
    Block *outer = lower_enter(dw->lower, block);
    rows(&body, block, NULL);
    lower_leave(dw->lower, outer);
}

void depthwise_emit_row(Depthwise *dw, Block *block, Index row)
{
    Body body = {.dw = dw, .lower = dw->lower, .arena = dw->lower->arena};
    if (dw->block->high > 0)
        block = &stmt_for(body.arena, block, dw->block, 0, dw->block->high + 1, 1, LOOP_SERIAL)->body;
    block = &stmt_lanes(body.arena, block, dw->lane, (uint32_t)dw->lanes)->body;
    Block *outer = lower_enter(dw->lower, block);
    rows(&body, block, &row);
    lower_leave(dw->lower, outer);
}
