/* Orders that the scheduler tries.  Both are linear but for a heap. */
#include "passes/schedule.h"

#include <string.h>

static int64_t result_bytes(const Schedule *s, uint32_t unit)
{
    int64_t bytes = 0;
    for (uint32_t i = s->units.made.first[unit]; i < s->units.made.first[unit + 1]; i++)
        bytes += type_bytes(value_type(s->graph, s->units.made.item[i]));
    return bytes;
}

/* Depth first */

/* The needs of each unit, larger results first; equal ones in program order. Insertion sort: the lists are short, and
 * long ones (a concat of a thousand parts) are left as they are. */
static uint32_t *sorted_needs(const Schedule *s)
{
    enum { LONG = 32 };
    uint32_t *item = arena_copy(s->scratch, s->needs.item, s->needs.first[s->units.count] * sizeof *item);
    for (uint32_t u = 0; u < s->units.count; u++) {
        uint32_t *need = item + s->needs.first[u], count = s->needs.first[u + 1] - s->needs.first[u];
        for (uint32_t i = 1; i < count && count <= LONG; i++)
            for (uint32_t k = i; k > 0 && result_bytes(s, need[k]) > result_bytes(s, need[k - 1]); k--) {
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

void schedule_depth_first(const Schedule *s, uint32_t *order)
{
    ArenaMark mark = arena_mark(s->scratch);
    const uint32_t *need = sorted_needs(s);
    Visit *stack = ARENA_ARRAY(s->scratch, Visit, s->units.count);
    bool *entered = ARENA_ARRAY(s->scratch, bool, s->units.count);
    uint32_t done = 0;

    for (uint32_t u = 0; u < s->units.count; u++) {
        uint32_t depth = 0;
        if (entered[u] || s->feeds.first[u + 1] != s->feeds.first[u])
            continue; /* only from the ends */
        entered[u] = true;
        stack[depth++] = (Visit){u, s->needs.first[u]};
        while (depth) {
            Visit *top = &stack[depth - 1];
            if (top->next == s->needs.first[top->unit + 1]) {
                order[done++] = top->unit;
                depth--;
                continue;
            }
            uint32_t below = need[top->next++];
            if (!entered[below]) {
                entered[below] = true;
                stack[depth++] = (Visit){below, s->needs.first[below]};
            }
        }
    }
    for (uint32_t u = 0; u < s->units.count && done < s->units.count; u++) /* only in a cycle */
        if (!entered[u])
            order[done++] = u;
    arena_reset(s->scratch, mark);
}

/* By memory */

typedef struct Entry {
    int64_t change; /* of the live bytes */
    uint32_t unit;
} Entry;

typedef struct Lister {
    const Schedule *s;
    uint32_t *readers; /* per buffer: units still to run */
    uint32_t *last;    /* per buffer: the exclusive or of their numbers; with one reader left, that unit */
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
    ARENA_PUSH(l->s->scratch, l->heap, l->count, l->capacity, entry);
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
    const Units *units = &l->s->units;
    int64_t change = result_bytes(l->s, unit);
    for (uint32_t i = units->read.first[unit]; i < units->read.first[unit + 1]; i++)
        if (l->readers[units->read.item[i]] == 1)
            change -= type_bytes(value_type(l->s->graph, units->read.item[i]));
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
    const Schedule *s = l->s;
    l->done[unit] = true;
    for (uint32_t i = s->units.read.first[unit]; i < s->units.read.first[unit + 1]; i++) {
        ValueId buffer = s->units.read.item[i];
        l->last[buffer] ^= unit;
        if (--l->readers[buffer] == 1 && !s->units.leaves[buffer])
            push_ready(l, l->last[buffer]);
    }
    for (uint32_t i = s->feeds.first[unit]; i < s->feeds.first[unit + 1]; i++)
        if (--l->waits[s->feeds.item[i]] == 0)
            push_ready(l, s->feeds.item[i]);
}

void schedule_by_memory(const Schedule *s, uint32_t *order)
{
    ArenaMark mark = arena_mark(s->scratch);
    Lister l = {.s = s};
    uint32_t done = 0, values = s->graph->value_count, units = s->units.count;
    l.readers = ARENA_ARRAY(s->scratch, uint32_t, values);
    l.last = ARENA_ARRAY(s->scratch, uint32_t, values);
    l.waits = ARENA_ARRAY(s->scratch, uint32_t, units);
    l.done = ARENA_ARRAY(s->scratch, bool, units);

    for (uint32_t u = 0; u < units; u++)
        for (uint32_t i = s->units.read.first[u]; i < s->units.read.first[u + 1]; i++) {
            l.readers[s->units.read.item[i]]++;
            l.last[s->units.read.item[i]] ^= u;
        }
    for (ValueId v = 0; v < values; v++)
        l.readers[v] += s->units.leaves[v];
    for (uint32_t u = 0; u < units; u++) {
        l.waits[u] = s->needs.first[u + 1] - s->needs.first[u];
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
    arena_reset(s->scratch, mark);
}
