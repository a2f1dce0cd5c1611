/* Lower bounds of the peak, from what is live at one time. */
#ifndef NNC_PLAN_BOUND_H
#define NNC_PLAN_BOUND_H

#include "plan/items.h"

/* The units by which items are looked at in classes: the greatest common divisor of all alignments first, then the
 * alignments and the common divisors of pairs of them, so many at most.  Of a class are the items whose alignment is a
 * multiple of its unit.  Returns the count, at least 1. */
uint32_t plan_classes(const PlanItems *items, int64_t *unit, uint32_t most);

/* [piece]: sizes padded to the unit, and the padding in them.  Pieces of other classes have size 0.  Since those of the
 * class lie at multiples of the unit, nothing of the class can use the padding, but for what lies topmost. */
void plan_class_sizes(const PlanItems *items, int64_t unit, int64_t *size, int64_t *slack);

/* Fills items->load and items->lower_bound. */
void plan_measure(Arena *scratch, PlanItems *items);

#endif
