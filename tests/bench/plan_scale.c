/* Planner time against the number of tensors, for three kinds of lives. */
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

int main(int argc, char **argv)
{
    static const char *const kind[] = {"chain", "training", "mixed"};
    uint32_t most = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 10000 : 1000000;
    printf("%-9s %8s %8s %8s  %-7s %s\n", "lives", "tensors", "plan s", "check s", "peak/bound", "allocator");
    for (int k = 0; k < 3; k++)
        for (uint32_t count = 100; count <= most; count = count == 10000 && most > 10000 ? 60000
                                                          : count == 60000               ? 100000
                                                                                         : count * 10) {
            Arena arena = {0};
            Random random = {count};
            PlanResult r;
            Str message = {0};
            PlanProblem p = make(&arena, &random, kind[k], count);
            double plan = -seconds();
            bool good = plan_place(&arena, &p, NULL, 1, &r);
            plan += seconds();
            double check = -seconds();
            good = good && plan_check(&arena, &p, &r, &message);
            check += seconds();
            printf("%-9s %8u %8.3f %8.3f  %-10.4f %s%s\n", kind[k], count, plan, check,
                   (double)r.peak / (double)r.lower_bound, r.allocator, good ? "" : "  BAD PLAN");
            fflush(stdout);
            arena_free(&arena);
            if (!good)
                return 1;
        }
    return 0;
}
