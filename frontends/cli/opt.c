/* `nnc opt`: runs passes and prints the graph as .nnc text. */
#include <stdio.h>

#include "cli/passes.h"
#include "nnc/text.h"

static void watch(Cli *cli, const Model *model, const PassRow *pass, uint32_t changes, double seconds)
{
    Str after = args_value(cli, "print-after");

    cli_step(cli, NULL);
    if (args_has(cli, "stats"))
        fprintf(stderr, "%-12s %8u nodes %8u values %8u changes %9.2f ms\n", pass->name, model->graph->node_count,
                model->graph->value_count, changes, seconds * 1e3);
    if (!after.ptr || (!str_is(after, "all") && !str_is(after, pass->name)))
        return;
    Text text = {0};
    text_printf(&text, "# after %s\n", pass->name);
    nnc_print(&text, model->module);
    text_char(&text, '\n');
    cli_put(&text);
    text_free(&text);
}

static int run(Cli *cli)
{
    PassList list = {0};
    Model model;
    Text text = {0};
    Str path = args_value(cli, "o"), after = args_value(cli, "print-after");
    const Target *target;

    if (!passes_target(cli, &target) || !passes_take(cli, &list) ||
        (after.ptr && !str_is(after, "all") && !passes_find(cli, "print-after", after)))
        return STATUS_USAGE;
    int status = model_load(cli, WEIGHTS_SOME, &model);
    if (status != STATUS_OK)
        return status;
    cli_step(cli, NULL);
    if (args_has(cli, "stats"))
        fprintf(stderr, "%-12s %8u nodes %8u values\n", "parse", model.graph->node_count, model.graph->value_count);
    if (!passes_run(cli, &model, &list, target, watch))
        return STATUS_INPUT;
    nnc_print(&text, model.module);
    if (path.ptr)
        status = model_save(cli, model.module, path, &text) ? STATUS_OK : STATUS_ENVIRONMENT;
    else
        cli_put(&text);
    text_free(&text);
    return status;
}

const Verb verb_opt = {
    .name = "opt",
    .operands = "MODEL",
    .summary = "Run passes and print the graph as .nnc text",
    .text =
        "Without --passes the pipeline of a compilation runs; `--passes=` runs none, so the text is only read and "
        "printed. What is printed can be read again: with -o, constants too large for the text go to a .safetensors "
        "file beside it.",
    .flag = (const Flag[]){FLAG_PASSES,
                           {"print-after", "PASS|all", "Print the graph after this pass too, under a comment"},
                           {"stats", NULL, "Tell of each pass on stderr: nodes, values, changes, time"},
                           {"o", "FILE", "Write to the file instead of stdout"},
                           {"target", "T", "The machine that layouts and recipes are for (default: none)"},
                           FLAG_DEFINE,
                           FLAGS_WEIGHTS,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc opt digits.nnc --passes=expand,cse,dce", "three passes"},
                                 {"nnc opt digits.nnc --stats --print-after=all", "every stage of the pipeline"},
                                 {NULL, NULL}},
    .run = run,
};
