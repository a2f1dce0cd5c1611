/* The image of a block, transformed (winograd.h): downwards into a line for each row of tiles, across from there. */
#include "kernel/lower/winograd.h"

typedef struct ImageRow {
    const Filter *f;
    Arena *arena;
    uint32_t line;       /* scratch */
    Index tile_row, row; /* in the image, in the block */
} ImageRow;

static Index line_at(const ImageRow *r, Index row, Index column)
{
    return filter_at(r->f, (Index[]){row, column}, (int64_t[]){0, filter_columns(r->f)}, 2);
}

static void clear(const ImageRow *r, Block *block, int64_t begin, int64_t end)
{
    if (begin >= end)
        return;
    Index row = lower_point_loop(r->f->lower, &block, "r", 0, r->f->form.size, LOOP_SERIAL);
    Index column = lower_point_loop(r->f->lower, &block, "column", begin, end, LOOP_SERIAL);
    block = &stmt_lanes(r->arena, block, r->f->lane, (uint32_t)r->f->lanes)->body;
    stmt_store(r->arena, block, r->line, line_at(r, row, column), expr_number(r->arena, DT_F32, 0));
}

/* Columns of the line that are no columns of the image, and lanes that are no channels. */
static void clear_outside(const ImageRow *r, Block *block)
{
    const Filter *f = r->f;
    bool lanes = f->conv.channels % f->lanes != 0;
    clear(r, block, 0, lanes ? filter_columns(f) : filter_first_column(f));
    clear(r, block, lanes ? filter_columns(f) : filter_last_column(f), filter_columns(f));
}

/* The element in a row of the tiles, of a column of the line; zero outside of the image. */
static const Expr *image_element(const ImageRow *r, uint32_t i, Index column, bool inside)
{
    const Filter *f = r->f;
    Index h = index_add(r->arena, index_scale(r->arena, r->tile_row, f->form.results),
                        index_constant((int64_t)i - f->h.before));
    Index w = index_add(r->arena, column, index_constant(-f->w.before));
    Index at = index_add(r->arena, f->x_base, index_scale(r->arena, h, f->x_h));
    at = index_add(r->arena, at, index_scale(r->arena, w, f->x_w));
    const Expr *load = expr_load(r->arena, DT_F32, f->x, at);
    return inside ? load : expr_within(r->arena, h, f->h.in, load, expr_number(r->arena, DT_F32, 0));
}

static void down(const ImageRow *r, Block *block, Index column, bool inside)
{
    const Filter *f = r->f;
    const Expr *to[WINOGRAD_MOST_SIZE];
    const Local *d = filter_line(f, block, f->x_vectors, f->form.size);
    for (uint32_t i = 0; i < f->form.size; i++)
        stmt_assign(r->arena, block, d, index_constant(0), index_constant(i), image_element(r, i, column, inside));
    filter_forward(f, block, d, to);
    for (uint32_t i = 0; i < f->form.size; i++)
        stmt_store(r->arena, block, r->line, line_at(r, index_constant(i), column), to[i]);
}

/* One by one where channels are apart in memory; then there may be fewer of them than lanes. */
static void columns_down(const ImageRow *r, Block *block, bool inside)
{
    const Filter *f = r->f;
    Index column =
        lower_point_loop(f->lower, &block, "column", filter_first_column(f), filter_last_column(f), LOOP_ROLLED);
    if (f->x_vectors) {
        block = &stmt_lanes(r->arena, block, f->lane, (uint32_t)f->lanes)->body;
    } else {
        Stmt *loop = stmt_for(r->arena, block, f->lane, 0, least(f->lanes, f->conv.channels), 1, LOOP_SERIAL);
        if (f->conv.channels > f->lanes && f->conv.channels % f->lanes) {
            loop->clamp_high = true;
            loop->high_most = index_add(r->arena, index_constant(f->conv.channels),
                                        index_scale(r->arena, index_var(r->arena, f->channels), -f->lanes));
        }
        block = &loop->body;
    }
    down(r, block, column, inside);
}

/* Rows of tiles all of whose rows are inside the image need no bounds. */
static void all_down(const ImageRow *r, Block *block)
{
    const Filter *f = r->f;
    int64_t m = f->form.results, size = f->form.size;
    int64_t begin = ceil_div(most(0, f->h.before), m), room = f->h.in + f->h.before - size;
    int64_t end = room < 0 ? 0 : room / m + 1, rows = f->rows * f->blocks;
    if (begin == 0 && end >= rows)
        columns_down(r, block, true);
    else if (begin >= least(end, rows))
        columns_down(r, block, false);
    else {
        Stmt *both = stmt_if(r->arena, block, r->tile_row, begin, least(end, rows));
        columns_down(r, &both->body, true);
        columns_down(r, &both->other, false);
    }
}

static void across(const ImageRow *r, Block *block)
{
    const Filter *f = r->f;
    const Expr *to[WINOGRAD_MOST_SIZE];
    int64_t size = f->form.size;
    uint32_t tiles = lower_scratch(f->lower, f->piece[FILTER_TILES]);
    Index i = lower_point_loop(f->lower, &block, "r", 0, size, LOOP_ROLLED);
    Index t = lower_point_loop(f->lower, &block, "t", 0, f->tile_columns, LOOP_ROLLED);
    block = &stmt_lanes(r->arena, block, f->lane, (uint32_t)f->lanes)->body;
    const Local *d = filter_line(f, block, true, f->form.size);
    for (int64_t j = 0; j < size; j++) {
        Index column = index_add(r->arena, index_scale(r->arena, t, f->form.results), index_constant(j));
        stmt_assign(r->arena, block, d, index_constant(0), index_constant(j),
                    expr_load(r->arena, DT_F32, r->line, line_at(r, i, column)));
    }
    filter_forward(f, block, d, to);
    Index tile = index_add(r->arena, index_scale(r->arena, r->row, f->tile_columns), t);
    for (int64_t j = 0; j < size; j++) {
        Index point = index_add(r->arena, index_scale(r->arena, i, size), index_constant(j));
        Index at = filter_at(f, (Index[]){point, index_var(r->arena, f->channels), tile},
                             (int64_t[]){0, f->channel_vectors, f->tiles}, 3);
        stmt_store(r->arena, block, tiles, at, to[j]);
    }
}

void filter_image(Filter *f, Block *block)
{
    Arena *arena = f->lower->arena;
    ImageRow r = {.f = f, .arena = arena, .line = lower_scratch(f->lower, f->piece[FILTER_LINE])};
    if (f->channel_vectors > 1)
        block = &stmt_for(arena, block, f->channels, 0, f->channel_vectors, 1, LOOP_PARALLEL)->body;
    clear_outside(&r, block);
    r.row = lower_point_loop(f->lower, &block, "row", 0, f->rows, LOOP_SERIAL);
    r.tile_row = index_add(arena, index_scale(arena, index_var(arena, f->block), f->rows), r.row);
    all_down(&r, block);
    across(&r, block);
}
