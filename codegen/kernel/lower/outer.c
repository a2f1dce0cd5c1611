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
 * Each sum is added up in the order of the depth, as a window's.
 *
 * Needs: a target without teams, operands of rank 2 or more.  Otherwise windows do it. */
#include "base/number.h"
#include "kernel/lower/contract.h"

#include <assert.h>

#define ROWS    4
#define COLUMNS 8

/* Columns come into scratch where that is worth its time: for so many rows, from lines of so many, to as many steps as
 * caches hold. */
#define FEW_ROWS    16
#define FEW_COLUMNS 9
#define MOST_DEPTH  4096

/* Rows go over them in blocks of so many at least, of about so many elements, which stay in the second level. */
#define BLOCK_ROWS     64
#define BLOCK_ELEMENTS 32768

typedef struct Outer {
    Lower *lower;
    const Node *node;
    Product product; /* of a convolution, the weights of a group and, in columns, what they see for each pixel */
    bool convolves;
    Convolution conv;
    DType dtype; /* of sums */
    Index batch[MAX_RANK];
    Index first[2];  /* row and column of the tile */
    int64_t size[2]; /* rows and columns of it */
    bool rest[2];    /* is it what is left of them? */
    bool brings;     /* columns of a tile are [depth][COLUMNS] in ... */
    uint32_t panel;  /* this buffer, for ... */
    Index block;     /* rows from there on, ... */
    int64_t rows;    /* so many: all where nothing is brought */
} Outer;

/* Sums of integers whose depth follows in memory C compilers cut along that. */
static bool brings_columns(const Outer *o)
{
    const Target *target = o->lower->target;
    if (o->convolves)
        return o->product.rows >= ROWS && o->product.depth <= MOST_DEPTH && !o->lower->lean &&
               target->dialect == DIALECT_VECTOR && !target->small;
    bool apart = o->product.transposed ? dtype_is_float(o->dtype) : o->product.columns >= FEW_COLUMNS;
    return apart && o->product.rows >= FEW_ROWS && o->product.depth <= MOST_DEPTH && !o->lower->lean &&
           target->dialect == DIALECT_VECTOR && !target->small;
}

/* For so few outputs of a group windows do it. */
static bool see_convolution(Outer *o)
{
    const Graph *graph = o->lower->graph;
    o->convolves = node_is_convolution(o->node) && convolution_of(graph, o->node, &o->conv) &&
                   !value_type(graph, o->node->in[0])->layout.block && !value_type(graph, o->node->in[1])->layout.block;
    if (!o->convolves)
        return false;
    const Convolution *conv = &o->conv;
    o->product = (Product){.batch_rank = 2,
                           .rows = conv->outputs / conv->groups,
                           .columns = 1,
                           .depth = conv->channels / conv->groups,
                           .has_rows = true,
                           .has_columns = true};
    for (uint32_t d = 0; d < conv->window.rank; d++) {
        o->product.columns *= conv->window.dim[d].out;
        o->product.depth *= conv->window.dim[d].size;
    }
    return true;
}

static bool see(Outer *o)
{
    const Graph *graph = o->lower->graph;
    const Type *type = value_type(graph, o->node->out[0]);
    if (type->layout.block || type->dtype == DT_F32 || !(product_of(graph, o->node, &o->product) || see_convolution(o)))
        return false;
    o->dtype = reduction_accumulator(type->dtype);
    o->brings = brings_columns(o);
    return o->product.has_rows && o->product.has_columns && o->product.depth && shape_elements(&type->shape) &&
           (o->brings || !o->convolves);
}

/* A weight of a convolution: those of a row lie together. */
static const Expr *weight(const Outer *o, Index depth, Index row)
{
    Arena *arena = o->lower->arena;
    const Shape *shape = value_shape(o->lower->graph, o->node->in[1]);
    Index position[MAX_RANK];
    position[0] = index_add(arena, index_scale(arena, o->batch[1], o->product.rows), row);
    index_unflatten(arena, depth, shape->dim + 1, shape->rank - 1, position + 1);
    return expr_cast(arena, o->dtype, lower_value(o->lower, o->node->in[1], position));
}

/* Operand 0 at [row, depth] or operand 1 at [depth, column]. */
static const Expr *element(const Outer *o, bool right, Index depth, Index across)
{
    if (o->convolves)
        return weight(o, depth, across);
    const Shape *shape = value_shape(o->lower->graph, o->node->in[right]);
    bool depth_first = right && !o->product.transposed;
    uint32_t leading = shape->rank - 2;
    Index position[MAX_RANK];
    for (uint32_t d = 0; d < leading; d++)
        position[d] = shape->dim[d] == 1 ? index_constant(0) : o->batch[o->product.batch_rank - leading + d];
    position[leading] = depth_first ? depth : across;
    position[leading + 1] = depth_first ? across : depth;
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
    Index at = index_add(arena, index_scale(arena, depth, COLUMNS), index_constant(j));
    return expr_load(arena, o->dtype, o->panel, at);
}

/* A step of the depth. */
static void add_products(const Outer *o, const Local *acc, Index depth)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    const Local *column[COLUMNS], *row;
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

/* What follows the product in the kernel, for one element of the result. */
static void store_element(const Outer *o, Index row, Index column, const Expr *sum)
{
    Lower *lower = o->lower;
    ValueId result = o->node->out[0];
    uint32_t rank = o->product.batch_rank;
    Index position[MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        position[d] = o->batch[d];
    position[rank] = row;
    position[rank + 1] = column;
    if (o->convolves) {
        position[1] = index_add(lower->arena, index_scale(lower->arena, o->batch[1], o->product.rows), row);
        index_unflatten(lower->arena, column, value_shape(lower->graph, result)->dim + 2, o->conv.window.rank,
                        position + 2);
    }
    if (o->convolves && o->node->in_count > 2) {
        const Expr *bias = expr_cast(lower->arena, o->dtype, lower_value(lower, o->node->in[2], &position[1]));
        sum = expr_word(lower->arena, WORD_ADD, o->dtype, sum, bias, NULL);
    }
    lower->bound[result] = expr_cast(lower->arena, value_type(lower->graph, result)->dtype, sum);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

/* Does anything follow?  Where there are no vectors, it may stand where the sums are. */
static bool finishes(const Lower *lower, const Kernel *kernel)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    for (uint32_t i = 0; i < kernel->node_count; i++) {
        const Node *other = &lower->graph->node[kernel->node[i]];
        for (uint32_t r = 0; r < other->out_count; r++)
            if (other != node && kernel_stores(lower, other->out[r]))
                return lower->target->dialect == DIALECT_VECTOR;
    }
    return false;
}

/* A loop over the tile's rows or columns, or none for one. */
static Index open_small(Outer *o, bool columns)
{
    const Var *var = index_var_new(o->lower->arena, columns ? "o" : "p", 0, o->size[columns] - 1);
    if (o->size[columns] == 1)
        return index_constant(0);
    Stmt *loop = stmt_for(o->lower->arena, o->lower->block, var, 0, o->size[columns], 1, LOOP_SERIAL);
    lower_enter(o->lower, &loop->body);
    return index_var(o->lower->arena, var);
}

static void finish_one_by_one(Outer *o, const Local *acc)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    uint32_t sums = lower_scratch(lower, 0);
    Block *start = lower->block;
    for (int64_t i = 0; i < o->size[0]; i++)
        for (int64_t j = 0; j < o->size[1]; j++)
            stmt_store(arena, start, sums, index_constant(i * COLUMNS + j),
                       expr_local_at(arena, acc, index_constant(i), index_constant(j)));
    Index i = open_small(o, false), j = open_small(o, true);
    Index at = index_add(arena, index_scale(arena, i, COLUMNS), j);
    store_element(o, index_add(arena, o->first[0], i), index_add(arena, o->first[1], j),
                  expr_load(arena, o->dtype, sums, at));
    lower_leave(lower, start);
}

static void tile(Outer *o)
{
    static const char *const name[2][2] = {{"acc", "side"}, {"foot", "corner"}}; /* may stand in one block */
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    const Local *acc = lower_registers(lower, name[o->rest[0]][o->rest[1]], o->dtype, false, o->size[0], o->size[1]);
    const Var *k = index_var_new(arena, "k", 0, o->product.depth - 1);

    stmt_local(arena, lower->block, acc, expr_number(arena, o->dtype, 0));
    Block *outer = lower_enter(lower, &stmt_for(arena, lower->block, k, 0, o->product.depth, 1, LOOP_IN_ORDER)->body);
    add_products(o, acc, index_var(arena, k));
    lower_leave(lower, outer);
    if (finishes(lower, lower->kernel)) {
        finish_one_by_one(o, acc);
        return;
    }
    for (int64_t i = 0; i < o->size[0]; i++)
        for (int64_t j = 0; j < o->size[1]; j++)
            store_element(o, place(o, false, i), place(o, true, j),
                          expr_local_at(arena, acc, index_constant(i), index_constant(j)));
}

static void clear_columns(Outer *o)
{
    Lower *lower = o->lower;
    Block *start = lower->block;
    Index at = lower_open_loop(lower, "z", o->product.depth * COLUMNS, LOOP_SERIAL);
    stmt_store(lower->arena, lower->block, o->panel, at, expr_number(lower->arena, o->dtype, 0));
    lower_leave(lower, start);
}

/* A quotient is computed once for all taps. */
static Index name_pixel(Lower *lower, const char *name, Index at, int64_t extent)
{
    if (!at.count)
        return at;
    const Local *named = lower_local(lower, name, DT_I64, false);
    stmt_local(lower->arena, lower->block, named, expr_index(lower->arena, DT_I64, at));
    return index_data(lower->arena, expr_local(lower->arena, named), 0, extent - 1);
}

/* What a window sees, pixel by pixel: taps outside of the image stay 0. */
static void bring_windows(Outer *o)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    Block *start = lower->block;
    const Window *window = &o->conv.window;
    int64_t channels = o->conv.channels / o->conv.groups, extent[MAX_RANK];
    Index pixel[MAX_RANK], position[MAX_RANK], j, depth, tap;
    if (!window_is_inside(window))
        clear_columns(o);
    for (uint32_t d = 0; d < window->rank; d++)
        extent[d] = window->dim[d].out;
    j = open_small(o, true);
    index_unflatten(arena, index_add(arena, o->first[1], j), extent, window->rank, pixel);
    for (uint32_t d = 0; d < window->rank; d++)
        pixel[d] = name_pixel(lower, d + 1 < window->rank ? "y" : "x", pixel[d], extent[d]);
    depth = lower_open_loop(lower, "c", channels, LOOP_SERIAL);
    position[0] = o->batch[0];
    position[1] = index_add(arena, index_scale(arena, o->batch[1], channels), depth);
    for (uint32_t d = 0; d < window->rank; d++) {
        const WindowDimension *dimension = &window->dim[d];
        lower_enter(lower, lower_clamped_taps(lower, lower->block, lower_tap_name(arena, window->rank - 1 - d),
                                              dimension, pixel[d], &tap));
        position[d + 2] = lower_tap_at(arena, dimension, pixel[d], tap);
        depth = index_add(arena, index_scale(arena, depth, dimension->size), tap);
    }
    stmt_store(arena, lower->block, o->panel, index_add(arena, index_scale(arena, depth, COLUMNS), j),
               expr_cast(arena, o->dtype, lower_value(lower, o->node->in[0], position)));
    lower_leave(lower, start);
}

/* Along what follows in memory. */
static void bring_columns(Outer *o)
{
    Lower *lower = o->lower;
    Arena *arena = lower->arena;
    Block *start = lower->block;
    if (o->convolves) {
        bring_windows(o);
        return;
    }
    Index j = o->product.transposed ? open_small(o, true) : index_constant(0);
    Index k = lower_open_loop(lower, "k", o->product.depth, LOOP_SERIAL);
    j = o->product.transposed ? j : open_small(o, true);
    stmt_store(arena, lower->block, o->panel, index_add(arena, index_scale(arena, k, COLUMNS), j),
               element(o, true, k, index_add(arena, o->first[1], j)));
    lower_leave(lower, start);
}

/* Where a tile begins, or a block, in a loop over them. */
static Index open_tiles(Lower *lower, const char *name, int64_t rounds, int64_t step)
{
    return index_scale(lower->arena, lower_open_loop(lower, name, rounds, LOOP_PARALLEL), step);
}

/* Tiles of `step` rows of the block, or columns, and one of what is left; those of the other are inside, or around. */
static void cut(Outer *o, bool columns)
{
    bool inside = columns != o->brings;
    int64_t extent = columns ? o->product.columns : o->rows, step = columns ? COLUMNS : ROWS;
    Block *start = o->lower->block;
    for (int part = 0; part < 2; part++) {
        o->rest[columns] = part;
        o->size[columns] = part ? extent % step : step;
        int64_t rounds = part ? o->size[columns] > 0 : extent / step;
        if (!rounds)
            continue;
        Index first = part ? index_constant(extent - extent % step)
                           : open_tiles(o->lower, columns ? "column" : "row", rounds, step);
        o->first[columns] = columns ? first : index_add(o->lower->arena, o->block, first);
        if (!inside && o->brings)
            bring_columns(o);
        if (inside)
            tile(o);
        else
            cut(o, !columns);
        lower_leave(o->lower, start);
    }
}

/* Rows of a block, whole tiles that divide all rows where such are near. */
static int64_t choose_block(const Outer *o)
{
    int64_t rows = o->product.rows, most_rows = most(BLOCK_ROWS, BLOCK_ELEMENTS / o->product.depth / ROWS * ROWS);
    if (!o->brings || rows < 2 * most_rows)
        return rows;
    for (int64_t block = most_rows; block >= most_rows / 2; block -= ROWS)
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
        o->block = part ? index_constant(rows - rows % block) : open_tiles(o->lower, "block", rounds, block);
        cut(o, o->brings);
        lower_leave(o->lower, start);
    }
}

static bool outer_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Outer o = {.lower = lower, .node = &lower->graph->node[kernel->anchor]};
    if (lower->target->team || lower_has_other_windows(lower, kernel) || !see(&o))
        return false;
    if (finishes(lower, kernel))
        recipe_scratch(lower, recipe, "sums", o.dtype, ROWS * COLUMNS, true);
    if (o.brings)
        recipe_scratch(lower, recipe, "columns", o.dtype, o.product.depth * COLUMNS, true);
    return true;
}

/* Half of the operations wait for loads. */
static double outer_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)node_flops(lower->graph, &lower->graph->node[kernel->anchor]) / 2;
}

static void outer_lower(Lower *lower)
{
    Outer o = {.lower = lower, .node = &lower->graph->node[lower->kernel->anchor]};
    Block *start = lower->block;
    bool offered = see(&o);
    assert(offered && "what was offered is offered again");
    (void)offered;
    const Shape *result = value_shape(lower->graph, o.node->out[0]);
    for (uint32_t d = 0; d < o.product.batch_rank; d++)
        o.batch[d] = lower_open_loop(lower, lower_loop_names[d], o.convolves && d ? o.conv.groups : result->dim[d],
                                     LOOP_PARALLEL);
    o.brings =
        lower->kernel->recipe.scratch_count > finishes(lower, lower->kernel); /* not where scratch was to be little */
    if (o.brings)
        o.panel = lower_scratch(lower, lower->kernel->recipe.scratch_count - 1);
    cut_blocks(&o);
    lower_leave(lower, start);
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
