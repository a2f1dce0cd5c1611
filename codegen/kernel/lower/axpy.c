/* Products of a few rows and a matrix that lies far away, row by row (in BLAS: axpy; the other way to lie is dots').
 *
 *     sums[:] += left[k] * right[k, :]
 *
 * For a matrix that is read once, where packing it for register tiles would cost more than the product: values of a
 * cache times what a token attends to, a vector times a matrix from outside.  A tile goes down a panel of columns, from
 * page to page; here the rows are read as they lie in memory, several streams of them at once, and the sums stay in the
 * first level.
 *
 * Of dtypes that have no vectors here (f64, integers), whose constants are not packed either, the loop along the sums
 * is one that C compilers make vectors of, and the matrix may lie anywhere.
 *
 * Needs: elements in memory that follow one another along the columns; f32 or narrower ones to widen, or of a dtype
 * without vectors.  Otherwise tiles or windows do it. */
#include "base/number.h"
#include "kernel/lower/ahead.h"
#include "kernel/lower/contract.h"
#include "passes/widen.h"

#include <assert.h>

#define MOST_STREAMS 4
#define MOST_ROWS    4    /* of the result, whose elements wait in registers */
#define LEAST_DEPTH  16   /* that pays for the sums */
#define LEAST_PART   1024 /* columns of a part that a thread takes: a page of f32 */
#define MOST_PARTS   4

typedef struct Axpy {
    Lower *lower;
    const Node *node;
    Product product;
    DType dtype;                   /* of the sums */
    const Var *loop[MAX_RANK + 2]; /* over the batch, parts of columns, steps of a stream */
    Index batch[MAX_RANK];
    uint32_t sums;          /* buffer: [rows][across] */
    int64_t across;         /* columns of a part */
    int64_t first, streams; /* steps of the depth that are gone through now, cut into streams */
    Index column, row, depth;
    const Local *factor[MOST_ROWS * MOST_STREAMS]; /* [rows][streams]: of the left operand */
} Axpy;

static const Expr *element(const Axpy *a, bool right)
{
    Index position[MAX_RANK];
    lower_product_position(a->lower, a->node, &a->product, right, a->batch, right ? a->column : a->row, a->depth,
                           position);
    return expr_cast(a->lower->arena, a->dtype, lower_value(a->lower, a->node->in[right], position));
}

/* Which step of the depth a stream is at. */
static Index step_of(const Axpy *a, int64_t stream)
{
    const Var *k = a->loop[a->product.batch_rank + 1];
    Index first = index_constant(a->first + stream * (k->high + 1));
    return index_add(a->lower->arena, index_var(a->lower->arena, k), first);
}

static void set_streams(Axpy *a, int64_t first, int64_t streams, int64_t depth)
{
    a->first = first;
    a->streams = streams;
    a->loop[a->product.batch_rank + 1] = index_var_new(a->lower->arena, "k", 0, depth / streams - 1);
}

static Index sum_at(const Axpy *a, int64_t row, Index column)
{
    return index_add(a->lower->arena, index_constant(row * a->across), column);
}

static Index column_of_part(const Axpy *a, Index column)
{
    Index part = index_scale(a->lower->arena, index_var(a->lower->arena, a->loop[a->product.batch_rank]), a->across);
    return index_add(a->lower->arena, part, column);
}

static void clear(Lower *lower, void *context, Index column)
{
    const Axpy *a = context;
    for (int64_t row = 0; row < a->product.rows; row++)
        stmt_store(lower->arena, lower->block, a->sums, sum_at(a, row, column), expr_number(lower->arena, a->dtype, 0));
}

static void add(Lower *lower, void *context, Index column)
{
    Axpy *a = context;
    Arena *arena = lower->arena;
    const Expr *right[MOST_STREAMS];
    a->column = column_of_part(a, column);
    for (int64_t s = 0; s < a->streams; s++) {
        a->depth = step_of(a, s);
        right[s] = element(a, true);
    }
    for (int64_t row = 0; row < a->product.rows; row++) {
        const Expr *sum = expr_load(arena, a->dtype, a->sums, sum_at(a, row, column));
        for (int64_t s = 0; s < a->streams; s++) {
            const Expr *factor = expr_local(arena, a->factor[row * a->streams + s]);
            const Expr *product = expr_word(arena, WORD_MUL, a->dtype, factor, right[s], NULL);
            sum = expr_word(arena, WORD_ADD, a->dtype, sum, product, NULL);
        }
        stmt_store(arena, lower->block, a->sums, sum_at(a, row, column), sum);
    }
}

static void load_factors(Axpy *a)
{
    Lower *lower = a->lower;
    for (int64_t row = 0; row < a->product.rows; row++)
        for (int64_t s = 0; s < a->streams; s++) {
            const Local *factor = lower_local(lower, "factor", a->dtype, false);
            a->row = index_constant(row);
            a->depth = step_of(a, s);
            stmt_local(lower->arena, lower->block, factor, element(a, false));
            a->factor[row * a->streams + s] = factor;
        }
}

static const Expr *ahead_element(void *context, Index row, Index along)
{
    Axpy *a = context;
    a->depth = index_add(a->lower->arena, row, index_constant(a->first));
    a->column = column_of_part(a, along);
    return element(a, true);
}

/* All steps of the streams. */
static void add_rows(Axpy *a)
{
    Lower *lower = a->lower;
    const Var *k = a->loop[a->product.batch_rank + 1];
    Block *outer = lower->block;
    if (k->high > 0)
        lower_enter(lower, &stmt_for(lower->arena, outer, k, 0, k->high + 1, 1, LOOP_SERIAL)->body);
    lower_fetch_ahead(lower, &(Ahead){k, a->streams, a->across, ahead_element, a});
    load_factors(a);
    lower_vector_loop(lower, "j", a->across, LOOP_SERIAL, block_vectorizes, add, a);
    lower_leave(lower, outer);
}

static void finish(Lower *lower, void *context, Index column)
{
    const Axpy *a = context;
    Index position[MAX_RANK];
    ValueId result = a->node->out[0];
    uint32_t rank = 0;
    for (; rank < a->product.batch_rank; rank++)
        position[rank] = index_var(lower->arena, a->loop[rank]);
    if (a->product.has_rows)
        position[rank++] = a->row;
    position[rank] = column_of_part(a, column);
    Index at = index_add(lower->arena, index_scale(lower->arena, a->row, a->across), column);
    lower->bound[result] = expr_cast(lower->arena, value_type(lower->graph, result)->dtype,
                                     expr_load(lower->arena, a->dtype, a->sums, at));
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

static void finish_rows(Axpy *a)
{
    Lower *lower = a->lower;
    Block *outer = lower->block;
    const Var *row = index_var_new(lower->arena, "row", 0, a->product.rows - 1);
    if (row->high > 0)
        lower_enter(lower, &stmt_for(lower->arena, outer, row, 0, row->high + 1, 1, LOOP_SERIAL)->body);
    a->row = index_var(lower->arena, row);
    lower_vector_loop(lower, "j", a->across, LOOP_SERIAL, block_vectorizes, finish, a);
    lower_leave(lower, outer);
}

/* Columns that threads share out, where the batch alone gives them too little. */
static int64_t choose_parts(const Axpy *a)
{
    const Shape *shape = value_shape(a->lower->graph, a->node->out[0]);
    int64_t batch = shape_elements(shape) / (a->product.rows * a->product.columns), parts = MOST_PARTS;
    while (parts > 1 && (batch >= MOST_PARTS || a->product.columns % (parts * a->lower->target->lanes) ||
                         a->product.columns / parts < LEAST_PART))
        parts--;
    return parts;
}

static void make_loops(Axpy *a)
{
    Arena *arena = a->lower->arena;
    const Shape *result = value_shape(a->lower->graph, a->node->out[0]);
    uint32_t batch = a->product.batch_rank;
    int64_t parts = choose_parts(a);
    for (uint32_t i = 0; i < batch; i++) {
        a->loop[i] = index_var_new(arena, lower_loop_names[i], 0, result->dim[i] - 1);
        a->batch[i] = index_var(arena, a->loop[i]);
    }
    a->across = a->product.columns / parts;
    a->loop[batch] = index_var_new(arena, "part", 0, parts - 1);
    set_streams(a, 0, least(MOST_STREAMS, a->product.depth), a->product.depth);
}

/* What is read once comes from afar, where it is more than the rest of a run leaves in the second level. */
static bool comes_from_afar(const Axpy *a, ValueId source)
{
    const Graph *graph = a->lower->graph;
    Role role = graph->value[source].role;
    return role != ROLE_CONST && role != ROLE_PARAM &&
           type_bytes(value_type(graph, source)) > a->lower->target->l2_bytes / 4;
}

/* Is the right operand in memory, one element of a row behind the other? */
static bool follows_columns(Axpy *a)
{
    Lower *lower = a->lower;
    Index position[MAX_RANK], address;
    ValueId value = lower_stored_operand(lower, a->node->in[1]), source;
    const Var *column = index_var_new(lower->arena, "column", 0, a->product.columns - 1);
    DType dtype = value_type(lower->graph, value)->dtype;
    int64_t step;
    lower_product_position(lower, a->node, &a->product, true, a->batch, index_var(lower->arena, column), step_of(a, 0),
                           position);
    bool packs = a->dtype == DT_F32; /* what is constant, when compiling */
    return (!packs || dtype == DT_F32 || widen_is_narrow(dtype)) && !kernel_computes(lower, value) &&
           !lower->nibbles[value] && lower_memory_source(lower, value, position, &source, &address) &&
           index_factor(address, column, &step) && step == 1 && (!packs || comes_from_afar(a, source));
}

static bool see(Lower *lower, const Kernel *kernel, Axpy *a)
{
    *a = (Axpy){.lower = lower, .node = &lower->graph->node[kernel->anchor]};
    const Type *type = value_type(lower->graph, a->node->out[0]);
    if (lower->target->dialect != DIALECT_VECTOR || !product_of(lower->graph, a->node, &a->product) ||
        type->layout.block || dtype_is_half(type->dtype) || !shape_elements(&type->shape) ||
        lower_has_other_windows(lower, kernel))
        return false;
    a->dtype = reduction_accumulator(type->dtype);
    const Product *product = &a->product;
    if (product->transposed || !product->has_columns || product->rows > MOST_ROWS || product->depth < LEAST_DEPTH ||
        product->columns < lower->target->lanes)
        return false;
    make_loops(a);
    return follows_columns(a);
}

static bool axpy_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Axpy a;
    if (!see(lower, kernel, &a))
        return false;
    recipe_scratch(lower, recipe, "sums", a.dtype, a.product.rows * a.across, true);
    return true;
}

static double axpy_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)node_flops(lower->graph, &lower->graph->node[kernel->anchor]) / (8 * lower->target->lanes);
}

static void open_loop(Lower *lower, const Var *var)
{
    if (var->high > 0)
        lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, var->high + 1, 1, LOOP_PARALLEL)->body);
}

static void axpy_lower(Lower *lower)
{
    Axpy a;
    Block *start = lower->block;
    bool offered = see(lower, lower->kernel, &a);
    assert(offered && "what was offered is offered again");
    (void)offered;
    a.sums = lower_scratch(lower, 0);
    for (uint32_t i = 0; i <= a.product.batch_rank; i++)
        open_loop(lower, a.loop[i]);
    int64_t depth = a.product.depth, rest = depth % a.streams;
    lower_vector_loop(lower, "j", a.across, LOOP_SERIAL, block_vectorizes, clear, &a);
    add_rows(&a);
    if (rest) {
        set_streams(&a, depth - rest, 1, rest);
        add_rows(&a);
    }
    finish_rows(&a);
    lower_leave(lower, start);
}

const Provider provider_axpy = {
    .name = "axpy",
    .doc = "rows of a matrix, each times a number, added up in a row of sums",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_CONTRACTION,
    .offers = axpy_offers,
    .cost = axpy_cost,
    .lower = axpy_lower,
};
