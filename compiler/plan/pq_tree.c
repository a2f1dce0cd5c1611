/* A reduction is one walk.  Every subtree is empty (no leaf of it is marked), full, or partial.  The root of the
 * reduction is the deepest node that has all marked leaves below it; there the full children are brought together, and
 * of at most two partial ones the empty parts are spread out to either side of them, as a Q node.  Since what is marked
 * is replaced, the full parts are never written. */
#include "plan/pq_tree.h"

#include <assert.h>
#include <string.h>

#include "plan/sort.h"

typedef struct Reduction {
    const PqNode *node;
    uint32_t *marks, *leaves; /* [node]: below it */
    uint32_t all;             /* marked leaves */
    const uint32_t *put;
    uint32_t put_count;
    bool keep;   /* what is marked stays; nothing is put */
    PqNode *out; /* NULL: only whether it can be done is asked */
    uint32_t count;
} Reduction;

typedef enum Fill { EMPTY, PARTIAL, FULL } Fill;

static Fill fill_of(const Reduction *r, uint32_t n)
{
    return !r->marks[n] ? EMPTY : r->marks[n] == r->leaves[n] ? FULL : PARTIAL;
}

static void count_leaves(Reduction *r, uint32_t count, const uint8_t *marked)
{
    for (uint32_t n = count; n-- > 0;) {
        const PqNode *node = &r->node[n];
        r->leaves[n] = node->span == 1;
        r->marks[n] = node->span == 1 && marked[node->leaf];
        for (uint32_t c = n + 1; c < n + node->span; c += r->node[c].span) {
            r->leaves[n] += r->leaves[c];
            r->marks[n] += r->marks[c];
        }
    }
}

static uint32_t open_node(Reduction *r, uint32_t kind)
{
    if (r->out)
        r->out[r->count] = (PqNode){0, kind};
    return r->count++;
}

/* Ends a node that was opened with so many children; one or two make no Q node, and one no node. */
static void close_node(Reduction *r, uint32_t n, uint32_t children)
{
    if (!r->out)
        return;
    if (children == 1) {
        r->count--;
        memmove(&r->out[n], &r->out[n + 1], sizeof *r->out * (r->count - n));
        return;
    }
    r->out[n].span = r->count - n;
    if (children == 2)
        r->out[n].leaf = PQ_P;
}

static void write_subtree(Reduction *r, uint32_t n)
{
    uint32_t span = r->node[n].span;
    if (r->out)
        memcpy(&r->out[r->count], &r->node[n], sizeof *r->out * span);
    r->count += span;
}

static uint32_t write_put(Reduction *r)
{
    uint32_t n = open_node(r, PQ_P);
    for (uint32_t k = 0; k < r->put_count; k++) {
        uint32_t leaf = open_node(r, r->put[k]);
        if (r->out)
            r->out[leaf].span = 1;
    }
    close_node(r, n, r->put_count);
    return 1;
}

/* The children of a P node that are all empty, or full, as one node; returns 0 when there is none, else 1. */
static uint32_t write_alike(Reduction *r, uint32_t n, Fill fill)
{
    uint32_t group = open_node(r, PQ_P), children = 0;
    for (uint32_t c = n + 1; c < n + r->node[n].span; c += r->node[c].span)
        if (fill_of(r, c) == fill) {
            write_subtree(r, c);
            children++;
        }
    if (!children)
        r->count--;
    else
        close_node(r, group, children);
    return children > 0;
}

static uint32_t child(const Reduction *r, uint32_t n, uint32_t k)
{
    uint32_t c = n + 1;
    while (k--)
        c += r->node[c].span;
    return c;
}

static uint32_t count_children(const Reduction *r, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t c = n + 1; c < n + r->node[n].span; c += r->node[c].span)
        count++;
    return count;
}

static bool write_side(Reduction *r, uint32_t n, bool outward, uint32_t *children);

/* Of a partial P node: its empty children, then what is empty of the one that may be partial. */
static bool write_p_side(Reduction *r, uint32_t n, bool outward, uint32_t *children)
{
    uint32_t partial = 0, partials = 0;
    for (uint32_t c = n + 1; c < n + r->node[n].span; c += r->node[c].span)
        if (fill_of(r, c) == PARTIAL) {
            partial = c;
            partials++;
        }
    if (partials > 1)
        return false;
    if (!outward || r->keep)
        *children += write_alike(r, n, outward ? FULL : EMPTY);
    if (partials && !write_side(r, partial, outward, children))
        return false;
    if (outward || r->keep)
        *children += write_alike(r, n, outward ? EMPTY : FULL);
    return true;
}

/* Of a partial Q node: its children must be empty, partial, full in this order or the reverse. */
static bool write_q_side(Reduction *r, uint32_t n, bool outward, uint32_t *children)
{
    uint32_t count = count_children(r, n), first = child(r, n, 0), last = child(r, n, count - 1);
    bool reversed = fill_of(r, first) > fill_of(r, last);
    Fill before = EMPTY;
    for (uint32_t k = 0; k < count; k++) {
        Fill fill = fill_of(r, child(r, n, reversed ? count - 1 - k : k));
        if (fill < before || (fill == PARTIAL && before == PARTIAL))
            return false;
        before = fill;
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t c = child(r, n, reversed != outward ? count - 1 - k : k);
        Fill fill = fill_of(r, c);
        if (fill == EMPTY || (fill == FULL && r->keep)) {
            write_subtree(r, c);
            ++*children;
        } else if (fill == PARTIAL && !write_side(r, c, outward, children))
            return false;
    }
    return true;
}

/* What is empty of a partial node, as children of a Q node, what is full to come after it, or, outward, before. */
static bool write_side(Reduction *r, uint32_t n, bool outward, uint32_t *children)
{
    return r->node[n].leaf == PQ_P ? write_p_side(r, n, outward, children) : write_q_side(r, n, outward, children);
}

static bool reduce_p(Reduction *r, uint32_t n)
{
    uint32_t partial[2], partials = 0, children = 0;
    for (uint32_t c = n + 1; c < n + r->node[n].span; c += r->node[c].span)
        if (fill_of(r, c) == PARTIAL) {
            if (partials == 2)
                return false;
            partial[partials++] = c;
        }
    uint32_t whole = open_node(r, PQ_P), outer = 0;
    for (uint32_t c = n + 1; c < n + r->node[n].span; c += r->node[c].span)
        if (fill_of(r, c) == EMPTY) {
            write_subtree(r, c);
            outer++;
        }
    uint32_t row = open_node(r, PQ_Q);
    if (partials > 0 && !write_side(r, partial[0], false, &children))
        return false;
    children += r->keep ? write_alike(r, n, FULL) : write_put(r);
    if (partials > 1 && !write_side(r, partial[1], true, &children))
        return false;
    close_node(r, row, children);
    close_node(r, whole, outer + 1);
    return true;
}

static bool reduce_q(Reduction *r, uint32_t n)
{
    uint32_t count = count_children(r, n), children = 0, row = open_node(r, PQ_Q), c = n + 1;
    enum { BEFORE, WITHIN, AFTER } at = BEFORE;
    for (uint32_t k = 0; k < count; k++, c += r->node[c].span) {
        Fill fill = fill_of(r, c);
        if (fill == EMPTY) {
            at = at == BEFORE ? BEFORE : AFTER;
            write_subtree(r, c);
            children++;
            continue;
        }
        if (at == AFTER)
            return false;
        bool begins = at == BEFORE;
        if (begins && fill == PARTIAL && !write_side(r, c, false, &children))
            return false;
        if (begins && !r->keep)
            children += write_put(r);
        if (fill == FULL && r->keep) {
            write_subtree(r, c);
            children++;
        }
        at = WITHIN;
        if (!begins && fill == PARTIAL) {
            if (!write_side(r, c, true, &children))
                return false;
            at = AFTER;
        }
    }
    close_node(r, row, children);
    return true;
}

/* Writes the subtree, which has all marked leaves, reduced. */
static bool reduce(Reduction *r, uint32_t n)
{
    if (fill_of(r, n) == FULL) {
        if (r->keep)
            write_subtree(r, n);
        else
            write_put(r);
        return true;
    }
    for (uint32_t c = n + 1; c < n + r->node[n].span; c += r->node[c].span)
        if (r->marks[c] == r->all) {
            uint32_t whole = open_node(r, r->node[n].leaf), count = 0;
            for (uint32_t k = n + 1; k < n + r->node[n].span; k += r->node[k].span, count++)
                if (k != c)
                    write_subtree(r, k);
                else if (!reduce(r, k))
                    return false;
            close_node(r, whole, count);
            return true;
        }
    return r->node[n].leaf == PQ_P ? reduce_p(r, n) : reduce_q(r, n);
}

static Reduction reduction_of(Arena *arena, const PqTree *tree, const uint8_t *marked)
{
    Reduction r = {.node = tree->node};
    r.marks = ARENA_ARRAY(arena, uint32_t, 2 * (size_t)tree->count);
    r.leaves = r.marks + tree->count;
    count_leaves(&r, tree->count, marked);
    r.all = r.marks[0];
    return r;
}

bool plan_pq_together(Arena *scratch, const PqTree *tree, const uint8_t *marked)
{
    ArenaMark mark = arena_mark(scratch);
    Reduction r = reduction_of(scratch, tree, marked);
    r.keep = true;
    bool good = reduce(&r, 0);
    arena_reset(scratch, mark);
    return good;
}

static bool write_reduced(Arena *arena, const PqTree *tree, const uint8_t *marked, const uint32_t *put,
                          uint32_t put_count, PqTree *result)
{
    ArenaMark mark = arena_mark(arena);
    PqNode *out = ARENA_ARRAY(arena, PqNode, 2 * ((size_t)tree->count + put_count) + 2);
    Reduction r = reduction_of(arena, tree, marked);
    r.put = put;
    r.put_count = put_count;
    r.keep = !put_count;
    r.out = out;
    assert(r.all);
    bool good = reduce(&r, 0);
    if (!good)
        arena_reset(arena, mark);
    *result = (PqTree){good ? out : NULL, good ? r.count : 0};
    return good;
}

bool plan_pq_replace(Arena *arena, const PqTree *tree, const uint8_t *marked, const uint32_t *put, uint32_t put_count,
                     PqTree *result)
{
    assert(put_count);
    return write_reduced(arena, tree, marked, put, put_count, result);
}

bool plan_pq_reduce(Arena *arena, const PqTree *tree, const uint8_t *marked, PqTree *result)
{
    return write_reduced(arena, tree, marked, NULL, 0, result);
}

PqTree plan_pq_free(Arena *arena, const uint32_t *leaf, uint32_t count)
{
    PqNode *node = ARENA_ARRAY(arena, PqNode, (size_t)count + 1);
    Reduction r = {.put = leaf, .put_count = count, .out = node};
    write_put(&r);
    return (PqTree){node, r.count};
}

/* log2 in 65,536ths, of 2^31 to 2^32, less 31. */
static uint64_t log2_of(uint64_t x)
{
    uint64_t result = 0;
    for (int bit = 0; bit < 16; bit++) {
        x = x * x >> 31;
        result = result << 1 | x >> 32;
        x >>= x >> 32;
    }
    return result;
}

/* The number of orders is a product; it is kept as x * 2^power, rounded down. */
uint64_t plan_pq_freedom(const PqTree *tree)
{
    uint64_t x = UINT64_C(1) << 31, power = 0;
    for (uint32_t n = 0; n < tree->count; n++) {
        uint32_t children = 0;
        power += tree->node[n].leaf == PQ_Q;
        for (uint32_t c = n + 1; tree->node[n].leaf == PQ_P && c < n + tree->node[n].span; c += tree->node[c].span)
            for (x *= ++children; x >> 32; x >>= 1)
                power++;
    }
    return (power << 16) + log2_of(x);
}

typedef struct Ordering {
    Arena *scratch;
    const PqNode *node;
    int64_t *least, *most; /* [node]: rank below it */
    uint32_t *order, count;
} Ordering;

static void write_order(Ordering *o, uint32_t n)
{
    if (o->node[n].span == 1) {
        o->order[o->count++] = o->node[n].leaf;
        return;
    }
    ArenaMark mark = arena_mark(o->scratch);
    SortKey *key = ARENA_ARRAY(o->scratch, SortKey, o->node[n].span);
    uint32_t count = 0;
    for (uint32_t c = n + 1; c < n + o->node[n].span; c += o->node[c].span)
        key[count++] = (SortKey){(uint64_t)o->least[c] + (uint64_t)o->most[c], c};
    bool reversed = key[0].key > key[count - 1].key;
    if (o->node[n].leaf == PQ_P)
        sort_ascending(o->scratch, key, count);
    for (uint32_t k = 0; k < count; k++)
        write_order(o, key[o->node[n].leaf == PQ_Q && reversed ? count - 1 - k : k].index);
    arena_reset(o->scratch, mark);
}

void plan_pq_order(Arena *scratch, const PqTree *tree, const int64_t *rank, uint32_t *order)
{
    ArenaMark mark = arena_mark(scratch);
    Ordering o = {.scratch = scratch, .node = tree->node, .order = order};
    o.least = ARENA_ARRAY(scratch, int64_t, tree->count);
    o.most = ARENA_ARRAY(scratch, int64_t, tree->count);
    for (uint32_t n = tree->count; n-- > 0;) {
        bool leaf = tree->node[n].span == 1;
        o.least[n] = leaf ? rank[tree->node[n].leaf] : INT64_MAX;
        o.most[n] = leaf ? rank[tree->node[n].leaf] : INT64_MIN;
        for (uint32_t c = n + 1; c < n + tree->node[n].span; c += tree->node[c].span) {
            o.least[n] = o.least[c] < o.least[n] ? o.least[c] : o.least[n];
            o.most[n] = o.most[c] > o.most[n] ? o.most[c] : o.most[n];
        }
    }
    write_order(&o, 0);
    arena_reset(scratch, mark);
}
