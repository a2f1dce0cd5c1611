/* Running sums: an accumulator for each position of the other dimensions goes along the axis, adding and storing.  Where
 * elements of these lie next to each other, a vector of accumulators does. */
#include "kernel/kernel.h"

#include "ops/meaning.h"

typedef struct Running {
    const Node *node;
    Cumulation cumulation;
    uint32_t rank;
    int64_t extent;
} Running;

/* One round: the operand is read before the result is stored, which may lie over it. */
static void add_and_store(Lower *lower, const Running *r, const Local *acc, const Index *position)
{
    Arena *arena = lower->arena;
    Index zero = index_constant(0);
    ValueId result = r->node->out[0];
    DType dtype = value_type(lower->graph, result)->dtype;
    const Expr *sum = expr_local(arena, acc);
    const Expr *more = expr_cast(arena, acc->dtype, lower_value(lower, r->node->in[0], position));
    if (r->cumulation.exclusive) {
        const Local *term = lower_local(lower, "term", acc->dtype, true);
        stmt_local(arena, lower->block, term, more);
        more = expr_local(arena, term);
    }
    const Expr *next = expr_word(arena, WORD_ADD, acc->dtype, sum, more, NULL);
    if (!r->cumulation.exclusive)
        stmt_assign(arena, lower->block, acc, zero, zero, next);
    lower->bound[result] = expr_cast(arena, dtype, sum);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
    if (r->cumulation.exclusive)
        stmt_assign(arena, lower->block, acc, zero, zero, next);
}

/* `others` is a position in the dimensions beside the axis. */
static void run_along(Lower *lower, void *context, const Index *others)
{
    const Running *r = context;
    Arena *arena = lower->arena;
    Index position[MAX_RANK];
    const Local *acc = lower_local(lower, "acc", r->cumulation.accumulator, true);
    stmt_local(arena, lower->block, acc, expr_number(arena, acc->dtype, 0));
    const Var *var = index_var_new(arena, "k", 0, r->extent - 1);
    Index at = r->extent > 1 ? index_var(arena, var) : index_constant(0);
    if (r->cumulation.reverse)
        at = index_add(arena, index_constant(r->extent - 1), index_scale(arena, at, -1));
    for (uint32_t d = 0; d < r->rank; d++)
        position[d] = d == r->cumulation.dimension ? at : others[d - (d > r->cumulation.dimension)];
    Block *loop = &stmt_for(arena, lower->block, var, 0, r->extent, 1, LOOP_SERIAL)->body;
    Block *outer = lower_enter(lower, loop);
    add_and_store(lower, r, acc, position);
    lower_leave(lower, outer);
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
    if (shape_elements(&type->shape))
        lower_nest_each_by(lower, &others, inner > 1 ? block_nested_vectorizes : never, run_along, &running);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    (void)lower, (void)kernel, (void)recipe;
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
    .knob = (const KnobSpec[]){{NULL, false, NULL}},
    .forms = 1u << FORM_CUMULATION,
    .offers = offers,
    .cost = cost,
    .lower = running_lower,
};
