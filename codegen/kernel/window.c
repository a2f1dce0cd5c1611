/* Windows: one accumulator per result element (window_value.c) in loops over the result: pooling, reductions over any
 * axes, argmax, and contractions that the register-tiled kernel does not take (grouped, other dtypes, narrow).  Where
 * the target has teams of threads, one shares out each sum when sums are few and long. */
#include "kernel/kernel.h"

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
    int64_t extent = window_shared_extent(lower, anchor);
    lower->team = 0;
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
