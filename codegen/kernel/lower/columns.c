/* Sums of columns: reductions over leading dimensions, whose results lie next to each other.
 * A row of accumulators stands in scratch, and what is reduced passes over it as it lies in memory; a vector of
 * accumulators alone would go down a column, one line of memory after the other, for each few results.  Each result is
 * combined in the order of its elements; but where a row is no vectors, several that follow each other are one, and
 * each result has as many accumulators, which are combined in the end.  Dtypes that have no vectors here are plain
 * loops along the row, of which C compilers make some. */
#include "base/number.h"
#include "kernel/lower/contract.h"

#define MOST_ACROSS 1024 /* results of a row: a page or two of memory, whose lines hardware fetches ahead */
#define SHORT       128  /* parts of a row that may as well stay whole */
#define FEW_ACROSS  8    /* of a dtype without vectors here */
#define FEW_DOWN    16   /* elements of a result that pay for the scratch */
#define TOGETHER    4 /* of them that come in a round, so that the next one waits less often for what this has stored */
#define FEW_NODES   4 /* that are as quickly computed as they are read back */
#define MOST_JOINED 8 /* vectors of rows that are one: enough to hide what a sum waits for */
#define FEW_ROUNDS  4 /* that pay for the accumulators of rows that are one ... */
#define MORE_ROUNDS 2 /* ... for each such row, of more than the fewest */
#define FEW_VECTORS 32 /* of elements, which are done before that */

typedef struct Columns {
    const Node *node;
    Reduction reduction;
    uint32_t leading;      /* dimensions before the last ones that stay, which are one row */
    int64_t across, parts; /* results of a part of that row, and such parts */
    int64_t joined;        /* rows that are one; then `across` is all results of a row */
    uint32_t sums;         /* buffer */
    Index first;           /* result of the row */
    Index *result, *at;    /* positions in the result and in the operand */
    uint32_t down;         /* the last dimension that is reduced */
    int64_t together;      /* rows in a round */
    Index other;           /* accumulators that are joined with the first ones */
} Columns;

static bool reduces_leading(const Graph *graph, Columns *c)
{
    const Shape *from = value_shape(graph, c->node->in[0]);
    if (!node_is_reduction(graph, c->node) || from->rank < 2)
        return false;
    c->reduction = reduction_of(graph, c->node);
    int64_t down = 1;
    for (uint32_t d = 0; d < from->rank; d++)
        down *= c->reduction.reduced[d] ? from->dim[d] : 1;
    return c->reduction.kind == REDUCE_VALUES && !c->reduction.has_window && !c->reduction.reduced[from->rank - 1] &&
           down >= FEW_DOWN;
}

/* The most results of a row that rows of so many divide evenly into, whole vectors where they do. */
static int64_t choose_across(int64_t last, int64_t lanes)
{
    int64_t across = least(last, MOST_ACROSS), vectors = across / lanes * lanes;
    while (vectors > 0 && last % vectors)
        vectors -= lanes;
    while (across > 0 && last % across)
        across--;
    return vectors >= 2 * lanes ? vectors : across;
}

/* Rows that fill vectors together; 1: they do not. */
static int64_t choose_joined(int64_t last, int64_t steps, int64_t lanes)
{
    int64_t fewest = lanes / number_gcd(last, lanes), joined = most(1, MOST_JOINED * lanes / (last * fewest)) * fewest;
    while (joined > fewest && steps < MORE_ROUNDS * joined * joined)
        joined -= fewest;
    return steps < FEW_ROUNDS * joined ? 1 : joined;
}

/* Where memory has caches, a text may be long, and elements come without a call for each. */
static bool suits(const Graph *graph, const Target *target, ValueId operand)
{
    bool plain = target->dialect == DIALECT_C99 && !target->flash && !target->small &&
                 !dtype_is_half(value_type(graph, operand)->dtype);
    return target->dialect == DIALECT_VECTOR || plain;
}

static bool see(const Graph *graph, const Target *target, const Node *node, Columns *c)
{
    *c = (Columns){.node = node};
    const Type *type = value_type(graph, c->node->out[0]);
    if (type->layout.block || !reduces_leading(graph, c) || !suits(graph, target, c->node->in[0]))
        return false;
    const Shape *from = value_shape(graph, c->node->in[0]);
    int64_t last = 1;
    for (c->leading = from->rank; c->leading && !c->reduction.reduced[c->leading - 1]; c->leading--)
        last *= from->dim[c->leading - 1];
    c->down = c->leading - 1;
    c->across = choose_across(last, target->lanes);
    c->parts = c->across ? last / c->across : 0;
    c->joined = 1;
    if (c->across >= (c->reduction.accumulator == DT_F32 ? 2 * target->lanes : FEW_ACROSS))
        return true;
    if (target->dialect != DIALECT_VECTOR || last < 2 || last >= 2 * target->lanes ||
        last * from->dim[c->down] <= FEW_VECTORS * target->lanes)
        return false;
    c->across = last;
    c->parts = 1;
    c->joined = choose_joined(last, from->dim[c->down], target->lanes);
    return c->joined > 1;
}

bool lower_columns_take(const Graph *graph, const Target *target, const Node *reduction)
{
    Columns c;
    return target && see(graph, target, reduction, &c) && c.joined == 1;
}

/* The last dimensions, of the operand and of the result, at a column of the part. */
static void set_last(Lower *lower, const Columns *c, Index column)
{
    const Shape *from = value_shape(lower->graph, c->node->in[0]);
    uint32_t less = from->rank - value_shape(lower->graph, c->node->out[0])->rank;
    Index rest = index_add(lower->arena, c->first, column);
    if (c->joined > 1)
        rest = index_mod(lower->arena, rest, c->across);
    for (uint32_t d = from->rank; d-- > c->leading;) {
        c->at[d] = d == c->leading ? rest : index_mod(lower->arena, rest, from->dim[d]);
        c->result[d - less] = c->at[d];
        rest = index_div(lower->arena, rest, from->dim[d]);
    }
}

static void clear(Lower *lower, void *context, Index column)
{
    const Columns *c = context;
    DType dtype = c->reduction.accumulator;
    stmt_store(lower->arena, lower->block, c->sums, column,
               expr_number(lower->arena, dtype, reduction_neutral(c->reduction.combine, dtype)));
}

/* Some elements of each result that follow each other along `down`, in their order. */
static void combine(Lower *lower, void *context, Index column)
{
    const Columns *c = context;
    Arena *arena = lower->arena;
    DType dtype = c->reduction.accumulator;
    Index first = c->at[c->down];
    const Expr *sum = expr_load(arena, dtype, c->sums, column);
    set_last(lower, c, column);
    Index step = index_add(arena, first, index_div(arena, column, c->across)); /* of the row that is joined */
    for (int64_t i = 0; i < c->together; i++) {
        c->at[c->down] = index_add(arena, step, index_constant(i * c->joined));
        const Expr *more = expr_cast(arena, dtype, lower_value(lower, c->node->in[0], c->at));
        sum = expr_word(arena, c->reduction.combine, dtype, sum, more, NULL);
    }
    c->at[c->down] = first;
    stmt_store(arena, lower->block, c->sums, column, sum);
}

static void finish(Lower *lower, void *context, Index column)
{
    const Columns *c = context;
    ValueId result = c->node->out[0];
    set_last(lower, c, column);
    lower->bound[result] = expr_cast(lower->arena, value_type(lower->graph, result)->dtype,
                                     expr_load(lower->arena, c->reduction.accumulator, c->sums, column));
    lower_stores(lower, c->result);
    lower->bound[result] = NULL;
}

/* `rounds` of so many rows together, from a step on; returns the one behind them. */
static int64_t combine_steps(Lower *lower, Columns *c, int64_t first, int64_t rounds, int64_t together)
{
    Block *outer = lower->block;
    int64_t steps = together * c->joined;
    if (!rounds)
        return first;
    Index round = lower_open_loop(lower, "k", rounds, LOOP_SERIAL);
    c->together = together;
    c->at[c->down] = index_add(lower->arena, index_scale(lower->arena, round, steps), index_constant(first));
    lower_vector_loop(lower, "j", c->joined * c->across, LOOP_SERIAL, block_vectorizes, combine, c);
    lower_leave(lower, outer);
    return first + rounds * steps;
}

/* The last dimension that is reduced, in joined rows as far as they go. */
static void combine_all(Lower *lower, Columns *c)
{
    int64_t steps = value_shape(lower->graph, c->node->in[0])->dim[c->down], joined = c->joined, rows = steps / joined,
            together = lower->kernel->node_count <= FEW_NODES ? least(rows, TOGETHER) : 1;
    int64_t done = combine_steps(lower, c, 0, rows / together, together);
    done = combine_steps(lower, c, done, rows % together, 1);
    c->joined = 1;
    combine_steps(lower, c, done, steps - done, 1);
    c->joined = joined;
}

/* The accumulators of one result, a row of results apart. */
static void join(Lower *lower, void *context, Index column)
{
    const Columns *c = context;
    Arena *arena = lower->arena;
    DType dtype = c->reduction.accumulator;
    const Expr *sum = expr_load(arena, dtype, c->sums, column),
               *other = expr_load(arena, dtype, c->sums, index_add(arena, c->other, column));
    stmt_store(arena, lower->block, c->sums, column, expr_word(arena, c->reduction.combine, dtype, sum, other, NULL));
}

static void reduce_row(Lower *lower, Columns *c)
{
    const Shape *from = value_shape(lower->graph, c->node->in[0]);
    lower_vector_loop(lower, "j", c->joined * c->across, LOOP_SERIAL, block_vectorizes, clear, c);
    Block *outer = lower->block;
    for (uint32_t d = 0; d < c->down; d++)
        if (c->reduction.reduced[d])
            c->at[d] = lower_open_loop(lower, "k", from->dim[d], LOOP_SERIAL);
    combine_all(lower, c);
    lower_leave(lower, outer);
    if (c->joined > 1) {
        Index row = lower_open_loop(lower, "row", c->joined - 1, LOOP_SERIAL);
        c->other = index_scale(lower->arena, index_add(lower->arena, row, index_constant(1)), c->across);
        lower_vector_loop(lower, "j", c->across, LOOP_SERIAL, block_vectorizes, join, c);
        lower_leave(lower, outer);
    }
    lower_vector_loop(lower, "j", c->across, LOOP_SERIAL, block_vectorizes, finish, c);
}

typedef struct Following {
    const Var *column;
    bool all;
} Following;

static void follow_load(void *context, const Expr *load)
{
    Following *following = context;
    int64_t step;
    following->all &= index_factor(load->index, following->column, &step);
}

/* Does all that is read lie in rows along the part?  Where a part goes on from one row of the operand to the next, what
 * is broadcast along either does not. */
static bool follows_part(Lower *lower, Columns *c)
{
    Arena *arena = lower->arena;
    const Shape *from = value_shape(lower->graph, c->node->in[0]);
    Following following = {index_var_new(arena, "j", 0, c->across - 1), true};
    Block trial = {0}, *outer = lower_enter(lower, &trial);
    for (uint32_t d = 0; d < c->leading; d++)
        if (c->reduction.reduced[d])
            c->at[d] = index_var(arena, index_var_new(arena, "k", 0, from->dim[d] - 1));
    c->first = index_scale(arena, index_var(arena, index_var_new(arena, "row", 0, c->parts - 1)), c->across);
    c->together = 1;
    combine(lower, c, index_var(arena, following.column));
    lower_leave(lower, outer);
    for (const Stmt *stmt = trial.first; stmt; stmt = stmt->next)
        if (stmt->value)
            expr_loads(stmt->value, follow_load, &following);
    return following.all;
}

/* Of the last dimension alone, whole where it falls apart, as primes do. */
static int64_t across_last(const Lower *lower, const Columns *c)
{
    const Shape *from = value_shape(lower->graph, c->node->in[0]);
    int64_t extent = from->dim[from->rank - 1], across = choose_across(extent, lower->target->lanes);
    return across < SHORT ? extent : across;
}

/* Do parts go over the ends of rows? */
static bool goes_over(const Lower *lower, const Columns *c)
{
    const Shape *from = value_shape(lower->graph, c->node->in[0]);
    return from->dim[from->rank - 1] % c->across != 0;
}

static void columns_lower(Lower *lower)
{
    Columns c;
    Index result[MAX_RANK], at[MAX_RANK];
    if (!see(lower->graph, lower->target, &lower->graph->node[lower->kernel->anchor], &c))
        return;
    const Shape *from = value_shape(lower->graph, c.node->in[0]);
    Block *start = lower->block;
    c.sums = lower_scratch(lower, 0);
    c.result = result;
    c.at = at;
    uint32_t o = 0;
    for (uint32_t d = 0; d < c.leading; d++) {
        if (!c.reduction.reduced[d])
            result[o++] = at[d] = lower_open_loop(lower, lower_loop_names[d], from->dim[d], LOOP_PARALLEL);
        else if (c.reduction.keep)
            result[o++] = index_constant(0);
    }
    if (c.joined == 1 && goes_over(lower, &c) && !follows_part(lower, &c)) {
        c.parts = c.across * c.parts / across_last(lower, &c);
        c.across = across_last(lower, &c);
    }
    c.first = index_scale(lower->arena, lower_open_loop(lower, "row", c.parts, LOOP_PARALLEL), c.across);
    reduce_row(lower, &c);
    lower_leave(lower, start);
}

/* Do rows that are one follow each other in memory? */
static bool rows_follow(Lower *lower, Columns *c)
{
    Arena *arena = lower->arena;
    const Shape *from = value_shape(lower->graph, c->node->in[0]);
    Index at[MAX_RANK], result[MAX_RANK], address;
    int64_t steps = from->dim[c->down], step;
    const Var *column = index_var_new(arena, "j", 0, c->joined * c->across - 1),
              *first = index_var_new(arena, "k", 0, steps - c->joined);
    ValueId source;
    c->at = at;
    c->result = result;
    c->first = index_constant(0);
    for (uint32_t d = 0; d < c->down; d++)
        at[d] = index_var(arena, index_var_new(arena, lower_loop_names[d], 0, from->dim[d] - 1));
    at[c->down] = index_add(arena, index_var(arena, first), index_div(arena, index_var(arena, column), c->across));
    set_last(lower, c, index_var(arena, column));
    return !kernel_computes(lower, c->node->in[0]) &&
           lower_memory_source(lower, c->node->in[0], at, &source, &address) && index_factor(address, column, &step) &&
           step == 1;
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Columns c;
    if (!see(lower->graph, lower->target, &lower->graph->node[kernel->anchor], &c) ||
        lower_has_other_windows(lower, kernel) || (c.joined > 1 && !rows_follow(lower, &c)))
        return false;
    int64_t room = goes_over(lower, &c) ? most(c.across, across_last(lower, &c)) : c.across; /* whichever it comes to */
    recipe_scratch(lower, recipe, "sums", c.reduction.accumulator, c.joined * room, true);
    return true;
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)node_flops(lower->graph, &lower->graph->node[kernel->anchor]) / lower->target->lanes;
}

const Provider provider_columns = {
    .name = "columns",
    .doc = "a row of accumulators, which what is reduced passes over as it lies in memory",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_WINDOW,
    .offers = offers,
    .cost = cost,
    .lower = columns_lower,
};
