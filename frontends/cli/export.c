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

static int run(Cli *cli)
{
    Str path = args_value(cli, "o");
    Model model;

    if (!path.ptr || !onnx_is_path(path))
        return cli_usage(cli, "export wants -o FILE.onnx");
    int status = model_load(cli, WEIGHTS_ALL, &model);
    if (status != STATUS_OK)
        return status;
    uint32_t count;
    const Str *kept = model_files(&cli->arena, &model, &count);
    if (!has_one_graph(cli, &model) || !model_keeps_files(cli, &model, path))
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
                           {"graph", "NAME", "The graph to write, where the file has several"},
                           FLAG_END},
    .example = (const Example[]){{"nnc export digits.nnc -o digits.onnx", "weights inside"},
                                 {"nnc export bert_base.nnc -o bert.onnx --external", "weights in bert.bin"},
                                 {NULL, NULL}},
    .run = run,
};
