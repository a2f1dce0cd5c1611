/* The loops of a depthwise convolution: images, blocks of channels, rows, tiles of a row, taps.
 *
 * In rows where the whole window is inside the image all taps stand in the text when their weights are held; elsewhere
 * those of kh are a loop that its bounds cut to the image. */
#include "kernel/lower/depthwise_body.h"

#include "base/number.h"

static Index sum2(const DepthwiseBody *body, Index a, Index b)
{
    return index_add(body->arena, a, b);
}

static Index scaled(const DepthwiseBody *body, Index a, int64_t factor)
{
    return index_scale(body->arena, a, factor);
}

static Index small_loop(DepthwiseBody *body, Block **block, const char *name, int64_t begin, int64_t end, LoopKind kind)
{
    if (end - begin == 1)
        return index_constant(begin);
    const Var *var = index_var_new(body->arena, name, begin, end - 1);
    *block = &stmt_for(body->arena, *block, var, begin, end, 1, kind)->body;
    return index_var(body->arena, var);
}

/* Tiles */

static const Local *sums(const DepthwiseBody *body, Block *block, const char *name, bool lanes, int64_t pixels)
{
    int64_t rows = most(body->dw->outputs, body->dw->together);
    const Local *acc = lower_registers(body->lower, name, DT_F32, lanes, rows, pixels);
    stmt_local(body->arena, block, acc, NULL);
    return acc;
}

/* Columns one by one, with the taps that are inside. */
static void columns_by_bounds(DepthwiseBody *body, Block *block, int64_t begin, int64_t end)
{
    if (begin == end)
        return;
    DepthwiseTile tile = {.acc = body->acc, .pixels = 1, .step = 1, .edge = true};
    tile.column = small_loop(body, &block, "column", begin, end, LOOP_SERIAL);
    depthwise_tile(body, block, &tile);
}

/* The first of `count` in round `round`, begin + round * count, or less in the last round, so that it ends at `end`: it
 * makes some of the same results again. */
static Index first_of(DepthwiseBody *body, Block *block, const char *name, Index round, int64_t count, int64_t begin,
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
static void vectors_of_row(DepthwiseBody *body, Block *block)
{
    const Depthwise *dw = body->dw;
    int64_t columns = dw->columns_end - dw->columns_begin, span = dw->pixels * dw->lanes;
    Index round = small_loop(body, &block, "t", 0, ceil_div(columns, span), LOOP_SERIAL);
    DepthwiseTile tile = {.rows = dw->together, .pixels = dw->pixels, .step = dw->lanes, .vectors = true};
    tile.column = first_of(body, block, "column", round, span, dw->columns_begin, dw->columns_end);
    block = &stmt_lanes(body->arena, block, dw->lane, (uint32_t)dw->lanes)->body;
    tile.acc = sums(body, block, "acc", true, dw->pixels);
    depthwise_tile(body, block, &tile);
}

/* Which pixels' taps are inside, for each kw; NULL where all are. */
static const uint32_t *valid_taps(const DepthwiseBody *body, int64_t column, int64_t pixels)
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
static void pixels_of_row(DepthwiseBody *body, Block *block, int64_t begin, int64_t end)
{
    int64_t tiles = ceil_div(end - begin, body->dw->pixels), column = begin;
    for (int64_t t = 0, run; t < tiles; t += run) {
        int64_t wide = (end - begin) % tiles, pixels = (end - begin) / tiles + (t < wide);
        DepthwiseTile tile = {.acc = body->acc, .pixels = pixels, .step = 1, .valid = valid_taps(body, column, pixels)};
        run = tile.valid ? 1 : (t < wide ? wide : tiles) - t;
        Block *inner = block;
        Index round = small_loop(body, &inner, "t", 0, run, LOOP_SERIAL);
        tile.column = sum2(body, scaled(body, round, pixels), index_constant(column));
        depthwise_tile(body, inner, &tile);
        column += run * pixels;
    }
}

/* Columns at an end of the row, where taps are outside. */
static void edge(DepthwiseBody *body, Block *block, int64_t begin, int64_t end)
{
    if (body->dw->edges)
        columns_by_bounds(body, block, begin, end);
    else
        pixels_of_row(body, block, begin, end);
}

static void columns(DepthwiseBody *body, Block *block)
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

static const Local *hold_weights(const DepthwiseBody *body, Block *block)
{
    const Depthwise *dw = body->dw;
    const Local *held = lower_registers(body->lower, "w", DT_F32, dw->along == ALONG_CHANNELS, dw->h.size, dw->w.size);
    stmt_local(body->arena, block, held, NULL);
    for (int64_t kh = 0; kh < dw->h.size; kh++)
        for (int64_t kw = 0; kw < dw->w.size; kw++) {
            Index i = index_constant(kh), j = index_constant(kw);
            stmt_assign(body->arena, block, held, i, j, depthwise_load_weight(body, block, 0, i, j));
        }
    return held;
}

/* All of the result, or the one that is given. */
static void rows(DepthwiseBody *body, Block *block, const Index *given)
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

static Block *loop_over(const DepthwiseBody *body, Block *block, const Var *var)
{
    return var->high > 0 ? &stmt_for(body->arena, block, var, 0, var->high + 1, 1, LOOP_PARALLEL)->body : block;
}

/* Parts of a transposed one follow one another: each has names of its own, so one channel is a loop, too. */
static Block *each_channel(const DepthwiseBody *body, Block *block)
{
    const Var *var = body->dw->block;
    return body->dw->part.transposed ? &stmt_for(body->arena, block, var, 0, var->high + 1, 1, LOOP_PARALLEL)->body
                                     : loop_over(body, block, var);
}

/* Channels of which each has its plane; the zeros around these are the same, and made once for some together. */
static Block *channels_together(const DepthwiseBody *body, Block *block)
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
    DepthwiseBody body = {.dw = dw, .lower = dw->lower, .arena = dw->lower->arena};
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
    DepthwiseBody body = {.dw = dw, .lower = dw->lower, .arena = dw->lower->arena};
    if (dw->block->high > 0)
        block = &stmt_for(body.arena, block, dw->block, 0, dw->block->high + 1, 1, LOOP_SERIAL)->body;
    block = &stmt_lanes(body.arena, block, dw->lane, (uint32_t)dw->lanes)->body;
    Block *outer = lower_enter(dw->lower, block);
    rows(&body, block, &row);
    lower_leave(dw->lower, outer);
}
