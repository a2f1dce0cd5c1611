/* Windows: one accumulator per result element, loops over what is reduced: pooling, reductions over any axes, argmax,
 * and contractions that the register-tiled kernel does not take (grouped, other dtypes, narrow).  Where the target has
 * teams of threads, one shares out each sum when sums are few and long. */
#include "kernel/kernel.h"

#include <assert.h>
#include <math.h>

Word reduce_combining_word(OpCode op)
{
    switch (op) {
    case OP_REDUCE_MAX:
    case OP_MAX_POOL:
        return WORD_MAX;
    case OP_REDUCE_MIN:
        return WORD_MIN;
    case OP_REDUCE_PROD:
        return WORD_MUL;
    default:
        return WORD_ADD;
    }
}

double reduce_neutral(Word combine, DType dtype)
{
    static const double least[DT_COUNT] = {[DT_I64] = -0x1p63, [DT_I32] = -0x1p31, [DT_I16] = -0x1p15, [DT_I8] = -128};
    static const double most[DT_COUNT] = {
        [DT_I64] = 0x1p63, [DT_I32] = 0x1p31 - 1, [DT_I16] = 0x1p15 - 1, [DT_I8] = 127, [DT_U8] = 255, [DT_BOOL] = 1};
    bool real = dtype_is_float(dtype);
    switch (combine) {
    case WORD_MAX:
        return real ? -INFINITY : least[dtype];
    case WORD_MIN:
        return real ? INFINITY : most[dtype];
    case WORD_MUL:
        return 1;
    default:
        return 0;
    }
}

/* Sums of f16 and bf16 are kept in f32 and rounded once. */
DType reduce_accumulator(DType dtype)
{
    return dtype == DT_F16 || dtype == DT_BF16 ? DT_F32 : dtype;
}

static void accumulate(Lower *lower, const Local *acc, Word combine, const Expr *value)
{
    const Expr *old = expr_local(lower->arena, acc);
    stmt_assign(lower->arena, lower->block, acc, index_constant(0), index_constant(0),
                expr_word(lower->arena, combine, acc->dtype, old, expr_cast(lower->arena, acc->dtype, value), NULL));
}

void reduce_axes(const Graph *graph, const Node *node, bool *reduced)
{
    uint32_t rank = value_shape(graph, node->in[0])->rank;
    bool arg = node->op == OP_ARGMAX || node->op == OP_ARGMIN;
    const Attr *axes = node_attr(node, arg ? "axis" : "axes");
    for (uint32_t d = 0; d < rank; d++)
        reduced[d] = !arg && axes->i == 0;
    for (int64_t i = 0; i < (arg ? 1 : axes->i); i++) {
        int64_t axis = arg ? axes->i : axes->ints[i];
        reduced[axis < 0 ? axis + rank : axis] = true;
    }
}

/* The loop of a window that a team of threads shares out. */
static Block *team_loop(Lower *lower, Block *block, const char *name, int64_t extent, Index *at)
{
    const Var *var = var_new(lower->arena, name, 0, extent - 1);
    Stmt *loop = stmt_for(lower->arena, block, var, 0, extent, lower->team, LOOP_SERIAL);
    loop->low = index_var(lower->arena, lower->thread);
    *at = index_var(lower->arena, var);
    return &loop->body;
}

static Block *window_loop(Lower *lower, Block *block, const char *name, int64_t extent, Index *at)
{
    const Var *var = var_new(lower->arena, name, 0, extent - 1);
    *at = index_var(lower->arena, var);
    if (extent == 1)
        return block;
    return &stmt_for(lower->arena, block, var, 0, extent, 1, LOOP_SERIAL)->body;
}

static const Expr *window_reduce(Lower *lower, const Node *node, const Index *position)
{
    const Shape *from = value_shape(lower->graph, node->in[0]);
    DType dtype = reduce_accumulator(value_type(lower->graph, node->out[0])->dtype);
    Word combine = reduce_combining_word(node->op);
    bool reduced[MAX_RANK];
    Index at[MAX_RANK];
    reduce_axes(lower->graph, node, reduced);

    const Local *acc = lower_local(lower, "acc", dtype, true);
    stmt_local(lower->arena, lower->block, acc, expr_number(lower->arena, dtype, reduce_neutral(combine, dtype)));
    Block *block = lower->block;
    bool keep = attr_bool(node, "keep"), share = lower->team > 0; /* the first loop is the team's */
    for (uint32_t d = 0, o = 0; d < from->rank; d++) {
        if (reduced[d]) {
            block = (share ? team_loop : window_loop)(lower, block, loop_names[d], from->dim[d], &at[d]);
            share = false;
        } else
            at[d] = position[keep ? d : o];
        o += !reduced[d];
    }
    if (shape_elements(from)) {
        Block *outer = lower_enter(lower, block);
        accumulate(lower, acc, combine, lower_value(lower, node->in[0], at));
        lower_leave(lower, outer);
    }
    if (lower->team)
        stmt_meet(lower->arena, lower->block, combine, acc, lower->team);
    return expr_local(lower->arena, acc);
}

/* The first position of the extreme value; a NaN wins, as in NumPy. */
static const Expr *window_arg(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    const Shape *from = value_shape(lower->graph, node->in[0]);
    DType dtype = reduce_accumulator(value_type(lower->graph, node->in[0])->dtype); /* f16 is not compared as bits */
    bool reduced[MAX_RANK], keep = attr_bool(node, "keep");
    Index at[MAX_RANK], along = index_constant(0), zero = index_constant(0);
    reduce_axes(lower->graph, node, reduced);

    for (uint32_t d = 0, o = 0; d < from->rank; d++) {
        at[d] = reduced[d] ? index_constant(0) : position[keep ? d : o];
        o += !reduced[d];
    }
    const Local *best = lower_local(lower, "best", dtype, true), *where = lower_local(lower, "where", DT_I64, true);
    stmt_local(arena, lower->block, best, expr_cast(arena, dtype, lower_value(lower, node->in[0], at)));
    stmt_local(arena, lower->block, where, expr_number(arena, DT_I64, 0));
    Block *block = lower->block;
    for (uint32_t d = 0; d < from->rank; d++)
        if (reduced[d]) {
            block = window_loop(lower, block, loop_names[d], from->dim[d], &at[d]);
            along = at[d];
        }
    Block *outer = lower_enter(lower, block);
    const Local *x = lower_local(lower, "x", dtype, true);
    stmt_local(arena, lower->block, x, expr_cast(arena, dtype, lower_value(lower, node->in[0], at)));
    const Expr *b = expr_local(arena, best), *v = expr_local(arena, x);
    bool largest = node->op == OP_ARGMAX;
    const Expr *wins = expr_word(arena, WORD_LT, DT_BOOL, largest ? b : v, largest ? v : b, NULL);
    if (dtype_is_float(dtype)) {
        const Expr *fresh_nan = expr_word(arena, WORD_AND, DT_BOOL, expr_word(arena, WORD_NE, DT_BOOL, v, v, NULL),
                                          expr_word(arena, WORD_EQ, DT_BOOL, b, b, NULL), NULL);
        wins = expr_word(arena, WORD_OR, DT_BOOL, wins, fresh_nan, NULL);
    }
    stmt_assign(
        arena, lower->block, where, zero, zero,
        expr_word(arena, WORD_SELECT, DT_I64, wins, expr_index(arena, DT_I64, along), expr_local(arena, where)));
    stmt_assign(arena, lower->block, best, zero, zero, expr_word(arena, WORD_SELECT, dtype, wins, v, b));
    lower_leave(lower, outer);
    return expr_local(arena, where);
}

/* One dimension of a sliding window: the tap's position in the input, in a loop cut to what lies inside it. */
static Block *window_dimension(Lower *lower, Block *block, const char *name, Index out, int64_t window, int64_t stride,
                               int64_t dilation, int64_t pad, int64_t extent, Index *tap, Index *in)
{
    Arena *arena = lower->arena;
    Index start = index_add(arena, index_scale(arena, out, stride), index_constant(-pad));
    const Var *var = var_new(arena, name, 0, window - 1);
    *tap = index_var(arena, var);
    *in = index_add(arena, start, index_scale(arena, *tap, dilation));
    if (window == 1)
        return block;
    Stmt *loop = stmt_for(arena, block, var, 0, window, 1, LOOP_SERIAL);
    if (dilation != 1)
        return &loop->body;
    if (index_low(*in) < 0) { /* tap >= -start */
        loop->clamp_low = true;
        loop->low_least = index_scale(arena, start, -1);
    }
    if (index_high(*in) >= extent) { /* tap < extent - start */
        loop->clamp_high = true;
        loop->high_most = index_add(arena, index_constant(extent), index_scale(arena, start, -1));
    }
    return &loop->body;
}

/* Where the loop's bounds alone do not keep the tap inside, reading is guarded. */
static void add_guard(Guard *guard, uint32_t *count, Index in, int64_t extent, int64_t window, int64_t dilation)
{
    if (window == 1 || dilation != 1)
        guard[(*count)++] = (Guard){in, extent};
}

static const Expr *window_pool(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    const Shape *from = value_shape(lower->graph, node->in[0]);
    DType dtype = reduce_accumulator(value_type(lower->graph, node->out[0])->dtype);
    Word combine = reduce_combining_word(node->op);
    int64_t window[2], stride[2], pad[4];
    Index at[MAX_RANK] = {position[0], position[1]}, tap[2];
    attr_ints(node, "window", 2, window);
    attr_ints(node, "stride", 2, stride);
    attr_pad2d(node, pad);

    const Local *acc = lower_local(lower, "acc", dtype, true);
    const Expr *neutral = expr_number(arena, dtype, reduce_neutral(combine, dtype));
    stmt_local(arena, lower->block, acc, neutral);
    Block *block = window_dimension(lower, lower->block, "kh", position[2], window[0], stride[0], 1, pad[0],
                                    from->dim[2], &tap[0], &at[2]);
    block = window_dimension(lower, block, "kw", position[3], window[1], stride[1], 1, pad[1], from->dim[3], &tap[1],
                             &at[3]);
    Block *outer = lower_enter(lower, block);
    Guarded guarded;
    Guard guard[2];
    uint32_t guards = 0;
    for (int d = 0; d < 2; d++)
        add_guard(guard, &guards, at[2 + d], from->dim[2 + d], window[d], 1);
    guard_open(lower, &guarded);
    const Expr *value = expr_cast(arena, dtype, lower_value(lower, node->in[0], at));
    value = guard_close(lower, &guarded, value, guard, guards, neutral);
    accumulate(lower, acc, combine, value);
    lower_leave(lower, outer);
    const Expr *sum = expr_local(arena, acc);
    if (node->op == OP_MAX_POOL)
        return sum;

    /* The mean: over the taps inside the input, or over the whole window. */
    const Expr *count = expr_number(arena, dtype, 1);
    for (int d = 0; d < 2; d++) {
        Index start = index_add(arena, index_scale(arena, position[2 + d], stride[d]), index_constant(-pad[d]));
        bool inside = index_low(start) >= 0 && index_high(start) + window[d] <= from->dim[2 + d];
        const Expr *taps = expr_number(arena, dtype, (double)window[d]);
        if (!inside && !attr_bool(node, "count_pad")) {
            const Expr *first = expr_word(arena, WORD_MAX, DT_I64, expr_index(arena, DT_I64, start),
                                          expr_number(arena, DT_I64, 0), NULL);
            const Expr *end = expr_word(arena, WORD_MIN, DT_I64,
                                        expr_index(arena, DT_I64, index_add(arena, start, index_constant(window[d]))),
                                        expr_number(arena, DT_I64, (double)from->dim[2 + d]), NULL);
            taps = expr_cast(arena, dtype, expr_word(arena, WORD_SUB, DT_I64, end, first, NULL));
        }
        count = count->kind == EXPR_NUMBER && taps->kind == EXPR_NUMBER
                    ? expr_number(arena, dtype, count->number * taps->number)
                    : expr_word(arena, WORD_MUL, dtype, count, taps, NULL);
    }
    return expr_word(arena, WORD_DIV, dtype, sum, count, NULL);
}

static const Expr *window_conv(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    const Shape *x = value_shape(lower->graph, node->in[0]), *w = value_shape(lower->graph, node->in[1]);
    DType dtype = reduce_accumulator(value_type(lower->graph, node->out[0])->dtype);
    int64_t stride[2], dilation[2], pad[4], groups = attr_int(node, "groups");
    Index at[MAX_RANK] = {position[0]}, weight[MAX_RANK] = {position[1]}, tap[2];
    attr_ints(node, "stride", 2, stride);
    attr_ints(node, "dilation", 2, dilation);
    attr_pad2d(node, pad);

    const Local *acc = lower_local(lower, "acc", dtype, true);
    const Expr *zero = expr_number(arena, dtype, 0);
    stmt_local(arena, lower->block, acc,
               node->in_count > 2 ? expr_cast(arena, dtype, lower_value(lower, node->in[2], position + 1)) : zero);
    Block *block = window_loop(lower, lower->block, "c", w->dim[1], &weight[1]);
    Index group = groups == 1 ? index_constant(0) : index_div(arena, position[1], w->dim[0] / groups);
    at[1] = index_add(arena, index_scale(arena, group, w->dim[1]), weight[1]);
    for (int d = 0; d < 2; d++) {
        block = window_dimension(lower, block, d ? "kw" : "kh", position[2 + d], w->dim[2 + d], stride[d], dilation[d],
                                 pad[d], x->dim[2 + d], &tap[d], &at[2 + d]);
        weight[2 + d] = tap[d];
    }
    Block *outer = lower_enter(lower, block);
    Guarded guarded;
    Guard guard[2];
    uint32_t guards = 0;
    for (int d = 0; d < 2; d++)
        add_guard(guard, &guards, at[2 + d], x->dim[2 + d], w->dim[2 + d], dilation[d]);
    guard_open(lower, &guarded);
    const Expr *a = expr_cast(arena, dtype, lower_value(lower, node->in[0], at));
    a = guard_close(lower, &guarded, a, guard, guards, zero);
    const Expr *b = expr_cast(arena, dtype, lower_value(lower, node->in[1], weight));
    accumulate(lower, acc, WORD_ADD, expr_word(arena, WORD_MUL, dtype, a, b, NULL));
    lower_leave(lower, outer);
    return expr_local(arena, acc);
}

/* NumPy's matmul: leading dimensions broadcast; a rank-1 operand has lost its row or column. */
static const Expr *window_matmul(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    const Shape *x = value_shape(lower->graph, node->in[0]), *y = value_shape(lower->graph, node->in[1]);
    uint32_t rank = value_shape(lower->graph, node->out[0])->rank;
    DType dtype = reduce_accumulator(value_type(lower->graph, node->out[0])->dtype);
    bool row = x->rank == 1, column = y->rank == 1, transpose = attr_bool(node, "transpose_y");
    uint32_t batch = rank - !row - !column;
    Index a[MAX_RANK], b[MAX_RANK], k;

    const Local *acc = lower_local(lower, "acc", dtype, true);
    stmt_local(arena, lower->block, acc, expr_number(arena, dtype, 0));
    Block *block = (lower->team ? team_loop : window_loop)(lower, lower->block, "k", x->dim[x->rank - 1], &k);
    for (uint32_t d = 0; d + 2 < x->rank; d++)
        a[d] = x->dim[d] == 1 ? index_constant(0) : position[batch - (x->rank - 2) + d];
    for (uint32_t d = 0; d + 2 < y->rank; d++)
        b[d] = y->dim[d] == 1 ? index_constant(0) : position[batch - (y->rank - 2) + d];
    if (!row)
        a[x->rank - 2] = position[batch];
    a[x->rank - 1] = k;
    if (column)
        b[0] = k;
    else {
        b[y->rank - (transpose ? 1 : 2)] = k;
        b[y->rank - (transpose ? 2 : 1)] = position[rank - 1];
    }
    if (x->dim[x->rank - 1]) {
        Block *outer = lower_enter(lower, block);
        accumulate(lower, acc, WORD_ADD,
                   expr_word(arena, WORD_MUL, dtype, expr_cast(arena, dtype, lower_value(lower, node->in[0], a)),
                             expr_cast(arena, dtype, lower_value(lower, node->in[1], b)), NULL));
        lower_leave(lower, outer);
    }
    if (lower->team)
        stmt_meet(arena, lower->block, WORD_ADD, acc, lower->team);
    return expr_local(arena, acc);
}

static const Expr *window_value(Lower *lower, const Node *node, const Index *position)
{
    switch (node->op) {
    case OP_CONV2D:
        return window_conv(lower, node, position);
    case OP_MATMUL:
        return window_matmul(lower, node, position);
    case OP_ARGMAX:
    case OP_ARGMIN:
        return window_arg(lower, node, position);
    default:
        return op_info(node->op)->family == FAMILY_POOL ? window_pool(lower, node, position)
                                                        : window_reduce(lower, node, position);
    }
}

/* Can the loads of a nested block, and its locals, be vectors over var? */
static bool nested_vectorizes(const Block *block, const Var *var)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        int64_t factor;
        if (stmt->value && !expr_vectorizes(stmt->value, var))
            return false;
        if (stmt->kind == STMT_STORE && (stmt->value->dtype != DT_F32 || !index_factor(stmt->index, var, &factor)))
            return false;
        if (stmt->kind == STMT_LOCAL && stmt->local->dtype != DT_F32)
            return false;
        if (stmt->kind == STMT_FOR && ((stmt->clamp_low && index_uses(stmt->low_least, var)) ||
                                       (stmt->clamp_high && index_uses(stmt->high_most, var))))
            return false;
        if (stmt->kind == STMT_IF && index_uses(stmt->index, var))
            return false;
        if ((stmt->kind == STMT_FOR || stmt->kind == STMT_IF) && !nested_vectorizes(&stmt->body, var))
            return false;
    }
    return true;
}

static void window_element(Lower *lower, const Node *anchor, const Index *position)
{
    const Expr *value = window_value(lower, anchor, position);
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
static void gather_team(Lower *lower, const Node *anchor)
{
    const Shape *from = value_shape(lower->graph, anchor->in[0]);
    bool reduced[MAX_RANK];
    int64_t extent = 0;
    lower->team = 0;
    if (anchor->op == OP_MATMUL)
        extent = from->dim[from->rank - 1];
    else if (op_info(anchor->op)->family == FAMILY_REDUCE && anchor->op != OP_ARGMAX && anchor->op != OP_ARGMIN) {
        reduce_axes(lower->graph, anchor, reduced);
        for (uint32_t d = from->rank; d-- > 0;)
            extent = reduced[d] ? from->dim[d] : extent;
    }
    if (extent < LONG_WINDOW || shape_elements(value_shape(lower->graph, anchor->out[0])) > FEW_RESULTS)
        return;
    for (lower->team = 32; lower->team * SHARE < extent && lower->team < lower->target->team; lower->team *= 2) {
    }
    lower->thread = var_new(lower->arena, "thread", 0, lower->team - 1);
}

/* The last loop over the result: lanes where everything in it can be a vector. */
static void window_row(Lower *lower, const Node *anchor, const Nest *nest, Index *loop)
{
    Arena *arena = lower->arena;
    uint32_t d = nest->rank - 1;
    int64_t extent = nest->extent[d], lanes = lower->target->lanes;
    Index position[MAX_RANK + 1];
    const Var *var = var_new(arena, loop_names[d], 0, extent - 1);
    Block trial = {0}, *outer = lower_enter(lower, &trial);

    loop[d] = index_var(arena, var);
    nest_position(arena, nest, loop, position);
    window_element(lower, anchor, position);
    lower_leave(lower, outer);
    int64_t whole = lanes > 1 && extent >= lanes && nested_vectorizes(&trial, var) ? extent / lanes * lanes : 0;

    if (whole) {
        const Var *step = var_new(arena, loop_names[d], 0, whole - lanes), *lane = var_new(arena, "lane", 0, lanes - 1);
        Block *body =
            whole > lanes ? &stmt_for(arena, lower->block, step, 0, whole, lanes, LOOP_PARALLEL)->body : lower->block;
        outer = lower_enter(lower, &stmt_lanes(arena, body, lane, (uint32_t)lanes)->body);
        loop[d] = index_add(arena, whole > lanes ? index_var(arena, step) : index_constant(0), index_var(arena, lane));
        nest_position(arena, nest, loop, position);
        window_element(lower, anchor, position);
        lower_leave(lower, outer);
    }
    if (whole < extent) {
        const Var *rest = var_new(arena, loop_names[d], whole, extent - 1);
        Block *body = &stmt_for(arena, lower->block, rest, whole, extent, 1, LOOP_PARALLEL)->body;
        if (lower->team)
            body = &stmt_for(arena, body, lower->thread, 0, lower->team, 1, LOOP_THREADS)->body;
        outer = lower_enter(lower, body);
        loop[d] = index_add(arena, index_constant(0), index_var(arena, rest));
        nest_position(arena, nest, loop, position);
        window_element(lower, anchor, position);
        lower_leave(lower, outer);
    }
}

/* Loops over the result; where `image` and `row` are given, over the part of one row. */
static void window_nest(Lower *lower, const Node *anchor, const Index *image, const Index *row)
{
    Nest nest = nest_of(value_type(lower->graph, anchor->out[0]));
    Index loop[MAX_RANK + 1];
    Block *start = lower->block;

    if (lower->target->team)
        gather_team(lower, anchor);
    if (nest.rank == 0) {
        nest.rank = 1;
        nest.extent[0] = 1;
    }
    for (uint32_t d = 0; d + 1 < nest.rank; d++) {
        const Var *var = var_new(lower->arena, loop_names[d], 0, nest.extent[d] - 1);
        const Index *given = d == 0 ? image : d == 2 ? row : NULL;
        loop[d] = given ? *given : index_var(lower->arena, var);
        if (!given && nest.extent[d] > 1)
            lower->block = &stmt_for(lower->arena, lower->block, var, 0, nest.extent[d], 1, LOOP_PARALLEL)->body;
    }
    window_row(lower, anchor, &nest, loop);
    lower->team = 0;
    lower_leave(lower, start);
}

void lower_window(Lower *lower, const Node *anchor)
{
    window_nest(lower, anchor, NULL, NULL);
}

void lower_window_row(Lower *lower, const Node *anchor, Index n, Index h)
{
    window_nest(lower, anchor, &n, &h);
}
