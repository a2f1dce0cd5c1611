/* Fast placements.  Each fills offset[item].  Pinned items are placed first. */
#ifndef NNC_PLAN_GREEDY_H
#define NNC_PLAN_GREEDY_H

#include "plan/order.h"

typedef enum PlanFit {
    PLAN_FIRST_FIT, /* the lowest gap that is large enough */
    PLAN_BEST_FIT,  /* the tightest gap, the lower of equals */
    PLAN_FITS
} PlanFit;

/* False when pinned items overlap: then no placement exists. */
bool plan_pins_agree(const PlanItems *items);

typedef struct PlanLimit { /* of a run, which gives up at either */
    int64_t below;         /* only a plan with a lower peak is wanted; INT64_MAX: any */
    uint64_t looks;        /* work that may be done, at pieces, runs and nodes looked at: counts down */
    uint32_t failed;       /* the item at which it did */
} PlanLimit;

/* Takes items in the given order and puts each into a gap between those placed before it that are live at the same
 * time.  Work: that of the cheaper PlanWay.  False when pins do not agree, or at the limit. */
bool plan_greedy(const PlanItems *items, PlanOrder order, PlanFit fit, PlanLimit *limit, int64_t *offset);

#define PLAN_GIVEN_UP UINT32_MAX

/* As plan_greedy by a sequence of items; one that comes as high as limit->below is left out, and listed in
 * misfit[count].  Returns how many these are, or PLAN_GIVEN_UP at the limit of looks. */
uint32_t plan_greedy_below(const PlanItems *items, const uint32_t *sequence, uint32_t count, PlanFit fit,
                           PlanLimit *limit, int64_t *offset, uint32_t *misfit);

typedef enum PlanWay {                   /* to find the gaps; offsets are the same */
                       PLAN_WAY_FASTER,  /* that of the two below which has less to look at */
                       PLAN_WAY_PAIRS,   /* work: the number of conflicting pairs, times a logarithm */
                       PLAN_WAY_COLUMNS, /* work: for each item about the root of the number of its conflicts, see
                                            columns.h */
} PlanWay;

/* plan_greedy in a way that is asked for; for tests. */
bool plan_greedy_by(const PlanItems *items, PlanOrder order, PlanFit fit, PlanWay way, PlanLimit *limit,
                    int64_t *offset);

/* Moves the items of a placement down, from the lowest up, each into the lowest gap.  Nothing can rise: whatever was
 * below an item has only moved further down; so it may stop at the limit of looks.  Work as plan_greedy. */
void plan_settle(const PlanItems *items, PlanLimit *limit, int64_t *offset);

/* Takes items in the given order and puts each on top of all it conflicts with.  O(n log n) whatever the conflicts.
 * By length it is exact on lives that nest like brackets, as the activations and gradients of a training step do. False
 * when pins cannot be met in this way. */
bool plan_stack(const PlanItems *items, PlanOrder order, int64_t *offset);

/* Takes always the item that can lie lowest on those placed, of equals the first in the sequence of plan_order; see
 * skyline.c.  Work: for each item about the root of their number at worst.  False at the limit. */
bool plan_skyline(const PlanItems *items, const uint32_t *sequence, uint32_t count, PlanLimit *limit, int64_t *offset);

typedef enum PlanNnc {
    PLAN_NNC_BY_EDGES, /* the article: tensors with the most edges first, in tuples of up to three */
    PLAN_NNC_BY_SIZE,  /* ccv's code since: the largest tensor first */
} PlanNnc;

/* The NNC algorithm, see nnc.c.  Work: n log n and a constant, but for searches that pass many edges too narrow. */
void plan_nnc(const PlanItems *items, PlanNnc rule, int64_t *offset);

/* greedy by start, or by end when `reversed`, computed as a heap would: a walk through time with free lists, O(n log n)
 * whatever the conflicts.  Plain problems only. */
void plan_heap(const PlanItems *items, PlanFit fit, bool reversed, int64_t *offset);

#endif
