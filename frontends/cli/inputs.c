#include "cli/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input_files.h"
#include "formats/npy.h"
#include "formats/pnm.h"

/* Steele, Lea and Flood's SplitMix64: a good hash of a counter. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

void fill_random(Tensor *tensor, uint64_t seed)
{
    DType dtype = tensor->type->dtype;
    int64_t count = shape_elements(&tensor->type->shape);

    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = mix(mix(seed) + (uint64_t)i) >> 11;
        double number = dtype_is_float(dtype) ? (double)bits * 0x1p-52 - 1
                        : dtype == DT_BOOL    ? (double)(bits & 1)
                                              : (double)(bits % 100);
        tensor_set_number(tensor, i, number);
    }
}

/* Equal apart from extents of 1: [28, 28] serves for [1, 1, 28, 28]. */
static bool same_extents(const Shape *a, const Shape *b)
{
    uint32_t i = 0, j = 0;
    for (;;) {
        while (i < a->rank && a->dim[i] == 1)
            i++;
        while (j < b->rank && b->dim[j] == 1)
            j++;
        if (i == a->rank || j == b->rank)
            return i == a->rank && j == b->rank;
        if (a->dim[i++] != b->dim[j++])
            return false;
    }
}

/* Pixels are numbers from 0 to 255 of whatever dtype the input has. */
static const Tensor *convert_pixels(Arena *arena, const Tensor *pixels, const Type *type)
{
    Tensor *tensor = tensor_new(arena, type);
    int64_t count = shape_elements(&type->shape);
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(tensor, i, tensor_number(pixels, i));
    return tensor;
}

static const Tensor *read_file(Cli *cli, const Model *model, Str word, Str name, const Type *type)
{
    const Tensor *tensor = input_file_read(model->module, word, name, model_file_name(model, name));
    bool image = input_is_image(word);
    if (!tensor)
        return NULL;
    bool fits = same_extents(&tensor->type->shape, &type->shape);
    if (!fits || (!image && tensor->type->dtype != type->dtype)) {
        diag_file_error(&cli->diag, word, "input " STR_FMT " is " STR_FMT ", the file holds " STR_FMT, STR_ARG(name),
                        STR_ARG(type_show(&cli->arena, type)), STR_ARG(type_show(&cli->arena, tensor->type)));
        return NULL;
    }
    if (image)
        return convert_pixels(&cli->arena, tensor, type);
    Tensor *shaped = ARENA_NEW(&cli->arena, Tensor);
    *shaped = (Tensor){type, tensor->data};
    return shaped;
}

/* `random:7`; false when the word does not say so. */
static bool random_seed(Cli *cli, Str word, uint64_t *seed)
{
    char *end;
    if (word.len < 8 || memcmp(word.ptr, "random:", 7))
        return false;
    const char *text = str_copy(&cli->arena, word).ptr + 7;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    return !errno && !*end && *text >= '0' && *text <= '9';
}

static const Tensor *make_input(Cli *cli, const Model *model, Str word, Str name, const Type *type)
{
    uint64_t seed;

    if (str_is(word, "zeros"))
        return tensor_new(&cli->arena, type);
    if (!random_seed(cli, word, &seed))
        return read_file(cli, model, word, name, type);
    Tensor *tensor = tensor_new(&cli->arena, type);
    fill_random(tensor, seed);
    return tensor;
}

static uint32_t input_called(const Graph *graph, Str name)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (str_eq(graph_value(graph, graph->input[i])->name, name))
            return i;
    return NONE;
}

/* By its name, else by that of an ONNX file. */
static uint32_t find_input(const Model *model, Str name)
{
    uint32_t input = input_called(model->graph, name);
    return input == NONE ? input_called(model->graph, model_own_name(model, name)) : input;
}

static Str input_names(Cli *cli, const Graph *graph)
{
    Text text = {0};
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(&text, "%s" STR_FMT, i ? ", " : "", STR_ARG(graph_value(graph, graph->input[i])->name));
    Str names = str_copy(&cli->arena, text_view(&text));
    text_free(&text);
    return names;
}

static bool is_param(const Graph *graph, Str name)
{
    for (ValueId v = 0; v < graph->value_count; v++)
        if (name.len && graph->value[v].role == ROLE_PARAM && str_eq(graph->value[v].name, name))
            return true;
    return false;
}

/* False. */
static bool unknown_input(Cli *cli, const Model *model, Str flag, Str name)
{
    const Graph *graph = model->graph;
    bool named = name.ptr != NULL;
    if (!graph->input_count)
        cli_usage(cli, "--input " STR_FMT ": the model has no inputs", STR_ARG(flag));
    else if (named && (is_param(graph, name) || is_param(graph, model_own_name(model, name))))
        cli_usage(
            cli, "--input " STR_FMT ": this is a param, whose value the model has, and no input; the model's: " STR_FMT,
            STR_ARG(flag), STR_ARG(input_names(cli, graph)));
    else if (named)
        cli_usage(cli, "--input " STR_FMT ": no input has this name; the model's: " STR_FMT, STR_ARG(flag),
                  STR_ARG(input_names(cli, graph)));
    else
        cli_usage(cli, "--input " STR_FMT ": the model has several inputs: give NAME=" STR_FMT " for each of " STR_FMT,
                  STR_ARG(flag), STR_ARG(flag), STR_ARG(input_names(cli, graph)));
    return false;
}

/* `random:1` and `zeros` without a name are for all inputs that no other flag names. */
static bool is_for_all(InputFlag flag)
{
    return !flag.name.ptr && !input_path(flag.what).len;
}

/* What each input is to be; false after a usage error. */
static bool take_input_flags(Cli *cli, const Model *model, Str *what)
{
    const Graph *graph = model->graph;
    Str word, all = {0};

    for (uint32_t at = 0; args_next(cli, "input", &at, &word);) {
        InputFlag flag = input_flag_split(word);
        if (is_for_all(flag) && graph->input_count > 1) {
            if (all.ptr)
                return cli_usage(cli, "--input " STR_FMT ": all inputs are given twice", STR_ARG(word)), false;
            all = flag.what;
            continue;
        }
        bool only = !flag.name.ptr && graph->input_count == 1;
        uint32_t input = only ? 0 : flag.name.ptr ? find_input(model, flag.name) : NONE;
        if (input == NONE)
            return unknown_input(cli, model, word, flag.name);
        if (what[input].ptr)
            return cli_usage(cli, "--input " STR_FMT ": this input is given twice", STR_ARG(word)), false;
        what[input] = flag.what;
    }
    for (uint32_t i = 0; i < graph->input_count; i++)
        what[i] = what[i].ptr ? what[i] : all;
    return true;
}

const Tensor *const *inputs_read(Cli *cli, const Model *model, const char *fallback, int *status)
{
    const Graph *graph = model->graph;
    Str *word = ARENA_ARRAY(&cli->arena, Str, graph->input_count + 1);
    const Tensor **input = ARENA_ARRAY(&cli->arena, const Tensor *, graph->input_count + 1);

    *status = STATUS_USAGE;
    if (!take_input_flags(cli, model, word))
        return NULL;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const Value *value = graph_value(graph, graph->input[i]);
        if (!word[i].ptr && fallback)
            word[i] = str_from(fallback);
        if (!word[i].ptr)
            return cli_usage(cli,
                             "input " STR_FMT ": " STR_FMT " is not given; add --input " STR_FMT
                             "=FILE, =random:SEED or =zeros",
                             STR_ARG(value->name), STR_ARG(type_show(&cli->arena, value->type)), STR_ARG(value->name)),
                   NULL;
    }
    *status = STATUS_INPUT;
    bool good = true;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const Value *value = graph_value(graph, graph->input[i]);
        input[i] = make_input(cli, model, word[i], value->name, value->type);
        good = good && input[i];
    }
    return good ? input : NULL;
}

static uint32_t output_called(const Graph *graph, Str name)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (str_eq(graph->output[i].name, name))
            return i;
    return NONE;
}

/* The same of an output. */
static bool find_output(const Model *model, Str name, uint32_t *output)
{
    *output = output_called(model->graph, name);
    if (*output == NONE)
        *output = output_called(model->graph, model_own_name(model, name));
    return *output != NONE;
}

/* NAME=FILE, or FILE where there is one output.  False on an unknown name. */
static bool split_output(const Model *model, Str flag, uint32_t *output, Str *path)
{
    const char *equals = memchr(flag.ptr, '=', flag.len);
    uint32_t length = equals ? (uint32_t)(equals - flag.ptr) : 0;

    *output = 0;
    *path = equals ? (Str){equals + 1, flag.len - length - 1} : flag;
    return equals ? find_output(model, (Str){flag.ptr, length}, output) : model->graph->output_count == 1;
}

/* Of the flags from `at` on, does one write to the file, too? An archive takes several outputs. */
static bool is_written_again(Cli *cli, const Model *model, uint32_t at, uint32_t output, Str path)
{
    uint32_t number;
    Str flag, other;
    while (args_next(cli, "output", &at, &flag))
        if (split_output(model, flag, &number, &other) && str_eq(other, path) &&
            (number == output || !str_ends(path, ".npz")))
            return true;
    return false;
}

bool outputs_check(Cli *cli, const Model *model)
{
    const Graph *graph = model->graph;
    uint32_t output;
    Str flag, path;

    for (uint32_t at = 0; args_next(cli, "output", &at, &flag);) {
        if (!split_output(model, flag, &output, &path)) {
            Text names = {0};
            for (uint32_t i = 0; i < graph->output_count; i++)
                text_printf(&names, "%s" STR_FMT, i ? ", " : "", STR_ARG(graph->output[i].name));
            cli_usage(cli, "--output " STR_FMT ": no output has this name; the model's: %s", STR_ARG(flag),
                      names.ptr ? names.ptr : "none");
            text_free(&names);
            return false;
        }
        if (!str_ends(path, ".npy") && !str_ends(path, ".npz") && !str_ends(path, ".pgm") && !str_ends(path, ".ppm"))
            return cli_usage(cli, "--output " STR_FMT ": known are .npy, .npz, .pgm and .ppm", STR_ARG(flag)), false;
        if (is_written_again(cli, model, at, output, path))
            return cli_usage(cli, "--output " STR_FMT ": another --output writes to this file, too", STR_ARG(flag)),
                   false;
    }
    return true;
}

/* All outputs that go to this archive, written when its last flag is met. */
static bool write_npz(Cli *cli, const Model *model, const Tensor *const *output, Str path, uint32_t at)
{
    NamedTensor *member = ARENA_ARRAY(&cli->arena, NamedTensor, cli->argument_count + 1);
    uint32_t count = 0, number;
    Str flag, other;

    while (args_next(cli, "output", &at, &flag))
        if (split_output(model, flag, &number, &other) && str_eq(other, path))
            return true;
    for (at = 0; args_next(cli, "output", &at, &flag);)
        if (split_output(model, flag, &number, &other) && str_eq(other, path))
            member[count++] = (NamedTensor){model->graph->output[number].name, output[number]};
    return npz_write(&cli->diag, path, member, count);
}

int outputs_write(Cli *cli, const Model *model, const Tensor *const *output)
{
    uint32_t number;
    Str flag, path;
    bool good = true;

    for (uint32_t at = 0; args_next(cli, "output", &at, &flag);) {
        split_output(model, flag, &number, &path);
        if (str_ends(path, ".npz"))
            good &= write_npz(cli, model, output, path, at);
        else if (str_ends(path, ".npy"))
            good &= npy_write(&cli->diag, path, output[number]);
        else
            good &= pnm_write(&cli->diag, path, output[number]);
    }
    return good ? STATUS_OK : STATUS_ENVIRONMENT;
}
