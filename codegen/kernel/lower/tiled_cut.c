/* The cutting of a contraction's image into tiles: its extents decide where tiles end.  Tiles that see the same of the
 * image become one loop, and so do those
 * that a border of the image passes by, a few taps further on in each. */
#include "kernel/lower/tiled.h"

#include <string.h>

#define FEW_PIXELS 3 /* that a tile of a row has at least, where that saves text */
#define FEW_LINES  150
#define MANY_LINES 900
#define MOST_LINES 1800

static bool inside_row(const Tiled *con, int64_t pixel, int64_t kw)
{
    int64_t w = pixel % con->out_w * con->stride_w + kw * con->dilation_w - con->pad_left;
    return w >= 0 && w < con->in_w;
}

static bool inside(const Tiled *con, int64_t pixel, int64_t kh, int64_t kw)
{
    int64_t h = pixel / con->out_w * con->stride_h + kh * con->dilation_h - con->pad_top;
    return h >= 0 && h < con->in_h && inside_row(con, pixel, kw);
}

static int64_t operand_address(const Tiled *con, int64_t pixel)
{
    return (pixel / con->out_w * con->stride_h - con->pad_top) * con->x_h +
           (pixel % con->out_w * con->stride_w - con->pad_left) * con->x_w;
}

/* Where tiles stay in a row only kw decides what is inside: kh is clamped at run time. */
static const uint32_t *valid_taps(const Tiled *con, int64_t pixel, uint32_t pixels)
{
    int64_t taps_h = con->tiling.rows ? 1 : con->taps_h;
    uint32_t *valid = ARENA_ARRAY(con->lower->arena, uint32_t, (size_t)(taps_h * con->taps_w));

    for (int64_t kh = 0; kh < taps_h; kh++)
        for (int64_t kw = 0; kw < con->taps_w; kw++)
            for (uint32_t p = 0; p < pixels; p++) {
                bool ok = con->tiling.rows ? inside_row(con, pixel + p, kw) : inside(con, pixel + p, kh, kw);
                valid[kh * con->taps_w + kw] |= (uint32_t)ok << p;
            }
    return valid;
}

static TileLoop tile_at(const Tiled *con, int64_t pixel, uint32_t pixels, int64_t number)
{
    TileLoop tile = {.pixels = pixels, .views = 1, .count = 1};
    tile.first = (TilePlace){pixel, operand_address(con, pixel), number};
    tile.view[0] = (TileView){.valid = valid_taps(con, pixel, pixels), .end = 1};
    for (uint32_t p = 0; p < pixels; p++)
        tile.offset[p] = operand_address(con, pixel + p) - tile.first.x;
    return tile;
}

static bool sees_the_same(const Tiled *con, const TileLoop *a, const TileLoop *b)
{
    size_t taps = (size_t)((con->tiling.rows ? 1 : con->taps_h) * con->taps_w);
    return !memcmp(a->view[0].valid, b->view[0].valid, taps * sizeof *a->view[0].valid);
}

static bool same_place(TilePlace a, TilePlace b)
{
    return a.pixel == b.pixel && a.x == b.x && a.tile == b.tile;
}

static TilePlace place_after(TilePlace first, TilePlace step, int64_t rounds)
{
    return (TilePlace){first.pixel + rounds * step.pixel, first.x + rounds * step.x, first.tile + rounds * step.tile};
}

/* Is `next` what comes behind the loop's last round?  Then the step of both; a loop of one round takes any. */
static bool follows(const TileLoop *loop, const TileLoop *next, TilePlace *step)
{
    *step = loop->count > 1 ? loop->step : next->count > 1 ? next->step : place_after(next->first, loop->first, -1);
    return loop->pixels == next->pixels && !memcmp(loop->offset, next->offset, sizeof loop->offset) &&
           same_place(next->first, place_after(loop->first, *step, loop->count)) &&
           (next->count == 1 || same_place(next->step, *step));
}

static void add_tile(Tiled *con, const TileLoop *tile, uint32_t *capacity)
{
    TilePlace step;
    for (uint32_t i = 0; i < con->tiling.count; i++) {
        TileLoop *loop = &con->tiling.loop[i];
        if (sees_the_same(con, loop, tile) && follows(loop, tile, &step)) {
            loop->step = step;
            loop->view[0].end = ++loop->count;
            return;
        }
    }
    ARENA_PUSH(con->lower->arena, con->tiling.loop, con->tiling.count, *capacity, *tile);
}

/* Tiles `first` ... of `pixels` each, from a pixel on; all have the same operand steps. */
typedef struct TileRun {
    int64_t first, count, pixel;
    uint32_t pixels;
} TileRun;

/* Do neighbours among pixels have neighbouring operands all along the run, but for taps outside at its ends? */
static bool is_straight(const Tiled *con)
{
    bool contiguous = con->taps_h * con->taps_w == 1 && !con->pad_top && !con->pad_left &&
                      (con->out_h - 1) * con->stride_h < con->in_h && (con->out_w - 1) * con->stride_w < con->in_w &&
                      con->x_h * con->stride_h == con->out_w * con->x_w * con->stride_w;
    return con->tiling.rows || con->out_h == 1 || contiguous;
}

/* The tiles of a straight run all of whose taps are inside are equal: they are counted, not looked at one by one. */
static void inner_tiles(const Tiled *con, const TileRun *run, int64_t *begin, int64_t *end)
{
    int64_t low = ceil_div(most(0, con->pad_left), con->stride_w), span = (con->taps_w - 1) * con->dilation_w;
    int64_t room = con->in_w - 1 + con->pad_left - span, high = room < 0 ? -1 : room / con->stride_w; /* inclusive */
    *begin = *end = run->first;
    if (!is_straight(con))
        return;
    if (con->out_h > 1 && !con->tiling.rows) { /* pointwise */
        *end = run->first + run->count;
        return;
    }
    int64_t skip = low > run->pixel ? ceil_div(low - run->pixel, run->pixels) : 0;
    int64_t fit = high < run->pixel ? 0 : (high - run->pixel + 1) / run->pixels;
    *begin = run->first + least(skip, run->count);
    *end = most(*begin, run->first + least(fit, run->count));
}

static void cut_tiles(Tiled *con, const TileRun *run, uint32_t *capacity)
{
    int64_t begin, end;
    inner_tiles(con, run, &begin, &end);
    for (int64_t t = run->first; t < run->first + run->count;) {
        int64_t pixel = run->pixel + (t - run->first) * run->pixels;
        TileLoop tile = tile_at(con, pixel, run->pixels, t);
        if (t == begin && end - begin > 1) {
            tile.count = tile.view[0].end = end - begin;
            tile.step = (TilePlace){run->pixels, operand_address(con, pixel + run->pixels) - tile.first.x, 1};
            ARENA_PUSH(con->lower->arena, con->tiling.loop, con->tiling.count, *capacity, tile);
            t = end;
        } else {
            add_tile(con, &tile, capacity);
            t++;
        }
    }
}

/* The first tap that sees something else than those before it, of one row of taps; 0: all see the same. */
static int64_t border_of(const Tiled *con, const uint32_t *valid)
{
    int64_t border = tiled_equal_taps(valid, con->taps_w);
    return border < con->taps_w ? border : 0;
}

/* Windows that reach far out of the image, whose border passes by one tile after the other: does the next one see what
 * the view's do, but for more or fewer taps before the border and behind it? */
static bool slides(const Tiled *con, TileView *view, int64_t rounds, const TileLoop *next)
{
    const uint32_t *valid = next->view[0].valid;
    int64_t taps = con->taps_w, border = border_of(con, view->valid), by = border - border_of(con, valid);
    bool one_row = con->tiling.rows || con->taps_h == 1;
    if (!one_row || next->count > 1 || by <= 0 || by >= border || by % rounds ||
        (rounds > 1 && by / rounds != view->slide))
        return false;
    for (int64_t kw = 0; kw < taps; kw++)
        if (valid[kw] != view->valid[least(kw + by, taps - 1)])
            return false;
    view->slide = by / rounds;
    return true;
}

/* Loops one after the other become one, in which each round sees as much of the image as it did: what is done before
 * the sums and behind them stands once in the text. */
static bool continues(const Tiled *con, TileLoop *loop, const TileLoop *next)
{
    TilePlace step;
    if (!follows(loop, next, &step))
        return false;
    TileView *view = &loop->view[loop->views - 1];
    int64_t before = loop->views > 1 ? view[-1].end : 0;
    bool more = slides(con, view, view->end - before, next);
    if (!more && loop->views == MOST_VIEWS)
        return false;
    loop->step = step;
    loop->count += next->count;
    if (more)
        view->end = loop->count;
    else
        loop->view[loop->views++] = (TileView){.valid = next->view[0].valid, .end = loop->count};
    return true;
}

static void join_loops(Tiled *con)
{
    Tiling *tiling = &con->tiling;
    uint32_t count = 0;
    for (uint32_t i = 0; i < tiling->count; i++)
        if (!count || !continues(con, &tiling->loop[count - 1], &tiling->loop[i]))
            tiling->loop[count++] = tiling->loop[i];
    tiling->count = count;
}

/* `extent` pixels in tiles of balanced size: 49 is 13, 12, 12, 12. */
static void cut_run(Tiled *con, int64_t extent)
{
    int64_t tiles = ceil_div(extent, con->pixels), wide = extent % tiles;
    uint32_t capacity = 0, pixels = (uint32_t)(extent / tiles);
    con->tiling.tiles = tiles;
    cut_tiles(con, &(TileRun){0, wide, 0, pixels + 1}, &capacity);
    cut_tiles(con, &(TileRun){wide, tiles - wide, wide * (pixels + 1), pixels}, &capacity);
    join_loops(con);
}

/* Tiles that cross rows waste no pixels but repeat with a long period, each kind a text of its own; where rows hold
 * whole tiles, or many of them, tiles stay inside their row. */
static bool rows_suit(const Tiled *con)
{
    if (con->out_h == 1 || tiled_goes_straight(con))
        return false;
    bool few_texts = con->lower->target->dialect == DIALECT_C99 && con->out_w >= FEW_PIXELS;
    return few_texts || con->out_w % con->pixels == 0 || con->out_w >= 8 * con->pixels;
}

/* Do they make the anchor's image, and nothing of its sums? */
static bool comes_before(const Lower *lower, const Node *node)
{
    ValueId v = lower->graph->node[lower->kernel->anchor].in[0];
    for (; v != NONE && kernel_makes(lower, v); v = tiled_made_operand(lower, v))
        if (value_producer(lower->graph, v) == node)
            return true;
    return false;
}

int64_t tiled_words_beside(const Lower *lower)
{
    const Kernel *kernel = lower->kernel;
    int64_t words = 0;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &lower->graph->node[kernel->node[n]];
        const ScalarList *scalar = op_info(node->op)->scalar;
        if (comes_before(lower, node))
            continue;
        words += scalar ? most(1, scalar->count) : 0;
        for (uint32_t r = 0; r < node->out_count; r++)
            words += kernel_stores(lower, node->out[r]);
    }
    return words;
}

/* Lines of the emitted text, at most: two steps of the depth per tap, sums started and stored in two ways, and what is
 * done with each before. */
static int64_t text_length(const Tiled *con)
{
    int64_t pixels = 0, taps = con->taps_w * (con->taps_h > 1 ? 2 : 1);
    for (uint32_t i = 0; i < con->tiling.count; i++)
        pixels += con->tiling.loop[i].pixels * con->tiling.loop[i].views;
    return pixels * (2 * taps + (5 + tiled_words_beside(con->lower)) * con->vectors);
}

/* Long texts are worth some idle registers, very long ones any. */
static bool text_suits(const Tiled *con)
{
    int64_t lines = text_length(con), held = ceil_div(con->out_w, con->pixels) * con->pixels;
    if (con->lower->brief)
        return lines <= FEW_LINES;
    return lines <= MANY_LINES || (lines <= MOST_LINES && 10 * con->out_w < 9 * held);
}

#define MOST_LOOKED_AT 4096 /* tiles, one by one */

/* One loop over the pixels of a row, whose taps are clamped. */
static void cut_clamped(Tiled *con)
{
    uint32_t capacity = 0;
    TileLoop tile = tile_at(con, 0, 1, 0);
    tile.count = tile.view[0].end = con->tiling.tiles = con->out_w;
    tile.step = (TilePlace){1, con->stride_w * con->x_w, 1};
    con->tiling = (Tiling){.rows = true, .tiles = con->out_w};
    ARENA_PUSH(con->lower->arena, con->tiling.loop, con->tiling.count, capacity, tile);
}

void tiled_cut(Tiled *con)
{
    con->clamped =
        con->lower->target->small && con->pixels == 1 && con->out_h > 1 && con->taps_w > 1 && con->asked.rows != 0;
    if (con->clamped) {
        cut_clamped(con);
        return;
    }
    /* A pool takes the image row by row, and so does an operand that is computed come. */
    bool free = con->asked.rows == KNOB_FREE;
    bool asked = con->asked.rows > 0 && con->out_h > 1; /* one row is the image */
    con->tiling = (Tiling){.rows = con->pool || con->computed || con->few_channels ||
                                   (free ? tiled_keeps_rows(con) || rows_suit(con) : asked)};
    if (!is_straight(con) && ceil_div(con->out_h * con->out_w, con->pixels) > MOST_LOOKED_AT)
        con->tiling.rows = true;
    cut_run(con, con->tiling.rows ? con->out_w : con->out_h * con->out_w);
    if (free && con->out_h > 1 && !con->tiling.rows && !text_suits(con)) {
        con->tiling = (Tiling){.rows = true};
        cut_run(con, con->out_w);
    }
}
