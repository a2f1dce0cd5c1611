/* What begins at one step is dealt to the gaps there, for anneal.c. */
#ifndef NNC_PLAN_ANNEAL_DEAL_H
#define NNC_PLAN_ANNEAL_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#define DEAL_NONE UINT32_MAX
#define DEAL_UNIT 1024 /* of costs, and of lengths as parts of the mean size */
#define DEAL_EDGE (3 * DEAL_UNIT)

typedef struct DealItem {
    int64_t size;
    uint32_t upper;           /* the section where it ends */
    uint32_t gap, prev, next; /* in the gap's list, by address */
} DealItem;

typedef struct DealGap {
    int64_t size, sum;     /* sum: of what is in it */
    uint32_t below, above; /* where its neighbours end, or DEAL_NONE */
    uint32_t first, count;
    int64_t cost;
} DealGap;

typedef struct PlanDeal {
    DealItem *item; /* the largest first */
    uint32_t item_count;
    DealGap *gap; /* the last has no room, and is for what fits nowhere */
    uint32_t gap_count;
    int64_t mean;    /* size of all items */
    uint64_t random; /* state */
    uint64_t looks;
} PlanDeal;

/* Fills the gaps with all items; more is in none, but in the last, than it has room for.  So many moves are tried. */
void plan_deal(PlanDeal *deal, uint64_t moves);

/* The cost of so many free bytes in a row, from the root of their part of the mean, and of their edge. */
int64_t plan_deal_hole(int64_t mean, int64_t bytes);

/* Bytes as a part of the mean size. */
int64_t plan_deal_part(int64_t mean, int64_t bytes);

#endif
