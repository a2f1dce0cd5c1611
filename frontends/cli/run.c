/* `nnc run`: compiles a model, runs it once on given inputs, shows and checks what comes out. */
#include <inttypes.h>
#include <math.h>

#include "cli/host.h"
#include "cli/inputs.h"
#include "cli/roofline.h"
#include "ops/family.h"
#include "passes/pass.h"

#define SHOWN     8   /* elements of an output */
#define BAR       24  /* columns of the longest bar of --top */
#define TIME_SPAN 0.5 /* seconds that --time repeats for */

/* Position `rank` (0 is best) of the largest elements of a row; NaN is worst. */
static int64_t nth_largest(const Tensor *tensor, int64_t begin, int64_t count, const int64_t *taken, int64_t rank)
{
    int64_t best = -1;
    double largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double x = tensor_number(tensor, begin + i);
        bool used = isnan(x);
        for (int64_t k = 0; k < rank; k++)
            used |= taken[k] == i;
        if (!used && (best < 0 || x > largest)) {
            best = i;
            largest = x;
        }
    }
    return best;
}

/* As it is: integers whole, also beyond what a double tells apart. */
static void put_element(Text *out, const Tensor *tensor, int64_t index, const char *real)
{
    DType dtype = tensor->type->dtype;
    double x = tensor_number(tensor, index);
    if (dtype == DT_I64)
        text_printf(out, "%" PRId64, ((const int64_t *)tensor->data)[index]);
    else if (dtype == DT_U64)
        text_printf(out, "%" PRIu64, ((const uint64_t *)tensor->data)[index]);
    else if (isnan(x))
        text_printf(out, "nan"); /* without a sign, which machines differ in */
    else
        text_printf(out, dtype_is_float(dtype) ? real : "%.0f", x);
}

static void show_nan(Text *out, const Tensor *tensor, int64_t begin, int64_t count)
{
    int64_t lost = 0;
    for (int64_t i = begin; i < begin + count; i++)
        lost += isnan(tensor_number(tensor, i)) != 0;
    if (lost)
        text_printf(out, "  %" PRId64 " of %" PRId64 " %s nan\n", lost, count, lost == 1 ? "is" : "are");
}

/* The best `k` along the last axis, with bars; NaN is no number that could be one. */
static void show_row(Text *out, const Tensor *tensor, int64_t begin, int64_t count, int64_t k)
{
    int64_t taken[64];
    double first = 0;
    for (int64_t rank = 0; rank < k; rank++) {
        taken[rank] = nth_largest(tensor, begin, count, taken, rank);
        if (taken[rank] < 0)
            return;
        double x = tensor_number(tensor, begin + taken[rank]);
        first = rank ? first : x;
        Text shown = {0};
        put_element(&shown, tensor, begin + taken[rank], "%.6f");
        text_printf(out, "  %6" PRId64 "  %10s  ", taken[rank], shown.ptr);
        text_free(&shown);
        double share = first > 0 && x > 0 && isfinite(first) ? x / first * BAR : 0;
        for (int i = 0; i < (int)lrint(share); i++)
            text_printf(out, "\u2588");
        text_char(out, '\n');
    }
}

static void show_top(Text *out, const Tensor *tensor, int64_t k)
{
    const Shape *shape = &tensor->type->shape;
    int64_t count = shape->rank ? shape->dim[shape->rank - 1] : 1, all = shape_elements(shape);
    k = k < count ? k : count;
    for (int64_t begin = 0; count && begin < all; begin += count) {
        if (all > count)
            text_printf(out, "  row %" PRId64 "\n", begin / count);
        show_row(out, tensor, begin, count, k);
        show_nan(out, tensor, begin, count);
    }
}

static void show_outputs(Cli *cli, const Model *model, const Tensor *const *output, int64_t top)
{
    Text out = {0};
    for (uint32_t i = 0; i < model->graph->output_count; i++) {
        int64_t count = shape_elements(&output[i]->type->shape);
        text_printf(&out, STR_FMT ": " STR_FMT, STR_ARG(str_shown(&cli->arena, model->graph->output[i].name)),
                    STR_ARG(type_show(&cli->arena, output[i]->type)));
        if (top) {
            text_char(&out, '\n');
            show_top(&out, output[i], top);
            continue;
        }
        text_printf(&out, " =");
        for (int64_t k = 0; k < count && k < SHOWN; k++) {
            text_char(&out, ' ');
            put_element(&out, output[i], k, "%.6g");
        }
        text_printf(&out, count > SHOWN ? " ...\n" : "\n");
    }
    cli_put_rows(&out);
    text_free(&out);
}

#define SEVERAL 64 /* times what the last bit of inputs changes is still rounding */

typedef struct Difference {
    double largest, scale; /* absolute; the largest magnitude of the reference */
    int64_t at;
} Difference;

/* Equal infinities, and NaN on both sides, agree. */
static double error_of(const Tensor *got, const Tensor *want, int64_t i)
{
    DType dtype = want->type->dtype;
    double a = tensor_number(got, i), b = tensor_number(want, i);
    if (dtype == DT_I64 || dtype == DT_U64) /* two of them may be the same double */
        return ((const uint64_t *)got->data)[i] == ((const uint64_t *)want->data)[i] ? 0 : fmax(fabs(a - b), 1);
    double error = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b);
    return isnan(error) ? INFINITY : error;
}

static Difference difference(const Tensor *got, const Tensor *want)
{
    Difference d = {0};
    for (int64_t i = 0; i < shape_elements(&want->type->shape); i++) {
        double error = error_of(got, want, i), magnitude = fabs(tensor_number(want, i));
        if (error > d.largest) {
            d.largest = error;
            d.at = i;
        }
        if (isfinite(magnitude))
            d.scale = fmax(d.scale, magnitude);
    }
    return d;
}

/* `, 3 of 4800 elements`: how many differ by more than that. */
static Str count_beyond(Arena *arena, const Tensor *got, const Tensor *want, double most)
{
    int64_t count = 0, all = shape_elements(&want->type->shape);
    for (int64_t i = 0; i < all; i++)
        count += error_of(got, want, i) > most;
    return str_format(arena, ", %" PRId64 " of %" PRId64 " elements", count, all);
}

typedef struct Expected {
    Graph *reference;
    const Tensor *const *input;
    const Tensor **output;
    double *within; /* relative to the largest magnitude of each output */
} Expected;

static bool evaluate(Cli *cli, const Graph *graph, const Tensor *const *input, Expected *e)
{
    Graph *reference = pass_reference(graph);
    if (!reference)
        return false;
    *e = (Expected){reference, input, ARENA_ARRAY(&cli->arena, const Tensor *, graph->output_count + 1),
                    ARENA_ARRAY(&cli->arena, double, graph->output_count + 1)};
    eval_graph(reference, &cli->arena, input, e->output, NULL);
    eval_tolerance(reference, &cli->arena, NULL, e->within);
    return true;
}

static double last_bit(DType dtype)
{
    return dtype == DT_F64 ? 0x1p-52 : dtype == DT_F32 ? 0x1p-23 : dtype == DT_F16 ? 0x1p-10 : 0x1p-7;
}

/* The tensor, whose floats are moved by their last bit, up or down. */
static const Tensor *moved(Arena *arena, const Tensor *tensor)
{
    if (!dtype_is_float(tensor->type->dtype))
        return tensor;
    Tensor *near = tensor_new(arena, tensor->type);
    double by = last_bit(tensor->type->dtype);
    for (int64_t i = 0; i < shape_elements(&tensor->type->shape); i++) {
        bool up = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 63;
        tensor_set_number(near, i, tensor_number(tensor, i) * (up ? 1 + by : 1 - by));
    }
    return near;
}

/* How much inputs that differ in the last bit change each output of the reference, where that is a float. */
static double *find_noise(Cli *cli, const Expected *e)
{
    const Graph *graph = e->reference;
    double *noise = ARENA_ARRAY(&cli->arena, double, graph->output_count + 1);
    const Tensor **input = ARENA_ARRAY(&cli->arena, const Tensor *, graph->input_count + 1);
    const Tensor **output = ARENA_ARRAY(&cli->arena, const Tensor *, graph->output_count + 1);
    for (uint32_t i = 0; i < graph->input_count; i++)
        input[i] = moved(&cli->arena, e->input[i]);
    eval_graph(e->reference, &cli->arena, input, output, NULL);
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (dtype_is_float(output[i]->type->dtype))
            noise[i] = difference(output[i], e->output[i]).largest;
    return noise;
}

static double largest_input(const Expected *e)
{
    double largest = 0;
    for (uint32_t i = 0; i < e->reference->input_count; i++)
        if (dtype_is_float(e->input[i]->type->dtype))
            largest = fmax(largest, difference(e->input[i], e->input[i]).scale);
    return largest;
}

/* What is 0 but for rounding is as large as its errors: it agrees where inputs a bit apart would change it as much, and
 * that is little beside the inputs, as a step of floor is not. */
static int check(Cli *cli, const Model *model, const Tensor *const *got, const Expected *want)
{
    int status = STATUS_OK;
    const double *noise = NULL;
    Text out = {0};
    for (uint32_t i = 0; i < model->graph->output_count; i++) {
        Difference d = difference(got[i], want->output[i]);
        double relative = d.largest > 0 ? d.largest / (d.scale > 0 ? d.scale : 1) : 0;
        bool good = relative <= want->within[i], rounded = false;
        if (!good && isfinite(d.largest)) {
            noise = noise ? noise : find_noise(cli, want);
            rounded = good = d.largest <= SEVERAL * noise[i] && d.largest <= want->within[i] * largest_input(want);
        }
        Str beyond = good ? (Str){0} : count_beyond(&cli->arena, got[i], want->output[i], want->within[i] * d.scale);
        text_printf(
            &out,
            "check " STR_FMT ": largest error %.3g, %.3g of the largest value, at element %" PRId64 STR_FMT ": %s\n",
            STR_ARG(str_shown(&cli->arena, model->graph->output[i].name)), d.largest, relative, d.at, STR_ARG(beyond),
            rounded ? "agrees but for rounding"
            : good  ? "agrees"
                    : "DIFFERS");
        status = good ? status : STATUS_INPUT;
    }
    cli_put_rows(&out);
    text_free(&out);
    return status;
}

static void show_time(Cli *cli, const Host *host)
{
    cli_step(cli, "timing");
    Times times = host_time(cli, host, TIME_SPAN, 5);
    cli_step(cli, NULL);
    Text out = {0};
    char median[32], least[32];
    text_printf(&out, "latency: %s median of %u runs, %s least\n",
                roofline_seconds(median, times.second[times.count / 2]), times.count,
                roofline_seconds(least, times.second[0]));
    cli_put_rows(&out);
    text_free(&out);
}

static int finish(Cli *cli, const Model *model, const Tensor *const *output, const Expected *expected, int64_t top)
{
    cli_step(cli, NULL);
    show_outputs(cli, model, output, top);
    int status = expected ? check(cli, model, output, expected) : STATUS_OK;
    int written = outputs_write(cli, model, output);
    return written ? written : status;
}

static int run_compiled(Cli *cli, Model *model, const Tensor *const *input, const Expected *expected, int64_t top)
{
    Program program;
    Host host;
    int status = program_of(cli, model, "host", WEIGHTS_FILE, &program);

    if (status != STATUS_OK)
        return status;
    status = host_open(cli, &program, 0, &host);
    if (status == STATUS_OK) {
        const Tensor **output = host_bind(cli, program.entry->graph, &host, input);
        cli_step(cli, "running");
        int code = host_run(&host);
        if (code)
            status = cli_environment("the compiled model returned %d", code);
        else
            status = finish(cli, model, output, expected, top);
        if (args_has(cli, "time"))
            show_time(cli, &host);
    }
    host_close(&host);
    return status;
}

static int run(Cli *cli)
{
    Model model;
    Str target = args_value(cli, "target");
    bool reference = target.ptr && str_is(target, "reference");
    int64_t top = 0;
    static const char *const of_compiled[] = {"check", "time", NULL};

    if (target.ptr && !reference && !program_target_named(cli, target, "reference"))
        return STATUS_USAGE;
    if (reference && !args_exclude(cli, "target reference", of_compiled))
        return STATUS_USAGE;
    if (!args_number(cli, "top", 1, 64, &top) || !program_flags(cli) || (!reference && !program_runs_here(cli)))
        return STATUS_USAGE;
    int status = model_load(cli, WEIGHTS_ALL, &model);
    if (status != STATUS_OK)
        return status;
    if (!outputs_check(cli, &model))
        return STATUS_USAGE;
    const Tensor *const *input = inputs_read(cli, &model, NULL, &status);
    if (!input)
        return status;
    Expected expected = {0};
    if (reference || args_has(cli, "check")) { /* before compiling, which rewrites the graph */
        cli_step(cli, "evaluating the reference");
        if (!evaluate(cli, model.graph, input, &expected))
            return STATUS_INPUT;
    }
    if (reference)
        return finish(cli, &model, expected.output, NULL, top);
    return run_compiled(cli, &model, input, expected.output ? &expected : NULL, top);
}

const Verb verb_run = {
    .name = "run",
    .operands = "MODEL",
    .summary = "Compile a model and run it on given inputs",
    .text =
        "Inputs are .npy, .npz (FILE.npz takes its one member or that of the input's name, FILE.npz:MEMBER another), "
        ".pgm and "
        ".ppm (pixels from 0 to 255, channels first), random:SEED (floats in [-1, 1), integers from 0 to 99) or "
        "zeros. Where there is one input, NAME= may be left out; random:SEED and zeros without it are for all inputs "
        "that "
        "no other flag names. Extents of 1 do not matter, and those that the model leaves open are the file's. "
        "`--target reference` "
        "runs the evaluator and needs no C compiler.\n"
        "\n"
        "--check runs the reference evaluator too and states the largest error of each output; the exit status is "
        "1 when one is larger than 1e-4 (f32), 1e-9 (f64) or 2e-2 (f16, bf16) of the largest value, by the narrowest "
        "dtype that the output was computed through. What is 0 but for rounding agrees, too: errors that are as little "
        "of the largest input, and that inputs make which differ in their last bits.",
    .flag = (const Flag[]){{"input", "NAME=FILE|random:SEED|zeros", "An input; once for each"},
                           {"output", "NAME=FILE", "Write an output: .npy, .npz, .pgm or .ppm"},
                           {"top", "K", "Show the K largest elements along the last axis"},
                           {"check", NULL, "Compare with the reference evaluator"},
                           {"time", NULL, "Tell the latency, as median of repeated runs"},
                           FLAG_TARGET,
                           FLAG_CC,
                           FLAG_DEFINE,
                           FLAGS_WEIGHTS,
                           FLAGS_BUILD,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc run digits.nnc --input image=3.pgm --top 3", "the three best classes"},
                                 {"nnc run digits.nnc --input random:1 --check", "compiled code against the evaluator"},
                                 {NULL, NULL}},
    .run = run,
};
