/* `nnc opt`: runs passes and prints the graph as .nnc text. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/model.h"
#include "codegen/target.h"
#include "formats/weights.h"
#include "nnc/text.h"
#include "passes/pass.h"

typedef struct PassList {
    const PassRow **row;
    uint32_t count, capacity;
} PassList;

static const PassRow *find_pass(Cli *cli, const char *flag, Str name)
{
    const PassRow *row = pass_find(name);
    if (row)
        return row;
    const char **known = ARENA_ARRAY(&cli->arena, const char *, pass_count + 1);
    for (uint32_t i = 0; i < pass_count; i++)
        known[i] = pass_table[i].name;
    uint32_t none;
    cli_choose(cli, flag, name, known, &none);
    return NULL;
}

/* `a,b,c`, or the pipeline of a compilation when the flag is absent; `--passes=` runs none. */
static bool take_passes(Cli *cli, PassList *list)
{
    Str word = args_value(cli, "passes");

    if (!word.ptr)
        for (uint32_t i = 0; pass_pipeline[i]; i++)
            ARENA_PUSH(&cli->arena, list->row, list->count, list->capacity, pass_find(str_from(pass_pipeline[i])));
    while (word.len) {
        const char *comma = memchr(word.ptr, ',', word.len);
        uint32_t length = comma ? (uint32_t)(comma - word.ptr) : word.len;
        const PassRow *row = find_pass(cli, "passes", (Str){word.ptr, length});
        if (!row)
            return false;
        ARENA_PUSH(&cli->arena, list->row, list->count, list->capacity, row);
        length += comma != NULL;
        word = (Str){word.ptr + length, word.len - length};
    }
    return true;
}

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void print_stats(const Graph *graph, const char *pass, uint32_t changes, double ms)
{
    fprintf(stderr, "%-12s %8u nodes %8u values", pass, graph->node_count, graph->value_count);
    if (ms >= 0)
        fprintf(stderr, " %8u changes %9.2f ms", changes, ms);
    fputc('\n', stderr);
}

/* On every graph of the file; counts are those of the model's own. */
static bool run_pass(const Model *model, const PassRow *row, PassContext *context)
{
    for (uint32_t i = 0; i < model->module->graph_count; i++)
        if (model->module->graph[i] != model->graph && !pass_run(row, model->module->graph[i], context))
            return false;
    return pass_run(row, model->graph, context);
}

static bool run_passes(Cli *cli, Model *model, const PassList *list, uint32_t lanes)
{
    Str after = args_value(cli, "print-after");
    bool stats = args_has(cli, "stats");
    Arena scratch = {0};
    PassContext context = pass_context(&scratch, &cli->diag);
    bool good = true;

    context.lanes = lanes;
    if (stats)
        print_stats(model->graph, "parse", 0, -1);
    for (uint32_t i = 0; good && i < list->count; i++) {
        double begin = milliseconds();
        good = run_pass(model, list->row[i], &context);
        if (stats)
            print_stats(model->graph, list->row[i]->name, context.changes, milliseconds() - begin);
        if (good && after.ptr && (str_is(after, "all") || str_is(after, list->row[i]->name))) {
            Text text = {0};
            text_printf(&text, "# after %s\n", list->row[i]->name);
            nnc_print(&text, model->module);
            text_char(&text, '\n');
            cli_put(&text);
            text_free(&text);
        }
    }
    arena_free(&scratch);
    return good;
}

static bool has_elements(const Value *value)
{
    bool param = value->role == ROLE_PARAM || value->role == ROLE_STATE;
    return nnc_const_is_stored(value) || (param && value->data);
}

/* The text, and beside it the elements that the text leaves out. */
static int save(Cli *cli, Model *model, Str path, const Text *text)
{
    bool good = weights_save(model->module, weights_path_beside(&cli->arena, path), has_elements) &&
                file_write(&cli->diag, path, text->ptr, text->len);
    return good ? STATUS_OK : STATUS_ENVIRONMENT;
}

static int run(Cli *cli)
{
    PassList list = {0};
    Model model;
    Text text = {0};
    Str target_name = args_value(cli, "target"), path = args_value(cli, "o"), after = args_value(cli, "print-after");
    uint32_t lanes = 1;

    if (!take_passes(cli, &list))
        return STATUS_USAGE;
    if (after.ptr && !str_is(after, "all") && !find_pass(cli, "print-after", after))
        return STATUS_USAGE;
    if (target_name.ptr) {
        const Target *target = target_find(target_name, &cli->diag);
        if (!target)
            return STATUS_USAGE;
        lanes = target->lanes;
    }
    int status = model_load(cli, WEIGHTS_SOME, &model);
    if (status != STATUS_OK)
        return status;
    if (!run_passes(cli, &model, &list, lanes))
        return STATUS_INPUT;
    nnc_print(&text, model.module);
    if (path.ptr)
        status = save(cli, &model, path, &text);
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
    .flag = (const Flag[]){{"passes", "a,b,c", "The passes to run, in order"},
                           {"print-after", "PASS|all", "Print the graph after this pass too, under a comment"},
                           {"stats", NULL, "Tell of each pass on stderr: nodes, values, changes, time"},
                           {"o", "FILE", "Write to the file instead of stdout"},
                           {"target", "T", "The machine whose vector width layouts follow (default: one lane)"},
                           FLAG_DEFINE,
                           FLAG_WEIGHTS_FROM,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc opt digits.nnc --passes=expand,cse,dce", "three passes"},
                                 {"nnc opt digits.nnc --stats --print-after=all", "every stage of the pipeline"},
                                 {NULL, NULL}},
    .run = run,
};
