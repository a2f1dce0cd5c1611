/* How many pixels, and vectors of columns, a contraction's tile has: what the registers hold, what leaves few kinds of
 * tiles, each a text of its own, and what the first level's ways let stand side by side. */
#include "kernel/lower/tiled.h"

bool tiled_goes_straight(const Tiled *con)
{
    return con->taps_h * con->taps_w == 1 && con->x_h * con->stride_h == con->out_w * con->x_w * con->stride_w;
}

#define SMALL_VECTORS 2 /* of sums, where code is to be small */

#define FEW_IDLE 12 /* pixels of two vectors hide the latency of sums as well as 14 do */

/* The whole tiles that a row, or what goes like one, may be cut into without a rest: then there are few kinds of them,
 * each a text of its own.  In strict C99, whose text is read and whose code may lie in flash, and of many registers. */
static uint32_t even_pixels(const Tiled *con)
{
    int64_t extent = tiled_goes_straight(con) ? con->out_h * con->out_w : con->out_w;
    bool strict = con->lower->target->dialect == DIALECT_C99 && con->pixels <= 8;
    uint32_t least = strict ? 4 : con->pixels > FEW_IDLE && con->vectors == 2 ? FEW_IDLE : con->pixels;
    for (uint32_t pixels = con->pixels; pixels >= least; pixels--)
        if (extent % pixels == 0)
            return pixels;
    return con->pixels;
}

/* Do the phases of a transposed convolution see one tap at most, whose pixels go straight from row to row? */
static bool sees_points(const Tiled *con)
{
    const Shape *weight = value_shape(con->lower->graph, con->node->in[1]);
    int64_t taps = 1;
    for (uint32_t d = 2; d < weight->rank; d++)
        taps *= weight->dim[d];
    return con->lower->target->dialect == DIALECT_VECTOR && taps == 1 && tiled_goes_straight(con);
}

bool tiled_keeps_rows(const Tiled *con)
{
    return con->phases > 1 && !sees_points(con);
}

/* Rows of seven or eight are two tiles, whose few pixels leave room for three vectors. */
static bool halves_rows(const Tiled *con)
{
    return tiled_keeps_rows(con) && !con->packed && con->lower->target->dialect == DIALECT_VECTOR && con->out_w > 6 &&
           con->out_w <= 8;
}

#define WAY 4096 /* bytes of a way of the first level, a page: caches that are looked up by virtual addresses */

/* Do rows of a matrix lie whole pages apart, or nearly, so that more of a tile's than the first level has ways share a
 * set, and push each other out before their lines are used up? */
static bool crowds_a_set(const Tiled *con)
{
    if (!con->is_product || con->by_pixels || con->x_depth != 1 || con->x_w <= 0)
        return false;
    int64_t apart = con->x_w * (int64_t)dtype_bytes(value_type(con->lower->graph, con->x_source)->dtype), rows = 0;
    for (int64_t row = 0; row < con->pixels; row++)
        rows += (row * apart + LINE_BYTES) % WAY < 2 * LINE_BYTES;
    return rows >= con->lower->target->l1_bytes / WAY;
}

/* Rows that 14, 13 and 12 do not divide, as powers of two, and 8 does: tiles of one kind, by vectors in threes. */
static bool suits_eights(const Tiled *con, int64_t vectors)
{
    int64_t rows = con->out_h * con->out_w;
    bool uneven = true;
    for (int64_t pixels = FEW_IDLE; pixels <= 14; pixels++)
        uneven &= rows % pixels != 0;
    return con->is_product && !con->by_pixels && con->lower->target->dialect == DIALECT_VECTOR && uneven &&
           rows % 8 == 0 && vectors >= 3 && !tiled_lies_in_panels(con);
}

/* Fewer rows and more vectors of columns: as many sums, about. */
static void choose_low_tile(Tiled *con, int64_t vectors)
{
    if (!tiled_lies_in_panels(con))
        con->vectors = vectors % 4 == 0 ? 4 : vectors % 3 == 0 ? 3 : 2;
    con->pixels = con->vectors == 4 ? 6 : 8;
}

/* 14 x 2 sums, 2 vectors of weights and one broadcast fill 32 registers; 6 x 2 or 4 x 3 fill 16, and 6 x 1 fill 8. */
void tiled_choose_pixels(Tiled *con)
{
    int64_t registers = con->lower->target->vector_registers, pixels = con->out_h * con->out_w;
    int64_t vectors = ceil_div(con->columns, con->lanes);
    bool wide = registers >= 32, strided = con->taps_h * con->taps_w == 1 && con->stride_h == 2;
    bool read_by_vectors = con->packed || con->lower->target->dialect == DIALECT_VECTOR;
    bool three = registers == 16 && vectors % 3 == 0 && (con->is_product ? read_by_vectors : con->packed && strided);

    con->vectors = vectors == 1 || registers < 16 ? 1 : 2;
    three = three && !tiled_lies_in_panels(con); /* which are of two vectors */
    three |= registers == 16 && halves_rows(con) && vectors > 2;
    if (three)
        con->vectors = 3;
    con->pixels = wide ? 14 : three ? 4 : 6;
    if (con->vectors == 1)
        con->pixels = (uint32_t)least(2 * con->pixels, registers - (registers < 16 ? 2 : 4));
    if (wide && con->vectors == 2 && crowds_a_set(con))
        choose_low_tile(con, vectors);
    else if (wide && con->vectors == 2 && suits_eights(con, vectors)) {
        con->vectors = 3;
        con->pixels = 8;
    }
    con->pixels = even_pixels(con);
    if (pixels < con->pixels) { /* few pixels: more vectors, to hide the latency of the sums */
        con->pixels = (uint32_t)pixels;
        con->vectors = (uint32_t)least(vectors, least(8, (registers - 1) / (pixels + 1)));
        if (pixels == 1)
            con->vectors = (uint32_t)least(vectors, least(8, con->scaled ? (registers - 4) / 2 : registers / 2));
        con->vectors = (uint32_t)least(con->vectors, 8);
    }
    if (con->lower->target->small) {
        con->pixels = 1;
        con->vectors = (uint32_t)least(vectors, SMALL_VECTORS);
    }
    if (con->asked.pixels > 0)
        con->pixels = (uint32_t)con->asked.pixels;
    if (con->asked.vectors > 0)
        con->vectors = (uint32_t)con->asked.vectors;
}
