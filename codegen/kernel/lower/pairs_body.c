/* The weights of a contraction by pairs, and one of its tiles. */
#include "kernel/lower/pairs.h"

#include <string.h>

/* Packing */

typedef struct Digit {
    const Var *var;
    int64_t extent, times;  /* of the variable, from one of the digit to the next */
    int64_t columns, depth; /* towards the bounds */
} Digit;

static int64_t pair_step(const PairsPanels *panels, int64_t lanes)
{
    return 2 * panels->span.vectors * lanes;
}

static void pack(Pairs *p, PairsPanels *panels)
{
    Arena *arena = p->lower->arena;
    int64_t width = panels->span.vectors * p->lanes, step[8], elements = 1;
    const Digit digit[] = {{p->group, p->conv.groups, 1, 0, 0},
                           {p->column, panels->span.count, width, width, 0},
                           {p->kh, p->kh->high + 1, 1, 0, 0},
                           {p->kw, p->kw->high + 1, 1, 0, 0},
                           {p->channel, p->room / 2, 2, 0, 2},
                           {p->column, width, 1, 1, 0},
                           {p->channel, 2, 1, 0, 1}};
    const uint32_t count = sizeof digit / sizeof *digit;
    Packing packing;
    memset(&packing, 0, sizeof packing); /* compared as bytes */
    for (uint32_t i = count; i-- > 0;) {
        step[i] = elements;
        elements *= digit[i].extent;
    }
    int64_t along;
    for (uint32_t i = 0; i < count; i++) {
        index_factor(p->weights_from, digit[i].var, &along);
        packing.extent[i] = digit[i].extent;
        packing.stride[i] = digit[i].times * along;
        packing.bound[0].factor[i] = digit[i].columns;
        packing.bound[1].factor[i] = digit[i].depth;
    }
    packing.rank = count;
    index_factor(p->weights_from, p->column, &along);
    packing.start = p->weights_from.constant + panels->span.first * p->lanes * along;
    packing.bound[0].most = p->columns - panels->span.first * p->lanes;
    packing.bound[1].most = p->depth;
    panels->buffer = lower_weights(p->lower, p->weights, &packing, elements);
    panels->at = index_add(arena, index_scale(arena, index_var(arena, p->group), step[0]),
                           index_scale(arena, index_var(arena, panels->panel), step[1]));
}

void pairs_pack(Pairs *p)
{
    for (uint32_t i = 0; i < p->panel_kinds; i++)
        pack(p, &p->panels[i]);
}

/* A tile */

typedef struct Tile {
    Pairs *pairs;
    Lower *lower;
    Arena *arena;
    const PairsAt *at;
    const Var *lane;
    uint32_t pixels, vectors;
    const Local *acc, *sum;
} Tile;

static const Expr *named(Tile *t, Block *block, const char *name, const Expr *expr)
{
    const Local *local = lower_local(t->lower, name, DT_I32, true);
    stmt_local(t->arena, block, local, expr);
    return expr_local(t->arena, local);
}

/* sum += pixel * weights, of one pair of the depth. */
static void one_pair(Tile *t, Block *block, Index x, Index w)
{
    Arena *arena = t->arena;
    const Pairs *p = t->pairs;
    uint32_t image = lower_scratch(t->lower, p->piece[PAIRS_IMAGE]);
    DType dtype = value_type(t->lower->graph, p->weights)->dtype;
    int64_t step = pairs_step(&t->at->part->w) * p->room;
    const Expr *weight[PAIRS_MOST_VECTORS];
    for (uint32_t v = 0; v < t->vectors; v++) {
        Index at = index_add(arena, w, index_constant(2 * v * p->lanes));
        at = index_add(arena, at, index_scale(arena, index_var(arena, t->lane), 2));
        weight[v] = named(t, block, "w", expr_pair(arena, dtype, t->at->panels->buffer, at, p->zero));
    }
    for (uint32_t i = 0; i < t->pixels; i++) {
        Index at = index_add(arena, x, index_constant(i * step)), row = index_constant(i);
        const Expr *pixel = named(t, block, "x", expr_pair(arena, DT_I16, image, at, 0));
        for (uint32_t v = 0; v < t->vectors; v++) {
            Index column = index_constant(v);
            stmt_assign(arena, block, t->acc, row, column,
                        expr_dot(arena, expr_local_at(arena, t->acc, row, column), pixel, weight[v]));
        }
    }
}

static Block *add_loop(Tile *t, Block *block, const char *name, int64_t extent, Index *index)
{
    const Var *var = index_var_new(t->arena, name, 0, extent - 1);
    *index = extent > 1 ? index_var(t->arena, var) : index_constant(0);
    return extent > 1 ? &stmt_for(t->arena, block, var, 0, extent, 1, LOOP_ROLLED)->body : block;
}

/* Where taps of a row follow one another, they and their channels are one stretch. */
static void reduce(Tile *t, Block *block)
{
    Arena *arena = t->arena;
    const Pairs *p = t->pairs;
    const PairsPart *part = t->at->part;
    int64_t taps = part->w.size, runs = part->w.dilation == 1 ? 1 : taps, run = taps / runs * p->room;
    int64_t step = pair_step(t->at->panels, p->lanes);
    Index kh, kw, pair;
    block = add_loop(t, block, "kh", part->h.size, &kh);
    block = add_loop(t, block, "kw", runs, &kw);
    Index line = index_add(arena, t->at->line, index_scale(arena, kh, part->h.dilation));
    Index column =
        index_add(arena, index_scale(arena, t->at->w, pairs_step(&part->w)), index_scale(arena, kw, part->w.dilation));
    Index x = index_scale(arena, index_add(arena, index_scale(arena, line, part->in_width), column), p->room);
    Index tap = index_add(arena, index_scale(arena, kh, taps), kw);
    Index w = index_add(arena, t->at->panels->at, index_scale(arena, tap, p->room / 2 * step));
    x = lower_named_address(t->lower, block, "at", x);
    w = lower_named_address(t->lower, block, "weights", w);
    block = add_loop(t, block, "k", run / 2, &pair);
    one_pair(t, block, index_add(arena, x, index_scale(arena, pair, 2)),
             index_add(arena, w, index_scale(arena, pair, step)));
}

static Index panel_column(Tile *t, uint32_t vector)
{
    const PanelSpan *span = &t->at->panels->span;
    int64_t lanes = t->pairs->lanes;
    return index_add(t->arena, index_constant((span->first + vector) * lanes),
                     index_scale(t->arena, index_var(t->arena, t->at->panels->panel), span->vectors * lanes));
}

static const Expr *with_bias(Tile *t, const Expr *sum, Index column)
{
    const Pairs *p = t->pairs;
    if (p->node->in_count < 3)
        return sum;
    column = index_add(t->arena, column, index_scale(t->arena, index_var(t->arena, p->group), p->columns));
    return expr_word(t->arena, WORD_ADD, DT_F32, sum, lower_value(t->lower, p->node->in[2], &column), NULL);
}

static void finish(Tile *t, const Expr *sum, Index pixel, Index column)
{
    Lower *lower = t->lower;
    ValueId result = t->pairs->node->out[0];
    Index position[MAX_RANK];
    pairs_position(t->pairs, t->at->part, t->at->row, index_add(t->arena, t->at->w, pixel), column, position);
    lower->bound[result] = with_bias(t, sum, column);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

static const Expr *sum_of(Tile *t, uint32_t pixel, uint32_t vector)
{
    return expr_cast(t->arena, DT_F32, expr_local_at(t->arena, t->acc, index_constant(pixel), index_constant(vector)));
}

static void store_vectors(Tile *t, Block *block)
{
    Block *outer = lower_enter(t->lower, block);
    for (uint32_t i = 0; i < t->pixels; i++)
        for (uint32_t v = 0; v < t->vectors; v++) {
            Index column = index_add(t->arena, panel_column(t, v), index_var(t->arena, t->lane));
            const Local *sum = lower_local(t->lower, "sum", DT_F32, true);
            stmt_local(t->arena, block, sum, sum_of(t, i, v));
            finish(t, expr_local(t->arena, sum), index_constant(i), column);
        }
    lower_leave(t->lower, outer);
}

/* Results that no vector can store go through scratch and are finished one by one. */
static void store_one_by_one(Tile *t, Block *block, Block *inner)
{
    Pairs *p = t->pairs;
    const PairsPanels *panels = t->at->panels;
    uint32_t scratch = lower_scratch(t->lower, p->piece[PAIRS_SUMS]);
    int64_t width = t->vectors * p->lanes;
    int64_t columns = panels->span.partial ? p->columns - panels->span.first * p->lanes : width;
    for (uint32_t i = 0; i < t->pixels; i++)
        for (uint32_t v = 0; v < t->vectors; v++) {
            Index at = index_constant(i * width + v * p->lanes);
            stmt_store(t->arena, inner, scratch, index_add(t->arena, at, index_var(t->arena, t->lane)),
                       sum_of(t, i, v));
        }
    Index column, pixel;
    block = add_loop(t, block, "o", columns, &column);
    block = add_loop(t, block, "p", t->pixels, &pixel);
    Block *outer = lower_enter(t->lower, block);
    Index at = index_add(t->arena, index_scale(t->arena, pixel, width), column);
    finish(t, expr_load(t->arena, DT_F32, scratch, at), pixel, index_add(t->arena, panel_column(t, 0), column));
    lower_leave(t->lower, outer);
}

void pairs_tile(Pairs *p, Block *block, const PairsAt *at)
{
    Arena *arena = p->lower->arena;
    Tile t = {.pairs = p,
              .lower = p->lower,
              .arena = arena,
              .at = at,
              .lane = index_var_new(arena, "lane", 0, p->lanes - 1),
              .pixels = at->pixels,
              .vectors = (uint32_t)at->panels->span.vectors};
    Block *inner = &stmt_lanes(arena, block, t.lane, (uint32_t)p->lanes)->body;
    t.acc = lower_registers(p->lower, "acc", DT_I32, true, t.pixels, t.vectors);
    stmt_local(arena, inner, t.acc, NULL);
    for (uint32_t i = 0; i < t.pixels; i++)
        for (uint32_t v = 0; v < t.vectors; v++)
            stmt_assign(arena, inner, t.acc, index_constant(i), index_constant(v), expr_number(arena, DT_I32, 0));
    reduce(&t, inner);
    if (p->one_by_one || at->panels->span.partial)
        store_one_by_one(&t, block, inner);
    else
        store_vectors(&t, inner);
}
