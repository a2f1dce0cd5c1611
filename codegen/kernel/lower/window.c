/* Windows: one accumulator per result element (window_value.c) in loops over the result: pooling, reductions over
 * any axes, argmax, and contractions that no register tiles take (of other dtypes, made by casts, narrow).
 * Where the target has teams of threads, one shares out each sum when sums are few and long. */
#include "base/number.h"
#include "kernel/lower/contract.h"

#include <assert.h>

/* Can the loads of a nested block, and its locals, be vectors over var? */
bool block_nested_vectorizes(const Block *block, const Var *var)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (!stmt_value_vectorizes(stmt, var))
            return false;
        if (stmt->kind == STMT_STORE && !stmt_vectorizes(stmt, var, true))
            return false;
        if (stmt->kind == STMT_LANES) /* is one of vectors already */
            return false;
        if (stmt->kind == STMT_LOCAL && stmt->local->dtype != DT_F32)
            return false;
        if (stmt->kind == STMT_FOR && ((stmt->clamp_low && index_uses(stmt->low_least, var)) ||
                                       (stmt->clamp_high && index_uses(stmt->high_most, var))))
            return false;
        if (stmt->kind == STMT_IF && index_uses(stmt->index, var))
            return false;
        if ((stmt->kind == STMT_FOR || stmt->kind == STMT_IF) && !block_nested_vectorizes(&stmt->body, var))
            return false;
    }
    return true;
}

static void window_element(Lower *lower, const Node *anchor, const Index *position)
{
    const Expr *value = lower_window_value(lower, anchor, position);
    DType dtype = value_type(lower->graph, anchor->out[0])->dtype;
    lower->bound[anchor->out[0]] = expr_cast(lower->arena, dtype, value);
    Block *outer = lower->block;
    if (lower->team)
        outer = lower_enter(lower,
                            &stmt_if(lower->arena, lower->block, index_var(lower->arena, lower->thread), 0, 1)->body);
    lower_stores(lower, position);
    if (lower->team)
        lower_leave(lower, outer);
    lower->bound[anchor->out[0]] = NULL;
}

#define FEW_RESULTS 8192 /* too few for a GPU, when each is one thread's */
#define LONG_WINDOW 128
#define SHARE       8 /* rounds left to each thread of a team */

/* Few results of long sums: a team of threads for each. */
static uint32_t team_for(const Lower *lower, const Node *anchor)
{
    int64_t extent = lower_window_shared_extent(lower, anchor);
    uint32_t team = 32;
    if (!lower->target->team || extent < LONG_WINDOW ||
        shape_elements(value_shape(lower->graph, anchor->out[0])) > FEW_RESULTS)
        return 0;
    while (team * SHARE < extent && team < lower->target->team)
        team *= 2;
    return team;
}

typedef struct WindowRow {
    const Node *anchor;
    const Nest *nest;
    Index *loop;
    uint32_t along; /* the dimension of the nest, the last one that is longer than 1 */
    int64_t first;  /* of what is made of that one ... */
    int64_t count;
} WindowRow;

static void row_element(Lower *lower, void *context, Index at)
{
    WindowRow *row = context;
    Index position[MAX_RANK + 1];
    row->loop[row->along] = index_add(lower->arena, at, index_constant(row->first));
    lower_nest_position(lower->arena, row->nest, row->loop, position);
    window_element(lower, row->anchor, position);
}

/* The innermost loop over the result: lanes where everything in it can be a vector, or a team for each element. */
static void window_row(Lower *lower, WindowRow *row)
{
    uint32_t d = row->along;
    if (!lower->team) {
        lower_vector_loop(lower, lower_loop_names[d], row->count, LOOP_PARALLEL, block_nested_vectorizes, row_element,
                          row);
        return;
    }
    const Var *at = index_var_new(lower->arena, lower_loop_names[d], 0, row->count - 1);
    Block *body = &stmt_for(lower->arena, lower->block, at, 0, row->count, 1, LOOP_PARALLEL)->body;
    lower->thread = index_var_new(lower->arena, "thread", 0, lower->team - 1);
    body = &stmt_for(lower->arena, body, lower->thread, 0, lower->team, 1, LOOP_THREADS)->body;
    Block *outer = lower_enter(lower, body);
    row_element(lower, row, index_var(lower->arena, at));
    lower_leave(lower, outer);
}

/* What a reduction keeps of extent 1 behind it is no loop: vectors go along what is before. */
static uint32_t innermost(const Nest *nest, bool of_row)
{
    uint32_t d = nest->rank - 1;
    while (!of_row && d > 0 && nest->extent[d] == 1)
        d--;
    return d;
}

/* Columns for which a loop of their own is not worth its text; rows and columns of a convolution. */
#define FEW_INSIDE       4
#define FEW_CONVOLUTIONS 8

typedef struct Range {
    int64_t begin, end;
    bool whole; /* no window sticks out of the image, or nobody asks */
} Range;

/* What slides over an image, whose borders may have loops of their own. */
static bool slides(const Lower *lower, const Node *anchor, Window *window)
{
    const Target *target = lower->target;
    Convolution conv;
    if (target->small || target->team) /* threads of a GPU test what they read */
        return false;
    if (node_is_contraction(lower->graph, anchor)) {
        bool convolves = !target->flash && convolution_of(lower->graph, anchor, &conv);
        *window = convolves ? conv.window : (Window){0};
        return convolves;
    }
    Reduction reduction = reduction_of(lower->graph, anchor);
    *window = reduction.window;
    return target->dialect == DIALECT_VECTOR && reduction.has_window &&
           (reduction.kind == REDUCE_VALUES || reduction.kind == REDUCE_MEAN);
}

/* The positions in a dimension of the result whose windows stick out before the image, those inside, those behind.
 * Inside no tap is tested, so that C compilers unroll the windows.  Returns how many ranges that are. */
static uint32_t cut_dimension(const WindowDimension *d, int64_t extent, int64_t few, Range range[3])
{
    int64_t room = d->in + d->before - window_span(d); /* where the last window inside begins */
    int64_t begin = ceil_div(d->before, d->stride), end = room < 0 ? 0 : least(extent, room / d->stride + 1);
    if (end - begin < few) {
        range[0] = (Range){0, extent, true};
        return 1;
    }
    uint32_t count = 0;
    if (begin > 0)
        range[count++] = (Range){0, begin, false};
    range[count++] = (Range){begin, end, true};
    if (end < extent)
        range[count++] = (Range){end, extent, false};
    return count;
}

static uint32_t cut_columns(const Lower *lower, const Node *anchor, int64_t columns, Range range[3])
{
    Window window;
    int64_t few = node_is_contraction(lower->graph, anchor) ? FEW_CONVOLUTIONS : FEW_INSIDE;
    range[0] = (Range){0, columns, true};
    return slides(lower, anchor, &window) ? cut_dimension(&window.dim[window.rank - 1], columns, few, range) : 1;
}

/* A loop over what is in the range of a dimension, which is entered, or the only position. */
static Index open_range(Lower *lower, uint32_t dimension, const Range *range)
{
    if (range->end - range->begin == 1)
        return index_constant(range->begin);
    const Var *var = index_var_new(lower->arena, lower_loop_names[dimension], range->begin, range->end - 1);
    lower_enter(lower, &stmt_for(lower->arena, lower->block, var, range->begin, range->end, 1, LOOP_PARALLEL)->body);
    return index_var(lower->arena, var);
}

/* Columns that are rows of vectors of channels, or vectors themselves. */
static void window_columns(Lower *lower, WindowRow *row, uint32_t column, bool cuts)
{
    Range range[3] = {{0, column == row->along ? row->count : row->nest->extent[column], true}};
    uint32_t count = cuts ? cut_columns(lower, row->anchor, range[0].end, range) : 1;
    Block *start = lower->block;
    for (uint32_t i = 0; i < count; i++) {
        if (column == row->along) {
            row->first = range[i].begin;
            row->count = range[i].end - range[i].begin;
        } else
            row->loop[column] = open_range(lower, column, &range[i]);
        window_row(lower, row);
        lower_leave(lower, start);
    }
}

/* The rows of a convolution's result, of which those whose windows stick out of the image have loops of their own: in
 * the others windows are of one height.  NONE where nothing is cut. */
static uint32_t rows_to_cut(const Lower *lower, const Node *anchor, const Nest *nest, uint32_t along)
{
    Window window;
    bool cuts = node_is_contraction(lower->graph, anchor) && slides(lower, anchor, &window) && window.rank > 1 &&
                along + 1 == nest->rank && value_shape(lower->graph, anchor->out[0])->rank == nest->rank;
    return cuts ? along - 1 : NONE;
}

static void window_rows(Lower *lower, WindowRow *row, uint32_t rows)
{
    Window window;
    Range range[3];
    Block *start = lower->block;
    bool known = slides(lower, row->anchor, &window);
    assert(known && "it is what rows are cut of");
    (void)known;
    uint32_t count = cut_dimension(&window.dim[window.rank - 2], row->nest->extent[rows], FEW_CONVOLUTIONS, range);
    int64_t columns = row->count;
    for (uint32_t i = 0; i < count; i++) {
        row->loop[rows] = open_range(lower, rows, &range[i]);
        row->first = 0;
        row->count = columns;
        window_columns(lower, row, row->along, range[i].whole);
        lower_leave(lower, start);
    }
}

/* Loops over the result; where `image` and `row` are given, over the part of one row. */
static void window_nest(Lower *lower, const Node *anchor, const Index *image, const Index *row)
{
    const Type *type = value_type(lower->graph, anchor->out[0]);
    Nest nest = lower_nest(type);
    Index loop[MAX_RANK + 1];
    Block *start = lower->block;

    if (nest.rank == 0) {
        nest.rank = 1;
        nest.extent[0] = 1;
    }
    uint32_t along = innermost(&nest, image || row);
    uint32_t column = type->layout.block && along + 1 == nest.rank ? along - 1 : along;
    uint32_t rows = image || row ? NONE : rows_to_cut(lower, anchor, &nest, along);
    for (uint32_t d = 0; d < nest.rank; d++) {
        if (d == along || d == column || d == rows)
            continue;
        const Index *given = d == 0 ? image : d == 2 ? row : NULL;
        loop[d] = given ? *given : open_range(lower, d, &(Range){0, nest.extent[d], true});
    }
    WindowRow all = {anchor, &nest, loop, along, 0, nest.extent[along]};
    bool cuts = column != along || along + 1 == nest.rank; /* else these are other dimensions */
    if (rows != NONE)
        window_rows(lower, &all, rows);
    else
        window_columns(lower, &all, column, cuts);
    lower_leave(lower, start);
}

void lower_window_row(Lower *lower, const Node *anchor, Index n, Index h)
{
    window_nest(lower, anchor, &n, &h);
}

enum { KNOB_TEAM };

static bool window_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    const Node *anchor = &lower->graph->node[kernel->anchor];
    int64_t *team = &recipe->knob[KNOB_TEAM];
    if (lower_has_other_windows(lower, kernel))
        return false;
    if (*team == KNOB_FREE)
        *team = team_for(lower, anchor);
    return *team == 0 || (team_fits(lower->target, *team) && lower_window_shared_extent(lower, anchor) > 0);
}

#define SMALL_PRODUCT 1024 /* multiplications of one of a batch: C compilers write its loops out */
#define SMALL_CYCLES  0.35

/* One multiply-add at a time. */
static double window_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const Graph *graph = lower->graph;
    const Node *node = &graph->node[kernel->anchor];
    double cycles = (double)node_flops(graph, node);
    Product product;
    (void)recipe;
    if (value_type(graph, node->out[0])->dtype != DT_F32 || !product_of(graph, node, &product) ||
        value_shape(graph, node->in[1])->rank < 3)
        return cycles;
    return product.rows * product.depth * product.columns > SMALL_PRODUCT ? cycles : SMALL_CYCLES * cycles;
}

static void window_lower(Lower *lower)
{
    lower->team = (uint32_t)lower->kernel->recipe.knob[KNOB_TEAM];
    window_nest(lower, &lower->graph->node[lower->kernel->anchor], NULL, NULL);
    lower->team = 0;
}

const Provider provider_window = {
    .name = "window",
    .doc = "one accumulator per result, in loops over what is reduced",
    .knob = (const KnobSpec[]){{"team", 1024, "threads that share out one sum"}, {NULL, 0, NULL}},
    .forms = 1u << FORM_WINDOW | 1u << FORM_CONTRACTION,
    .offers = window_offers,
    .cost = window_cost,
    .lower = window_lower,
};
