/* `nnc import`: an ONNX model as text and weights. */
#include "api/prepare.h"
#include "cli/model.h"
#include "onnx/onnx.h"

/* A text that someone has changed since is not written over, nor are weights that have been trained for it. */
static bool keeps_changes(Cli *cli, Module *module, Str path, const Text *text)
{
    Str there;
    if (args_has(cli, "overwrite") || !file_exists(path))
        return true;
    if (!file_read(&cli->arena, &cli->diag, path, &there))
        return false;
    if (!str_eq(there, text_view(text)))
        return diag_file_error(&cli->diag, path, "another text is there already: give another -o, or --overwrite");
    return model_keeps_trained(cli, module, path);
}

static int save(Cli *cli, const Model *model, Str folder)
{
    Str stem = prepare_stem(model->path);
    Str path = str_format(&cli->arena, STR_FMT "/" STR_FMT ".nnc", STR_ARG(folder), STR_ARG(stem));
    Text text = {0};
    text_str(&text, model->text);
    bool kept = keeps_changes(cli, model->module, path, &text);
    bool saved = kept && file_make_folder(&cli->diag, folder) && model_save(cli, model->module, path, &text);
    text_free(&text);
    if (saved)
        model_warn_of_older(cli, model->module, path);
    return saved ? STATUS_OK : kept ? STATUS_ENVIRONMENT : STATUS_INPUT;
}

static int run(Cli *cli)
{
    Str folder = args_value(cli, "o"), path = args_operand(cli, 0);
    Model model;

    if (folder.ptr && !folder.len)
        return cli_usage(cli, "-o wants a folder");
    if (!onnx_is_path(path))
        return cli_usage(cli, "import takes a .onnx file, not " STR_FMT, STR_ARG(path));
    int status = model_parse(cli, &model);
    if (status != STATUS_OK)
        return status;
    if (folder.ptr)
        return save(cli, &model, folder);
    Text text = {0};
    text_str(&text, model.text);
    cli_step(cli, NULL);
    cli_put(&text);
    text_free(&text);
    return STATUS_OK;
}

const Verb verb_import = {
    .name = "import",
    .operands = "MODEL.onnx",
    .summary = "Write an ONNX model as .nnc text and .safetensors weights",
    .text =
        "Every command that takes a model takes .onnx as it is; this one makes a text of it that can be read, changed "
        "and "
        "reviewed. Without -o the text alone is printed. What is known when compiling, such as arithmetic on "
        "shapes, is worked out; formulas that an exporter has spelled out come back as calls of the library, and "
        "blocks "
        "that repeat as functions and loops. Nodes that are not supported are listed, all of them, each with the "
        "reason.\n"
        "\n"
        "Extents that the model leaves open are given with `-D batch=1`, by their name in the model, with `-D "
        "image.0=1`, or with --shape. An input whose elements shapes depend on becomes a constant with "
        "`-D axes=[0,2]`. A sequence is as many inputs as `--shape x=[2x3,4]` says, and an optional has a value unless "
        "`--shape x=none` says not.",
    .flag = (const Flag[]){{"o", "FOLDER", "Write NAME.nnc and NAME.safetensors into this folder"},
                           {"overwrite", NULL, "Also over a text, and weights, that are others"},
                           FLAG_DEFINE,
                           FLAG_WEIGHTS_FROM,
                           FLAG_END},
    .example = (const Example[]){{"nnc import resnet50.onnx -o resnet50", "resnet50/resnet50.nnc and its weights"},
                                 {"nnc import bert.onnx -D batch_size=1 -D sequence_length=128", "extents by name"},
                                 {NULL, NULL}},
    .run = run,
};
