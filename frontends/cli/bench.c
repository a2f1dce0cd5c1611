/* `nnc bench`: how long a model takes, and what that is of what the machine can do. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "cli/bench_kernels.h"
#include "cli/clock.h"
#include "cli/inputs.h"
#include "cli/roofline.h"
#include "cli/terminal.h"
#include "kernel/kernel.h"
#include "ops/meaning.h"

typedef struct Work { /* of one run */
    int64_t flops, bytes;
    bool once; /* there are loops that a condition alone ends, of which this is one round */
} Work;

/* Of all rounds, where their number is known, else of one; of all branches.  Recurses over their nesting. */
static void add_work(Work *work, const Entry *entry, const StepList *list, int64_t rounds)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const Step *step = &list->step[i];
        const Kernel *kernel = &entry->memory.kernel[step->kernel];
        int64_t own = step->kind == STEP_LOOP ? flow_most_rounds(&entry->graph->node[kernel->node[0]]) : 1;
        work->once |= !own;
        if (step->kind == STEP_LAUNCH && step_is_first(entry->memory.kernel, step)) {
            work->flops = number_plus(work->flops, number_times(kernel->flops, rounds));
            work->bytes = number_plus(work->bytes, number_times(roofline_bytes(entry, kernel), rounds));
        }
        for (uint32_t s = 0; s < step->body_count; s++)
            add_work(work, entry, &step->body[s], number_times(rounds, own ? own : 1));
    }
}

/* One figure over all samples; sorted when they are complete. */
typedef struct Samples {
    double *value;
    uint32_t count, capacity;
} Samples;

typedef struct Result {
    Str model;
    const char *target;
    Work work;
    Samples second, peak, share; /* of a run; operations per second; work / second / peak */
    uint32_t runs, threads;
    int64_t arena_bytes, weights_bytes;
    uint32_t kernels;
} Result;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const Samples *samples, uint32_t tenth)
{
    return samples->value[(uint64_t)(samples->count - 1) * tenth / 10];
}

/* `latency  17.2 us the median; ...`: the words are broken to the terminal. */
__attribute__((format(printf, 4, 5))) static void put_row(Text *out, const char *what, const char *amount,
                                                          const char *format, ...)
{
    Text words = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&words, format, args);
    va_end(args);
    text_printf(out, "  %-12s %12s ", what, amount);
    text_wrap(out, text_view(&words), 28, 28, terminal_width());
    text_char(out, '\n');
    text_free(&words);
}

static const char *flops_text(char text[40], double flops, const char *unit)
{
    char amount[32];
    snprintf(text, 40, "%s%s", roofline_amount(amount, flops), unit);
    return text;
}

static void print_table(Text *out, const Result *r)
{
    char a[40], b[40];
    double median = quantile(&r->second, 5);

    Text words = {0};
    text_printf(&words, STR_FMT " for %s, ", STR_ARG(r->model), r->target);
    if (r->threads > 1)
        text_printf(&words, "%u threads", r->threads);
    else
        text_printf(&words, "one core");
    text_printf(&words, ", %u run%s\n", r->runs, r->runs == 1 ? "" : "s");
    terminal_fold(out, text_view(&words));
    text_free(&words);
    Str least = str_from(roofline_seconds(a, quantile(&r->second, 0))),
        most = str_from(roofline_seconds(b, quantile(&r->second, 9)));
    char middle[32];
    put_row(out, "latency", roofline_seconds(middle, median), "the median; least " STR_FMT ", 90 %% under " STR_FMT,
            STR_ARG(least), STR_ARG(most));
    put_row(out, "work", flops_text(a, (double)r->work.flops, "FLOP"), "in %u kernel%s%s", r->kernels,
            r->kernels == 1 ? "" : "s",
            r->work.once
                ? ", of one round of loops whose rounds depend on data, as are rate and bytes; --kernels counts all"
                : "");
    put_row(out, "rate", flops_text(a, (double)r->work.flops / median, "FLOP/s"), "%.1f %% of the peak of %s",
            quantile(&r->share, 5) * 100, flops_text(b, quantile(&r->peak, 5), "FLOP/s"));
    put_row(out, "bytes moved", plan_bytes(a, r->work.bytes), "at %.1f GB/s", (double)r->work.bytes / median * 1e-9);
    put_row(out, "memory", plan_bytes(a, r->arena_bytes), "arena; weights %s", plan_bytes(b, r->weights_bytes));
}

static void print_json(Text *out, const Result *r)
{
    double median = quantile(&r->second, 5);

    text_printf(out,
                "{\"model\": \"" STR_FMT
                "\", \"target\": \"%s\", \"threads\": %u, \"runs\": %u, \"median_s\": %.9g, \"least_s\": %.9g, ",
                STR_ARG(r->model), r->target, r->threads, r->runs, median, quantile(&r->second, 0));
    text_printf(out,
                "\"flop\": %" PRId64
                ", \"loops_once\": %s, \"flop_per_s\": %.6g, \"peak_flop_per_s\": %.6g, \"share_of_peak\": %.4f, ",
                r->work.flops, r->work.once ? "true" : "false", (double)r->work.flops / median, quantile(&r->peak, 5),
                quantile(&r->share, 5));
    text_printf(out,
                "\"bytes_moved\": %" PRId64 ", \"arena_bytes\": %" PRId64 ", \"weights_bytes\": %" PRId64
                ", \"kernels\": %u}\n",
                r->work.bytes, r->arena_bytes, r->weights_bytes, r->kernels);
}

static void add(Cli *cli, Samples *samples, double value)
{
    ARENA_PUSH(&cli->arena, samples->value, samples->count, samples->capacity, value);
}

/* A sample is some runs, at least a millisecond, between two rounds of the peak: a machine that slows down slows both.
 */
static void sample(Cli *cli, const Host *host, const Peak *peak, uint32_t runs, Result *result)
{
    uint32_t threads = host->model->threads;
    double (*now)(void) = threads > 1 ? clock_seconds : clock_processor;
    double before = peak_round(peak), begin = now();
    for (uint32_t i = 0; i < runs; i++)
        host_run(host);
    double second = (now() - begin) / runs, highest = threads * (before + peak_round(peak)) / 2;
    add(cli, &result->second, second);
    add(cli, &result->peak, highest);
    add(cli, &result->share, (double)result->work.flops / second / highest);
    result->runs += runs;
}

static void sort(Samples *samples)
{
    qsort(samples->value, samples->count, sizeof *samples->value, by_value);
}

static int measure(Cli *cli, const Program *program, const Host *host, double seconds, Result *result)
{
    const Entry *entry = program->entry;
    Peak peak;
    int status = peak_open(cli, program->options.target, &peak);
    if (status == STATUS_OK) {
        cli_step(cli, "warming up");
        Times warm = host_time(cli, host, seconds / 4, 1);
        double once = warm.second[warm.count / 2];
        uint32_t runs = once > 1e-3 ? 1 : (uint32_t)(1e-3 / fmax(once, 1e-7)) + 1;
        result->model = program->options.name;
        result->target = program->options.target->name;
        add_work(&result->work, entry, &entry->steps.list, 1);
        result->arena_bytes = program->arena_bytes;
        result->weights_bytes = program->weights_bytes;
        result->kernels = entry_kernel_count(entry);
        cli_step(cli, "timing");
        double begin = clock_seconds();
        while (result->second.count < 5 || clock_seconds() - begin < seconds)
            sample(cli, host, &peak, runs, result);
        sort(&result->second);
        sort(&result->peak);
        sort(&result->share);
    }
    peak_close(&peak);
    return status;
}

typedef enum BenchFormat { FORMAT_TABLE, FORMAT_JSON, FORMAT_SVG, FORMAT_HTML } BenchFormat;
static const char *const formats[] = {"table", "json", "svg", "html", NULL};

typedef struct Asked {
    double seconds;
    uint32_t format;
    bool kernels;
} Asked;

static BenchPrinter *const kernel_printer[] = {[FORMAT_TABLE] = roofline_print_table,
                                               [FORMAT_JSON] = roofline_print_json,
                                               [FORMAT_SVG] = roofline_print_svg,
                                               [FORMAT_HTML] = roofline_print_html};

/* Measures the model as a whole, or its kernels one by one, and appends what is to be printed. */
static int measure_and_print(Cli *cli, const Program *program, const Host *host, const Asked *asked, Text *out)
{
    Result result = {.threads = host->model->threads};
    if (asked->kernels)
        return bench_kernels(cli, program, host, asked->seconds, kernel_printer[asked->format], out);
    int status = measure(cli, program, host, asked->seconds, &result);
    if (status != STATUS_OK)
        return status;
    (asked->format == FORMAT_JSON ? print_json : print_table)(out, &result);
    return STATUS_OK;
}

static int bench_model(Cli *cli, Model *model, const Asked *asked)
{
    CompileOptions options;
    Program program;
    Host host;
    Text out = {0};
    int status;
    const Tensor *const *input = inputs_read(cli, model, "random:1", &status);

    if (!input)
        return status;
    status = program_options(cli, model, "host", WEIGHTS_FILE, &options);
    if (status != STATUS_OK)
        return status;
    options.timed = asked->kernels;
    if (!program_compile(&model->graph, 1, &options, &program))
        return STATUS_INPUT;
    status = host_open(cli, &program, 0, &host);
    if (status == STATUS_OK) {
        host_bind(cli, program.entry->graph, &host, input);
        status = measure_and_print(cli, &program, &host, asked, &out);
    }
    host_close(&host);
    cli_step(cli, NULL);
    cli_put(&out);
    text_free(&out);
    return status;
}

static int run(Cli *cli)
{
    Str word = args_value(cli, "format");
    uint32_t format = 0;
    double seconds = 2;
    Model model;

    if ((word.ptr && !cli_choose(cli, "format", word, formats, &format)) ||
        !args_decimal(cli, "seconds", 3600, &seconds) || !program_flags(cli) || !program_runs_here(cli))
        return STATUS_USAGE;
    bool picture = format == FORMAT_SVG || format == FORMAT_HTML; /* of kernels */
    Asked asked = {seconds, format, picture || args_has(cli, "kernels")};
    if (asked.kernels && args_value(cli, "threads").ptr)
        return cli_usage(cli, "kernels are timed on one core, without --threads");
    int status = model_load(cli, WEIGHTS_ALL, &model);
    return status == STATUS_OK ? bench_model(cli, &model, &asked) : status;
}

const Verb verb_bench = {
    .name = "bench",
    .operands = "MODEL",
    .summary = "Time a model against what the machine can do",
    .text =
        "The median latency of repeated runs on one core in processor time (with --threads N by the clock, and against "
        "N "
        "times the peak), the rate of floating-point operations (a "
        "multiply-add is two), its share of the peak of a loop of multiply-adds that is compiled alike and "
        "measured between the runs (the median of the ratios), and the bytes that the kernels read and write.  Of a "
        "loop whose rounds depend on data these figures are of one round, which is said (\"loops_once\" in JSON).\n\n"
        "With --kernels the same of each kernel, medians of a run (of all its rounds, in a loop), under the roofs of "
        "the machine: operations for each byte that must be moved; the share of its roof, which is the peak or the "
        "bandwidth of the level of memory that its bytes fit in (for weights, of memory of the size of all weights and "
        "the arena), "
        "whichever takes longer; and what bounds it: compute, L1, L2, L3, memory, or overhead where it takes less than "
        "a microsecond and stays far below.  Under the peak a function such as exp counts as the operations that it is "
        "made of, and a quotient as eight multiply-adds.  Peak and bandwidths are measured in the same run, by loops "
        "that are compiled alike.  Where the machine allows it, cycles, instructions and misses of the last cache are "
        "counted, too.  --format svg draws the roofline, and html is a page with the drawing and the table.",
    .flag = (const Flag[]){FLAG_TARGET,
                           {"seconds", "N", "How long to repeat (default: 2; at least 5 runs)"},
                           {"format", "table|json|svg|html",
                            "How to print (default: table); svg and html are of --kernels"},
                           {"kernels", NULL, "Time every kernel of its own"},
                           {"input", "NAME=FILE|random:SEED|zeros", "An input (default: random:1)"},
                           FLAG_CC,
                           FLAG_DEFINE,
                           FLAGS_WEIGHTS,
                           FLAGS_BUILD,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc bench resnet50.nnc --target x86-64-v3", "as an AVX2 machine would run it"},
                                 {"nnc bench resnet50.nnc --kernels", "where the time goes"},
                                 {"nnc bench resnet50.nnc --format svg > roof.svg", "the same as a drawing"},
                                 {NULL, NULL}},
    .run = run,
};
