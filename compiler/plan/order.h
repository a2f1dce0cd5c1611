/* Orders in which allocators take the items of a problem.  Every order is total: ties go to the larger size, then the
 * longer life, then the lower index. */
#ifndef NNC_PLAN_ORDER_H
#define NNC_PLAN_ORDER_H

#include "plan/items.h"

typedef enum PlanOrder {
    PLAN_BY_SIZE,      /* largest first: TensorFlow Lite's (Pisarchyk and Lee, "Efficient memory management for deep
                          neural net inference", 2020) */
    PLAN_BY_CONFLICTS, /* that with the most other buffers live during its life first */
    PLAN_BY_AREA,      /* size times length of life */
    PLAN_BY_LENGTH,    /* longest life first */
    PLAN_BY_START,     /* in order of execution */
    PLAN_BY_BREADTH,   /* by the fullest section it lives in, then by size (Pisarchyk and Lee's "greedy by breadth") */
    PLAN_ORDERS
} PlanOrder;

extern const char *const plan_order_name[PLAN_ORDERS];

/* Items with storage only (piece_count > 0), pinned ones before all others; returns the count. */
uint32_t plan_order(Arena *arena, const PlanItems *items, PlanOrder order, uint32_t *sequence);

/* [count]: the number of conflicting pairs each item has a part in; and the load of the fullest section of each. */
uint32_t *plan_conflicts(Arena *arena, const PlanItems *items);
int64_t *plan_breadth(Arena *arena, const PlanItems *items);

#endif
