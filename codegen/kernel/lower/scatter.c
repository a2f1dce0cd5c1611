/* scatter, scatter_add and the like: x with slices of the update put, or added, at positions along an axis.  One loop
 * goes through the positions in their order, so that sums of equal ones are the same in every run; what runs at once
 * are the other dimensions. Threads that stand alone take an element of all of those each; else the dimensions behind
 * the axis are the innermost loop, a run of memory. */
#include "kernel/lower/lower.h"

#include "ops/meaning.h"

#include <string.h>

typedef struct Scatter {
    const Node *node;
    Word combine;
    uint32_t axis, index_rank, rank; /* of x, of the index, of x */
    Index from[MAX_RANK];            /* the position in the update, by dimension, where loops have come to it */
    Index row;                       /* in x, along the axis */
} Scatter;

/* Dimension d of x, other than the axis, in the update. */
static uint32_t in_update(const Scatter *s, uint32_t d)
{
    return d < s->axis ? d : d + s->index_rank - 1;
}

/* Opens a loop over this dimension of the update; none where there is one position. */
static void open_loop(Lower *lower, Scatter *s, uint32_t dimension, LoopKind kind)
{
    int64_t extent = value_shape(lower->graph, s->node->in[2])->dim[dimension];
    const Var *var = index_var_new(lower->arena, lower_loop_names[dimension], 0, extent - 1);
    s->from[dimension] = index_var(lower->arena, var);
    if (extent > 1)
        lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, extent, 1, kind)->body);
}

/* `inner` is a position in the dimensions behind the axis that have no loop yet. */
static void put_element(Lower *lower, void *context, const Index *inner)
{
    Scatter *s = context;
    Arena *arena = lower->arena;
    ValueId result = s->node->out[0];
    DType dtype = value_type(lower->graph, result)->dtype, sum = reduction_accumulator(dtype);
    Index from[MAX_RANK], to[MAX_RANK];
    memcpy(from, s->from, sizeof from);
    for (uint32_t d = s->axis + 1; inner && d < s->rank; d++)
        from[in_update(s, d)] = inner[d - s->axis - 1];
    for (uint32_t d = 0; d < s->rank; d++)
        to[d] = d == s->axis ? s->row : from[in_update(s, d)];
    Index address = lower_value_address(lower, result, to);
    const Expr *before =
        s->combine == WORD_OPERAND
            ? NULL
            : expr_cast(arena, sum, expr_load(arena, dtype, lower_buffer(lower, result, false), address));
    const Expr *after = lower_value(lower, s->node->in[2], from);
    if (before)
        after = expr_word(arena, s->combine, sum, before, expr_cast(arena, sum, after), NULL);
    stmt_store(arena, lower->block, lower_buffer(lower, result, true), address, expr_cast(arena, dtype, after));
}

static void name_row(Lower *lower, Scatter *s)
{
    Index row = lower_gather_row(lower, s->node, s->from + s->axis);
    const Local *local = lower_local(lower, "row", DT_I64, false);
    stmt_local(lower->arena, lower->block, local, expr_index(lower->arena, DT_I64, row));
    s->row = index_data(lower->arena, expr_local(lower->arena, local), index_low(row), index_high(row));
}

static void scatter_lower(Lower *lower)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    const Type *x = value_type(lower->graph, node->out[0]);
    Scatter s = {.node = node,
                 .combine = gather_combine(node),
                 .axis = gather_dimension(lower->graph, node),
                 .index_rank = value_shape(lower->graph, node->in[1])->rank,
                 .rank = x->shape.rank};
    bool alone = lower->target->team > 0;
    Type inner = {.dtype = x->dtype};
    for (uint32_t d = s.axis + 1; d < s.rank; d++)
        inner.shape.dim[inner.shape.rank++] = x->shape.dim[d];
    lower_update_begin(lower, node);
    if (!shape_elements(value_shape(lower->graph, node->in[2])))
        return;

    Block *start = lower->block;
    for (uint32_t d = 0; d < s.rank; d++)
        if (d < s.axis || (alone && d > s.axis))
            open_loop(lower, &s, in_update(&s, d), LOOP_PARALLEL);
    for (uint32_t d = 0; d < s.index_rank; d++)
        open_loop(lower, &s, s.axis + d, LOOP_SERIAL);
    name_row(lower, &s);
    if (alone)
        put_element(lower, &s, NULL);
    else
        lower_nest_each(lower, &inner, put_element, &s);
    lower_leave(lower, start);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    (void)recipe;
    return node_is_scatter(&lower->graph->node[kernel->anchor]);
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)shape_elements(value_shape(lower->graph, lower->graph->node[kernel->anchor].in[2]));
}

const Provider provider_scatter = {
    .name = "scatter",
    .doc = "slices put or added in the order of their positions; a copy of the whole before, where it is not there",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_UPDATE,
    .offers = offers,
    .cost = cost,
    .lower = scatter_lower,
};
