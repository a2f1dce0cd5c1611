/* What is known of one region while allocators try it one after the other. */
#ifndef NNC_PLAN_ATTEMPT_H
#define NNC_PLAN_ATTEMPT_H

#include "plan/items.h"

typedef struct PlanAttempt {
    const PlanItems *items;
    const PlanProblem *problem;
    int effort;
    int64_t wanted;          /* a peak that is low enough, to be searched for; 0: none */
    int64_t *offset, *trial; /* [item]; the best so far, and room for the next */
    int64_t peak;            /* INT64_MAX: no plan yet */
    int64_t bound;           /* no plan is lower */
    const char *by;
    uint64_t looks; /* work that may still be done, see PlanLimit */
    uint64_t nodes; /* of the search */
} PlanAttempt;

/* Ready for one run; the arena holds it. */
PlanAttempt plan_attempt(Arena *arena, const PlanProblem *problem, const PlanItems *items, int effort, int64_t wanted);

/* Takes a->trial for the best so far, if it was placed and is; `by` names the allocator. */
void plan_attempt_consider(PlanAttempt *a, bool placed, const char *by);

static inline bool plan_attempt_proven(const PlanAttempt *a)
{
    return a->peak <= a->bound;
}

#endif
