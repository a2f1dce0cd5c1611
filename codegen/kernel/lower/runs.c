/* Sums over runs: reductions over the last dimensions and over others before those that are kept, as the mean of a
 * channel over images and pixels.  For each result the runs, which lie together in memory, come one after the other,
 * each as a row (row.c); windows would take the neighbours of a result, which are a run apart. */
#include "kernel/lower/contract.h"
#include "kernel/lower/rows.h"

#define FEW_FLOATS   16 /* of a run: for fewer windows gather the runs of several results */
#define FEW_ELEMENTS 8  /* of a run whose dtype has no vectors here */

typedef struct Runs {
    const Node *node;
    Reduction reduction;
    Rows rows; /* a run is a row */
} Runs;

/* Is more than the run reduced? */
static bool reduces_others(const Runs *r)
{
    for (uint32_t d = 0; d < r->rows.row_rank; d++)
        if (r->reduction.reduced[d] && r->rows.space->dim[d] > 1)
            return true;
    return false;
}

static bool see(const Graph *graph, const Target *target, const Node *node, Runs *r)
{
    *r = (Runs){.node = node};
    const Type *from = value_type(graph, r->node->in[0]);
    if (target->team || from->layout.block || value_type(graph, r->node->out[0])->layout.block ||
        !node_is_reduction(graph, r->node) || !shape_elements(&from->shape))
        return false;
    r->reduction = reduction_of(graph, r->node);
    r->rows = (Rows){.space = &from->shape, .row_rank = from->shape.rank, .columns = 1};
    while (r->rows.row_rank && r->reduction.reduced[r->rows.row_rank - 1])
        r->rows.columns *= from->shape.dim[--r->rows.row_rank];
    int64_t fewest = r->reduction.accumulator == DT_F32 ? FEW_FLOATS : FEW_ELEMENTS;
    return r->reduction.kind == REDUCE_VALUES && !r->reduction.has_window && reduces_others(r) &&
           r->rows.columns >= fewest;
}

bool lower_runs_take(const Graph *graph, const Target *target, const Node *reduction)
{
    Runs r;
    return target && see(graph, target, reduction, &r);
}

static void runs_lower(Lower *lower)
{
    Runs r;
    Index result[MAX_RANK], at[MAX_RANK];
    if (!see(lower->graph, lower->target, &lower->graph->node[lower->kernel->anchor], &r))
        return;
    Arena *arena = lower->arena;
    const Reduction *reduction = &r.reduction;
    Strands total = {.combine = reduction->combine, .dtype = reduction->accumulator, .count = 1};
    ValueId value = r.node->out[0];
    uint32_t rank = 0;
    Block *start = lower->block;
    r.rows.row = at;
    for (uint32_t d = 0; d < r.rows.space->rank; d++) {
        if (!reduction->reduced[d])
            result[rank++] = at[d] = lower_open_loop(lower, lower_loop_names[d], r.rows.space->dim[d], LOOP_PARALLEL);
        else if (reduction->keep)
            result[rank++] = index_constant(0);
    }
    total.acc[0] = lower_local(lower, "sum", total.dtype, false);
    stmt_local(arena, lower->block, total.acc[0],
               expr_number(arena, total.dtype, reduction_neutral(total.combine, total.dtype)));
    Block *outer = lower->block;
    for (uint32_t d = 0; d < r.rows.row_rank; d++)
        if (reduction->reduced[d])
            at[d] = lower_open_loop(lower, lower_loop_names[d], r.rows.space->dim[d], LOOP_SERIAL);
    lower_reduce_row(lower, &r.rows, r.node, &total);
    lower_leave(lower, outer);
    lower->bound[value] = expr_cast(arena, value_type(lower->graph, value)->dtype, expr_local(arena, total.acc[0]));
    lower_stores(lower, result);
    lower->bound[value] = NULL;
    lower_leave(lower, start);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Runs r;
    (void)recipe;
    return see(lower->graph, lower->target, &lower->graph->node[kernel->anchor], &r) &&
           !lower_has_other_windows(lower, kernel);
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)node_flops(lower->graph, &lower->graph->node[kernel->anchor]) / lower->target->lanes;
}

const Provider provider_runs = {
    .name = "runs",
    .doc = "what is reduced and lies together comes as a row, one after the other",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_WINDOW,
    .offers = offers,
    .cost = cost,
    .lower = runs_lower,
};
