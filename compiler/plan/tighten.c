/* Rounds with rising budgets.  In each the lower bound comes first, since most real problems can be placed at it, and
 * then nothing is left to prove; after it the gap between bound and plan is narrowed from above. Within a round the
 * preorders take turns: the time to a solution is heavy-tailed (Gomes, Selman and Kautz, "Boosting combinatorial search
 * through randomization", AAAI 1998), so many short tries beat one long one.
 *
 * A height that was asked for, and is still open then, is searched for with as many nodes again: afterwards and anew,
 * so that to ask for one never costs a plan that is found without. */
#include "plan/tighten.h"

#include <string.h>

#include "base/number.h"
#include "plan/exact_memo.h"

#define FIRST_BUDGET UINT64_C(2) /* nodes of one try for each item; each round takes four times as many as the last */
#define MOST_ITEMS   6000
#define MOST_PAIRS   UINT64_C(3000000)

typedef struct Tighten {
    PlanExact *exact;
    PlanMemo *memo; /* NULL: too many items */
    PlanBest *best;
    const PlanItems *items;
    int64_t grain; /* every attainable height is a multiple of it */
    uint64_t left; /* nodes */
    int64_t *trial;
} Tighten;

bool plan_too_large(const PlanItems *items, uint64_t pairs)
{
    uint64_t members = 0;
    for (uint32_t i = 0; i < items->piece_count; i++)
        members += items->piece[i].upper - items->piece[i].lower;
    return items->count > MOST_ITEMS || pairs > MOST_PAIRS || members > MOST_PAIRS;
}

static int64_t grain_of(const PlanItems *items)
{
    int64_t grain = 0;
    for (uint32_t i = 0; i < items->piece_count; i++) {
        const PlanPiece *piece = &items->piece[i];
        const PlanItem *item = &items->item[piece->item];
        grain = number_gcd(grain, piece->size - piece->slack);
        grain = number_gcd(grain, item->alignment == 1 ? 0 : item->alignment);
        grain = number_gcd(grain, item->pinned > 0 ? item->pinned : 0);
    }
    return grain ? grain : 1;
}

/* One try; the search that remembers has no preorder. */
static PlanVerdict try_one(Tighten *t, int64_t target, const char *preorder, uint64_t budget)
{
    PlanQuest quest = {.target = target, .preorder = preorder, .nodes = budget < t->left ? budget : t->left};
    PlanVerdict verdict =
        t->memo ? plan_memo_fit(t->memo, &quest, t->trial) : plan_exact_fit(t->exact, &quest, t->trial);
    t->best->nodes += quest.spent;
    t->left -= quest.spent < t->left ? quest.spent : t->left;
    if (verdict == PLAN_FOUND) {
        memcpy(t->best->offset, t->trial, sizeof *t->trial * t->items->count);
        t->best->peak = plan_items_peak(t->items, t->trial);
        t->best->improved = true;
    }
    if (verdict == PLAN_REFUTED && quest.bound > t->best->bound)
        t->best->bound = quest.bound;
    return verdict;
}

/* One try of every preorder. */
static PlanVerdict try_all(Tighten *t, int64_t target, uint64_t budget)
{
    PlanVerdict verdict = PLAN_GAVE_UP;
    if (t->memo)
        return try_one(t, target, NULL, budget);
    for (const char *const *preorder = plan_preorders; *preorder && t->left && verdict == PLAN_GAVE_UP; preorder++)
        verdict = try_one(t, target, *preorder, budget);
    return verdict;
}

static bool done(const Tighten *t)
{
    return t->best->peak <= t->best->bound || !t->left;
}

/* Asks for the middle between bound and plan; on success from there, else for ever smaller steps below the plan. */
static void from_above(Tighten *t, uint64_t budget)
{
    for (int64_t step = INT64_MAX; !done(t) && step > t->grain;) {
        int64_t gap = t->best->peak - t->best->bound;
        step = (gap < step ? gap : step) / 2 / t->grain * t->grain;
        step = step ? step : t->grain;
        if (try_all(t, t->best->peak - step, budget) != PLAN_GAVE_UP)
            step = INT64_MAX;
    }
}

/* A refuted bound rises, and is tried again.  With few items its steps are many against those from above. */
static void from_below(Tighten *t, uint64_t budget)
{
    while (!done(t) && try_all(t, t->best->bound, budget) == PLAN_REFUTED && !t->memo)
        ;
}

static bool open(const Tighten *t, int64_t height)
{
    return height >= t->best->bound && height < t->best->peak;
}

/* From nothing learned, until the peak is `enough`, which is asked for first as long as it is open. */
static void search(Tighten *t, Arena *arena, int64_t enough, uint64_t budget)
{
    uint64_t first = FIRST_BUDGET * t->items->count;
    t->left = budget;
    t->exact = plan_exact_new(arena, t->items);
    t->memo = t->items->count <= PLAN_MOST_REMEMBERED ? plan_memo_new(arena, t->exact) : NULL;
    for (uint64_t round = first; !done(t) && t->best->peak > enough; round *= 4) {
        if (open(t, enough))
            try_all(t, enough, 4 * round);
        from_below(t, 4 * round);
        if (t->memo || round > first)
            from_above(t, t->memo ? 4 * round : round);
    }
}

void plan_tighten(const PlanItems *items, uint64_t budget, PlanBest *best)
{
    Arena arena = {0};
    Tighten t = {.best = best, .items = items, .grain = grain_of(items)};
    t.trial = ARENA_ARRAY(&arena, int64_t, items->count);
    search(&t, &arena, 0, budget);
    if (open(&t, best->wanted))
        search(&t, &arena, best->wanted, budget);
    arena_free(&arena);
}
