/* The loops around the products of openblas.h: copies of what does not lie in memory as a matrix, the product, and what
 * the kernel makes of its elements. */
#include "kernel/lower/openblas.h"

#include "base/number.h"

#include <assert.h>
#include <string.h>

/* A loop nest over the matrix: its axes, outermost first. */
typedef struct Walk {
    Blas *b;
    const BlasMatrix *m;
    uint32_t axis[MOST_AXES], count;
    Index in[MOST_AXES];    /* per axis: its position, of the outermost of rows in this product */
    uint32_t joined;        /* this one and those behind it are one loop */
    bool clamped[MAX_RANK]; /* per dimension of the access: the loops stay inside of it */
    void (*element)(struct Walk *walk);
} Walk;

/* Positions */

static int64_t loop_extent(const Blas *b, uint32_t axis)
{
    return blas_cuts(b, axis) ? b->lines : b->con.axis[axis].extent;
}

static void set_axis(Walk *walk, uint32_t axis, Index in)
{
    walk->in[axis] = in;
    walk->b->at[axis] = blas_cuts(walk->b, axis) ? blas_line(walk->b, in) : in;
}

static Index flat_position(const Walk *walk, BlasSide which)
{
    const Blas *b = walk->b;
    const BlasAxes *side = &b->side[which];
    Index flat = index_constant(0);
    for (uint32_t i = 0; i < side->count; i++)
        flat = index_add(b->lower->arena, index_scale(b->lower->arena, flat, loop_extent(b, side->axis[i])),
                         walk->in[side->axis[i]]);
    return flat;
}

static Index scratch_address(const Walk *walk)
{
    Arena *arena = walk->b->lower->arena;
    Index major = flat_position(walk, walk->m->major), minor = flat_position(walk, walk->m->minor);
    return walk->m->transposed ? index_add(arena, index_scale(arena, minor, walk->m->stride), major)
                               : index_add(arena, index_scale(arena, major, walk->m->stride), minor);
}

/* Loops */

static void add_side(Walk *walk, BlasSide which)
{
    const BlasAxes *side = &walk->b->side[which];
    for (uint32_t i = 0; i < side->count; i++)
        walk->axis[walk->count++] = side->axis[i];
}

/* Is the position in the dimension settled by the loop over this axis, the last that it goes with? */
static bool settles(const Walk *walk, uint32_t loop, uint32_t d)
{
    const Access *access = walk->m->access;
    if (!access->factor[d][walk->axis[loop]])
        return false;
    for (uint32_t i = loop + 1; i < walk->count; i++)
        if (access->factor[d][walk->axis[i]])
            return false;
    return true;
}

/* What the rounds of the other axes, and of the chunk, add to the position; `reach` is 1 + the most they do. */
static Index others(const Walk *walk, uint32_t axis, uint32_t d, int64_t *reach)
{
    const Blas *b = walk->b;
    Arena *arena = b->lower->arena;
    Index sum = index_constant(0);
    *reach = 1;
    for (uint32_t a = 0; a < b->con.axis_count; a++) {
        int64_t factor = walk->m->access->factor[d][a];
        Index at = a != axis ? b->at[a] : blas_cuts(b, a) ? blas_line(b, index_constant(0)) : index_constant(0);
        sum = index_add(arena, sum, index_scale(arena, at, factor));
        *reach += factor * (b->con.axis[a].extent - 1);
    }
    return sum;
}

static bool has_negative_factor(const Walk *walk, uint32_t d)
{
    bool negative = false;
    for (uint32_t a = 0; a < walk->b->con.axis_count; a++)
        negative |= walk->m->access->factor[d][a] < 0;
    return negative;
}

/* A loop over the positions of the axis that stay inside of a dimension; false where that takes none. */
static bool open_clamped(Walk *walk, uint32_t loop)
{
    Blas *b = walk->b;
    const Access *access = walk->m->access;
    uint32_t axis = walk->axis[loop];
    for (uint32_t d = 0; d < access->rank; d++) {
        if (!access->guarded[d] || access->divisor[d] > 1 || has_negative_factor(walk, d) || !settles(walk, loop, d))
            continue;
        WindowDimension along = {.in = value_shape(b->lower->graph, walk->m->value)->dim[d],
                                 .size = loop_extent(b, axis),
                                 .stride = 1,
                                 .dilation = access->factor[d][axis],
                                 .before = -access->begin[d]};
        Index in, around = others(walk, axis, d, &along.out);
        lower_enter(b->lower, lower_clamped_taps(b->lower, b->lower->block, lower_loop_names[loop % MAX_RANK], &along,
                                                 around, &in));
        set_axis(walk, axis, in);
        walk->clamped[d] = true;
        return true;
    }
    return false;
}

static void open_parallel(Walk *walk, uint32_t loop)
{
    Lower *lower = walk->b->lower;
    uint32_t axis = walk->axis[loop];
    int64_t extent = loop_extent(walk->b, axis);
    const Var *var = index_var_new(lower->arena, lower_loop_names[loop % MAX_RANK], 0, extent - 1);
    set_axis(walk, axis, extent > 1 ? index_var(lower->arena, var) : index_constant(0));
    if (extent > 1)
        lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, extent, 1, LOOP_PARALLEL)->body);
}

/* Axes `from` and all behind it are the digits of one position. */
static void set_digits(Walk *walk, uint32_t from, Index at)
{
    int64_t extent[MOST_AXES] = {0};
    Index digit[MOST_AXES];
    uint32_t count = walk->count - from;
    for (uint32_t i = 0; i < count; i++)
        extent[i] = loop_extent(walk->b, walk->axis[from + i]);
    index_unflatten(walk->b->lower->arena, at, extent, count, digit);
    for (uint32_t i = 0; i < count; i++)
        set_axis(walk, walk->axis[from + i], digit[i]);
}

static void build_innermost(Lower *lower, void *context, Index at)
{
    Walk *walk = context;
    (void)lower;
    set_digits(walk, walk->joined, at);
    walk->element(walk);
}

/* The loops from `first` on as one, in vectors where that may be. */
static void walk_innermost(Walk *walk, uint32_t first)
{
    int64_t extent = 1;
    for (uint32_t i = first; i < walk->count; i++)
        extent *= loop_extent(walk->b, walk->axis[i]);
    walk->joined = first;
    lower_vector_loop(walk->b->lower, lower_loop_names[first % MAX_RANK], extent, LOOP_PARALLEL, block_vectorizes,
                      build_innermost, walk);
}

static void walk_matrix(Walk *walk)
{
    Lower *lower = walk->b->lower;
    Block *start = lower->block;
    add_side(walk, walk->m->transposed ? walk->m->minor : walk->m->major);
    uint32_t innermost = walk->count;
    add_side(walk, walk->m->transposed ? walk->m->major : walk->m->minor);
    for (uint32_t a = 0; a < walk->b->con.axis_count; a++)
        walk->in[a] = index_constant(0);
    if (!walk->m->direct || innermost == walk->count) /* no more than copies go along the axes that loops go over */
        innermost = most(walk->count, 1) - 1;
    for (uint32_t i = 0; i < walk->count; i++) {
        if (open_clamped(walk, i))
            continue;
        if (i == innermost) {
            walk_innermost(walk, i);
            lower_leave(lower, start);
            return;
        }
        open_parallel(walk, i);
    }
    walk->element(walk);
    lower_leave(lower, start);
}

/* Ends a walk: axes are at the start of what is done at once. */
static void rewind_axes(Walk *walk)
{
    for (uint32_t i = 0; i < walk->count; i++)
        set_axis(walk, walk->axis[i], index_constant(0));
}

/* Copies */

/* What keeps the position of dimension d inside, of those that the loops do not; it becomes one of the value. */
static void guard_dimension(const Walk *walk, const Seen *seen, uint32_t d, Index *position, Guard *guard,
                            uint32_t *guards)
{
    Arena *arena = walk->b->lower->arena;
    int64_t divisor = walk->m->access->divisor[d];
    if (divisor > 1) {
        int64_t lift = ceil_div(most(0, -index_low(*position)), divisor);
        Index lifted = index_add(arena, *position, index_constant(lift * divisor));
        guard[(*guards)++] = (Guard){index_mod(arena, lifted, divisor), 1};
        *position = index_add(arena, index_div(arena, lifted, divisor), index_constant(-lift));
    }
    if (!walk->m->access->guarded[d])
        return;
    if (!walk->clamped[d])
        guard[(*guards)++] = (Guard){*position, seen->shape->dim[d]};
    *position = lower_inside(walk->b->lower, seen, d, *position);
}

static void copy_element(Walk *walk)
{
    const Blas *b = walk->b;
    Lower *lower = b->lower;
    Index position[MAX_RANK];
    Guarded guarded;
    Guard guard[2 * MAX_RANK];
    uint32_t guards = 0;
    Seen seen = lower_see_inside(lower, walk->m->value);
    blas_position(b, walk->m->access, b->at, position);
    for (uint32_t d = 0; d < walk->m->access->rank; d++)
        guard_dimension(walk, &seen, d, &position[d], guard, &guards);
    lower_guard_open(lower, &guarded);
    const Expr *value = expr_cast(lower->arena, b->dtype, lower_value(lower, walk->m->value, position));
    value = lower_guard_close(lower, &guarded, value, guard, guards, expr_number(lower->arena, b->dtype, 0));
    stmt_store(lower->arena, lower->block, lower_scratch(lower, walk->m->piece), scratch_address(walk), value);
}

typedef struct Fill {
    const Blas *b;
    uint32_t buffer;
} Fill;

static void build_zero(Lower *lower, void *context, Index at)
{
    const Fill *fill = context;
    stmt_store(lower->arena, lower->block, fill->buffer, at, expr_number(lower->arena, fill->b->dtype, 0));
}

/* Loops that stay inside leave out what is outside: zeros. */
static void fill_zeros(const Blas *b, const BlasMatrix *m)
{
    bool outside = false;
    for (uint32_t d = 0; d < m->access->rank; d++)
        outside |= m->access->guarded[d];
    if (outside)
        lower_vector_loop(b->lower, "e", b->side[m->major].extent * b->side[m->minor].extent, LOOP_PARALLEL,
                          block_vectorizes, build_zero, &(Fill){b, lower_scratch(b->lower, m->piece)});
}

static void copy_matrix(Blas *b, const BlasMatrix *m)
{
    Walk walk = {.b = b, .m = m, .element = copy_element};
    fill_zeros(b, m);
    walk_matrix(&walk);
    rewind_axes(&walk);
}

/* The product */

static const Expr *first_element(const Blas *b, const BlasMatrix *m)
{
    Lower *lower = b->lower;
    Index position[MAX_RANK];
    if (!m->direct)
        return expr_load(lower->arena, b->dtype, lower_scratch(lower, m->piece), index_constant(0));
    blas_position(b, m->access, b->at, position);
    const Expr *load = lower_value(lower, m->value, position);
    assert(load->kind == EXPR_LOAD && "what lies in memory is loaded");
    return load;
}

/* Of a result by columns the transposed product is one by rows. */
static void multiply(const Blas *b)
{
    Lower *lower = b->lower;
    bool swap = b->result.transposed;
    const BlasMatrix *left = swap ? &b->second : &b->first, *right = swap ? &b->first : &b->second;
    MatrixProduct product = {.rows = b->side[swap ? SIDE_COLUMNS : SIDE_ROWS].extent,
                             .columns = b->side[swap ? SIDE_ROWS : SIDE_COLUMNS].extent,
                             .depth = b->side[SIDE_DEPTH].extent,
                             .left_stride = left->stride,
                             .right_stride = right->stride,
                             .stride = b->result.stride,
                             .left_transposed = left->transposed != swap,
                             .right_transposed = right->transposed != swap};
    Index position[MAX_RANK], at = index_constant(0);
    blas_position(b, &b->con.result, b->at, position);
    if (b->result.direct)
        at = lower_value_address(lower, b->stored, position);
    uint32_t to = b->result.direct ? lower_buffer(lower, b->stored, true) : lower_scratch(lower, b->result.piece);
    const Expr *from = first_element(b, left), *by = first_element(b, right); /* in this order on any machine */
    stmt_product(lower->arena, lower->block, &product, to, at, from, by);
}

/* What follows */

static const Expr *sum_at(const Walk *walk, const Index *position)
{
    const Blas *b = walk->b;
    Lower *lower = b->lower;
    uint32_t buffer = b->result.direct ? lower_buffer(lower, b->stored, true) : lower_scratch(lower, b->result.piece);
    Index at = b->result.direct ? lower_value_address(lower, b->stored, position) : scratch_address(walk);
    lower->kernel->buffer[buffer].read = true;
    return expr_load(lower->arena, b->dtype, buffer, at);
}

static void finish_element(Walk *walk)
{
    const Blas *b = walk->b;
    Lower *lower = b->lower;
    ValueId result = b->node->out[0];
    Index position[MAX_RANK];
    blas_position(b, &b->con.result, b->at, position);
    const Expr *sum = sum_at(walk, position);
    if (b->con.has_bias) {
        const Expr *bias = lower_value(lower, b->node->in[2], &position[b->con.bias_dimension]);
        sum = expr_word(lower->arena, WORD_ADD, b->dtype, sum, expr_cast(lower->arena, b->dtype, bias), NULL);
    }
    lower->bound[result] = expr_cast(lower->arena, value_type(lower->graph, result)->dtype, sum);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
}

static void finish(Blas *b)
{
    Walk walk = {.b = b, .m = &b->result, .element = finish_element};
    if (b->stored == b->node->out[0] && !b->con.has_bias)
        return;
    walk_matrix(&walk);
    rewind_axes(&walk);
}

/* All of it */

static bool goes_with_batch(const Blas *b, const Access *access)
{
    for (uint32_t i = 0; i < b->batch_count; i++)
        for (uint32_t d = 0; d < access->rank; d++)
            if (access->factor[d][b->batch[i]])
                return true;
    return false;
}

static void open_batch(Blas *b)
{
    Lower *lower = b->lower;
    for (uint32_t i = 0; i < b->batch_count; i++) {
        int64_t extent = b->con.axis[b->batch[i]].extent;
        const Var *var = index_var_new(lower->arena, i ? "group" : "batch", 0, extent - 1);
        b->at[b->batch[i]] = index_var(lower->arena, var);
        lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, extent, 1, LOOP_PARALLEL)->body);
    }
}

static void open_chunk(Blas *b)
{
    Lower *lower = b->lower;
    if (!b->chunk)
        return;
    lower_enter(lower, &stmt_for(lower->arena, lower->block, b->chunk, 0, b->chunk->high + 1, 1, LOOP_PARALLEL)->body);
    b->at[b->side[SIDE_ROWS].axis[0]] = blas_line(b, index_constant(0));
}

void blas_emit(Blas *b)
{
    Block *start = b->lower->block;
    bool each = goes_with_batch(b, b->second.access);
    if (!b->second.direct && !each)
        copy_matrix(b, &b->second);
    open_batch(b);
    if (!b->second.direct && each)
        copy_matrix(b, &b->second);
    open_chunk(b);
    if (!b->first.direct)
        copy_matrix(b, &b->first);
    multiply(b);
    finish(b);
    lower_leave(b->lower, start);
}
