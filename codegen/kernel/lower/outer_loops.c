/* Loops and values that the files of outer products (outer.h) share. */
#include "kernel/lower/outer.h"

Index outer_open_small(Outer *o, bool columns, LoopKind kind)
{
    const Var *var = index_var_new(o->lower->arena, columns ? "o" : "p", 0, o->size[columns] - 1);
    if (o->size[columns] == 1)
        return index_constant(0);
    lower_enter(o->lower, &stmt_for(o->lower->arena, o->lower->block, var, 0, o->size[columns], 1, kind)->body);
    return index_var(o->lower->arena, var);
}

void outer_clear(Outer *o, uint32_t buffer, int64_t elements)
{
    Lower *lower = o->lower;
    Block *start = lower->block;
    Index at = lower_open_loop(lower, "z", elements, LOOP_SERIAL);
    stmt_store(lower->arena, lower->block, buffer, at, expr_number(lower->arena, o->dtype, 0));
    lower_leave(lower, start);
}

Index outer_named(Lower *lower, const char *name, Index at, int64_t extent)
{
    if (!at.count)
        return at;
    const Local *named = lower_local(lower, name, DT_I64, false);
    stmt_local(lower->arena, lower->block, named, expr_index(lower->arena, DT_I64, at));
    return index_data(lower->arena, expr_local(lower->arena, named), 0, extent - 1);
}
