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
#include "plan/exact.h"

#include <string.h>

#include "plan/order.h"
#include "plan/sort.h"

#define NONE UINT32_MAX

const char *const plan_preorders[] = {"TLA", "TAL", "VAL", "VLA", "VOL", NULL};

typedef struct Neighbour {
    uint32_t item;
    int64_t reach; /* how far above this item's offset the neighbour must lie, when it is the higher one */
    int64_t lift;  /* and the other way round */
} Neighbour;

typedef struct Candidate {
    int64_t offset;
    uint32_t item, rank;
} Candidate;

typedef struct Undo {
    int64_t *where, value;
} Undo;

typedef struct Step {
    uint32_t item, undo_count;
} Step;

typedef struct Part { /* a number of items that are to be placed, and the sections they span */
    uint32_t count, lower, upper;
} Part;

struct PlanExact {
    Arena *arena, *stack; /* stack: what the search has to remember while it is deeper */
    const PlanItems *items;
    uint32_t *neighbour_start, *section_start; /* CSR */
    Neighbour *neighbour;
    uint32_t *section_item;
    uint32_t *conflicts;
    int64_t slack; /* the most padding of any piece: what a topmost item may stick out */

    /* The state of the search. */
    int64_t target;
    int64_t *rest;    /* per section: sum of the sizes of what is to be placed */
    int64_t *placed;  /* offset, or -1 */
    int64_t *support; /* the least offset that placed items leave */
    int64_t *least;   /* no completion has it lower: above the support when the item waits for a neighbour, and
                         INT64_MAX once it is placed */
    uint32_t *cut;    /* items to be placed that cross from section s to s + 1 */
    uint32_t *rank, *next, *prev;
    int64_t *blame;    /* per section: how often it failed the bound, over all searches */
    uint32_t *witness; /* per section: an item that could lie low enough when last looked at */
    Undo *undo;
    uint32_t undo_count, undo_capacity;
    Candidate *candidate; /* those of all nodes above, and of this one */
    uint32_t candidate_count, candidate_capacity;
    Step *path; /* what was placed, in this order */
    uint32_t path_count;
    const char *preorder;
    uint64_t budget, nodes;
};

static uint32_t extent_lower(const PlanExact *x, uint32_t item)
{
    return x->items->piece[x->items->item[item].piece].lower;
}

static uint32_t extent_upper(const PlanExact *x, uint32_t item)
{
    const PlanItem *it = &x->items->item[item];
    return x->items->piece[it->piece + it->piece_count - 1].upper;
}

/* Lists the pieces of each section. */
static void index_sections(PlanExact *x, uint32_t **piece_start, uint32_t **section_piece)
{
    const PlanItems *items = x->items;
    uint32_t *start = ARENA_ARRAY(x->arena, uint32_t, (size_t)items->section_count + 2), sum = 0;
    for (uint32_t i = 0; i < items->piece_count; i++)
        for (uint32_t s = items->piece[i].lower; s < items->piece[i].upper; s++, sum++)
            start[s + 2]++;
    for (uint32_t s = 2; s < items->section_count + 2; s++)
        start[s] += start[s - 1];
    uint32_t *list = ARENA_ARRAY(x->arena, uint32_t, sum);
    for (uint32_t i = 0; i < items->piece_count; i++)
        for (uint32_t s = items->piece[i].lower; s < items->piece[i].upper; s++)
            list[start[s + 1]++] = i;
    *piece_start = start;
    *section_piece = list;
}

/* Fills the neighbour lists.  An item of several pieces meets another as often as their pieces meet; the largest of its
 * pieces that do so counts. */
static void index_neighbours(PlanExact *x, const uint32_t *start, const uint32_t *list)
{
    const PlanItems *items = x->items;
    uint32_t *seen = ARENA_ARRAY(x->arena, uint32_t, items->count);
    uint32_t capacity = 0, count = 0;
    memset(seen, 0xff, sizeof *seen * items->count);
    x->neighbour_start = ARENA_ARRAY(x->arena, uint32_t, (size_t)items->count + 1);
    for (uint32_t i = 0; i < items->count; i++) {
        const PlanItem *item = &items->item[i];
        uint32_t begin = x->neighbour_start[i] = count;
        for (uint32_t p = item->piece; p < item->piece + item->piece_count; p++)
            for (uint32_t k = start[items->piece[p].lower]; k < start[items->piece[p].upper]; k++) {
                uint32_t other = items->piece[list[k]].item;
                if (other == i)
                    continue;
                if (seen[other] == NONE || seen[other] < begin) {
                    seen[other] = count;
                    ARENA_PUSH(x->arena, x->neighbour, count, capacity, ((Neighbour){other, 0, 0}));
                }
                Neighbour *n = &x->neighbour[seen[other]];
                int64_t size = items->piece[list[k]].size;
                n->reach = items->piece[p].size > n->reach ? items->piece[p].size : n->reach;
                n->lift = size > n->lift ? size : n->lift;
            }
    }
    x->neighbour_start[items->count] = count;
}

PlanExact *plan_exact_new(Arena *arena, const PlanItems *items)
{
    PlanExact *x = ARENA_NEW(arena, PlanExact);
    uint32_t n = items->count, sections = items->section_count;
    *x = (PlanExact){.arena = arena, .items = items};
    uint32_t *list;
    index_sections(x, &x->section_start, &list);
    index_neighbours(x, x->section_start, list);
    for (uint32_t k = 0; k < x->section_start[sections]; k++)
        list[k] = items->piece[list[k]].item;
    x->section_item = list;
    x->conflicts = plan_conflicts(arena, items);
    for (uint32_t i = 0; i < items->piece_count; i++)
        x->slack = items->piece[i].slack > x->slack ? items->piece[i].slack : x->slack;

    x->least = ARENA_ARRAY(arena, int64_t, n);
    x->support = ARENA_ARRAY(arena, int64_t, n);
    x->placed = ARENA_ARRAY(arena, int64_t, n);
    x->rank = ARENA_ARRAY(arena, uint32_t, n);
    x->next = ARENA_ARRAY(arena, uint32_t, (size_t)n + 1);
    x->prev = ARENA_ARRAY(arena, uint32_t, (size_t)n + 1);
    x->rest = ARENA_ARRAY(arena, int64_t, sections);
    x->cut = ARENA_ARRAY(arena, uint32_t, sections);
    x->witness = ARENA_ARRAY(arena, uint32_t, sections);
    x->blame = ARENA_ARRAY(arena, int64_t, sections);
    x->path = ARENA_ARRAY(arena, Step, n);
    return x;
}

static void change(PlanExact *x, int64_t *where, int64_t value)
{
    ARENA_PUSH(x->arena, x->undo, x->undo_count, x->undo_capacity, ((Undo){where, *where}));
    *where = value;
}

static void undo(PlanExact *x, uint32_t undo_count)
{
    while (x->undo_count > undo_count) {
        const Undo *u = &x->undo[--x->undo_count];
        *u->where = u->value;
    }
}

/* The least offset >= at that suits the item and lies clear of all pinned neighbours, which do not move. */
static int64_t clear_of_pins(const PlanExact *x, uint32_t item, int64_t at)
{
    const PlanItem *it = &x->items->item[item];
    at = plan_align(at, it->alignment);
    if (x->items->plain)
        return at;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t k = x->neighbour_start[item]; k < x->neighbour_start[item + 1]; k++) {
            const Neighbour *n = &x->neighbour[k];
            int64_t pin = x->items->item[n->item].pinned;
            if (pin == PLAN_FREE || at + n->reach <= pin)
                continue;
            if (at < pin + n->lift) {
                at = plan_align(pin + n->lift, it->alignment);
                moved = true;
            }
        }
    }
    return at;
}

/* Raises what the item, now placed, supports; widens *hull to the sections in which a bound may have changed. */
static void lift_neighbours(PlanExact *x, uint32_t item, Part *hull)
{
    int64_t offset = x->placed[item];
    for (uint32_t k = x->neighbour_start[item]; k < x->neighbour_start[item + 1]; k++) {
        uint32_t other = x->neighbour[k].item;
        int64_t top = offset + x->neighbour[k].reach;
        if (x->placed[other] >= 0 || x->support[other] >= top || x->items->item[other].pinned != PLAN_FREE)
            continue;
        top = clear_of_pins(x, other, top);
        change(x, &x->support[other], top);
        if (x->least[other] >= top)
            continue;
        change(x, &x->least[other], top);
        uint32_t lower = extent_lower(x, other), upper = extent_upper(x, other);
        hull->lower = lower < hull->lower ? lower : hull->lower;
        hull->upper = upper > hull->upper ? upper : hull->upper;
    }
}

/* Does the section's rest fit above its floor?  The floor itself is not needed, only a witness: an item that can lie
 * low enough.  The last witness mostly still is one. */
static bool section_fits(PlanExact *x, uint32_t s)
{
    int64_t limit = x->target + x->slack - x->rest[s];
    if (x->least[x->witness[s]] <= limit || !x->rest[s])
        return true;
    for (uint32_t e = x->section_start[s]; e < x->section_start[s + 1]; e++)
        if (x->least[x->section_item[e]] <= limit) {
            x->witness[s] = x->section_item[e];
            return true;
        }
    x->blame[s]++;
    return false;
}

static bool sections_fit(PlanExact *x, const Part *hull)
{
    for (uint32_t s = hull->lower; s < hull->upper; s++)
        if (!section_fits(x, s))
            return false;
    return true;
}

/* Places the item at its support; false when that fails the bound. */
static bool put(PlanExact *x, uint32_t item)
{
    const PlanItem *it = &x->items->item[item];
    Part hull = {0, extent_lower(x, item), extent_upper(x, item)};
    x->path[x->path_count++] = (Step){item, x->undo_count};
    x->placed[item] = x->support[item];
    change(x, &x->least[item], INT64_MAX);
    x->next[x->prev[item]] = x->next[item];
    x->prev[x->next[item]] = x->prev[item];
    for (const PlanPiece *p = &x->items->piece[it->piece]; p < &x->items->piece[it->piece + it->piece_count]; p++)
        for (uint32_t s = p->lower; s < p->upper; s++)
            x->rest[s] -= p->size;
    lift_neighbours(x, item, &hull);
    return sections_fit(x, &hull);
}

static void take_back(PlanExact *x)
{
    Step step = x->path[--x->path_count];
    uint32_t item = step.item;
    const PlanItem *it = &x->items->item[item];
    undo(x, step.undo_count);
    for (const PlanPiece *p = &x->items->piece[it->piece]; p < &x->items->piece[it->piece + it->piece_count]; p++)
        for (uint32_t s = p->lower; s < p->upper; s++)
            x->rest[s] += p->size;
    x->next[x->prev[item]] = item;
    x->prev[x->next[item]] = item;
    x->placed[item] = -1;
}

/* Passes the item over: it is to lie higher than its support, so some neighbour that is still to come, at `offset` or
 * above, must lift it.  False when that fails the bound. */
static bool pass_over(PlanExact *x, uint32_t item, int64_t offset)
{
    int64_t lowest = INT64_MAX;
    for (uint32_t k = x->neighbour_start[item]; k < x->neighbour_start[item + 1]; k++) {
        uint32_t other = x->neighbour[k].item;
        if (x->placed[other] >= 0)
            continue;
        int64_t top = (x->least[other] > offset ? x->least[other] : offset) + x->neighbour[k].lift;
        lowest = top < lowest ? top : lowest;
    }
    if (lowest == INT64_MAX || x->items->item[item].pinned != PLAN_FREE)
        return false;
    if (lowest <= x->least[item])
        return true;
    change(x, &x->least[item], lowest);
    return sections_fit(x, &(Part){0, extent_lower(x, item), extent_upper(x, item)});
}

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
        return most_over_sections(x, it, x->rest);
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

/* Counts the item as gone from (or, with `by` 1, back at) the points it crosses; true when that cuts the part. */
static bool change_cuts(PlanExact *x, uint32_t item, uint32_t by)
{
    bool zero = false;
    for (uint32_t s = extent_lower(x, item); s + 1 < extent_upper(x, item); s++)
        zero |= (x->cut[s] += by) == 0;
    return zero;
}

/* No item of the part may be placed at this offset or above, now. */
static int64_t ceiling(const PlanExact *x, const Part *part)
{
    uint32_t end = x->items->count;
    int64_t ceiling = INT64_MAX, most = 0;
    for (uint32_t i = x->next[end]; i != end; i = x->next[i]) {
        bool pinned = x->items->item[i].pinned != PLAN_FREE;
        int64_t top = x->support[i] + (pinned ? 1 : x->items->item[i].size);
        ceiling = top < ceiling ? top : ceiling;
    }
    for (uint32_t s = part->lower; s < part->upper; s++)
        most = x->rest[s] > most ? x->rest[s] : most;
    most = x->target + x->slack - most + 1;
    return most < ceiling ? most : ceiling;
}

/* Pushes the items that may come next, in the order to try them. */
static void push_candidates(PlanExact *x, const Part *part, int64_t last_offset, uint32_t last_rank)
{
    uint32_t end = x->items->count, base = x->candidate_count;
    int64_t limit = ceiling(x, part);
    for (uint32_t i = x->next[end]; i != end; i = x->next[i]) {
        int64_t offset = x->support[i];
        if (offset >= limit || offset < x->least[i] || offset < last_offset ||
            (offset == last_offset && x->rank[i] < last_rank))
            continue;
        ARENA_PUSH(x->arena, x->candidate, x->candidate_count, x->candidate_capacity,
                   ((Candidate){offset, i, x->rank[i]}));
    }
    for (uint32_t k = base + 1; k < x->candidate_count; k++) { /* the list is by rank: keep that among equals */
        Candidate c = x->candidate[k];
        uint32_t j = k;
        for (; j > base && x->candidate[j - 1].offset > c.offset; j--)
            x->candidate[j] = x->candidate[j - 1];
        x->candidate[j] = c;
    }
}

static bool fits_below_target(const PlanExact *x, uint32_t item)
{
    const PlanItem *it = &x->items->item[item];
    for (const PlanPiece *p = &x->items->piece[it->piece]; p < &x->items->piece[it->piece + it->piece_count]; p++)
        if (x->support[item] + p->size - p->slack > x->target)
            return false;
    return true;
}

static PlanVerdict search(PlanExact *x, Part part, int64_t last_offset, uint32_t last_rank);

/* Solves what is left of the part after its items have been cut apart at some point in time. */
static PlanVerdict search_split(PlanExact *x, Part part)
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
            if (lower <= extent_lower(x, whole[k].index) && extent_lower(x, whole[k].index) < upper)
                some[n++].index = whole[k].index;
        if (!n)
            continue;
        rank_items(x, some, n);
        verdict = search(x, (Part){n, lower, upper}, 0, 0);
    }
    if (verdict == PLAN_REFUTED) {
        while (x->path_count > path_count) { /* parts that were solved before the one that failed */
            change_cuts(x, x->path[x->path_count - 1].item, 1);
            take_back(x);
        }
        for (uint32_t k = 0; k < count; k++)
            x->rank[whole[k].index] = (uint32_t)whole[k].key;
        link_items(x, whole, count);
    }
    arena_reset(x->stack, mark);
    return verdict;
}

static PlanVerdict try_candidate(PlanExact *x, Part part, Candidate c)
{
    PlanVerdict verdict = PLAN_REFUTED;
    if (!fits_below_target(x, c.item))
        return PLAN_REFUTED;
    x->nodes++;
    if (put(x, c.item)) {
        bool split = change_cuts(x, c.item, UINT32_MAX);
        verdict = split ? search_split(x, part) : search(x, part, c.offset, c.rank);
        if (verdict == PLAN_REFUTED)
            change_cuts(x, c.item, 1);
    }
    if (verdict == PLAN_REFUTED)
        take_back(x);
    return verdict;
}

static PlanVerdict search(PlanExact *x, Part part, int64_t last_offset, uint32_t last_rank)
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
        if (verdict != PLAN_REFUTED || !pass_over(x, x->candidate[k].item, x->candidate[k].offset))
            break;
    }
    if (verdict == PLAN_REFUTED)
        undo(x, undo_count);
    x->candidate_count = base;
    return verdict;
}

/* Empties the state; false when the bound fails before anything is placed. */
static bool reset(PlanExact *x)
{
    const PlanItems *items = x->items;
    bool possible = items->lower_bound <= x->target;
    x->undo_count = x->candidate_count = x->path_count = 0;
    memset(x->cut, 0, sizeof *x->cut * items->section_count);
    memcpy(x->rest, items->load, sizeof *x->rest * items->section_count);
    for (uint32_t s = 0; s < items->section_count; s++)
        x->witness[s] = x->section_item[x->section_start[s]];
    for (uint32_t i = 0; i < items->count; i++) {
        x->placed[i] = -1;
        if (!items->item[i].piece_count)
            continue;
        x->support[i] = items->item[i].pinned != PLAN_FREE ? items->item[i].pinned : clear_of_pins(x, i, 0);
        x->least[i] = x->support[i];
        change_cuts(x, i, 1);
    }
    return possible;
}

PlanVerdict plan_exact_fit(PlanExact *x, int64_t target, const char *preorder, uint64_t budget, int64_t *offset,
                           uint64_t *nodes)
{
    Arena stack = {0};
    const PlanItems *items = x->items;
    x->stack = &stack;
    x->target = target;
    x->preorder = preorder;
    x->budget = budget;
    x->nodes = 0;
    PlanVerdict verdict = PLAN_REFUTED;
    if (reset(x)) {
        SortKey *all = ARENA_ARRAY(&stack, SortKey, items->count);
        uint32_t count = 0;
        for (uint32_t i = 0; i < items->count; i++)
            if (items->item[i].piece_count)
                all[count++].index = i;
        rank_items(x, all, count);
        verdict = search_split(x, (Part){count, 0, items->section_count});
    }
    if (verdict == PLAN_FOUND)
        memcpy(offset, x->placed, sizeof *offset * items->count);
    *nodes += x->nodes;
    arena_free(&stack);
    return verdict;
}
