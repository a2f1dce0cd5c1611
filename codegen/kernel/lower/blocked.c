/* Contractions by blocks of threads: a square tile of the result per block, a smaller one per thread, in registers.
 *
 *     result[row, column] = sum over depth of left[row, depth] * right[depth, column]
 *
 * A matmul is that for each position of its leading dimensions.  A convolution is that for each image: rows are output
 * channels, columns pixels, depth the channels and taps of the window.  The threads of a block fetch DEPTH_TILE
 * positions of both operands' tiles into shared memory, meet, and add up the products.  What lies outside an operand is
 * fetched as 0.
 *
 * Needs: a target with teams, ungrouped, operands of rank 2 or more, and enough rows and columns.  Otherwise nothing is
 * changed and windows do it. */
#include "kernel/lower/contract.h"
#include "ops/meaning.h"

#define SIDE        16 /* threads along a side of the tile */
#define DEPTH_TILE  16
#define ENOUGH      132 /* blocks: one for each multiprocessor of a large GPU */
#define MOST_THREAD 4   /* a thread's tile is at most 4 x 4 */

typedef struct Blocked {
    Lower *lower;
    const Node *node;
    bool is_product; /* of matrices; else a convolution */
    Product product;
    Convolution conv;
    DType dtype; /* of sums */
    int64_t rows, columns, depth, batches;
    uint32_t batch_rank;
    Index batch[MAX_RANK];
    int64_t each, tile; /* rows and columns of a thread, of a block */
    const Var *thread;
    Index row, column, start; /* first of the tile, first of the depth */
    uint32_t left, right;     /* shared arrays, [depth][tile + 1]: a column more, so that no bank is met twice */
} Blocked;

/* Operands */

static const Expr *fetch(const Blocked *b, ValueId value, const Index *position)
{
    return expr_cast(b->lower->arena, b->dtype, lower_value(b->lower, value, position));
}

static const Expr *zero_of(const Blocked *b)
{
    return expr_number(b->lower->arena, b->dtype, 0);
}

/* Channels and taps. */
static void unflatten_depth(const Blocked *b, Index depth, Index *tap)
{
    const Shape *w = value_shape(b->lower->graph, b->node->in[1]);
    index_unflatten(b->lower->arena, depth, w->dim + 1, 1 + b->conv.window.rank, tap);
}

/* Pixels of the result. */
static void unflatten_column(const Blocked *b, Index column, Index *pixel)
{
    const Shape *y = value_shape(b->lower->graph, b->node->out[0]);
    index_unflatten(b->lower->arena, column, y->dim + 2, b->conv.window.rank, pixel);
}

static const Expr *conv_left(const Blocked *b, Index row, Index depth)
{
    Index position[MAX_RANK] = {row};
    unflatten_depth(b, depth, position + 1);
    return fetch(b, b->node->in[1], position);
}

static const Expr *conv_right(const Blocked *b, Index depth, Index column, Guard *guard, uint32_t *guards)
{
    Arena *arena = b->lower->arena;
    const Window *window = &b->conv.window;
    Index tap[MAX_RANK], out[MAX_RANK], position[MAX_RANK] = {b->batch[0]};
    unflatten_depth(b, depth, tap);
    unflatten_column(b, column, out);
    position[1] = tap[0];
    for (uint32_t i = 0; i < window->rank; i++) {
        const WindowDimension *d = &window->dim[i];
        position[2 + i] = lower_tap_at(arena, d, out[i], tap[1 + i]);
        guard[(*guards)++] = (Guard){position[2 + i], d->in};
    }
    return fetch(b, b->node->in[0], position);
}

/* Operand 0 at [..., first, second], or operand 1. */
static const Expr *matmul_operand(const Blocked *b, uint32_t which, Index first, Index second)
{
    const Shape *shape = value_shape(b->lower->graph, b->node->in[which]);
    uint32_t leading = shape->rank - 2;
    Index position[MAX_RANK];
    for (uint32_t d = 0; d < leading; d++)
        position[d] = shape->dim[d] == 1 ? index_constant(0) : b->batch[b->batch_rank - leading + d];
    position[leading] = first;
    position[leading + 1] = second;
    return fetch(b, b->node->in[which], position);
}

/* Left at [row, depth] or right at [depth, column]; 0 outside. */
static const Expr *operand(const Blocked *b, bool right, Index across, Index depth)
{
    bool conv = !b->is_product;
    Guarded guarded;
    Guard guard[MAX_RANK + 2];
    uint32_t guards = 0;
    lower_guard_open(b->lower, &guarded);
    const Expr *value = conv && right           ? conv_right(b, depth, across, guard, &guards)
                        : conv                  ? conv_left(b, across, depth)
                        : !right                ? matmul_operand(b, 0, across, depth)
                        : b->product.transposed ? matmul_operand(b, 1, across, depth)
                                                : matmul_operand(b, 1, depth, across);
    guard[guards++] = (Guard){depth, b->depth};
    guard[guards++] = (Guard){across, right ? b->columns : b->rows};
    return lower_guard_close(b->lower, &guarded, value, guard, guards, zero_of(b));
}

/* Which */

static void see_product(Blocked *b)
{
    b->rows = b->product.rows, b->columns = b->product.columns;
    b->depth = b->product.depth;
    b->batch_rank = b->product.batch_rank;
}

static void see_conv(Blocked *b)
{
    b->rows = b->conv.outputs, b->columns = 1;
    b->depth = b->conv.channels;
    for (uint32_t i = 0; i < b->conv.window.rank; i++) {
        b->columns *= b->conv.window.dim[i].out;
        b->depth *= b->conv.window.dim[i].size;
    }
    b->batch_rank = 1;
}

static bool see(Blocked *b)
{
    const Graph *graph = b->lower->graph;
    const Type *type = value_type(graph, b->node->out[0]);
    b->dtype = reduction_accumulator(type->dtype);
    b->is_product = product_of(graph, b->node, &b->product);
    if (b->is_product && b->product.has_rows && b->product.has_columns)
        see_product(b);
    else if (!b->is_product && convolution_of(graph, b->node, &b->conv) && b->conv.groups == 1)
        see_conv(b);
    else
        return false;
    b->batches = 1;
    for (uint32_t d = 0; d < b->batch_rank; d++)
        b->batches *= type->shape.dim[d];
    return !type->layout.block && b->rows >= SIDE && b->columns >= SIDE && b->depth >= DEPTH_TILE;
}

static int64_t tiles(int64_t extent, int64_t tile)
{
    return (extent + tile - 1) / tile;
}

/* The largest tile that still gives every multiprocessor a block. */
static int64_t choose_tile(const Blocked *b)
{
    for (int64_t each = MOST_THREAD;; each /= 2) {
        int64_t tile = each * SIDE;
        if (each == 1 || tiles(b->rows, tile) * tiles(b->columns, tile) * b->batches >= ENOUGH)
            return each;
    }
}

/* Loops */

static Index parallel_loop(Blocked *b, const char *name, int64_t extent, int64_t step)
{
    Lower *lower = b->lower;
    const Var *var = index_var_new(lower->arena, name, 0, tiles(extent, step) - 1);
    if (extent <= step)
        return index_constant(0);
    lower->block = &stmt_for(lower->arena, lower->block, var, 0, tiles(extent, step), 1, LOOP_PARALLEL)->body;
    return index_scale(lower->arena, index_var(lower->arena, var), step);
}

static void open_tile(Blocked *b)
{
    Lower *lower = b->lower;
    const Shape *y = value_shape(lower->graph, b->node->out[0]);
    for (uint32_t d = 0; d < b->batch_rank; d++)
        b->batch[d] = parallel_loop(b, lower_loop_names[d], y->dim[d], 1);
    b->row = parallel_loop(b, "row_tile", b->rows, b->tile);
    b->column = parallel_loop(b, "column_tile", b->columns, b->tile);
    b->thread = index_var_new(lower->arena, "thread", 0, SIDE * SIDE - 1);
    lower->block = &stmt_for(lower->arena, lower->block, b->thread, 0, SIDE * SIDE, 1, LOOP_THREADS)->body;
}

/* Element `at` of an operand's tile is fetched by thread at % threads; neighbours in memory by neighbouring threads. */
static void fetch_tile(Blocked *b, bool right)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    bool along_depth = !right || b->product.transposed;
    const Var *at = index_var_new(arena, "e", 0, b->tile * DEPTH_TILE - 1);
    Stmt *loop = stmt_for(arena, lower->block, at, 0, b->tile * DEPTH_TILE, SIDE * SIDE, LOOP_SERIAL);
    loop->low = index_var(arena, b->thread);
    int64_t inner = along_depth ? DEPTH_TILE : b->tile;
    Index low = index_mod(arena, index_var(arena, at), inner), high = index_div(arena, index_var(arena, at), inner);
    Index depth = along_depth ? low : high, across = along_depth ? high : low;
    Block *outer = lower_enter(lower, &loop->body);
    const Expr *value =
        operand(b, right, index_add(arena, right ? b->column : b->row, across), index_add(arena, b->start, depth));
    stmt_store(arena, lower->block, right ? b->right : b->left,
               index_add(arena, index_scale(arena, depth, b->tile + 1), across), value);
    lower_leave(lower, outer);
}

/* A thread's rows and columns stand SIDE apart, so that neighbouring threads touch neighbouring elements. */
static Index own(const Blocked *b, bool column, int64_t i)
{
    Arena *arena = b->lower->arena;
    Index thread = index_var(arena, b->thread);
    Index at = column ? index_mod(arena, thread, SIDE) : index_div(arena, thread, SIDE);
    return index_add(arena, at, index_constant(i * SIDE));
}

static void add_products(Blocked *b, const Local *acc)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    const Var *d = index_var_new(arena, "d", 0, DEPTH_TILE - 1);
    Block *body = &stmt_for(arena, lower->block, d, 0, DEPTH_TILE, 1, LOOP_SERIAL)->body;
    Index start = index_scale(arena, index_var(arena, d), b->tile + 1);
    const Local *side[2][MOST_THREAD];
    for (int right = 0; right < 2; right++)
        for (int64_t i = 0; i < b->each; i++) {
            side[right][i] = lower_local(lower, right ? "r" : "l", b->dtype, false);
            stmt_local(
                arena, body, side[right][i],
                expr_load(arena, b->dtype, right ? b->right : b->left, index_add(arena, start, own(b, right, i))));
        }
    for (int64_t i = 0; i < b->each; i++)
        for (int64_t j = 0; j < b->each; j++) {
            Index x = index_constant(i), y = index_constant(j);
            const Expr *product = expr_word(arena, WORD_MUL, b->dtype, expr_local(arena, side[0][i]),
                                            expr_local(arena, side[1][j]), NULL);
            stmt_assign(arena, body, acc, x, y,
                        expr_word(arena, WORD_ADD, b->dtype, expr_local_at(arena, acc, x, y), product, NULL));
        }
}

static void add_depth(Blocked *b, const Local *acc)
{
    Lower *lower = b->lower;
    const Var *start = index_var_new(lower->arena, "k", 0, (tiles(b->depth, DEPTH_TILE) - 1) * DEPTH_TILE);
    Stmt *loop = stmt_for(lower->arena, lower->block, start, 0, b->depth, DEPTH_TILE, LOOP_SERIAL);
    Block *outer = lower_enter(lower, &loop->body);
    b->start = index_var(lower->arena, start);
    fetch_tile(b, false);
    fetch_tile(b, true);
    stmt_barrier(lower->arena, lower->block);
    add_products(b, acc);
    stmt_barrier(lower->arena, lower->block);
    lower_leave(lower, outer);
}

/* What follows the contraction in the kernel, for one element of the result. */
static void store_element(Blocked *b, Index row, Index column, const Expr *sum)
{
    Lower *lower = b->lower;
    Index position[MAX_RANK];
    DType dtype = value_type(lower->graph, b->node->out[0])->dtype;
    ValueId result = b->node->out[0];
    for (uint32_t d = 0; d < b->batch_rank; d++)
        position[d] = b->batch[d];
    position[b->batch_rank] = row;
    if (b->is_product)
        position[b->batch_rank + 1] = column;
    else
        unflatten_column(b, column, position + 2);
    if (b->node->in_count > 2)
        sum = expr_word(lower->arena, WORD_ADD, b->dtype, sum, fetch(b, b->node->in[2], &row), NULL);
    lower->bound[result] = expr_cast(lower->arena, dtype, sum);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

static void store_tile(Blocked *b, const Local *acc)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    for (int64_t i = 0; i < b->each; i++)
        for (int64_t j = 0; j < b->each; j++) {
            Index row = index_add(arena, b->row, own(b, false, i)),
                  column = index_add(arena, b->column, own(b, true, j));
            Stmt *inside = stmt_if(arena, lower->block, row, 0, b->rows);
            inside = stmt_if(arena, &inside->body, column, 0, b->columns);
            Block *outer = lower_enter(lower, &inside->body);
            store_element(b, row, column, expr_local_at(arena, acc, index_constant(i), index_constant(j)));
            lower_leave(lower, outer);
        }
}

enum { KNOB_EACH };

static const KnobSpec blocked_knobs[] = {
    {"each", 4, "rows, and columns, of the result that one thread sums up: 1, 2 or 4"},
    {NULL, 0, NULL},
};

static bool blocked_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Blocked b = {.lower = lower, .node = &lower->graph->node[kernel->anchor]};
    int64_t *each = &recipe->knob[KNOB_EACH];
    if (!lower->target->team || !see(&b))
        return false;
    if (*each == KNOB_FREE)
        *each = choose_tile(&b);
    return *each == 1 || *each == 2 || *each == 4;
}

static double blocked_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)node_flops(lower->graph, &lower->graph->node[kernel->anchor]) / 8;
}

static void blocked_lower(Lower *lower)
{
    Blocked b = {.lower = lower, .node = &lower->graph->node[lower->kernel->anchor]};
    Block *start = lower->block;
    see(&b);
    b.each = lower->kernel->recipe.knob[KNOB_EACH];
    b.tile = b.each * SIDE;
    b.left = lower_shared(lower, b.dtype, DEPTH_TILE * (b.tile + 1), "left");
    b.right = lower_shared(lower, b.dtype, DEPTH_TILE * (b.tile + 1), "right");
    open_tile(&b);
    const Local *acc = lower_registers(lower, "acc", b.dtype, false, b.each, b.each);
    stmt_local(lower->arena, lower->block, acc, zero_of(&b));
    add_depth(&b, acc);
    store_tile(&b, acc);
    lower_leave(lower, start);
}

const Provider provider_blocked = {
    .name = "blocked",
    .doc = "square tiles of the result, each by a block of threads that share the operands",
    .knob = blocked_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = blocked_offers,
    .cost = blocked_cost,
    .lower = blocked_lower,
};
