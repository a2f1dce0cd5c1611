/* Orders by rule.  Both are linear but for a heap. */
#include "storage/order.h"

#include <string.h>

static int64_t result_bytes(const OrderProblem *p, uint32_t unit)
{
    int64_t bytes = 0;
    for (uint32_t i = p->made.first[unit]; i < p->made.first[unit + 1]; i++)
        bytes += p->bytes[p->made.item[i]];
    return bytes;
}

/* Depth first */

/* The needs of each unit, larger results first; equal ones in program order. Insertion sort: the lists are short, and
 * long ones (a concat of a thousand parts) are left as they are. */
static uint32_t *sorted_needs(const OrderProblem *p, Arena *arena)
{
    enum { LONG = 32 };
    uint32_t *item = arena_copy(arena, p->needs.item, p->needs.first[p->units] * sizeof *item);
    for (uint32_t u = 0; u < p->units; u++) {
        uint32_t *need = item + p->needs.first[u], count = p->needs.first[u + 1] - p->needs.first[u];
        for (uint32_t i = 1; i < count && count <= LONG; i++)
            for (uint32_t k = i; k > 0 && result_bytes(p, need[k]) > result_bytes(p, need[k - 1]); k--) {
                uint32_t swap = need[k];
                need[k] = need[k - 1];
                need[k - 1] = swap;
            }
    }
    return item;
}

typedef struct Visit {
    uint32_t unit, next; /* the need to look at next */
} Visit;

void order_depth_first(const OrderProblem *p, uint32_t *order, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    const uint32_t *need = sorted_needs(p, scratch);
    Visit *stack = ARENA_ARRAY(scratch, Visit, p->units);
    bool *entered = ARENA_ARRAY(scratch, bool, p->units);
    uint32_t done = 0;

    for (uint32_t u = 0; u < p->units; u++) {
        uint32_t depth = 0;
        if (entered[u] || p->feeds.first[u + 1] != p->feeds.first[u])
            continue; /* only from the ends */
        entered[u] = true;
        stack[depth++] = (Visit){u, p->needs.first[u]};
        while (depth) {
            Visit *top = &stack[depth - 1];
            if (top->next == p->needs.first[top->unit + 1]) {
                order[done++] = top->unit;
                depth--;
                continue;
            }
            uint32_t below = need[top->next++];
            if (!entered[below]) {
                entered[below] = true;
                stack[depth++] = (Visit){below, p->needs.first[below]};
            }
        }
    }
    for (uint32_t u = 0; u < p->units && done < p->units; u++) /* only in a cycle */
        if (!entered[u])
            order[done++] = u;
    arena_reset(scratch, mark);
}

/* By memory */

typedef struct Entry {
    int64_t change; /* of the live bytes */
    uint32_t unit;
} Entry;

typedef struct Lister {
    const OrderProblem *problem;
    Arena *scratch;
    uint32_t *readers; /* per value: units still to run */
    uint32_t *last;    /* per value: the exclusive or of their numbers; with one reader left, that unit */
    uint32_t *waits;   /* per unit: needs that have not run */
    bool *done;
    Entry *heap;
    uint32_t count, capacity;
} Lister;

static bool before(const Entry *a, const Entry *b)
{
    return a->change != b->change ? a->change < b->change : a->unit < b->unit;
}

static void heap_push(Lister *l, Entry entry)
{
    uint32_t i = l->count;
    ARENA_PUSH(l->scratch, l->heap, l->count, l->capacity, entry);
    for (; i > 0 && before(&entry, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = entry;
}

static Entry heap_pop(Lister *l)
{
    Entry top = l->heap[0], last = l->heap[--l->count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= l->count)
            break;
        child += child + 1 < l->count && before(&l->heap[child + 1], &l->heap[child]);
        if (!before(&l->heap[child], &last))
            break;
        l->heap[i] = l->heap[child];
        i = child;
    }
    l->heap[i] = last;
    return top;
}

static int64_t change_now(const Lister *l, uint32_t unit)
{
    const OrderProblem *p = l->problem;
    int64_t change = result_bytes(p, unit);
    for (uint32_t i = p->read.first[unit]; i < p->read.first[unit + 1]; i++)
        if (l->readers[p->read.item[i]] == 1)
            change -= p->bytes[p->read.item[i]];
    return change;
}

static void push_ready(Lister *l, uint32_t unit)
{
    if (!l->waits[unit] && !l->done[unit])
        heap_push(l, (Entry){change_now(l, unit), unit});
}

/* Each buffer has one moment when a single reader is left: that one's entry is renewed, the old one is passed over. */
static void run(Lister *l, uint32_t unit)
{
    const OrderProblem *p = l->problem;
    l->done[unit] = true;
    for (uint32_t i = p->read.first[unit]; i < p->read.first[unit + 1]; i++) {
        uint32_t value = p->read.item[i];
        l->last[value] ^= unit;
        if (--l->readers[value] == 1 && !p->stays[value])
            push_ready(l, l->last[value]);
    }
    for (uint32_t i = p->feeds.first[unit]; i < p->feeds.first[unit + 1]; i++)
        if (--l->waits[p->feeds.item[i]] == 0)
            push_ready(l, p->feeds.item[i]);
}

void order_by_memory(const OrderProblem *p, uint32_t *order, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    Lister l = {.problem = p, .scratch = scratch};
    uint32_t done = 0, values = p->values, units = p->units;
    l.readers = ARENA_ARRAY(scratch, uint32_t, values);
    l.last = ARENA_ARRAY(scratch, uint32_t, values);
    l.waits = ARENA_ARRAY(scratch, uint32_t, units);
    l.done = ARENA_ARRAY(scratch, bool, units);

    for (uint32_t u = 0; u < units; u++)
        for (uint32_t i = p->read.first[u]; i < p->read.first[u + 1]; i++) {
            l.readers[p->read.item[i]]++;
            l.last[p->read.item[i]] ^= u;
        }
    for (uint32_t v = 0; v < values; v++)
        l.readers[v] += p->stays[v];
    for (uint32_t u = 0; u < units; u++) {
        l.waits[u] = p->needs.first[u + 1] - p->needs.first[u];
        push_ready(&l, u);
    }
    while (l.count) {
        uint32_t unit = heap_pop(&l).unit;
        if (l.done[unit])
            continue;
        run(&l, unit);
        order[done++] = unit;
    }
    for (uint32_t u = 0; u < units && done < units; u++) /* only in a cycle */
        if (!l.done[u])
            order[done++] = u;
    arena_reset(scratch, mark);
}
