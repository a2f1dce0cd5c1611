/* Products by dot products: each result is the sum of what two rows have in common, a vector of the depth at a time.
 *
 *     result[row, column] = sum over depth of left[row, depth] * right[column, depth]
 *
 * For a matrix that is read once, by few vectors, where packing it for register tiles would cost more than the product:
 * keys of a cache times the query of one token, a matrix from outside times a vector, a table that is read as it lies,
 * too.  Its rows are read as they lie in memory, from begin to end, which is what memory is fastest at.
 *
 * Needs: vectors, f32, or narrower floats to widen, in memory that follow one another along the depth in both operands.
 * Otherwise windows do it. */
#include "kernel/lower/contract.h"

#include <assert.h>

#define MOST_SUMS 4 /* vectors of sums at once, which do not wait for one another */

typedef struct Dots {
    Lower *lower;
    const Node *node;
    Product product;
    const Var *loop[MAX_RANK + 2]; /* over the batch, rows, columns of a stream */
    int64_t streams, sums; /* columns are cut into streams, which are read side by side: memory brings several faster
                              than one; vectors of sums in each */
    Index column;
} Dots;

/* Where operand 0 is at [row, depth], or operand 1 at [column, depth]. */
static void operand_position(const Dots *d, bool right, Index depth, Index *position)
{
    Arena *arena = d->lower->arena;
    const Shape *shape = value_shape(d->lower->graph, d->node->in[right]);
    uint32_t batch = d->product.batch_rank;
    bool across = right ? d->product.has_columns : d->product.has_rows;
    bool depth_first = right && across && !d->product.transposed;
    uint32_t leading = shape->rank - 1 - across;
    for (uint32_t i = 0; i < leading; i++)
        position[i] = shape->dim[i] == 1 ? index_constant(0) : index_var(arena, d->loop[batch - leading + i]);
    if (across)
        position[leading + depth_first] = right ? d->column : index_var(arena, d->loop[batch]);
    position[leading + (across && !depth_first)] = depth;
}

/* What an operand is in memory: itself, or narrow floats that the kernel widens. */
static ValueId stored_operand(const Lower *lower, ValueId value)
{
    const Node *producer = kernel_computes(lower, value) ? value_producer(lower->graph, value) : NULL;
    bool widens = producer && op_info(producer->op)->family == FAMILY_CAST &&
                  dtype_is_half(value_type(lower->graph, producer->in[0])->dtype);
    return widens ? producer->in[0] : value;
}

/* In memory, one element behind the other? */
static bool follows_depth(const Dots *d, bool right)
{
    Lower *lower = d->lower;
    ValueId value = stored_operand(lower, d->node->in[right]), source;
    DType dtype = value_type(lower->graph, value)->dtype;
    const Var *k = index_var_new(lower->arena, "k", 0, d->product.depth - 1);
    Index position[MAX_RANK], address;
    int64_t step;
    operand_position(d, right, index_var(lower->arena, k), position);
    return (dtype == DT_F32 || dtype_is_half(dtype)) && !kernel_computes(lower, value) &&
           lower_memory_source(lower, value, position, &source, &address) && index_factor(address, k, &step) &&
           step == 1;
}

static void make_loops(Dots *d)
{
    Arena *arena = d->lower->arena;
    const Shape *result = value_shape(d->lower->graph, d->node->out[0]);
    uint32_t batch = d->product.batch_rank;
    for (uint32_t i = 0; i < batch; i++)
        d->loop[i] = index_var_new(arena, lower_loop_names[i], 0, result->dim[i] - 1);
    d->loop[batch] = index_var_new(arena, "row", 0, d->product.rows - 1);
    d->loop[batch + 1] = index_var_new(arena, "column", 0, d->product.columns / d->streams - 1);
}

static Index column_of(const Dots *d, int64_t stream)
{
    const Var *column = d->loop[d->product.batch_rank + 1];
    return index_add(d->lower->arena, index_var(d->lower->arena, column), index_constant(stream * (column->high + 1)));
}

/* A view may break where a later stream begins, and not where the first does. */
static bool streams_follow_depth(Dots *d)
{
    bool follow = follows_depth(d, false);
    for (int64_t s = 0; s < d->streams; s++) {
        d->column = column_of(d, s);
        follow &= follows_depth(d, true);
    }
    return follow;
}

/* So many that there is no rest. */
static int64_t whole_parts(int64_t of, int64_t size, int64_t most)
{
    while (most > 1 && of % (most * size))
        most /= 2;
    return most;
}

static bool see(Dots *d)
{
    const Lower *lower = d->lower;
    const Type *type = value_type(lower->graph, d->node->out[0]);
    int64_t lanes = lower->target->lanes;
    if (lower->target->dialect != DIALECT_VECTOR || !product_of(lower->graph, d->node, &d->product) ||
        type->layout.block || type->dtype != DT_F32 || !shape_elements(&type->shape) || d->product.depth < lanes)
        return false;
    d->streams = whole_parts(d->product.columns, 1, MOST_SUMS);
    d->sums = whole_parts(d->product.depth / lanes * lanes, lanes, MOST_SUMS / d->streams);
    make_loops(d);
    return streams_follow_depth(d);
}

static const Expr *product_at(const Dots *d, Index depth)
{
    Index position[MAX_RANK];
    const Expr *factor[2];
    for (int right = 0; right < 2; right++) {
        operand_position(d, right, depth, position);
        factor[right] = lower_value(d->lower, d->node->in[right], position);
    }
    return expr_word(d->lower->arena, WORD_MUL, DT_F32, factor[0], factor[1], NULL);
}

/* The products of each stream at a step of the depth, each to a sum of its own. */
static void add_products(Dots *d, Block *block, const Local *const *sum, Index depth)
{
    Arena *arena = d->lower->arena;
    Index zero = index_constant(0);
    Block *outer = lower_enter(d->lower, block);
    for (int64_t s = 0; s < d->streams; s++) {
        d->column = column_of(d, s);
        stmt_assign(arena, block, sum[s], zero, zero,
                    expr_word(arena, WORD_ADD, DT_F32, expr_local(arena, sum[s]), product_at(d, depth), NULL));
    }
    lower_leave(d->lower, outer);
}

/* The first `whole` steps of the depth, to the streams' dots. */
static void sum_vectors(Dots *d, const Local *const *dot, int64_t whole)
{
    Lower *lower = d->lower;
    Arena *arena = lower->arena;
    Index zero = index_constant(0);
    int64_t lanes = lower->target->lanes;
    const Var *lane = index_var_new(arena, "lane", 0, lanes - 1);
    const Var *k = index_var_new(arena, "k", 0, whole - d->sums * lanes);
    const Local *acc[MOST_SUMS]; /* [sums][streams] */
    Block *block = &stmt_lanes(arena, lower->block, lane, (uint32_t)lanes)->body;
    for (int64_t i = 0; i < d->sums * d->streams; i++) {
        acc[i] = lower_local(lower, "acc", DT_F32, true);
        stmt_local(arena, block, acc[i], expr_number(arena, DT_F32, 0));
    }
    Block *steps = &stmt_for(arena, block, k, 0, whole, d->sums * lanes, LOOP_SERIAL)->body;
    for (int64_t i = 0; i < d->sums; i++) {
        Index at = index_add(arena, index_var(arena, k), index_constant(i * lanes));
        add_products(d, steps, acc + i * d->streams, index_add(arena, at, index_var(arena, lane)));
    }
    for (int64_t i = d->streams; i < d->sums * d->streams; i++) {
        const Local *first = acc[i % d->streams];
        stmt_assign(arena, block, first, zero, zero,
                    expr_word(arena, WORD_ADD, DT_F32, expr_local(arena, first), expr_local(arena, acc[i]), NULL));
    }
    for (int64_t s = 0; s < d->streams; s++)
        stmt_reduce(arena, block, WORD_ADD, dot[s], acc[s]);
}

/* What follows the product in the kernel, for one element of the result. */
static void store_dot(Dots *d, int64_t stream, const Expr *dot)
{
    Lower *lower = d->lower;
    Index position[MAX_RANK];
    uint32_t rank = 0, batch = d->product.batch_rank;
    for (uint32_t i = 0; i < batch; i++)
        position[rank++] = index_var(lower->arena, d->loop[i]);
    if (d->product.has_rows)
        position[rank++] = index_var(lower->arena, d->loop[batch]);
    if (d->product.has_columns)
        position[rank++] = column_of(d, stream);
    lower->bound[d->node->out[0]] = dot;
    lower_stores(lower, position);
    lower->bound[d->node->out[0]] = NULL;
}

static void dots_of_streams(Dots *d)
{
    Lower *lower = d->lower;
    Arena *arena = lower->arena;
    int64_t depth = d->product.depth, whole = depth / lower->target->lanes * lower->target->lanes;
    const Local *dot[MOST_SUMS];
    for (int64_t s = 0; s < d->streams; s++) {
        dot[s] = lower_local(lower, "dot", DT_F32, false);
        stmt_local(arena, lower->block, dot[s], expr_number(arena, DT_F32, 0));
    }
    sum_vectors(d, dot, whole);
    if (whole < depth) {
        const Var *k = index_var_new(arena, "k", whole, depth - 1);
        Stmt *rest = stmt_for(arena, lower->block, k, whole, depth, 1, LOOP_SERIAL);
        add_products(d, &rest->body, dot, index_var(arena, k));
    }
    for (int64_t s = 0; s < d->streams; s++)
        store_dot(d, s, expr_local(arena, dot[s]));
}

static bool dots_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Dots d = {.lower = lower, .node = &lower->graph->node[kernel->anchor]};
    (void)recipe;
    return !lower_has_other_windows(lower, kernel) && see(&d);
}

/* One row times weights from beyond the second level: several streams of their rows come faster than one of panels, and
 * need no packed copy, which would be a second one where rows are picked of them, too (a table of tokens that makes the
 * logits). */
static bool streams_weights(const Lower *lower, const Node *node)
{
    ValueId weights = kernel_view_owner(lower->graph, stored_operand(lower, node->in[1]));
    const Value *value = &lower->graph->value[weights];
    Product product;
    return (value->role == ROLE_CONST || value->role == ROLE_PARAM) && product_of(lower->graph, node, &product) &&
           shape_elements(value_shape(lower->graph, node->out[0])) == product.columns &&
           type_bytes(value_type(lower->graph, weights)) > lower->target->l2_bytes;
}

/* Two loads for each multiply-add. */
static double dots_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    (void)recipe;
    return (double)node_flops(lower->graph, node) / (lower->target->lanes * (streams_weights(lower, node) ? 8 : 1));
}

static void dots_lower(Lower *lower)
{
    Dots d = {.lower = lower, .node = &lower->graph->node[lower->kernel->anchor]};
    Block *start = lower->block;
    bool offered = see(&d);
    assert(offered && "what was offered is offered again");
    (void)offered;
    for (uint32_t i = 0; i < d.product.batch_rank + 2; i++) {
        const Var *var = d.loop[i];
        if (var->high > 0)
            lower->block = &stmt_for(lower->arena, lower->block, var, 0, var->high + 1, 1, LOOP_PARALLEL)->body;
    }
    dots_of_streams(&d);
    lower_leave(lower, start);
}

const Provider provider_dots = {
    .name = "dots",
    .doc = "a dot product of two rows for each result, in vectors along the depth",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_CONTRACTION,
    .offers = dots_offers,
    .cost = dots_cost,
    .lower = dots_lower,
};
