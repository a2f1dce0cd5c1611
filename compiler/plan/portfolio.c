/* `best` runs the others from cheap to dear and stops at the first plan whose peak equals the lower bound, which proves
 * it.  What is dear has a limit of work, which the effort scales, counted in what it looks at; no clock decides
 * anything.  A run that can no longer be lower than the best plan so far is given up at once, and loses nothing.
 *
 * So that `best` is never higher than any allocator that can be named, all of them are part of it, and the limit is so
 * large that it is not reached before some 100,000 items. */
#include "plan/portfolio.h"

#include <string.h>

#include "plan/anneal.h"
#include "plan/blocks.h"
#include "plan/greedy.h"
#include "plan/planar.h"
#include "plan/relation.h"
#include "plan/repair.h"
#include "plan/tighten.h"

#define LOOKS_PER_EFFORT UINT64_C(1000000000) /* of all runs of one region */
#define BLOCK_LOOKS      UINT64_C(20000000)   /* for each unit of effort */
#define PLANAR_LOOKS     UINT64_C(1200000000) /* likewise */
#define ANNEAL_LOOKS     UINT64_C(250000)     /* likewise, and for each item */
#define ANNEAL_TURNS     8                    /* likewise */
#define WALKS            4
#define MOST_BY_BLOCKS   10000
#define MANY             200000 /* items from which on even n log n is done sparingly */
#define LOOKS_OF_MANY    UINT64_C(250000000)
#define NO_EFFORT        20     /* an effort of 0 has such a part of the looks of 1 */
#define MOST_BY_NNC      100000 /* items up to which `best` tries nnc, at normal effort */
#define FEW              1000   /* items, of which the search does more than repair could */
#define NODES_PER_EFFORT UINT64_C(150000)
#define PLAIN_SIZE       500 /* items and sections, and conflicts per item, of problems that get all these nodes */
#define SMALL_SIZE       45  /* and of such whose nodes cost so little that they get more */
#define SMALL_TIMES      12
#define PLAIN_CONFLICTS  75
#define PAIRS_PER_NODE   10 /* more, and to prepare the search would take longer than the search */

typedef PlanAttempt Attempt;

static bool done(const Attempt *a)
{
    return plan_attempt_proven(a);
}

typedef enum Family { FIRST_FIT, BEST_FIT, SKYLINE, STACK, FAMILIES } Family; /* of allocators, one for each order */

#define FIRST_NAME(NAME, name, first, keys)   "greedy-" name,
#define BEST_NAME(NAME, name, first, keys)    "greedy-" name "-best",
#define SKYLINE_NAME(NAME, name, first, keys) "skyline-" name,
#define STACK_NAME(NAME, name, first, keys)   "stack-" name,
static const char *const family_name[FAMILIES][PLAN_ORDERS] = {
    [FIRST_FIT] = {PLAN_ORDER_ROWS(FIRST_NAME)},
    [BEST_FIT] = {PLAN_ORDER_ROWS(BEST_NAME)},
    [SKYLINE] = {PLAN_ORDER_ROWS(SKYLINE_NAME)},
    [STACK] = {PLAN_ORDER_ROWS(STACK_NAME)},
};

/* Only what is lower than the best so far is wanted, within what work is left. */
static PlanLimit limit_of(const Attempt *a)
{
    return (PlanLimit){.below = a->peak, .looks = a->looks};
}

static bool heap_does(const Attempt *a, PlanOrder order)
{
    return a->items->plain && (order == PLAN_BY_START || order == PLAN_BY_END);
}

static bool fit(Attempt *a, PlanFit fit, PlanOrder order, PlanLimit *limit)
{
    if (!heap_does(a, order))
        return plan_greedy(a->items, order, fit, limit, a->trial);
    plan_heap(a->items, fit, order == PLAN_BY_END, a->trial);
    return true;
}

static bool skyline(Attempt *a, PlanOrder order, PlanLimit *limit)
{
    Arena scratch = {0};
    uint32_t *sequence = ARENA_ARRAY(&scratch, uint32_t, a->items->count);
    uint32_t count = plan_order(&scratch, a->items, order, sequence);
    bool placed = plan_skyline(a->items, sequence, count, limit, a->trial);
    arena_free(&scratch);
    return placed;
}

static void try_one(Attempt *a, Family family, PlanOrder order)
{
    PlanLimit limit = limit_of(a);
    bool placed = false;
    switch (family) {
    case FIRST_FIT:
        placed = fit(a, PLAN_FIRST_FIT, order, &limit);
        break;
    case BEST_FIT:
        placed = fit(a, PLAN_BEST_FIT, order, &limit);
        break;
    case SKYLINE:
        placed = skyline(a, order, &limit);
        break;
    default:
        placed = plan_stack(a->items, order, a->trial);
        break;
    }
    a->looks = limit.looks;
    plan_attempt_consider(a, placed, family_name[family][order]);
}

static void try_family(Attempt *a, Family family)
{
    for (PlanOrder order = 0; order < PLAN_ORDERS && !done(a) && a->looks; order++)
        if (!plan_order_repeats(a->items, order))
            try_one(a, family, order);
}

/* What takes n log n whatever the conflicts. */
static void try_light(Attempt *a)
{
    bool many = a->items->count > MANY;
    for (PlanOrder order = PLAN_BY_START; order <= PLAN_BY_END; order++)
        for (Family fit = many ? BEST_FIT : FIRST_FIT; fit <= BEST_FIT && !done(a); fit++)
            if (heap_does(a, order))
                try_one(a, fit, order);
    if (!many)
        try_family(a, SKYLINE);
    else if (!done(a))
        try_one(a, STACK, PLAN_BY_LENGTH);
}

static void settle(Attempt *a, int64_t *offset)
{
    PlanLimit limit = limit_of(a);
    plan_settle(a->items, &limit, offset);
    a->looks = limit.looks;
}

/* What lies in the air afterwards may come down a little. */
static void try_nnc(Attempt *a, PlanNnc rule)
{
    plan_nnc(a->items, rule, a->trial);
    settle(a, a->trial);
    plan_attempt_consider(a, true, "nnc");
}

static void run_nnc(Attempt *a)
{
    try_nnc(a, PLAN_NNC_BY_SIZE);
    if (!done(a))
        try_nnc(a, PLAN_NNC_BY_EDGES);
}

/* A node of the search takes time in proportion to what it looks at. */
static uint64_t node_limit(const Attempt *a, uint64_t pairs)
{
    uint64_t nodes = NODES_PER_EFFORT * (uint64_t)a->effort, count = a->items->count;
    uint64_t size = count + a->items->section_count, conflicts = pairs / (count ? count : 1);
    if (size <= SMALL_SIZE)
        nodes *= SMALL_TIMES;
    if (size > PLAIN_SIZE)
        nodes = nodes * PLAIN_SIZE / size;
    return conflicts > PLAIN_CONFLICTS ? nodes * PLAIN_CONFLICTS / conflicts : nodes;
}

/* Would the search take longer to prepare than to do, or its tables be too large? */
static bool can_search(const Attempt *a, uint64_t *nodes)
{
    Arena scratch = {0};
    uint64_t pairs = plan_items_pairs(&scratch, a->items);
    arena_free(&scratch);
    *nodes = node_limit(a, pairs);
    return !plan_too_large(a->items, pairs) && pairs <= PAIRS_PER_NODE * *nodes;
}

static void search(Attempt *a, uint64_t nodes)
{
    PlanBest best = {.offset = a->offset, .peak = a->peak, .bound = a->bound, .wanted = a->wanted};
    plan_tighten(a->items, nodes, &best);
    a->bound = best.bound;
    a->nodes = best.nodes;
    if (best.improved) {
        a->peak = best.peak;
        a->by = "exact";
    }
}

/* Lowers what hangs in the air: the plan reads better, and may even shrink. */
static void settle_best(Attempt *a)
{
    if (a->peak == INT64_MAX)
        return;
    settle(a, a->offset);
    a->peak = plan_items_peak(a->items, a->offset);
}

static void run_quick(Attempt *a)
{
    try_light(a);
    if (a->items->count > MANY)
        try_family(a, SKYLINE);
    try_family(a, STACK);
    try_family(a, FIRST_FIT);
    if (a->peak == INT64_MAX) { /* all came to the limit: the skyline always has a plan */
        a->looks = UINT64_MAX;
        try_one(a, SKYLINE, PLAN_BY_SIZE);
    }
}

/* All but blocks. */
static void run_single(Attempt *a)
{
    uint64_t nodes;
    uint64_t looks = a->items->count > MANY ? LOOKS_OF_MANY : LOOKS_PER_EFFORT;
    a->looks = looks * (uint64_t)a->effort + looks / NO_EFFORT;
    run_quick(a);
    if (!done(a) && a->items->count <= MOST_BY_NNC * (uint64_t)a->effort)
        run_nnc(a);
    try_family(a, BEST_FIT);
    settle_best(a);
    if (done(a))
        return;
    bool searchable = can_search(a, &nodes);
    if (!searchable || a->items->count > FEW)
        plan_repair(a);
    if (searchable && !done(a))
        search(a, nodes);
    settle_best(a);
}

static void place_blocks(Attempt *a, const PlanBlocks *blocks, int64_t wanted)
{
    Arena scratch = {0};
    PlanItems items;
    plan_items(&scratch, &blocks->problem, 0, &items);
    Attempt inner = plan_attempt(&scratch, &blocks->problem, &items, a->effort, wanted);
    run_single(&inner);
    for (uint32_t i = 0; i < a->items->count; i++)
        a->trial[i] = inner.offset[items.buffer_item[blocks->block[i]]] + blocks->at[i];
    settle(a, a->trial);
    plan_attempt_consider(a, true, "blocks");
    a->nodes += inner.nodes;
    arena_free(&scratch);
}

/* What fits together exactly is joined, where it is much, and the blocks are placed like items. */
static void try_blocks(Attempt *a)
{
    Arena scratch = {0};
    PlanBlocks blocks;
    if (a->items->plain && a->items->count <= MOST_BY_BLOCKS) {
        plan_blocks(&scratch, a->items, BLOCK_LOOKS * (uint64_t)a->effort + BLOCK_LOOKS / NO_EFFORT, &blocks);
        bool much = blocks.problem.count <= a->items->count / 2;
        if (much)
            place_blocks(a, &blocks, 0);
        if (much && a->peak > a->wanted && a->bound <= a->wanted)
            place_blocks(a, &blocks, a->wanted);
    }
    arena_free(&scratch);
}

static void try_planar(Attempt *a)
{
    uint64_t looks = PLANAR_LOOKS * (uint64_t)a->effort + PLANAR_LOOKS / NO_EFFORT;
    if (a->items->plain && a->items->count <= MOST_BY_BLOCKS)
        plan_attempt_consider(a, plan_planar(a->items, &looks, a->trial), "planar");
}

/* Walks forwards and backwards in turn, and on to half the excess where one is reached. */
static void try_anneal(Attempt *a)
{
    uint64_t looks = ANNEAL_LOOKS * (uint64_t)a->effort * a->items->count;
    int64_t excess = a->bound / 100 * 3;
    if (!a->items->plain || a->items->count > MOST_BY_BLOCKS || !plan_anneal_suits(a->items))
        return;
    for (uint32_t turn = 0; turn < ANNEAL_TURNS * (uint32_t)a->effort && looks; turn++) {
        while (excess && a->bound + excess >= a->peak)
            excess /= 2;
        if (!excess)
            return;
        PlanWalk how = {a->bound + excess, a->peak, WALKS, turn / 2, turn % 2};
        plan_attempt_consider(a, plan_anneal(a->items, &how, &looks, a->trial), "anneal");
    }
}

static void run_best(Attempt *a)
{
    run_single(a);
    if (!done(a))
        try_planar(a);
    if (!done(a))
        try_blocks(a);
    if (!done(a))
        try_anneal(a);
}

static void run_anneal(Attempt *a)
{
    try_anneal(a);
    if (a->peak == INT64_MAX)
        run_quick(a);
}

static void run_blocks(Attempt *a)
{
    try_blocks(a);
    if (a->peak == INT64_MAX)
        run_quick(a);
}

static void run_planar(Attempt *a)
{
    try_planar(a);
    if (a->peak == INT64_MAX)
        run_quick(a);
}

/* The search alone; only where it finds nothing in its budget does a fast plan have to do. */
static void run_exact(Attempt *a)
{
    uint64_t nodes;
    if (can_search(a, &nodes))
        search(a, nodes);
    if (a->peak == INT64_MAX)
        run_quick(a);
}

static void run_greedy(Attempt *a)
{
    try_family(a, FIRST_FIT);
    try_family(a, BEST_FIT);
}

static void run_skyline(Attempt *a)
{
    try_family(a, SKYLINE);
}

static void run_stack(Attempt *a)
{
    try_family(a, STACK);
}

static void run_bestfit(Attempt *a)
{
    try_one(a, BEST_FIT, PLAN_BY_START);
    a->by = "bestfit";
}

static void run_relation(Attempt *a)
{
    for (uint32_t order = 0; order < PLAN_RELATION_ORDERS && !done(a); order++)
        plan_attempt_consider(a, plan_relation(a->items, a->problem, order, a->trial), plan_relation_name[order]);
}

static const struct {
    const char *name;
    void (*run)(Attempt *a);
} whole[] = {{"best", run_best},     {"nnc", run_nnc},         {"exact", run_exact}, {"bestfit", run_bestfit},
             {"greedy", run_greedy}, {"skyline", run_skyline}, {"stack", run_stack}, {"blocks", run_blocks},
             {"planar", run_planar}, {"anneal", run_anneal}};

void plan_attempt_run(Attempt *a, const char *allocator)
{
    if (a->problem->conflict_count) {
        run_relation(a);
        return;
    }
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(allocator, whole[i].name) == 0)
            whole[i].run(a);
    for (Family family = 0; family < FAMILIES; family++)
        for (PlanOrder order = 0; order < PLAN_ORDERS; order++)
            if (strcmp(allocator, family_name[family][order]) == 0)
                try_one(a, family, order);
}

#define FIRST_ROW(NAME, name, first, keys)   {"greedy-" name, first ", each into the lowest gap"},
#define BEST_ROW(NAME, name, first, keys)    {"greedy-" name "-best", first ", each into the tightest gap"},
#define SKYLINE_ROW(NAME, name, first, keys) {"skyline-" name, "always what can lie lowest; of equals, " first},
#define STACK_ROW(NAME, name, first, keys)   {"stack-" name, first ", each on top of all it conflicts with"},

static const PlanAllocator allocators[] = {
    {"best", "the portfolio of all others, from cheap to dear; stops at a proof (the default)"},
    {"nnc", "the NNC algorithm: tensors flow through the memory of others, up to three at a time"},
    {"exact", "exhaustive search, to the budget that --effort scales; proves what it can"},
    {"bestfit", "greedy-start-best by its other name"},
    {"greedy", "the best of all greedy-ORDER and greedy-ORDER-best"},
    {"skyline", "the best of all skyline-ORDER"},
    {"stack", "the best of all stack-ORDER; exact for lives that nest; always n log n"},
    {"blocks", "what fits together exactly is joined first, then `best`; for perfect packings"},
    {"planar", "a sweep through time that keeps all orders still possible; for perfect packings"},
    {"anneal", "a walk through time that fills the gaps of each step by annealing; for full loads"},
    PLAN_ORDER_ROWS(FIRST_ROW) PLAN_ORDER_ROWS(BEST_ROW) PLAN_ORDER_ROWS(SKYLINE_ROW)
        PLAN_ORDER_ROWS(STACK_ROW){NULL, NULL},
};

const PlanAllocator *plan_allocators(void)
{
    return allocators;
}
