/* Full loads by a walk through time that fills the gaps of each step by simulated annealing; see anneal.c. */
#ifndef NNC_PLAN_ANNEAL_H
#define NNC_PLAN_ANNEAL_H

#include "plan/items.h"

typedef struct PlanWalk {  /* how to go */
    int64_t height, below; /* hoped for; and to be kept below */
    uint32_t walks;        /* that go on from a section, each in as many ways */
    uint32_t seed;
    bool reversed; /* through time */
} PlanWalk;

/* Is as good as all of the peak live at all times, in many items, of which many begin at once?  Elsewhere there is
 * little that a walk could choose from. */
bool plan_anneal_suits(const PlanItems *items);

/* Places all items of a plain problem.  False, and no plan, when walks come too high, or at the limit of looks, which
 * count down. */
bool plan_anneal(const PlanItems *items, const PlanWalk *how, uint64_t *looks, int64_t *offset);

#endif
