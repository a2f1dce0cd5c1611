#include "plan/planar_change.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PARTS 1000 /* partitions */
#define MOST_MEMO  4096 /* 2^12 */
#define MOST_HALF  8192

typedef struct PlanarHalf { /* a subset of one half of a side */
    int64_t sum;
    uint64_t mask;
} PlanarHalf;

uint32_t plan_planar_leaves(const PlanarSide *side, uint64_t mask, uint32_t *leaf)
{
    uint32_t count = 0;
    for (; mask; mask &= mask - 1)
        leaf[count++] = side->leaf[planar_lowest(mask)];
    return count;
}

uint32_t plan_planar_rest(const PlanarSide *side, uint64_t used, uint32_t *leaf)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < side->count; k++)
        if (k >= PLANAR_MASK || !(used >> k & 1))
            leaf[count++] = side->leaf[k];
    return count;
}

int64_t plan_planar_sum(const PlanarChange *c, const PlanarSide *side, uint64_t mask)
{
    int64_t sum = 0;
    for (; mask; mask &= mask - 1)
        sum += c->size[side->leaf[planar_lowest(mask)]];
    return sum;
}

/* Partitions */

typedef struct Listing {
    PlanarChange *change;
    const int64_t *sum; /* [mask]: of what ends, less what begins */
    uint32_t ends;      /* bits of what ends */
    uint32_t count;
    PlanarPartition *partition;
} Listing;

static void list_partitions(Listing *l, uint32_t left, PlanarPartition below)
{
    if (l->count == MOST_PARTS)
        return;
    if (!left) {
        l->partition[l->count++] = below;
        return;
    }
    uint32_t low = left & (~left + 1), rest = left ^ low, some = rest;
    do {
        uint32_t part = some | low;
        if (l->sum[part] == 0) {
            PlanarPartition with = below;
            with.group[with.count++] = (PlanarGroup){part & (planar_bit(l->ends) - 1), part >> l->ends};
            list_partitions(l, left ^ part, with);
        }
        some = (some - 1) & rest;
    } while (some != rest);
}

static void keep_partitions(PlanarChange *c, const Listing *l)
{
    c->partition = ARENA_ARRAY(c->arena, PlanarPartition, l->count);
    for (uint32_t groups = PLANAR_FEW / 2 + 1; groups-- > 0;)
        for (uint32_t k = 0; k < l->count; k++)
            if (l->partition[k].count == groups)
                c->partition[c->partition_count++] = l->partition[k];
}

static void find_partitions(PlanarChange *c)
{
    Arena scratch = {0};
    uint32_t ends = c->gone.count, leaves = ends + c->put.count, all = (UINT32_C(1) << leaves) - 1;
    int64_t *sum = ARENA_ARRAY(&scratch, int64_t, (size_t)all + 1);
    for (uint32_t mask = 1; mask <= all; mask++) {
        uint32_t k = planar_lowest(mask);
        sum[mask] = sum[mask & (mask - 1)] + (k < ends ? c->size[c->gone.leaf[k]] : -c->size[c->put.leaf[k - ends]]);
    }
    Listing l = {
        .change = c, .sum = sum, .ends = ends, .partition = ARENA_ARRAY(&scratch, PlanarPartition, MOST_PARTS)};
    list_partitions(&l, all, (PlanarPartition){.count = 0});
    keep_partitions(c, &l);
    arena_free(&scratch);
}

/* Sums of subsets */

static int by_sum(const void *a, const void *b)
{
    const PlanarHalf *x = a, *y = b;
    if (x->sum != y->sum)
        return x->sum < y->sum ? -1 : 1;
    return x->mask < y->mask ? -1 : x->mask > y->mask;
}

static void add_half(const PlanarChange *c, PlanarSide *side, uint32_t which, uint32_t k, uint32_t end, uint32_t most,
                     PlanarHalf below)
{
    side->half[which][side->half_count[which]++] = below;
    for (; most && k < end; k++)
        add_half(c, side, which, k + 1, end, most - 1,
                 (PlanarHalf){below.sum + c->size[side->leaf[k]], below.mask | planar_bit(k)});
}

/* Of many leaves in one half only subsets of a few, so that there are at most MOST_HALF. */
static void find_sums(PlanarChange *c, PlanarSide *side)
{
    uint32_t count = side->count < PLANAR_MASK ? side->count : PLANAR_MASK;
    for (uint32_t which = 0; which < 2; which++) {
        uint32_t first = which ? count / 2 : 0, end = which ? count : count / 2, n = end - first;
        uint32_t most = n <= 12 ? n : n <= 16 ? 4 : n <= 26 ? 3 : 2;
        side->half[which] = ARENA_ARRAY(c->arena, PlanarHalf, MOST_HALF);
        add_half(c, side, which, first, end, most, (PlanarHalf){0, 0});
        qsort(side->half[which], side->half_count[which], sizeof(PlanarHalf), by_sum);
    }
    side->memo = ARENA_ARRAY(c->arena, PlanarMatches, MOST_MEMO);
}

static void add_match(PlanarMatches *m, uint64_t mask)
{
    uint32_t size = planar_ones(mask), at = m->count;
    if (m->count == PLANAR_MATCHES && planar_ones(m->mask[at - 1]) <= size)
        return;
    if (m->count == PLANAR_MATCHES)
        at = --m->count;
    for (; at > 0 && planar_ones(m->mask[at - 1]) > size; at--)
        m->mask[at] = m->mask[at - 1];
    m->mask[at] = mask;
    m->count++;
}

static void match_halves(const PlanarSide *side, PlanarMatches *m)
{
    const PlanarHalf *a = side->half[0], *b = side->half[1];
    uint32_t j = side->half_count[1];
    for (uint32_t i = 0; i < side->half_count[0] && a[i].sum <= m->sum; i++) {
        while (j > 0 && b[j - 1].sum + a[i].sum > m->sum)
            j--;
        for (uint32_t k = j; k > 0 && b[k - 1].sum + a[i].sum == m->sum; k--)
            add_match(m, a[i].mask | b[k - 1].mask);
    }
}

const PlanarMatches *plan_planar_matches(PlanarSide *side, int64_t sum)
{
    uint32_t at = (uint32_t)((uint64_t)sum * UINT64_C(0x9e3779b97f4a7c15) >> 52);
    while (side->memo[at].sum && side->memo[at].sum != sum)
        at = (at + 1) % MOST_MEMO;
    if (side->memo[at].sum)
        return &side->memo[at];
    if (++side->memo_count > MOST_MEMO / 4 * 3) {
        memset(side->memo, 0, sizeof *side->memo * MOST_MEMO);
        side->memo_count = 1;
    }
    side->memo[at].sum = sum;
    match_halves(side, &side->memo[at]);
    return &side->memo[at];
}

PlanarChange *plan_planar_change(Arena *arena, const int64_t *size, const uint32_t *gone, uint32_t gone_count,
                                 const uint32_t *put, uint32_t put_count)
{
    PlanarChange *c = ARENA_NEW(arena, PlanarChange);
    c->arena = arena;
    c->size = size;
    c->gone = (PlanarSide){.leaf = gone, .count = gone_count};
    c->put = (PlanarSide){.leaf = put, .count = put_count};
    if (gone_count + put_count <= PLANAR_FEW) {
        find_partitions(c);
    } else if (gone_count > 1 && put_count > 1) {
        find_sums(c, &c->gone);
        find_sums(c, &c->put);
    }
    return c;
}

uint32_t plan_planar_certain(const PlanarChange *change, const PlanarGroup **group)
{
    if (change->partition_count != 1)
        return 0;
    *group = change->partition[0].group;
    return change->partition[0].count;
}
