/* Products by outer products: the sums of a few rows and columns are variables of their own, to which each step of the
 * depth adds the products of its elements of those rows with its elements of those columns.
 *
 *     result[row, column] = sum over depth of left[row, depth] * right[depth, column]
 *
 * For dtypes that have no vectors here (f64, integers, f16 where it is asked for): an element is loaded once for a
 * whole tile, the sums do not wait for one another, and where columns follow each other in memory C compilers make
 * vectors of them, if the sums are stored side by side.  So what follows in the kernel is done after that, one by one
 * from scratch.  The columns of a tile come into scratch first, step by step of the depth, and all rows go over them:
 * else each step would be a line of memory of its own, or, where it is the depth that follows, one for each column.
 * Each sum is added up in the order of the depth, as a window's; but of floats, where a tile has few sums and both
 * operands follow the depth, in several strands: C compilers make vectors of them.
 *
 * Needs: a target without teams.  Otherwise windows do it. */
#include "kernel/lower/outer.h"

#include <assert.h>

/* Columns come into scratch where that is worth its time: for so many rows, from lines of so many. */
#define FEW_ROWS    16
#define FEW_COLUMNS 9

/* Rows go over them in blocks of so many at least, of about so many elements, which stay in the second level. */
#define BLOCK_ROWS     64
#define BLOCK_ELEMENTS 32768

#define MOST_PHASES 9 /* each has a text of its own */

/* Sums and strands of them at once, as many as fill the registers of most machines. */
#define MOST_SUMS    16
#define MOST_STRANDS 8
#define FEW_ROUNDS   2 /* of each strand */

static bool see(Outer *o)
{
    const Graph *graph = o->lower->graph;
    const Type *type = value_type(graph, o->node->out[0]);
    if (type->layout.block || type->dtype == DT_F32)
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (value_type(graph, o->node->in[i])->layout.block)
            return false;
    o->dtype = reduction_accumulator(type->dtype);
    o->phases = convolution_phase_count(graph, o->node);
    o->kind = o->phases ? OUTER_CONVOLUTION : OUTER_PRODUCT;
    if (!o->phases && !product_of(graph, o->node, &o->product)) {
        o->kind = OUTER_WEIGHT;
        if (!outer_see_weight(o))
            return false;
    }
    for (uint32_t p = least(o->phases, MOST_PHASES + 1); p-- > 0;)
        if (p == MOST_PHASES || !outer_see_phase(o, p))
            return false;
    /* C compilers make vectors of the sums of vectors of integers, in windows. */
    bool matrices = o->product.has_rows && o->product.has_columns;
    return (matrices || dtype_is_float(o->dtype)) && o->product.depth && shape_elements(&type->shape);
}

/* Do operands of floats follow the depth, so that vectors of it can be read? */
static bool follows_depth(const Outer *o)
{
    const Target *target = o->lower->target;
    return o->kind == OUTER_PRODUCT && dtype_is_float(o->dtype) && !target->small && !target->flash &&
           (o->product.transposed || o->product.columns == 1);
}

/* A row leaves room for strands of fewer columns. */
static void set_steps(Outer *o)
{
    o->full[0] = OUTER_ROWS;
    o->full[1] = follows_depth(o) && o->product.rows == 1 ? OUTER_ROWS : OUTER_COLUMNS;
}

static uint32_t strands_of(const Outer *o)
{
    uint32_t strands = MOST_STRANDS;
    if (!follows_depth(o) || o->brings)
        return 1;
    while (strands > 1 &&
           (strands * o->size[0] * o->size[1] > MOST_SUMS || o->product.depth < FEW_ROUNDS * (int64_t)strands))
        strands /= 2;
    return strands;
}

/* Is there room for them?  Sums of integers whose depth follows in memory C compilers cut along that. */
static bool brings_columns(const Outer *o)
{
    const Target *target = o->lower->target;
    if (o->lower->lean || target->small || target->flash)
        return false;
    if (o->kind != OUTER_PRODUCT)
        return true;
    bool apart = o->product.transposed ? dtype_is_float(o->dtype) : o->product.columns >= FEW_COLUMNS;
    return apart && target->dialect == DIALECT_VECTOR && o->product.rows >= FEW_ROWS &&
           o->product.depth <= OUTER_MOST_DEPTH;
}

/* Operand 0 at [row, depth] or operand 1 at [depth, column]. */
static const Expr *element(const Outer *o, bool right, Index depth, Index across)
{
    if (o->kind != OUTER_PRODUCT)
        return o->kind == OUTER_WEIGHT ? outer_pixel_of_result(o, across) : outer_weight(o, depth, across);
    Index position[MAX_RANK];
    lower_product_position(o->lower, o->node, &o->product, right, o->batch, across, depth, position);
    return expr_cast(o->lower->arena, o->dtype, lower_value(o->lower, o->node->in[right], position));
}

static Index place(const Outer *o, bool right, int64_t i)
{
    return index_add(o->lower->arena, o->first[right], index_constant(i));
}

/* A column of the tile at a step of the depth. */
static const Expr *column_element(const Outer *o, Index depth, int64_t j)
{
    Arena *arena = o->lower->arena;
    if (!o->brings)
        return element(o, true, depth, place(o, true, j));
    Index at = index_add(arena, index_scale(arena, depth, OUTER_COLUMNS), index_constant(j));
    return expr_load(arena, o->dtype, o->panel, at);
}

/* A step of the depth. */
static void add_products(const Outer *o, const Local *acc, Index depth)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    const Local *column[OUTER_COLUMNS], *row;
    for (int64_t j = 0; j < o->size[1]; j++) {
        column[j] = lower_local(lower, "c", o->dtype, false);
        stmt_local(arena, lower->block, column[j], column_element(o, depth, j));
    }
    for (int64_t i = 0; i < o->size[0]; i++) {
        row = lower_local(lower, "r", o->dtype, false);
        stmt_local(arena, lower->block, row, element(o, false, depth, place(o, false, i)));
        for (int64_t j = 0; j < o->size[1]; j++) {
            Index x = index_constant(i), y = index_constant(j);
            const Expr *product =
                expr_word(arena, WORD_MUL, o->dtype, expr_local(arena, row), expr_local(arena, column[j]), NULL);
            stmt_assign(arena, lower->block, acc, x, y,
                        expr_word(arena, WORD_ADD, o->dtype, expr_local_at(arena, acc, x, y), product, NULL));
        }
    }
}

static void product_position(const Outer *o, Index row, Index column, Index *position)
{
    uint32_t rank = o->product.batch_rank;
    for (uint32_t d = 0; d < rank; d++)
        position[d] = o->batch[d];
    if (o->product.has_rows)
        position[rank++] = row;
    if (o->product.has_columns)
        position[rank] = column;
}

/* What follows the product in the kernel, for one element of the result. */
static void store(const Outer *o, Index row, Index column, const Expr *sum)
{
    static void (*const place_of[])(const Outer *o, Index row, Index column, Index *position) = {
        [OUTER_PRODUCT] = product_position, [OUTER_CONVOLUTION] = outer_pixel, [OUTER_WEIGHT] = outer_tap};
    Lower *lower = o->lower;
    ValueId result = o->node->out[0];
    Index position[MAX_RANK];
    place_of[o->kind](o, row, column, position);
    if (o->kind == OUTER_CONVOLUTION && o->node->in_count > 2) {
        const Expr *bias = expr_cast(lower->arena, o->dtype, lower_value(lower, o->node->in[2], &position[1]));
        sum = expr_word(lower->arena, WORD_ADD, o->dtype, sum, bias, NULL);
    }
    lower->bound[result] = expr_cast(lower->arena, value_type(lower->graph, result)->dtype, sum);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

/* Does anything follow? */
static bool finishes(const Lower *lower, const Kernel *kernel)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    for (uint32_t i = 0; i < kernel->node_count; i++) {
        const Node *other = &lower->graph->node[kernel->node[i]];
        for (uint32_t r = 0; r < other->out_count; r++)
            if (other != node && kernel_stores(lower, other->out[r]))
                return true;
    }
    return false;
}

/* C compilers make vectors of sums that are stored side by side.  Of products without vectors what follows may stand
 * where the sums are. */
static bool stores_apart(const Outer *o)
{
    if (o->kind == OUTER_PRODUCT && o->lower->target->dialect != DIALECT_VECTOR)
        return false;
    return o->kind == OUTER_WEIGHT || o->phases > 1 || finishes(o->lower, o->lower->kernel);
}

/* Into scratch, and from there one by one: to sums of the chunks before, or into the result.  Additions that a C
 * compiler writes out are no reason for it to make vectors of the sums. */
static void finish_one_by_one(Outer *o, const Local *acc)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    Block *start = lower->block;
    for (int64_t i = 0; i < o->size[0]; i++)
        for (int64_t j = 0; j < o->size[1]; j++)
            stmt_store(arena, start, o->sums, index_constant(i * OUTER_COLUMNS + j),
                       expr_local_at(arena, acc, index_constant(i), index_constant(j)));
    LoopKind kind = o->kind == OUTER_WEIGHT ? LOOP_ROLLED : LOOP_SERIAL;
    Index i = outer_open_small(o, false, kind), j = outer_open_small(o, true, kind);
    Index at = index_add(arena, index_scale(arena, i, OUTER_COLUMNS), j);
    const Expr *sum = expr_load(arena, o->dtype, o->sums, at);
    Index row = index_add(arena, o->first[0], i);
    if (o->kind == OUTER_WEIGHT)
        outer_add_sum(o, row, j, sum);
    else
        store(o, row, index_add(arena, o->first[1], j), sum);
    lower_leave(lower, start);
}

static Index open_depth(Outer *o)
{
    if (o->kind == OUTER_WEIGHT)
        return outer_open_pixels(o);
    if (o->kind == OUTER_CONVOLUTION && o->phase.transposed)
        return outer_open_taps(o);
    const Var *k = index_var_new(o->lower->arena, "k", 0, o->product.depth - 1);
    Stmt *loop = stmt_for(o->lower->arena, o->lower->block, k, 0, o->product.depth, 1, LOOP_IN_ORDER);
    lower_enter(o->lower, &loop->body);
    return index_var(o->lower->arena, k);
}

/* The sums of each strand to those of the first, in pairs, as a tree. */
static void join_strands(const Outer *o, const Local *const *strand, uint32_t strands)
{
    Arena *arena = o->lower->arena;
    for (uint32_t half = 1; half < strands; half *= 2)
        for (uint32_t s = 0; s + half < strands; s += 2 * half)
            for (int64_t i = 0; i < o->size[0]; i++)
                for (int64_t j = 0; j < o->size[1]; j++) {
                    Index x = index_constant(i), y = index_constant(j);
                    stmt_assign(arena, o->lower->block, strand[s], x, y,
                                expr_word(arena, WORD_ADD, o->dtype, expr_local_at(arena, strand[s], x, y),
                                          expr_local_at(arena, strand[s + half], x, y), NULL));
                }
}

/* A step of the depth for each strand, and to the first what is left. */
static void add_in_strands(const Outer *o, const Local *const *strand, uint32_t strands)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    Block *start = lower->block;
    int64_t depth = o->product.depth, done = depth / strands * strands;
    const Var *k = index_var_new(arena, "k", 0, done - strands);
    lower_enter(lower, &stmt_for(arena, start, k, 0, done, strands, LOOP_IN_ORDER)->body);
    for (uint32_t s = 0; s < strands; s++)
        add_products(o, strand[s], index_add(arena, index_var(arena, k), index_constant(s)));
    lower_leave(lower, start);
    if (done < depth) {
        const Var *rest = index_var_new(arena, "k", done, depth - 1);
        lower_enter(lower, &stmt_for(arena, start, rest, done, depth, 1, LOOP_IN_ORDER)->body);
        add_products(o, strand[0], index_var(arena, rest));
        lower_leave(lower, start);
    }
    join_strands(o, strand, strands);
}

static void tile(Outer *o)
{
    static const char *const name[2][2] = {{"acc", "side"}, {"foot", "corner"}}; /* may stand in one block */
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    const Local *strand[MOST_STRANDS], *acc;
    uint32_t strands = strands_of(o);

    for (uint32_t s = 0; s < strands; s++) {
        strand[s] = lower_registers(lower, name[o->rest[0]][o->rest[1]], o->dtype, false, o->size[0], o->size[1]);
        stmt_local(arena, lower->block, strand[s], expr_number(arena, o->dtype, 0));
    }
    acc = strand[0];
    Block *outer = lower->block;
    if (strands > 1)
        add_in_strands(o, strand, strands);
    else if (!o->phases || !convolution_phase_is_empty(&o->phase))
        add_products(o, acc, open_depth(o));
    lower_leave(lower, outer);
    if (o->stages) {
        finish_one_by_one(o, acc);
        return;
    }
    for (int64_t i = 0; i < o->size[0]; i++)
        for (int64_t j = 0; j < o->size[1]; j++)
            store(o, place(o, false, i), place(o, true, j),
                  expr_local_at(arena, acc, index_constant(i), index_constant(j)));
}

/* Along what follows in memory. */
static void bring_columns(Outer *o)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    Block *start = lower->block;
    if (o->kind == OUTER_CONVOLUTION) {
        if (!convolution_phase_is_empty(&o->phase))
            outer_bring_windows(o);
        return;
    }
    Index j = o->product.transposed ? outer_open_small(o, true, LOOP_SERIAL) : index_constant(0);
    Index k = lower_open_loop(lower, "k", o->product.depth, LOOP_SERIAL);
    j = o->product.transposed ? j : outer_open_small(o, true, LOOP_SERIAL);
    stmt_store(arena, lower->block, o->panel, index_add(arena, index_scale(arena, k, OUTER_COLUMNS), j),
               element(o, true, k, index_add(arena, o->first[1], j)));
    lower_leave(lower, start);
}

/* Where a tile begins, or a block, in a loop over them. */
static Index open_tiles(Lower *lower, const char *name, int64_t rounds, int64_t step, LoopKind kind)
{
    return index_scale(lower->arena, lower_open_loop(lower, name, rounds, kind), step);
}

static void cut(Outer *o, bool columns);

/* All chunks of a tile of columns. */
static void add_chunks(Outer *o)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    Block *start = lower->block;
    outer_clear(o, o->totals, o->product.rows * OUTER_COLUMNS);
    outer_open_chunks(o);
    outer_bring_taps(o);
    cut(o, false);
    lower_leave(lower, start);
    Index row = lower_open_loop(lower, "p", o->product.rows, LOOP_SERIAL), j = outer_open_small(o, true, LOOP_SERIAL);
    store(o, row, index_add(arena, o->first[1], j), expr_load(arena, o->dtype, o->totals, outer_total(o, row, j)));
    lower_leave(lower, start);
}

/* What is in a tile of columns, or of rows. */
static void fill_tiles(Outer *o, bool columns)
{
    bool inside = columns != o->brings;
    if (inside) {
        tile(o);
        return;
    }
    if (o->kind == OUTER_WEIGHT) {
        add_chunks(o);
        return;
    }
    if (o->brings)
        bring_columns(o);
    cut(o, !columns);
}

/* Tiles of `step` rows of the block, or columns, and one of what is left; those of the other are inside, or around. */
static void cut(Outer *o, bool columns)
{
    int64_t extent = columns ? o->product.columns : o->rows, step = o->full[columns];
    LoopKind kind = o->kind == OUTER_WEIGHT && !columns ? LOOP_SERIAL : LOOP_PARALLEL; /* they fill scratch */
    Block *start = o->lower->block;
    for (int part = 0; part < 2; part++) {
        o->rest[columns] = part;
        o->size[columns] = part ? extent % step : step;
        int64_t rounds = part ? o->size[columns] > 0 : extent / step;
        if (!rounds)
            continue;
        Index first = part ? index_constant(extent - extent % step)
                           : open_tiles(o->lower, columns ? "column" : "row", rounds, step, kind);
        o->first[columns] = columns ? first : index_add(o->lower->arena, o->block, first);
        fill_tiles(o, columns);
        lower_leave(o->lower, start);
    }
}

/* Rows of a block, whole tiles that divide all rows where such are near. */
static int64_t choose_block(const Outer *o)
{
    int64_t rows = o->product.rows,
            most_rows = most(BLOCK_ROWS, BLOCK_ELEMENTS / o->product.depth / OUTER_ROWS * OUTER_ROWS);
    if (!o->brings || o->kind == OUTER_WEIGHT || rows < 2 * most_rows)
        return rows;
    for (int64_t block = most_rows; block >= most_rows / 2; block -= OUTER_ROWS)
        if (rows % block == 0)
            return block;
    return most_rows;
}

static void cut_blocks(Outer *o)
{
    int64_t rows = o->product.rows, block = choose_block(o);
    Block *start = o->lower->block;
    for (int part = 0; part < 2; part++) {
        o->rows = part ? rows % block : block;
        int64_t rounds = part ? o->rows > 0 : rows / block;
        if (!rounds)
            continue;
        o->block =
            part ? index_constant(rows - rows % block) : open_tiles(o->lower, "block", rounds, block, LOOP_PARALLEL);
        cut(o, o->brings);
        lower_leave(o->lower, start);
    }
}

/* Steps of a panel of columns, for all phases. */
static int64_t most_depth(Outer *o)
{
    int64_t depth = o->product.depth;
    for (uint32_t p = 0; p < o->phases; p++) {
        outer_see_phase(o, p);
        depth = most(depth, o->product.depth);
    }
    return depth;
}

static bool outer_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Outer o = {.lower = lower, .node = &lower->graph->node[kernel->anchor]};
    if (lower->target->team || lower_has_other_windows(lower, kernel) || !see(&o))
        return false;
    bool brings = brings_columns(&o);
    if (!brings && o.kind != OUTER_PRODUCT)
        return false;
    if (stores_apart(&o))
        recipe_scratch(lower, recipe, "sums", o.dtype, OUTER_ROWS * OUTER_COLUMNS, true);
    if (o.kind == OUTER_WEIGHT)
        recipe_scratch(lower, recipe, "totals", o.dtype, o.product.rows * OUTER_COLUMNS, true);
    if (brings)
        recipe_scratch(lower, recipe, "columns", o.dtype, most_depth(&o) * OUTER_COLUMNS, true);
    return true;
}

/* Half of the operations wait for loads. */
static double outer_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)node_flops(lower->graph, &lower->graph->node[kernel->anchor]) / 2;
}

/* The loops over what is before rows and columns, which are entered: images and groups of convolutions. */
static void open_batch(Outer *o)
{
    const Shape *result = value_shape(o->lower->graph, o->node->out[0]);
    for (uint32_t d = 0; d < o->product.batch_rank; d++) {
        bool groups = o->kind != OUTER_PRODUCT && d + 1 == o->product.batch_rank;
        o->batch[d] = lower_open_loop(o->lower, lower_loop_names[d], groups ? o->phase.conv.groups : result->dim[d],
                                      LOOP_PARALLEL);
    }
}

static void outer_lower(Lower *lower)
{
    const Recipe *recipe = &lower->kernel->recipe;
    Outer o = {.lower = lower, .node = &lower->graph->node[lower->kernel->anchor]};
    Block *start = lower->block;
    bool offered = see(&o);
    assert(offered && "what was offered is offered again");
    (void)offered;
    set_steps(&o);
    o.stages = stores_apart(&o);
    if (o.stages)
        o.sums = lower_scratch(lower, 0);
    o.brings = recipe->scratch_count > o.stages; /* not where scratch was to be little */
    if (o.kind == OUTER_WEIGHT)
        o.totals = lower_scratch(lower, 1);
    if (o.brings)
        o.panel = lower_scratch(lower, recipe->scratch_count - 1);
    for (uint32_t p = 0; p < most(o.phases, 1); p++) {
        if (o.phases)
            outer_see_phase(&o, p);
        open_batch(&o);
        cut_blocks(&o);
        lower_leave(lower, start);
    }
}

static const KnobSpec no_knobs[] = {{NULL, 0, NULL}};

const Provider provider_outer = {
    .name = "outer",
    .doc = "outer products of a few rows and columns, each sum a variable of its own",
    .knob = no_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = outer_offers,
    .cost = outer_cost,
    .lower = outer_lower,
};
