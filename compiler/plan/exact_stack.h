/* Can what a section has yet to place be stacked at all?  A bound for the search (exact_state.h) where alignments
 * differ, and sums of sizes say little. */
#ifndef NNC_PLAN_EXACT_STACK_H
#define NNC_PLAN_EXACT_STACK_H

#include <stdbool.h>

#include "base/arena.h"

#define PLAN_MOST_STACKED 16
#define PLAN_MOST_UNITS   8

typedef struct PlanStacked { /* an item that is to be placed */
    int64_t least;           /* it cannot lie lower */
    int64_t size, alignment; /* bytes */
    uint32_t item;
} PlanStacked;

typedef struct PlanStack {
    PlanStacked item[PLAN_MOST_STACKED];
    uint32_t count;
    int64_t target;
    const int64_t *unit; /* [unit_count] of classes, see plan_classes */
    uint32_t unit_count;
    uint8_t order[PLAN_MOST_STACKED]; /* result: the items from the lowest up */
    int64_t need;                     /* result, when there is no order: the target must be at least so high */
    uint32_t work;                    /* result: sets looked at */
} PlanStack;

/* The height of the stack in the order given. */
int64_t plan_stack_height(const PlanStack *stack);

typedef struct PlanSets PlanSets; /* room to work */

PlanSets *plan_sets_new(Arena *arena);

/* Is there an order of at most the target's height?  Work: two to the number of items at most. */
bool plan_stack_fits(PlanStack *stack, PlanSets *sets);

#endif
