/* How low plans are, and in what time, for kinds of problems that are drawn (tests/unit/plan_draw.h).
 *
 *     plan_kinds KIND COUNT [--OPTION N ...] [ALLOCATOR ...]      without one: best and greedy
 *
 * KIND: training, mixed, aligned, and the perfect packings guillotine, pinwheel and both.
 * Options: seeds, first (seed), effort; of a packing steps, height, unit (of sizes), removed (of a hundred). */
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

static PlanProblem draw(Arena *arena, const char *kind, uint32_t count, uint64_t seed, DrawPacking packing)
{
    Random random = {seed};
    if (strcmp(kind, "training") == 0)
        return draw_training(arena, &random, count);
    if (strcmp(kind, "mixed") == 0)
        return draw_mixed(arena, &random, count);
    if (strcmp(kind, "aligned") == 0)
        return draw_aligned(arena, &random, count);
    packing.count = count;
    packing.wheels = strcmp(kind, "pinwheel") == 0 ? 100 : strcmp(kind, "both") == 0 ? 50 : 0;
    return draw_packing(arena, &random, packing);
}

typedef struct Sum { /* of an allocator, over the seeds */
    double *ratio, time, longest;
    uint32_t count;
} Sum;

static void run(const PlanProblem *p, uint64_t seed, const char *allocator, int effort, Sum *sum)
{
    Arena arena = {0};
    PlanResult r;
    Str message = {0};
    double time = -seconds();
    bool good = plan_place(&arena, p, allocator, effort, &r);
    time += seconds();
    good = good && plan_check(&arena, p, &r, &message);
    double ratio = (double)r.peak / (double)r.lower_bound;
    printf("%6" PRIu64 " %8u  %-16s %8.4f s  %12" PRId64 " %12" PRId64 " %8.4f %-6s %9" PRIu64 " %s%s\n", seed,
           p->count, allocator, time, r.peak, r.lower_bound, ratio, r.proven ? "proven" : "", r.nodes, r.allocator,
           good ? "" : "  BAD PLAN");
    fflush(stdout);
    sum->ratio[sum->count++] = good ? ratio : 1e9;
    sum->time += time;
    sum->longest = time > sum->longest ? time : sum->longest;
    arena_free(&arena);
}

static int by_ratio(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_sum(const char *allocator, Sum *sum)
{
    uint32_t within = 0, exact = 0;
    qsort(sum->ratio, sum->count, sizeof *sum->ratio, by_ratio);
    for (uint32_t k = 0; k < sum->count; k++) {
        within += sum->ratio[k] <= 1.03;
        exact += sum->ratio[k] == 1;
    }
    printf("%-16s of %u: %u at the bound, %u within 3 %%; median %.4f, worst %.4f; %.2f s, %.2f s at most\n", allocator,
           sum->count, exact, within, sum->ratio[sum->count / 2], sum->ratio[sum->count - 1], sum->time / sum->count,
           sum->longest);
}

typedef struct Options {
    int64_t seeds, first, effort, steps, height, unit, removed;
} Options;

/* The place of an option's number, or NULL. */
static int64_t *option(Options *o, const char *name)
{
    const struct {
        const char *name;
        int64_t *value;
    } all[] = {{"--seeds", &o->seeds},   {"--first", &o->first}, {"--effort", &o->effort},  {"--steps", &o->steps},
               {"--height", &o->height}, {"--unit", &o->unit},   {"--removed", &o->removed}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(name, all[i].name) == 0)
            return all[i].value;
    return NULL;
}

static void run_all(const char *kind, uint32_t count, const Options *o, char **allocator)
{
    Sum sum[64] = {0};
    uint32_t n = 0;
    for (; allocator[n] && n < 64; n++)
        sum[n].ratio = calloc((size_t)o->seeds, sizeof *sum[n].ratio);
    for (int64_t seed = o->first; seed < o->first + o->seeds; seed++) {
        Arena arena = {0};
        DrawPacking packing = {count, o->steps, o->height, o->unit, 0, o->removed};
        PlanProblem p = draw(&arena, kind, count, (uint64_t)seed, packing);
        for (uint32_t k = 0; k < n; k++)
            run(&p, (uint64_t)seed, allocator[k], (int)o->effort, &sum[k]);
        arena_free(&arena);
    }
    for (uint32_t k = 0; k < n; k++) {
        print_sum(allocator[k], &sum[k]);
        free(sum[k].ratio);
    }
}

int main(int argc, char **argv)
{
    static char *usual[] = {"best", "greedy", NULL};
    Options o = {.seeds = 3, .first = 1, .effort = 1, .steps = 1000, .height = 1 << 20, .unit = 1};
    int a = 3;
    for (int64_t *value; a + 1 < argc && (value = option(&o, argv[a])); a += 2)
        *value = atoll(argv[a + 1]);
    if (argc < 3 || o.seeds < 1 || (a < argc && argv[a][0] == '-'))
        return fputs("plan_kinds KIND COUNT [--OPTION N ...] [ALLOCATOR ...]\n", stderr), 2;
    run_all(argv[1], (uint32_t)atoll(argv[2]), &o, a < argc ? argv + a : usual);
    return 0;
}
