/* The results of a block (winograd.h): the products of a vector of outputs, transformed downwards into a strip of rows,
 * and across from there, row by row. */
#include "kernel/lower/winograd.h"

typedef struct ResultRow {
    const Filter *f;
    Lower *lower;
    Arena *arena;
    const FilterPanels *panels;
    uint32_t strip;
    Index output; /* the vector's first */
    Index row, strip_row;
} ResultRow;

static Index strip_at(const ResultRow *r, Index row, Index tile, Index point)
{
    return filter_at(r->f, (Index[]){row, tile, point}, (int64_t[]){0, r->f->tile_columns, r->f->form.size}, 3);
}

static void down(const ResultRow *r, Block *block, Index vector)
{
    const Filter *f = r->f;
    Arena *arena = r->arena;
    int64_t size = f->form.size;
    uint32_t products = lower_scratch(r->lower, f->piece[FILTER_PRODUCTS]);
    const Expr *to[WINOGRAD_MOST_RESULTS];
    Index row = lower_point_loop(f->lower, &block, "r", 0, f->rows, LOOP_SERIAL);
    Index t = lower_point_loop(f->lower, &block, "t", 0, f->tile_columns, LOOP_SERIAL);
    Index j = lower_point_loop(f->lower, &block, "j", 0, size, LOOP_ROLLED);
    block = &stmt_lanes(arena, block, f->lane, (uint32_t)f->lanes)->body;
    const Local *d = filter_line(f, block, true, size);
    Index tile = index_add(arena, index_scale(arena, row, f->tile_columns), t);
    for (int64_t i = 0; i < size; i++) {
        Index point = index_add(arena, index_constant(i * size), j);
        Index at = filter_at(f, (Index[]){vector, point, tile}, (int64_t[]){0, size * size, f->tiles}, 3);
        stmt_assign(arena, block, d, index_constant(0), index_constant(i), expr_load(arena, DT_F32, products, at));
    }
    filter_backward(f, block, d, f->form.results, to);
    for (uint32_t i = 0; i < f->form.results; i++) {
        Index to_row = index_add(arena, index_scale(arena, row, f->form.results), index_constant(i));
        stmt_store(arena, block, r->strip, strip_at(r, to_row, t, j), to[i]);
    }
}

static bool one_by_one(const ResultRow *r)
{
    return r->f->one_by_one || r->panels->partial;
}

/* What the rest of the kernel makes of a result. */
static void finish(const ResultRow *r, Block *block, Index output, Index column, const Expr *value)
{
    const Filter *f = r->f;
    Index position[MAX_RANK];
    const Local *y = lower_local(r->lower, "y", DT_F32, !one_by_one(r));
    Block *outer = lower_enter(r->lower, block);
    if (f->node->in_count > 2)
        value = expr_word(r->arena, WORD_ADD, DT_F32, value, lower_value(r->lower, f->node->in[2], &output), NULL);
    stmt_local(r->arena, block, y, value);
    filter_position(f, output, r->row, column, position);
    r->lower->bound[f->node->out[0]] = expr_local(r->arena, y);
    lower_stores(r->lower, position);
    r->lower->bound[f->node->out[0]] = NULL;
    lower_leave(r->lower, outer);
}

static void finish_vectors(const ResultRow *r, Block *block, Index column, const Expr *const *value, int64_t count)
{
    Index output = index_add(r->arena, r->output, index_var(r->arena, r->f->lane));
    for (int64_t i = 0; i < count; i++)
        finish(r, block, output, index_add(r->arena, column, index_constant(i)), value[i]);
}

/* `block` is that of the lanes, `after` the one around it. */
static void finish_one_by_one(const ResultRow *r, Block *block, Block *after, Index column, const Expr *const *value,
                              int64_t count)
{
    const Filter *f = r->f;
    Arena *arena = r->arena;
    uint32_t sums = lower_scratch(r->lower, f->piece[FILTER_SUMS]);
    for (int64_t i = 0; i < count; i++)
        stmt_store(arena, block, sums, filter_at(f, (Index[]){index_constant(i)}, NULL, 1), value[i]);
    const Var *lane = index_var_new(arena, "o", 0, f->lanes - 1);
    Stmt *loop = stmt_for(arena, after, lane, 0, f->lanes, 1, LOOP_SERIAL);
    if (r->panels->partial) {
        loop->clamp_high = true;
        loop->high_most = index_add(arena, index_constant(f->conv.outputs), index_scale(arena, r->output, -1));
    }
    Block *inner = &loop->body;
    Index i = lower_point_loop(f->lower, &inner, "p", 0, count, LOOP_SERIAL);
    Index at = index_add(arena, index_scale(arena, i, f->lanes), index_var(arena, lane));
    finish(r, inner, index_add(arena, r->output, index_var(arena, lane)), index_add(arena, column, i),
           expr_load(arena, DT_F32, sums, at));
}

/* Tiles of a row of which `count` columns are results. */
static void across(const ResultRow *r, Block *block, int64_t begin, int64_t end, int64_t count)
{
    const Filter *f = r->f;
    const Expr *to[WINOGRAD_MOST_RESULTS];
    if (begin >= end)
        return;
    Index t = lower_point_loop(f->lower, &block, "t", begin, end, LOOP_ROLLED);
    Block *after = block;
    block = &stmt_lanes(r->arena, block, f->lane, (uint32_t)f->lanes)->body;
    int64_t size = f->form.size - (count < f->form.results);
    const Local *d = filter_line(f, block, true, size);
    for (int64_t j = 0; j < size; j++)
        stmt_assign(r->arena, block, d, index_constant(0), index_constant(j),
                    expr_load(r->arena, DT_F32, r->strip, strip_at(r, r->strip_row, t, index_constant(j))));
    filter_backward(f, block, d, count, to);
    Index column = index_scale(r->arena, t, f->form.results);
    if (one_by_one(r))
        finish_one_by_one(r, block, after, column, to, count);
    else
        finish_vectors(r, block, column, to, count);
}

/* Rows of the result that a block makes, and the first of them. */
static int64_t rows_of(const Filter *f)
{
    return least(f->rows * f->form.results, f->h.out);
}

static Index first_row(const Filter *f)
{
    return index_scale(f->lower->arena, index_var(f->lower->arena, f->block), rows_of(f));
}

/* The rows of the block that there are. */
static Block *rows_of_block(ResultRow *r, Block *block)
{
    const Filter *f = r->f;
    Arena *arena = r->arena;
    int64_t each = rows_of(f);
    Index first = first_row(f);
    const Var *row = index_var_new(arena, "row", 0, each - 1);
    Stmt *loop = stmt_for(arena, block, row, 0, each, 1, LOOP_SERIAL);
    loop->clamp_high = f->h.out % each != 0;
    loop->high_most = index_add(arena, index_constant(f->h.out), index_scale(arena, first, -1));
    r->strip_row = index_var(arena, row);
    r->row = index_add(arena, first, r->strip_row);
    return &loop->body;
}

void filter_results(Filter *f, Block *block, const FilterPanels *panels)
{
    Arena *arena = f->lower->arena;
    ResultRow r = {.f = f, .lower = f->lower, .arena = arena, .panels = panels};
    int64_t whole = f->w.out / f->form.results, rest = f->w.out % f->form.results;
    r.strip = lower_scratch(f->lower, f->piece[FILTER_STRIP]);
    Index vector = lower_point_loop(f->lower, &block, "v", 0, panels->vectors, LOOP_SERIAL);
    Index number = index_add(arena, index_scale(arena, index_var(arena, panels->panel), panels->vectors), vector);
    number = index_add(arena, number, index_constant(panels->first));
    r.output = index_scale(arena, number, f->lanes);
    if (f->pool)
        f->lower->band = (Band){f->pool->in[0], lower_scratch(f->lower, f->piece[FILTER_BAND]), first_row(f), false};
    down(&r, block, vector);
    block = rows_of_block(&r, block);
    across(&r, block, 0, whole, f->form.results);
    across(&r, block, whole, whole + (rest > 0), rest);
}

int64_t filter_band_elements(const Filter *f)
{
    return f->pool ? rows_of(f) * f->w.out * f->conv.outputs : 0;
}

/* The rows of the pooling whose windows are in the block. */
void filter_pool(Filter *f, Block *block)
{
    Lower *lower = f->lower;
    Arena *arena = lower->arena;
    int64_t rows = value_shape(lower->graph, f->pool->out[0])->dim[2];
    int64_t each = least(ceil_div(rows_of(f), f->pool_stride), rows);
    Index first = index_scale(arena, index_var(arena, f->block), each);
    const Var *row = index_var_new(arena, "pooled", 0, each - 1);
    Stmt *loop = stmt_for(arena, block, row, 0, each, 1, each > 1 ? LOOP_PARALLEL : LOOP_SERIAL);
    loop->clamp_high = each * f->blocks > rows; /* the last blocks may have none */
    loop->high_most = index_add(arena, index_constant(rows), index_scale(arena, first, -1));
    Block *outer = lower_enter(lower, &loop->body);
    lower->band.filled = true;
    lower_window_row(lower, f->pool, index_var(arena, f->image), index_add(arena, first, index_var(arena, row)));
    lower->band.filled = false;
    lower_leave(lower, outer);
}
