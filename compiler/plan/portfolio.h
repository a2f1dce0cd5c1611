/* The allocators by name, each alone and all together, on the items of one region. */
#ifndef NNC_PLAN_PORTFOLIO_H
#define NNC_PLAN_PORTFOLIO_H

#include "plan/attempt.h"

/* Runs the allocator, which plan_allocators must list.  Where there is none, a->peak stays INT64_MAX. */
void plan_attempt_run(PlanAttempt *a, const char *allocator);

#endif
