/* Edges of like weight, up to a power of two, are kept in one treap, those to the sink in another.  They are ordered by
 * the time from which they are free, the longest first; every subtree knows its largest weight and the latest time
 * until which one is free. */
#include "plan/nnc_graph.h"

#include "plan/sort.h"

#define NONE        UINT32_MAX
#define CLASSES     62
#define TREES       (2 * CLASSES)
#define MOST_ACROSS 8000000 /* edges that all searches across edges may look at; later ones go on top at once */

typedef struct Node { /* of the same number as its edge */
    uint32_t left, right, priority;
    uint32_t latest; /* in this subtree: the largest `before` */
    int64_t most;    /* and the largest `bytes` */
} Node;

struct NncGraph {
    Arena *arena;
    const PlanItems *items;
    NncEdge *edge;
    Node *node;
    uint32_t edge_count, edge_capacity, node_count, node_capacity;
    uint32_t
        root[TREES]; /* of edges between pieces, by the binary logarithm of the weight, then of those to the sink */
    int64_t top;     /* bytes that flow out of the source */
    uint32_t flows;  /* in so many lots */
    SortKey *met;    /* edges that are free during a need, by offset */
    uint32_t met_count, met_capacity;
    uint32_t across_left;
    uint64_t steps; /* nodes that searches for one edge have seen */
};

NncGraph *nnc_graph_new(Arena *arena, const PlanItems *items)
{
    NncGraph *g = ARENA_NEW(arena, NncGraph);
    *g = (NncGraph){.arena = arena, .items = items, .across_left = MOST_ACROSS};
    for (int c = 0; c < TREES; c++)
        g->root[c] = NONE;
    return g;
}

uint32_t nnc_graph_flows(const NncGraph *g)
{
    return g->flows;
}

uint64_t nnc_graph_steps(const NncGraph *g)
{
    return g->steps;
}

const NncEdge *nnc_graph_edges(const NncGraph *g, uint32_t *count)
{
    *count = g->edge_count;
    return g->edge;
}

static uint32_t hash(uint32_t x) /* a bijection that spreads consecutive numbers */
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Searches begin at the end: there lie the latest, of them the shortest, and of equal ones the oldest. */
static bool comes_before(const NncGraph *g, uint32_t a, uint32_t b)
{
    const NncEdge *x = &g->edge[a], *y = &g->edge[b];
    if (x->after != y->after)
        return x->after < y->after;
    return x->before != y->before ? x->before > y->before : a > b;
}

static void update(NncGraph *g, uint32_t n)
{
    Node *node = &g->node[n];
    node->latest = g->edge[n].before;
    node->most = g->edge[n].bytes;
    for (int side = 0; side < 2; side++) {
        uint32_t child = side ? node->right : node->left;
        if (child == NONE)
            continue;
        node->latest = g->node[child].latest > node->latest ? g->node[child].latest : node->latest;
        node->most = g->node[child].most > node->most ? g->node[child].most : node->most;
    }
}

static uint32_t hang(NncGraph *g, uint32_t root, uint32_t n) /* the depth is logarithmic */
{
    if (root == NONE)
        return n;
    Node *at = &g->node[root], *child;
    if (comes_before(g, n, root)) {
        at->left = hang(g, at->left, n);
        child = &g->node[at->left];
        if (child->priority > at->priority) { /* rotate right */
            uint32_t up = at->left;
            at->left = child->right;
            child->right = root;
            update(g, root);
            root = up;
        }
    } else {
        at->right = hang(g, at->right, n);
        child = &g->node[at->right];
        if (child->priority > at->priority) {
            uint32_t up = at->right;
            at->right = child->left;
            child->left = root;
            update(g, root);
            root = up;
        }
    }
    update(g, root);
    return root;
}

static uint32_t join(NncGraph *g, uint32_t a, uint32_t b) /* all of a comes before all of b */
{
    if (a == NONE || b == NONE)
        return a == NONE ? b : a;
    uint32_t root = g->node[a].priority > g->node[b].priority ? a : b;
    if (root == a)
        g->node[a].right = join(g, g->node[a].right, b);
    else
        g->node[b].left = join(g, a, g->node[b].left);
    update(g, root);
    return root;
}

static uint32_t unhang(NncGraph *g, uint32_t root, uint32_t n)
{
    if (root == n)
        return join(g, g->node[n].left, g->node[n].right);
    uint32_t *child = comes_before(g, n, root) ? &g->node[root].left : &g->node[root].right;
    *child = unhang(g, *child, n);
    update(g, root);
    return root;
}

static int class_of(int64_t bytes) /* > 0 */
{
    int class = 0;
    for (int step = 32; step; step /= 2)
        if (bytes >> step) {
            bytes >>= step;
            class += step;
        }
    return class;
}

static uint32_t *tree_of(NncGraph *g, const NncEdge *e)
{
    return &g->root[class_of(e->bytes) + (e->to == NNC_SINK ? CLASSES : 0)];
}

/* A new edge, or one in the place of `*old`, which is then NONE. */
static void add_edge(NncGraph *g, uint32_t from, uint32_t to, int64_t offset, int64_t end, uint32_t *old)
{
    const PlanPiece *piece = g->items->piece;
    uint32_t after = from == NNC_SOURCE ? 0 : piece[from].upper;
    uint32_t before = to == NNC_SINK ? g->items->section_count : piece[to].lower, n = *old;
    if (offset == end)
        return;
    if (n == NONE) {
        n = g->edge_count;
        ARENA_PUSH(g->arena, g->edge, g->edge_count, g->edge_capacity, (NncEdge){0});
        ARENA_PUSH(g->arena, g->node, g->node_count, g->node_capacity, (Node){.priority = hash(n)});
    }
    *old = NONE;
    g->edge[n] = (NncEdge){from, to, after, before, offset, end - offset};
    g->node[n].left = g->node[n].right = NONE;
    update(g, n);
    if (after == before)
        return; /* nothing can lie there */
    uint32_t *root = tree_of(g, &g->edge[n]);
    *root = hang(g, *root, n);
}

typedef struct Search {
    const NncGraph *graph;
    const NncNeed *need;
    NncPlace *place;
    uint64_t steps;
    uint64_t hop; /* sections unused before and after, at the best place so far */
} Search;

static void look_at(Search *s, uint32_t n)
{
    const NncEdge *e = &s->graph->edge[n];
    const NncNeed *need = s->need;
    uint64_t far = s->graph->items->section_count;
    int64_t offset = plan_align(e->offset, need->alignment);
    if (e->before < need->last || offset + need->size > e->offset + e->bytes)
        return;
    uint64_t hop =
        (e->from == NNC_SOURCE ? far : need->first - e->after) + (e->to == NNC_SINK ? far : e->before - need->last);
    if (hop >= s->hop)
        return;
    s->hop = hop;
    *s->place = (NncPlace){n, offset};
}

/* What all edges before e in its tree, and e itself, leave unused at least. */
static uint64_t least_hop(const Search *s, const NncEdge *e)
{
    uint64_t far = s->graph->items->section_count, early = s->need->first - e->after;
    if (e->from == NNC_SOURCE)
        return far + (e->before > s->need->last ? e->before - s->need->last : 0);
    return e->to == NNC_SINK ? early + far : early;
}

static void search(Search *s, uint32_t n)
{
    while (n != NONE) {
        const Node *node = &s->graph->node[n];
        const NncEdge *e = &s->graph->edge[n];
        s->steps++;
        if (node->most < s->need->size || node->latest < s->need->last)
            return;
        if (e->after <= s->need->first) {
            search(s, node->right);
            if (least_hop(s, e) >= s->hop)
                return;
            look_at(s, n);
        }
        n = node->left;
    }
}

bool nnc_graph_find(NncGraph *g, const NncNeed *need, NncPlace *place)
{
    Search s = {g, need, place, 0, UINT64_MAX};
    for (int sink = 0; sink < 2; sink++)
        for (int c = class_of(need->size); c < CLASSES; c++)
            search(&s, g->root[sink * CLASSES + c]);
    g->steps += s.steps;
    return s.hop != UINT64_MAX;
}

/* Gathers all edges that are free during the need, however narrow. */
static void gather(NncGraph *g, const NncNeed *need, uint32_t n)
{
    for (; n != NONE && g->node[n].latest >= need->last; n = g->node[n].left) {
        const NncEdge *e = &g->edge[n];
        if (e->after > need->first)
            continue;
        gather(g, need, g->node[n].right);
        if (e->before >= need->last)
            ARENA_PUSH(g->arena, g->met, g->met_count, g->met_capacity, ((SortKey){(uint64_t)e->offset, n}));
    }
}

static void meet(NncGraph *g, const NncNeed *need)
{
    g->met_count = 0;
    for (int c = 0; c < TREES; c++)
        gather(g, need, g->root[c]);
    g->across_left -= g->met_count < g->across_left ? g->met_count : g->across_left;
    sort_ascending(g->arena, g->met, g->met_count);
}

/* The bytes [at, end) that `from` holds flow to the pieces from `next` on, each as many as it can take, and what is
 * left to `to`. */
static void flow(NncGraph *g, const NncNeed *need, uint32_t next, NncEdge flowing, int64_t base, uint32_t *old)
{
    int64_t at = flowing.offset, end = at + flowing.bytes;
    for (; next < need->count && at < end; next++) {
        int64_t top = base + g->items->piece[need->piece[next]].size;
        top = top < end ? top : end;
        if (top <= at)
            continue;
        add_edge(g, flowing.from, need->piece[next], at, top, old);
        at = top;
    }
    if (at < end)
        add_edge(g, flowing.from, flowing.to, at, end, old);
}

/* Leads the bytes that the edge and the need at `base` have in common through the pieces.  The edge is no more. */
static void split(NncGraph *g, uint32_t n, const NncNeed *need, int64_t base)
{
    NncEdge e = g->edge[n];
    int64_t end = e.offset + e.bytes, from = base > e.offset ? base : e.offset;
    int64_t to = base + need->size < end ? base + need->size : end;
    if (from >= to)
        return;
    uint32_t *root = tree_of(g, &e);
    *root = unhang(g, *root, n);
    add_edge(g, e.from, e.to, e.offset, from, &n);
    add_edge(g, e.from, e.to, to, end, &n);
    flow(g, need, 0, (NncEdge){e.from, e.to, 0, 0, from, to - from}, base, &n);
    for (uint32_t k = 0; k < need->count; k++) {
        int64_t top = base + g->items->piece[need->piece[k]].size;
        top = top < to ? top : to;
        flow(g, need, k + 1, (NncEdge){need->piece[k], e.to, 0, 0, from, top - from}, base, &n);
    }
}

void nnc_graph_insert(NncGraph *g, const NncNeed *need, NncPlace place)
{
    split(g, place.edge, need, place.offset);
}

/* New bytes flow from the source to the sink until the arena reaches `top`. */
static void raise_top(NncGraph *g, int64_t top)
{
    if (top <= g->top)
        return;
    uint32_t none = NONE;
    add_edge(g, NNC_SOURCE, NNC_SINK, g->top, top, &none);
    g->top = top;
    g->flows++;
}

void nnc_graph_insert_at(NncGraph *g, const NncNeed *need, int64_t offset)
{
    int64_t top = g->top;
    raise_top(g, offset + need->size);
    if (offset >= top) { /* all of it is new: the last edge */
        split(g, g->edge_count - 1, need, offset);
        return;
    }
    meet(g, need);
    for (uint32_t k = 0; k < g->met_count; k++)
        split(g, g->met[k].index, need, offset);
}

int64_t nnc_graph_insert_across(NncGraph *g, const NncNeed *need)
{
    int64_t base = plan_align(g->top, need->alignment), least = INT64_MAX;
    g->met_count = 0;
    if (g->across_left)
        meet(g, need);
    for (uint32_t k = 0, next; k < g->met_count; k = next) {
        int64_t begin = g->edge[g->met[k].index].offset, end = begin;
        for (next = k; next < g->met_count && g->edge[g->met[next].index].offset == end; next++)
            end += g->edge[g->met[next].index].bytes;
        int64_t at = plan_align(begin, need->alignment);
        bool room = at + need->size <= end;
        if (room ? end - begin < least : end == g->top && least == INT64_MAX)
            base = at;
        if (room && end - begin < least)
            least = end - begin;
    }
    nnc_graph_insert_at(g, need, base);
    return base;
}

/* What one of the pieces needs. */
static NncNeed need_alone(const NncGraph *g, const NncNeed *need, uint32_t k)
{
    const PlanPiece *piece = &g->items->piece[need->piece[k]];
    return (NncNeed){&need->piece[k], 1, piece->lower, piece->upper, piece->size, need->alignment};
}

/* The lowest offset from `at` on where nothing lies during the need. */
static int64_t lowest(NncGraph *g, const NncNeed *need, int64_t at)
{
    meet(g, need);
    for (uint32_t k = 0, next; k < g->met_count; k = next) {
        int64_t begin = g->edge[g->met[k].index].offset, end = begin;
        for (next = k; next < g->met_count && g->edge[g->met[next].index].offset == end; next++)
            end += g->edge[g->met[next].index].bytes;
        int64_t offset = plan_align(begin > at ? begin : at, need->alignment);
        if (offset + need->size <= end || end == g->top)
            return offset;
    }
    return plan_align(g->top > at ? g->top : at, need->alignment);
}

int64_t nnc_graph_insert_apart(NncGraph *g, const NncNeed *need)
{
    int64_t offset = 0;
    for (uint32_t k = 0, agreed = 0; agreed < need->count; k = (k + 1) % need->count) {
        NncNeed alone = need_alone(g, need, k);
        int64_t at = lowest(g, &alone, offset);
        agreed = at == offset ? agreed + 1 : 1;
        offset = at;
    }
    for (uint32_t k = 0; k < need->count; k++) {
        NncNeed alone = need_alone(g, need, k);
        nnc_graph_insert_at(g, &alone, offset);
    }
    return offset;
}
