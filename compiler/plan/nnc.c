/* The NNC tensor allocation algorithm (Liu Liu, "The NNC tensor allocation algorithm", libnnc.org, 2018; it is ccv's).
 *
 * Two graphs.  In the interference graph tensors are joined that are live together.  In the allocation graph
 * (nnc_graph.h) bytes flow from a source through the tensors to a sink.  Tensors are inserted one after the other, or
 * up to three at a time that follow each other in time, into the bytes of one edge, which then flow through them: each
 * takes over part of what those before it had, and where one is smaller than what flows in, the rest flows on to
 * others.  Where no edge has room, new bytes flow from the source.
 *
 * What is inserted next is the first candidate, by falling size of its largest tensor, then by falling number of its
 * edges in the interference graph, for which an edge has room; if there is none, the first of all.  Candidates are
 *
 * - by edges, as in the article: of the tensors that wait, those with the most edges; each alone, with a larger one
 * that does not interfere with it, and with two of these that do not interfere with each other either;
 * - by size, as ccv's code has it now (liuliu/ccv, lib/nnc/ccv_nnc_symbolic_graph_compile.c): of the tensors that wait,
 *   the largest, each alone.
 *
 * The same tuple structure carries groups: their uses follow each other in time and lie at one offset (ccv calls them
 * companions).  The room between two uses is an edge like any other.  Pins come first.
 *
 * As in the code, an edge may begin at the source or end at the sink, which the article does not let it; as in the
 * article, the interference graph keeps its edges, where the code drops those to tensors that are inserted.
 *
 * Two things are ours.  The article fills each edge with new bytes of their own; here offsets are those of one arena,
 * so before new bytes flow, the candidate may lie across edges that are neighbours in address.  And the number of
 * tuples is cubic: looks at tensors and at edges are limited, in all and for each insertion.  Some hundred tensors do
 * not come near the limit; beyond, a tensor whose tuples took too long is tried alone. */
#include "plan/greedy.h"
#include "plan/nnc_graph.h"
#include "plan/order.h"
#include "plan/sort.h"

#define NONE        UINT32_MAX
#define LOOKS       8000000 /* at a tensor, in all */
#define LEAST_LOOKS 60      /* for one insertion */

typedef struct List { /* items that wait, doubly linked in some order; entry [count] is the head */
    uint32_t *next, *prev, head;
} List;

typedef struct Tuple { /* items; their pieces are put together when an edge is searched */
    uint32_t item[3], count;
} Tuple;

typedef struct Nnc {
    Arena scratch;
    const PlanItems *items;
    int64_t *offset;
    NncGraph *graph;
    uint32_t *edges; /* of each item, in the interference graph */
    List by_size;    /* size falling, then edges falling */
    List by_edges;   /* edges falling, then size falling */
    uint32_t *group; /* items with the most edges of those that wait, in the order of by_edges */
    uint32_t group_count;
    uint32_t *failed; /* [item]: found no edge, alone, when nnc_graph_flows was this less one */
    uint32_t left;    /* items to insert */
    int64_t looks;    /* left for this insertion */
    NncNeed need;     /* of the tuple looked at */
} Nnc;

static void list_make(Nnc *n, List *list, const uint32_t *sequence, uint32_t count)
{
    uint32_t last = list->head = n->items->count;
    list->next = ARENA_ARRAY(&n->scratch, uint32_t, (size_t)last + 1);
    list->prev = ARENA_ARRAY(&n->scratch, uint32_t, (size_t)last + 1);
    for (uint32_t k = 0; k <= count; k++) {
        uint32_t item = k < count ? sequence[k] : list->head;
        list->next[last] = item;
        list->prev[item] = last;
        last = item;
    }
}

static void list_remove(List *list, uint32_t item)
{
    list->next[list->prev[item]] = list->next[item];
    list->prev[list->next[item]] = list->prev[item];
}

static int64_t size_of(const Nnc *n, uint32_t item)
{
    return n->items->item[item].size;
}

static uint32_t birth(const Nnc *n, uint32_t item)
{
    return n->items->piece[n->items->item[item].piece].lower;
}

static uint32_t death(const Nnc *n, uint32_t item)
{
    const PlanItem *it = &n->items->item[item];
    return n->items->piece[it->piece + it->piece_count - 1].upper;
}

/* A group is joined with nothing between its uses. */
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

/* Writes to n->need what the tuple needs; false when no offset suits all alignments. */
static bool make_need(Nnc *n, const Tuple *t)
{
    NncNeed *need = &n->need;
    *need = (NncNeed){.piece = need->piece, .first = UINT32_MAX, .alignment = 1};
    uint32_t done = 0; /* of the items in order of time */
    for (uint32_t round = 0; round < t->count; round++) {
        uint32_t item = NONE;
        for (uint32_t k = 0; k < t->count; k++)
            if (birth(n, t->item[k]) >= done && (item == NONE || birth(n, t->item[k]) < birth(n, item)))
                item = t->item[k];
        const PlanItem *it = &n->items->item[item];
        for (uint32_t p = 0; p < it->piece_count; p++)
            need->piece[need->count++] = it->piece + p;
        need->alignment = lcm(need->alignment, it->alignment);
        if (!need->alignment)
            return false;
        need->size = it->size > need->size ? it->size : need->size;
        need->first = round ? need->first : birth(n, item);
        need->last = done = death(n, item);
    }
    return true;
}

static bool has_edge(Nnc *n, const Tuple *t)
{
    NncPlace place;
    uint64_t steps = nnc_graph_steps(n->graph);
    bool found = make_need(n, t) && nnc_graph_find(n->graph, &n->need, &place);
    n->looks -= 4 + (int64_t)(nnc_graph_steps(n->graph) - steps);
    return found;
}

/* Has an edge room for the item alone?  Only new bytes turn a no into a yes. */
static bool has_room(Nnc *n, uint32_t item)
{
    uint32_t now = nnc_graph_flows(n->graph) + 1;
    if (n->failed[item] == now)
        return false;
    bool room = has_edge(n, &(Tuple){{item}, 1});
    n->failed[item] = room ? 0 : now;
    return room;
}

/* The best tuple so far, and what a better one must have. */
typedef struct Choice {
    Tuple tuple;
    int64_t edges; /* of all, in the interference graph; -1: none yet */
    bool need_edge;
} Choice;

static void choose(Choice *c, Tuple tuple, int64_t edges)
{
    c->tuple = tuple;
    c->edges = edges;
}

/* Joins `small`, of the group, and the larger `large` with the item of most edges that can be third. */
static void try_third(Nnc *n, uint32_t small, uint32_t large, Choice *c)
{
    const List *list = &n->by_edges;
    int64_t edges = (int64_t)n->edges[small] + n->edges[large];
    if (edges > c->edges)
        choose(c, (Tuple){{small, large}, 2}, edges);
    for (uint32_t v = list->next[list->head]; v != list->head && n->looks > 0; v = list->next[v]) {
        if (edges + n->edges[v] <= c->edges)
            return;
        n->looks--;
        if (size_of(n, v) <= size_of(n, small) || size_of(n, v) > size_of(n, large) || v == large ||
            interfere(n, v, small) || interfere(n, v, large))
            continue;
        Tuple t = {{small, large, v}, 3};
        if (c->need_edge ? (!has_room(n, v) || !has_edge(n, &t)) : !make_need(n, &t))
            continue;
        choose(c, t, edges + n->edges[v]);
        return;
    }
}

/* All tuples in which `large` is the largest. */
static void try_largest(Nnc *n, uint32_t large, Choice *c)
{
    int64_t edges = n->edges[large], most = n->edges[n->group[0]];
    if (c->need_edge && !has_room(n, large))
        return;
    if (edges == most && edges > c->edges)
        choose(c, (Tuple){{large}, 1}, edges);
    if (size_of(n, n->group[n->group_count - 1]) >= size_of(n, large))
        return;
    for (uint32_t k = 0; k < n->group_count && n->looks > 0 && edges + 2 * most > c->edges; k++) {
        uint32_t small = n->group[k];
        Tuple t = {{small, large}, 2};
        n->looks--;
        if (size_of(n, small) >= size_of(n, large) || interfere(n, small, large) ||
            (c->need_edge ? (!has_room(n, small) || !has_edge(n, &t)) : !make_need(n, &t)))
            continue;
        try_third(n, small, large, c);
    }
}

/* The first candidate, or the first for which an edge has room: by size, and of one size by edges. */
static bool first_tuple(Nnc *n, bool need_edge, Choice *c)
{
    const List *list = &n->by_size;
    int64_t size = INT64_MAX, least = size_of(n, n->group[n->group_count - 1]);
    *c = (Choice){.edges = -1, .need_edge = need_edge};
    for (uint32_t u = list->next[list->head]; u != list->head && n->looks > 0; u = list->next[u]) {
        if (size_of(n, u) < least || (c->edges >= 0 && size_of(n, u) < size))
            break;
        size = size_of(n, u);
        n->looks--;
        try_largest(n, u, c);
    }
    return c->edges >= 0;
}

static bool first_alone(Nnc *n, Choice *c)
{
    for (uint32_t k = 0; k < n->group_count && n->looks > 0; k++) {
        n->looks--;
        if (!has_room(n, n->group[k]))
            continue;
        choose(c, (Tuple){{n->group[k]}, 1}, 0);
        return true;
    }
    return false;
}

static int64_t share_of_looks(const Nnc *n)
{
    return LOOKS / (n->left + 1) > LEAST_LOOKS ? LOOKS / (n->left + 1) : LEAST_LOOKS;
}

/* The group: the first items of the list, as long as they are equal in the figure that leads it. */
static void gather_group(Nnc *n, const List *list, bool by_size)
{
    uint32_t item = list->next[list->head], first = item, most = (uint32_t)share_of_looks(n);
    for (n->group_count = 0; item != list->head && n->group_count < most; item = list->next[item]) {
        if (by_size ? size_of(n, item) != size_of(n, first) : n->edges[item] != n->edges[first])
            return;
        n->group[n->group_count++] = item;
    }
}

/* Chooses by the article's rule; true when an edge has room. */
static bool next_by_edges(Nnc *n, Choice *c)
{
    int64_t share = share_of_looks(n);
    gather_group(n, &n->by_edges, false);
    n->looks = share;
    if (first_tuple(n, true, c))
        return true;
    n->looks = share;
    if (first_alone(n, c))
        return true;
    n->looks = share;
    if (!first_tuple(n, false, c))
        choose(c, (Tuple){{n->group[0]}, 1}, 0);
    return false;
}

static bool next_by_size(Nnc *n, Choice *c)
{
    gather_group(n, &n->by_size, true);
    n->looks = share_of_looks(n);
    if (first_alone(n, c))
        return true;
    choose(c, (Tuple){{n->group[0]}, 1}, 0);
    return false;
}

static void insert(Nnc *n, const Tuple *t, bool has_edge)
{
    NncPlace place;
    make_need(n, t);
    if (has_edge && nnc_graph_find(n->graph, &n->need, &place))
        nnc_graph_insert(n->graph, &n->need, place);
    else if (t->count == 1 && n->need.count > 1)
        place.offset = nnc_graph_insert_apart(n->graph, &n->need);
    else
        place.offset = nnc_graph_insert_across(n->graph, &n->need);
    for (uint32_t k = 0; k < t->count; k++) {
        n->offset[t->item[k]] = place.offset;
        list_remove(&n->by_size, t->item[k]);
        list_remove(&n->by_edges, t->item[k]);
    }
    n->left -= t->count;
}

static void insert_pinned(Nnc *n, uint32_t index)
{
    const PlanItem *item = &n->items->item[index];
    for (uint32_t p = item->piece; p < item->piece + item->piece_count; p++) {
        const PlanPiece *piece = &n->items->piece[p];
        n->need.piece[0] = p;
        NncNeed need = {n->need.piece, 1, piece->lower, piece->upper, piece->size, item->alignment};
        nnc_graph_insert_at(n->graph, &need, item->pinned);
    }
    n->offset[index] = item->pinned;
}

static void start(Nnc *n)
{
    const PlanItems *items = n->items;
    SortKey *key = ARENA_ARRAY(&n->scratch, SortKey, items->count);
    uint32_t *sequence = ARENA_ARRAY(&n->scratch, uint32_t, items->count), pins = 0;
    n->graph = nnc_graph_new(&n->scratch, items);
    n->need.piece = ARENA_ARRAY(&n->scratch, uint32_t, items->piece_count);
    n->group = ARENA_ARRAY(&n->scratch, uint32_t, items->count);
    n->failed = ARENA_ARRAY(&n->scratch, uint32_t, items->count);
    n->edges = plan_conflicts(&n->scratch, items);
    n->left = plan_order(&n->scratch, items, PLAN_BY_CONFLICTS, sequence);
    for (; pins < n->left && items->item[sequence[pins]].pinned != PLAN_FREE; pins++)
        insert_pinned(n, sequence[pins]);
    n->left -= pins;
    sequence += pins;
    list_make(n, &n->by_edges, sequence, n->left);
    for (uint32_t k = 0; k < n->left; k++)
        key[k] = (SortKey){sort_falling(items->item[sequence[k]].size), sequence[k]};
    sort_ascending(&n->scratch, key, n->left);
    for (uint32_t k = 0; k < n->left; k++)
        sequence[k] = key[k].index;
    list_make(n, &n->by_size, sequence, n->left);
}

void plan_nnc(const PlanItems *items, PlanNnc rule, int64_t *offset)
{
    Nnc n = {.items = items, .offset = offset};
    Choice c;
    start(&n);
    while (n.left) {
        bool has_edge = rule == PLAN_NNC_BY_EDGES ? next_by_edges(&n, &c) : next_by_size(&n, &c);
        insert(&n, &c.tuple, has_edge);
    }
    arena_free(&n.scratch);
}
