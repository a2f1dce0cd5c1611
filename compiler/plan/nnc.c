/* The NNC tensor allocation algorithm (Liu Liu, "The NNC tensor allocation algorithm", libnnc.org, 2018; it is ccv's).
 *
 * Two graphs.  In the interference graph tensors are joined that are live together.  In the allocation graph, which is
 * acyclic and has a source and a sink, an edge from y to x stands for bytes that x takes over from y: some at an
 * offset, free between the death of y and the birth of x.  The source holds all memory before, the sink all after.
 * Tensors are inserted, up to three at a time that follow each other in time, into the bytes of one edge, which then
 * flow through them: each passes what it has to the next, and what the next cannot take goes to those after it, at last
 * to x. Where no edge has room, new bytes flow from source to sink.
 *
 * Which tensors come next: those that interfere with most others, each alone, or with one or two larger ones that do
 * not interfere with it; of these tuples the largest first, then that which interferes most.  The tightest edge in time
 * wins. The article leaves the number of tuples open; here the first few of each kind are looked at, so that the work
 * is quadratic at worst. */
#include "plan/greedy.h"

#include <string.h>

#include "plan/sort.h"

#define SOURCE        UINT32_MAX
#define SINK          (UINT32_MAX - 1)
#define MOST_TIED     12 /* tensors with the most edges that are looked at */
#define MOST_PARTNERS 4  /* larger tensors that each may be joined with, and each such pair again */

typedef struct Edge {
    uint32_t from, to; /* items, SOURCE or SINK */
    int64_t bytes, offset;
} Edge;

typedef struct Tuple { /* tensors that follow each other in time */
    uint32_t item[3], count;
    int64_t size, alignment;
    uint64_t edges; /* in the interference graph, of all */
} Tuple;

typedef struct Nnc {
    Arena scratch;
    const PlanItems *items;
    int64_t *offset;
    bool *inserted;
    uint32_t *conflicts; /* edges of the interference graph */
    uint32_t *waiting;   /* items to be inserted, by falling size */
    uint32_t waiting_count;
    Edge *edge;
    uint32_t edge_count, edge_capacity;
    Tuple tuple[MOST_TIED * (1 + MOST_PARTNERS + MOST_PARTNERS * MOST_PARTNERS)];
    uint32_t tuple_count;
    int64_t top; /* bytes that flow out of the source */
} Nnc;

static uint32_t birth(const Nnc *n, uint32_t item)
{
    return n->items->piece[n->items->item[item].piece].lower;
}

static uint32_t death(const Nnc *n, uint32_t item)
{
    const PlanItem *it = &n->items->item[item];
    return n->items->piece[it->piece + it->piece_count - 1].upper;
}

static bool interfere(const Nnc *n, uint32_t a, uint32_t b)
{
    return birth(n, a) < death(n, b) && birth(n, b) < death(n, a);
}

static int64_t lcm(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        int64_t r = x % y;
        x = y;
        y = r;
    }
    return a / x > PLAN_LARGEST / b ? 0 : a / x * b;
}

/* Adds a tensor to a tuple, at its place in time; false when it interferes or no offset suits all. */
static bool join(const Nnc *n, Tuple *t, uint32_t item)
{
    const PlanItem *it = &n->items->item[item];
    uint32_t at = t->count;
    for (uint32_t k = 0; k < t->count; k++)
        if (t->item[k] == item || interfere(n, t->item[k], item))
            return false;
    int64_t alignment = t->count ? lcm(t->alignment, it->alignment) : it->alignment;
    if (!alignment)
        return false;
    for (; at > 0 && birth(n, t->item[at - 1]) > birth(n, item); at--)
        t->item[at] = t->item[at - 1];
    t->item[at] = item;
    t->count++;
    t->alignment = alignment;
    t->size = it->size > t->size ? it->size : t->size;
    t->edges += n->conflicts[item];
    return true;
}

/* Adds to the candidates the tuple with one more, larger, tensor, in a few ways. */
static void join_partners(Nnc *n, Tuple tuple, int64_t least)
{
    uint32_t joined = 0;
    for (uint32_t k = 0; k < n->waiting_count && joined < MOST_PARTNERS; k++) {
        Tuple larger = tuple;
        if (n->items->item[n->waiting[k]].size <= least)
            break;
        if (!join(n, &larger, n->waiting[k]))
            continue;
        n->tuple[n->tuple_count++] = larger;
        joined++;
    }
}

static bool before(const Tuple *a, const Tuple *b)
{
    if (a->size != b->size)
        return a->size > b->size;
    if (a->edges != b->edges)
        return a->edges > b->edges;
    if (a->count != b->count)
        return a->count > b->count;
    return a->item[0] < b->item[0];
}

static void sort_tuples(Nnc *n)
{
    for (uint32_t i = 1; i < n->tuple_count; i++) { /* stable */
        Tuple t = n->tuple[i];
        uint32_t j = i;
        for (; j > 0 && before(&t, &n->tuple[j - 1]); j--)
            n->tuple[j] = n->tuple[j - 1];
        n->tuple[j] = t;
    }
}

static void list_candidates(Nnc *n)
{
    uint32_t most = 0, tied = 0;
    n->tuple_count = 0;
    for (uint32_t k = 0; k < n->waiting_count; k++)
        most = n->conflicts[n->waiting[k]] > most ? n->conflicts[n->waiting[k]] : most;
    for (uint32_t k = 0; k < n->waiting_count && tied < MOST_TIED; k++) {
        uint32_t item = n->waiting[k];
        Tuple alone = {0};
        if (n->conflicts[item] != most || !join(n, &alone, item))
            continue;
        tied++;
        n->tuple[n->tuple_count++] = alone;
        uint32_t pair = n->tuple_count;
        join_partners(n, alone, n->items->item[item].size);
        for (uint32_t end = n->tuple_count; pair < end; pair++)
            join_partners(n, n->tuple[pair], n->items->item[item].size);
    }
    sort_tuples(n);
}

/* The edge with room for the tuple that leaves the least time unused, or NULL. */
static Edge *find_edge(Nnc *n, const Tuple *t)
{
    Edge *best = NULL;
    uint64_t best_hop = UINT64_MAX, sections = n->items->section_count;
    uint32_t first = birth(n, t->item[0]), last = death(n, t->item[t->count - 1]);
    for (uint32_t k = 0; k < n->edge_count; k++) {
        Edge *e = &n->edge[k];
        if (plan_align(e->offset, t->alignment) + t->size > e->offset + e->bytes)
            continue;
        if (e->from != SOURCE && death(n, e->from) > first)
            continue;
        if (e->to != SINK && birth(n, e->to) < last)
            continue;
        uint64_t hop = (e->from == SOURCE ? sections : first - death(n, e->from)) +
                       (e->to == SINK ? sections : birth(n, e->to) - last);
        if (hop < best_hop) {
            best = e;
            best_hop = hop;
        }
    }
    return best;
}

static void add_edge(Nnc *n, uint32_t from, uint32_t to, int64_t bytes, int64_t offset)
{
    if (bytes > 0)
        ARENA_PUSH(&n->scratch, n->edge, n->edge_count, n->edge_capacity, ((Edge){from, to, bytes, offset}));
}

/* Lets the `bytes` at `offset` that `from` holds flow to the tensors from `next` on, each as much as it can take, and
 * what is left to `to`. */
static void flow(Nnc *n, const Tuple *t, uint32_t next, uint32_t from, uint32_t to, int64_t bytes, int64_t offset)
{
    int64_t consumed = 0;
    for (; next < t->count && consumed < bytes; next++) {
        int64_t size = n->items->item[t->item[next]].size;
        size = size < bytes ? size : bytes;
        if (size <= consumed)
            continue;
        add_edge(n, from, t->item[next], size - consumed, offset + consumed);
        consumed = size;
    }
    add_edge(n, from, to, bytes - consumed, offset + consumed);
}

static void insert(Nnc *n, const Tuple *t, Edge *edge)
{
    Edge taken = {SOURCE, SINK, t->size, plan_align(n->top, t->alignment)};
    if (edge) {
        int64_t offset = plan_align(edge->offset, t->alignment), end = edge->offset + edge->bytes;
        taken = (Edge){edge->from, edge->to, t->size, offset};
        edge->bytes = offset - edge->offset; /* skipped for alignment */
        add_edge(n, taken.from, taken.to, end - offset - t->size, offset + t->size);
    } else {
        n->top = taken.offset + t->size;
    }
    flow(n, t, 0, taken.from, taken.to, t->size, taken.offset);
    for (uint32_t k = 0; k < t->count; k++) {
        flow(n, t, k + 1, t->item[k], taken.to, n->items->item[t->item[k]].size, taken.offset);
        n->offset[t->item[k]] = taken.offset;
        n->inserted[t->item[k]] = true;
    }
}

static void remove_inserted(Nnc *n)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n->waiting_count; k++)
        if (!n->inserted[n->waiting[k]])
            n->waiting[kept++] = n->waiting[k];
    n->waiting_count = kept;
    kept = 0;
    for (uint32_t k = 0; k < n->edge_count; k++)
        if (n->edge[k].bytes > 0)
            n->edge[kept++] = n->edge[k];
    n->edge_count = kept;
}

bool plan_nnc(const PlanItems *items, int64_t *offset)
{
    for (uint32_t i = 0; i < items->count; i++)
        if (items->item[i].pinned != PLAN_FREE)
            return false;
    Arena arena = {0};
    Nnc *n = ARENA_NEW(&arena, Nnc);
    *n = (Nnc){.items = items, .offset = offset};
    n->inserted = ARENA_ARRAY(&n->scratch, bool, items->count);
    n->waiting = ARENA_ARRAY(&n->scratch, uint32_t, items->count);
    n->conflicts = plan_conflicts(&n->scratch, items);
    n->waiting_count = plan_order(&n->scratch, items, PLAN_BY_SIZE, n->waiting);
    while (n->waiting_count) {
        const Tuple *chosen = NULL;
        Edge *edge = NULL;
        list_candidates(n);
        for (uint32_t k = 0; k < n->tuple_count && !edge; k++) {
            edge = find_edge(n, &n->tuple[k]);
            chosen = edge ? &n->tuple[k] : NULL;
        }
        insert(n, chosen ? chosen : &n->tuple[0], edge);
        remove_inserted(n);
    }
    arena_free(&n->scratch);
    arena_free(&arena);
    return true;
}
