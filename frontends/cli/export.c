/* `nnc export`: a model as an ONNX file. */
#include "cli/model.h"
#include "onnx/onnx.h"

/* The graph that --graph names, or the only one. */
static bool has_one_graph(Cli *cli, const Model *model)
{
    Text names = {0};
    if (args_value(cli, "graph").ptr || model->module->graph_count == 1)
        return true;
    for (uint32_t i = 0; i < model->module->graph_count; i++)
        text_printf(&names, "%s" STR_FMT, i ? ", " : "", STR_ARG(model->module->graph[i]->name));
    diag_file_error(&cli->diag, model->path, "an ONNX file has one graph: choose one of %s with --graph", names.ptr);
    text_free(&names);
    return false;
}

static bool is_own(Cli *cli, const Str *kept, uint32_t count, Str path)
{
    for (uint32_t i = 0; i < count; i++)
        if (kept[i].len && file_same(path, kept[i]))
            return diag_file_error(&cli->diag, path, "this file belongs to what is exported: give -o another name"),
                   true;
    return false;
}

static int run(Cli *cli)
{
    Str path = args_value(cli, "o");
    Model model;

    if (!path.ptr || !onnx_is_path(path))
        return cli_usage(cli, "export wants -o FILE.onnx");
    int status = model_load(cli, WEIGHTS_ALL, &model);
    if (status != STATUS_OK)
        return status;
    Str *kept = ARENA_ARRAY(&cli->arena, Str, model.module->file_count + 2);
    uint32_t count = 0;
    for (uint32_t i = 0; i < model.module->file_count; i++)
        kept[count++] = model.module->file[i];
    kept[count++] = model.path;
    if (model.weights_path.len)
        kept[count++] = model.weights_path;
    if (!has_one_graph(cli, &model) || is_own(cli, kept, count, path))
        return STATUS_INPUT;
    OnnxExport options = {.path = path,
                          .model = model.path,
                          .external = args_has(cli, "external"),
                          .flat = args_has(cli, "flat"),
                          .kept = kept,
                          .kept_count = count};
    cli_step(cli, "writing the model");
    OnnxExported exported = onnx_export(&cli->arena, &cli->diag, model.graph, &options);
    cli_step(cli, NULL);
    return exported == ONNX_WRITTEN ? STATUS_OK : exported == ONNX_REFUSED ? STATUS_INPUT : STATUS_ENVIRONMENT;
}

const Verb verb_export = {
    .name = "export",
    .operands = "MODEL",
    .summary = "Write a model as an ONNX file",
    .text =
        "The file has opset 21, and what the evaluator computes. Calls of the library become the op that ONNX has for "
        "them, all other calls functions of the file. States, and params that the graph updates, are inputs with their "
        "first values as defaults, and outputs "
        "NAME_next. What ONNX cannot say is listed, all of it, each with its place and the reason.",
    .flag = (const Flag[]){{"o", "FILE.onnx", "Write to this file"},
                           {"external", NULL, "Put the elements of params into FILE.bin beside it"},
                           {"flat", NULL, "Write calls out where they stand, not as functions of the file"},
                           FLAG_DEFINE,
                           FLAGS_WEIGHTS,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc export digits.nnc -o digits.onnx", "weights inside"},
                                 {"nnc export bert_base.nnc -o bert.onnx --external", "weights in bert.bin"},
                                 {NULL, NULL}},
    .run = run,
};
