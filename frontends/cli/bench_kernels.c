#include "cli/bench_kernels.h"

#include <stdlib.h>

#include "cli/clock.h"
#include "cli/kernel_times.h"
#include "cli/roofline.h"
#include "kernel/kernel.h"

#define LEAST_RUNS 5
#define MOST_RUNS  10000

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *value, uint32_t count)
{
    qsort(value, count, sizeof *value, by_value);
    return value[count / 2];
}

/* Runs, between rounds of the peak.  Returns the median of these. */
static double take_samples(Cli *cli, const Host *host, const Peak *peak, double seconds, KernelTimes *times)
{
    double *highest = ARENA_ARRAY(&cli->arena, double, MOST_RUNS);
    double begin = clock_seconds();
    while (times->runs < LEAST_RUNS || (clock_seconds() - begin < seconds && times->runs < MOST_RUNS)) {
        kernel_times_run(times, &cli->arena, host);
        highest[times->runs - 1] = peak_round(peak);
    }
    return median_of(highest, times->runs);
}

static void fill_rows(Cli *cli, const Entry *entry, const KernelTimes *times, const Counted *counted,
                      Roofline *roofline)
{
    roofline->row = ARENA_ARRAY(&cli->arena, RoofRow, times->kernels);
    for (uint32_t k = 0; k < times->kernels; k++) {
        const Kernel *kernel = &entry->memory.kernel[k];
        int64_t calls = kernel_times_calls(times, k);
        if (!calls)
            continue;
        RoofRow *row = &roofline->row[roofline->count++];
        double bytes = (double)roofline_bytes(entry, kernel), weights = (double)roofline_weights(entry, kernel);
        *row = (RoofRow){.kernel = kernel,
                         .number = k,
                         .calls = calls,
                         .second = kernel_times_quantile(times, k, 0.5),
                         .flops = (double)calls * (double)kernel->flops,
                         .work = (double)calls * (double)kernel->work,
                         .bytes = (double)calls * bytes,
                         .weights = calls > 1         ? 0
                                    : weights < bytes ? weights
                                                      : bytes,
                         .counted = counted ? &counted[k] : NULL};
        roofline->second += row->second;
        roofline_place(roofline, row);
    }
    for (uint32_t i = 0; i < roofline->count; i++)
        roofline->row[i].share = roofline->second > 0 ? roofline->row[i].second / roofline->second : 0;
}

static bool measure_levels(Cli *cli, const Peak *peak, Levels *levels)
{
    cli_step(cli, "measuring memory");
    return bandwidth_measure(peak, levels);
}

static int measure(Cli *cli, const Program *program, const Host *host, const Peak *peak, double seconds, Text *out,
                   BenchPrinter *print)
{
    Levels levels;
    Counts counts;
    bandwidth_levels(program->options.target, program->weights_bytes + program->arena_bytes, &levels);
    Roofline roofline = {.model = program->options.name, .target = program->options.target->name, .levels = &levels};
    if (!measure_levels(cli, peak, &levels))
        return cli_environment("no memory to measure how fast memory is");
    cli_step(cli, "warming up");
    KernelTimes times = kernel_times_open(&cli->arena, program, host);
    cli_step(cli, "timing");
    roofline.peak = take_samples(cli, host, peak, seconds, &times);
    roofline.runs = times.runs;
    measure_levels(cli, peak, &levels);
    roofline.uncounted = counts_open(&counts);
    const Counted *counted = roofline.uncounted ? NULL : kernel_times_count(&times, &cli->arena, host, &counts);
    counts_close(&counts);
    fill_rows(cli, program->entry, &times, counted, &roofline);
    print(out, &roofline);
    return STATUS_OK;
}

int bench_kernels(Cli *cli, const Program *program, const Host *host, double seconds, BenchPrinter *print, Text *out)
{
    Peak peak;
    int status = peak_open(cli, program->options.target, &peak);
    if (status == STATUS_OK)
        status = measure(cli, program, host, &peak, seconds, out, print);
    peak_close(&peak);
    return status;
}
