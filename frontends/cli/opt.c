/* `nnc opt`: runs passes and prints the graph as .nnc text. */
#include <stdio.h>

#include "cli/diff.h"
#include "cli/passes.h"
#include "cli/terminal.h"
#include "nnc/text.h"

/* What is told after each pass. */
typedef struct Telling {
    Str after; /* a pass, `all` or `changed`; empty: none */
    bool stats, diff;
    Text before; /* the text before the pass, for its diff */
} Telling;

static Telling telling; /* of the process: PassWatch has no room for it */

static void tell_graph(const Model *model, const PassRow *pass, uint32_t changes)
{
    bool changed = str_is(telling.after, "changed") && changes;
    Text text = {0};
    if (!changed && !str_is(telling.after, "all") && !str_is(telling.after, pass->name))
        return;
    text_printf(&text, "# after %s\n", pass->name);
    nnc_print(&text, model->module);
    text_char(&text, '\n');
    cli_put(&text);
    text_free(&text);
}

static void tell_diff(const Model *model, const PassRow *pass)
{
    Text now = {0}, text = {0}, lines = {0};
    nnc_print(&now, model->module);
    diff_lines(&lines, text_view(&telling.before), text_view(&now));
    if (lines.len) {
        text_printf(&text, "# %s\n", pass->name);
        text_str(&text, text_view(&lines));
        text_char(&text, '\n');
        cli_put(&text);
    }
    text_free(&telling.before);
    telling.before = now;
    text_free(&text);
    text_free(&lines);
}

static const char *plural(uint32_t count)
{
    return count == 1 ? " " : "s";
}

#define STATS 61 /* columns of a line */

static void put_counts(Text *line, const Model *model, const char *after)
{
    uint32_t nodes = model->graph->node_count, values = model->graph->value_count;
    text_printf(line, "%-12s %8u node%s %8u value%s", after, nodes, plural(nodes), values, plural(values));
}

static void tell(Text *line)
{
    Text shown = {0};
    uint32_t width = terminal_known_width();
    if (width && width < STATS)
        text_wrap(&shown, text_view(line), 0, 4, width);
    else
        text_str(&shown, text_view(line));
    fprintf(stderr, STR_FMT "\n", STR_ARG(text_view(&shown)));
    text_free(&shown);
    text_free(line);
}

static void tell_stats(const Model *model, const char *after, uint32_t changes, double seconds)
{
    Text line = {0};
    put_counts(&line, model, after);
    text_printf(&line, " %8u change%s %9.2f ms", changes, plural(changes), seconds * 1e3);
    tell(&line);
}

static void watch(Cli *cli, const Model *model, const PassRow *pass, uint32_t changes, double seconds)
{
    cli_step(cli, NULL);
    if (telling.stats)
        tell_stats(model, pass->name, changes, seconds);
    if (telling.after.ptr)
        tell_graph(model, pass, changes);
    if (telling.diff)
        tell_diff(model, pass);
}

/* False after a usage error: nothing would be printed. */
static bool is_run(Cli *cli, const PassList *list, const PassRow *row)
{
    for (uint32_t i = 0; row && i < list->count; i++)
        if (list->row[i] == row)
            return true;
    if (row)
        cli_usage(cli, "--print-after %s: this pass is not among --passes", row->name);
    return false;
}

static bool take_telling(Cli *cli, const PassList *list)
{
    Str after = args_value(cli, "print-after");
    telling = (Telling){.after = after, .stats = args_has(cli, "stats"), .diff = args_has(cli, "diff")};
    return !after.ptr || str_is(after, "all") || str_is(after, "changed") ||
           is_run(cli, list, passes_find(cli, "print-after", after));
}

static int print_result(Cli *cli, const Model *model)
{
    Str path = args_value(cli, "o");
    Text text = {0};
    int status = STATUS_OK;
    if (path.ptr)
        nnc_name_constants(model->module);
    if (path.ptr && !model_keeps_weights(cli, model, path))
        return STATUS_INPUT;
    nnc_print(&text, model->module);
    if (path.ptr)
        status = model_save(cli, model->module, path, &text) ? STATUS_OK : STATUS_ENVIRONMENT;
    else if (!telling.diff)
        cli_put(&text);
    if (path.ptr && status == STATUS_OK)
        model_warn_of_older(cli, model->module, path);
    text_free(&text);
    return status;
}

static int run(Cli *cli)
{
    PassList list = {0};
    Model model;
    const Target *target;
    int64_t limit = 0;

    if (!passes_target(cli, &target) || !passes_take(cli, &list) || !take_telling(cli, &list) ||
        !args_bytes(cli, "memory-limit", &limit))
        return STATUS_USAGE;
    if (limit && !target)
        return cli_usage(cli, "--memory-limit has no meaning together with --target none");
    int status = model_load(cli, WEIGHTS_SOME, &model);
    if (status != STATUS_OK)
        return status;
    cli_step(cli, NULL);
    if (telling.stats) {
        Text line = {0};
        put_counts(&line, &model, "parse");
        tell(&line);
    }
    if (telling.diff)
        nnc_print(&telling.before, model.module);
    bool good = passes_run(cli, &model, &list, target, limit, watch);
    text_free(&telling.before);
    return good ? print_result(cli, &model) : STATUS_INPUT;
}

const Verb verb_opt = {
    .name = "opt",
    .operands = "MODEL",
    .summary = "Run passes and print the graph as .nnc text",
    .text =
        "Without --passes the pipeline of a compilation runs; `--passes=` runs none, so the text is only read and "
        "printed. What is printed can be read again: with -o, constants too large for the text go to a .safetensors "
        "file beside it, over one that is there unless weights of the model would be lost; where there are none, a "
        "warning tells of one that is there, as it will be read with the text.",
    .flag = (const Flag[]){FLAG_PASSES,
                           {"print-after", "PASS|all|changed",
                            "Print the graph after this pass too, after all, or after those that changed it"},
                           {"diff", NULL, "Print what each pass changes, instead of the graph"},
                           {"stats", NULL, "Tell of each pass on stderr: nodes, values, changes, time"},
                           {"o", "FILE", "Write to the file instead of stdout"},
                           FLAG_PASSES_TARGET,
                           FLAG_EXACT,
                           FLAG_PRECISION,
                           FLAG_BACKEND,
                           FLAG_SIZE,
                           FLAG_MEMORY_LIMIT,
                           FLAG_DEFINE,
                           FLAGS_WEIGHTS,
                           {"graph", "NAME", "The graph that --stats is of; all are printed (default: the first)"},
                           FLAG_END},
    .example = (const Example[]){{"nnc opt digits.nnc --passes=expand,cse,dce", "three passes"},
                                 {"nnc opt digits.nnc --stats --print-after=changed", "every stage of the pipeline"},
                                 {"nnc opt digits.nnc --diff", "what each pass does to the text"},
                                 {NULL, NULL}},
    .run = run,
};
