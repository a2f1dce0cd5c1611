/* The order of a contraction's loops, and what one round of them takes. */
#include "kernel/lower/tiled.h"

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
    tiled_cut(con);
    choose_order(con);
    if ((con->pool || con->computed) && asked->chunk > 0) /* each row passes over all panels */
        return false;
    return (asked->rounds <= 1 || con->rounds == asked->rounds) && !(asked->rows == 0 && con->tiling.rows);
}
