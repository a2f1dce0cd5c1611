/* Greedy placement, in either of two ways with the same outcome.
 *
 * By pairs: for each item gather all placed ones that it conflicts with, sort them by address, and walk up through the
 * gaps.  Nothing is faster where conflicts are few.  By columns (columns.h) where they are many. */
#include "plan/greedy.h"

#include <stdlib.h>

#include "plan/columns.h"
#include "plan/sort.h"

#define CONFLICTS_BY_PAIRS 12 /* of the mean piece: up to here the way by pairs is the faster one */

typedef struct Block { /* an offset in (below, end) collides: [below + size, end) is taken */
    int64_t below, end;
} Block;

typedef struct Greedy {
    Arena scratch;
    const PlanItems *items;
    uint32_t *by_lower;     /* pieces in order of their first section */
    uint32_t *rank;         /* a piece's place in by_lower */
    uint32_t *lower_before; /* [section]: how many pieces begin before it */
    uint32_t *latest;       /* a tree over by_lower: the largest `upper` of placed pieces below each node */
    uint32_t leaves;
    int64_t *offset;
    Block *block;
    uint32_t block_count, block_capacity;
    Columns *columns; /* NULL: by pairs */
    uint64_t looks;   /* at blocks, by pairs */
} Greedy;

static void start(Greedy *g)
{
    const PlanItems *items = g->items;
    uint32_t n = items->piece_count;
    g->by_lower = ARENA_ARRAY(&g->scratch, uint32_t, n);
    g->rank = ARENA_ARRAY(&g->scratch, uint32_t, n);
    g->lower_before = ARENA_ARRAY(&g->scratch, uint32_t, (size_t)items->section_count + 2);
    for (uint32_t i = 0; i < n; i++)
        g->lower_before[items->piece[i].lower + 1]++;
    for (uint32_t s = 0; s <= items->section_count; s++)
        g->lower_before[s + 1] += g->lower_before[s];
    uint32_t *next = arena_copy(&g->scratch, g->lower_before, sizeof *next * ((size_t)items->section_count + 1));
    for (uint32_t i = 0; i < n; i++) {
        g->rank[i] = next[items->piece[i].lower]++;
        g->by_lower[g->rank[i]] = i;
    }
    for (g->leaves = 1; g->leaves < n;)
        g->leaves *= 2;
    g->latest = ARENA_ARRAY(&g->scratch, uint32_t, 2 * (size_t)g->leaves);
}

static void mark_placed(Greedy *g, uint32_t piece)
{
    uint32_t upper = g->items->piece[piece].upper;
    for (uint32_t node = g->leaves + g->rank[piece]; node && g->latest[node] < upper; node /= 2)
        g->latest[node] = upper;
}

/* Adds the blocks that all placed pieces in conflict with `piece` put in its way. */
static void gather(Greedy *g, const PlanPiece *piece)
{
    uint32_t limit = g->lower_before[piece->upper]; /* pieces of rank >= limit begin too late */
    uint32_t stack[64], depth = 0;
    uint32_t from[64], width[64];
    stack[0] = 1, from[0] = 0, width[0] = g->leaves, depth = 1;
    while (depth--) {
        uint32_t node = stack[depth], begin = from[depth], half = width[depth] / 2;
        if (begin >= limit || g->latest[node] <= piece->lower)
            continue;
        if (half == 0) {
            const PlanPiece *other = &g->items->piece[g->by_lower[begin]];
            int64_t at = g->offset[other->item];
            Block block = {at - piece->size, at + other->size};
            ARENA_PUSH(&g->scratch, g->block, g->block_count, g->block_capacity, block);
            g->looks++;
            continue;
        }
        stack[depth] = 2 * node + 1, from[depth] = begin + half, width[depth++] = half;
        stack[depth] = 2 * node, from[depth] = begin, width[depth++] = half;
    }
}

static int compare_blocks(const void *a, const void *b) /* equal blocks are interchangeable */
{
    const Block *x = a, *y = b;
    if (x->below != y->below)
        return x->below < y->below ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static void sort_blocks(Block *block, uint32_t count)
{
    if (count > 64) {
        qsort(block, count, sizeof *block, compare_blocks);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        Block b = block[i];
        uint32_t j = i;
        for (; j > 0 && block[j - 1].below > b.below; j--)
            block[j] = block[j - 1];
        block[j] = b;
    }
}

static int64_t choose(const Greedy *g, int64_t alignment, PlanFit fit)
{
    int64_t at = 0, best = -1, best_rest = INT64_MAX;
    for (uint32_t i = 0; i < g->block_count; i++) {
        const Block *block = &g->block[i];
        if (block->below >= at && block->below - at < best_rest) {
            if (fit == PLAN_FIRST_FIT)
                return at;
            best = at;
            best_rest = block->below - at;
        }
        if (block->end > at)
            at = plan_align(block->end, alignment);
    }
    return best >= 0 ? best : at;
}

static bool fits_at(const Greedy *g, int64_t offset)
{
    for (uint32_t i = 0; i < g->block_count; i++)
        if (g->block[i].below < offset && offset < g->block[i].end)
            return false;
    return true;
}

static bool find_by_pairs(Greedy *g, const PlanItem *item, PlanFit fit, int64_t *offset)
{
    g->block_count = 0;
    for (uint32_t p = 0; p < item->piece_count; p++)
        gather(g, &g->items->piece[item->piece + p]);
    if (item->pinned != PLAN_FREE)
        return fits_at(g, item->pinned);
    sort_blocks(g->block, g->block_count);
    *offset = choose(g, item->alignment, fit);
    return true;
}

static bool find_in_columns(Greedy *g, const PlanItem *item, PlanFit fit, int64_t *offset)
{
    if (item->pinned != PLAN_FREE)
        return columns_free(g->columns, item, item->pinned);
    *offset = columns_find(g->columns, item, fit);
    return true;
}

/* An offset for one item; false when it is pinned to where something lies. */
static bool find(Greedy *g, uint32_t index, PlanFit fit)
{
    const PlanItem *item = &g->items->item[index];
    g->offset[index] = item->pinned;
    return g->columns ? find_in_columns(g, item, fit, &g->offset[index])
                      : find_by_pairs(g, item, fit, &g->offset[index]);
}

static void keep(Greedy *g, uint32_t index)
{
    const PlanItem *item = &g->items->item[index];
    if (g->columns)
        columns_add(g->columns, item, g->offset[index]);
    else
        for (uint32_t p = 0; p < item->piece_count; p++)
            mark_placed(g, item->piece + p);
}

static bool place(Greedy *g, uint32_t index, PlanFit fit)
{
    bool good = find(g, index, fit);
    keep(g, index);
    return good;
}

static void prepare(Greedy *g, PlanWay way)
{
    if (way == PLAN_WAY_FASTER) {
        uint64_t few = CONFLICTS_BY_PAIRS / 2 * (uint64_t)g->items->piece_count;
        way = plan_items_pairs(&g->scratch, g->items) > few ? PLAN_WAY_COLUMNS : PLAN_WAY_PAIRS;
    }
    if (way == PLAN_WAY_COLUMNS && g->items->section_count)
        g->columns = columns_new(&g->scratch, g->items);
    else
        start(g);
}

static uint64_t looks(const Greedy *g)
{
    return g->columns ? columns_looks(g->columns) : g->looks;
}

static bool is_below(const Greedy *g, uint32_t index, const PlanLimit *limit)
{
    return plan_item_top(g->items, index, g->offset[index]) < limit->below;
}

static void finish(Greedy *g, PlanLimit *limit)
{
    limit->looks -= looks(g) < limit->looks ? looks(g) : limit->looks;
    arena_free(&g->scratch);
}

bool plan_greedy_by(const PlanItems *items, PlanOrder order, PlanFit fit, PlanWay way, PlanLimit *limit,
                    int64_t *offset)
{
    Greedy g = {.items = items, .offset = offset};
    bool good = true;
    prepare(&g, way);
    uint32_t *sequence = ARENA_ARRAY(&g.scratch, uint32_t, items->count);
    uint32_t count = plan_order(&g.scratch, items, order, sequence);
    for (uint32_t k = 0; k < count && good; k++)
        good = place(&g, sequence[k], fit) && looks(&g) <= limit->looks && is_below(&g, sequence[k], limit);
    finish(&g, limit);
    return good;
}

bool plan_greedy(const PlanItems *items, PlanOrder order, PlanFit fit, PlanLimit *limit, int64_t *offset)
{
    return plan_greedy_by(items, order, fit, PLAN_WAY_FASTER, limit, offset);
}

uint32_t plan_greedy_below(const PlanItems *items, const uint32_t *sequence, uint32_t count, PlanFit fit,
                           PlanLimit *limit, int64_t *offset, uint32_t *misfit)
{
    Greedy g = {.items = items, .offset = offset};
    uint32_t misfits = 0, k = 0;
    prepare(&g, PLAN_WAY_FASTER);
    for (; k < count && looks(&g) <= limit->looks; k++)
        if (find(&g, sequence[k], fit) && is_below(&g, sequence[k], limit))
            keep(&g, sequence[k]);
        else
            misfit[misfits++] = sequence[k];
    finish(&g, limit);
    return k < count ? PLAN_GIVEN_UP : misfits;
}

void plan_settle(const PlanItems *items, PlanLimit *limit, int64_t *offset)
{
    Greedy g = {.items = items, .offset = offset};
    prepare(&g, PLAN_WAY_FASTER);
    SortKey *key = ARENA_ARRAY(&g.scratch, SortKey, items->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < items->count; i++)
        if (items->item[i].piece_count)
            key[count++] = (SortKey){items->item[i].pinned == PLAN_FREE ? 1 + (uint64_t)offset[i] : 0, i};
    sort_ascending(&g.scratch, key, count);
    for (uint32_t k = 0; k < count && looks(&g) <= limit->looks; k++)
        place(&g, key[k].index, PLAN_FIRST_FIT);
    finish(&g, limit);
}

bool plan_pins_agree(const PlanItems *items)
{
    Greedy g = {.items = items};
    bool good = true;
    if (items->plain)
        return true;
    prepare(&g, PLAN_WAY_FASTER);
    g.offset = ARENA_ARRAY(&g.scratch, int64_t, items->count);
    for (uint32_t i = 0; i < items->count && good; i++)
        if (items->item[i].pinned != PLAN_FREE)
            good = place(&g, i, PLAN_FIRST_FIT);
    arena_free(&g.scratch);
    return good;
}
