/* Running sums and products: an accumulator for each position of the other dimensions goes along the axis, adding and
 * storing. Where elements of these lie next to each other, a vector of accumulators does; and where there are many of
 * them, a row of accumulators in scratch, so that memory is gone through as it lies. */
#include "kernel/lower/lower.h"

#include "ops/meaning.h"

typedef struct Running {
    const Node *node;
    Cumulation cumulation;
    uint32_t rank;
    int64_t extent;
} Running;

static double start(const Running *r)
{
    return reduction_neutral(r->cumulation.combine, r->cumulation.accumulator);
}

static void store_sum(Lower *lower, const Running *r, const Expr *sum, const Index *position)
{
    ValueId result = r->node->out[0];
    lower->bound[result] = expr_cast(lower->arena, value_type(lower->graph, result)->dtype, sum);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

/* One round: the operand is read before the result is stored, which may lie over it. */
static void add_and_store(Lower *lower, const Running *r, const Local *acc, const Index *position)
{
    Arena *arena = lower->arena;
    Index zero = index_constant(0);
    const Expr *sum = expr_local(arena, acc);
    const Expr *more = expr_cast(arena, acc->dtype, lower_value(lower, r->node->in[0], position));
    if (r->cumulation.exclusive) {
        const Local *term = lower_local(lower, "term", acc->dtype, true);
        stmt_local(arena, lower->block, term, more);
        more = expr_local(arena, term);
    }
    const Expr *next = expr_word(arena, r->cumulation.combine, acc->dtype, sum, more, NULL);
    if (!r->cumulation.exclusive)
        stmt_assign(arena, lower->block, acc, zero, zero, next);
    store_sum(lower, r, sum, position);
    if (r->cumulation.exclusive)
        stmt_assign(arena, lower->block, acc, zero, zero, next);
}

/* Where round `var` is. */
static Index along(Lower *lower, const Running *r, const Var *var)
{
    Index at = index_var(lower->arena, var);
    return r->cumulation.reverse
               ? index_add(lower->arena, index_constant(r->extent - 1), index_scale(lower->arena, at, -1))
               : at;
}

/* `others` is a position in the dimensions beside the axis. */
static void run_along(Lower *lower, void *context, const Index *others)
{
    const Running *r = context;
    Arena *arena = lower->arena;
    Index position[MAX_RANK];
    const Local *acc = lower_local(lower, "acc", r->cumulation.accumulator, true);
    stmt_local(arena, lower->block, acc, expr_number(arena, acc->dtype, start(r)));
    const Var *var = index_var_new(arena, "k", 0, r->extent - 1);
    Index at = along(lower, r, var);
    for (uint32_t d = 0; d < r->rank; d++)
        position[d] = d == r->cumulation.dimension ? at : others[d - (d > r->cumulation.dimension)];
    Block *loop = &stmt_for(arena, lower->block, var, 0, r->extent, 1, LOOP_SERIAL)->body;
    Block *outer = lower_enter(lower, loop);
    add_and_store(lower, r, acc, position);
    lower_leave(lower, outer);
}

/* Rows of accumulators */

#define WIDE 64  /* elements behind the axis, from which on a row goes along */
#define ROW  256 /* at most */

/* How many accumulators go along together, or 0. */
static int64_t row_of(const Lower *lower, const Node *node)
{
    const Shape *shape = value_shape(lower->graph, node->out[0]);
    int64_t inner = 1;
    for (uint32_t d = cumulation_of(lower->graph, node).dimension + 1; d < shape->rank; d++)
        inner *= shape->dim[d];
    return lower->target->team || inner < WIDE ? 0 : inner < ROW ? inner : ROW;
}

typedef struct Row {
    const Running *running;
    uint32_t sums; /* buffer */
    Index first;   /* of the elements behind the axis, those of the row */
    Index *position;
} Row;

static void row_clear(Lower *lower, void *context, Index at)
{
    const Row *row = context;
    DType dtype = row->running->cumulation.accumulator;
    stmt_store(lower->arena, lower->block, row->sums, at, expr_number(lower->arena, dtype, start(row->running)));
}

/* One element: as add_and_store. */
static void row_add(Lower *lower, void *context, Index at)
{
    const Row *row = context;
    const Running *r = row->running;
    Arena *arena = lower->arena;
    uint32_t behind = r->cumulation.dimension + 1;
    DType dtype = r->cumulation.accumulator;
    index_unflatten(arena, index_add(arena, row->first, at), value_shape(lower->graph, r->node->out[0])->dim + behind,
                    r->rank - behind, row->position + behind);
    const Local *before = lower_local(lower, "before", dtype, true), *sum = lower_local(lower, "sum", dtype, true);
    const Expr *more = expr_cast(arena, dtype, lower_value(lower, r->node->in[0], row->position));
    stmt_local(arena, lower->block, before, expr_load(arena, dtype, row->sums, at));
    stmt_local(arena, lower->block, sum,
               expr_word(arena, r->cumulation.combine, dtype, expr_local(arena, before), more, NULL));
    stmt_store(arena, lower->block, row->sums, at, expr_local(arena, sum));
    store_sum(lower, r, expr_local(arena, r->cumulation.exclusive ? before : sum), row->position);
}

static void run_row(Lower *lower, Row *row, int64_t elements)
{
    const Running *r = row->running;
    lower_vector_loop(lower, "j", elements, LOOP_SERIAL, block_vectorizes, row_clear, row);
    const Var *var = index_var_new(lower->arena, "k", 0, r->extent - 1);
    Block *outer = lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, r->extent, 1, LOOP_SERIAL)->body);
    row->position[r->cumulation.dimension] = along(lower, r, var);
    lower_vector_loop(lower, "j", elements, LOOP_SERIAL, block_vectorizes, row_add, row);
    lower_leave(lower, outer);
}

/* Opens a loop of rounds that may run at once; none for one round. */
static Index open_loop(Lower *lower, const char *name, int64_t rounds)
{
    const Var *var = index_var_new(lower->arena, name, 0, rounds - 1);
    if (rounds == 1)
        return index_constant(0);
    lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, rounds, 1, LOOP_PARALLEL)->body);
    return index_var(lower->arena, var);
}

/* Whole rows, then what is left. */
static void run_rows(Lower *lower, const Running *r, int64_t inner, int64_t elements)
{
    const Shape *shape = value_shape(lower->graph, r->node->out[0]);
    Index position[MAX_RANK];
    Row row = {.running = r, .sums = lower_scratch(lower, 0), .position = position};
    Block *start = lower->block, *outer;
    for (uint32_t d = 0; d < r->cumulation.dimension; d++)
        position[d] = open_loop(lower, lower_loop_names[d], shape->dim[d]);
    outer = lower->block;
    row.first = index_scale(lower->arena, open_loop(lower, "row", inner / elements), elements);
    run_row(lower, &row, elements);
    lower_leave(lower, outer);
    row.first = index_constant(inner / elements * elements);
    if (inner % elements)
        run_row(lower, &row, inner % elements);
    lower_leave(lower, start);
}

static bool never(const Block *body, const Var *var)
{
    (void)body, (void)var;
    return false;
}

static void running_lower(Lower *lower)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    const Type *type = value_type(lower->graph, node->out[0]);
    Running running = {.node = node, .cumulation = cumulation_of(lower->graph, node), .rank = type->shape.rank};
    Type others = {.dtype = type->dtype};
    int64_t inner = 1;
    running.extent = type->shape.dim[running.cumulation.dimension];
    for (uint32_t d = 0; d < running.rank; d++) {
        if (d != running.cumulation.dimension)
            others.shape.dim[others.shape.rank++] = type->shape.dim[d];
        inner *= d > running.cumulation.dimension ? type->shape.dim[d] : 1;
    }
    int64_t row = row_of(lower, node);
    if (!shape_elements(&type->shape))
        return;
    if (row)
        run_rows(lower, &running, inner, row);
    else
        lower_nest_each_by(lower, &others, inner > 1 ? block_nested_vectorizes : never, run_along, &running);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    int64_t row = row_of(lower, node);
    if (row && shape_elements(value_shape(lower->graph, node->out[0])))
        recipe_scratch(lower, recipe, "sums", cumulation_of(lower->graph, node).accumulator, row, true);
    return true;
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)node_flops(lower->graph, &lower->graph->node[kernel->anchor]);
}

const Provider provider_running = {
    .name = "running",
    .doc = "accumulators that go along the axis, one for each position beside it",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_CUMULATION,
    .offers = offers,
    .cost = cost,
    .lower = running_lower,
};
