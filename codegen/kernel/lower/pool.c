/* Poolings over rows and columns of plain images: first the rows of a window come together, column by column, in
 * scratch with neutral elements at both ends, then its columns do.  An element of the result takes a tap of each row
 * and one of each column, not their product, and no column is an edge.  Several rows of the result are made at a time:
 * vectors of columns begin anywhere, and would wait for those of a row that has just been written. */
#include "base/number.h"
#include "kernel/lower/contract.h"

#define LEAST_COLUMNS 4
#define MOST_IN_TEXT  8 /* taps of a row or column that stand one by one in the text */
#define LEAST_ROWS    2 /* at a time, where there are as many */
#define MOST_ROWS     16
#define SCRATCH_SHARE 8 /* of the elements that it reads and makes, one in so many at most in scratch */

typedef struct Pool {
    const Node *node;
    Reduction reduction;
    uint32_t rank;           /* of the window */
    WindowDimension h, w;    /* its last two dimensions */
    int64_t width, pitch;    /* of a row in scratch, and from one to the next */
    int64_t rows;            /* that are made at a time */
    int64_t from, to, count; /* columns of the image from there on come to the row there */
    bool counts;             /* means are of fewer elements in some columns, which a row of scratch tells */
    uint32_t scratch[2];     /* buffers of these */
    Index row;               /* in scratch */
    bool inside;             /* all taps of h are inside the image */
    Seen image;
    const Expr *taps; /* of a mean: of all dimensions but the last, in this row */
    Index *position;  /* in the result */
} Pool;

enum { PIECE_ROWS, PIECE_COUNTS };

/* Which */

static bool see(const Lower *lower, const Kernel *kernel, Pool *p)
{
    const Graph *graph = lower->graph;
    *p = (Pool){.node = &graph->node[kernel->anchor]};
    if (lower->target->lanes < 2 || lower->target->small || lower->lean || lower_has_other_windows(lower, kernel) ||
        !node_is_reduction(graph, p->node))
        return false;
    p->reduction = reduction_of(graph, p->node);
    const Window *window = &p->reduction.window;
    p->rank = window->rank;
    if (!p->reduction.has_window || p->reduction.accumulator != DT_F32 || p->rank < 2 ||
        (p->reduction.kind != REDUCE_VALUES && p->reduction.kind != REDUCE_MEAN) ||
        value_type(graph, p->node->out[0])->layout.block || value_type(graph, p->node->in[0])->layout.block ||
        !shape_elements(value_shape(graph, p->node->out[0])) || !shape_elements(value_shape(graph, p->node->in[0])))
        return false;
    p->h = window->dim[p->rank - 2];
    p->w = window->dim[p->rank - 1];
    p->width = (p->w.out - 1) * p->w.stride + window_span(&p->w);
    p->from = most(0, -p->w.before);
    p->to = most(0, p->w.before);
    p->count = least(p->w.in - p->from, p->width - p->to);
    p->pitch = ceil_div(p->width, lower->target->lanes) * lower->target->lanes;
    int64_t elements =
        shape_elements(value_shape(graph, p->node->out[0])) + shape_elements(value_shape(graph, p->node->in[0]));
    p->rows = least(least(p->h.out, MOST_ROWS), elements / SCRATCH_SHARE / p->pitch);
    bool pads = p->w.before > 0 || p->width - p->w.before > p->w.in;
    p->counts = p->reduction.kind == REDUCE_MEAN && pads;
    return p->w.out >= LEAST_COLUMNS && p->count >= LEAST_COLUMNS && p->h.size * p->w.size > 1 &&
           p->rows >= least(p->h.out, LEAST_ROWS);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Pool p;
    if (!see(lower, kernel, &p))
        return false;
    recipe_scratch(lower, recipe, "rows", DT_F32, p.rows * p.pitch + 2 * lower->target->lanes, true);
    if (p.counts)
        recipe_scratch(lower, recipe, "counts", DT_F32, p.w.out, true);
    recipe->rewrites = true; /* by vectors that overlap */
    return true;
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    Pool p;
    (void)recipe;
    see(lower, kernel, &p);
    double taps = 1, results = (double)shape_elements(value_shape(lower->graph, p.node->out[0]));
    for (uint32_t i = 0; i + 1 < p.rank; i++)
        taps *= (double)p.reduction.window.dim[i].size;
    return results / (double)lower->target->lanes *
           ((double)p.count / (double)p.w.out * taps + (double)(p.w.size * least(p.w.stride, 2)));
}

/* The row */

static void clear(Lower *lower, const Pool *p, int64_t begin, int64_t end)
{
    if (begin >= end)
        return;
    const Var *i = index_var_new(lower->arena, "i", begin, end - 1);
    Block *block = lower->block;
    if (end - begin > 1)
        block = &stmt_for(lower->arena, block, i, begin, end, 1, LOOP_SERIAL)->body;
    Index at = end - begin > 1 ? index_var(lower->arena, i) : index_constant(begin);
    stmt_store(lower->arena, block, p->scratch[PIECE_ROWS], index_add(lower->arena, p->row, at),
               expr_number(lower->arena, DT_F32, reduction_neutral(p->reduction.combine, DT_F32)));
}

/* The first element begins the accumulator, if that has not begun with a neutral one. */
static void combine(Lower *lower, const Pool *p, const Local **acc, const Expr *value)
{
    Index zero = index_constant(0);
    if (*acc) {
        stmt_assign(lower->arena, lower->block, *acc, zero, zero,
                    expr_word(lower->arena, p->reduction.combine, DT_F32, expr_local(lower->arena, *acc), value, NULL));
        return;
    }
    *acc = lower_local(lower, "acc", DT_F32, true);
    stmt_local(lower->arena, lower->block, *acc, value);
}

static const Local *neutral_result(Lower *lower, const Pool *p)
{
    const Local *acc = NULL;
    combine(lower, p, &acc, expr_number(lower->arena, DT_F32, reduction_neutral(p->reduction.combine, DT_F32)));
    return acc;
}

static void add_row(Lower *lower, const Pool *p, const Local **acc, Index *at, Index tap)
{
    uint32_t h = p->rank; /* n and c come before */
    at[h] = lower_inside(lower, &p->image, h, lower_tap_at(lower->arena, &p->h, p->position[h], tap));
    combine(lower, p, acc, expr_cast(lower->arena, DT_F32, lower_value(lower, p->node->in[0], at)));
}

/* A column of the image: what windows have of it, over all their dimensions but the last. */
static void bring_column(Lower *lower, void *context, Index column)
{
    const Pool *p = context;
    Arena *arena = lower->arena;
    Index at[MAX_RANK] = {p->position[0], p->position[1]}, tap;
    at[1 + p->rank] = index_add(arena, column, index_constant(p->from));
    bool in_text = p->inside && p->h.size <= MOST_IN_TEXT;
    const Local *acc = in_text && p->rank == 2 ? NULL : neutral_result(lower, p);
    Block *outer = lower->block;
    for (uint32_t i = 0; i + 2 < p->rank; i++) {
        const WindowDimension *d = &p->reduction.window.dim[i];
        const char *name = lower_tap_name(arena, p->rank - 1 - i);
        lower_enter(lower, lower_clamped_taps(lower, lower->block, name, d, p->position[2 + i], &tap));
        at[2 + i] = lower_inside(lower, &p->image, 2 + i, lower_tap_at(arena, d, p->position[2 + i], tap));
    }
    if (in_text)
        for (int64_t kh = 0; kh < p->h.size; kh++)
            add_row(lower, p, &acc, at, index_constant(kh));
    else {
        lower_enter(lower, lower_clamped_taps(lower, lower->block, "kh", &p->h, p->position[p->rank], &tap));
        add_row(lower, p, &acc, at, tap);
    }
    lower_leave(lower, outer);
    Index to = index_add(arena, p->row, index_add(arena, column, index_constant(p->to)));
    stmt_store(arena, lower->block, p->scratch[PIECE_ROWS], to, expr_local(arena, acc));
}

static void bring_row(Lower *lower, Pool *p)
{
    Arena *arena = lower->arena;
    Index h = p->position[p->rank];
    int64_t begin = most(0, ceil_div(p->h.before, p->h.stride)), room = p->h.in + p->h.before - window_span(&p->h);
    int64_t end = room < 0 ? 0 : least(p->h.out, room / p->h.stride + 1);
    Block *outer = lower->block, *other = outer;
    clear(lower, p, 0, p->to);
    clear(lower, p, p->to + p->count, p->width);
    if (begin < end) {
        if (begin > 0 || end < p->h.out) {
            Stmt *rows = stmt_if(arena, outer, h, begin, end);
            lower_enter(lower, &rows->body);
            other = &rows->other;
        }
        p->inside = true;
        lower_cover_loop(lower, "j", p->count, LOOP_SERIAL, block_nested_vectorizes, bring_column, p);
        p->inside = false;
        lower_leave(lower, outer);
    }
    if (other != outer || begin >= end) {
        lower_enter(lower, other);
        lower_cover_loop(lower, "j", p->count, LOOP_SERIAL, block_nested_vectorizes, bring_column, p);
        lower_leave(lower, outer);
    }
}

/* The results */

static void add_column(Lower *lower, const Pool *p, const Local **acc, Index first, Index tap)
{
    Index at = index_add(lower->arena, first, index_scale(lower->arena, tap, p->w.dilation));
    combine(lower, p, acc, expr_load_spread(lower->arena, DT_F32, p->scratch[PIECE_ROWS], at));
}

/* How many elements the mean at a column is of, in this row. */
static const Expr *count_of(Lower *lower, const Pool *p, Index column)
{
    const Expr *counts = p->counts ? expr_load(lower->arena, DT_F32, p->scratch[PIECE_COUNTS], column)
                                   : expr_number(lower->arena, DT_F32, (double)p->w.size);
    return expr_word(lower->arena, WORD_MUL, DT_F32, p->taps, counts, NULL);
}

static void finish_column(Lower *lower, void *context, Index column)
{
    const Pool *p = context;
    Arena *arena = lower->arena;
    ValueId result = p->node->out[0];
    Block *outer = lower->block;
    Index first = index_add(arena, p->row, index_scale(arena, column, p->w.stride));
    const Local *acc = p->w.size <= MOST_IN_TEXT ? NULL : neutral_result(lower, p);
    p->position[1 + p->rank] = column;
    if (p->w.size <= MOST_IN_TEXT)
        for (int64_t kw = 0; kw < p->w.size; kw++)
            add_column(lower, p, &acc, first, index_constant(kw));
    else {
        const Var *kw = index_var_new(arena, "kw", 0, p->w.size - 1);
        lower_enter(lower, &stmt_for(arena, outer, kw, 0, p->w.size, 1, LOOP_SERIAL)->body);
        add_column(lower, p, &acc, first, index_var(arena, kw));
        lower_leave(lower, outer);
    }
    const Expr *value = expr_local(arena, acc);
    if (p->reduction.kind == REDUCE_MEAN)
        value = expr_word(arena, WORD_DIV, DT_F32, value, count_of(lower, p, column), NULL);
    lower->bound[result] = expr_cast(arena, value_type(lower->graph, result)->dtype, value);
    lower_stores(lower, p->position);
    lower->bound[result] = NULL;
}

/* The taps of all dimensions of the window but the last, that a mean counts in this row. */
static const Expr *count_rows(Lower *lower, const Pool *p)
{
    Arena *arena = lower->arena;
    const Expr *taps = NULL;
    for (uint32_t i = 0; i + 1 < p->rank; i++) {
        const Expr *more = lower_taps_inside(lower, &p->reduction, i, p->position[2 + i]);
        taps = taps ? expr_word(arena, WORD_MUL, DT_F32, taps, more, NULL) : more;
    }
    const Local *named = lower_local(lower, "taps", DT_F32, false);
    stmt_local(arena, lower->block, named, taps);
    return expr_local(arena, named);
}

static void finish_row(Lower *lower, Pool *p)
{
    if (p->reduction.kind == REDUCE_MEAN)
        p->taps = count_rows(lower, p);
    lower_cover_loop(lower, "i", p->w.out, LOOP_SERIAL, block_nested_vectorizes, finish_column, p);
}

static void count_columns(Lower *lower, const Pool *p)
{
    const Var *i = index_var_new(lower->arena, "i", 0, p->w.out - 1);
    Block *block = &stmt_for(lower->arena, lower->block, i, 0, p->w.out, 1, LOOP_SERIAL)->body;
    Index at = index_var(lower->arena, i);
    stmt_store(lower->arena, block, p->scratch[PIECE_COUNTS], at,
               lower_taps_inside(lower, &p->reduction, p->rank - 1, at));
}

/* A loop over rows of the result from `first` on; where there is one, just that. */
static void each_row(Lower *lower, Pool *p, Index first, void (*row)(Lower *lower, Pool *p))
{
    Arena *arena = lower->arena;
    const Var *r = index_var_new(arena, "r", 0, p->rows - 1);
    Index at = p->rows > 1 ? index_var(arena, r) : index_constant(0);
    Block *outer = lower->block;
    if (p->rows > 1)
        lower_enter(lower, &stmt_for(arena, outer, r, 0, p->rows, 1, LOOP_SERIAL)->body);
    p->row = index_scale(arena, at, p->pitch);
    p->position[p->rank] = index_add(arena, first, at);
    row(lower, p);
    lower_leave(lower, outer);
}

static void pool_lower(Lower *lower)
{
    Pool p;
    Arena *arena = lower->arena;
    Index position[MAX_RANK], first = index_constant(0);
    Block *start = lower->block;
    see(lower, lower->kernel, &p);
    p.position = position;
    p.image = lower_see_inside(lower, p.node->in[0]);
    p.scratch[PIECE_ROWS] = lower_scratch(lower, PIECE_ROWS);
    if (p.counts)
        p.scratch[PIECE_COUNTS] = lower_scratch(lower, PIECE_COUNTS);
    const Shape *shape = value_shape(lower->graph, p.node->out[0]);
    for (uint32_t d = 0; d + 2 < shape->rank; d++) {
        const Var *var = index_var_new(arena, lower_loop_names[d], 0, shape->dim[d] - 1);
        position[d] = shape->dim[d] > 1 ? index_var(arena, var) : index_constant(0);
        if (shape->dim[d] > 1)
            lower_enter(lower, &stmt_for(arena, lower->block, var, 0, shape->dim[d], 1, LOOP_PARALLEL)->body);
    }
    if (p.counts)
        count_columns(lower, &p);
    if (p.rows < p.h.out) {
        const Var *rows = index_var_new(arena, "rows", 0, ceil_div(p.h.out, p.rows) - 1);
        lower_enter(lower, &stmt_for(arena, lower->block, rows, 0, rows->high + 1, 1, LOOP_SERIAL)->body);
        first = lower_last_inside(lower, "first", index_scale(arena, index_var(arena, rows), p.rows), p.h.out - p.rows);
    }
    each_row(lower, &p, first, bring_row);
    each_row(lower, &p, first, finish_row);
    lower_leave(lower, start);
}

const Provider provider_pool = {
    .name = "pool",
    .doc = "a pooling: the rows of windows come together in scratch, then their columns",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_WINDOW,
    .offers = offers,
    .cost = cost,
    .lower = pool_lower,
};
