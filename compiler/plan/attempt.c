#include "plan/attempt.h"

PlanAttempt plan_attempt(Arena *arena, const PlanProblem *problem, const PlanItems *items, int effort, int64_t wanted)
{
    return (PlanAttempt){.items = items,
                         .problem = problem,
                         .effort = effort,
                         .wanted = wanted,
                         .offset = ARENA_ARRAY(arena, int64_t, items->count),
                         .trial = ARENA_ARRAY(arena, int64_t, items->count),
                         .peak = INT64_MAX,
                         .bound = items->lower_bound,
                         .looks = UINT64_MAX};
}

void plan_attempt_consider(PlanAttempt *a, bool placed, const char *by)
{
    if (!placed)
        return;
    int64_t peak = plan_items_peak(a->items, a->trial);
    if (peak >= a->peak)
        return;
    int64_t *swap = a->offset;
    a->offset = a->trial;
    a->trial = swap;
    a->peak = peak;
    a->by = by;
}
