#include "plan/report.h"

#include <inttypes.h>
#include <string.h>

#include "plan/sort.h"

/* The address space of one region as intervals, each with the row that wrote there last. */
typedef struct Owned {
    int64_t from, to;
    uint32_t row;
} Owned;

typedef struct Owners {
    Arena *arena;
    Owned *owned;
    uint32_t count, capacity;
} Owners;

typedef struct Finish {
    Arena *arena, scratch;
    PlanReport *report;
    Owners owners[PLAN_MOST_REGION];
    uint32_t share_capacity;
} Finish;

/* The first interval that ends above the address. */
static uint32_t find(const Owners *o, int64_t address)
{
    uint32_t low = 0, high = o->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (o->owned[middle].to > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The owner may still be live: then the row is computed in its place, and both are one as long as both live. */
static void note_share(Finish *f, uint32_t owner, uint32_t row, int64_t bytes)
{
    const PlanRow *a = &f->report->row[owner], *b = &f->report->row[row];
    if (a->last > b->first)
        ARENA_PUSH(f->arena, f->report->share, f->report->share_count, f->share_capacity,
                   ((PlanShare){b->region, b->first, a->last < b->last ? a->last : b->last, bytes}));
}

/* Gives [from, to) to a row; returns the row that owned the most of it before, or PLAN_NO_ROW. */
static uint32_t take_over(Finish *f, Owners *o, Owned claim)
{
    uint32_t begin = find(o, claim.from), end = begin, main = PLAN_NO_ROW, pieces = 0;
    int64_t most = 0;
    Owned piece[3];
    for (; end < o->count && o->owned[end].from < claim.to; end++) {
        const Owned *w = &o->owned[end];
        int64_t from = w->from > claim.from ? w->from : claim.from, to = w->to < claim.to ? w->to : claim.to;
        note_share(f, w->row, claim.row, to - from);
        if (to - from > most) {
            most = to - from;
            main = w->row;
        }
    }
    if (begin < end && o->owned[begin].from < claim.from)
        piece[pieces++] = (Owned){o->owned[begin].from, claim.from, o->owned[begin].row};
    piece[pieces++] = claim;
    if (begin < end && o->owned[end - 1].to > claim.to)
        piece[pieces++] = (Owned){claim.to, o->owned[end - 1].to, o->owned[end - 1].row};

    while (o->capacity < o->count + 2)
        o->owned = arena_grow(o->arena, o->owned, o->count, &o->capacity, sizeof *o->owned);
    memmove(o->owned + begin + pieces, o->owned + end, sizeof *o->owned * (o->count - end));
    memcpy(o->owned + begin, piece, sizeof *piece * pieces);
    o->count += pieces;
    o->count -= end - begin;
    return main;
}

static void find_reuse(Finish *f)
{
    PlanReport *r = f->report;
    SortKey *order = plan_rows_by_start(&f->scratch, r);
    for (uint32_t k = 0; k < r->count; k++) {
        PlanRow *row = &r->row[order[k].index];
        Owners *o = &f->owners[row->region % PLAN_MOST_REGION];
        o->arena = &f->scratch;
        row->reuses = PLAN_NO_ROW;
        if (plan_row_is_stored(row))
            row->reuses = take_over(f, o, (Owned){row->offset, row->offset + row->bytes, order[k].index});
    }
}

static void find_peak_step(Finish *f)
{
    PlanReport *r = f->report;
    PlanLevel *level;
    uint32_t count = plan_report_levels(&f->scratch, r, PLAN_NO_ROW, &level);
    for (uint32_t i = 0; i < count; i++)
        if (level[i].live > r->peak_live) {
            r->peak_live = level[i].live;
            r->peak_step = level[i].step;
        }
}

void plan_report_finish(Arena *arena, PlanReport *r)
{
    Finish *f = ARENA_NEW(arena, Finish);
    *f = (Finish){.arena = arena, .report = r};
    r->naive = r->peak_live = r->peak_step = 0;
    r->share = NULL;
    r->share_count = 0;
    r->first_step = r->count ? INT64_MAX : 0;
    r->last_step = r->count ? INT64_MIN : 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const PlanRow *row = &r->row[i];
        if (row->alias_of == PLAN_NO_ROW && row->kind != PLAN_GROWING)
            r->naive += row->bytes;
        if (row->first < r->first_step)
            r->first_step = row->first;
        if (row->last > r->last_step)
            r->last_step = row->last;
    }
    find_reuse(f);
    find_peak_step(f);
    plan_find_blame(arena, r);
    plan_find_scopes(arena, r);
    arena_free(&f->scratch);
}

/* Of a group, the first use stands for all. */
static void find_aliases(Arena *arena, const PlanProblem *p, PlanRow *row)
{
    ArenaMark mark = arena_mark(arena);
    SortKey *key = ARENA_ARRAY(arena, SortKey, p->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->buffer[i].group)
            key[count++] = (SortKey){(uint64_t)p->buffer[i].region << 32 | p->buffer[i].group, i};
    sort_ascending(arena, key, count);
    for (uint32_t k = 1, first = 0; k < count; k++) {
        if (key[k].key != key[first].key)
            first = k;
        else
            row[key[k].index].alias_of = key[first].index;
    }
    arena_reset(arena, mark);
}

PlanReport plan_report_of(Arena *arena, const PlanProblem *p, const PlanResult *result, const Str *id)
{
    PlanReport r = {.title = STR("problem"),
                    .count = p->count,
                    .region_count = result->region_count,
                    .peak = result->peak,
                    .lower_bound = result->lower_bound,
                    .proven = result->proven,
                    .nodes = result->nodes,
                    .allocator = result->allocator};
    r.row = ARENA_ARRAY(arena, PlanRow, p->count);
    for (uint32_t i = 0; i < p->count; i++) {
        const PlanBuffer *b = &p->buffer[i];
        r.row[i] = (PlanRow){.name = id ? id[i] : str_format(arena, "%u", i),
                             .bytes = b->size,
                             .span = b->size,
                             .offset = result->offset[i],
                             .first = b->first,
                             .last = b->last,
                             .region = b->region,
                             .alias_of = PLAN_NO_ROW};
    }
    find_aliases(arena, p, r.row);
    plan_report_finish(arena, &r);
    return r;
}

const uint32_t *plan_loop_depths(Arena *arena, const PlanReport *r, uint32_t *levels)
{
    uint32_t *depth = ARENA_ARRAY(arena, uint32_t, r->loop_count), open = 0;
    int64_t *end = ARENA_ARRAY(arena, int64_t, r->loop_count); /* of those around */
    *levels = 0;
    for (uint32_t i = 0; i < r->loop_count; i++) {
        while (open && end[open - 1] <= r->loop[i].first)
            open--;
        depth[i] = open;
        end[open++] = r->loop[i].last;
        *levels = open > *levels ? open : *levels;
    }
    return depth;
}

Str plan_loop_label(Arena *arena, const PlanLoop *loop, bool brief)
{
    Str label = loop->rounds ? str_format(arena, "%s%" PRId64 " rounds", loop->counted ? "" : "at most ", loop->rounds)
                             : STR("loop");
    for (uint32_t i = 0; i < loop->carried_count && !brief; i++) {
        const PlanCarried *carried = &loop->carried[i];
        if (carried->places > 1)
            label = str_format(arena, STR_FMT ", " STR_FMT " in %u places", STR_ARG(label), STR_ARG(carried->name),
                               carried->places);
    }
    return label;
}
