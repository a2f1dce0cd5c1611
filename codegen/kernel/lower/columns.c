/* Sums of columns: reductions over leading dimensions, whose results lie next to each other.
 * A row of accumulators stands in scratch, and what is reduced passes over it as it lies in memory; a vector of
 * accumulators alone would go down a column, one line of memory after the other, for each few results.  Each result is
 * combined in the same order as by `window`, to the same bits. */
#include "base/number.h"
#include "kernel/lower/contract.h"

#define MOST_ACROSS 256 /* results of a row: a few lines of memory, which are fetched ahead */
#define FEW_DOWN    16  /* elements of a result that pay for the scratch */

typedef struct Columns {
    const Node *node;
    Reduction reduction;
    int64_t across, parts; /* results of a row, and such rows along the last dimension */
    uint32_t sums;         /* buffer */
    Index first;           /* result of the row */
    Index *result, *at;    /* positions in the result and in the operand */
} Columns;

static bool reduces_leading(const Lower *lower, Columns *c)
{
    const Shape *from = value_shape(lower->graph, c->node->in[0]);
    if (!node_is_reduction(lower->graph, c->node) || from->rank < 2)
        return false;
    c->reduction = reduction_of(lower->graph, c->node);
    int64_t down = 1;
    for (uint32_t d = 0; d < from->rank; d++)
        down *= c->reduction.reduced[d] ? from->dim[d] : 1;
    return c->reduction.kind == REDUCE_VALUES && !c->reduction.has_window && !c->reduction.reduced[from->rank - 1] &&
           c->reduction.accumulator == DT_F32 && down >= FEW_DOWN;
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

static bool see(const Lower *lower, const Kernel *kernel, Columns *c)
{
    *c = (Columns){.node = &lower->graph->node[kernel->anchor]};
    const Type *type = value_type(lower->graph, c->node->out[0]);
    if (lower->target->dialect != DIALECT_VECTOR || type->layout.block || !reduces_leading(lower, c) ||
        lower_has_other_windows(lower, kernel))
        return false;
    int64_t last = type->shape.dim[type->shape.rank - 1];
    c->across = choose_across(last, lower->target->lanes);
    c->parts = c->across ? last / c->across : 0;
    return c->across >= 2 * lower->target->lanes;
}

static Index at_last(Lower *lower, const Columns *c, Index column)
{
    return index_add(lower->arena, c->first, column);
}

static void clear(Lower *lower, void *context, Index column)
{
    const Columns *c = context;
    stmt_store(lower->arena, lower->block, c->sums, column,
               expr_number(lower->arena, DT_F32, reduction_neutral(c->reduction.combine, DT_F32)));
}

static void combine(Lower *lower, void *context, Index column)
{
    const Columns *c = context;
    Arena *arena = lower->arena;
    c->at[c->reduction.rank - 1] = at_last(lower, c, column);
    const Expr *before = expr_load(arena, DT_F32, c->sums, column);
    const Expr *more = expr_cast(arena, DT_F32, lower_value(lower, c->node->in[0], c->at));
    stmt_store(arena, lower->block, c->sums, column,
               expr_word(arena, c->reduction.combine, DT_F32, before, more, NULL));
}

static void finish(Lower *lower, void *context, Index column)
{
    const Columns *c = context;
    ValueId result = c->node->out[0];
    c->result[value_shape(lower->graph, result)->rank - 1] = at_last(lower, c, column);
    lower->bound[result] = expr_cast(lower->arena, value_type(lower->graph, result)->dtype,
                                     expr_load(lower->arena, DT_F32, c->sums, column));
    lower_stores(lower, c->result);
    lower->bound[result] = NULL;
}

/* A loop over a dimension, which is entered; none for one round. */
static Index open_loop(Lower *lower, const char *name, int64_t rounds, LoopKind kind)
{
    const Var *var = index_var_new(lower->arena, name, 0, rounds - 1);
    if (rounds == 1)
        return index_constant(0);
    lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, rounds, 1, kind)->body);
    return index_var(lower->arena, var);
}

static void reduce_row(Lower *lower, Columns *c)
{
    const Shape *from = value_shape(lower->graph, c->node->in[0]);
    lower_vector_loop(lower, "j", c->across, LOOP_SERIAL, block_vectorizes, clear, c);
    Block *outer = lower->block;
    for (uint32_t d = 0; d < from->rank; d++)
        if (c->reduction.reduced[d])
            c->at[d] = open_loop(lower, "k", from->dim[d], LOOP_SERIAL);
    lower_vector_loop(lower, "j", c->across, LOOP_SERIAL, block_vectorizes, combine, c);
    lower_leave(lower, outer);
    lower_vector_loop(lower, "j", c->across, LOOP_SERIAL, block_vectorizes, finish, c);
}

static void columns_lower(Lower *lower)
{
    Columns c;
    Index result[MAX_RANK], at[MAX_RANK];
    if (!see(lower, lower->kernel, &c))
        return;
    const Shape *from = value_shape(lower->graph, c.node->in[0]);
    Block *start = lower->block;
    c.sums = lower_scratch(lower, 0);
    c.result = result;
    c.at = at;
    uint32_t o = 0;
    for (uint32_t d = 0; d + 1 < from->rank; d++) {
        if (!c.reduction.reduced[d])
            result[o++] = at[d] = open_loop(lower, lower_loop_names[d], from->dim[d], LOOP_PARALLEL);
        else if (c.reduction.keep)
            result[o++] = index_constant(0);
    }
    c.first = index_scale(lower->arena, open_loop(lower, "row", c.parts, LOOP_PARALLEL), c.across);
    reduce_row(lower, &c);
    lower_leave(lower, start);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Columns c;
    if (!see(lower, kernel, &c))
        return false;
    recipe_scratch(lower, recipe, "sums", DT_F32, c.across, true);
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
