/* Conflicts beside intervals: pairs share no byte, whatever the steps say; bad pairs are refused; the judge sees them.
 */
#include "check.h"
#include "plan_random.h"

static PlanBuffer buffer_of(int64_t size, int64_t first, int64_t last)
{
    return (PlanBuffer){.size = size, .alignment = 16, .first = first, .last = last, .pinned = PLAN_FREE};
}

/* Two branches on two streams: in order of the steps they could share all of their memory. */
static void test_streams(void)
{
    Arena arena = {0};
    PlanBuffer buffer[] = {buffer_of(64, 0, 1), buffer_of(32, 1, 2), buffer_of(64, 2, 3), buffer_of(16, 3, 4)};
    PlanPair pair[] = {{0, 2}, {1, 2}, {1, 3}, {0, 3}};
    PlanProblem problem = {.buffer = buffer, .count = 4};
    PlanResult result;
    Str message = {0};
    CHECK(plan_place(&arena, &problem, NULL, 1, &result) && result.peak == 64, "without the relation: one at a time");
    CHECK(plan_check(&arena, &problem, &result, &message), "which is right");
    problem.conflict = pair;
    problem.conflict_count = 4;
    CHECK(!plan_check(&arena, &problem, &result, &message), "but not with the relation");
    CHECK(plan_place(&arena, &problem, NULL, 1, &result) && result.peak == 128,
          "two branches beside each other, not %d", (int)result.peak);
    CHECK(plan_check(&arena, &problem, &result, &message), STR_FMT, STR_ARG(message));
    arena_free(&arena);
}

static void test_bad_pair(void)
{
    Arena arena = {0};
    PlanBuffer buffer[] = {buffer_of(64, 0, 1)};
    PlanPair pair[] = {{0, 1}};
    PlanProblem problem = {.buffer = buffer, .count = 1, .conflict = pair, .conflict_count = 1};
    PlanResult result;
    CHECK(!plan_place(&arena, &problem, NULL, 1, &result), "there is one buffer");
    CHECK(str_is(result.message, "conflict 0: there is no such buffer"), STR_FMT, STR_ARG(result.message));
    arena_free(&arena);
}

static void test_random(void)
{
    Random random = {7};
    for (uint32_t round = 0; round < 400; round++) {
        Arena arena = {0};
        RandomShape shape = {.count = 2 + (uint32_t)random_below(&random, 60),
                             .steps = 40,
                             .longest = 12,
                             .largest = 500,
                             .aligned = round & 1,
                             .pinned = round & 2,
                             .grouped = round & 4,
                             .regions = round & 8 ? 3 : 0};
        PlanProblem problem = random_problem(&arena, &random, shape);
        uint32_t count = 1 + (uint32_t)random_below(&random, shape.count * 2);
        PlanPair *pair = ARENA_ARRAY(&arena, PlanPair, count);
        for (uint32_t i = 0; i < count; i++)
            pair[i] =
                (PlanPair){(uint32_t)random_below(&random, shape.count), (uint32_t)random_below(&random, shape.count)};
        problem.conflict = pair;
        problem.conflict_count = count;
        PlanResult result;
        Str message = {0};
        CHECK(plan_place(&arena, &problem, NULL, 1, &result), "round %u: " STR_FMT, round, STR_ARG(result.message));
        CHECK(plan_check(&arena, &problem, &result, &message), "round %u: " STR_FMT, round, STR_ARG(message));
        arena_free(&arena);
    }
}

int main(void)
{
    test_streams();
    test_bad_pair();
    test_random();
    printf("relations: fine\n");
    return 0;
}
