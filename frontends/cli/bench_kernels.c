#include "cli/bench_kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/clock.h"
#include "cli/kernel_times.h"
#include "cli/terminal.h"
#include "kernel/kernel.h"
#include "plan/report.h"

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

typedef struct Samples {
    KernelTimes times;
    double *median;   /* per kernel, of a run */
    double run, peak; /* of all kernels together; floating-point operations per second, the median */
} Samples;

static void take_samples(Cli *cli, const Host *host, const Peak *peak, double seconds, Samples *samples)
{
    double *highest = ARENA_ARRAY(&cli->arena, double, MOST_RUNS);
    double begin = clock_seconds();
    KernelTimes *times = &samples->times;
    while (times->runs < LEAST_RUNS || (clock_seconds() - begin < seconds && times->runs < MOST_RUNS)) {
        kernel_times_run(times, &cli->arena, host);
        highest[times->runs - 1] = peak_round(peak);
    }
    samples->peak = median_of(highest, times->runs);
    samples->median = ARENA_ARRAY(&cli->arena, double, times->kernels);
    for (uint32_t k = 0; k < times->kernels; k++)
        samples->run += samples->median[k] = kernel_times_quantile(times, k, 0.5);
}

/* Rows */

typedef struct Row {
    const Kernel *kernel;
    uint32_t number;
    double second, share; /* of a run: all its rounds; of the run */
    double flops, bytes;  /* of all rounds */
} Row;

static Row row_of(const Entry *entry, const Samples *samples, uint32_t k)
{
    const Kernel *kernel = &entry->memory.kernel[k];
    double calls = (double)kernel_times_calls(&samples->times, k), second = samples->median[k];
    return (Row){kernel,
                 k,
                 second,
                 samples->run > 0 ? second / samples->run : 0,
                 calls * (double)kernel->flops,
                 calls * (double)kernel->bytes};
}

static double rate(double work, double second)
{
    return second > 0 ? work / second * 1e-9 : 0;
}

#define NUMBERS    52 /* columns of a row before its words */
#define RECIPE     11
#define LEAST_NAME 8

/* Has a line room for recipes beside the names of kernels? */
static bool shows_recipes(void)
{
    uint32_t width = terminal_known_width();
    return !width || width >= NUMBERS + RECIPE + LEAST_NAME;
}

static void put_name(Text *out, Str name)
{
    int width = (int)terminal_known_width(), columns = plan_columns(name);
    int room = width - NUMBERS - (shows_recipes() ? RECIPE : 0);
    room = room < LEAST_NAME ? LEAST_NAME : room;
    plan_put_elided(out, name, width && room < columns ? room : columns);
}

/* The kernel, and below it its numbers. */
static void put_block(Text *out, const Row *row, double peak)
{
    static const char *const label[] = {"microseconds", "%", "GFLOP/s", "of peak", "GB/s"};
    double gflops = rate(row->flops, row->second);
    const double number[] = {row->second * 1e6, row->share * 100, gflops, gflops * 1e11 / peak,
                             rate(row->bytes, row->second)};
    char digits[5][32];
    Str value[5], name = row->kernel->name;
    int columns = (int)terminal_known_width();
    for (int i = 0; i < 5; i++) {
        snprintf(digits[i], sizeof digits[i], "%.1f", number[i]);
        value[i] = str_from(digits[i]);
    }
    text_printf(out, "%-4u", row->number);
    plan_put_elided(out, name, plan_columns(name) < columns - 4 ? plan_columns(name) : columns - 4);
    text_char(out, '\n');
    plan_put_pairs(out, label, value, 5, 8, columns);
}

static void print_row(Text *out, const Row *row, double peak)
{
    double gflops = rate(row->flops, row->second);
    text_printf(out, "%6u %12.1f %6.1f %8.1f %7.1f %7.1f ", row->number, row->second * 1e6, row->share * 100, gflops,
                gflops * 1e11 / peak, rate(row->bytes, row->second));
    if (shows_recipes())
        text_printf(out, " %-9s ", row->kernel->recipe.provider->name);
    put_name(out, row->kernel->name);
    text_char(out, '\n');
}

static void print_table(Text *out, const Program *program, const Samples *samples)
{
    const Entry *entry = program->entry;
    Text head = {0};
    text_printf(&head, STR_FMT " for %s, one core, %u run%s, the peak is %.1f GFLOP/s\n",
                STR_ARG(program->options.name), program->options.target->name, samples->times.runs,
                samples->times.runs == 1 ? "" : "s", samples->peak * 1e-9);
    terminal_fold(out, text_view(&head));
    text_free(&head);
    uint32_t columns = terminal_known_width();
    bool table = !columns || columns >= NUMBERS + LEAST_NAME;
    if (table)
        text_printf(out, "%6s %12s %6s %8s %7s %7s %s%s\n", "kernel", "microseconds", "%", "GFLOP/s", "of peak", "GB/s",
                    shows_recipes() ? " recipe    " : "", "what");
    for (uint32_t k = 0; k < samples->times.kernels; k++) {
        Row row = row_of(entry, samples, k);
        if (kernel_times_calls(&samples->times, k))
            (table ? print_row : put_block)(out, &row, samples->peak);
    }
    text_printf(out, table ? "%6s %12.1f\n" : "%s\n  microseconds %8.1f\n", "all", samples->run * 1e6);
}

static void print_json(Text *out, const Program *program, const Samples *samples)
{
    const char *comma = "";
    text_printf(out, "{\"model\": \"" STR_FMT "\", \"target\": \"%s\", \"runs\": %u, \"peak_flop_per_s\": %.6g, ",
                STR_ARG(program->options.name), program->options.target->name, samples->times.runs, samples->peak);
    text_printf(out, "\"median_s\": %.9g, \"kernels\": [", samples->run);
    for (uint32_t k = 0; k < samples->times.kernels; k++) {
        Row row = row_of(program->entry, samples, k);
        if (!kernel_times_calls(&samples->times, k))
            continue;
        text_printf(out, "%s\n  {\"kernel\": %u, \"name\": \"" STR_FMT "\", \"recipe\": \"%s\", \"median_s\": %.9g, ",
                    comma, k, STR_ARG(row.kernel->name), row.kernel->recipe.provider->name, row.second);
        text_printf(out, "\"calls\": %" PRId64 ", \"flop\": %.0f, \"bytes_moved\": %.0f}",
                    kernel_times_calls(&samples->times, k), row.flops, row.bytes);
        comma = ",";
    }
    text_printf(out, "]}\n");
}

int bench_kernels(Cli *cli, const Program *program, const Host *host, double seconds, bool json, Text *out)
{
    Samples samples = {0};
    Peak peak;
    int status = peak_open(cli, program->options.target, &peak);
    if (status == STATUS_OK) {
        cli_step(cli, "warming up");
        samples.times = kernel_times_open(&cli->arena, program, host);
        cli_step(cli, "timing");
        take_samples(cli, host, &peak, seconds, &samples);
        (json ? print_json : print_table)(out, program, &samples);
    }
    peak_close(&peak);
    return status;
}
