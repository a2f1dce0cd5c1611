/* Greedy placement: both ways to find gaps give the offsets of the plainest one.  And sets of runs, against a map of
 * bytes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/greedy.h"
#include "plan/runs.h"
#include "check.h"
#include "plan_random.h"

typedef struct Plain { /* offsets at which an item would lie on a placed one: (below, end) */
    int64_t below, end;
} Plain;

static int by_below(const void *a, const void *b)
{
    const Plain *x = a, *y = b;
    return (x->below > y->below) - (x->below < y->below);
}

/* Where the item collides with any that is placed. */
static uint32_t collisions(const PlanItems *items, uint32_t item, const bool *placed, const int64_t *offset, Plain *out)
{
    uint32_t count = 0;
    const PlanItem *it = &items->item[item];
    for (uint32_t p = it->piece; p < it->piece + it->piece_count; p++)
        for (uint32_t k = 0; k < items->piece_count; k++) {
            const PlanPiece *a = &items->piece[p], *b = &items->piece[k];
            if (placed[b->item] && a->lower < b->upper && b->lower < a->upper)
                out[count++] = (Plain){offset[b->item] - a->size, offset[b->item] + b->size};
        }
    qsort(out, count, sizeof *out, by_below);
    return count;
}

static int64_t plain_choice(const Plain *taken, uint32_t count, int64_t alignment, PlanFit fit)
{
    int64_t at = 0, best = -1, best_rest = INT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        int64_t rest = taken[i].below - at;
        if (rest >= 0 && fit == PLAN_FIRST_FIT)
            return at;
        if (rest >= 0 && rest < best_rest) {
            best = at;
            best_rest = rest;
        }
        if (taken[i].end > at)
            at = (taken[i].end + alignment - 1) / alignment * alignment;
    }
    return best >= 0 ? best : at;
}

static bool plain_greedy(Arena *arena, const PlanItems *items, PlanOrder order, PlanFit fit, int64_t *offset)
{
    bool *placed = ARENA_ARRAY(arena, bool, items->count);
    Plain *taken = ARENA_ARRAY(arena, Plain, (size_t)items->piece_count * (items->piece_count + 1));
    uint32_t *sequence = ARENA_ARRAY(arena, uint32_t, items->count);
    uint32_t n = plan_order(arena, items, order, sequence);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t item = sequence[k], count = collisions(items, item, placed, offset, taken);
        const PlanItem *it = &items->item[item];
        offset[item] = it->pinned == PLAN_FREE ? plain_choice(taken, count, it->alignment, fit) : it->pinned;
        for (uint32_t i = 0; i < count && it->pinned != PLAN_FREE; i++)
            if (taken[i].below < it->pinned && it->pinned < taken[i].end)
                return false;
        placed[item] = true;
    }
    return true;
}

static PlanProblem problem_of(Arena *arena, Random *random, uint32_t trial)
{
    RandomShape shape = {
        .count = 1 + (uint32_t)random_below(random, trial % 4 ? 300 : 30),
        .steps = 1 + random_below(random, trial % 3 ? 400 : 20),
        .longest = 1 + random_below(random, trial % 5 ? 30 : 400),
        .largest = 1 + random_below(random, trial % 7 ? 200 : 6),
        .aligned = random_below(random, 2),
        .grouped = random_below(random, 2),
        .pinned = random_below(random, 3) == 0,
    };
    PlanProblem p = random_problem(arena, random, shape);
    PlanBuffer *buffer = (PlanBuffer *)p.buffer;
    bool clash = random_below(random, 10) == 0;
    for (uint32_t i = 0; i < p.count; i++)
        if (clash && buffer[i].pinned > 0 && random_below(random, 4) == 0)
            buffer[i].pinned = 0;
    return p;
}

static void both_ways_are_the_plain_one(void)
{
    Random random = {1};
    uint32_t clashes = 0;
    for (uint32_t trial = 0; trial < 3000; trial++) {
        Arena arena = {0};
        PlanProblem p = problem_of(&arena, &random, trial);
        PlanOrder order = trial % PLAN_ORDERS;
        PlanFit fit = trial / PLAN_ORDERS % PLAN_FITS;
        PlanItems items;
        plan_items(&arena, &p, 0, &items);
        int64_t *plain = ARENA_ARRAY(&arena, int64_t, items.count);
        bool good = plain_greedy(&arena, &items, order, fit, plain);
        for (PlanWay way = PLAN_WAY_FASTER; way <= PLAN_WAY_COLUMNS; way++) {
            int64_t *offset = ARENA_ARRAY(&arena, int64_t, items.count);
            PlanLimit limit = {.below = INT64_MAX, .looks = UINT64_MAX};
            CHECK(plan_greedy_by(&items, order, fit, way, &limit, offset) == good, "trial %u, way %d", trial, way);
            for (uint32_t i = 0; i < items.count && good; i++)
                CHECK(offset[i] == plain[i], "trial %u, way %d, item %u: %" PRId64 ", not %" PRId64, trial, way, i,
                      offset[i], plain[i]);
        }
        clashes += !good;
        arena_free(&arena);
    }
    CHECK(clashes > 20 && clashes < 1000, "%u clashes", clashes);
}

/* What comes too high is left out, the rest lies as if it had never been. */
static void misfits_are_left_out(const PlanItems *items, Arena *arena, PlanFit fit)
{
    PlanLimit limit = {.below = INT64_MAX, .looks = UINT64_MAX};
    uint32_t *sequence = ARENA_ARRAY(arena, uint32_t, items->count);
    uint32_t *misfit = ARENA_ARRAY(arena, uint32_t, items->count);
    int64_t *offset = ARENA_ARRAY(arena, int64_t, items->count);
    bool *placed = ARENA_ARRAY(arena, bool, items->count);
    Plain *taken = ARENA_ARRAY(arena, Plain, (size_t)items->piece_count * (items->piece_count + 1));
    uint32_t n = plan_order(arena, items, PLAN_BY_CONFLICTS, sequence);

    CHECK(plan_greedy_below(items, sequence, n, fit, &limit, offset, misfit) == 0, "misfits without a limit");
    limit.below = plan_items_peak(items, offset) * 2 / 3;
    uint32_t misfits = plan_greedy_below(items, sequence, n, fit, &limit, offset, misfit), next = 0;
    for (uint32_t k = 0; k < n; k++) {
        const PlanItem *it = &items->item[sequence[k]];
        uint32_t count = collisions(items, sequence[k], placed, offset, taken);
        int64_t at = plain_choice(taken, count, it->alignment, fit);
        if (next < misfits && misfit[next] == sequence[k]) {
            CHECK(plan_item_top(items, sequence[k], at) >= limit.below, "item %u is no misfit", sequence[k]);
            next++;
        } else {
            CHECK(at == offset[sequence[k]] && plan_item_top(items, sequence[k], at) < limit.below,
                  "item %u at %" PRId64, sequence[k], offset[sequence[k]]);
            placed[sequence[k]] = true;
        }
    }
    CHECK(next == misfits, "%u misfits of %u in order", next, misfits);
    limit.looks = 0;
    CHECK(n < 100 || plan_greedy_below(items, sequence, n, fit, &limit, offset, misfit) == PLAN_GIVEN_UP,
          "work without looks");
}

static void plans_below_a_limit(void)
{
    Random random = {4};
    for (uint32_t trial = 0; trial < 200; trial++) {
        Arena arena = {0};
        PlanProblem problem = problem_of(&arena, &random, trial);
        PlanItems items;
        plan_items(&arena, &problem, 0, &items);
        bool pins = false;
        for (uint32_t i = 0; i < items.count; i++)
            pins |= items.item[i].pinned != PLAN_FREE;
        if (!pins)
            misfits_are_left_out(&items, &arena, trial % 2 ? PLAN_FIRST_FIT : PLAN_BEST_FIT);
        arena_free(&arena);
    }
}

/* Activations that live until their gradient: a quarter of all pairs conflict, 900 million.  The columns may look at a
 * twentieth part of that. */
static void many_conflicts_take_little_work(void)
{
    Arena arena = {0};
    Random random = {2};
    uint32_t n = 60000;
    PlanBuffer *b = ARENA_ARRAY(&arena, PlanBuffer, n);
    for (uint32_t i = 0; i < n; i++)
        b[i] = (PlanBuffer){64 + (random_below(&random, 1 << 12) << random_below(&random, 10)),
                            64,
                            i,
                            i < n / 2 ? (int64_t)n - i : (int64_t)i + 2,
                            PLAN_FREE,
                            0,
                            0};
    PlanProblem p = {.buffer = b, .count = n};
    PlanItems items;
    plan_items(&arena, &p, 0, &items);
    CHECK(plan_items_pairs(&arena, &items) > UINT64_C(800000000), "too few pairs");
    int64_t *offset = ARENA_ARRAY(&arena, int64_t, items.count);
    for (PlanOrder order = 0; order < PLAN_ORDERS; order++) {
        PlanLimit limit = {.below = INT64_MAX, .looks = UINT64_MAX};
        plan_greedy_by(&items, order, PLAN_FIRST_FIT, PLAN_WAY_FASTER, &limit, offset);
        uint64_t looks = UINT64_MAX - limit.looks;
        CHECK(looks < UINT64_C(45000000), "%s: %" PRIu64 " looks", plan_order_name[order], looks);
    }
    arena_free(&arena);
}

#define BYTES 3000

static void check_gaps(RunStore *store, const Runs *runs, const bool *taken, int64_t size)
{
    RunPlace place = {0};
    for (int64_t from = 0; from < BYTES; from += 1 + from % 7) {
        PlanRun gap = runs_gap(store, runs, &place, from, size);
        int64_t begin = from, end = from;
        for (; end - begin < size; end++) /* behind the map all is free */
            if (end < BYTES && taken[end])
                begin = end + 1;
        for (; end < BYTES && !taken[end]; end++)
            ;
        end = end < BYTES ? end : INT64_MAX;
        CHECK(gap.begin == begin && gap.end == end, "from %" PRId64 ", %" PRId64 ": %" PRId64 " to %" PRId64, from,
              size, gap.begin, gap.end);
        from = begin;
    }
}

static void runs_are_a_set(void)
{
    Random random = {3};
    for (uint32_t trial = 0; trial < 300; trial++) {
        Arena arena = {0};
        RunStore store = {.arena = &arena};
        Runs runs = {0};
        bool taken[BYTES] = {false};
        int64_t longest = 1 + random_below(&random, trial % 3 ? 4 : 400);
        for (uint32_t k = 0; k < 800; k++) {
            int64_t size = 1 + random_below(&random, longest), begin = random_below(&random, BYTES - size);
            runs_add(&store, &runs, begin, begin + size);
            memset(&taken[begin], true, (size_t)size);
            if (k % 100 == 0)
                check_gaps(&store, &runs, taken, 1 + random_below(&random, 20));
        }
        arena_free(&arena);
    }
}

int main(void)
{
    runs_are_a_set();
    both_ways_are_the_plain_one();
    plans_below_a_limit();
    many_conflicts_take_little_work();
    puts("plan_greedy: ok");
    return 0;
}
