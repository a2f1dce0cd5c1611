/* What loops of vectors are made of. */
#include "kernel/lower/nest.h"

int64_t lower_rest_lanes(const Lower *lower, int64_t lanes, int64_t rest)
{
    bool halves = lower->target->dialect == DIALECT_VECTOR && !lower->target->small && !lower->brief;
    for (lanes /= 2; halves && lanes >= LEAST_LANES; lanes /= 2)
        if (rest >= lanes && rest % lanes < LEAST_LANES)
            return lanes;
    return 0;
}

void lower_vector_rounds(Lower *lower, const Var *var, int64_t begin, int64_t end, int64_t lanes, LoopKind kind,
                         const Block *body)
{
    Arena *arena = lower->arena;
    const Var *step = index_var_new(arena, var->name, begin, end - lanes),
              *lane = index_var_new(arena, "lane", 0, lanes - 1);
    bool loops = end - begin > lanes;
    Block *around = loops ? &stmt_for(arena, lower->block, step, begin, end, lanes, kind)->body : lower->block;
    Index at = index_add(arena, loops ? index_var(arena, step) : index_constant(begin), index_var(arena, lane));
    stmt_lanes(arena, around, lane, (uint32_t)lanes)->body = block_substitute(arena, body, var, at);
}

static void find_cut(const Expr *expr, const Var *var, int64_t *cut, int64_t *first)
{
    if (expr->kind == EXPR_LOAD && !*cut)
        *cut = index_cut(expr->index, var, first);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            find_cut(expr->arg[i], var, cut, first);
}

int64_t lower_cut(const Block *body, const Var *var, int64_t *first)
{
    int64_t cut = 0;
    for (const Stmt *stmt = body->first; stmt && !cut; stmt = stmt->next)
        if (stmt->value)
            find_cut(stmt->value, var, &cut, first);
    return cut;
}
