/* From a good plan to a better one, or to a proof: drives the exhaustive search (exact.h) with rising budgets. */
#ifndef NNC_PLAN_TIGHTEN_H
#define NNC_PLAN_TIGHTEN_H

#include "plan/items.h"

typedef struct PlanBest {
    int64_t *offset; /* [item]; read only where there is none yet (peak INT64_MAX) */
    int64_t peak;
    int64_t bound;  /* no plan is lower: may rise */
    int64_t wanted; /* a peak that would do; 0: none */
    uint64_t nodes;
    bool improved;
} PlanBest;

/* Spends about `budget` nodes, and as many again for what is wanted where that is neither reached nor refuted by then.
 * Stops when peak = bound. */
void plan_tighten(const PlanItems *items, uint64_t budget, PlanBest *best);

/* Would the search's tables be too large? */
bool plan_too_large(const PlanItems *items, uint64_t pairs);

#endif
