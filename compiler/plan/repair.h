/* Orders that learn from the plans they lead to, where the search cannot go. */
#ifndef NNC_PLAN_REPAIR_H
#define NNC_PLAN_REPAIR_H

#include "plan/attempt.h"

/* Lowers a->peak, where it can; work in proportion to a->effort. */
void plan_repair(PlanAttempt *a);

#endif
