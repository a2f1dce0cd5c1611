/* The order of a contraction's loops, and the cutting of its image into tiles.
 * The image's extents decide where tiles end; equal tiles become one loop. */
#include "kernel/lower/tiled.h"

#include <string.h>

#define FEW_PIXELS 3 /* that a tile of a row has at least, where that saves text */
#define FEW_LINES  150
#define MANY_LINES 900
#define MOST_LINES 1800

/* Bytes of weights that stay in the first level while all tiles pass over them. */
static int64_t block_bytes(const Tiled *con)
{
    int64_t bytes = con->lanes >= 16 ? 48 << 10 : 18 << 10;
    return con->is_product ? 2 * bytes : bytes;
}

#define FEW_TILES     4
#define MANY_TILES    32
#define MANY_ROWS     64          /* tiles of them */
#define DEEP          2048        /* rows of a panel, ... */
#define MANY_BYTES    (8 << 20)   /* ... in so much memory */
#define MANY_COLUMNS  16          /* vectors of them */
#define ROWS_TOGETHER 4           /* tiles of such rows that pass over all weights */
#define MOST_IN_PLACE (32 << 10)  /* bytes of weights that stay in the first level */
#define MOST_TOGETHER (16 << 10)  /* bytes of pixels that go together */
#define MOST_NEAR     (256 << 10) /* ... of an image that the second level does not hold */
#define LARGE_IMAGE   (1 << 20)   /* bytes that it does not, beside anything else */
#define MOST_SUMS     (256 << 10) /* bytes of a panel that wait in scratch between rounds */

/* Do many rows pass over weights that the second level holds?  Then a few rows at a time pass over all of them, so that
 * what is stored fills whole lines and pages while they are near. */
static bool goes_by_rows(const Tiled *con)
{
    return con->is_product && !con->by_pixels && con->lower->target->dialect == DIALECT_VECTOR && con->x_depth == 1 &&
           con->tiling.tiles >= MANY_ROWS && con->columns * con->depth * con->weight_bytes <= MOST_WEIGHTS &&
           con->columns >= MANY_COLUMNS * con->lanes;
}

/* Weights that come at run time are packed for speed alone, where they are too many for the first level and many tiles
 * pass over them. */
static bool reads_in_place(const Tiled *con)
{
    if (con->order == ORDER_CHUNKS && goes_by_rows(con))
        return false;
    bool many = (con->lower->strip || con->tiling.tiles >= FEW_TILES) && con->columns * con->depth * 4 > MOST_IN_PLACE;
    bool packs = con->asked.rounds > 1 || (many && con->lower->target->dialect == DIALECT_VECTOR);
    if (con->order == ORDER_PANELS && con->asked.rounds <= 1 && tiled_lies_in_panels(con))
        return true;
    return (con->order == ORDER_CHUNKS || !packs) && tiled_could_read_in_place(con);
}

static bool sums_fit(const Tiled *con)
{
    return con->out_h * con->out_w * con->vectors * con->lanes * 4 <= MOST_SUMS;
}

/* Is the first operand transposed and long, each step of its depth in a line of its own?  Then these lines are fetched
 * once, and all the weights pass over them. */
static bool gathers_rows(const Tiled *con)
{
    return con->is_product && con->x_depth > con->lanes && con->tiling.tiles >= MANY_TILES &&
           tiled_could_read_in_place(con);
}

/* An image, or a row of channels, that the second level does not hold would come from further away for each panel: the
 * weights had rather come for each chunk of its pixels, even where they do not fit there, either. */
static bool floods(const Tiled *con)
{
    bool one_row = con->taps_h * con->in_h == 1;
    return con->packed && !con->is_product && (one_row || con->taps_h * con->taps_w == 1) &&
           con->depth * con->in_h * con->in_w * 4 > LARGE_IMAGE;
}

/* Tiles that go together: of a convolution as many as a level of memory holds with their pixels, the first one where
 * the second has the weights. */
static int64_t chunk_of(const Tiled *con, bool fits)
{
    int64_t bytes = !fits && floods(con) ? MOST_NEAR : MOST_TOGETHER;
    return goes_by_rows(con) ? ROWS_TOGETHER : con->is_product ? 1 : most(1, bytes / (con->pixels * con->depth * 4));
}

/* So deep that the rows of a panel lie in more pages than the processor keeps addresses of: several panels take a round
 * together, while these are near. */
static bool goes_deep(const Tiled *con)
{
    return con->is_product && !con->by_pixels && !con->packed && con->lower->target->dialect == DIALECT_VECTOR &&
           !con->product.transposed && con->depth >= DEEP && con->depth * con->columns * 4 >= MANY_BYTES &&
           con->columns % con->lanes == 0 && con->out_h == 1;
}

/* All of the depth in registers when the weights fit the second level, or when nothing can hold partial sums. */
static void choose_order(Tiled *con)
{
    int64_t taps = con->taps_h * con->taps_w;
    int64_t width = con->vectors * con->lanes * con->weight_bytes; /* bytes */
    bool pointwise = !con->is_product && taps == 1;

    con->order = ORDER_PANELS;
    if (con->transposes)
        return;
    con->rounds = 1;
    con->blocks = con->block_count;
    if (con->pool || con->computed) {
        con->order = ORDER_CHUNKS;
        return;
    }
    if (con->lower->strip) { /* each panel passes over a strip, as a whole */
        con->in_place = reads_in_place(con);
        return;
    }
    bool fits = con->columns * con->depth * con->weight_bytes <= MOST_WEIGHTS;
    bool chunks = con->few_channels || goes_by_rows(con) || (pointwise && fits) || floods(con) ||
                  ((fits || !sums_fit(con)) && gathers_rows(con));
    if (con->asked.chunk > 0 || (con->asked.chunk == KNOB_FREE && chunks)) {
        con->order = ORDER_CHUNKS;
        con->chunk = con->asked.chunk > 0 ? con->asked.chunk : chunk_of(con, fits);
        con->in_place = reads_in_place(con);
        return;
    }
    con->in_place = reads_in_place(con);
    bool keeps_sums = con->packed ? con->stored != NONE : con->is_product && !con->in_place && sums_fit(con);
    if (!keeps_sums || con->tiling.tiles == 1 || !con->block_count)
        return;
    int64_t bytes = con->block_depth * taps * width;
    int64_t most_blocks = most(1, (block_bytes(con) + bytes / 2) / bytes);
    con->rounds = con->asked.rounds == KNOB_FREE ? ceil_div(con->block_count, most_blocks) : most(1, con->asked.rounds);
    con->blocks = ceil_div(con->block_count, con->rounds);
    con->rounds = ceil_div(con->block_count, con->blocks);
    if (goes_deep(con))
        tiled_choose_together(con);
}

/* Cutting */

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
    tile.view[0] = (TileView){valid_taps(con, pixel, pixels), 1};
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

/* Loops one after the other become one, in which each round sees as much of the image as it did: what is done before
 * the sums and behind them stands once in the text. */
static bool continues(TileLoop *loop, const TileLoop *next)
{
    TilePlace step;
    if (loop->views == MOST_VIEWS || !follows(loop, next, &step))
        return false;
    loop->step = step;
    loop->count += next->count;
    loop->view[loop->views++] = (TileView){next->view[0].valid, loop->count};
    return true;
}

static void join_loops(Tiling *tiling)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tiling->count; i++)
        if (!count || !continues(&tiling->loop[count - 1], &tiling->loop[i]))
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
    join_loops(&con->tiling);
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

static void cut_image(Tiled *con)
{
    con->clamped =
        con->lower->target->small && con->pixels == 1 && con->out_h > 1 && con->taps_w > 1 && con->asked.rows != 0;
    if (con->clamped) {
        cut_clamped(con);
        return;
    }
    /* A pool takes the image row by row, and so does an operand that is computed come. */
    bool free = con->asked.rows == KNOB_FREE;
    con->tiling = (Tiling){.rows = con->pool || con->computed || con->few_channels ||
                                   (free ? tiled_keeps_rows(con) || rows_suit(con) : con->asked.rows > 0)};
    if (!is_straight(con) && ceil_div(con->out_h * con->out_w, con->pixels) > MOST_LOOKED_AT)
        con->tiling.rows = true;
    cut_run(con, con->tiling.rows ? con->out_w : con->out_h * con->out_w);
    if (free && con->out_h > 1 && !con->tiling.rows && !text_suits(con)) {
        con->tiling = (Tiling){.rows = true};
        cut_run(con, con->out_w);
    }
}

/* Registers for the sums, a vector of weights and an element. */
static bool fits_registers(const Tiled *con)
{
    int64_t sums = (int64_t)con->pixels * con->vectors;
    return con->pixels <= MOST_PIXELS && sums + 2 <= con->lower->target->vector_registers;
}

/* Sums of a block beside the sums of all need as many registers again. */
static void choose_scaling(Tiled *con)
{
    int64_t sums = (int64_t)con->pixels * con->vectors;
    if (2 * sums + 2 > con->lower->target->vector_registers)
        con->scaled = NULL;
}

/* How many steps share a word of the weights.  What a vector follows one another in takes no word where an instruction
 * widens it as it is. */
static uint32_t choose_parts(const Tiled *con)
{
    const Target *target = con->lower->target;
    uint32_t parts = 4 / con->weight_bytes;
    bool halves = con->widened && value_type(con->lower->graph, con->source[0].value)->dtype == DT_F16;
    bool words = con->widened && target->dialect == DIALECT_VECTOR && !con->few_channels && !(halves && target->halves);
    return words && con->block_depth % parts == 0 ? parts : 1;
}

bool tiled_choose(Tiled *con)
{
    const TiledKnobs *asked = &con->asked;
    tiled_choose_pixels(con);
    if (!asked->pixels || !asked->vectors || ((asked->pixels > 0 || asked->vectors > 0) && !fits_registers(con)))
        return false;
    con->few_channels = !con->lower->target->small && !con->is_product && con->phases == 1 && con->depth < con->lanes &&
                        con->source_count < 2 && con->taps_h * con->taps_w > 1 && con->out_h > 1 &&
                        con->out_w >= con->pixels;
    choose_scaling(con);
    con->parts = choose_parts(con);
    if (!tiled_choose_transpose(con))
        return false;
    cut_image(con);
    choose_order(con);
    if ((con->pool || con->computed) && asked->chunk > 0) /* each row passes over all panels */
        return false;
    return (asked->rounds <= 1 || con->rounds == asked->rounds) && !(asked->rows == 0 && con->tiling.rows);
}
