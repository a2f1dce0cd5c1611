/* The search of exact.c for few items, which remembers what it has refuted.
 *
 * For that the claim of a node must not depend on how it was reached: "these items, each at its least offset or above,
 * do not fit below the target".  So an item may lie at its least offset whether anything is below it or it was only
 * passed over there.  The claim then holds for every node with the same items of which none may lie lower, up to the
 * height that the cuts have named, whatever the target is.  It is dominance between sets, as in exact_stack.c for one
 * section alone.  Items that do not meet, not even by way of others, are solved apart. */
#include "plan/exact_memo.h"

#include <string.h>

#include "plan/exact_state.h"
#include "plan/sort.h"

#define SLOTS          16384 /* of the table of what was refuted; a power of two */
#define MOST_REFUTED   UINT32_C(100000)
#define LOOKS_PER_NODE 16

typedef uint64_t ItemSet;

typedef struct Refuted {
    ItemSet items;
    int64_t height;       /* the items need it at least */
    const int64_t *least; /* of the items in order of index */
    uint32_t next;        /* in the slot; 0: none */
} Refuted;

struct PlanMemo {
    Arena *arena;
    PlanExact *exact;
    ItemSet *neighbours; /* [item] */
    uint32_t *rank;      /* [item]: among those of one least offset */
    Refuted *refuted;    /* from 1 on */
    uint32_t count, capacity;
    uint32_t slot[SLOTS];
    uint64_t looks;
};

static ItemSet just(uint32_t item)
{
    return UINT64_C(1) << item;
}

static uint32_t slot_of(ItemSet items)
{
    return (uint32_t)(items * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (SLOTS - 1);
}

static bool nowhere_lower(const PlanMemo *m, const Refuted *r)
{
    const int64_t *least = r->least;
    for (uint32_t i = 0; i < m->exact->items->count; i++)
        if (r->items & just(i) && m->exact->least[i] < *least++)
            return false;
    return true;
}

/* Has it been refuted that the items fit?  Then the target must be at least so high as the leap tells. */
static bool recall(PlanMemo *m, ItemSet items)
{
    PlanExact *x = m->exact;
    for (uint32_t n = m->slot[slot_of(items)]; n; n = m->refuted[n].next) {
        const Refuted *r = &m->refuted[n];
        m->looks++;
        if (r->items == items && r->height > x->target && nowhere_lower(m, r)) {
            x->leap = r->height < x->leap ? r->height : x->leap;
            return true;
        }
    }
    return false;
}

static void remember(PlanMemo *m, ItemSet items, int64_t height)
{
    if (m->count >= MOST_REFUTED)
        return;
    const PlanExact *x = m->exact;
    uint32_t n = 0, *slot = &m->slot[slot_of(items)];
    int64_t *least = ARENA_ARRAY(m->arena, int64_t, x->items->count);
    for (uint32_t i = 0; i < x->items->count; i++)
        if (items & just(i))
            least[n++] = x->least[i];
    ARENA_PUSH(m->arena, m->refuted, m->count, m->capacity, ((Refuted){items, height, least, *slot}));
    *slot = m->count - 1;
}

/* The item with all that it meets, also by way of others. */
static ItemSet connected(const PlanMemo *m, ItemSet items, uint32_t item)
{
    ItemSet reached = just(item);
    for (ItemSet before = 0; before != reached;) {
        before = reached;
        for (uint32_t i = 0; i < m->exact->items->count; i++)
            if (reached & just(i))
                reached |= m->neighbours[i] & items;
    }
    return reached;
}

static ExactPart part_of(const PlanMemo *m, ItemSet items)
{
    ExactPart part = {0, UINT32_MAX, 0};
    for (uint32_t i = 0; i < m->exact->items->count; i++) {
        if (!(items & just(i)))
            continue;
        uint32_t lower = plan_exact_lower(m->exact, i), upper = plan_exact_upper(m->exact, i);
        part.lower = lower < part.lower ? lower : part.lower;
        part.upper = upper > part.upper ? upper : part.upper;
    }
    return part;
}

/* What may lie lowest of the items, from the lowest on: where another would fit below, that one does.  Returns how
 * many. */
static uint32_t candidates(const PlanMemo *m, ItemSet items, SortKey *candidate)
{
    const PlanExact *x = m->exact;
    int64_t limit = INT64_MAX;
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->items->count; i++) {
        if (!(items & just(i)))
            continue;
        int64_t top = x->least[i] + (x->items->item[i].pinned != PLAN_FREE ? 1 : x->items->item[i].size);
        limit = top < limit ? top : limit;
    }
    for (uint32_t i = 0; i < x->items->count; i++) {
        if (!(items & just(i)) || x->least[i] >= limit)
            continue;
        uint32_t at = count++;
        SortKey c = {(uint64_t)x->least[i], i};
        for (; at && (candidate[at - 1].key > c.key ||
                      (candidate[at - 1].key == c.key && m->rank[candidate[at - 1].index] > m->rank[i]));
             at--)
            candidate[at] = candidate[at - 1];
        candidate[at] = c;
    }
    return count;
}

/* Where a twin may lie as low, it does. */
static bool left_to_twin(const PlanExact *x, ItemSet items, uint32_t item)
{
    uint32_t twin = x->twin[item];
    return twin != PLAN_NONE && items & just(twin) && x->least[twin] <= x->least[item];
}

static PlanVerdict fit_all(PlanMemo *m, ItemSet items);

static PlanVerdict try_lowest(PlanMemo *m, ItemSet items, uint32_t item)
{
    PlanExact *x = m->exact;
    PlanVerdict verdict = PLAN_REFUTED;
    if (left_to_twin(x, items, item) || !plan_exact_reaches(x, plan_item_top(x->items, item, x->least[item])))
        return PLAN_REFUTED;
    x->nodes++;
    if (plan_exact_put(x, item, x->least[item]))
        verdict = fit_all(m, items & ~just(item));
    if (verdict == PLAN_REFUTED)
        plan_exact_take_back(x);
    return verdict;
}

static PlanVerdict try_candidates(PlanMemo *m, ItemSet items)
{
    PlanExact *x = m->exact;
    SortKey candidate[PLAN_MOST_REMEMBERED];
    PlanVerdict verdict = PLAN_REFUTED;
    uint32_t count = candidates(m, items, candidate), undo_count = x->undo_count;
    ExactPart part = part_of(m, items);
    for (uint32_t k = 0; k < count; k++) {
        int64_t lowest = (int64_t)candidate[k].key;
        if (!plan_exact_reaches(x, lowest + plan_exact_most_rest(x, &part)))
            break;
        verdict = try_lowest(m, items, candidate[k].index);
        if (verdict != PLAN_REFUTED || !plan_exact_pass_over(x, candidate[k].index, lowest))
            break;
    }
    if (verdict == PLAN_REFUTED)
        plan_exact_undo(x, undo_count);
    return verdict;
}

/* Places items that are connected. */
static PlanVerdict fit_connected(PlanMemo *m, ItemSet items)
{
    PlanExact *x = m->exact;
    if (recall(m, items))
        return PLAN_REFUTED;
    if (x->nodes + m->looks / LOOKS_PER_NODE >= x->budget)
        return PLAN_GAVE_UP;
    int64_t leap = x->leap;
    x->leap = INT64_MAX;
    PlanVerdict verdict = try_candidates(m, items);
    if (verdict == PLAN_REFUTED)
        remember(m, items, x->leap);
    x->leap = leap < x->leap ? leap : x->leap;
    return verdict;
}

static PlanVerdict fit_all(PlanMemo *m, ItemSet items)
{
    PlanExact *x = m->exact;
    PlanVerdict verdict = PLAN_FOUND;
    uint32_t path_count = x->path_count, undo_count = x->undo_count;
    for (uint32_t i = 0; i < x->items->count && verdict == PLAN_FOUND; i++) {
        if (!(items & just(i)))
            continue;
        ItemSet part = connected(m, items, i);
        verdict = fit_connected(m, part);
        items &= ~part;
    }
    while (verdict == PLAN_REFUTED &&
           x->path_count > path_count) /* parts that were solved before the one that failed */
        plan_exact_take_back(x);
    if (verdict == PLAN_REFUTED)
        plan_exact_undo(x, undo_count);
    return verdict;
}

PlanMemo *plan_memo_new(Arena *arena, PlanExact *exact)
{
    PlanMemo *m = ARENA_NEW(arena, PlanMemo);
    const PlanItems *items = exact->items;
    SortKey key[PLAN_MOST_REMEMBERED];
    *m = (PlanMemo){.arena = arena, .exact = exact};
    m->neighbours = ARENA_ARRAY(arena, ItemSet, items->count);
    m->rank = ARENA_ARRAY(arena, uint32_t, items->count);
    ARENA_PUSH(arena, m->refuted, m->count, m->capacity, ((Refuted){0}));
    for (uint32_t i = 0; i < items->count; i++) {
        for (uint32_t k = exact->neighbour_start[i]; k < exact->neighbour_start[i + 1]; k++)
            m->neighbours[i] |= just(exact->neighbour[k].item);
        key[i] = (SortKey){sort_falling(items->item[i].size), i};
    }
    sort_ascending(arena, key, items->count);
    for (uint32_t k = 0; k < items->count; k++)
        m->rank[key[k].index] = k;
    return m;
}

PlanVerdict plan_memo_fit(PlanMemo *m, PlanQuest *quest, int64_t *offset)
{
    PlanExact *x = m->exact;
    PlanVerdict verdict = PLAN_REFUTED;
    ItemSet items = 0;
    m->looks = 0;
    x->target = quest->target;
    x->budget = quest->nodes;
    x->nodes = 0;
    for (uint32_t i = 0; i < x->items->count; i++) {
        x->next[i] = x->prev[i] = i; /* lists are not used here */
        if (x->items->item[i].piece_count)
            items |= just(i);
    }
    if (plan_exact_reset(x))
        verdict = fit_all(m, items);
    if (verdict == PLAN_FOUND)
        memcpy(offset, x->placed, sizeof *offset * x->items->count);
    quest->spent = x->nodes + m->looks / LOOKS_PER_NODE;
    quest->bound = x->leap == INT64_MAX || x->leap <= x->target ? x->target + 1 : x->leap;
    return verdict;
}
