/* The weights of a contraction by bundles, and one of its tiles. */
#include "kernel/lower/pairs.h"

#include <string.h>

/* Packing */

typedef struct Digit {
    const Var *var;
    int64_t extent, times;  /* of the variable, from one of the digit to the next */
    int64_t columns, depth; /* towards the bounds */
} Digit;

static int64_t bundle_step(const Pairs *p, const PairsPanels *panels)
{
    return bundle_count(p->bundle) * panels->span.vectors * p->lanes;
}

#define PART_DIGIT 2

static void pack(Pairs *p, PairsPanels *panels)
{
    Arena *arena = p->lower->arena;
    int64_t width = panels->span.vectors * p->lanes, count_in = bundle_count(p->bundle), step[8], elements = 1;
    const Digit digit[] = {
        {p->group, p->conv.groups, 1, 0, 0}, {p->column, panels->span.count, width, width, 0},
        {NULL, p->parts, 0, 0, 0},           {p->kh, p->kh->high + 1, 1, 0, 0},
        {p->kw, p->kw->high + 1, 1, 0, 0},   {p->channel, p->room / count_in, count_in, 0, count_in},
        {p->column, width, 1, 1, 0},         {p->channel, count_in, 1, 0, 1},
    };
    const uint32_t count = sizeof digit / sizeof *digit;
    Packing packing;
    memset(&packing, 0, sizeof packing); /* compared as bytes */
    for (uint32_t i = count; i-- > 0;) {
        step[i] = elements;
        elements *= digit[i].extent;
    }
    int64_t along;
    for (uint32_t i = 0; i < count; i++) {
        along = 0;
        if (digit[i].var)
            index_factor(p->weights_from, digit[i].var, &along);
        packing.extent[i] = digit[i].extent;
        packing.stride[i] = digit[i].times * along;
        packing.bound[0].factor[i] = digit[i].columns;
        packing.bound[1].factor[i] = digit[i].depth;
    }
    packing.rank = count;
    panels->rest = step[PART_DIGIT];
    packing.parts = p->parts > 1 ? p->parts : 0;
    packing.rest = p->parts > 1 ? panels->rest : 0;
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

static Index start_at(const Pairs *p, const Var *lane, uint32_t vector)
{
    return index_add(p->lower->arena, index_constant(vector * p->lanes), index_var(p->lower->arena, lane));
}

/* 0, or what makes good for the shift */
static void begin_sums(Tile *t, Block *block)
{
    Arena *arena = t->arena;
    const Pairs *p = t->pairs;
    const Expr *start[PAIRS_MOST_VECTORS];
    for (uint32_t v = 0; v < t->vectors; v++)
        start[v] = !pairs_starts(p) ? expr_number(arena, pairs_sum_dtype(p), 0)
                                    : named(t, block, "start",
                                            expr_load(arena, DT_I32, lower_scratch(t->lower, p->piece[PAIRS_STARTS]),
                                                      start_at(p, t->lane, v)));
    for (uint32_t i = 0; i < t->pixels; i++)
        for (uint32_t v = 0; v < t->vectors; v++)
            stmt_assign(arena, block, t->acc, index_constant(i), index_constant(v), start[v]);
}

/* Of the panel's vector, those of one bundle of the depth, from w on. */
static const Expr *weights_of(const Pairs *p, const PairsPanels *panels, const Var *lane, uint32_t vector, Index w)
{
    Arena *arena = p->lower->arena;
    int64_t count = bundle_count(p->bundle);
    Index at = index_add(arena, w, index_constant(count * vector * p->lanes));
    at = index_add(arena, at, index_scale(arena, index_var(arena, lane), count));
    DType dtype = value_type(p->lower->graph, p->weights)->dtype;
    return expr_bundle(arena, p->bundle, dtype, panels->buffer, at, p->zero);
}

/* sum += pixel * weights, of one bundle of the depth. */
static void one_bundle(Tile *t, Block *block, Index x, Index w)
{
    Arena *arena = t->arena;
    const Pairs *p = t->pairs;
    uint32_t image = lower_scratch(t->lower, p->piece[PAIRS_IMAGE]);
    int64_t step = pairs_step(&t->at->part->w) * p->pitch;
    const Expr *weight[PAIRS_MOST_VECTORS];
    for (uint32_t v = 0; v < t->vectors; v++)
        weight[v] = named(t, block, "w", weights_of(p, t->at->panels, t->lane, v, w));
    for (uint32_t i = 0; i < t->pixels; i++) {
        Index at = index_add(arena, x, index_constant(i * step)), row = index_constant(i);
        const Expr *pixel = named(t, block, "x", expr_bundle(arena, p->bundle, pairs_dtype(p), image, at, 0));
        for (uint32_t v = 0; v < t->vectors; v++) {
            Index column = index_constant(v);
            stmt_assign(arena, block, t->acc, row, column,
                        expr_dot(arena, p->bundle, expr_local_at(arena, t->acc, row, column), pixel, weight[v]));
        }
    }
}

static void add_product(Tile *t, Block *block, Index x, Index w)
{
    Arena *arena = t->arena;
    const Pairs *p = t->pairs;
    MatrixProduct product = pairs_tile_shape(p, t->at->part, t->at->panels, t->pixels);
    DType weights = p->parts > 1 ? DT_BF16 : value_type(t->lower->graph, p->weights)->dtype;
    product.maker = PRODUCT_TILES_ADD;
    stmt_product(arena, block, &product, lower_scratch(t->lower, p->piece[PAIRS_SUMS]), index_constant(0),
                 expr_load(arena, pairs_dtype(p), lower_scratch(t->lower, p->piece[PAIRS_IMAGE]), x),
                 expr_load(arena, weights, t->at->panels->buffer, w));
}

/* The same of as many bundles as a tile register has in a row. */
static void add_tiles(Tile *t, Block *block, Index x, Index w)
{
    const Pairs *p = t->pairs;
    int64_t image = p->image_rest, weights = t->at->panels->rest;
    for (uint32_t sum = 0; sum < p->parts; sum++)
        for (uint32_t part = 0; part <= sum; part++)
            add_product(t, block, index_add(t->arena, x, index_constant(part * image)),
                        index_add(t->arena, w, index_constant((sum - part) * weights)));
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
    int64_t taps = part->w.size, run = pairs_run(p, part), runs = taps * p->room / run;
    int64_t step = bundle_step(p, t->at->panels), count = bundle_count(p->bundle);
    Index kh, kw, bundle;
    block = add_loop(t, block, "kh", part->h.size, &kh);
    block = add_loop(t, block, "kw", runs, &kw);
    Index line = index_add(arena, t->at->line, index_scale(arena, kh, part->h.dilation));
    Index column =
        index_add(arena, index_scale(arena, t->at->w, pairs_step(&part->w)), index_scale(arena, kw, part->w.dilation));
    Index x = index_scale(arena, index_add(arena, index_scale(arena, line, part->in_width), column), p->pitch);
    Index tap = index_add(arena, index_scale(arena, kh, taps), kw);
    Index w = index_add(arena, t->at->panels->at, index_scale(arena, tap, p->room / count * step));
    x = lower_named_address(t->lower, block, "at", x);
    w = lower_named_address(t->lower, block, "weights", w);
    int64_t words = p->tiles ? p->words : 1;
    block = add_loop(t, block, "k", run / count / words, &bundle);
    x = index_add(arena, x, index_scale(arena, bundle, words * count));
    w = index_add(arena, w, index_scale(arena, bundle, words * step));
    p->tiles ? add_tiles(t, block, x, w) : one_bundle(t, block, x, w);
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
    const Expr *sum = expr_local_at(t->arena, t->acc, index_constant(pixel), index_constant(vector));
    return sum->dtype == DT_F32 ? sum : expr_cast(t->arena, DT_F32, sum);
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

static const Expr *sum_in_scratch(Tile *t, Index at)
{
    const Pairs *p = t->pairs;
    DType dtype = p->tiles ? pairs_sum_dtype(p) : DT_F32;
    const Expr *sum = expr_load(t->arena, dtype, lower_scratch(t->lower, p->piece[PAIRS_SUMS]), at);
    return dtype == DT_F32 ? sum : expr_cast(t->arena, DT_F32, sum);
}

static void finish_one_by_one(Tile *t, Block *block)
{
    Pairs *p = t->pairs;
    const PairsPanels *panels = t->at->panels;
    int64_t width = t->vectors * p->lanes;
    int64_t columns = panels->span.partial ? p->columns - panels->span.first * p->lanes : width;
    Index column, pixel;
    block = add_loop(t, block, "o", columns, &column);
    block = add_loop(t, block, "p", t->pixels, &pixel);
    Block *outer = lower_enter(t->lower, block);
    Index at = index_add(t->arena, index_scale(t->arena, pixel, width), column);
    finish(t, sum_in_scratch(t, at), pixel, index_add(t->arena, panel_column(t, 0), column));
    lower_leave(t->lower, outer);
}

/* Results that no vector can store go through scratch and are finished one by one. */
static void store_one_by_one(Tile *t, Block *block, Block *inner)
{
    Pairs *p = t->pairs;
    uint32_t scratch = lower_scratch(t->lower, p->piece[PAIRS_SUMS]);
    int64_t width = t->vectors * p->lanes;
    for (uint32_t i = 0; i < t->pixels; i++)
        for (uint32_t v = 0; v < t->vectors; v++) {
            Index at = index_constant(i * width + v * p->lanes);
            stmt_store(t->arena, inner, scratch, index_add(t->arena, at, index_var(t->arena, t->lane)),
                       sum_of(t, i, v));
        }
    finish_one_by_one(t, block);
}

/* Of tile registers, which only memory reads: row by row. */
static void finish_rows(Tile *t, Block *block)
{
    Arena *arena = t->arena;
    int64_t lanes = t->pairs->lanes;
    Index pixel;
    block = add_loop(t, block, "p", t->pixels, &pixel);
    block = &stmt_lanes(arena, block, t->lane, (uint32_t)lanes)->body;
    Block *outer = lower_enter(t->lower, block);
    for (uint32_t v = 0; v < t->vectors; v++) {
        Index lane = index_var(arena, t->lane), first = index_constant(v * lanes);
        Index at = index_add(arena, index_scale(arena, pixel, t->vectors * lanes), first);
        const Local *sum = lower_local(t->lower, "sum", DT_F32, true);
        stmt_local(arena, block, sum, sum_in_scratch(t, index_add(arena, at, lane)));
        finish(t, expr_local(arena, sum), pixel, index_add(arena, panel_column(t, v), lane));
    }
    lower_leave(t->lower, outer);
}

MatrixProduct pairs_tile_shape(const Pairs *p, const PairsPart *part, const PairsPanels *panels, uint32_t pixels)
{
    return (MatrixProduct){.rows = pixels,
                           .columns = panels->span.vectors * p->lanes,
                           .depth = p->words * bundle_count(p->bundle),
                           .left_stride = pairs_step(&part->w) * p->pitch,
                           .right_stride = bundle_step(p, panels),
                           .stride = panels->span.vectors * p->lanes,
                           .bundle = p->bundle};
}

static void tile_registers(Tile *t, Block *block)
{
    Arena *arena = t->arena;
    const Pairs *p = t->pairs;
    uint32_t sums = lower_scratch(t->lower, p->piece[PAIRS_SUMS]);
    MatrixProduct product = pairs_tile_shape(p, t->at->part, t->at->panels, t->pixels);
    const Expr *start = NULL;
    if (pairs_starts(p))
        start = expr_load(arena, DT_I32, lower_scratch(t->lower, p->piece[PAIRS_STARTS]), index_constant(0));
    product.maker = PRODUCT_TILES_BEGIN;
    stmt_tile_sums(arena, block, &product, sums, index_constant(0), start);
    reduce(t, block);
    product.maker = PRODUCT_TILES_END;
    stmt_tile_sums(arena, block, &product, sums, index_constant(0), NULL);
    if (p->one_by_one || t->at->panels->span.partial)
        finish_one_by_one(t, block);
    else
        finish_rows(t, block);
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
    if (p->tiles) {
        tile_registers(&t, block);
        return;
    }
    Block *inner = &stmt_lanes(arena, block, t.lane, (uint32_t)p->lanes)->body;
    t.acc = lower_registers(p->lower, "acc", pairs_sum_dtype(p), true, t.pixels, t.vectors);
    stmt_local(arena, inner, t.acc, NULL);
    begin_sums(&t, inner);
    reduce(&t, inner);
    if (p->one_by_one || at->panels->span.partial)
        store_one_by_one(&t, block, inner);
    else
        store_vectors(&t, inner);
}

/* What tiles start from */

const Expr *pairs_zero_point(const Pairs *p)
{
    Index position[MAX_RANK];
    for (uint32_t d = 0; d < MAX_RANK; d++)
        position[d] = index_constant(0);
    return lower_value(p->lower, p->zero_point, position);
}

#define MOST_STRANDS 4 /* sums side by side, as each waits for the one before */

typedef struct Start {
    Pairs *pairs;
    const PairsPanels *panels;
    const Var *lane;
    const Local *sum;  /* [strand][vector] */
    const Local *zero; /* the zero point, as i32; NULL: the sums are of weights times the shift already */
    uint32_t vectors;
    int64_t strands;
} Start;

static const Expr *strand(const Start *s, int64_t i, uint32_t vector)
{
    return expr_local_at(s->pairs->lower->arena, s->sum, index_constant(i), index_constant(vector));
}

static void sum_weights(const Start *s, Block *block, Index first)
{
    const Pairs *p = s->pairs;
    Arena *arena = p->lower->arena;
    uint32_t shift = p->zero_point == NONE ? (uint32_t)p->shift : 1;
    const Expr *shifts = expr_number(arena, DT_I32, (int32_t)(shift * 0x01010101u));
    for (int64_t i = 0; i < s->strands; i++)
        for (uint32_t v = 0; v < s->vectors; v++) {
            Index bundle = index_add(arena, first, index_constant(i));
            Index w = index_add(arena, s->panels->at, index_scale(arena, bundle, bundle_step(p, s->panels)));
            stmt_assign(arena, block, s->sum, index_constant(i), index_constant(v),
                        expr_dot(arena, p->bundle, strand(s, i, v), shifts, weights_of(p, s->panels, s->lane, v, w)));
        }
}

static void store_starts(const Start *s, Block *block)
{
    const Pairs *p = s->pairs;
    Arena *arena = p->lower->arena;
    for (uint32_t v = 0; v < s->vectors; v++) {
        for (int64_t i = 1; i < s->strands; i++)
            stmt_assign(arena, block, s->sum, index_constant(0), index_constant(v),
                        expr_word(arena, WORD_ADD, DT_I32, strand(s, 0, v), strand(s, i, v), NULL));
        const Expr *start = expr_word(arena, WORD_SUB, DT_I32, expr_number(arena, DT_I32, 0), strand(s, 0, v), NULL);
        if (s->zero)
            start = expr_word(arena, WORD_MUL, DT_I32, start, expr_local(arena, s->zero), NULL);
        stmt_store(arena, block, lower_scratch(p->lower, p->piece[PAIRS_STARTS]), start_at(p, s->lane, v), start);
    }
}

/* Less the weights of each column, of all taps, times the shift or the zero point: what a pixel has too much that is
 * all padding. */
void pairs_start(Pairs *p, const PairsPanels *panels, Block *block)
{
    Lower *lower = p->lower;
    Arena *arena = lower->arena;
    int64_t bundles = (p->kh->high + 1) * (p->kw->high + 1) * p->room / bundle_count(p->bundle), strands = MOST_STRANDS;
    while (bundles % strands)
        strands--;
    const Var *lane = index_var_new(arena, "lane", 0, p->lanes - 1);
    const Var *k = index_var_new(arena, "k", 0, bundles / strands - 1);
    Start s = {p, panels, lane, NULL, NULL, (uint32_t)panels->span.vectors, strands};
    if (p->zero_point != NONE) {
        s.zero = lower_local(lower, "zero", DT_I32, false);
        stmt_local(arena, block, s.zero, expr_cast(arena, DT_I32, pairs_zero_point(p)));
    }
    Block *inner = &stmt_lanes(arena, block, lane, (uint32_t)p->lanes)->body;
    s.sum = lower_registers(lower, "sum", DT_I32, true, strands, s.vectors);
    stmt_local(arena, inner, s.sum, NULL);
    for (int64_t i = 0; i < strands; i++)
        for (uint32_t v = 0; v < s.vectors; v++)
            stmt_assign(arena, inner, s.sum, index_constant(i), index_constant(v), expr_number(arena, DT_I32, 0));
    if (bundles > strands)
        sum_weights(&s, &stmt_for(arena, inner, k, 0, bundles / strands, 1, LOOP_ROLLED)->body,
                    index_scale(arena, index_var(arena, k), strands));
    else
        sum_weights(&s, inner, index_constant(0));
    store_starts(&s, inner);
}
