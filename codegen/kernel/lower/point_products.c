/* Products of points (point_products.h), by register tiles, as the micro-kernel of contractions has them. */
#include "kernel/lower/point_products.h"

#define LINE 16 /* floats of a cache line */

typedef struct Products {
    const PointProducts *p;
    Lower *lower;
    Arena *arena;
    int64_t lanes;
    Index point, first; /* first row of the register tile */
    uint32_t rows;
    int64_t *offset;
    const Local *acc;
    int64_t tiles; /* of registers, that pass over a panel's weights */
    Index number;  /* of this one */
} Products;

Index lower_point_loop(Lower *lower, Block **block, const char *name, int64_t begin, int64_t end, LoopKind kind)
{
    Arena *arena = lower->arena;
    if (end - begin == 1)
        return index_constant(begin);
    const Var *var = index_var_new(arena, name, begin, end - 1);
    *block = &stmt_for(arena, *block, var, begin, end, 1, kind)->body;
    return index_var(arena, var);
}

bool lower_points_fit_registers(const Target *target, int64_t rows, int64_t vectors)
{
    return rows <= POINT_MOST_ROWS && rows * vectors + 2 <= target->vector_registers;
}

/* Where a vector of the depth begins, in the rows and in the weights. */
typedef struct Depth {
    Index from, weights;
} Depth;

static Depth depth_at(const Products *s, Block *block, Index vector)
{
    const PointProducts *p = s->p;
    Arena *arena = s->arena;
    Index from = index_add(arena, index_scale(arena, s->point, p->point), index_scale(arena, vector, p->vector));
    from = index_add(arena, from, index_scale(arena, s->first, p->row));
    Index row = index_scale(arena, index_var(arena, p->panel), p->points);
    row = index_scale(arena, index_add(arena, row, s->point), p->depth);
    row = index_add(arena, row, index_scale(arena, vector, s->lanes));
    return (Depth){lower_named_address(s->lower, block, "at", from),
                   lower_named_address(s->lower, block, "weights", index_scale(arena, row, p->vectors * s->lanes))};
}

/* A step of the depth: each row's element by a row of the panel. */
static void step(const Products *s, Block *block, const Depth *depth, Index c)
{
    const PointProducts *p = s->p;
    Arena *arena = s->arena;
    uint32_t vectors = (uint32_t)p->vectors;
    const Expr **second = ARENA_ARRAY(arena, const Expr *, vectors);
    const Local *weight = lower_registers(s->lower, "w", DT_F32, true, 1, vectors);
    const Local *element = lower_local(s->lower, "s", DT_F32, false);
    stmt_local(arena, block, weight, NULL);
    stmt_local(arena, block, element, NULL);
    Index row = index_add(arena, depth->weights, index_scale(arena, c, vectors * s->lanes));
    row = index_add(arena, row, index_var(arena, p->lane));
    for (uint32_t v = 0; v < vectors; v++)
        second[v] = expr_load(arena, DT_F32, p->weights, index_add(arena, row, index_constant((int64_t)v * s->lanes)));
    OuterProduct product = {.rows = s->rows,
                            .vectors = vectors,
                            .sum = s->acc,
                            .vector = weight,
                            .element = element,
                            .valid = UINT32_MAX,
                            .first = {p->from, DT_F32, index_add(arena, depth->from, c)},
                            .offset = s->offset,
                            .second = second};
    lower_outer_product(s->lower, block, &product);
}

/* The weights of the next point are fetched while these are used, a share by each register tile: where shares are large
 * some lines at every step, for as many at once as a vector has would keep loads waiting; else some at every vector.
 * What is left out would be waited for, so shares are rounded up, and overlap. */
typedef struct Prefetch {
    Index next;                 /* where the share starts */
    int64_t at_step, at_vector; /* lines */
} Prefetch;

static Prefetch plan_prefetch(const Products *s, Block *block)
{
    const PointProducts *p = s->p;
    Arena *arena = s->arena;
    int64_t width = p->vectors * s->lanes, all = p->depth * width, vectors = p->depth / s->lanes;
    if (s->lower->target->dialect != DIALECT_VECTOR || !vectors)
        return (Prefetch){.next = index_constant(0)};
    int64_t share = ceil_div(all / LINE, s->tiles), at_vector = ceil_div(share, vectors);
    Prefetch ahead = {.at_step = at_vector >= s->lanes ? ceil_div(at_vector, s->lanes) : 0};
    ahead.at_vector = ahead.at_step ? 0 : at_vector;
    int64_t fetched = vectors * (ahead.at_vector + s->lanes * ahead.at_step) * LINE;
    int64_t last = most(0, p->points * p->panels * all - fetched);
    Index next = index_scale(arena, index_var(arena, p->panel), p->points);
    next = index_scale(arena, index_add(arena, index_add(arena, next, s->point), index_constant(1)), all);
    next = index_add(arena, next, index_scale(arena, s->number, share * LINE));
    const Local *local = lower_local(s->lower, "next", DT_I64, false);
    stmt_local(arena, block, local,
               expr_word(arena, WORD_MIN, DT_I64, expr_index(arena, DT_I64, next),
                         expr_number(arena, DT_I64, (double)last), NULL));
    ahead.next = index_data(arena, expr_local(arena, local), 0, last);
    return ahead;
}

/* `lines` at each of `steps` so far. */
static void prefetch(const Products *s, Block *block, Index next, int64_t lines, Index steps)
{
    for (int64_t i = 0; i < lines; i++) {
        Index line = index_add(s->arena, index_scale(s->arena, steps, lines * LINE), index_constant(i * LINE));
        stmt_prefetch(s->arena, block, s->p->weights, index_add(s->arena, next, line), 1);
    }
}

static void sum_up(const Products *s, Block *block)
{
    const PointProducts *p = s->p;
    Arena *arena = s->arena;
    int64_t whole = p->depth / s->lanes, rest = p->depth % s->lanes;
    Prefetch ahead = plan_prefetch(s, block);
    Block *inner = block;
    if (whole) {
        Index vector = lower_point_loop(s->lower, &inner, "block", 0, whole, LOOP_ROLLED);
        Depth depth = depth_at(s, inner, vector);
        prefetch(s, inner, ahead.next, ahead.at_vector, vector);
        Index c = lower_point_loop(s->lower, &inner, "c", 0, s->lanes, LOOP_ROLLED);
        prefetch(s, inner, ahead.next, ahead.at_step, index_add(arena, index_scale(arena, vector, s->lanes), c));
        step(s, inner, &depth, c);
    }
    if (rest) {
        Depth depth = depth_at(s, block, index_constant(whole));
        Index c = lower_point_loop(s->lower, &block, "c", 0, rest, LOOP_ROLLED);
        step(s, block, &depth, c);
    }
}

static void register_tile(Products *s, Block *block)
{
    const PointProducts *p = s->p;
    Arena *arena = s->arena;
    block = &stmt_lanes(arena, block, p->lane, (uint32_t)s->lanes)->body;
    s->acc = lower_registers(s->lower, "acc", DT_F32, true, s->rows, p->vectors);
    stmt_local(arena, block, s->acc, expr_number(arena, DT_F32, 0));
    sum_up(s, block);
    for (uint32_t i = 0; i < s->rows; i++)
        for (int64_t v = 0; v < p->vectors; v++) {
            Index row = index_add(arena, s->first, index_constant(i));
            Index at = index_add(arena, index_constant(v * p->points), s->point);
            at = index_add(arena, index_scale(arena, at, p->rows), row);
            at = index_add(arena, index_scale(arena, at, s->lanes), index_var(arena, p->lane));
            stmt_store(arena, block, p->to, at, expr_local_at(arena, s->acc, index_constant(i), index_constant(v)));
        }
}

/* `count` register tiles of so many rows each, behind `before` others, the rows of which end at `first`. */
static void register_tiles(Products *s, Block *block, int64_t before, int64_t first, int64_t count, int64_t rows)
{
    if (!count)
        return;
    Index t = lower_point_loop(s->lower, &block, "t", 0, count, LOOP_SERIAL);
    s->rows = (uint32_t)rows;
    s->number = index_add(s->arena, t, index_constant(before));
    s->first = index_add(s->arena, index_scale(s->arena, t, rows), index_constant(first));
    register_tile(s, block);
}

/* Rows in register tiles of balanced size: 49 is 13, 12, 12, 12. */
void lower_point_products(const PointProducts *p, Block *block)
{
    Products s = {.p = p, .lower = p->lower, .arena = p->lower->arena, .lanes = p->lower->target->lanes};
    int64_t count = ceil_div(p->rows, p->most_rows), rows = p->rows / count, wide = p->rows % count;
    s.offset = ARENA_ARRAY(s.arena, int64_t, POINT_MOST_ROWS);
    for (int64_t i = 0; i < POINT_MOST_ROWS; i++)
        s.offset[i] = i * p->row;
    s.tiles = count;
    s.point = lower_point_loop(s.lower, &block, "point", 0, p->points, LOOP_SERIAL);
    register_tiles(&s, block, 0, 0, wide, rows + 1);
    register_tiles(&s, block, wide, wide * (rows + 1), count - wide, rows);
}
