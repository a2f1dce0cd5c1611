/* Placement where conflicts are more than intervals say: work on several streams.
 *
 * Items conflict when their pieces are live at one step, or when a pair of their buffers is in the problem's relation.
 * Greedy by several orders, each item into the lowest gap between those placed that it conflicts with; no order looks
 * at sections, so the relation may be any.  n squared: for the few thousand buffers that streams have. */
#include "plan/relation.h"

#include <stdlib.h>
#include <string.h>

const char *const plan_relation_name[PLAN_RELATION_ORDERS] = {"greedy-size", "greedy-area", "greedy-length",
                                                              "greedy-start"};

typedef struct Extent {
    int64_t begin, end;
} Extent;

typedef struct Relation {
    const PlanItems *items;
    uint32_t *first, *other; /* item i's related ones: other[first[i]] ... other[first[i + 1] - 1] */
    uint32_t *mark;          /* per item: 1 + the last one that it was found related to */
    Extent *taken;
} Relation;

/* An item for each buffer of a pair, unless they are of one item or in different regions. */
static bool items_of(const PlanItems *items, const PlanPair *pair, uint32_t *a, uint32_t *b)
{
    *a = items->buffer_item[pair->a];
    *b = items->buffer_item[pair->b];
    return *a != UINT32_MAX && *b != UINT32_MAX && *a != *b;
}

static void list_pairs(Arena *arena, const PlanProblem *problem, Relation *r)
{
    uint32_t count = r->items->count, a, b, *at = ARENA_ARRAY(arena, uint32_t, count + 1);
    r->first = ARENA_ARRAY(arena, uint32_t, count + 2);
    for (uint32_t i = 0; i < problem->conflict_count; i++)
        if (items_of(r->items, &problem->conflict[i], &a, &b)) {
            r->first[a + 1]++;
            r->first[b + 1]++;
        }
    for (uint32_t i = 0; i < count; i++)
        r->first[i + 1] += r->first[i];
    r->other = ARENA_ARRAY(arena, uint32_t, r->first[count]);
    for (uint32_t i = 0; i < problem->conflict_count; i++)
        if (items_of(r->items, &problem->conflict[i], &a, &b)) {
            r->other[r->first[a] + at[a]++] = b;
            r->other[r->first[b] + at[b]++] = a;
        }
}

static bool live_together(const PlanItems *items, const PlanItem *a, const PlanItem *b)
{
    for (uint32_t i = 0; i < a->piece_count; i++)
        for (uint32_t k = 0; k < b->piece_count; k++) {
            const PlanPiece *x = &items->piece[a->piece + i], *y = &items->piece[b->piece + k];
            if (x->lower < y->upper && y->lower < x->upper)
                return true;
        }
    return false;
}

static int by_begin(const void *a, const void *b)
{
    const Extent *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The lowest place that no placed item in conflict has; placed are order[0 .. count). */
static int64_t lowest_gap(Relation *r, const uint32_t *order, uint32_t count, const int64_t *offset)
{
    const PlanItem *item = &r->items->item[order[count]];
    uint32_t taken = 0, self = order[count];
    int64_t at = 0;
    for (uint32_t i = r->first[self]; i < r->first[self + 1]; i++)
        r->mark[r->other[i]] = self + 1;
    for (uint32_t i = 0; i < count; i++) {
        const PlanItem *other = &r->items->item[order[i]];
        if (other->size && (r->mark[order[i]] == self + 1 || live_together(r->items, item, other)))
            r->taken[taken++] = (Extent){offset[order[i]], offset[order[i]] + other->size};
    }
    if (item->pinned >= 0)
        return item->pinned;
    qsort(r->taken, taken, sizeof *r->taken, by_begin);
    for (uint32_t i = 0; i < taken && r->taken[i].begin < at + item->size; i++)
        if (r->taken[i].end > at)
            at = plan_align(r->taken[i].end, item->alignment);
    return at;
}

typedef struct Rank {
    int64_t key;
    uint32_t item;
} Rank;

static int by_key(const void *a, const void *b) /* largest first; pinned before all; the number decides last */
{
    const Rank *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int64_t key_of(const PlanItem *item, uint32_t order)
{
    if (item->pinned >= 0)
        return INT64_MAX;
    int64_t length = item->length > 0 ? item->length : 1;
    switch (order) {
    case 0:
        return item->size;
    case 1:
        return item->size > INT64_MAX / length ? INT64_MAX - 1 : item->size * length;
    case 2:
        return item->length;
    default:
        return -item->start;
    }
}

bool plan_relation(const PlanItems *items, const PlanProblem *problem, uint32_t order, int64_t *offset)
{
    Arena scratch = {0};
    Relation r = {.items = items,
                  .mark = ARENA_ARRAY(&scratch, uint32_t, items->count),
                  .taken = ARENA_ARRAY(&scratch, Extent, items->count)};
    Rank *rank = ARENA_ARRAY(&scratch, Rank, items->count);
    uint32_t *sequence = ARENA_ARRAY(&scratch, uint32_t, items->count);
    bool agree = true;
    list_pairs(&scratch, problem, &r);
    for (uint32_t i = 0; i < items->count; i++)
        rank[i] = (Rank){key_of(&items->item[i], order), i};
    qsort(rank, items->count, sizeof *rank, by_key);
    for (uint32_t i = 0; i < items->count; i++)
        sequence[i] = rank[i].item;
    for (uint32_t i = 0; i < items->count; i++) {
        const PlanItem *item = &items->item[sequence[i]];
        int64_t at = offset[sequence[i]] = lowest_gap(&r, sequence, i, offset);
        for (uint32_t k = 0; item->pinned >= 0 && k < i; k++) { /* pins come first, and may contradict each other */
            const PlanItem *other = &items->item[sequence[k]];
            bool meet = r.mark[sequence[k]] == sequence[i] + 1 || live_together(items, item, other);
            agree &= !meet || at + item->size <= offset[sequence[k]] || offset[sequence[k]] + other->size <= at;
        }
    }
    arena_free(&scratch);
    return agree;
}
