/* A block of Strassen's products (strassen.h): sums of the rows' quarters, and the results of the products. */
#include "kernel/lower/strassen.h"

static const Expr *number(const Quarters *q, double value)
{
    return expr_number(q->lower->arena, DT_F32, value);
}

/* sum + sign * x, where sum may be NULL. */
static const Expr *add_signed(const Quarters *q, const Expr *sum, int sign, const Expr *x)
{
    Arena *arena = q->lower->arena;
    if (!sign)
        return sum;
    if (!sum)
        return sign > 0 ? x : expr_word(arena, WORD_NEG, DT_F32, x, NULL, NULL);
    return expr_word(arena, sign > 0 ? WORD_ADD : WORD_SUB, DT_F32, sum, x, NULL);
}

/* The terms by their signs, a positive one first: every sum has one. */
static const Expr *signed_sum(const Quarters *q, const int8_t *sign, int count, const Local *term)
{
    const Expr *sum = NULL;
    for (int wanted = 1; wanted >= -1; wanted -= 2)
        for (int i = 0; i < count; i++)
            if (sign[i] == wanted)
                sum = add_signed(q, sum, wanted,
                                 expr_local_at(q->lower->arena, term, index_constant(0), index_constant(i)));
    return sum;
}

/* Where the sum of a row is for a product. */
static Index sum_at(const Quarters *q, int64_t product, Index row, Index vector)
{
    Arena *arena = q->lower->arena;
    Index at = index_add(arena, index_scale(arena, row, q->row), index_scale(arena, vector, q->vector));
    at = index_add(arena, at, index_constant(product * quarters_sums(q)));
    return index_add(arena, at, index_var(arena, q->lane));
}

/* Where a product is, or a quarter of the result. */
static Index product_at(const Quarters *q, Index vector, Index product, Index row)
{
    Arena *arena = q->lower->arena;
    Index at = index_add(arena, index_scale(arena, vector, STRASSEN_PRODUCTS), product);
    at = index_add(arena, index_scale(arena, at, q->half), row);
    return index_add(arena, index_scale(arena, at, q->lanes), index_var(arena, q->lane));
}

static Index first_row(const Quarters *q)
{
    return index_scale(q->lower->arena, index_var(q->lower->arena, q->block), 2 * q->half);
}

/* Of a sample's row, among those of all. */
static Index pixel_of(const Quarters *q, Index row)
{
    Arena *arena = q->lower->arena;
    return index_add(arena, index_scale(arena, index_var(arena, q->sample), q->rows), row);
}

/* The vector of a row and of a block of the depth; zeros behind the last row. */
static const Expr *operand(const Quarters *q, Index row, Index depth)
{
    const Tiled *con = &q->con;
    Arena *arena = q->lower->arena;
    Index at = index_substitute(arena, con->x_base, con->block, depth);
    at = index_add(arena, at, index_scale(arena, pixel_of(q, row), con->x_w));
    at = index_add(arena, at, index_var(arena, q->lane));
    const Expr *load = expr_load(arena, DT_F32, con->x, at);
    bool padded = q->rows % (2 * q->half) != 0;
    return padded ? expr_within(arena, row, q->rows, load, number(q, 0)) : load;
}

void quarters_of_rows(const Quarters *q, Block *block)
{
    Lower *lower = q->lower;
    Arena *arena = lower->arena;
    uint32_t sums = lower_scratch(lower, q->piece[QUARTERS_SUMS]);
    Index row, vector;
    if (q->in_blocks) {
        vector = lower_point_loop(lower, &block, "block", 0, q->depth_vectors, LOOP_PARALLEL);
        row = lower_point_loop(lower, &block, "r", 0, q->half, LOOP_ROLLED);
    } else {
        row = lower_point_loop(lower, &block, "r", 0, q->half, LOOP_PARALLEL);
        vector = lower_point_loop(lower, &block, "block", 0, q->depth_vectors, LOOP_ROLLED);
    }
    block = &stmt_lanes(arena, block, q->lane, (uint32_t)q->lanes)->body;
    const Local *quarter = lower_registers(lower, "d", DT_F32, true, 1, STRASSEN_QUARTERS);
    stmt_local(arena, block, quarter, NULL);
    for (int i = 0; i < STRASSEN_QUARTERS; i++) {
        Index at = index_add(arena, index_add(arena, first_row(q), row), index_constant(i / 2 * q->half));
        Index depth = index_add(arena, vector, index_constant(i % 2 * q->depth_vectors));
        stmt_assign(arena, block, quarter, index_constant(0), index_constant(i), operand(q, at, depth));
    }
    for (int p = 0; p < STRASSEN_PRODUCTS; p++)
        stmt_store(arena, block, sums, sum_at(q, p, row, vector),
                   signed_sum(q, strassen_form.first[p], STRASSEN_QUARTERS, quarter));
}

/* Quarters of the result, in the place of the first products. */
static void add_products(const Quarters *q, Block *block, uint32_t products)
{
    Arena *arena = q->lower->arena;
    Index vector = lower_point_loop(q->lower, &block, "v", 0, q->vectors, LOOP_ROLLED);
    Index row = lower_point_loop(q->lower, &block, "r", 0, q->half, LOOP_ROLLED);
    block = &stmt_lanes(arena, block, q->lane, (uint32_t)q->lanes)->body;
    const Local *product = lower_registers(q->lower, "d", DT_F32, true, 1, STRASSEN_PRODUCTS);
    stmt_local(arena, block, product, NULL);
    for (int p = 0; p < STRASSEN_PRODUCTS; p++) {
        Index at = product_at(q, vector, index_constant(p), row);
        stmt_assign(arena, block, product, index_constant(0), index_constant(p),
                    expr_load(arena, DT_F32, products, at));
    }
    for (int i = 0; i < STRASSEN_QUARTERS; i++)
        stmt_store(arena, block, products, product_at(q, vector, index_constant(i), row),
                   signed_sum(q, strassen_form.result[i], STRASSEN_PRODUCTS, product));
}

/* The rows of a half of a block that there are. */
static Block *rows_of_half(const Quarters *q, Block *block, Index half, Index *row, Index *row_of_half)
{
    Arena *arena = q->lower->arena;
    Index first = index_add(arena, first_row(q), index_scale(arena, half, q->half));
    const Var *var = index_var_new(arena, "r", 0, q->half - 1);
    Stmt *loop = stmt_for(arena, block, var, 0, q->half, 1, LOOP_SERIAL);
    loop->clamp_high = q->rows % (2 * q->half) != 0;
    loop->high_most = index_add(arena, index_constant(q->rows), index_scale(arena, first, -1));
    *row_of_half = index_var(arena, var);
    *row = index_add(arena, first, *row_of_half);
    return &loop->body;
}

/* What the rest of the kernel makes of the results, vector by vector along a row of both panels. */
static void finish_rows(const Quarters *q, Block *block, uint32_t products)
{
    Lower *lower = q->lower;
    Arena *arena = lower->arena;
    const Node *node = q->con.node;
    Index row, row_of_half, position[MAX_RANK];
    Index half = lower_point_loop(lower, &block, "half", 0, 2, LOOP_SERIAL);
    block = rows_of_half(q, block, half, &row, &row_of_half);
    Index panel = lower_point_loop(lower, &block, "panel", 0, 2, LOOP_SERIAL);
    Index vector = lower_point_loop(lower, &block, "v", 0, q->vectors, LOOP_ROLLED);
    block = &stmt_lanes(arena, block, q->lane, (uint32_t)q->lanes)->body;

    Index quarter = index_add(arena, index_scale(arena, half, 2), panel);
    Index column = index_add(arena, index_scale(arena, index_var(arena, q->pair), 2), panel);
    column = index_add(arena, index_scale(arena, column, q->vectors), vector);
    column = index_add(arena, index_scale(arena, column, q->lanes), index_var(arena, q->lane));
    const Expr *value = expr_load(arena, DT_F32, products, product_at(q, vector, quarter, row_of_half));
    const Local *y = lower_local(lower, "y", DT_F32, true);
    Block *outer = lower_enter(lower, block);
    if (node->in_count > 2)
        value = expr_word(arena, WORD_ADD, DT_F32, value, lower_value(lower, node->in[2], &column), NULL);
    stmt_local(arena, block, y, value);
    tiled_position(&q->con, pixel_of(q, row), column, position);
    lower->bound[node->out[0]] = expr_local(arena, y);
    lower_stores(lower, position);
    lower->bound[node->out[0]] = NULL;
    lower_leave(lower, outer);
}

void quarters_results(const Quarters *q, Block *block)
{
    uint32_t products = lower_scratch(q->lower, q->piece[QUARTERS_PRODUCTS]);
    add_products(q, block, products);
    finish_rows(q, block, products);
}
