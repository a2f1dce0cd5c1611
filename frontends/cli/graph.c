/* `nnc graph`: the graph as a picture, in Graphviz's language or as SVG. */
#include "cli/draw.h"
#include "cli/folder.h"
#include "cli/passes.h"

/* Through graphviz, which reads the file and prints the picture. */
static int put_svg(Cli *cli, const Text *dot)
{
    static const char *const words[] = {"dot", "-Tsvg", "graph.dot", NULL};
    Folder folder;
    Text picture = {0};
    int status = STATUS_OK;

    if (!folder_open(cli, (Str){NULL, 0}, &folder) ||
        !file_write(&cli->diag, folder_file(cli, &folder, STR("graph.dot")), dot->ptr, dot->len))
        return STATUS_ENVIRONMENT;
    cli_step(cli, "drawing");
    int code = folder_run(&folder, words, &picture);
    cli_step(cli, NULL);
    folder_remove(&folder);
    if (code < 0)
        status = cli_environment("dot is not installed, or not on the PATH; Graphviz brings it");
    else if (code)
        status = cli_environment("dot failed with status %d:\n%s", code, picture.ptr ? picture.ptr : "");
    else
        cli_put(&picture);
    text_free(&picture);
    return status;
}

static int run(Cli *cli)
{
    static const char *const formats[] = {"dot", "svg", NULL};
    Str word = args_value(cli, "format");
    uint32_t format = 0;
    const Target *target;
    PassList list = {0};
    Model model;
    Text dot = {0};

    if (!passes_target(cli, &target) || !passes_take(cli, &list) ||
        (word.ptr && !cli_choose(cli, "format", word, formats, &format)))
        return STATUS_USAGE;
    int status = model_load(cli, WEIGHTS_SOME, &model);
    if (status != STATUS_OK)
        return status;
    if (!passes_run(cli, &model, &list, target, 0, NULL))
        return STATUS_INPUT;
    draw_graph(&dot, model.graph, passes_number_steps(cli, target), &cli->arena);
    if (format == 1)
        status = put_svg(cli, &dot);
    else
        cli_put(&dot);
    text_free(&dot);
    return status;
}

const Verb verb_graph = {
    .name = "graph",
    .operands = "MODEL",
    .summary = "Draw the graph, for Graphviz or as SVG",
    .text =
        "Shapes stand on the edges, kernels are boxes around their nodes, numbered as the steps "
        "of the plan; numbers stand in the nodes that use them. Loops and branches "
        "are boxes around their bodies: dashed edges lead from the next values to what is carried. "
        "`--passes=` draws the model as it is written, with composites whole. SVG needs Graphviz.",
    .flag = (const Flag[]){{"format", "dot|svg", "How to print (default: dot)"},
                           FLAG_PASSES,
                           FLAG_PASSES_TARGET,
                           FLAG_EXACT,
                           FLAG_PRECISION,
                           FLAG_BACKEND,
                           FLAG_SIZE,
                           FLAG_DEFINE,
                           FLAGS_WEIGHTS,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc graph digits.nnc --format svg > digits.svg", "as a compilation sees it"},
                                 {"nnc graph digits.nnc --passes=", "as it is written"},
                                 {NULL, NULL}},
    .run = run,
};
