/* Placement from below: always into the lowest place on top of what is placed.  The lowest-gap rule of strip packing
 * (Burke, Kendall and Whitwell, "A new placement heuristic for the orthogonal stock-cutting problem", Operations
 * Research 2004), where here the horizontal place, the life, is given.
 *
 * The skyline is a list of ledges: runs of sections at one height.  An item whose life lies within the lowest ledge can
 * lie there, and nowhere lower.  When there is none the ledge can no longer be used: it rises to the lower of its
 * neighbours and is one with it.  Each step places an item or ends a ledge, of which an item makes at most two, so
 * steps are linear in the items.
 *
 * Which items lie within a ledge, a k-d tree over (lower, upper) tells (Bentley, "Multidimensional binary search trees
 * used for associative searching", CACM 1975), each node with the first rank below it; one for each alignment, since
 * those that a ledge is not aligned for would lie higher.
 *
 * An item of several pieces is taken for solid between them, and pins come first, on top of which the others lie;
 * plan_settle finds the room that this leaves. */
#include "plan/greedy.h"
#include "plan/sort.h"

#define NONE       UINT32_MAX
#define MOST_TREES 8 /* alignments apart; items of any others share the last tree */

typedef struct Box { /* around the items below a node that wait */
    uint32_t least_lower, most_lower, least_upper, most_upper;
    uint32_t rank; /* the first; NONE: no item waits */
} Box;

typedef struct Tree {
    int64_t alignment;
    Box *box; /* implicit; leaves from [leaves] on */
    uint32_t leaves;
} Tree;

typedef struct Ledge { /* [left, right) at a height, live while right > left */
    uint32_t left, right, prev, next;
    int64_t height;
} Ledge;

typedef struct Event { /* a ledge that may take an item at this height */
    int64_t height;
    uint32_t left, ledge;
} Event;

typedef struct Skyline {
    Arena scratch;
    const PlanItems *items;
    int64_t *offset;
    const uint32_t *sequence;    /* [rank]: the item */
    uint32_t *tree_of, *leaf_of; /* [item] */
    Tree tree[MOST_TREES];
    uint32_t tree_count;
    Ledge *ledge;
    uint32_t ledge_count, ledge_capacity;
    Event *event; /* a heap; those of ledges that have changed since are skipped */
    uint32_t event_count, event_capacity;
    uint64_t looks;
} Skyline;

static uint32_t lower_of(const Skyline *s, uint32_t item)
{
    return s->items->piece[s->items->item[item].piece].lower;
}

static uint32_t upper_of(const Skyline *s, uint32_t item)
{
    const PlanItem *it = &s->items->item[item];
    return s->items->piece[it->piece + it->piece_count - 1].upper;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static const Box empty_box = {NONE, 0, NONE, 0, NONE};

static Box box_around(Box a, Box b)
{
    return (Box){least(a.least_lower, b.least_lower), most(a.most_lower, b.most_lower),
                 least(a.least_upper, b.least_upper), most(a.most_upper, b.most_upper), least(a.rank, b.rank)};
}

/* Fills the node and all below it with items, of which key[k].index is the rank. */
static void fill_tree(Skyline *s, uint32_t t, uint32_t node, SortKey *key, uint32_t count, bool by_upper)
{
    Tree *tree = &s->tree[t];
    if (node >= tree->leaves) {
        uint32_t rank = count ? key->index : NONE, item = count ? s->sequence[rank] : 0;
        tree->box[node] =
            count ? (Box){lower_of(s, item), lower_of(s, item), upper_of(s, item), upper_of(s, item), rank} : empty_box;
        if (count)
            s->leaf_of[item] = node;
        return;
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t item = s->sequence[key[k].index];
        key[k].key = by_upper ? upper_of(s, item) : lower_of(s, item);
    }
    sort_ascending(&s->scratch, key, count);
    uint32_t half = (count + 1) / 2;
    fill_tree(s, t, 2 * node, key, half, !by_upper);
    fill_tree(s, t, 2 * node + 1, key + half, count - half, !by_upper);
    tree->box[node] = box_around(tree->box[2 * node], tree->box[2 * node + 1]);
}

static uint32_t find_tree(Skyline *s, int64_t alignment)
{
    uint32_t t = 0;
    while (t < s->tree_count && s->tree[t].alignment != alignment)
        t++;
    if (t == MOST_TREES)
        return MOST_TREES - 1;
    if (t == s->tree_count)
        s->tree[s->tree_count++] = (Tree){.alignment = alignment, .leaves = 1};
    return t;
}

static void plant_trees(Skyline *s, uint32_t first, uint32_t count)
{
    SortKey *key = ARENA_ARRAY(&s->scratch, SortKey, count);
    s->tree_of = ARENA_ARRAY(&s->scratch, uint32_t, s->items->count);
    s->leaf_of = ARENA_ARRAY(&s->scratch, uint32_t, s->items->count);
    for (uint32_t rank = first; rank < count; rank++)
        s->tree_of[s->sequence[rank]] = find_tree(s, s->items->item[s->sequence[rank]].alignment);
    for (uint32_t t = 0; t < s->tree_count; t++) {
        uint32_t n = 0;
        for (uint32_t rank = first; rank < count; rank++)
            if (s->tree_of[s->sequence[rank]] == t)
                key[n++].index = rank;
        while (s->tree[t].leaves < n)
            s->tree[t].leaves *= 2;
        s->tree[t].box = ARENA_ARRAY(&s->scratch, Box, 2 * (size_t)s->tree[t].leaves);
        fill_tree(s, t, 1, key, n, false);
    }
}

/* The first rank within [left, right) below the node, if it comes before `best`. */
static uint32_t first_within(Skyline *s, const Tree *tree, uint32_t node, const Ledge *ledge, uint32_t best)
{
    const Box *box = &tree->box[node];
    s->looks++;
    if (box->rank >= best || box->most_lower < ledge->left || box->least_upper > ledge->right)
        return best;
    if (box->least_lower >= ledge->left && box->most_upper <= ledge->right)
        return box->rank;
    uint32_t near = 2 * node + (tree->box[2 * node + 1].rank < tree->box[2 * node].rank);
    best = first_within(s, tree, near, ledge, best);
    return first_within(s, tree, near ^ 1, ledge, best);
}

static void take_out(Skyline *s, uint32_t item)
{
    Tree *tree = &s->tree[s->tree_of[item]];
    uint32_t node = s->leaf_of[item];
    tree->box[node] = empty_box;
    while (node /= 2)
        tree->box[node] = box_around(tree->box[2 * node], tree->box[2 * node + 1]);
}

static bool sooner(const Event *a, const Event *b)
{
    return a->height != b->height ? a->height < b->height : a->left < b->left;
}

static void push_event(Skyline *s, uint32_t ledge, int64_t height)
{
    Event event = {height, s->ledge[ledge].left, ledge};
    ARENA_PUSH(&s->scratch, s->event, s->event_count, s->event_capacity, event);
    uint32_t at = s->event_count - 1;
    for (; at && sooner(&event, &s->event[(at - 1) / 2]); at = (at - 1) / 2)
        s->event[at] = s->event[(at - 1) / 2];
    s->event[at] = event;
}

static Event pop_event(Skyline *s)
{
    Event top = s->event[0], last = s->event[--s->event_count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < s->event_count; at = child) {
        child += child + 1 < s->event_count && sooner(&s->event[child + 1], &s->event[child]);
        if (!sooner(&s->event[child], &last))
            break;
        s->event[at] = s->event[child];
    }
    s->event[at] = last;
    return top;
}

/* A ledge between two others. */
static uint32_t add_ledge(Skyline *s, uint32_t left, uint32_t right, int64_t height, uint32_t prev, uint32_t next)
{
    uint32_t n = s->ledge_count;
    ARENA_PUSH(&s->scratch, s->ledge, s->ledge_count, s->ledge_capacity, ((Ledge){left, right, prev, next, height}));
    if (prev != NONE)
        s->ledge[prev].next = n;
    if (next != NONE)
        s->ledge[next].prev = n;
    return n;
}

static void drop_ledge(Skyline *s, uint32_t n)
{
    Ledge *ledge = &s->ledge[n];
    if (ledge->prev != NONE)
        s->ledge[ledge->prev].next = ledge->next;
    if (ledge->next != NONE)
        s->ledge[ledge->next].prev = ledge->prev;
    ledge->right = ledge->left;
}

/* Replaces a ledge by one at another height, one with the neighbours that have it. */
static void move_ledge(Skyline *s, uint32_t n, int64_t height)
{
    Ledge ledge = s->ledge[n];
    drop_ledge(s, n);
    if (ledge.prev != NONE && s->ledge[ledge.prev].height == height) {
        uint32_t gone = ledge.prev;
        ledge.left = s->ledge[gone].left;
        ledge.prev = s->ledge[gone].prev;
        drop_ledge(s, gone);
    }
    if (ledge.next != NONE && s->ledge[ledge.next].height == height) {
        uint32_t gone = ledge.next;
        ledge.right = s->ledge[gone].right;
        ledge.next = s->ledge[gone].next;
        drop_ledge(s, gone);
    }
    push_event(s, add_ledge(s, ledge.left, ledge.right, height, ledge.prev, ledge.next), height);
}

/* The part [left, right) of a ledge as a ledge of its own. */
static uint32_t cut_out(Skyline *s, uint32_t n, uint32_t left, uint32_t right)
{
    Ledge ledge = s->ledge[n];
    drop_ledge(s, n);
    uint32_t prev = ledge.prev, next = ledge.next;
    if (ledge.left < left)
        push_event(s, prev = add_ledge(s, ledge.left, left, ledge.height, prev, next), ledge.height);
    uint32_t middle = add_ledge(s, left, right, ledge.height, prev, next);
    if (right < ledge.right)
        push_event(s, add_ledge(s, right, ledge.right, ledge.height, middle, next), ledge.height);
    return middle;
}

/* What lies lowest on the ledge, the first of equals; NONE when nothing fits within it.  *at: where. */
static uint32_t choose(Skyline *s, const Ledge *ledge, int64_t *at)
{
    uint32_t chosen = NONE;
    *at = INT64_MAX;
    for (uint32_t t = 0; t < s->tree_count; t++) {
        uint32_t rank = first_within(s, &s->tree[t], 1, ledge, NONE);
        if (rank == NONE)
            continue;
        int64_t height = plan_align(ledge->height, s->items->item[s->sequence[rank]].alignment);
        if (height < *at || (height == *at && rank < chosen)) {
            *at = height;
            chosen = rank;
        }
    }
    return chosen == NONE ? NONE : s->sequence[chosen];
}

static int64_t lower_neighbour(const Skyline *s, const Ledge *ledge)
{
    int64_t before = ledge->prev == NONE ? INT64_MAX : s->ledge[ledge->prev].height;
    int64_t after = ledge->next == NONE ? INT64_MAX : s->ledge[ledge->next].height;
    return before < after ? before : after;
}

static void put(Skyline *s, uint32_t ledge, uint32_t item, int64_t at)
{
    s->offset[item] = at;
    take_out(s, item);
    move_ledge(s, cut_out(s, ledge, lower_of(s, item), upper_of(s, item)), at + s->items->item[item].size);
}

/* Lets the ledge take an item, wait until it is the lowest at the height where it can, or rise.  Returns the item. */
static uint32_t use_ledge(Skyline *s, Event event)
{
    int64_t at;
    uint32_t item = choose(s, &s->ledge[event.ledge], &at);
    int64_t neighbour = lower_neighbour(s, &s->ledge[event.ledge]);
    if (item != NONE && at <= event.height) {
        put(s, event.ledge, item, at);
        return item;
    }
    if (item != NONE && at < neighbour)
        push_event(s, event.ledge, at);
    else
        move_ledge(s, event.ledge, neighbour);
    return NONE;
}

/* What is pinned is a ledge from the start; of several in one section the highest counts. */
static void lay_ground(Skyline *s, uint32_t pins)
{
    uint32_t sections = s->items->section_count;
    int64_t *ground = ARENA_ARRAY(&s->scratch, int64_t, sections);
    for (uint32_t rank = 0; rank < pins; rank++) {
        const PlanItem *item = &s->items->item[s->sequence[rank]];
        s->offset[s->sequence[rank]] = item->pinned;
        for (const PlanPiece *p = &s->items->piece[item->piece]; p < &s->items->piece[item->piece + item->piece_count];
             p++)
            for (uint32_t k = p->lower; k < p->upper; k++)
                ground[k] = item->pinned + p->size > ground[k] ? item->pinned + p->size : ground[k];
    }
    for (uint32_t left = 0, right, last = NONE; left < sections; left = right) {
        for (right = left + 1; right < sections && ground[right] == ground[left];)
            right++;
        last = add_ledge(s, left, right, ground[left], last, NONE);
        push_event(s, last, ground[left]);
    }
}

/* Places one more item, if the next ledge takes any; false at the limit. */
static bool step(Skyline *s, PlanLimit *limit, uint32_t *placed)
{
    Event event = pop_event(s);
    if (s->ledge[event.ledge].left == s->ledge[event.ledge].right)
        return true;
    uint32_t item = use_ledge(s, event);
    if (item == NONE)
        return s->looks <= limit->looks;
    ++*placed;
    limit->failed = item;
    return s->looks <= limit->looks && plan_item_top(s->items, item, s->offset[item]) < limit->below;
}

bool plan_skyline(const PlanItems *items, const uint32_t *sequence, uint32_t count, PlanLimit *limit, int64_t *offset)
{
    Skyline s = {.items = items, .offset = offset, .sequence = sequence};
    uint32_t placed = 0;
    bool good = true;
    while (placed < count && items->item[sequence[placed]].pinned != PLAN_FREE)
        placed++;
    lay_ground(&s, placed);
    plant_trees(&s, placed, count);
    while (placed < count && good)
        good = step(&s, limit, &placed);
    limit->looks -= s.looks < limit->looks ? s.looks : limit->looks;
    arena_free(&s.scratch);
    return good;
}
