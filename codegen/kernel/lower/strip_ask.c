/* Which products go by strips, and how high these are: what fuse asks, and the recipe. */
#include "base/number.h"
#include "kernel/lower/strip.h"
#include "kernel/lower/tiled.h"

#define FEWEST_ROWS 8 /* fewer have recipes that go along rows */
#define LEAST_TILES 2 /* that a panel passes over, also of rows so long that the second level does not hold them */

/* Tiles of so many rows each, about; the way round a strip counts as much as a row. */
static int64_t rows_computed(int64_t rows, int64_t height, int64_t tile)
{
    return ceil_div(rows, height) * (ceil_div(height, tile) * tile + 1);
}

int64_t strip_height(const Target *target, int64_t rows, int64_t columns, bool whole)
{
    int64_t tile = target->small ? 1 : target->vector_registers >= 32 ? 12 : 6;
    int64_t room = (int64_t)target->l2_bytes / 4 / (columns * 4), best = 0;
    for (int64_t height = least(rows, most(LEAST_TILES * tile, room)); height > 0; height--) {
        if (whole && rows % height)
            continue;
        if (!best || rows_computed(rows, height, tile) < rows_computed(rows, best, tile))
            best = height;
    }
    return best;
}

static bool is_f32(const Graph *graph, ValueId value)
{
    return value_type(graph, value)->dtype == DT_F32;
}

/* Do addresses of the value advance evenly along rows, and along the depth in blocks of so many steps? */
static bool is_even(const Graph *graph, Arena *scratch, ValueId value, int64_t steps)
{
    const Shape *shape = value_shape(graph, value);
    uint32_t row = shape->rank - 2, depth = shape->rank - 1;
    const Var *along[MAX_RANK], *block = index_var_new(scratch, "block", 0, ceil_div(shape->dim[depth], steps) - 1);
    Index position[MAX_RANK];
    int64_t step;
    for (uint32_t d = 0; d < shape->rank; d++) {
        along[d] = index_var_new(scratch, "i", 0, (d == depth ? steps : shape->dim[d]) - 1);
        position[d] = index_var(scratch, along[d]);
    }
    position[depth] = index_add(scratch, position[depth], index_scale(scratch, index_var(scratch, block), steps));
    Index address = lower_address_before(graph, scratch, value, position);
    return index_factor(address, along[row], &step) && index_factor(address, along[depth], &step) &&
           index_factor(address, block, &step);
}

/* Is the value memory that tiles walk by some rows? */
static bool walks_rows(const Graph *graph, Arena *scratch, ValueId value, int64_t lanes)
{
    int64_t depth = value_shape(graph, value)->dim[value_shape(graph, value)->rank - 1];
    int64_t divided = tiled_divided_depth(depth, lanes);
    return is_even(graph, scratch, value, lanes) || (divided && is_even(graph, scratch, value, divided));
}

/* Are both matrices in memory, or constants, and are there no shapes that tiles or strips do not take? */
static bool is_plain(const Graph *graph, const Node *node, const Product *product)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!is_f32(graph, node->in[i]))
            return false;
    return product->has_rows && product->has_columns && product->depth > 0 && is_f32(graph, node->out[0]) &&
           value_shape(graph, node->in[0])->rank > 1 && value_shape(graph, node->in[1])->rank > 1;
}

static int64_t matrices_of(const Shape *shape)
{
    int64_t count = 1;
    for (uint32_t d = 0; d + 2 < shape->rank; d++)
        count *= shape->dim[d];
    return count;
}

bool strip_takes(const Graph *graph, Arena *scratch, const Target *target, const Node *first, const Node *second)
{
    Product a, b;
    if (!target || target->lanes < 2 || target->dialect == DIALECT_CUDA || target->backend == BACKEND_OPENBLAS ||
        !product_of(graph, first, &a) || !product_of(graph, second, &b) || !is_plain(graph, first, &a) ||
        !is_plain(graph, second, &b))
        return false;
    const Shape *between = value_shape(graph, first->out[0]);
    int64_t matrices = matrices_of(between), lanes = target->lanes;
    if (shape_elements(between) == 0 || matrices != matrices_of(value_shape(graph, second->out[0])) ||
        a.batch_rank != b.batch_rank || a.rows < FEWEST_ROWS || a.columns < lanes || b.columns < lanes ||
        !walks_rows(graph, scratch, first->in[0], tiled_lanes(target, &a)))
        return false;
    int64_t height = strip_height(target, a.rows, a.columns, matrices == 1);
    int64_t kept = height * a.columns + a.depth * a.columns + b.depth * b.columns;
    /* The result lives beside all operands, which it did not where rows were in memory. */
    return height >= FEWEST_ROWS && matrices * a.rows * (a.columns - b.columns) > kept;
}
