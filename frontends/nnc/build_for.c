/* Repetition, written out while building: `for i in 0..12 carry x { ... }`, `for (c, s) in LIST { ... }`. */
#include "frontends/nnc/build.h"

#define BY_TENSOR "a while loop goes round as often as a tensor says"

typedef struct Rounds { /* what the counter goes through: a range, or the items of a list */
    int64_t from, to;
    const Thing *item; /* NULL for a range */
} Rounds;

static bool rounds_of(Builder *b, const AstStmt *stmt, Rounds *rounds)
{
    *rounds = (Rounds){0};
    if (stmt->to)
        return build_eval_int(b, stmt->from, "the first count", BY_TENSOR, &rounds->from) &&
               build_eval_int(b, stmt->to, "the end of the count", BY_TENSOR, &rounds->to);
    Thing list = build_take_apart(b, build_eval(b, stmt->from));
    if (list.kind == THING_BAD)
        return false;
    if (list.kind != THING_MANY)
        return build_complain(b, stmt->from->place, "'for' goes through a range, 0..12, or a list, not through %s",
                              list.kind == THING_VALUE ? "a tensor" : const_kind_name(list.c.kind));
    rounds->to = list.count;
    rounds->item = list.many;
    return true;
}

/* Gives names to an item: all of it, or its parts. */
static bool bind_pattern(Builder *b, const AstPattern *pattern, Thing thing)
{
    if (pattern->name)
        return build_bind(b, build_name_text(b, pattern->name), pattern->place, thing);
    Thing parts = build_take_apart(b, thing);
    if (parts.kind != THING_MANY)
        return build_complain(b, pattern->place, "%u names for an item that is no list", pattern->count);
    if (parts.count != pattern->count)
        return build_complain(b, pattern->place, "%u names for an item of %u", pattern->count, parts.count);
    bool ok = true;
    for (uint32_t i = 0; i < parts.count; i++)
        ok &= bind_pattern(b, &pattern->part[i], parts.many[i]);
    return ok;
}

/* One round: a scope with the counter and the carried names, and inside it the scope of the body. */
static bool build_round(Builder *b, const AstStmt *stmt, int64_t i, Thing item, Thing *carried)
{
    Scope *names = build_scope_push(b);
    names->suffix = str_format(b->arena, STR_FMT ".%lld", STR_ARG(names->suffix), (long long)i);
    bool ok = bind_pattern(b, stmt->each, item);
    for (uint32_t c = 0; c < stmt->target_count; c++)
        build_bind(b, build_name_text(b, stmt->target[c].name), stmt->target[c].name->place, carried[c]);
    Scope *body = build_scope_push(b);
    body->carried = names;
    if (ok)
        build_block(b, stmt->body);
    for (uint32_t c = 0; c < stmt->target_count && ok && !b->exhausted; c++) {
        Binding *binding = build_scope_find(body, build_name_text(b, stmt->target[c].name));
        carried[c] = binding ? binding->thing : carried[c]; /* a branch that would assign it was not taken */
    }
    build_scope_pop(b);
    build_scope_pop(b);
    return ok && !b->exhausted;
}

/* Names with braces are taken for the same: they may be. */
static bool may_be_same(const AstName *x, const AstName *y)
{
    return x->part_count || y->part_count || str_eq(x->text, y->text);
}

static bool block_assigns(const AstBlock *block, const AstName *name);

/* A chain of `else if` may be long. */
static bool branch_assigns(const AstStmt *stmt, const AstName *name)
{
    for (; !block_assigns(stmt->body, name); stmt = stmt->otherwise->stmt)
        if (!stmt->otherwise || stmt->otherwise->count != 1 || stmt->otherwise->stmt->kind != AST_IF)
            return stmt->otherwise && block_assigns(stmt->otherwise, name);
    return true;
}

static bool block_assigns(const AstBlock *block, const AstName *name)
{
    for (uint32_t i = 0; i < block->count; i++) {
        const AstStmt *stmt = &block->stmt[i];
        for (uint32_t t = 0; stmt->kind != AST_UPDATE && t < stmt->target_count; t++)
            if (may_be_same(stmt->target[t].name, name))
                return true;
        if (stmt->kind == AST_IF && branch_assigns(stmt, name))
            return true;
    }
    return false;
}

/* What a name that goes round is before the first one. */
static bool carried_before(Builder *b, const AstStmt *stmt, const AstName *name, Thing *thing)
{
    Binding *binding = build_lookup(b, build_name_text(b, name));
    if (!binding)
        return build_complain(b, name->place, "'" STR_FMT "' is carried, but has no value before the loop",
                              STR_ARG(name->text));
    *thing = build_bound(b, binding, name->place);
    return b->syntax_errors || block_assigns(stmt->body, name) ||
           build_complain(b, name->place, "'" STR_FMT "' is carried, but no round assigns it", STR_ARG(name->text));
}

void build_for(Builder *b, const AstStmt *stmt)
{
    Rounds rounds;
    Thing *carried = ARENA_ARRAY(b->scratch, Thing, stmt->target_count);
    bool ok = rounds_of(b, stmt, &rounds);

    for (uint32_t c = 0; c < stmt->target_count; c++)
        ok &= carried_before(b, stmt, stmt->target[c].name, &carried[c]);
    for (int64_t i = ok ? rounds.from : 0; ok && i < rounds.to; i++) {
        Thing item = rounds.item ? rounds.item[i] : build_thing_const(const_int(i));
        ok = build_step(b, stmt->place, COST_OF_CALL) && build_round(b, stmt, i, item, carried);
    }
    for (uint32_t c = 0; c < stmt->target_count; c++)
        build_rebind(b, build_name_text(b, stmt->target[c].name), stmt->target[c].name->place,
                     ok ? carried[c] : build_thing_bad());
}
