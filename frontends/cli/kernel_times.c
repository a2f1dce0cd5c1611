#include "cli/kernel_times.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "cli/clock.h"

#define COUNTED_RUNS 3
#define RESOLUTION   1e-9 /* seconds: what the clock counts in, so that a kernel that has run took some */

/* What the emitted code tells while it runs: it is called without a context. */
static struct {
    double last;    /* when the last kernel ended */
    double clock;   /* what reading the clock takes */
    double *second; /* per kernel: of this run */
    int64_t *calls; /* of all runs */
    const Counts *counts;
    Counted before, *counted; /* when the last kernel ended; per kernel: of all runs */
} now;

static void tick(long kernel)
{
    double time = clock_processor(), spent = time - now.last - now.clock;
    if (kernel >= 0) {
        now.second[kernel] += spent > RESOLUTION ? spent : RESOLUTION;
        now.calls[kernel]++;
    }
    now.last = clock_processor(); /* what was done here is nobody's */
}

static void look_away(long kernel)
{
    (void)kernel;
}

static void tick_counts(long kernel)
{
    Counted counted = counts_read(now.counts);
    for (int i = 0; kernel >= 0 && i < COUNTS; i++)
        now.counted[kernel].of[i] += counted.of[i] - now.before.of[i];
    now.before = counts_read(now.counts);
}

/* The least of some differences between two readings, one after the other. */
static double clock_cost(void)
{
    double least = 1;
    for (int i = 0; i < 100; i++) {
        double begin = clock_processor(), cost = clock_processor() - begin;
        least = cost < least ? cost : least;
    }
    return least;
}

void kernel_times_run(KernelTimes *times, Arena *arena, const Host *host)
{
    double *second = ARENA_ARRAY(arena, double, times->kernels);
    *times->hook = look_away;
    host_run(host); /* brings to the caches what has left them since the last run */
    *times->hook = tick;
    now.second = second;
    now.calls = times->calls;
    now.clock = clock_cost(); /* again: it follows the processor's frequency */
    host_run(host);
    for (uint32_t k = 0; k < times->kernels; k++)
        ARENA_PUSH(arena, times->second, times->count, times->capacity, second[k]);
    times->runs++;
}

KernelTimes kernel_times_open(Arena *arena, const Program *program, const Host *host)
{
    KernelTimes times = {.kernels = program->entry->memory.kernel_count};
    times.hook = dlsym(host->library, str_format(arena, STR_FMT "_tick", STR_ARG(program->options.name)).ptr);
    times.calls = ARENA_ARRAY(arena, int64_t, times.kernels);
    *times.hook = tick;
    kernel_times_run(&times, arena, host);
    return (KernelTimes){
        .kernels = times.kernels, .calls = ARENA_ARRAY(arena, int64_t, times.kernels), .hook = times.hook};
}

Counted *kernel_times_count(const KernelTimes *times, Arena *arena, const Host *host, const Counts *counts)
{
    now.counted = ARENA_ARRAY(arena, Counted, times->kernels);
    now.counts = counts;
    *times->hook = tick_counts;
    for (int run = 0; run < COUNTED_RUNS; run++)
        host_run(host);
    *times->hook = tick;
    for (uint32_t k = 0; k < times->kernels; k++)
        for (int i = 0; i < COUNTS; i++)
            now.counted[k].of[i] /= COUNTED_RUNS;
    return now.counted;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double kernel_times_quantile(const KernelTimes *times, uint32_t k, double share)
{
    Arena scratch = {0};
    double *column = ARENA_ARRAY(&scratch, double, times->runs);
    for (uint32_t r = 0; r < times->runs; r++)
        column[r] = times->second[(size_t)r * times->kernels + k];
    qsort(column, times->runs, sizeof *column, by_value);
    double second = column[(uint32_t)(share * (times->runs - 1) + 0.5)];
    arena_free(&scratch);
    return second;
}

int64_t kernel_times_calls(const KernelTimes *times, uint32_t k)
{
    return times->runs ? times->calls[k] / times->runs : 0;
}
