/* Placement: splits a problem by region, runs the allocator asked for on each, and keeps the lowest plan.
 *
 * `best` runs from cheap to dear and stops at the first plan whose peak equals the lower bound, which proves it.
 * Dear allocators are skipped where their work, known beforehand, passes a limit; no clock decides anything. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "plan/greedy.h"
#include "plan/items.h"
#include "plan/order.h"
#include "plan/relation.h"
#include "plan/tighten.h"

#define PAIRS_PER_EFFORT UINT64_C(500000) /* conflicting pairs that all greedy runs of one region may look at */
#define PAIRS_PER_ITEM   UINT64_C(4)      /* and as many more for each item */
#define MANY             200000           /* items from which on even n log n is done sparingly */
#define MOST_BY_SIZE     100000           /* items up to which `best` tries nnc by size */
#define MOST_BY_EDGES    10000            /* and by edges */
#define NODES_PER_EFFORT UINT64_C(150000)
#define PLAIN_SIZE       500 /* items and sections, and conflicts per item, of problems that get all these nodes */
#define PLAIN_CONFLICTS  75
#define PAIRS_PER_NODE   10 /* more, and to prepare the search would take longer than the search */

typedef struct Attempt { /* what is known of one region */
    const PlanItems *items;
    int64_t *offset, *trial; /* [item]; the best so far, and room for the next */
    int64_t peak;            /* INT64_MAX: no plan yet */
    const char *by;
    int64_t bound; /* no plan is lower */
    uint64_t nodes;
    uint64_t pairs; /* conflicting pairs of the region */
    int effort;
} Attempt;

/* The conflicting pairs that may be looked at, in each of the parts that count them. */
static uint64_t pair_limit(const Attempt *a)
{
    return (PAIRS_PER_EFFORT + PAIRS_PER_ITEM * a->items->count) * (uint64_t)(a->effort + 1);
}

static bool done(const Attempt *a)
{
    return a->peak <= a->bound;
}

static void consider(Attempt *a, bool placed, const char *by)
{
    if (!placed)
        return;
    int64_t peak = plan_items_peak(a->items, a->trial);
    if (peak >= a->peak)
        return;
    int64_t *swap = a->offset;
    a->offset = a->trial;
    a->trial = swap;
    a->peak = peak;
    a->by = by;
}

static const char *const greedy_name[PLAN_FITS][PLAN_ORDERS] = {
    {"greedy-size", "greedy-conflicts", "greedy-area", "greedy-length", "greedy-start", "greedy-breadth"},
    {"greedy-size-best", "greedy-conflicts-best", "greedy-area-best", "greedy-length-best", "bestfit",
     "greedy-breadth-best"},
};

static const char *const stack_name[PLAN_ORDERS] = {"stack-size",   "stack-conflicts", "stack-area",
                                                    "stack-length", "stack-start",     "stack-breadth"};

static void try_greedy(Attempt *a, PlanOrder order, PlanFit fit)
{
    bool placed = true;
    if (order == PLAN_BY_START && a->items->plain)
        plan_heap(a->items, fit, false, a->trial);
    else
        placed = plan_greedy(a->items, order, fit, a->trial);
    consider(a, placed, greedy_name[fit][order]);
}

static void all_greedy(Attempt *a)
{
    for (PlanOrder order = 0; order < PLAN_ORDERS; order++)
        for (PlanFit fit = 0; fit < PLAN_FITS && !done(a); fit++)
            try_greedy(a, order, fit);
}

static void try_stack(Attempt *a, PlanOrder order)
{
    consider(a, plan_stack(a->items, order, a->trial), stack_name[order]);
}

static void all_stack(Attempt *a)
{
    static const PlanOrder order[] = {PLAN_BY_LENGTH, PLAN_BY_AREA,      PLAN_BY_SIZE,
                                      PLAN_BY_START,  PLAN_BY_CONFLICTS, PLAN_BY_BREADTH};
    unsigned count = a->items->count > MANY ? 2 : PLAN_ORDERS;
    for (unsigned k = 0; k < count && !done(a); k++)
        try_stack(a, order[k]);
}

static void both_heaps(Attempt *a)
{
    for (PlanFit fit = PLAN_FITS; fit-- > 0 && a->items->plain;)
        for (int reversed = 0; reversed < 2 && !done(a); reversed++) {
            if (a->items->count > MANY && fit == PLAN_FIRST_FIT)
                return;
            plan_heap(a->items, fit, reversed, a->trial);
            consider(a, true, reversed ? "heap-reversed" : greedy_name[fit][PLAN_BY_START]);
        }
}

/* The portfolio without search: linear ones first, then as many of the greedy ones as the limit allows. */
static void quick(Attempt *a)
{
    static const PlanOrder order[] = {PLAN_BY_SIZE,   PLAN_BY_AREA,      PLAN_BY_BREADTH,
                                      PLAN_BY_LENGTH, PLAN_BY_CONFLICTS, PLAN_BY_START};
    uint64_t limit = pair_limit(a), spent = 0;

    both_heaps(a);
    all_stack(a);
    for (unsigned k = 0; k < PLAN_ORDERS; k++)
        for (PlanFit fit = 0; fit < PLAN_FITS && !done(a); fit++) {
            spent += a->pairs;
            if (spent > limit && a->peak != INT64_MAX)
                return;
            try_greedy(a, order[k], fit);
        }
}

static bool can_settle(const Attempt *a)
{
    return a->pairs <= pair_limit(a) / 2;
}

/* What lies in the air afterwards may come down a little. */
static void try_nnc(Attempt *a, PlanNnc rule)
{
    plan_nnc(a->items, rule, a->trial);
    if (can_settle(a))
        plan_settle(a->items, a->trial);
    consider(a, true, "nnc");
}

static void both_nnc(Attempt *a)
{
    try_nnc(a, PLAN_NNC_BY_SIZE);
    if (!done(a))
        try_nnc(a, PLAN_NNC_BY_EDGES);
}

/* A node of the search takes time in proportion to what it looks at. */
static uint64_t node_limit(const Attempt *a)
{
    uint64_t nodes = NODES_PER_EFFORT * (uint64_t)a->effort, count = a->items->count;
    uint64_t size = count + a->items->section_count, conflicts = a->pairs / (count ? count : 1);
    nodes = size > PLAIN_SIZE ? nodes * PLAIN_SIZE / size : nodes;
    return conflicts > PLAIN_CONFLICTS ? nodes * PLAIN_CONFLICTS / conflicts : nodes;
}

static void search(Attempt *a)
{
    uint64_t nodes = node_limit(a);
    if (done(a) || plan_too_large(a->items, a->pairs) || a->pairs > PAIRS_PER_NODE * nodes)
        return;
    PlanBest best = {.offset = a->offset, .peak = a->peak, .bound = a->bound};
    plan_tighten(a->items, nodes, &best);
    a->bound = best.bound;
    a->nodes = best.nodes;
    if (best.improved) {
        a->peak = best.peak;
        a->by = "exact";
    }
}

/* Lowers what hangs in the air: the plan reads better, and may even shrink. */
static void settle(Attempt *a)
{
    if (a->peak == INT64_MAX || !can_settle(a))
        return;
    plan_settle(a->items, a->offset);
    a->peak = plan_items_peak(a->items, a->offset);
}

static void run_best(Attempt *a)
{
    quick(a);
    if (!done(a) && a->items->count <= MOST_BY_SIZE)
        try_nnc(a, PLAN_NNC_BY_SIZE);
    if (!done(a) && a->items->count <= MOST_BY_EDGES)
        try_nnc(a, PLAN_NNC_BY_EDGES);
    settle(a);
    search(a);
    settle(a);
}

/* The search alone; only where it finds nothing in its budget does a fast plan have to do. */
static void run_exact(Attempt *a)
{
    search(a);
    if (a->peak == INT64_MAX)
        quick(a);
}

static void run_relation(Attempt *a, const PlanProblem *problem)
{
    for (uint32_t order = 0; order < PLAN_RELATION_ORDERS && !done(a); order++)
        consider(a, plan_relation(a->items, problem, order, a->trial), "greedy-relation");
}

static const PlanAllocator allocators[] = {
    {"best", "the portfolio of all others, from cheap to dear; stops at a proof (the default)"},
    {"nnc", "the NNC algorithm: tensors flow through the memory of others, up to three at a time"},
    {"exact", "exhaustive search, to the budget that --effort scales; proves what it can"},
    {"bestfit", "in order of execution, each buffer into the tightest gap"},
    {"greedy", "the best of all greedy-ORDER and greedy-ORDER-best"},
    {"greedy-size", "largest buffer first, each into the lowest gap (what TensorFlow Lite does)"},
    {"greedy-conflicts", "the buffer with the most neighbours in time first, lowest gap"},
    {"greedy-area", "largest size times life first, lowest gap"},
    {"greedy-length", "longest life first, lowest gap"},
    {"greedy-start", "in order of execution, lowest gap"},
    {"greedy-breadth", "the fullest step's buffers first, by size, lowest gap"},
    {"greedy-size-best", "as greedy-size, into the tightest gap"},
    {"greedy-conflicts-best", "as greedy-conflicts, into the tightest gap"},
    {"greedy-area-best", "as greedy-area, into the tightest gap"},
    {"greedy-length-best", "as greedy-length, into the tightest gap"},
    {"greedy-breadth-best", "as greedy-breadth, into the tightest gap"},
    {"stack", "each buffer on top of all it conflicts with; exact for lives that nest; always n log n"},
    {NULL, NULL},
};

const PlanAllocator *plan_allocators(void)
{
    return allocators;
}

/* False when there is no allocator of that name. */
static bool run(Attempt *a, const char *allocator)
{
    if (strcmp(allocator, "best") == 0)
        return run_best(a), true;
    if (strcmp(allocator, "exact") == 0)
        return run_exact(a), true;
    if (strcmp(allocator, "nnc") == 0)
        return both_nnc(a), true;
    if (strcmp(allocator, "greedy") == 0)
        return all_greedy(a), true;
    if (strcmp(allocator, "stack") == 0)
        return all_stack(a), true;
    for (PlanOrder order = 0; order < PLAN_ORDERS; order++)
        for (PlanFit fit = 0; fit < PLAN_FITS; fit++)
            if (strcmp(allocator, greedy_name[fit][order]) == 0)
                return try_greedy(a, order, fit), true;
    return false;
}

static bool known(const char *allocator)
{
    for (const PlanAllocator *a = allocators; a->name; a++)
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
    Attempt a = {.items = &items, .peak = INT64_MAX, .by = allocator, .effort = effort};
    a.bound = items.lower_bound;
    a.offset = ARENA_ARRAY(&scratch, int64_t, items.count);
    a.trial = ARENA_ARRAY(&scratch, int64_t, items.count);
    a.pairs = plan_items_pairs(&scratch, &items);
    if (p->conflict_count)
        run_relation(&a, p);
    else if (plan_pins_agree(&items))
        run(&a, allocator);

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
    r->proven &= placed && done(&a);
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
    for (uint32_t region = 0; region < r->region_count; region++) {
        int64_t capacity = capacity_of(p, region);
        if (!capacity || r->region_peak[region] <= capacity)
            continue;
        r->message = str_format(arena, "the plan needs %" PRId64 " bytes of region %u, which has %" PRId64 "%s",
                                r->region_peak[region], region, capacity,
                                r->region_bound[region] > capacity ? "; no plan can fit" : "");
        return false;
    }
    return true;
}
