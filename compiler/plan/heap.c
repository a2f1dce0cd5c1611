/* Placement by walking through time as a heap would at run time, in O(n log n).
 *
 * All blocks, taken and free, form a list in order of address, for merging; the free ones also a treap, ordered by
 * size for best fit and by address, with the largest size of each subtree, for first fit.  Its priorities are a hash
 * of the block's number, so that its shape, and with it the time, is the same in every run. */
#include "plan/greedy.h"

#include "plan/sort.h"

#define NONE UINT32_MAX

typedef struct Block {
    int64_t at, size;
    int64_t most;        /* the largest size in this subtree */
    uint32_t prev, next; /* in order of address */
    uint32_t left, right, priority;
    bool free;
} Block;

typedef struct Heap {
    Arena scratch;
    PlanFit fit;
    Block *block;
    uint32_t count, capacity;
    uint32_t root;  /* of the treap of free blocks */
    uint32_t spare; /* block numbers to use again, a list through `next` */
    uint32_t last;  /* the block that ends at the top; never free */
} Heap;

static bool before(const Heap *h, const Block *a, const Block *b)
{
    if (h->fit == PLAN_BEST_FIT && a->size != b->size)
        return a->size < b->size;
    return a->at < b->at;
}

static uint32_t update(Heap *h, uint32_t n)
{
    Block *b = &h->block[n];
    b->most = b->size;
    if (b->left != NONE && h->block[b->left].most > b->most)
        b->most = h->block[b->left].most;
    if (b->right != NONE && h->block[b->right].most > b->most)
        b->most = h->block[b->right].most;
    return n;
}

/* Splits the tree at n into what comes before the key and what does not; the depth is logarithmic. */
static void split(Heap *h, uint32_t n, const Block *key, uint32_t *less, uint32_t *more)
{
    if (n == NONE) {
        *less = *more = NONE;
    } else if (before(h, &h->block[n], key)) {
        split(h, h->block[n].right, key, &h->block[n].right, more);
        *less = update(h, n);
    } else {
        split(h, h->block[n].left, key, less, &h->block[n].left);
        *more = update(h, n);
    }
}

static uint32_t join(Heap *h, uint32_t a, uint32_t b)
{
    if (a == NONE || b == NONE)
        return a == NONE ? b : a;
    if (h->block[a].priority > h->block[b].priority) {
        h->block[a].right = join(h, h->block[a].right, b);
        return update(h, a);
    }
    h->block[b].left = join(h, a, h->block[b].left);
    return update(h, b);
}

static uint32_t hash(uint32_t x) /* a bijection that spreads consecutive numbers */
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static void insert_free(Heap *h, uint32_t n)
{
    uint32_t less, more;
    Block *b = &h->block[n];
    b->free = true;
    b->left = b->right = NONE;
    b->most = b->size;
    split(h, h->root, b, &less, &more);
    h->root = join(h, join(h, less, n), more);
}

static void remove_free(Heap *h, uint32_t n)
{
    uint32_t less, more, self;
    Block after = h->block[n];
    after.at++; /* addresses are distinct, so this key lies right behind the block in either order */
    split(h, h->root, &h->block[n], &less, &more);
    split(h, more, &after, &self, &more);
    h->root = join(h, less, more);
    h->block[n].free = false;
}

static uint32_t find_fit(const Heap *h, int64_t size)
{
    uint32_t found = NONE;
    for (uint32_t n = h->root; n != NONE;) {
        const Block *b = &h->block[n];
        if (h->fit == PLAN_BEST_FIT) {
            found = b->size >= size ? n : found;
            n = b->size >= size ? b->left : b->right;
        } else if (b->most < size) {
            break;
        } else if (b->left != NONE && h->block[b->left].most >= size) {
            n = b->left;
        } else if (b->size >= size) {
            return n;
        } else {
            n = b->right;
        }
    }
    return found;
}

/* A new block behind `prev` in the list. */
static uint32_t new_block(Heap *h, uint32_t prev, uint32_t next, int64_t at, int64_t size)
{
    uint32_t n = h->spare;
    Block b = {.at = at, .size = size, .prev = prev, .next = next, .left = NONE, .right = NONE};
    if (n != NONE) {
        h->spare = h->block[n].next;
        b.priority = h->block[n].priority;
        h->block[n] = b;
    } else {
        n = h->count;
        b.priority = hash(n);
        ARENA_PUSH(&h->scratch, h->block, h->count, h->capacity, b);
    }
    if (prev != NONE)
        h->block[prev].next = n;
    if (next != NONE)
        h->block[next].prev = n;
    else
        h->last = n;
    return n;
}

static void drop_block(Heap *h, uint32_t n)
{
    uint32_t prev = h->block[n].prev, next = h->block[n].next;
    if (prev != NONE)
        h->block[prev].next = next;
    if (next != NONE)
        h->block[next].prev = prev;
    else
        h->last = prev;
    h->block[n].next = h->spare;
    h->spare = n;
}

static uint32_t take(Heap *h, int64_t size)
{
    uint32_t n = find_fit(h, size);
    if (n == NONE) {
        int64_t top = h->last == NONE ? 0 : h->block[h->last].at + h->block[h->last].size;
        return new_block(h, h->last, NONE, top, size);
    }
    remove_free(h, n);
    int64_t rest = h->block[n].size - size;
    h->block[n].size = size;
    if (rest)
        insert_free(h, new_block(h, n, h->block[n].next, h->block[n].at + size, rest));
    return n;
}

static void give(Heap *h, uint32_t n)
{
    uint32_t next = h->block[n].next, prev = h->block[n].prev;
    if (next != NONE && h->block[next].free) {
        remove_free(h, next);
        h->block[n].size += h->block[next].size;
        drop_block(h, next);
    }
    if (prev != NONE && h->block[prev].free) {
        remove_free(h, prev);
        h->block[prev].size += h->block[n].size;
        drop_block(h, n);
        n = prev;
    }
    if (h->block[n].next == NONE)
        drop_block(h, n);
    else
        insert_free(h, n);
}

typedef struct Walk { /* time as the walk sees it, forward or backward */
    const PlanItems *items;
    bool reversed;
} Walk;

static uint32_t begins(const Walk *w, uint32_t item)
{
    const PlanPiece *piece = &w->items->piece[w->items->item[item].piece];
    return w->reversed ? w->items->section_count - piece->upper : piece->lower;
}

static uint32_t ends(const Walk *w, uint32_t item)
{
    const PlanPiece *piece = &w->items->piece[w->items->item[item].piece];
    return w->reversed ? w->items->section_count - piece->lower : piece->upper;
}

void plan_heap(const PlanItems *items, PlanFit fit, bool reversed, int64_t *offset)
{
    Heap h = {.fit = fit, .root = NONE, .spare = NONE, .last = NONE};
    Walk walk = {items, reversed};
    uint32_t *sequence = ARENA_ARRAY(&h.scratch, uint32_t, items->count);
    uint32_t *block = ARENA_ARRAY(&h.scratch, uint32_t, items->count);
    uint32_t count = plan_order(&h.scratch, items, reversed ? PLAN_BY_SIZE : PLAN_BY_START, sequence);
    SortKey *birth = ARENA_ARRAY(&h.scratch, SortKey, count), *death = ARENA_ARRAY(&h.scratch, SortKey, count);
    for (uint32_t k = 0; k < count; k++) {
        birth[k] = (SortKey){begins(&walk, sequence[k]), sequence[k]};
        death[k] = (SortKey){ends(&walk, sequence[k]), sequence[k]};
    }
    sort_ascending(&h.scratch, birth, count);
    sort_ascending(&h.scratch, death, count);

    for (uint32_t b = 0, d = 0; b < count; b++) {
        for (; death[d].key <= birth[b].key; d++)
            give(&h, block[death[d].index]);
        uint32_t item = birth[b].index;
        block[item] = take(&h, items->item[item].size);
        offset[item] = h.block[block[item]].at;
    }
    arena_free(&h.scratch);
}
