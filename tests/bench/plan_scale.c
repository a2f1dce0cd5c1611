/* Planner time against the number of tensors, for three kinds of lives.
 *
 *     plan_scale [--quick] [ALLOCATOR ...]        without one: best and nnc */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../unit/plan_random.h"

static double seconds(void) /* of this process */
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t size_of(Random *r)
{
    return 64 + (random_below(r, 1 << 12) << random_below(r, 10));
}

/* chain: an inference graph, lives of a few steps; training: activations live until their gradient is computed;
 * mixed: anything. */
static PlanProblem make(Arena *arena, Random *r, const char *kind, uint32_t count)
{
    PlanBuffer *b = ARENA_ARRAY(arena, PlanBuffer, count);
    for (uint32_t i = 0; i < count; i++) {
        b[i] = (PlanBuffer){size_of(r), 64, i, (int64_t)i + 2 + (random_below(r, 8) ? 0 : random_below(r, 20)),
                            PLAN_FREE,  0,  0};
        if (strcmp(kind, "training") == 0 && i < count / 2)
            b[i].last = 2 * (int64_t)(count / 2) - i;
        if (strcmp(kind, "mixed") == 0)
            b[i].last = b[i].first + 1 + (INT64_C(1) << random_below(r, 16));
    }
    return (PlanProblem){.buffer = b, .count = count};
}

/* 1, 2 and 5 of each power of ten, and 60,000, which is what is promised in less than a second. */
static uint32_t next_count(uint32_t count)
{
    uint32_t power = 1;
    for (; power <= count / 10; power *= 10)
        ;
    if (count == 50000 || count == 60000)
        return count == 50000 ? 60000 : 100000;
    return power * (count < 2 * power ? 2 : count < 5 * power ? 5 : 10);
}

static bool run(const char *kind, uint32_t count, const char *allocator)
{
    Arena arena = {0};
    Random random = {count};
    PlanResult r;
    Str message = {0};
    PlanProblem p = make(&arena, &random, kind, count);
    double plan = -seconds();
    bool good = plan_place(&arena, &p, allocator, 1, &r);
    plan += seconds();
    double check = -seconds();
    good = good && plan_check(&arena, &p, &r, &message);
    check += seconds();
    printf("%-9s %8u  %-5s %8.4f %8.4f  %-10.4f %s%s\n", kind, count, allocator, plan, check,
           (double)r.peak / (double)r.lower_bound, r.allocator, good ? "" : "  BAD PLAN");
    fflush(stdout);
    arena_free(&arena);
    return good;
}

int main(int argc, char **argv)
{
    static const char *const kind[] = {"chain", "training", "mixed"};
    static const char *const usual[] = {"best", "nnc"};
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    int first = quick ? 2 : 1, asked = argc > first ? argc - first : 2;
    uint32_t most = quick ? 10000 : 1000000;
    printf("%-9s %8s  %-5s %8s %8s  %-7s %s\n", "lives", "tensors", "asked", "plan s", "check s", "peak/bound",
           "found by");
    for (int k = 0; k < 3; k++)
        for (uint32_t count = 100; count <= most; count = next_count(count))
            for (int a = 0; a < asked; a++)
                if (!run(kind[k], count, argc > first ? argv[first + a] : usual[a]))
                    return 1;
    return 0;
}
