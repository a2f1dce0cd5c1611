#include "cli/model.h"

#include <string.h>

#include "api/prepare.h"
#include "cli/input_files.h"
#include "formats/wanted.h"
#include "formats/weights.h"
#include "nnc/text.h"

/* -D X=V flags as a list, and what the files of inputs tell; STATUS_OK, or what to return. */
static int take_defines(Cli *cli, Define **list, uint32_t *count)
{
    uint32_t capacity = 0;
    Str word;

    *list = NULL;
    *count = 0;
    for (uint32_t at = 0; args_next(cli, "D", &at, &word);) {
        const char *equals = memchr(word.ptr, '=', word.len);
        if (!equals || equals == word.ptr || equals + 1 == word.ptr + word.len)
            return cli_usage(cli, "-D wants X=V, not `" STR_FMT "`", STR_ARG(word));
        uint32_t length = (uint32_t)(equals - word.ptr);
        Define define = {.name = {word.ptr, length}, .value = {equals + 1, word.len - length - 1}};
        ARENA_PUSH(&cli->arena, *list, *count, capacity, define);
    }
    return input_files_define(cli, list, count, &capacity) ? STATUS_OK : STATUS_INPUT;
}

static Graph *choose_graph(Cli *cli, const Module *module)
{
    Str wanted = args_value(cli, "graph");
    Text names = {0};

    for (uint32_t i = 0; i < module->graph_count; i++) {
        if (!wanted.ptr || str_eq(module->graph[i]->name, wanted))
            return text_free(&names), module->graph[i];
        text_printf(&names, "%s" STR_FMT, i ? ", " : "", STR_ARG(module->graph[i]->name));
    }
    Str path = args_operand(cli, 0);
    if (wanted.ptr)
        diag_file_error(&cli->diag, path, "no graph is called " STR_FMT "; it has: %s", STR_ARG(wanted),
                        names.ptr ? names.ptr : "none");
    else
        diag_file_error(&cli->diag, path, "no graph is in it");
    text_free(&names);
    return NULL;
}

Str model_weights_path(const Cli *cli, Arena *arena, Str model)
{
    Str path = args_value(cli, "weights-from");
    if (path.ptr || onnx_is_path(model))
        return path;
    path = weights_path_beside(arena, model);
    return file_exists(path) ? path : (Str){NULL, 0};
}

static bool load_weights(Cli *cli, WeightsNeed need, Model *model)
{
    bool fresh = need == WEIGHTS_NEW;
    Str given = args_value(cli, "weights-from"), found = model_weights_path(cli, &cli->arena, model->path);
    model->weights_path = fresh ? given : found;
    WeightsOptions options = {
        .path = model->weights_path,
        .need_elements = need != WEIGHTS_SOME,
        .own = onnx_is_path(model->path),
        .fresh = fresh,
        .unread = fresh && !given.len ? found : (Str){NULL, 0},
        .init_missing = args_has(cli, "init-missing"),
        .convert = args_has(cli, "convert-weights"),
    };
    return weights_load(model->module, &options, &model->weights);
}

static bool has_elements(const Value *value)
{
    bool param = value->role == ROLE_PARAM || value->role == ROLE_STATE;
    return nnc_const_is_stored(value) || (param && value->data);
}

bool model_save(Cli *cli, Module *module, Str path, const Text *text)
{
    FileWriter writer;
    if (!file_writer_open(&writer, &cli->diag, path))
        return false;
    file_writer_put(&writer, text->ptr, text->len);
    if (weights_save(module, weights_path_beside(&cli->arena, path), has_elements))
        return file_writer_commit(&writer, &cli->diag);
    file_writer_abandon(&writer);
    return false;
}

const Str *model_files(Arena *arena, const Model *model, uint32_t *count)
{
    Str *file = ARENA_ARRAY(arena, Str, model->module->file_count + 2);
    *count = 0;
    for (uint32_t i = 0; i < model->module->file_count; i++)
        file[(*count)++] = model->module->file[i];
    file[(*count)++] = model->path;
    if (model->weights_path.len)
        file[(*count)++] = model->weights_path;
    return file;
}

bool model_keeps_files(Cli *cli, const Model *model, Str path)
{
    uint32_t count;
    const Str *file = model_files(&cli->arena, model, &count);
    for (uint32_t i = 0; i < count; i++)
        if (file[i].len && file_same(path, file[i]))
            return diag_file_error(&cli->diag, path,
                                   "this file belongs to the model that is read: give another name to write to");
    return true;
}

bool model_keeps_weights(Cli *cli, const Model *model, Str path)
{
    Str beside = weights_path_beside(&cli->arena, path);
    bool over = model->weights_path.len && file_same(beside, model->weights_path) &&
                weights_are_saved(model->module, has_elements);
    const StoredTensor *lost = over ? weights_first_lost(model->module, &model->weights.stored, has_elements) : NULL;
    if (lost)
        diag_file_error(&cli->diag, beside,
                        "these are the weights of " STR_FMT ", and " STR_FMT " would be lost: give another -o",
                        STR_ARG(model->path), STR_ARG(lost->name));
    return !lost;
}

bool model_keeps_trained(Cli *cli, Module *module, Str path)
{
    FileMap map;
    Safetensors stored;
    Str beside = weights_path_beside(&cli->arena, path);
    if (!file_exists(beside))
        return true;
    if (!file_map(&cli->diag, beside, &map))
        return false;
    bool good = safetensors_parse(&cli->arena, &cli->diag, beside, map.bytes, map.size, &stored);
    const StoredTensor *other = good ? weights_first_other(module, &stored, has_elements) : NULL;
    if (other)
        diag_file_error(&cli->diag, beside,
                        "other weights are there already, such as " STR_FMT ": give another -o, or --overwrite",
                        STR_ARG(other->name));
    file_unmap(&map);
    return good && !other;
}

void model_warn_of_older(Cli *cli, Module *module, Str path)
{
    Str beside = weights_path_beside(&cli->arena, path);
    bool read = weights_wanted(module, &(Safetensors){0}).count > 0 && file_exists(beside);
    if (read && !weights_are_saved(module, has_elements))
        diag_warning(&cli->diag, (Place){0}, STR_FMT " was there before, and is what will be read with " STR_FMT,
                     STR_ARG(beside), STR_ARG(path));
}

static const Str *all_of(Cli *cli, const char *flag, uint32_t *count)
{
    Str *list = NULL, word;
    uint32_t capacity = 0;
    for (uint32_t at = 0; args_next(cli, flag, &at, &word);)
        ARENA_PUSH(&cli->arena, list, *count, capacity, word);
    return list;
}

static bool import_onnx(Cli *cli, Model *model, const Define *define, uint32_t count)
{
    OnnxOptions options = {.define = define, .define_count = count};
    options.shape = all_of(cli, "shape", &options.shape_count);
    options.bound = all_of(cli, "at-most", &options.bound_count);
    OnnxModel onnx;
    bool good = onnx_import(&cli->arena, &cli->diag, model->path, &options, &onnx);
    model->module = good ? onnx.module : NULL;
    model->renamed = onnx.renamed;
    model->renamed_count = onnx.renamed_count;
    model->text = str_copy(&cli->arena, text_view(&onnx.text));
    text_free(&onnx.text);
    return good;
}

Str model_own_name(const Model *model, Str file_name)
{
    for (uint32_t i = 0; i < model->renamed_count; i++)
        if (str_eq(model->renamed[i].file_name, file_name))
            return model->renamed[i].name;
    return (Str){0};
}

Str model_file_name(const Model *model, Str name)
{
    for (uint32_t i = 0; i < model->renamed_count; i++)
        if (str_eq(model->renamed[i].name, name))
            return model->renamed[i].file_name;
    return (Str){0};
}

int model_parse(Cli *cli, Model *model)
{
    Define *define;
    uint32_t count;

    *model = (Model){.path = args_operand(cli, 0)};
    if (args_has(cli, "weights-from") && !args_value(cli, "weights-from").len)
        return cli_usage(cli, "--weights-from wants a file");
    int status = take_defines(cli, &define, &count);
    if (status != STATUS_OK)
        return status;
    cli_step(cli, "reading the model");
    if (onnx_is_path(model->path))
        return import_onnx(cli, model, define, count) ? STATUS_OK : STATUS_INPUT;
    if (args_has(cli, "shape"))
        return cli_usage(cli, "--shape is for ONNX models: here -D gives what is open");
    if (args_has(cli, "at-most"))
        return cli_usage(cli, "--at-most is for ONNX models: here shapes never depend on data");
    model->module = nnc_parse_file(&cli->arena, &cli->diag, model->path, define, count);
    return model->module ? STATUS_OK : STATUS_INPUT;
}

int model_load(Cli *cli, WeightsNeed need, Model *model)
{
    int status = model_parse(cli, model);
    if (status != STATUS_OK)
        return status;
    model->graph = choose_graph(cli, model->module);
    if (!model->graph || !load_weights(cli, need, model))
        return STATUS_INPUT;
    if (need != WEIGHTS_SOME && !prepare_fits_memory(model->graph))
        return STATUS_INPUT;
    bool named = args_value(cli, "graph").ptr != NULL;
    model->graphs = named ? arena_copy(&cli->arena, &model->graph, sizeof model->graph) : model->module->graph;
    model->graph_count = named ? 1 : model->module->graph_count;
    model->name = model->program_name = prepare_identifier(&cli->arena, model->graph->name);
    if (model->graph_count > 1)
        model->program_name = prepare_identifier(&cli->arena, prepare_stem(model->path));
    return STATUS_OK;
}
