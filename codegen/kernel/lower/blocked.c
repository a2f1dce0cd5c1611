/* Contractions by blocks of threads: a tile of the result per block, a smaller one per thread, in registers.
 *
 * The threads of a block fetch a step of both operands' tiles while they add up the products of the step before, which
 * lie in shared memory; there they put what they have fetched once all are done.  What lies outside an operand is
 * fetched as 0.  Groups of a block take a part of each step, and add up their sums at the end.  Where the depth is
 * split among blocks, these leave their sums in scratch, and a second launch adds them up.
 *
 * Needs: a target with teams, and sums that are long or many.  Otherwise nothing is changed and windows do it. */
#include "kernel/lower/blocked.h"

#include "base/number.h"

#define MANY 16 /* rows, and columns, for which short sums are worth it */
#define LONG 64 /* sums, that are worth it for any */
#define FEW  4  /* rows of a group, for which they are not */

#define TOGETHER 4 /* elements that a thread reads at once */

typedef struct Shared {
    uint32_t side[2]; /* [depth][rows], [depth][columns] and what pads them */
    uint32_t sums;    /* [group][row][column] */
} Shared;

static Index thread_of(const Blocked *b)
{
    return index_var(b->lower->arena, b->thread);
}

/* Loops */

static Index parallel_loop(const Blocked *b, const char *name, int64_t extent, int64_t step)
{
    Lower *lower = b->lower;
    int64_t rounds = ceil_div(extent, step);
    const Var *var = index_var_new(lower->arena, name, 0, rounds - 1);
    if (rounds <= 1)
        return index_constant(0);
    lower->block = &stmt_for(lower->arena, lower->block, var, 0, rounds, 1, LOOP_PARALLEL)->body;
    return index_scale(lower->arena, index_var(lower->arena, var), step);
}

static void open_batch(Blocked *b)
{
    for (uint32_t d = 0; d < b->batch_rank; d++)
        b->batch[d] = parallel_loop(b, lower_loop_names[d], b->batch_extent[d], 1);
}

static void open_tile(Blocked *b, Index *split)
{
    Lower *lower = b->lower;
    int64_t threads = blocked_threads(&b->shape);
    open_batch(b);
    *split = parallel_loop(b, "split", b->shape.splits, 1);
    b->row = parallel_loop(b, "row_tile", b->rows, b->shape.rows);
    b->column = parallel_loop(b, "column_tile", b->columns, b->shape.columns);
    b->thread = index_var_new(lower->arena, "thread", 0, threads - 1);
    lower->block = &stmt_for(lower->arena, lower->block, b->thread, 0, threads, 1, LOOP_THREADS)->body;
}

static Index unrolled(const Blocked *b, const char *name, int64_t rounds)
{
    Lower *lower = b->lower;
    const Var *var = index_var_new(lower->arena, name, 0, rounds - 1);
    if (rounds == 1)
        return index_constant(0);
    lower->block = &stmt_for(lower->arena, lower->block, var, 0, rounds, 1, LOOP_UNROLLED)->body;
    return index_var(lower->arena, var);
}

/* Fetching */

typedef struct Element { /* of an operand's tile */
    Index number, depth, across;
} Element;

static int64_t extent_of(const Blocked *b, bool right)
{
    return right ? b->shape.columns : b->shape.rows;
}

static int64_t fetches(const Blocked *b, bool right) /* of a thread */
{
    return ceil_div(extent_of(b, right) * blocked_step(&b->shape), blocked_threads(&b->shape));
}

/* Element i of a thread; neighbours in memory are those of neighbours. */
static Element element_of(const Blocked *b, bool right, Index i)
{
    Arena *arena = b->lower->arena;
    bool along_depth = !blocked_lies_across(b, right);
    int64_t inner = along_depth ? blocked_step(&b->shape) : extent_of(b, right);
    Index number = index_add(arena, thread_of(b), index_scale(arena, i, blocked_threads(&b->shape)));
    Index low = index_mod(arena, number, inner), high = index_div(arena, number, inner);
    return (Element){number, along_depth ? low : high, along_depth ? high : low};
}

static void fetch_tile(const Blocked *b, bool right, const Local *next)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    stmt_local(arena, lower->block, next, NULL);
    Block *outer = lower_enter(lower, lower->block);
    Index i = unrolled(b, "i", fetches(b, right));
    Element e = element_of(b, right, i);
    const Expr *value = blocked_operand(b, right, index_add(arena, right ? b->column : b->row, e.across),
                                        index_add(arena, b->start, e.depth));
    stmt_assign(arena, lower->block, next, i, index_constant(0), value);
    lower_leave(lower, outer);
}

static void put_tile(const Blocked *b, const Shared *shared, bool right, const Local *next)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    int64_t extent = extent_of(b, right);
    Block *outer = lower_enter(lower, lower->block);
    Index i = unrolled(b, "i", fetches(b, right));
    Element e = element_of(b, right, i);
    Stmt *inside = stmt_if(arena, lower->block, e.number, 0, extent * blocked_step(&b->shape));
    stmt_store(arena, &inside->body, shared->side[right],
               index_add(arena, index_scale(arena, e.depth, extent + BLOCKED_PAD), e.across),
               expr_local_at(arena, next, i, index_constant(0)));
    lower_leave(lower, outer);
}

/* Products */

static int64_t each_of(const Blocked *b, bool right)
{
    return right ? b->shape.each_column : b->shape.each_row;
}

/* Of the tile, the rows or columns that the thread sums up: those beside each other go to neighbours, so that a warp
 * that reads four for each thread reads what lies together. */
static Index own(const Blocked *b, bool right, Index i)
{
    Arena *arena = b->lower->arena;
    int64_t beside = b->shape.columns / b->shape.each_column, together = least(each_of(b, right), TOGETHER);
    Index at = right ? index_mod(arena, thread_of(b), beside)
                     : index_div(arena, index_mod(arena, thread_of(b), blocked_group(&b->shape)), beside);
    at = index_add(arena, index_scale(arena, at, together), index_mod(arena, i, together));
    int64_t apart = extent_of(b, right) / each_of(b, right) * together;
    return index_add(arena, at, index_scale(arena, index_div(arena, i, together), apart));
}

static Index group_of(const Blocked *b)
{
    return index_div(b->lower->arena, thread_of(b), blocked_group(&b->shape));
}

/* The thread's part of an operand at a position of the depth. */
static void read_side(const Blocked *b, const Shared *shared, bool right, Index depth, const Local *side)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    Block *outer = lower_enter(lower, lower->block);
    Index i = unrolled(b, "i", each_of(b, right));
    Index at = index_add(arena, index_scale(arena, depth, extent_of(b, right) + BLOCKED_PAD), own(b, right, i));
    stmt_assign(arena, lower->block, side, i, index_constant(0), expr_load(arena, b->dtype, shared->side[right], at));
    lower_leave(lower, outer);
}

/* Loops over the thread's part of the tile. */
static void each_sum(const Blocked *b, Index *i, Index *j)
{
    *i = unrolled(b, "i", b->shape.each_row);
    *j = unrolled(b, "j", b->shape.each_column);
}

static void add_products(const Blocked *b, const Shared *shared, const Local *acc)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    const Local *side[2];
    Index i, j;
    const Var *d = index_var_new(arena, "d", 0, BLOCKED_STEP - 1);
    Block *outer = lower_enter(lower, &stmt_for(arena, lower->block, d, 0, BLOCKED_STEP, 1, LOOP_SERIAL)->body);
    Index depth = index_add(arena, index_scale(arena, group_of(b), BLOCKED_STEP), index_var(arena, d));
    for (int right = 0; right < 2; right++) {
        side[right] = lower_array(lower, right ? "r" : "l", b->dtype, each_of(b, right), 1);
        stmt_local(arena, lower->block, side[right], NULL);
    }
    for (int right = 0; right < 2; right++)
        read_side(b, shared, right, depth, side[right]);
    each_sum(b, &i, &j);
    const Expr *product = expr_word(arena, WORD_MUL, b->dtype, expr_local_at(arena, side[0], i, index_constant(0)),
                                    expr_local_at(arena, side[1], j, index_constant(0)), NULL);
    stmt_assign(arena, lower->block, acc, i, j,
                expr_word(arena, WORD_ADD, b->dtype, expr_local_at(arena, acc, i, j), product, NULL));
    lower_leave(lower, outer);
}

/* Where the depth of a round begins: rounds are numbered over all splits, and those of a tap follow each other. */
static void start_round(Blocked *b, Index round)
{
    Arena *arena = b->lower->arena;
    int64_t step = blocked_step(&b->shape), of_tap = ceil_div(b->depth / b->taps, step);
    if (b->shape.by_tap) {
        b->tap = index_div(arena, round, of_tap);
        round = index_mod(arena, round, of_tap);
    }
    b->start = index_scale(arena, round, step);
}

/* The number of a round, in a loop over all of them; 0 without a loop where there is one. */
static Index each_round(const Blocked *b, int64_t rounds)
{
    Lower *lower = b->lower;
    const Var *round = index_var_new(lower->arena, "round", 0, rounds - 1);
    if (rounds == 1)
        return index_constant(0);
    lower_enter(lower, &stmt_for(lower->arena, lower->block, round, 0, rounds, 1, LOOP_SERIAL)->body);
    return index_var(lower->arena, round);
}

/* A round fetches its step and adds up the one before it. */
static void add_depth(Blocked *b, const Shared *shared, Index split, const Local *acc)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    int64_t rounds = ceil_div(blocked_rounds(b, &b->shape), b->shape.splits);
    const Local *next[2];
    Block *outer = lower_enter(lower, lower->block);
    Index round = each_round(b, rounds);
    start_round(b, index_add(arena, index_scale(arena, split, rounds), round));
    for (int right = 0; right < 2; right++)
        next[right] = lower_array(lower, right ? "next_right" : "next_left", b->dtype, fetches(b, right), 1);
    for (int right = 0; right < 2; right++)
        fetch_tile(b, right, next[right]);
    if (rounds > 1) {
        Block *inside = lower_enter(lower, &stmt_if(arena, lower->block, round, 1, rounds)->body);
        add_products(b, shared, acc);
        lower_leave(lower, inside);
        stmt_barrier(arena, lower->block);
    }
    for (int right = 0; right < 2; right++)
        put_tile(b, shared, right, next[right]);
    stmt_barrier(arena, lower->block);
    lower_leave(lower, outer);
    add_products(b, shared, acc);
}

/* Results */

/* What follows the contraction in the kernel, for one element of the result. */
static void store_element(const Blocked *b, Index row, Index column, const Expr *sum)
{
    Lower *lower = b->lower;
    Index position[MAX_RANK];
    DType dtype = value_type(lower->graph, b->node->out[0])->dtype;
    ValueId result = b->node->out[0];
    blocked_position(b, row, column, position);
    if (b->node->in_count > 2) {
        const Expr *bias = lower_value(lower, b->node->in[2], &position[1]);
        sum = expr_word(lower->arena, WORD_ADD, b->dtype, sum, expr_cast(lower->arena, b->dtype, bias), NULL);
    }
    lower->bound[result] = expr_cast(lower->arena, dtype, sum);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

/* Of the scratch, of the split's sums. */
static Index place_of(const Blocked *b, Index split, Index row, Index column)
{
    Arena *arena = b->lower->arena;
    Index at = split;
    for (uint32_t d = 0; d < b->batch_rank; d++)
        at = index_add(arena, index_scale(arena, at, b->batch_extent[d]), b->batch[d]);
    at = index_add(arena, index_scale(arena, at, b->rows), row);
    return index_add(arena, index_scale(arena, at, b->columns), column);
}

/* One element of the tile: finished, or left in scratch. */
static void leave_element(const Blocked *b, Index split, Index row, Index column, const Expr *sum)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    row = index_add(arena, b->row, row), column = index_add(arena, b->column, column);
    Stmt *inside = stmt_if(arena, lower->block, row, 0, b->rows);
    inside = stmt_if(arena, &inside->body, column, 0, b->columns);
    Block *outer = lower_enter(lower, &inside->body);
    if (b->shape.splits > 1)
        stmt_store(arena, lower->block, lower_scratch(lower, 0), place_of(b, split, row, column), sum);
    else
        store_element(b, row, column, sum);
    lower_leave(lower, outer);
}

static void leave_tile(const Blocked *b, Index split, const Local *acc)
{
    Lower *lower = b->lower;
    Block *outer = lower_enter(lower, lower->block);
    Index i, j;
    each_sum(b, &i, &j);
    leave_element(b, split, own(b, false, i), own(b, true, j), expr_local_at(lower->arena, acc, i, j));
    lower_leave(lower, outer);
}

/* The sums of all groups, in their order. */
static const Expr *sum_of_groups(const Blocked *b, const Shared *shared, Index element)
{
    Lower *lower = b->lower;
    const Expr *sum = NULL;
    for (int64_t g = 0; g < b->shape.groups; g++) {
        Index at = index_add(lower->arena, element, index_constant(g * b->shape.rows * b->shape.columns));
        const Expr *next = expr_load(lower->arena, b->dtype, shared->sums, at);
        sum = sum ? expr_word(lower->arena, WORD_ADD, b->dtype, sum, next, NULL) : next;
    }
    return lower_named(lower, sum);
}

/* Each thread leaves its sums to all, and finishes other elements of the tile, neighbours beside neighbours. */
static void add_groups(const Blocked *b, const Shared *shared, Index split, const Local *acc)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    int64_t elements = b->shape.rows * b->shape.columns, threads = blocked_threads(&b->shape);
    Block *start = lower_enter(lower, lower->block);
    Index i, j;
    each_sum(b, &i, &j);
    Index row = index_add(arena, index_scale(arena, group_of(b), b->shape.rows), own(b, false, i));
    Index own_at = index_add(arena, index_scale(arena, row, b->shape.columns), own(b, true, j));
    stmt_store(arena, lower->block, shared->sums, own_at, expr_local_at(arena, acc, i, j));
    lower_leave(lower, start);
    stmt_barrier(arena, lower->block);
    const Var *at = index_var_new(arena, "e", 0, elements - 1);
    Stmt *loop = stmt_for(arena, lower->block, at, 0, elements, threads, LOOP_SERIAL);
    loop->low = thread_of(b);
    Block *outer = lower_enter(lower, &loop->body);
    Index element = index_var(arena, at);
    leave_element(b, split, index_div(arena, element, b->shape.columns), index_mod(arena, element, b->shape.columns),
                  sum_of_groups(b, shared, element));
    lower_leave(lower, outer);
}

/* The second launch: a thread for each element. */
static void add_splits(Blocked *b)
{
    Lower *lower = b->lower;
    Arena *arena = lower->arena;
    const Expr *sum = NULL;
    open_batch(b);
    Index row = parallel_loop(b, "row", b->rows, 1), column = parallel_loop(b, "column", b->columns, 1);
    Block *outer = lower_enter(lower, lower->block);
    for (int64_t s = 0; s < b->shape.splits; s++) {
        const Expr *next =
            expr_load(arena, b->dtype, lower_scratch(lower, 0), place_of(b, index_constant(s), row, column));
        sum = sum ? expr_word(arena, WORD_ADD, b->dtype, sum, next, NULL) : next;
    }
    store_element(b, row, column, lower_named(lower, sum));
    lower_leave(lower, outer);
}

/* The provider */

enum { KNOB_ROWS, KNOB_COLUMNS, KNOB_SUMS, KNOB_GROUPS, KNOB_SPLITS };

static const KnobSpec blocked_knobs[] = {
    {"tile_rows", 128, "of the result that a block of threads sums up: a power of two"},
    {"tile_columns", 128, "likewise"},
    {"sums", 64, "of the tile, that a thread adds up at most: 16, 32 or 64"},
    {"groups", 8, "of a block's threads, that share out the depth of a step: a power of two"},
    {"splits", 16, "blocks that share out the depth of a tile: what each sums up is added up by a second launch"},
    {NULL, 0, NULL},
};

static BlockedShape asked_shape(const Recipe *recipe)
{
    return (BlockedShape){.rows = recipe->knob[KNOB_ROWS],
                          .columns = recipe->knob[KNOB_COLUMNS],
                          .sums = recipe->knob[KNOB_SUMS],
                          .groups = recipe->knob[KNOB_GROUPS],
                          .splits = recipe->knob[KNOB_SPLITS]};
}

static bool is_worth_it(const Blocked *b)
{
    bool grouped = !b->is_product && b->conv.groups > 1;
    return !(grouped && b->rows < FEW) &&
           (b->depth >= LONG || (b->depth >= BLOCKED_STEP && b->rows >= MANY && b->columns >= MANY));
}

static bool blocked_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Blocked b = {.lower = lower, .node = &lower->graph->node[kernel->anchor]};
    if (!lower->target->team || !blocked_see(&b) || !is_worth_it(&b))
        return false;
    b.shape = asked_shape(recipe);
    if (!blocked_choose(&b, &b.shape))
        return false;
    recipe->knob[KNOB_ROWS] = b.shape.rows, recipe->knob[KNOB_COLUMNS] = b.shape.columns;
    recipe->knob[KNOB_SUMS] = b.shape.sums, recipe->knob[KNOB_GROUPS] = b.shape.groups;
    recipe->knob[KNOB_SPLITS] = b.shape.splits;
    if (b.shape.splits > 1)
        recipe_scratch(lower, recipe, "sums", b.dtype, b.shape.splits * b.batches * b.rows * b.columns, false);
    return true;
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
    Index split;
    blocked_see(&b);
    b.shape = asked_shape(&lower->kernel->recipe);
    blocked_choose(&b, &b.shape);
    blocked_pack(&b);
    int64_t step = blocked_step(&b.shape);
    Shared shared = {.side = {lower_shared(lower, b.dtype, step * (b.shape.rows + BLOCKED_PAD), "left"),
                              lower_shared(lower, b.dtype, step * (b.shape.columns + BLOCKED_PAD), "right")}};
    if (b.shape.groups > 1)
        shared.sums = lower_shared(lower, b.dtype, blocked_sums(&b.shape), "part");
    open_tile(&b, &split);
    const Local *acc = lower_array(lower, "acc", b.dtype, b.shape.each_row, b.shape.each_column);
    stmt_local(lower->arena, lower->block, acc, expr_number(lower->arena, b.dtype, 0));
    add_depth(&b, &shared, split, acc);
    if (b.shape.groups > 1)
        add_groups(&b, &shared, split, acc);
    else
        leave_tile(&b, split, acc);
    lower_leave(lower, start);
    if (b.shape.splits > 1)
        add_splits(&b);
    lower_leave(lower, start);
}

const Provider provider_blocked = {
    .name = "blocked",
    .doc = "tiles of the result, each by a block of threads that share the operands",
    .knob = blocked_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = blocked_offers,
    .cost = blocked_cost,
    .lower = blocked_lower,
};
