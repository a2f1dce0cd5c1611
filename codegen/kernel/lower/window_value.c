/* The value of one window: an accumulator, and loops over what is reduced. */
#include "base/number.h"
#include "kernel/lower/lower.h"
#include "ops/meaning.h"

static void accumulate(Lower *lower, const Local *acc, Word combine, const Expr *value)
{
    const Expr *old = expr_local(lower->arena, acc);
    stmt_assign(lower->arena, lower->block, acc, index_constant(0), index_constant(0),
                expr_word(lower->arena, combine, acc->dtype, old, expr_cast(lower->arena, acc->dtype, value), NULL));
}

/* The loop of a window that a team of threads shares out. */
static Block *team_loop(Lower *lower, Block *block, const char *name, int64_t extent, Index *at)
{
    const Var *var = index_var_new(lower->arena, name, 0, extent - 1);
    Stmt *loop = stmt_for(lower->arena, block, var, 0, extent, lower->team, LOOP_SERIAL);
    loop->low = index_var(lower->arena, lower->thread);
    *at = index_var(lower->arena, var);
    return &loop->body;
}

static Block *window_loop(Lower *lower, Block *block, const char *name, int64_t extent, Index *at)
{
    const Var *var = index_var_new(lower->arena, name, 0, extent - 1);
    *at = index_var(lower->arena, var);
    if (extent == 1)
        return block;
    return &stmt_for(lower->arena, block, var, 0, extent, 1, LOOP_SERIAL)->body;
}

/* The first position in the operand that a result is made of; dimensions that are reduced are at 0. */
static void reduced_position(const Reduction *reduction, const Index *position, Index *at)
{
    for (uint32_t d = 0, o = 0; d < reduction->rank; d++) {
        at[d] = reduction->reduced[d] ? index_constant(0) : position[reduction->keep ? d : o];
        o += !reduction->reduced[d];
    }
}

/* The last dimension that is reduced, whose positions several accumulators share. */
static uint32_t last_reduced(const Reduction *reduction)
{
    uint32_t last = reduction->rank;
    while (last > 0 && !reduction->reduced[last - 1])
        last--;
    return last ? last - 1 : 0;
}

static int64_t reduced_elements(const Reduction *reduction, const Shape *from)
{
    int64_t elements = 1;
    for (uint32_t d = 0; d < from->rank; d++)
        elements *= reduction->reduced[d] ? from->dim[d] : 1;
    return elements;
}

static const Expr *window_reduce(Lower *lower, const Node *node, const Reduction *reduction, const Index *position)
{
    Arena *arena = lower->arena;
    const Shape *from = value_shape(lower->graph, node->in[0]);
    Strands strands = {.combine = reduction->combine, .dtype = reduction->accumulator, .count = 1};
    uint32_t last = last_reduced(reduction);
    Index at[MAX_RANK];

    if (shape_elements(from) && !kernel_computes(lower, node->in[0])) /* which takes longer than it is added up */
        strands.count = lower_strand_count(lower, from->dim[last], reduced_elements(reduction, from));
    lower_strands_begin(lower, lower->block, &strands);
    Block *block = lower->block;
    bool share = lower->team > 0; /* the first loop is the team's */
    reduced_position(reduction, position, at);
    for (uint32_t d = 0; d < from->rank; d++)
        if (reduction->reduced[d]) {
            int64_t rounds = d == last ? from->dim[d] / strands.count : from->dim[d];
            block = (share ? team_loop : window_loop)(lower, block, lower_loop_names[d], rounds, &at[d]);
            share = false;
        }
    Index first = index_scale(arena, at[last], strands.count);
    Block *outer = lower_enter(lower, block);
    for (uint32_t s = 0; s < strands.count && shape_elements(from); s++) {
        at[last] = index_add(arena, first, index_constant(s));
        const Expr *value = expr_cast(arena, strands.dtype, lower_value(lower, node->in[0], at));
        lower_strand_add(lower, lower->block, &strands, s, value);
    }
    lower_leave(lower, outer);
    const Local *acc = lower_strands_end(lower, lower->block, &strands);
    if (lower->team)
        stmt_meet(arena, lower->block, strands.combine, acc, lower->team);
    return expr_local(arena, acc);
}

#define LAST_POSITION (1 << 24) /* that f32 holds, with all before it */

/* The first position of the extreme value; a NaN wins, as in NumPy.  Beside values of f32 the position is f32, too, so
 * that both are vectors of columns; of rows, a C compiler chooses both by one comparison. */
static const Expr *window_arg(Lower *lower, const Node *node, const Reduction *reduction, const Index *position)
{
    Arena *arena = lower->arena;
    const Shape *from = value_shape(lower->graph, node->in[0]);
    DType dtype = reduction->accumulator; /* f16 is not compared as bits */
    Index at[MAX_RANK], along = index_constant(0), zero = index_constant(0);

    reduced_position(reduction, position, at);
    const Expr *of_row = lower_arg_row(lower, node, reduction, last_reduced(reduction), at);
    if (of_row)
        return of_row;
    bool of_columns = !reduction->reduced[from->rank - 1];
    bool vectors = lower->target->lanes > 1 && (of_columns || lower->target->dialect == DIALECT_VECTOR);
    DType counter = dtype == DT_F32 && vectors && reduced_elements(reduction, from) <= LAST_POSITION ? DT_F32 : DT_I64;
    const Local *best = lower_local(lower, "best", dtype, true), *where = lower_local(lower, "where", counter, true);
    stmt_local(arena, lower->block, best, expr_cast(arena, dtype, lower_value(lower, node->in[0], at)));
    stmt_local(arena, lower->block, where, expr_number(arena, counter, 0));
    Block *block = lower->block;
    for (uint32_t d = 0; d < from->rank; d++)
        if (reduction->reduced[d]) {
            block = window_loop(lower, block, lower_loop_names[d], from->dim[d], &at[d]);
            along = at[d];
        }
    Block *outer = lower_enter(lower, block);
    const Local *x = lower_local(lower, "x", dtype, true);
    stmt_local(arena, lower->block, x, expr_cast(arena, dtype, lower_value(lower, node->in[0], at)));
    const Expr *b = expr_local(arena, best), *v = expr_local(arena, x);
    const Expr *wins = lower_wins(lower, reduction->combine, b, v);
    if (counter == DT_I64 &&
        lower->target->dialect != DIALECT_CUDA) { /* one by one: few win, so that a branch is free */
        lower_enter(lower, &stmt_where(arena, lower->block, wins)->body);
        stmt_assign(arena, lower->block, where, zero, zero, expr_index(arena, counter, along));
        stmt_assign(arena, lower->block, best, zero, zero, v);
    } else {
        stmt_assign(
            arena, lower->block, where, zero, zero,
            expr_word(arena, WORD_SELECT, counter, wins, expr_index(arena, counter, along), expr_local(arena, where)));
        stmt_assign(arena, lower->block, best, zero, zero, expr_word(arena, WORD_SELECT, dtype, wins, v, b));
    }
    lower_leave(lower, outer);
    const Expr *found = expr_local(arena, where);
    return counter == DT_F32 ? expr_cast(arena, DT_I64, expr_cast(arena, DT_I32, found)) : found;
}

/* One dimension of a sliding window: the tap's position in the input, in a loop cut to what lies inside it. */
static Block *window_dimension(Lower *lower, Block *block, const char *name, Index start, int64_t size,
                               int64_t dilation, int64_t extent, Index *tap, Index *in)
{
    Arena *arena = lower->arena;
    const Var *var = index_var_new(arena, name, 0, size - 1);
    *tap = index_var(arena, var);
    *in = index_add(arena, start, index_scale(arena, *tap, dilation));
    if (size == 1)
        return block;
    Stmt *loop = stmt_for(arena, block, var, 0, size, 1, LOOP_SERIAL);
    if (dilation != 1)
        return &loop->body;
    if (!start.count) { /* known */
        int64_t low = most(0, -start.constant);
        loop->low = index_constant(low);
        loop->high = index_constant(most(low, least(size, extent - start.constant)));
        return &loop->body;
    }
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

const char *lower_tap_name(Arena *arena, uint32_t from_last)
{
    static const char *const name[] = {"kw", "kh", "kd"};
    return from_last < 3 ? name[from_last] : str_format(arena, "k%u", from_last).ptr;
}

/* What windows and elements that match give each other (REDUCE_COLLECT, REDUCE_SPREAD) */

/* The element of v where those of x and y are equal, else 0. */
static const Expr *matched(Lower *lower, const Node *node, const Index *element, const Index *window, DType dtype)
{
    Arena *arena = lower->arena;
    bool spreads = reduction_of(lower->graph, node).kind == REDUCE_SPREAD;
    const Expr *x = expr_cast(arena, dtype, lower_value(lower, node->in[0], element));
    const Expr *y = expr_cast(arena, dtype, lower_value(lower, node->in[1], window));
    const Expr *v = expr_cast(arena, dtype, lower_value(lower, node->in[2], spreads ? window : element));
    return expr_word(arena, WORD_SELECT, dtype, expr_word(arena, WORD_EQ, DT_BOOL, x, y, NULL), v,
                     expr_number(arena, dtype, 0));
}

/* Pooling */

static Index window_start(Arena *arena, const WindowDimension *d, Index out)
{
    return index_add(arena, index_scale(arena, out, d->stride), index_constant(-d->before));
}

/* Taps before a place that lies `ahead` of the window's start: ahead / dilation, rounded up, of those that there are.
 */
static const Expr *taps_before(Arena *arena, const WindowDimension *d, Index ahead)
{
    const Expr *zero = expr_number(arena, DT_I64, 0), *all = expr_number(arena, DT_I64, (double)d->size);
    if (index_high(ahead) <= 0)
        return zero;
    if (index_low(ahead) >= window_span(d))
        return all;
    const Expr *taps = expr_index(arena, DT_I64, index_add(arena, ahead, index_constant(d->dilation - 1)));
    if (d->dilation > 1)
        taps = expr_word(arena, WORD_DIV, DT_I64, taps, expr_number(arena, DT_I64, (double)d->dilation), NULL);
    if (index_low(ahead) < 0)
        taps = expr_word(arena, WORD_MAX, DT_I64, taps, zero, NULL);
    if (index_high(ahead) > window_span(d) - d->dilation)
        taps = expr_word(arena, WORD_MIN, DT_I64, taps, all, NULL);
    return taps;
}

/* Taps in one dimension of the window that are inside the image, or also in its padding. */
static const Expr *taps_inside(Arena *arena, const WindowDimension *d, Index start, bool count_pad, DType dtype)
{
    int64_t low = count_pad ? -d->before : 0, high = d->in + (count_pad ? d->after : 0);
    Index back = index_scale(arena, start, -1);
    const Expr *first = taps_before(arena, d, index_add(arena, back, index_constant(low)));
    const Expr *end = taps_before(arena, d, index_add(arena, back, index_constant(high)));
    if (first->kind == EXPR_NUMBER && end->kind == EXPR_NUMBER)
        return expr_number(arena, dtype, end->number - first->number);
    if (first->kind == EXPR_NUMBER && first->number == 0)
        return expr_cast(arena, dtype, end);
    return expr_cast(arena, dtype, expr_word(arena, WORD_SUB, DT_I64, end, first, NULL));
}

const Expr *lower_taps_inside(Lower *lower, const Reduction *reduction, uint32_t dimension, Index at)
{
    const WindowDimension *d = &reduction->window.dim[dimension];
    return taps_inside(lower->arena, d, window_start(lower->arena, d, at), reduction->count_pad,
                       reduction->accumulator);
}

/* The mean is over the taps inside the image, or over those in its padding, too. */
static const Expr *window_count(Lower *lower, const Reduction *reduction, const Index *position)
{
    Arena *arena = lower->arena;
    DType dtype = reduction->accumulator;
    const Expr *count = expr_number(arena, dtype, 1);
    for (uint32_t i = 0; i < reduction->window.rank; i++) {
        const Expr *taps = lower_taps_inside(lower, reduction, i, position[2 + i]);
        count = count->kind == EXPR_NUMBER && taps->kind == EXPR_NUMBER
                    ? expr_number(arena, dtype, count->number * taps->number)
                    : expr_word(arena, WORD_MUL, dtype, count, taps, NULL);
    }
    return count;
}

/* What lies between elements of a row of the image is of the image, if that has memory of its own. */
static const Expr *spread_load(const Lower *lower, const Expr *value)
{
    if (value->kind != EXPR_LOAD || value->dtype != DT_F32 ||
        lower->storage->at[lower->kernel->buffer[value->buffer].storage].inside != NONE)
        return value;
    return expr_load_spread(lower->arena, value->dtype, value->buffer, value->index);
}

static const Expr *window_pool(Lower *lower, const Node *node, const Reduction *reduction, const Index *position)
{
    Arena *arena = lower->arena;
    const Window *window = &reduction->window;
    DType dtype = reduction->accumulator;
    Index at[MAX_RANK] = {position[0], position[1]}, tap;

    const Local *acc = lower_local(lower, "acc", dtype, true);
    const Expr *neutral = expr_number(arena, dtype, reduction_neutral(reduction->combine, dtype));
    stmt_local(arena, lower->block, acc, neutral);
    Block *block = lower->block;
    for (uint32_t i = 0; i < window->rank; i++) {
        const WindowDimension *d = &window->dim[i];
        block =
            window_dimension(lower, block, lower_tap_name(arena, window->rank - 1 - i),
                             window_start(arena, d, position[2 + i]), d->size, d->dilation, d->in, &tap, &at[2 + i]);
    }
    Block *outer = lower_enter(lower, block);
    Guard guard[MAX_RANK];
    Guarded guarded;
    uint32_t guards = 0;
    Seen image = lower_see_inside(lower, node->in[0]);
    for (uint32_t i = 0; i < window->rank; i++) {
        if (window->dim[i].size == 1 || window->dim[i].dilation > 1) /* else the loop's bounds keep it inside */
            guard[guards++] = (Guard){at[2 + i], window->dim[i].in};
        at[2 + i] = lower_inside(lower, &image, 2 + i, at[2 + i]);
    }
    lower_guard_open(lower, &guarded);
    const Expr *value = reduction->kind == REDUCE_COLLECT
                            ? matched(lower, node, at, position, dtype)
                            : expr_cast(arena, dtype, spread_load(lower, lower_value(lower, node->in[0], at)));
    value = lower_guard_close(lower, &guarded, value, guard, guards, neutral);
    accumulate(lower, acc, reduction->combine, value);
    lower_leave(lower, outer);
    const Expr *sum = expr_local(arena, acc);
    if (reduction->kind != REDUCE_MEAN)
        return sum;
    return expr_word(arena, WORD_DIV, dtype, sum, window_count(lower, reduction, position), NULL);
}

/* What windows give to the elements that equal theirs */

/* Where windows do not overlap, and have no gaps inside, an element is in one at most. */
static bool windows_apart(const WindowDimension *d)
{
    return d->dilation == 1 && d->size <= d->stride;
}

/* Both operands that it reads at windows are of one shape. */
static Seen see_windows(Lower *lower, const Node *node)
{
    Seen first = lower_see_inside(lower, node->in[1]), second = lower_see_inside(lower, node->in[2]);
    return first.cuts ? first : second;
}

/* At each tap that is the window which begins (element + before - dilation * tap) / stride, if that is one. */
static const Expr *window_spread(Lower *lower, const Node *node, const Reduction *reduction, const Index *position)
{
    Arena *arena = lower->arena;
    const Window *w = &reduction->window;
    DType dtype = reduction->accumulator;
    const Expr *zero = expr_number(arena, dtype, 0);
    const Local *acc = lower_local(lower, "acc", dtype, true);
    Index at[MAX_RANK] = {position[0], position[1]}, tap;
    Guard guard[2 * MAX_RANK];
    uint32_t guards = 0;
    bool sums = false;

    for (uint32_t i = 0; i < w->rank; i++)
        sums |= !windows_apart(&w->dim[i]);
    if (sums)
        stmt_local(arena, lower->block, acc, zero);
    Block *block = lower->block;
    for (uint32_t i = 0; i < w->rank; i++) {
        const WindowDimension *d = &w->dim[i];
        bool apart = windows_apart(d);
        Index place = index_add(arena, position[2 + i], index_constant(d->before));
        if (!apart) {
            block = window_loop(lower, block, lower_tap_name(arena, w->rank - 1 - i), d->size, &tap);
            place = index_add(arena, place, index_scale(arena, tap, -d->dilation));
        }
        if (d->stride > 1) /* no rest, or a tap */
            guard[guards++] = (Guard){index_mod(arena, place, d->stride), apart ? d->size : 1};
        guard[guards++] = (Guard){place, d->out * d->stride};
        at[2 + i] = index_div(arena, place, d->stride);
    }
    Block *outer = lower_enter(lower, block);
    Guarded guarded;
    Seen windows = see_windows(lower, node);
    for (uint32_t i = 0; i < w->rank; i++)
        at[2 + i] = lower_inside(lower, &windows, 2 + i, at[2 + i]);
    lower_guard_open(lower, &guarded);
    const Expr *value = matched(lower, node, position, at, dtype);
    value = lower_guard_close(lower, &guarded, value, guard, guards, zero);
    if (sums)
        accumulate(lower, acc, WORD_ADD, value);
    lower_leave(lower, outer);
    return sums ? expr_local(arena, acc) : value;
}

/* Contractions */

typedef struct Sum {
    Lower *lower;
    const Node *node;
    const Contraction *form;
    Index axis[MOST_AXES];
    bool open[MOST_AXES];  /* axes whose position is known */
    bool inside[MAX_RANK]; /* dimensions of the first operand that the loops' bounds keep inside */
} Sum;

/* The axes of a dimension of the result are the digits of its position. */
static void open_result(Sum *sum, const Index *position)
{
    Arena *arena = sum->lower->arena;
    const Contraction *form = sum->form;
    for (uint32_t d = 0; d < form->result.rank; d++) {
        Index rest = position[d];
        for (uint32_t a = 0; a < form->axis_count; a++) {
            int64_t factor = form->result.factor[d][a];
            if (!factor)
                continue;
            bool one = form->axis[a].extent == 1;
            sum->axis[a] = one ? index_constant(0) : index_div(arena, rest, factor);
            rest = one ? rest : index_mod(arena, rest, factor);
            sum->open[a] = true;
        }
    }
}

/* The position along a dimension of an operand, before it is divided, as far as its axes are open. */
static Index access_position(const Sum *sum, const Access *access, uint32_t d)
{
    Arena *arena = sum->lower->arena;
    Index position = index_constant(access->begin[d]);
    for (uint32_t a = 0; a < sum->form->axis_count; a++)
        if (sum->open[a])
            position = index_add(arena, position, index_scale(arena, sum->axis[a], access->factor[d][a]));
    return position;
}

/* The guarded dimension of the first operand that a loop over this axis can keep inside by its bounds, or NONE: all
 * else that moves it is known, and the loop goes through it step by step. */
static uint32_t bounding_dimension(const Sum *sum, uint32_t axis)
{
    const Access *access = &sum->form->first;
    for (uint32_t d = 0; d < access->rank; d++) {
        bool known = access->guarded[d] && access->divisor[d] == 1 && access->factor[d][axis] == 1;
        for (uint32_t a = 0; a < sum->form->axis_count; a++)
            known &= a == axis || sum->open[a] || !access->factor[d][a];
        if (known && !sum->inside[d])
            return d;
    }
    return NONE;
}

static bool has_taps(const Contraction *form)
{
    return form->axis[form->axis_count - 1].role == AXIS_TAP; /* they come last */
}

/* k of matrices; c, kh, kw of images. */
static const char *sum_name(const Sum *sum, uint32_t axis)
{
    const Contraction *form = sum->form;
    if (form->axis[axis].role == AXIS_TAP)
        return lower_tap_name(sum->lower->arena, form->axis_count - 1 - axis);
    if (axis && form->axis[axis - 1].role == AXIS_SUM)
        return str_format(sum->lower->arena, "c%u", axis).ptr;
    return has_taps(form) ? "c" : "k";
}

static Block *sum_loop(Sum *sum, Block *block, uint32_t axis)
{
    Lower *lower = sum->lower;
    int64_t extent = sum->form->axis[axis].extent;
    const char *name = sum_name(sum, axis);
    uint32_t d = bounding_dimension(sum, axis);
    bool shared = lower->team && axis + 1 == sum->form->axis_count;
    Index in;
    if (d != NONE && extent > 1) {
        const Shape *x = value_shape(lower->graph, sum->node->in[0]);
        block = window_dimension(lower, block, name, access_position(sum, &sum->form->first, d), extent, 1, x->dim[d],
                                 &sum->axis[axis], &in);
        sum->inside[d] = true;
    } else
        block = (shared ? team_loop : window_loop)(lower, block, name, extent, &sum->axis[axis]);
    sum->open[axis] = true;
    return block;
}

/* An element of an operand, 0 where there is none. */
static const Expr *sum_operand(const Sum *sum, uint32_t which)
{
    Lower *lower = sum->lower;
    Arena *arena = lower->arena;
    const Access *access = which ? &sum->form->second : &sum->form->first;
    const Shape *shape = value_shape(lower->graph, sum->node->in[which]);
    const Expr *zero = expr_number(arena, sum->form->sum, 0);
    Index place[MAX_RANK], position[MAX_RANK];
    for (uint32_t d = 0; d < access->rank; d++) {
        place[d] = access_position(sum, access, d);
        position[d] = index_div(arena, place[d], access->divisor[d]);
    }
    Guard guard[2 * MAX_RANK];
    Guarded guarded;
    uint32_t guards = 0;
    Seen seen = lower_see_inside(lower, sum->node->in[which]);
    for (uint32_t d = 0; d < access->rank; d++) {
        position[d] = access->guarded[d] ? lower_inside(lower, &seen, d, position[d]) : position[d];
        if (!access->guarded[d] || (!which && sum->inside[d]))
            continue;
        if (access->divisor[d] > 1) /* no rest */
            guard[guards++] = (Guard){index_mod(arena, place[d], access->divisor[d]), 1};
        guard[guards++] = (Guard){place[d], shape->dim[d] * access->divisor[d]};
    }
    lower_guard_open(lower, &guarded);
    const Expr *value = expr_cast(arena, sum->form->sum, lower_value(lower, sum->node->in[which], position));
    return lower_guard_close(lower, &guarded, value, guard, guards, zero);
}

static const Expr *window_sum(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    Contraction form = contraction_of(lower->graph, node);
    Sum sum = {.lower = lower, .node = node, .form = &form};
    DType dtype = form.sum;
    const Local *acc = lower_local(lower, "acc", dtype, true);
    stmt_local(arena, lower->block, acc,
               form.has_bias ? expr_cast(arena, dtype, lower_value(lower, node->in[2], &position[form.bias_dimension]))
                             : expr_number(arena, dtype, 0));
    Block *block = lower->block;
    open_result(&sum, position);
    for (uint32_t a = 0; a < form.axis_count; a++)
        if (form.axis[a].role == AXIS_SUM || form.axis[a].role == AXIS_TAP)
            block = sum_loop(&sum, block, a);
    if (contraction_extent(&form, AXIS_SUM) && contraction_extent(&form, AXIS_TAP)) {
        Block *outer = lower_enter(lower, block);
        const Expr *x = sum_operand(&sum, 0), *y = sum_operand(&sum, 1);
        accumulate(lower, acc, WORD_ADD, expr_word(arena, WORD_MUL, dtype, x, y, NULL));
        lower_leave(lower, outer);
    }
    if (lower->team)
        stmt_meet(arena, lower->block, WORD_ADD, acc, lower->team);
    return expr_local(arena, acc);
}

const Expr *lower_window_value(Lower *lower, const Node *node, const Index *position)
{
    if (node_is_contraction(lower->graph, node))
        return window_sum(lower, node, position);
    Reduction reduction = reduction_of(lower->graph, node);
    if (reduction.kind == REDUCE_SPREAD)
        return window_spread(lower, node, &reduction, position);
    if (reduction.has_window)
        return window_pool(lower, node, &reduction, position);
    if (reduction.kind == REDUCE_POSITION)
        return window_arg(lower, node, &reduction, position);
    return window_reduce(lower, node, &reduction, position);
}

/* A team shares out the last axis of a contraction, when that is all that is summed ... */
static int64_t shared_sum(const Contraction *form)
{
    const Axis *last = &form->axis[form->axis_count - 1];
    for (uint32_t d = 0; d < form->first.rank; d++)
        if (form->first.guarded[d])
            return 0;
    bool alone = last->role == AXIS_SUM && contraction_extent(form, AXIS_SUM) == last->extent;
    return alone && !form->has_bias ? last->extent : 0;
}

/* ... and the first dimension that a reduction combines. */
int64_t lower_window_shared_extent(const Lower *lower, const Node *node)
{
    const Shape *from = value_shape(lower->graph, node->in[0]);
    if (node_is_contraction(lower->graph, node)) {
        Contraction form = contraction_of(lower->graph, node);
        return shared_sum(&form);
    }
    Reduction reduction = reduction_of(lower->graph, node);
    for (uint32_t d = 0; d < from->rank && reduction.kind == REDUCE_VALUES && !reduction.has_window; d++)
        if (reduction.reduced[d])
            return from->dim[d];
    return 0;
}
