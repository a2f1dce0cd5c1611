/* Perfect packings by a sweep through time that decides as late as it can; see planar.c. */
#ifndef NNC_PLAN_PLANAR_H
#define NNC_PLAN_PLANAR_H

#include "plan/items.h"

/* Places all items of a plain problem such that the peak is the load of the fullest section; false when no such plan
 * was found within the looks, which count down, at nodes of trees, or when the load is too uneven for one to be likely.
 */
bool plan_planar(const PlanItems *items, uint64_t *looks, int64_t *offset);

#endif
