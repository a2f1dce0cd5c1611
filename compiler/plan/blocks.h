/* Placement by blocks: what fits together without a gap is joined before anything is placed, as in loading containers
 * (Eley, "Solving container loading problems by block arrangement", European Journal of Operational Research 2002). */
#ifndef NNC_PLAN_BLOCKS_H
#define NNC_PLAN_BLOCKS_H

#include "plan/items.h"

typedef struct PlanBlocks {
    PlanProblem problem; /* its buffers are the blocks that are left, live in sections */
    uint32_t *block;     /* [item]: the buffer that it is in */
    int64_t *at;         /* [item]: its offset in there */
} PlanBlocks;

/* Joins items of a plain problem, as far as `looks` go. */
void plan_blocks(Arena *arena, const PlanItems *items, uint64_t looks, PlanBlocks *blocks);

#endif
