/* `nnc bench`: how long a model takes, and what that is of what the machine can do. */
#include <inttypes.h>
#include <math.h>

#include "cli/host.h"
#include "cli/inputs.h"
#include "cli/peak.h"
#include "kernel/kernel.h"

typedef struct Work { /* of one run */
    int64_t flops, bytes;
} Work;

static Work total_work(const Program *program)
{
    Work work = {0};
    for (uint32_t k = 0; k < program->kernel_count; k++) {
        work.flops += program->kernel[k].flops;
        work.bytes += program->kernel[k].bytes;
    }
    return work;
}

typedef struct Result {
    Str model;
    const char *target;
    Work work;
    Times times;
    double peak; /* operations per second */
    int64_t arena_bytes, weights_bytes;
    uint32_t kernels;
} Result;

static void print_table(Text *out, const Result *r)
{
    char arena[32], weights[32], moved[32];
    double median = r->times.second[r->times.count / 2], rate = (double)r->work.flops / median;

    text_printf(out, STR_FMT " for %s, one core, %u runs\n", STR_ARG(r->model), r->target, r->times.count);
    text_printf(out, "  latency      %10.3f ms    median; least %.3f, 90 %% under %.3f\n", median * 1e3,
                r->times.second[0] * 1e3, r->times.second[r->times.count * 9 / 10] * 1e3);
    text_printf(out, "  work         %10.3f GFLOP in %u kernels\n", (double)r->work.flops * 1e-9, r->kernels);
    text_printf(out, "  rate         %10.1f GFLOP/s, %.1f %% of the peak of %.1f measured now\n", rate * 1e-9,
                rate / r->peak * 100, r->peak * 1e-9);
    text_printf(out, "  bytes moved  %10s       %.1f GB/s\n", plan_bytes(moved, r->work.bytes),
                (double)r->work.bytes / median * 1e-9);
    text_printf(out, "  memory       %10s       arena; weights %s\n", plan_bytes(arena, r->arena_bytes),
                plan_bytes(weights, r->weights_bytes));
}

static void print_json(Text *out, const Result *r)
{
    double median = r->times.second[r->times.count / 2];

    text_printf(
        out, "{\"model\": \"" STR_FMT "\", \"target\": \"%s\", \"runs\": %u, \"median_s\": %.9g, \"least_s\": %.9g, ",
        STR_ARG(r->model), r->target, r->times.count, median, r->times.second[0]);
    text_printf(out,
                "\"flop\": %" PRId64 ", \"flop_per_s\": %.6g, \"peak_flop_per_s\": %.6g, \"share_of_peak\": %.4f, ",
                r->work.flops, (double)r->work.flops / median, r->peak, (double)r->work.flops / median / r->peak);
    text_printf(out,
                "\"bytes_moved\": %" PRId64 ", \"arena_bytes\": %" PRId64 ", \"weights_bytes\": %" PRId64
                ", \"kernels\": %u}\n",
                r->work.bytes, r->arena_bytes, r->weights_bytes, r->kernels);
}

/* The peak is measured before and after the model, so that both see the machine in the same states. */
static int measure(Cli *cli, const Program *program, const Host *host, double seconds, Result *result)
{
    double before, after;

    cli_step(cli, "warming up");
    host_time(cli, host, seconds / 4, 1);
    int status = peak_measure(cli, program->options.target, &before);
    if (status != STATUS_OK)
        return status;
    cli_step(cli, "timing");
    result->times = host_time(cli, host, seconds, 5);
    status = peak_measure(cli, program->options.target, &after);
    if (status != STATUS_OK)
        return status;
    result->peak = fmax(before, after);
    result->model = program->options.name;
    result->target = program->options.target->name;
    result->work = total_work(program);
    result->arena_bytes = program->arena_bytes;
    result->weights_bytes = program->weights_bytes;
    result->kernels = program->kernel_count;
    return STATUS_OK;
}

static int bench_model(Cli *cli, Model *model, double seconds, uint32_t format)
{
    Program program;
    Host host;
    Result result = {0};
    int status;
    const Tensor *const *input = inputs_read(cli, model, "random:1", &status);

    if (!input)
        return status;
    status = program_of(cli, model, "host", WEIGHTS_FILE, &program);
    if (status != STATUS_OK)
        return status;
    status = host_open(cli, &program, &host);
    if (status == STATUS_OK) {
        host_bind(cli, program.graph, &host, input);
        status = measure(cli, &program, &host, seconds, &result);
    }
    host_close(&host);
    if (status != STATUS_OK)
        return status;
    cli_step(cli, NULL);
    Text out = {0};
    if (format == 0)
        print_table(&out, &result);
    else
        print_json(&out, &result);
    cli_put(&out);
    text_free(&out);
    return STATUS_OK;
}

static int run(Cli *cli)
{
    static const char *const formats[] = {"table", "json", NULL};
    Str word = args_value(cli, "format");
    uint32_t format = 0;
    int64_t seconds = 2;
    const char *allocator;
    Model model;

    if ((word.ptr && !cli_choose(cli, "format", word, formats, &format)) ||
        !args_number(cli, "seconds", 0, 3600, &seconds) || !program_allocator(cli, &allocator) ||
        !program_runs_here(cli))
        return STATUS_USAGE;
    int status = model_load(cli, WEIGHTS_ALL, &model);
    return status == STATUS_OK ? bench_model(cli, &model, (double)seconds, format) : status;
}

const Verb verb_bench = {
    .name = "bench",
    .operands = "MODEL",
    .summary = "Time a model against what the machine can do",
    .text =
        "The median latency of repeated runs on one core, the rate of floating-point operations (a multiply-add is "
        "two), its share of the peak of a loop of multiply-adds that is compiled alike and measured before "
        "and after, and the bytes that the kernels read and write.",
    .flag = (const Flag[]){FLAG_TARGET,
                           {"seconds", "N", "How long to repeat (default: 2; at least 5 runs)"},
                           {"format", "table|json", "How to print (default: table)"},
                           {"input", "NAME=FILE|random:SEED|zeros", "An input (default: random:1)"},
                           FLAG_CC,
                           FLAG_DEFINE,
                           FLAG_WEIGHTS_FROM,
                           FLAG_ALLOCATOR,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc bench resnet50.nnc --target x86-64-v3", "as an AVX2 machine would run it"},
                                 {NULL, NULL}},
    .run = run,
};
