/* Products by dot products (dots.h).
 *
 * For a matrix that is read once, by few vectors, where packing it for register tiles would cost more than the product:
 * keys of a cache times the query of one token, a matrix from outside times a vector, a table that is read as it lies,
 * too.  Its rows are read as they lie in memory, from begin to end, which is what memory is fastest at.
 *
 * Needs: vectors, f32, or narrower elements to widen, in memory that follow one another along the depth in both
 * operands. Otherwise windows do it. */
#include "kernel/lower/dots.h"

#include "kernel/lower/ahead.h"

#include <assert.h>

static const Expr *product_at(const Dots *d, Index depth)
{
    return expr_word(d->lower->arena, WORD_MUL, DT_F32, dots_element(d, false, depth), dots_element(d, true, depth),
                     NULL);
}

static void add_to(const Dots *d, Block *block, const Local *sum, const Expr *value)
{
    Arena *arena = d->lower->arena;
    Index zero = index_constant(0);
    stmt_assign(arena, block, sum, zero, zero, expr_word(arena, WORD_ADD, DT_F32, expr_local(arena, sum), value, NULL));
}

/* The products of each stream at a step of the depth, each to a sum of its own. */
static void add_products(Dots *d, Block *block, const Local *const *sum, Index depth)
{
    Block *outer = lower_enter(d->lower, block);
    for (int64_t s = 0; s < d->streams; s++) {
        d->column = dots_column(d, s);
        add_to(d, block, sum[s], product_at(d, depth));
    }
    lower_leave(d->lower, outer);
}

static void new_sums(const Dots *d, Block *block, const char *name, int64_t count, const Local **sum)
{
    for (int64_t i = 0; i < count; i++) {
        sum[i] = lower_local(d->lower, name, DT_F32, true);
        stmt_local(d->lower->arena, block, sum[i], expr_number(d->lower->arena, DT_F32, 0));
    }
}

/* `extent` steps of the depth from `start`; a round of the loop has a vector for each of acc, [sums][streams]. */
static void add_steps(Dots *d, Block *block, const Local *const *acc, const Var *lane, Index start, int64_t extent)
{
    Arena *arena = d->lower->arena;
    int64_t lanes = d->lower->target->lanes, round = d->sums * lanes;
    int64_t counted = d->nibbles ? round : 1; /* a variable's step does not say that it is even */
    const Var *k = index_var_new(arena, "k", 0, (extent - round) / counted);
    Block *steps =
        extent == round ? block : &stmt_for(arena, block, k, 0, extent / counted, round / counted, LOOP_SERIAL)->body;
    Index first = extent == round ? start : index_add(arena, start, index_scale(arena, index_var(arena, k), counted));
    for (int64_t i = 0; i < d->sums; i++) {
        Index at = index_add(arena, first, index_constant(i * lanes));
        add_products(d, steps, acc + i % d->kept * d->streams, index_add(arena, at, index_var(arena, lane)));
    }
}

/* The sums of each block of the depth, times their scales. */
static void add_blocks(Dots *d, Block *block, const Local *const *acc, const Var *lane)
{
    Lower *lower = d->lower;
    Arena *arena = lower->arena;
    const Local *sum[MOST_SUMS];
    const Var *number = index_var_new(arena, "block", 0, d->product.depth / d->block - 1);
    Block *body = &stmt_for(arena, block, number, 0, number->high + 1, 1, LOOP_SERIAL)->body;
    Index start = index_scale(arena, index_var(arena, number), d->block);
    new_sums(d, body, "sum", d->streams, sum);
    add_steps(d, body, sum, lane, start, d->block);
    Block *outer = lower_enter(lower, body);
    for (int64_t s = 0; s < d->streams; s++) {
        d->column = dots_column(d, s);
        add_to(d, body, acc[s],
               expr_word(arena, WORD_MUL, DT_F32, expr_local(arena, sum[s]), dots_scale(d, start), NULL));
    }
    lower_leave(lower, outer);
}

/* The first `whole` steps of the depth, to the streams' dots. */
static void sum_vectors(Dots *d, const Local *const *dot, int64_t whole)
{
    Lower *lower = d->lower;
    Arena *arena = lower->arena;
    uint32_t lanes = (uint32_t)lower->target->lanes;
    const Var *lane = index_var_new(arena, "lane", 0, lanes - 1);
    const Local *acc[MOST_SUMS]; /* [kept][streams] */
    Block *block = &stmt_lanes(arena, lower->block, lane, lanes)->body;
    new_sums(d, block, "acc", d->kept * d->streams, acc);
    if (d->scaled)
        add_blocks(d, block, acc, lane);
    else
        add_steps(d, block, acc, lane, index_constant(0), whole);
    for (int64_t i = d->streams; i < d->kept * d->streams; i++)
        add_to(d, block, acc[i % d->streams], expr_local(arena, acc[i]));
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
        position[rank++] = dots_column(d, stream);
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
    return !lower_has_other_windows(lower, kernel) && dots_see(&d);
}

/* Two loads for each multiply-add. */
static double dots_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    bool suits = dots_suits_constant(lower, node) || dots_suits_column(lower, node);
    (void)recipe;
    return (double)node_flops(lower->graph, node) / (lower->target->lanes * (suits ? 8 : 1));
}

static void open_rounds(Lower *lower, const Var *var)
{
    lower->block = &stmt_for(lower->arena, lower->block, var, 0, var->high + 1, 1, LOOP_PARALLEL)->body;
}

static void open_loop(Lower *lower, const Var *var)
{
    if (var->high > 0)
        open_rounds(lower, var);
}

static const Expr *ahead_element(void *context, Index row, Index along)
{
    Dots *d = context;
    d->column = index_add(d->lower->arena, row, index_constant(d->first));
    return dots_element(d, true, along);
}

static const Var *columns_of(const Dots *d)
{
    return d->loop[d->product.batch_rank + 1];
}

static void fetch_columns(Dots *d)
{
    if (!d->nibbles)
        lower_fetch_ahead(d->lower, &(Ahead){columns_of(d), d->streams, d->product.depth, ahead_element, d});
}

static void each_column(Dots *d)
{
    fetch_columns(d);
    dots_of_streams(d);
}

static void pack_rows(Dots *d)
{
    Packing packing;
    if (d->packed && dots_packing(d, &d->source, &packing))
        d->weights = lower_weights(d->lower, d->source, &packing, d->product.columns * d->product.depth);
}

static void dots_lower(Lower *lower)
{
    Dots d = {.lower = lower, .node = &lower->graph->node[lower->kernel->anchor]};
    Block *start = lower->block;
    bool offered = dots_see(&d);
    assert(offered && "what was offered is offered again");
    (void)offered;
    pack_rows(&d);
    for (uint32_t i = 0; i <= d.product.batch_rank; i++)
        open_loop(lower, d.loop[i]);
    Block *each = lower->block;
    open_loop(lower, columns_of(&d));
    each_column(&d);
    lower_leave(lower, each);
    if (dots_rest(&d)) { /* a loop, too, if it is one column: threads share what lies in loops */
        open_rounds(lower, columns_of(&d));
        each_column(&d);
    }
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
