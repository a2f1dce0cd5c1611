/* Placement by conflicts that intervals do not say (PlanProblem.conflict). */
#ifndef NNC_PLAN_RELATION_H
#define NNC_PLAN_RELATION_H

#include "plan/items.h"

#define PLAN_RELATION_ORDERS 4
extern const char *const plan_relation_name[PLAN_RELATION_ORDERS]; /* of the allocator that an order is */

/* Fills offset[item], in one of the orders; false when pinned items contradict each other. */
bool plan_relation(const PlanItems *items, const PlanProblem *problem, uint32_t order, int64_t *offset);

#endif
