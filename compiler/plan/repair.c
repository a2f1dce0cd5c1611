/* Again and again the same placement, each time with those items ahead that came to lie too high the time before: what
 * a plan suffers from tells what should come sooner (Joslin and Clements, "Squeaky wheel optimization", JAIR 1999).
 *
 * By the skyline of every order a turn is cheap, since the first item that is too high ends it.  By gaps it shows all
 * items that are, and is dear: done where more than normal effort is asked for. */
#include "plan/repair.h"

#include <string.h>

#include "plan/greedy.h"

#define SKYLINE_LOOKS UINT64_C(10000000) /* for each unit of effort, of all orders */
#define GAPS_LOOKS    UINT64_C(50000000) /* likewise, beyond the first, of each way to choose a gap */

typedef struct Sequence {
    Arena arena;
    uint32_t *item, *misfit;
    uint32_t count, pins; /* pinned items stay first */
} Sequence;

static Sequence sequence_by(const PlanItems *items, PlanOrder order)
{
    Sequence s = {0};
    s.item = ARENA_ARRAY(&s.arena, uint32_t, items->count);
    s.misfit = ARENA_ARRAY(&s.arena, uint32_t, items->count);
    s.count = plan_order(&s.arena, items, order, s.item);
    while (s.pins < s.count && items->item[s.item[s.pins]].pinned != PLAN_FREE)
        s.pins++;
    return s;
}

/* Moves an item ahead, to half its place. */
static void promote(Sequence *s, uint32_t item)
{
    uint32_t from = s->pins;
    while (from < s->count && s->item[from] != item)
        from++;
    if (from == s->count)
        return;
    uint32_t to = s->pins + (from - s->pins) / 2;
    memmove(&s->item[to + 1], &s->item[to], sizeof *s->item * (from - to));
    s->item[to] = item;
}

static void start_turn(const PlanAttempt *a, const Sequence *s, PlanLimit *limit)
{
    limit->below = a->peak;
    limit->looks -= limit->looks > s->count ? s->count : limit->looks;
}

static void repair_skyline(PlanAttempt *a, PlanOrder order, uint64_t looks)
{
    Sequence s = sequence_by(a->items, order);
    for (PlanLimit limit = {.looks = looks}; !plan_attempt_proven(a) && limit.looks;) {
        start_turn(a, &s, &limit);
        bool placed = plan_skyline(a->items, s.item, s.count, &limit, a->trial);
        plan_attempt_consider(a, placed, "skyline");
        if (!placed)
            promote(&s, limit.failed);
    }
    arena_free(&s.arena);
}

static void repair_gaps(PlanAttempt *a, PlanOrder order, PlanFit fit, uint64_t looks)
{
    Sequence s = sequence_by(a->items, order);
    uint32_t misfits = 0;
    for (PlanLimit limit = {.looks = looks}; !plan_attempt_proven(a) && limit.looks && misfits != PLAN_GIVEN_UP;) {
        start_turn(a, &s, &limit);
        misfits = plan_greedy_below(a->items, s.item, s.count, fit, &limit, a->trial, s.misfit);
        plan_attempt_consider(a, misfits == 0, "greedy");
        for (uint32_t m = 0; misfits != PLAN_GIVEN_UP && m < misfits; m++)
            promote(&s, s.misfit[m]);
    }
    arena_free(&s.arena);
}

/* By conflicts few items are left over, of all orders. */
void plan_repair(PlanAttempt *a)
{
    for (PlanOrder order = 0; order < PLAN_ORDERS && !plan_attempt_proven(a); order++)
        if (!plan_order_repeats(a->items, order))
            repair_skyline(a, order, SKYLINE_LOOKS * (uint64_t)a->effort / PLAN_ORDERS);
    for (PlanFit fit = 0; fit < PLAN_FITS && a->effort > 1; fit++)
        repair_gaps(a, PLAN_BY_CONFLICTS, fit, GAPS_LOOKS * (uint64_t)(a->effort - 1));
}
