/* Depth-first search for a placement of height at most T.
 *
 * Canonical form.  Any placement can be pushed down until every item rests on the ground or on another item (or at the
 * first aligned offset above).  Placing items in order of (offset, rank), each at the least offset that those placed
 * before it leave, finds every pushed-down placement exactly once.  So a node places one item, at its least offset, and
 * no later item may come before it in that order.
 *
 * Cuts, at each node, where `least` is an item's least offset, and a section's `floor` is the lowest least offset of
 * its items yet to be placed and `rest` the sum of their sizes:
 * - bound: floor + rest <= T in every section, where the floor is also no lower than the offset just used;
 * - dominance: an item whose least offset is at or above the top that another could have, placed now, leaves a hole
 *   in which that other would fit, and the other order is searched anyway;
 * - waiting: an item that was passed over (its least offset is below the one just used) has to be lifted by a
 *   neighbour that is still to come, to at least that offset plus the neighbour's height;
 * - passing over: once a candidate has failed, it waits in that sense for the rest of its node, which often fails the
 *   bound at once; this is what keeps the search from trying the same failure with every unrelated item;
 * - splitting: when no item to be placed crosses a point in time, both sides are solved on their own, and one failure
 *   fails the node. */
#include "plan/exact_state.h"

#include <string.h>

#include "plan/sort.h"

const char *const plan_preorders[] = {"TLA", "VAL", "TAL", "VLA", "VOL", NULL};

/* The largest of a per-section figure over the item's sections. */
static int64_t most_over_sections(const PlanExact *x, const PlanItem *it, const int64_t *figure)
{
    int64_t most = 0;
    for (const PlanPiece *p = &x->items->piece[it->piece]; p < &x->items->piece[it->piece + it->piece_count]; p++)
        for (uint32_t s = p->lower; s < p->upper; s++)
            most = figure[s] > most ? figure[s] : most;
    return most;
}

static int64_t falling_key(const PlanExact *x, uint32_t item, char key)
{
    const PlanItem *it = &x->items->item[item];
    switch (key) {
    case 'T':
        return most_over_sections(x, it, x->class[0].rest);
    case 'V':
        return most_over_sections(x, it, x->blame);
    case 'A':
        return it->length > INT64_MAX / (it->size + 1) ? INT64_MAX : it->size * it->length;
    case 'L':
        return it->length;
    default:
        return x->conflicts[item];
    }
}

static void link_items(PlanExact *x, const SortKey *item, uint32_t count)
{
    uint32_t last = x->items->count;
    for (uint32_t k = 0; k < count; k++) {
        x->next[last] = item[k].index;
        x->prev[item[k].index] = last;
        last = item[k].index;
    }
    x->next[last] = x->items->count;
    x->prev[x->items->count] = last;
}

/* Ranks the given items by the preorder and links them; pinned ones come first. */
static void rank_items(PlanExact *x, SortKey *item, uint32_t count)
{
    for (size_t c = strlen(x->preorder) + 1; c-- > 0;) {
        for (uint32_t k = 0; k < count; k++)
            item[k].key = c ? sort_falling(falling_key(x, item[k].index, x->preorder[c - 1]))
                          : x->items->item[item[k].index].pinned != PLAN_FREE ? 0
                                                                              : 1;
        sort_ascending(x->stack, item, count);
    }
    for (uint32_t k = 0; k < count; k++)
        x->rank[item[k].index] = k;
    link_items(x, item, count);
}

/* No item may be placed at this offset or above, now: there would be room for another below. */
static int64_t ceiling(const PlanExact *x)
{
    uint32_t end = x->items->count;
    int64_t ceiling = INT64_MAX;
    for (uint32_t i = x->next[end]; i != end; i = x->next[i]) {
        bool pinned = x->items->item[i].pinned != PLAN_FREE;
        int64_t top = x->support[i] + (pinned ? 1 : x->items->item[i].size);
        ceiling = top < ceiling ? top : ceiling;
    }
    return ceiling;
}

static bool twin_waits(const PlanExact *x, uint32_t item)
{
    return x->twin[item] != PLAN_NONE && x->placed[x->twin[item]] < 0;
}

/* Pushes the items that may come next, in the order to try them. */
static void push_candidates(PlanExact *x, const ExactPart *part, int64_t last_offset, uint32_t last_rank)
{
    uint32_t end = x->items->count, base = x->candidate_count;
    int64_t limit = ceiling(x), rest = plan_exact_most_rest(x, part);
    for (uint32_t i = x->next[end]; i != end; i = x->next[i]) {
        int64_t offset = x->support[i];
        if (offset >= limit || offset < x->least[i] || offset < last_offset ||
            (offset == last_offset && x->rank[i] < last_rank) || twin_waits(x, i) ||
            !plan_exact_reaches(x, offset + rest))
            continue;
        ARENA_PUSH(x->arena, x->candidate, x->candidate_count, x->candidate_capacity,
                   ((ExactCandidate){offset, i, x->rank[i]}));
    }
    for (uint32_t k = base + 1; k < x->candidate_count; k++) { /* the list is by rank: keep that among equals */
        ExactCandidate c = x->candidate[k];
        uint32_t j = k;
        for (; j > base && x->candidate[j - 1].offset > c.offset; j--)
            x->candidate[j] = x->candidate[j - 1];
        x->candidate[j] = c;
    }
}

static bool fits_below_target(PlanExact *x, uint32_t item)
{
    const PlanItem *it = &x->items->item[item];
    for (const PlanPiece *p = &x->items->piece[it->piece]; p < &x->items->piece[it->piece + it->piece_count]; p++)
        if (!plan_exact_reaches(x, x->support[item] + p->size - p->slack))
            return false;
    return true;
}

static PlanVerdict search(PlanExact *x, ExactPart part, int64_t last_offset, uint32_t last_rank);

/* Solves what is left of the part after its items have been cut apart at some point in time. */
static PlanVerdict search_split(PlanExact *x, ExactPart part)
{
    PlanVerdict verdict = PLAN_FOUND;
    ArenaMark mark = arena_mark(x->stack);
    uint32_t end = x->items->count, count = 0, path_count = x->path_count;
    SortKey *whole = ARENA_ARRAY(x->stack, SortKey, part.count), *some = ARENA_ARRAY(x->stack, SortKey, part.count);
    for (uint32_t i = x->next[end]; i != end; i = x->next[i])
        whole[count++] = (SortKey){x->rank[i], i};

    for (uint32_t lower = part.lower, upper; lower < part.upper && verdict == PLAN_FOUND; lower = upper) {
        uint32_t n = 0;
        for (upper = lower + 1; upper < part.upper && x->cut[upper - 1];)
            upper++;
        for (uint32_t k = 0; k < count; k++)
            if (lower <= plan_exact_lower(x, whole[k].index) && plan_exact_lower(x, whole[k].index) < upper)
                some[n++].index = whole[k].index;
        if (!n)
            continue;
        rank_items(x, some, n);
        verdict = search(x, (ExactPart){n, lower, upper}, 0, 0);
    }
    if (verdict == PLAN_REFUTED) {
        while (x->path_count > path_count) { /* parts that were solved before the one that failed */
            plan_exact_cut(x, x->path[x->path_count - 1].item, 1);
            plan_exact_take_back(x);
        }
        for (uint32_t k = 0; k < count; k++)
            x->rank[whole[k].index] = (uint32_t)whole[k].key;
        link_items(x, whole, count);
    }
    arena_reset(x->stack, mark);
    return verdict;
}

static PlanVerdict try_candidate(PlanExact *x, ExactPart part, ExactCandidate c)
{
    PlanVerdict verdict = PLAN_REFUTED;
    if (!fits_below_target(x, c.item))
        return PLAN_REFUTED;
    x->nodes++;
    if (plan_exact_put(x, c.item, x->support[c.item])) {
        bool split = plan_exact_cut(x, c.item, UINT32_MAX);
        verdict = split ? search_split(x, part) : search(x, part, c.offset, c.rank);
        if (verdict == PLAN_REFUTED)
            plan_exact_cut(x, c.item, 1);
    }
    if (verdict == PLAN_REFUTED)
        plan_exact_take_back(x);
    return verdict;
}

static PlanVerdict search(PlanExact *x, ExactPart part, int64_t last_offset, uint32_t last_rank)
{
    if (x->next[x->items->count] == x->items->count)
        return PLAN_FOUND;
    if (x->nodes >= x->budget)
        return PLAN_GAVE_UP;
    PlanVerdict verdict = PLAN_REFUTED;
    uint32_t base = x->candidate_count, undo_count = x->undo_count;
    push_candidates(x, &part, last_offset, last_rank);
    for (uint32_t k = base; k < x->candidate_count; k++) {
        verdict = try_candidate(x, part, x->candidate[k]);
        if (verdict != PLAN_REFUTED || !plan_exact_pass_over(x, x->candidate[k].item, x->candidate[k].offset))
            break;
    }
    if (verdict == PLAN_REFUTED)
        plan_exact_undo(x, undo_count);
    x->candidate_count = base;
    return verdict;
}

PlanVerdict plan_exact_fit(PlanExact *x, PlanQuest *quest, int64_t *offset)
{
    Arena stack = {0};
    const PlanItems *items = x->items;
    x->stack = &stack;
    x->target = quest->target;
    x->preorder = quest->preorder;
    x->budget = quest->nodes;
    x->nodes = 0;
    PlanVerdict verdict = PLAN_REFUTED;
    if (plan_exact_reset(x)) {
        SortKey *all = ARENA_ARRAY(&stack, SortKey, items->count);
        uint32_t count = 0;
        for (uint32_t i = 0; i < items->count; i++)
            if (items->item[i].piece_count)
                all[count++].index = i;
        rank_items(x, all, count);
        verdict = search_split(x, (ExactPart){count, 0, items->section_count});
    }
    if (verdict == PLAN_FOUND)
        memcpy(offset, x->placed, sizeof *offset * items->count);
    quest->spent = x->nodes;
    quest->bound = x->leap == INT64_MAX || x->leap <= x->target ? x->target + 1 : x->leap;
    arena_free(&stack);
    return verdict;
}
