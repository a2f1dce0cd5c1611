/* The products of a block, by register tiles (winograd.h): for each element of a tile a matrix product of the block's
 * tiles, rows of so many channels, by a panel of weights. */
#include "kernel/lower/winograd.h"

#define LINE 16 /* floats of a cache line */

typedef struct Products {
    const Filter *f;
    Lower *lower;
    Arena *arena;
    const FilterPanels *panels;
    uint32_t from, to; /* scratch: tiles, products */
    Index point;       /* element of a tile */
    Index first;       /* tile */
    uint32_t pixels;
    int64_t *offset;
    const Local *acc;
    int64_t tiles; /* of registers, that pass over a panel's weights */
    Index number;  /* of this one */
} Products;

/* Where the channels of a vector begin, in the tiles and in the weights. */
typedef struct Depth {
    Index from, weights;
} Depth;

static Depth depth_at(const Products *p, Block *block, Index vector)
{
    const Filter *f = p->f;
    Arena *arena = p->arena;
    Index from = index_add(arena, index_scale(arena, p->point, f->channel_vectors), vector);
    from = index_add(arena, index_scale(arena, from, f->tiles), p->first);
    Index row = index_scale(arena, index_var(arena, p->panels->panel), (int64_t)f->form.size * f->form.size);
    row = index_scale(arena, index_add(arena, row, p->point), f->conv.channels);
    row = index_add(arena, row, index_scale(arena, vector, f->lanes));
    return (Depth){
        lower_named_address(p->lower, block, "at", index_scale(arena, from, f->lanes)),
        lower_named_address(p->lower, block, "weights", index_scale(arena, row, p->panels->vectors * f->lanes))};
}

/* A step of the depth: each tile's element of the channel by a row of the panel. */
static void step(const Products *p, Block *block, const Depth *depth, Index channel)
{
    const Filter *f = p->f;
    Arena *arena = p->arena;
    const Expr *second[FILTER_MOST_PIXELS];
    uint32_t vectors = (uint32_t)p->panels->vectors;
    const Local *weight = lower_registers(p->lower, "w", DT_F32, true, 1, vectors);
    const Local *element = lower_local(p->lower, "s", DT_F32, false);
    stmt_local(arena, block, weight, NULL);
    stmt_local(arena, block, element, NULL);
    Index row = index_add(arena, depth->weights, index_scale(arena, channel, vectors * f->lanes));
    row = index_add(arena, row, index_var(arena, f->lane));
    for (uint32_t v = 0; v < vectors; v++)
        second[v] =
            expr_load(arena, DT_F32, p->panels->weights, index_add(arena, row, index_constant((int64_t)v * f->lanes)));
    OuterProduct product = {.rows = p->pixels,
                            .vectors = vectors,
                            .sum = p->acc,
                            .vector = weight,
                            .element = element,
                            .valid = UINT32_MAX,
                            .first = {p->from, DT_F32, index_add(arena, depth->from, channel)},
                            .offset = p->offset,
                            .second = second};
    lower_outer_product(p->lower, block, &product);
}

/* The weights of the next element are fetched while these are used, a share by each register tile: where these are few
 * some lines at every channel, for as many at once as a vector has would keep loads waiting; else some at every vector.
 */
typedef struct Prefetch {
    Index next;                    /* where the share starts */
    int64_t at_channel, at_vector; /* lines */
} Prefetch;

static Prefetch plan_prefetch(const Products *p, Block *block)
{
    const Filter *f = p->f;
    Arena *arena = p->arena;
    int64_t width = p->panels->vectors * f->lanes, all = f->conv.channels * width, lines = width / LINE;
    int64_t points = (int64_t)f->form.size * f->form.size, last = (points * p->panels->count - 1) * all;
    Prefetch ahead = {.at_channel = lines / p->tiles};
    ahead.at_vector = ahead.at_channel ? 0 : f->lanes * lines / p->tiles;
    if (f->lower->target->dialect != DIALECT_VECTOR || f->conv.channels < f->lanes)
        return (Prefetch){.next = index_constant(0)};
    Index next = index_scale(arena, index_var(arena, p->panels->panel), points);
    next = index_scale(arena, index_add(arena, index_add(arena, next, p->point), index_constant(1)), all);
    const Local *local = lower_local(f->lower, "next", DT_I64, false);
    stmt_local(arena, block, local,
               expr_word(arena, WORD_MIN, DT_I64, expr_index(arena, DT_I64, next),
                         expr_number(arena, DT_I64, (double)last), NULL));
    int64_t steps = f->conv.channels / f->lanes * (ahead.at_vector + f->lanes * ahead.at_channel);
    ahead.next = index_add(arena, index_data(arena, expr_local(arena, local), 0, last),
                           index_scale(arena, p->number, steps * LINE));
    return ahead;
}

/* `lines` at each of `steps` so far. */
static void prefetch(const Products *p, Block *block, Index next, int64_t lines, Index steps)
{
    for (int64_t i = 0; i < lines; i++) {
        Index line = index_add(p->arena, index_scale(p->arena, steps, lines * LINE), index_constant(i * LINE));
        stmt_prefetch(p->arena, block, p->panels->weights, index_add(p->arena, next, line), 2);
    }
}

static void sum_up(const Products *p, Block *block)
{
    const Filter *f = p->f;
    Arena *arena = p->arena;
    int64_t whole = f->conv.channels / f->lanes, rest = f->conv.channels % f->lanes;
    Prefetch ahead = plan_prefetch(p, block);
    Block *inner = block;
    if (whole) {
        Index vector = filter_loop(f, &inner, "block", 0, whole, LOOP_ROLLED);
        Depth depth = depth_at(p, inner, vector);
        prefetch(p, inner, ahead.next, ahead.at_vector, vector);
        Index channel = filter_loop(f, &inner, "c", 0, f->lanes, LOOP_ROLLED);
        prefetch(p, inner, ahead.next, ahead.at_channel,
                 index_add(arena, index_scale(arena, vector, f->lanes), channel));
        step(p, inner, &depth, channel);
    }
    if (rest) {
        Depth depth = depth_at(p, block, index_constant(whole));
        Index channel = filter_loop(f, &block, "c", 0, rest, LOOP_ROLLED);
        step(p, block, &depth, channel);
    }
}

static void register_tile(Products *p, Block *block)
{
    const Filter *f = p->f;
    Arena *arena = p->arena;
    int64_t vectors = p->panels->vectors, size = f->form.size;
    block = &stmt_lanes(arena, block, f->lane, (uint32_t)f->lanes)->body;
    p->acc = lower_registers(p->lower, "acc", DT_F32, true, p->pixels, vectors);
    stmt_local(arena, block, p->acc, expr_number(arena, DT_F32, 0));
    sum_up(p, block);
    for (uint32_t i = 0; i < p->pixels; i++)
        for (int64_t v = 0; v < vectors; v++) {
            Index tile = index_add(arena, p->first, index_constant(i));
            Index at =
                filter_at(f, (Index[]){index_constant(v), p->point, tile}, (int64_t[]){0, size * size, f->tiles}, 3);
            stmt_store(arena, block, p->to, at, expr_local_at(arena, p->acc, index_constant(i), index_constant(v)));
        }
}

/* `count` register tiles of so many tiles each. */
static void register_tiles(Products *p, Block *block, int64_t first, int64_t count, int64_t pixels)
{
    if (!count)
        return;
    Index t = filter_loop(p->f, &block, "t", 0, count, LOOP_SERIAL);
    p->pixels = (uint32_t)pixels;
    p->number = index_add(p->arena, t, index_constant(first / pixels)); /* none stands before the wide ones */
    p->first = index_add(p->arena, index_scale(p->arena, t, pixels), index_constant(first));
    register_tile(p, block);
}

/* Tiles of a block in register tiles of balanced size: 49 is 13, 12, 12, 12. */
void filter_products(Filter *f, Block *block, const FilterPanels *panels)
{
    Products p = {.f = f, .lower = f->lower, .arena = f->lower->arena, .panels = panels};
    int64_t count = ceil_div(f->tiles, f->pixels), pixels = f->tiles / count, wide = f->tiles % count;
    p.from = lower_scratch(f->lower, f->piece[FILTER_TILES]);
    p.to = lower_scratch(f->lower, f->piece[FILTER_PRODUCTS]);
    p.offset = ARENA_ARRAY(p.arena, int64_t, FILTER_MOST_PIXELS);
    for (int64_t i = 0; i < FILTER_MOST_PIXELS; i++)
        p.offset[i] = i * f->lanes;
    p.tiles = count;
    p.point = filter_loop(f, &block, "point", 0, (int64_t)f->form.size * f->form.size, LOOP_SERIAL);
    register_tiles(&p, block, 0, wide, pixels + 1);
    register_tiles(&p, block, wide * (pixels + 1), count - wide, pixels);
}
