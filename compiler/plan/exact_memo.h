/* Exhaustive search for a placement of few items: as exact.h, but what is refuted is remembered, for this target and
 * those that follow. */
#ifndef NNC_PLAN_EXACT_MEMO_H
#define NNC_PLAN_EXACT_MEMO_H

#include "plan/exact.h"

#define PLAN_MOST_REMEMBERED 40 /* items */

typedef struct PlanMemo PlanMemo;

/* For at most PLAN_MOST_REMEMBERED items. */
PlanMemo *plan_memo_new(Arena *arena, PlanExact *exact);

/* As plan_exact_fit; the quest's preorder does not matter. */
PlanVerdict plan_memo_fit(PlanMemo *memo, PlanQuest *quest, int64_t *offset);

#endif
