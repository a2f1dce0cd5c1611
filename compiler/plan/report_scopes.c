/* Which part of the model a tensor is of, told by its name: `stage2.block0.a` is of stage2.  Names are cut at the first
 * depth where that gives at least two parts; a number at the end (`x.3`) is none. */
#include "base/map.h"
#include "plan/report.h"
#include "plan/sort.h"

#define MOST_DEPTH 4

/* The name without numbers at its end: `h` for `h.1`. */
static Str without_numbers(Str name)
{
    uint32_t end = name.len;
    for (uint32_t i = name.len; i-- > 0;) {
        if (name.ptr[i] == '.' && i + 1 < end)
            end = i;
        else if (name.ptr[i] < '0' || name.ptr[i] > '9')
            break;
    }
    return (Str){name.ptr, end};
}

/* The first `depth` words of a name that has more; empty when it has not. */
static Str scope_at(Str name, uint32_t depth)
{
    name = without_numbers(name);
    for (uint32_t i = 0; i < name.len; i++)
        if (name.ptr[i] == '.' && --depth == 0)
            return (Str){name.ptr, i};
    return (Str){0};
}

static bool has_scope(const PlanRow *row)
{
    return row->alias_of == PLAN_NO_ROW && row->bytes > 0 && row->kind != PLAN_SCRATCH;
}

static void collect(Arena *arena, PlanReport *r, const SortKey *order, uint32_t depth)
{
    Arena scratch = {0};
    Map seen = {.arena = &scratch};
    uint32_t capacity = 0;
    Str *scope = NULL;
    r->scope_count = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        PlanRow *row = &r->row[order[k].index];
        Str name = scope_at(row->name, depth);
        row->scope = PLAN_NO_ROW;
        if (!has_scope(row) || !name.len)
            continue;
        row->scope = map_get(&seen, name);
        if (row->scope != MAP_NONE)
            continue;
        row->scope = r->scope_count;
        map_add(&seen, name, r->scope_count);
        ARENA_PUSH(arena, scope, r->scope_count, capacity, name);
    }
    r->scope = scope;
    arena_free(&scratch);
}

void plan_find_scopes(Arena *arena, PlanReport *r)
{
    Arena scratch = {0};
    const SortKey *order = plan_rows_by_start(&scratch, r);
    r->scope_count = 0;
    for (uint32_t depth = 1; depth <= MOST_DEPTH && r->scope_count < 2; depth++)
        collect(arena, r, order, depth);
    if (r->scope_count < 2) { /* one alone tells nothing */
        r->scope_count = 0;
        for (uint32_t i = 0; i < r->count; i++)
            r->row[i].scope = PLAN_NO_ROW;
    }
    arena_free(&scratch);
}
