/* How low plans are, and in what time, for kinds of problems that are drawn (tests/unit/plan_draw.h).
 *
 *     plan_kinds KIND COUNT [--seeds N] [--first SEED] [--effort N] [ALLOCATOR ...]      without one: best and greedy
 *
 * KIND: training, mixed, aligned, guillotine, pinwheel. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/plan_draw.h"

static double seconds(void) /* of this process */
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static PlanProblem draw(Arena *arena, const char *kind, uint32_t count, uint64_t seed)
{
    Random random = {seed};
    if (strcmp(kind, "training") == 0)
        return draw_training(arena, &random, count);
    if (strcmp(kind, "mixed") == 0)
        return draw_mixed(arena, &random, count);
    if (strcmp(kind, "aligned") == 0)
        return draw_aligned(arena, &random, count);
    return draw_packing(arena, &random, count, 1000, 1 << 20, strcmp(kind, "pinwheel") == 0);
}

static void run(const PlanProblem *p, uint64_t seed, const char *allocator, int effort)
{
    Arena arena = {0};
    PlanResult r;
    Str message = {0};
    double time = -seconds();
    bool good = plan_place(&arena, p, allocator, effort, &r);
    time += seconds();
    good = good && plan_check(&arena, p, &r, &message);
    printf("%6" PRIu64 " %8u  %-16s %8.4f s  %12" PRId64 " %12" PRId64 " %8.4f %-6s %9" PRIu64 " %s%s\n", seed,
           p->count, allocator, time, r.peak, r.lower_bound, (double)r.peak / (double)r.lower_bound,
           r.proven ? "proven" : "", r.nodes, r.allocator, good ? "" : "  BAD PLAN");
    fflush(stdout);
    arena_free(&arena);
}

int main(int argc, char **argv)
{
    static char *usual[] = {"best", "greedy", NULL};
    uint64_t seeds = 3, first = 1;
    int effort = 1, a = 3;
    for (; a + 1 < argc && strncmp(argv[a], "--", 2) == 0; a += 2) {
        if (strcmp(argv[a], "--seeds") == 0)
            seeds = (uint64_t)atoll(argv[a + 1]);
        else if (strcmp(argv[a], "--first") == 0)
            first = (uint64_t)atoll(argv[a + 1]);
        else
            effort = atoi(argv[a + 1]);
    }
    if (argc < 3)
        return fputs("plan_kinds KIND COUNT [--seeds N] [--first SEED] [--effort N] [ALLOCATOR ...]\n", stderr), 2;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        Arena arena = {0};
        PlanProblem p = draw(&arena, argv[1], (uint32_t)atoll(argv[2]), seed);
        for (char **name = a < argc ? argv + a : usual; *name; name++)
            run(&p, seed, *name, effort);
        arena_free(&arena);
    }
    return 0;
}
