#include "cli/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* `FILE.npz` or `FILE.npz:MEMBER`; the member is the input's name, or the only one there is. */
static const Tensor *read_npz(Cli *cli, const Model *model, Str word, Str input)
{
    Str path = word, member = {NULL, 0};
    for (uint32_t i = 0; i + 5 < word.len; i++)
        if (memcmp(word.ptr + i, ".npz:", 5) == 0) {
            path.len = i + 4;
            member = (Str){word.ptr + i + 5, word.len - i - 5};
        }
    if (!member.ptr && npz_has(path, input))
        member = input;
    (void)cli;
    return npz_read(model->module, path, member);
}

static bool is_npz(Str word)
{
    if (str_ends(word, ".npz"))
        return true;
    for (uint32_t i = 0; i + 5 < word.len; i++)
        if (memcmp(word.ptr + i, ".npz:", 5) == 0)
            return true;
    return false;
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
    bool image = str_ends(word, ".pgm") || str_ends(word, ".ppm");
    const Tensor *tensor;

    if (image)
        tensor = pnm_read(model->module, word);
    else if (is_npz(word))
        tensor = read_npz(cli, model, word, name);
    else if (str_ends(word, ".npy"))
        tensor = npy_read(model->module, word);
    else
        return diag_file_error(&cli->diag, word,
                               "input " STR_FMT ": known are .npy, .npz, .pgm, .ppm, random:SEED and zeros",
                               STR_ARG(name)),
               NULL;
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

Str input_file(Str flag)
{
    const char *equals = memchr(flag.ptr, '=', flag.len);
    uint32_t skip = equals ? (uint32_t)(equals - flag.ptr) + 1 : 0;
    Str path = {flag.ptr + skip, flag.len - skip};
    if (str_is(path, "zeros") || (path.len >= 7 && memcmp(path.ptr, "random:", 7) == 0))
        return (Str){0};
    for (uint32_t i = 0; i + 5 < path.len; i++)
        if (memcmp(path.ptr + i, ".npz:", 5) == 0)
            path.len = i + 4;
    return path;
}

static uint32_t find_input(const Graph *graph, Str name)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (str_eq(graph_value(graph, graph->input[i])->name, name))
            return i;
    return NONE;
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

/* False. */
static bool unknown_input(Cli *cli, const Graph *graph, Str flag, bool named)
{
    if (!graph->input_count)
        cli_usage(cli, "--input " STR_FMT ": the model has no inputs", STR_ARG(flag));
    else if (named)
        cli_usage(cli, "--input " STR_FMT ": no input has this name; the model's: " STR_FMT, STR_ARG(flag),
                  STR_ARG(input_names(cli, graph)));
    else
        cli_usage(cli, "--input " STR_FMT ": the model has several inputs: give NAME=" STR_FMT " for each of " STR_FMT,
                  STR_ARG(flag), STR_ARG(flag), STR_ARG(input_names(cli, graph)));
    return false;
}

/* Splits NAME=REST; false after a usage error. */
static bool take_input_flags(Cli *cli, const Model *model, Str *word)
{
    const Graph *graph = model->graph;
    Str flag;

    for (uint32_t at = 0; args_next(cli, "input", &at, &flag);) {
        const char *equals = memchr(flag.ptr, '=', flag.len);
        uint32_t length = equals ? (uint32_t)(equals - flag.ptr) : 0;
        uint32_t input = equals ? find_input(graph, (Str){flag.ptr, length}) : NONE;
        if (input == NONE && graph->input_count == 1 && !equals)
            input = 0;
        else if (input == NONE)
            return unknown_input(cli, graph, flag, equals != NULL);
        if (word[input].ptr)
            return cli_usage(cli, "--input " STR_FMT ": this input is given twice", STR_ARG(flag)), false;
        uint32_t skip = equals ? length + 1 : 0;
        word[input] = (Str){flag.ptr + skip, flag.len - skip};
    }
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

/* NAME=FILE, or FILE where there is one output.  False on an unknown name. */
static bool split_output(const Graph *graph, Str flag, uint32_t *output, Str *path)
{
    const char *equals = memchr(flag.ptr, '=', flag.len);
    uint32_t length = equals ? (uint32_t)(equals - flag.ptr) : 0;

    *output = 0;
    *path = flag;
    if (!equals)
        return graph->output_count == 1;
    *path = (Str){equals + 1, flag.len - length - 1};
    for (; *output < graph->output_count; ++*output)
        if (str_eq(graph->output[*output].name, (Str){flag.ptr, length}))
            return true;
    return false;
}

bool outputs_check(Cli *cli, const Model *model)
{
    const Graph *graph = model->graph;
    uint32_t output;
    Str flag, path;

    for (uint32_t at = 0; args_next(cli, "output", &at, &flag);) {
        if (!split_output(graph, flag, &output, &path)) {
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
        if (split_output(model->graph, flag, &number, &other) && str_eq(other, path))
            return true;
    for (at = 0; args_next(cli, "output", &at, &flag);)
        if (split_output(model->graph, flag, &number, &other) && str_eq(other, path))
            member[count++] = (NamedTensor){model->graph->output[number].name, output[number]};
    return npz_write(&cli->diag, path, member, count);
}

int outputs_write(Cli *cli, const Model *model, const Tensor *const *output)
{
    uint32_t number;
    Str flag, path;
    bool good = true;

    for (uint32_t at = 0; args_next(cli, "output", &at, &flag);) {
        split_output(model->graph, flag, &number, &path);
        if (str_ends(path, ".npz"))
            good &= write_npz(cli, model, output, path, at);
        else if (str_ends(path, ".npy"))
            good &= npy_write(&cli->diag, path, output[number]);
        else
            good &= pnm_write(&cli->diag, path, output[number]);
    }
    return good ? STATUS_OK : STATUS_ENVIRONMENT;
}
