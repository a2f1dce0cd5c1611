/* Orders in which allocators take the items of a problem.  Every order is total: where its keys tie, the lower index
 * comes first. */
#ifndef NNC_PLAN_ORDER_H
#define NNC_PLAN_ORDER_H

#include "plan/items.h"

/* X(NAME, name, what comes first, keys): the keys in turn, most important first, each falling but for S.
 *
 * s: size.  l: length of life.  a: size times length.  c: the number of other buffers live during its life.
 * S: first step.  e: last section.  b: load of the fullest section it lives in.  g: alignment.
 *
 * By size is TensorFlow Lite's; by breadth is from the same article (Pisarchyk and Lee, "Efficient memory management
 * for deep neural net inference", 2020). */
#define PLAN_ORDER_ROWS(X)                                                                                             \
    X(SIZE, "size", "largest first", "sl")                                                                             \
    X(AGE, "age", "largest first, of equals the earliest", "sS")                                                       \
    X(ALIGNMENT, "alignment", "largest alignment first, of equals the largest", "gsl")                                 \
    X(CONFLICTS, "conflicts", "most neighbours in time first", "csl")                                                  \
    X(AREA, "area", "largest size times life first", "asl")                                                            \
    X(LENGTH, "length", "longest life first", "ls")                                                                    \
    X(START, "start", "in order of execution", "Ssl")                                                                  \
    X(END, "end", "in order of execution backwards", "esl")                                                            \
    X(BREADTH, "breadth", "the fullest step's buffers first, by size", "bsl")

typedef enum PlanOrder {
#define PLAN_ORDER_ENUM(NAME, name, first, keys) PLAN_BY_##NAME,
    PLAN_ORDER_ROWS(PLAN_ORDER_ENUM)
#undef PLAN_ORDER_ENUM
        PLAN_ORDERS
} PlanOrder;

extern const char *const plan_order_name[PLAN_ORDERS];

/* Items with storage only (piece_count > 0), pinned ones before all others; returns the count. */
uint32_t plan_order(Arena *arena, const PlanItems *items, PlanOrder order, uint32_t *sequence);

/* Is it the same as an order before it?  With one alignment everywhere the one by alignment is that by size. */
static inline bool plan_order_repeats(const PlanItems *items, PlanOrder order)
{
    return order == PLAN_BY_ALIGNMENT && items->uniform;
}

/* [count]: the number of conflicting pairs each item has a part in; and the load of the fullest section of each. */
uint32_t *plan_conflicts(Arena *arena, const PlanItems *items);
int64_t *plan_breadth(Arena *arena, const PlanItems *items);

#endif
