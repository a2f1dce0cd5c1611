/* A perfect packing leaves no hole: where items end, others of the same sum begin at the same addresses.  Items are
 * then the edges of a planar network, sizes its currents, and each node is a stretch of addresses at one time where
 * some end and some begin (Brooks, Smith, Stone and Tutte, "The dissection of rectangles into squares", Duke
 * Mathematical Journal 1940).  Which items meet in a node is all that has to be found: given the nodes, the order of
 * addresses is an embedding of the network in the plane, which a sweep finds, with a PQ-tree of all orders of what is
 * live that are still possible (Booth and Lueker 1976): at each node what ends must be able to stand together, and what
 * begins takes its place in any order.
 *
 * At most times the sums leave few choices (planar_search.c).  A beam of trees follows them; those with the most orders
 * left go on.  Where there is but one choice later on, it is known before: what will end together in one node is made
 * to stand together as soon as all of it is live.  The addresses are read off backwards, from an order of the last
 * tree.
 *
 * Where a little is missing from a perfect packing fillers stand for it: one begins where the load falls, and ends
 * where it rises by as much. */
#include "plan/planar.h"

#include <assert.h>
#include <string.h>

#include "plan/planar_search.h"
#include "plan/sort.h"

#define NONE               UINT32_MAX
#define WIDTH              64 /* trees that go on */
#define LOOKS_OF_PARTITION 128
#define MOST_LIVE          1000
#define LEAST_USED         0.875

typedef struct Leaf { /* an item or a filler */
    int64_t size;
    uint32_t lower, upper, item; /* NONE: a filler */
} Leaf;

typedef struct List {
    uint32_t *leaf, count, capacity;
} List;

typedef struct Bond { /* leaves that must stand together from a section on */
    uint32_t *leaf, count, next;
} Bond;

typedef struct Step { /* how a tree came from another */
    uint32_t parent;
    PlanarWay way;
} Step;

typedef struct State {
    PqTree tree;
    uint32_t step; /* the last, or NONE */
    PlanarWay way; /* of the next */
    uint64_t freedom, hash;
} State;

typedef struct Sweep {
    Arena *arena, *stack;
    bool reversed; /* through time */
    uint32_t sections;
    Leaf *leaf;
    int64_t *size; /* [leaf] */
    uint32_t leaf_count, leaf_capacity;
    List *begin, *end; /* [section] */
    Bond *bond;
    uint32_t bond_count, bond_capacity, *first_bond; /* [section] */
    uint8_t *marked;                                 /* [leaf] */
    Step *step;
    uint32_t step_count, step_capacity;
    State state[WIDTH];
    uint32_t state_count;
    uint64_t looks, most_looks;
} Sweep;

static void add_leaf(Sweep *s, Leaf leaf)
{
    if (s->reversed)
        leaf = (Leaf){leaf.size, s->sections - leaf.upper, s->sections - leaf.lower, leaf.item};
    ARENA_PUSH(s->arena, s->leaf, s->leaf_count, s->leaf_capacity, leaf);
}

/* Fillers */

typedef struct Fillers { /* that have begun */
    Leaf *open;
    uint32_t count, capacity;
} Fillers;

static void close_filler(Sweep *s, Fillers *f, uint32_t k, uint32_t section)
{
    f->open[k].upper = section;
    add_leaf(s, f->open[k]);
    memmove(&f->open[k], &f->open[k + 1], sizeof *f->open * (--f->count - k));
}

/* Ends one filler of the size or two, or part of a larger one, or else of the last what there is. */
static int64_t end_filler(Sweep *s, Fillers *f, int64_t size, uint32_t section)
{
    uint32_t larger = NONE;
    for (uint32_t k = f->count; k-- > 0;) {
        if (f->open[k].size == size) {
            close_filler(s, f, k, section);
            return 0;
        }
        larger = f->open[k].size > size && larger == NONE ? k : larger;
    }
    for (uint32_t a = f->count; a-- > 0;)
        for (uint32_t b = a; b-- > 0;)
            if (f->open[a].size + f->open[b].size == size) {
                close_filler(s, f, a, section);
                close_filler(s, f, b, section);
                return 0;
            }
    if (larger != NONE) {
        Leaf part = {size, f->open[larger].lower, section, NONE};
        f->open[larger].size -= size;
        add_leaf(s, part);
        return 0;
    }
    size -= f->open[f->count - 1].size;
    close_filler(s, f, f->count - 1, section);
    return size;
}

static void add_fillers(Sweep *s, const PlanItems *items, int64_t capacity)
{
    Fillers f = {0};
    int64_t filled = 0;
    for (uint32_t k = 0; k < s->sections; k++) {
        int64_t fill = capacity - items->load[k];
        if (fill > filled)
            ARENA_PUSH(s->stack, f.open, f.count, f.capacity, ((Leaf){fill - filled, k, 0, NONE}));
        for (int64_t over = filled - fill; over > 0;)
            over = end_filler(s, &f, over, k);
        filled = fill;
    }
    while (f.count)
        close_filler(s, &f, f.count - 1, s->sections);
}

/* Bonds */

static bool bind_leaves(Sweep *s, uint32_t section, PqTree *tree)
{
    bool good = true;
    for (uint32_t b = s->first_bond[section]; b != NONE && good; b = s->bond[b].next) {
        PqTree bound;
        for (uint32_t k = 0; k < s->bond[b].count; k++)
            s->marked[s->bond[b].leaf[k]] = 1;
        good = plan_pq_reduce(s->stack, tree, s->marked, &bound);
        for (uint32_t k = 0; k < s->bond[b].count; k++)
            s->marked[s->bond[b].leaf[k]] = 0;
        s->looks += tree->count;
        *tree = bound;
    }
    return good;
}

static void add_bond(Sweep *s, const uint32_t *leaf, uint32_t count)
{
    uint32_t from = 0;
    for (uint32_t k = 0; k < count; k++)
        from = s->leaf[leaf[k]].lower > from ? s->leaf[leaf[k]].lower : from;
    Bond bond = {arena_copy(s->arena, leaf, sizeof *leaf * count), count, s->first_bond[from]};
    ARENA_PUSH(s->arena, s->bond, s->bond_count, s->bond_capacity, bond);
    s->first_bond[from] = s->bond_count - 1;
}

static PlanarChange *change_at(Sweep *s, Arena *arena, uint32_t section)
{
    const List *end = &s->end[section], *begin = &s->begin[section];
    PlanarChange *change = plan_planar_change(arena, s->size, end->leaf, end->count, begin->leaf, begin->count);
    s->looks += (uint64_t)LOOKS_OF_PARTITION * change->partition_count;
    return change;
}

static void add_bonds(Sweep *s, uint32_t section)
{
    ArenaMark mark = arena_mark(s->stack);
    PlanarChange *change = change_at(s, s->stack, section);
    PlanarWay way = {.group = NULL};
    const PlanarGroup *group;
    way.group_count = plan_planar_certain(change, &group);
    way.group = arena_copy(s->stack, group, sizeof *group * way.group_count);
    uint32_t *gone = ARENA_ARRAY(s->stack, uint32_t, s->end[section].count), puts;
    uint32_t *put = ARENA_ARRAY(s->stack, uint32_t, s->begin[section].count);
    for (uint32_t g = 0; g < way.group_count; g++) {
        uint32_t count = plan_planar_group(change, &way, g, gone, put, &puts);
        if (count > 1)
            add_bond(s, gone, count);
    }
    arena_reset(s->stack, mark);
}

/* The sweep */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 31) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 29;
}

/* Of trees that are equal but for leaves that are alike it is the same. */
static uint64_t hash_tree(Sweep *s, const PqTree *tree)
{
    ArenaMark mark = arena_mark(s->stack);
    uint64_t *hash = ARENA_ARRAY(s->stack, uint64_t, tree->count);
    for (uint32_t n = tree->count; n-- > 0;) {
        const PqNode *node = &tree->node[n];
        if (node->span == 1) {
            hash[n] = mix(mix(1, (uint64_t)s->leaf[node->leaf].size), s->leaf[node->leaf].upper);
            continue;
        }
        uint64_t any = 3, row = 5;
        for (uint32_t c = n + 1; c < n + node->span; c += tree->node[c].span) {
            any += mix(7, hash[c]);
            row = mix(row, hash[c]);
        }
        hash[n] = node->leaf == PQ_P ? mix(9, any) : row;
    }
    uint64_t result = hash[0];
    arena_reset(s->stack, mark);
    return result;
}

/* The trees that go on: the freest, and each once. */
static void select_states(Sweep *s, const State *next, uint32_t count)
{
    SortKey *key = ARENA_ARRAY(s->stack, SortKey, count);
    for (uint32_t k = 0; k < count; k++)
        key[k] = (SortKey){~next[k].freedom, k};
    sort_ascending(s->stack, key, count);
    s->state_count = 0;
    for (uint32_t k = 0; k < count && s->state_count < WIDTH; k++) {
        State state = next[key[k].index];
        bool twin = false;
        for (uint32_t j = 0; j < s->state_count && !twin; j++)
            twin = s->state[j].hash == state.hash;
        if (twin)
            continue;
        Step step = {state.step, state.way};
        step.way.group = arena_copy(s->arena, state.way.group, sizeof *state.way.group * state.way.group_count);
        ARENA_PUSH(s->arena, s->step, s->step_count, s->step_capacity, step);
        state.step = s->step_count - 1;
        s->state[s->state_count++] = state;
    }
}

/* Goes on from all states to the next section; their trees are then in `trees`.  False when none can. */
static bool advance(Sweep *s, uint32_t section, Arena *trees)
{
    Arena scratch = {0};
    PlanarChange *change = change_at(s, &scratch, section);
    State *next = NULL;
    uint32_t count = 0, capacity = 0;
    for (uint32_t k = 0; k < s->state_count; k++) {
        PlanarWays ways = {0};
        plan_planar_ways(&scratch, change, &s->state[k].tree, s->leaf_count, &ways);
        s->looks += ways.looks;
        for (uint32_t w = 0; w < ways.count; w++) {
            ArenaMark mark = arena_mark(s->stack);
            State state = {.tree = ways.way[w].tree, .step = s->state[k].step, .way = ways.way[w]};
            if (bind_leaves(s, section, &state.tree)) {
                state.tree.node = arena_copy(trees, state.tree.node, sizeof *state.tree.node * state.tree.count);
                state.freedom = plan_pq_freedom(&state.tree);
                state.hash = hash_tree(s, &state.tree);
                s->looks += state.tree.count;
                ARENA_PUSH(&scratch, next, count, capacity, state);
            }
            arena_reset(s->stack, mark);
        }
    }
    ArenaMark mark = arena_mark(s->stack);
    select_states(s, next, count);
    arena_reset(s->stack, mark);
    arena_free(&scratch);
    return s->state_count > 0 && s->looks < s->most_looks;
}

static PqTree first_tree(Sweep *s)
{
    return plan_pq_free(s->arena, s->begin[0].leaf, s->begin[0].count);
}

static bool sweep(Sweep *s)
{
    Arena trees[2] = {{0}, {0}};
    bool good = true;
    s->state[0] = (State){.tree = first_tree(s), .step = NONE};
    s->state_count = 1;
    if (!bind_leaves(s, 0, &s->state[0].tree))
        return false;
    for (uint32_t section = 1; section < s->sections && good; section++) {
        arena_free(&trees[section % 2]);
        good = advance(s, section, &trees[section % 2]);
    }
    arena_free(&trees[0]);
    arena_free(&trees[1]);
    return good;
}

/* Offsets */

typedef struct Node { /* of the network */
    uint32_t *gone, gone_count, *put, put_count;
    PqTree before;
} Node;

typedef struct Nodes {
    Node *node;
    uint32_t count, capacity;
} Nodes;

/* Puts into effect what was done at one section; returns the tree after it. */
static PqTree redo(Sweep *s, uint32_t section, const PlanarWay *way, PqTree tree, Nodes *nodes)
{
    const List *end = &s->end[section], *begin = &s->begin[section];
    PlanarChange change = {.gone = {.leaf = end->leaf, .count = end->count},
                           .put = {.leaf = begin->leaf, .count = begin->count}};
    for (uint32_t g = 0; g <= way->group_count; g++) {
        Node node = {.before = tree};
        node.gone = ARENA_ARRAY(s->arena, uint32_t, end->count);
        node.put = ARENA_ARRAY(s->arena, uint32_t, begin->count);
        node.gone_count = plan_planar_group(&change, way, g, node.gone, node.put, &node.put_count);
        if (!node.gone_count)
            continue;
        for (uint32_t k = 0; k < node.gone_count; k++)
            s->marked[node.gone[k]] = 1;
        bool good = plan_pq_replace(s->arena, &node.before, s->marked, node.put, node.put_count, &tree);
        assert(good);
        (void)good;
        for (uint32_t k = 0; k < node.gone_count; k++)
            s->marked[node.gone[k]] = 0;
        ARENA_PUSH(s->arena, nodes->node, nodes->count, nodes->capacity, node);
    }
    return tree;
}

/* Lays the leaves of a tree out in the order in which they have offsets already. */
static void lay_out(Sweep *s, const PqTree *tree, int64_t *offset)
{
    ArenaMark mark = arena_mark(s->stack);
    uint32_t *order = ARENA_ARRAY(s->stack, uint32_t, tree->count), count = 0;
    int64_t at = 0;
    for (uint32_t n = 0; n < tree->count; n++)
        count += tree->node[n].span == 1;
    plan_pq_order(s->stack, tree, offset, order);
    for (uint32_t k = 0; k < count; at += s->size[order[k++]])
        offset[order[k]] = at;
    arena_reset(s->stack, mark);
}

/* Backwards: what has ended lies where what took its place does. */
static void find_offsets(Sweep *s, int64_t *offset)
{
    const PlanarWay **way = ARENA_ARRAY(s->arena, const PlanarWay *, s->sections);
    Nodes nodes = {0};
    PqTree tree = first_tree(s);
    uint32_t section = s->sections;
    for (uint32_t k = s->state[0].step; k != NONE; k = s->step[k].parent)
        way[--section] = &s->step[k].way;
    assert(section == 1);
    for (; section < s->sections; section++)
        tree = redo(s, section, way[section], tree, &nodes);
    lay_out(s, &tree, offset);
    for (uint32_t k = nodes.count; k-- > 0;) {
        const Node *node = &nodes.node[k];
        int64_t base = INT64_MAX;
        for (uint32_t p = 0; p < node->put_count; p++)
            base = offset[node->put[p]] < base ? offset[node->put[p]] : base;
        for (uint32_t g = 0; g < node->gone_count; g++)
            offset[node->gone[g]] = base;
        lay_out(s, &node->before, offset);
    }
}

/* What begins and ends, by section, and what is certain of it. */
static void prepare(Sweep *s, const PlanItems *items, int64_t capacity)
{
    size_t sections = (size_t)s->sections + 1;
    for (uint32_t i = 0; i < items->count; i++) {
        const PlanPiece *piece = &items->piece[items->item[i].piece];
        if (items->item[i].piece_count)
            add_leaf(s, (Leaf){piece->size, piece->lower, piece->upper, i});
    }
    add_fillers(s, items, capacity);
    s->begin = ARENA_ARRAY(s->arena, List, sections);
    s->end = ARENA_ARRAY(s->arena, List, sections);
    s->size = ARENA_ARRAY(s->arena, int64_t, s->leaf_count);
    s->marked = ARENA_ARRAY(s->arena, uint8_t, s->leaf_count);
    for (uint32_t k = 0; k < s->leaf_count; k++) {
        List *begin = &s->begin[s->leaf[k].lower], *end = &s->end[s->leaf[k].upper];
        s->size[k] = s->leaf[k].size;
        ARENA_PUSH(s->arena, begin->leaf, begin->count, begin->capacity, k);
        ARENA_PUSH(s->arena, end->leaf, end->count, end->capacity, k);
    }
    s->first_bond = ARENA_ARRAY(s->arena, uint32_t, sections);
    memset(s->first_bond, 0xff, sizeof *s->first_bond * sections);
    for (uint32_t section = 1; section < s->sections; section++)
        add_bonds(s, section);
}

/* One sweep, forwards or backwards, with so many looks. */
static bool sweep_once(const PlanItems *items, int64_t capacity, bool reversed, uint64_t *looks, int64_t *offset)
{
    Arena arena = {0}, stack = {0};
    Sweep *s = ARENA_NEW(&arena, Sweep);
    *s = (Sweep){.arena = &arena, .stack = &stack, .reversed = reversed, .sections = items->section_count};
    s->most_looks = *looks;
    prepare(s, items, capacity);
    bool good = sweep(s);
    if (good) {
        int64_t *all = ARENA_ARRAY(&arena, int64_t, s->leaf_count);
        find_offsets(s, all);
        memset(offset, 0, sizeof *offset * items->count);
        for (uint32_t k = 0; k < s->leaf_count; k++)
            if (s->leaf[k].item != NONE)
                offset[s->leaf[k].item] = all[k];
    }
    *looks -= s->looks < *looks ? s->looks : *looks;
    arena_free(&arena);
    arena_free(&stack);
    return good;
}

/* The capacity, where seven eighths of all bytes are in use and not too much is live at once; else 0. */
static int64_t capacity_of(const PlanItems *items)
{
    Arena scratch = {0};
    int64_t capacity = 0, *live = ARENA_ARRAY(&scratch, int64_t, (size_t)items->section_count + 1);
    double used = 0;
    for (uint32_t i = 0; i < items->count; i++) {
        if (!items->item[i].piece_count)
            continue;
        live[items->piece[items->item[i].piece].lower]++;
        live[items->piece[items->item[i].piece].upper]--;
    }
    bool few = items->section_count > 0;
    for (uint32_t k = 0; k < items->section_count; k++) {
        capacity = items->load[k] > capacity ? items->load[k] : capacity;
        used += (double)items->load[k];
        live[k] += k ? live[k - 1] : 0;
        few &= live[k] <= MOST_LIVE;
    }
    arena_free(&scratch);
    return few && used >= LEAST_USED * (double)capacity * items->section_count ? capacity : 0;
}

bool plan_planar(const PlanItems *items, uint64_t *looks, int64_t *offset)
{
    int64_t capacity = capacity_of(items);
    if (!capacity)
        return false;
    uint64_t half = *looks / 2, rest = *looks - half;
    bool good = sweep_once(items, capacity, false, &half, offset);
    *looks = half + rest;
    return good || sweep_once(items, capacity, true, looks, offset);
}
