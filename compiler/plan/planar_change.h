/* What ends and what begins at one time, for planar_search.c: sums of subsets, and partitions into groups of equal
 * sums. Sums are found by meeting in the middle (Horowitz and Sahni, "Computing partitions with applications to the
 * knapsack problem", Journal of the ACM 1974). */
#ifndef NNC_PLAN_PLANAR_CHANGE_H
#define NNC_PLAN_PLANAR_CHANGE_H

#include <stdbool.h>

#include "base/arena.h"

#define PLANAR_MASK    64 /* leaves of a side of which any may be in a group; all others are in the last */
#define PLANAR_MATCHES 12
#define PLANAR_FEW     14 /* leaves of both sides whose partitions are all listed */

typedef struct PlanarGroup { /* leaves that stand together, and those that take their place, of the same sum */
    uint64_t gone, put;      /* by their numbers within the change */
} PlanarGroup;

typedef struct PlanarMatches { /* the smallest subsets of a side with one sum */
    int64_t sum;               /* 0: not yet asked */
    uint64_t mask[PLANAR_MATCHES];
    uint32_t count;
} PlanarMatches;

typedef struct PlanarSide {
    const uint32_t *leaf;
    uint32_t count;
    struct PlanarHalf *half[2]; /* subsets of either half, by sum */
    uint32_t half_count[2];
    PlanarMatches *memo;
    uint32_t memo_count;
} PlanarSide;

typedef struct PlanarPartition {
    PlanarGroup group[PLANAR_FEW / 2];
    uint32_t count;
} PlanarPartition;

typedef struct PlanarChange {
    Arena *arena;
    const int64_t *size; /* [leaf] */
    PlanarSide gone, put;
    PlanarPartition *partition; /* finest first */
    uint32_t partition_count;   /* 0: there are too many leaves */
} PlanarChange;

/* size is of all leaves; as much ends as begins.  The lists stay the caller's. */
PlanarChange *plan_planar_change(Arena *arena, const int64_t *size, const uint32_t *gone, uint32_t gone_count,
                                 const uint32_t *put, uint32_t put_count);

/* The only groups that there can be; 0: there may be others, or too many to say. */
uint32_t plan_planar_certain(const PlanarChange *change, const PlanarGroup **group);

/* The subsets of a side, where there are too many leaves for partitions, with a sum above 0. */
const PlanarMatches *plan_planar_matches(PlanarSide *side, int64_t sum);

/* The leaves of a mask, and those of none that is used; returns their number. */
uint32_t plan_planar_leaves(const PlanarSide *side, uint64_t mask, uint32_t *leaf);
uint32_t plan_planar_rest(const PlanarSide *side, uint64_t used, uint32_t *leaf);

int64_t plan_planar_sum(const PlanarChange *change, const PlanarSide *side, uint64_t mask);

static inline uint64_t planar_bit(uint32_t k)
{
    return UINT64_C(1) << k;
}

static inline uint32_t planar_ones(uint64_t mask)
{
    mask -= mask >> 1 & UINT64_C(0x5555555555555555);
    mask = (mask & UINT64_C(0x3333333333333333)) + (mask >> 2 & UINT64_C(0x3333333333333333));
    mask = (mask + (mask >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)(mask * UINT64_C(0x0101010101010101) >> 56);
}

static inline uint32_t planar_lowest(uint64_t mask) /* its number; mask is not 0 */
{
    return planar_ones((mask & (~mask + 1)) - 1);
}

#endif
