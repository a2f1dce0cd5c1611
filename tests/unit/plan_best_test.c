/* What `best` promises: no allocator that can be named is lower, small problems are proven whatever their alignments, a
 * capacity is searched for, and what is odd is placed like the rest. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "plan_draw.h"

static bool can_be_named(const char *name)
{
    for (const PlanAllocator *a = plan_allocators(); a->name; a++)
        if (strcmp(a->name, name) == 0)
            return true;
    return false;
}

static PlanResult placed(Arena *arena, const PlanProblem *p, const char *allocator, int effort)
{
    PlanResult r;
    Str message = {0};
    CHECK(plan_place(arena, p, allocator, effort, &r), "%s: " STR_FMT, allocator, STR_ARG(r.message));
    CHECK(plan_check(arena, p, &r, &message), "%s: " STR_FMT, allocator, STR_ARG(message));
    CHECK(can_be_named(r.allocator), "%s is no allocator's name", r.allocator);
    CHECK(r.proven || r.peak > r.lower_bound, "%s: at the bound but not proven", allocator);
    return r;
}

static void no_allocator_is_lower(const PlanProblem *p, const char *kind)
{
    Arena arena = {0};
    int64_t best = placed(&arena, p, "best", 1).peak;
    for (const PlanAllocator *a = plan_allocators(); a->name; a++) {
        if (strcmp(a->name, "exact") == 0) /* the same search, from nothing: it may have luck */
            continue;
        int64_t peak = placed(&arena, p, a->name, 1).peak;
        CHECK(peak >= best, "%s: %s has %" PRId64 ", best %" PRId64, kind, a->name, peak, best);
    }
    arena_free(&arena);
}

static void best_is_best(void)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        Arena arena = {0};
        Random random = {seed};
        PlanProblem p = draw_aligned(&arena, &random, 5 + (uint32_t)seed % 40);
        no_allocator_is_lower(&p, "aligned");
        p = draw_training(&arena, &random, 60 + 30 * (uint32_t)seed);
        no_allocator_is_lower(&p, "training");
        p = draw_mixed(&arena, &random, 20 * (uint32_t)seed);
        no_allocator_is_lower(&p, "mixed");
        if (seed <= 4) {
            p = draw_packing(&arena, &random, (DrawPacking){100 * (uint32_t)seed, 100, 1000, 1, seed % 2 ? 100 : 0, 0});
            no_allocator_is_lower(&p, "packing");
        }
        arena_free(&arena);
    }
}

/* Too many for the search: the skyline must have them, and where conflicts are some hundred million. */
static void large_training_steps_are_tight(void)
{
    Arena arena = {0};
    Random random = {2};
    PlanProblem p = draw_training(&arena, &random, 20000);
    PlanResult r = placed(&arena, &p, "best", 1);
    CHECK((double)r.peak <= 1.001 * (double)r.lower_bound, "%" PRId64 " for %" PRId64, r.peak, r.lower_bound);
    arena_free(&arena);
}

/* Too many for the search, and no order is proven: orders that learn gain something. */
static void effort_helps_the_large(void)
{
    Arena arena = {0};
    Random random = {1};
    PlanProblem p = draw_mixed(&arena, &random, 20000);
    int64_t normal = placed(&arena, &p, "best", 1).peak, more = placed(&arena, &p, "best", 2).peak;
    CHECK(more < normal, "more effort, %" PRId64 " for %" PRId64, more, normal);
    arena_free(&arena);
}

/* Three of these have an alignment of 4,096 and are live at step 2. */
static void alignments_bound_the_peak(void)
{
    static const int64_t row[][4] = {{0, 1, 896, 64},  {0, 4, 1280, 64},  {0, 1, 64, 64},    {2, 3, 640, 4096},
                                     {3, 5, 320, 64},  {4, 8, 128, 64},   {1, 2, 384, 4096}, {4, 5, 384, 64},
                                     {2, 3, 1024, 64}, {2, 3, 192, 4096}, {2, 3, 896, 4096}, {2, 3, 704, 64},
                                     {3, 4, 1024, 64}, {1, 2, 576, 4096}};
    Arena arena = {0};
    PlanBuffer buffer[14];
    PlanProblem p = {.buffer = buffer, .count = 14};
    for (uint32_t i = 0; i < p.count; i++)
        buffer[i] = (PlanBuffer){row[i][2], row[i][3], row[i][0], row[i][1], PLAN_FREE, 0, 0};
    PlanResult r = placed(&arena, &p, "best", 1);
    CHECK(r.peak == 8384 && r.proven && plan_lower_bound(&p) == 8384, "%" PRId64 ", bound %" PRId64, r.peak,
          r.lower_bound);
    arena_free(&arena);
}

static void small_aligned_problems_are_proven(void)
{
    uint32_t beyond = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        Arena arena = {0};
        Random random = {seed};
        PlanProblem p = draw_aligned(&arena, &random, 5 + (uint32_t)seed % 16);
        PlanResult r = placed(&arena, &p, "best", 1);
        CHECK(r.proven, "seed %" PRIu64 ": %" PRId64 " for %" PRId64, seed, r.peak, r.lower_bound);
        beyond += r.peak > plan_lower_bound(&p);
        arena_free(&arena);
    }
    CHECK(beyond > 5, "too easy: %u", beyond);
}

/* Most live together, bytes and alignments of any kind: bounds say little here. */
static PlanProblem crowd(Arena *arena, Random *r, uint32_t count)
{
    static const int64_t alignments[][4] = {
        {16, 256, 1024, 64}, {1, 4096, 64, 16}, {3, 48, 100, 640}, {512, 65536, 1, 5}};
    const int64_t *alignment = alignments[random_below(r, 4)];
    PlanBuffer *buffer = ARENA_ARRAY(arena, PlanBuffer, count);
    for (uint32_t i = 0; i < count; i++) {
        int64_t first = random_below(r, 4), last = first + 1 + random_below(r, 3);
        buffer[i] =
            (PlanBuffer){1 + random_below(r, 10000), alignment[random_below(r, 4)], first, last, PLAN_FREE, 0, 0};
    }
    return (PlanProblem){.buffer = buffer, .count = count};
}

static void small_crowds_are_proven(void)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Arena arena = {0};
        Random random = {seed};
        PlanProblem p = crowd(&arena, &random, 15 + (uint32_t)seed % 6);
        PlanResult r = placed(&arena, &p, "best", 1);
        CHECK(r.proven, "seed %" PRIu64 ": %" PRId64 " for %" PRId64, seed, r.peak, r.lower_bound);
        arena_free(&arena);
    }
}

/* Cut out of a rectangle, and shuffled: nearly all are put together again. */
static void perfect_packings_are_tight(void)
{
    uint32_t perfect = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        Arena arena = {0};
        Random random = {seed};
        PlanProblem p = draw_packing(&arena, &random, (DrawPacking){2000, 1000, 1 << 20, 1, seed % 2 ? 100 : 0, 0});
        PlanResult r = placed(&arena, &p, "best", 1);
        CHECK((double)r.peak <= 1.03 * (1 << 20), "seed %" PRIu64 ": %" PRId64, seed, r.peak);
        perfect += r.proven;
        arena_free(&arena);
    }
    CHECK(perfect >= 3, "%u of 4 are perfect", perfect);
}

static bool says(Str s, const char *what)
{
    return strstr(s.ptr, what) != NULL;
}

static void a_capacity_is_searched_for(void)
{
    Arena arena = {0};
    Random random = {3};
    PlanProblem p = draw_packing(&arena, &random, (DrawPacking){60, 100, 1000, 1, 100, 0});
    PlanResult r;
    p.capacity = 1000;
    CHECK(plan_place(&arena, &p, "best", 1, &r) && r.peak == 1000, "it fits");
    CHECK(!plan_place(&arena, &p, "stack-start", 1, &r) && says(r.message, "`best` may find it"), STR_FMT,
          STR_ARG(r.message));
    p.capacity = 999;
    CHECK(!plan_place(&arena, &p, "best", 1, &r) && says(r.message, "no plan can fit"), STR_FMT, STR_ARG(r.message));
    p = draw_packing(&arena, &random, (DrawPacking){1500, 1000, 1000, 1, 0, 0});
    p.capacity = 1000;
    CHECK(!plan_place(&arena, &p, "best", 0, &r) && says(r.message, "more effort may find it"), STR_FMT,
          STR_ARG(r.message));
    arena_free(&arena);
}

/* What is asked for is one target more: a plan that is found without is found with it. */
static void a_capacity_costs_no_plan(void)
{
    uint32_t open = 0;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        Arena arena = {0};
        Random random = {seed};
        PlanProblem p = draw_packing(&arena, &random, (DrawPacking){1000, 60, 1200, 1, 0, 0});
        PlanResult r;
        int64_t without = placed(&arena, &p, "best", 1).peak, bound = plan_lower_bound(&p);
        open += without > bound;
        for (int64_t part = 0; part < 2; part++) {
            p.capacity = bound + part * (without - bound) / 2;
            bool fits = plan_place(&arena, &p, "best", 1, &r);
            CHECK(r.peak <= without, "seed %" PRIu64 ", capacity %" PRId64 ": %" PRId64 " instead of %" PRId64, seed,
                  p.capacity, r.peak, without);
            CHECK(fits == (r.peak <= p.capacity), "seed %" PRIu64 ": the verdict is not that of the peak", seed);
        }
        arena_free(&arena);
    }
    CHECK(open == 2, "too easy: %u", open);
}

/* Lives of any length, and four sizes for all. */
static PlanProblem few_sizes(Arena *arena, Random *r, uint32_t count)
{
    static const int64_t size[] = {1000, 2000, 3000, 5000}, life[] = {1, 2, 4, 9, 15, 30};
    PlanBuffer *buffer = ARENA_ARRAY(arena, PlanBuffer, count);
    for (uint32_t i = 0; i < count; i++) {
        int64_t first = random_below(r, 100);
        buffer[i] = (PlanBuffer){size[random_below(r, 4)], 8, first, first + life[random_below(r, 6)], PLAN_FREE, 0, 0};
    }
    return (PlanProblem){.buffer = buffer, .count = count};
}

/* Of equals the earliest: an order that gains where many are equal. */
static void ties_by_start_gain(void)
{
    uint32_t lower = 0, higher = 0;
    int64_t by_age = 0, by_size = 0, by_either = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Arena arena = {0};
        Random random = {seed};
        PlanProblem p = few_sizes(&arena, &random, 250);
        int64_t age = placed(&arena, &p, "greedy-age", 1).peak, size = placed(&arena, &p, "greedy-size", 1).peak;
        int64_t either = age < size ? age : size;
        CHECK(placed(&arena, &p, "greedy", 1).peak <= either, "seed %" PRIu64, seed);
        lower += age < size;
        higher += age > size;
        by_age += age;
        by_size += size;
        by_either += either;
        arena_free(&arena);
    }
    CHECK(lower > higher && by_age < by_size && by_size - by_either > by_size / 200,
          "lower %u times, higher %u times; %" PRId64 " and %" PRId64 " bytes in all instead of %" PRId64, lower,
          higher, by_age, by_either, by_size);
}

static void odd_problems_are_problems(void)
{
    Arena arena = {0};
    PlanBuffer one = {7, INT64_C(1) << 50, 3, 4, PLAN_FREE, 0, 0};
    PlanResult r = placed(&arena, &(PlanProblem){.buffer = &one, .count = 1}, "best", 1);
    CHECK(r.peak == 7 && r.proven, "one buffer: %" PRId64, r.peak);
    PlanBuffer none[3] = {{0, 64, 0, 9, PLAN_FREE, 0, 0}, {0, 3, 0, 9, PLAN_FREE, 0, 0}, {0, 1, 5, 6, PLAN_FREE, 0, 0}};
    r = placed(&arena, &(PlanProblem){.buffer = none, .count = 3}, "best", 1);
    CHECK(r.peak == 0 && r.proven, "no bytes: %" PRId64, r.peak);
    PlanBuffer like[300];
    for (uint32_t i = 0; i < 300; i++)
        like[i] = (PlanBuffer){10, 16, 2, 5, PLAN_FREE, 0, 0};
    r = placed(&arena, &(PlanProblem){.buffer = like, .count = 300}, "best", 1);
    CHECK(r.peak == 299 * 16 + 10 && r.proven, "all alike: %" PRId64, r.peak);
    for (uint32_t i = 0; i < 300; i++)
        like[i].alignment = 1 + 7 * i; /* nothing divides, and more alignments than there are classes */
    for (const PlanAllocator *a = plan_allocators(); a->name; a++)
        placed(&arena, &(PlanProblem){.buffer = like, .count = 300}, a->name, 0);
    arena_free(&arena);
}

int main(void)
{
    odd_problems_are_problems();
    alignments_bound_the_peak();
    small_aligned_problems_are_proven();
    small_crowds_are_proven();
    perfect_packings_are_tight();
    ties_by_start_gain();
    a_capacity_is_searched_for();
    a_capacity_costs_no_plan();
    best_is_best();
    large_training_steps_are_tight();
    effort_helps_the_large();
    puts("plan_best: ok");
    return 0;
}
