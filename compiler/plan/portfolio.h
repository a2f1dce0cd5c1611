/* The allocators by name, each alone and all together, on the items of one region. */
#ifndef NNC_PLAN_PORTFOLIO_H
#define NNC_PLAN_PORTFOLIO_H

#include "plan/items.h"

typedef struct PlanAttempt { /* what is known of one region */
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

/* Runs the allocator, which plan_allocators must list.  Where there is none, a->peak stays INT64_MAX. */
void plan_attempt_run(PlanAttempt *a, const char *allocator);

/* Takes a->trial for the best so far, if it was placed and is; `by` names the allocator. */
void plan_attempt_consider(PlanAttempt *a, bool placed, const char *by);

static inline bool plan_attempt_proven(const PlanAttempt *a)
{
    return a->peak <= a->bound;
}

#endif
