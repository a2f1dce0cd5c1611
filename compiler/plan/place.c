/* Placement: splits a problem by region, runs the allocator asked for on each, and says what has come of it. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "plan/greedy.h"
#include "plan/items.h"
#include "plan/portfolio.h"

static bool known(const char *allocator)
{
    for (const PlanAllocator *a = plan_allocators(); a->name; a++)
        if (strcmp(a->name, allocator) == 0)
            return true;
    return false;
}

static int64_t capacity_of(const PlanProblem *p, uint32_t region)
{
    int64_t own = p->region_capacity && region < p->region_count ? p->region_capacity[region] : 0;
    return own ? own : p->capacity;
}

/* Plans one region and writes its part of the result; false when its pins contradict each other. */
static bool place_region(const PlanProblem *p, uint32_t region, const char *allocator, int effort, PlanResult *r)
{
    Arena scratch = {0};
    PlanItems items;
    plan_items(&scratch, p, region, &items);
    PlanAttempt a = plan_attempt(&scratch, p, &items, effort, capacity_of(p, region));
    if (p->conflict_count || plan_pins_agree(&items))
        plan_attempt_run(&a, allocator);

    bool placed = a.peak != INT64_MAX;
    for (uint32_t i = 0; placed && i < p->count; i++)
        if (items.buffer_item[i] != UINT32_MAX) {
            const PlanItem *item = &items.item[items.buffer_item[i]];
            bool stored = item->piece_count > 0;
            r->offset[i] = stored ? a.offset[items.buffer_item[i]] : item->pinned > 0 ? item->pinned : 0;
        }
    r->region_peak[region] = placed ? a.peak : 0;
    r->region_bound[region] = a.bound;
    r->nodes += a.nodes;
    r->proven &= placed && plan_attempt_proven(&a);
    if (placed && (region == 0 || a.peak > r->region_peak[0]))
        r->allocator = a.by;
    arena_free(&scratch);
    return placed;
}

static bool refuse(PlanResult *r, Str message)
{
    r->offset = NULL;
    r->proven = false;
    r->message = message;
    return false;
}

/* What may be hoped for, when a plan exceeds the capacity of its region. */
static const char *hope(const PlanProblem *p, const PlanResult *r, uint32_t region, const char *allocator)
{
    if (r->region_bound[region] > capacity_of(p, region))
        return "no plan can fit";
    if (p->conflict_count)
        return "a lower one is not ruled out";
    if (strcmp(allocator, "best") == 0 || strcmp(allocator, "exact") == 0)
        return "a lower one is not ruled out, and more effort may find it";
    return "a lower one is not ruled out, and the allocator `best` may find it";
}

static bool keeps_capacities(Arena *arena, const PlanProblem *p, PlanResult *r, const char *allocator)
{
    for (uint32_t region = 0; region < r->region_count; region++) {
        int64_t capacity = capacity_of(p, region);
        if (!capacity || r->region_peak[region] <= capacity)
            continue;
        Str where = r->region_count > 1 ? str_format(arena, " of region %u", region) : (Str){"", 0};
        r->message = str_format(arena,
                                "the plan takes %" PRId64 " bytes" STR_FMT ", more than the capacity of %" PRId64
                                ": %s (lower bound %" PRId64 ")",
                                r->region_peak[region], STR_ARG(where), capacity, hope(p, r, region, allocator),
                                r->region_bound[region]);
        return false;
    }
    return true;
}

bool plan_place(Arena *arena, const PlanProblem *p, const char *allocator, int effort, PlanResult *r)
{
    *r = (PlanResult){.region_count = 1, .proven = true, .allocator = allocator ? allocator : "best"};
    assert(effort >= 0);
    if (!known(r->allocator))
        return refuse(r, str_format(arena, "no allocator is called \"%s\"", r->allocator));
    if (!plan_valid(arena, p, &r->message))
        return refuse(r, r->message);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->buffer[i].region >= r->region_count)
            r->region_count = p->buffer[i].region + 1;

    allocator = r->allocator;
    r->offset = ARENA_ARRAY(arena, int64_t, p->count);
    r->region_peak = ARENA_ARRAY(arena, int64_t, r->region_count);
    r->region_bound = ARENA_ARRAY(arena, int64_t, r->region_count);
    for (uint32_t region = 0; region < r->region_count; region++) {
        if (!place_region(p, region, allocator, effort, r))
            return refuse(r, str_format(arena, "region %u: pinned buffers overlap, or lie where %s does not reach",
                                        region, allocator));
        r->peak += r->region_peak[region];
        r->lower_bound += r->region_bound[region];
    }
    return keeps_capacities(arena, p, r, allocator);
}
