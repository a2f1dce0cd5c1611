#include "cli/passes.h"

#include <string.h>

#include "cli/clock.h"
#include "codegen/target.h"

const PassRow *passes_find(Cli *cli, const char *flag, Str name)
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

bool passes_take(Cli *cli, PassList *list)
{
    Str word = args_value(cli, "passes");

    if (!word.ptr)
        for (uint32_t i = 0; pass_pipeline[i]; i++)
            ARENA_PUSH(&cli->arena, list->row, list->count, list->capacity, pass_find(str_from(pass_pipeline[i])));
    while (word.len) {
        const char *comma = memchr(word.ptr, ',', word.len);
        uint32_t length = comma ? (uint32_t)(comma - word.ptr) : word.len;
        const PassRow *row = passes_find(cli, "passes", (Str){word.ptr, length});
        if (!row)
            return false;
        ARENA_PUSH(&cli->arena, list->row, list->count, list->capacity, row);
        length += comma != NULL;
        word = (Str){word.ptr + length, word.len - length};
    }
    return true;
}

uint32_t passes_lanes(Cli *cli)
{
    Str name = args_value(cli, "target");
    if (!name.ptr)
        return 1;
    const Target *target = target_find(name, &cli->diag);
    return target ? target->lanes : 0;
}

/* On every graph of the file; counts are those of the model's own. */
static bool run_pass(const Model *model, const PassRow *row, PassContext *context)
{
    for (uint32_t i = 0; i < model->module->graph_count; i++)
        if (model->module->graph[i] != model->graph && !pass_run(row, model->module->graph[i], context))
            return false;
    return pass_run(row, model->graph, context);
}

bool passes_run(Cli *cli, Model *model, const PassList *list, uint32_t lanes, PassWatch *after)
{
    Arena scratch = {0};
    PassContext context = pass_context(&scratch, &cli->diag);
    bool good = true;

    context.lanes = lanes;
    for (uint32_t i = 0; good && i < list->count; i++) {
        double begin = clock_seconds();
        cli_step(cli, list->row[i]->name);
        good = run_pass(model, list->row[i], &context);
        double end = clock_seconds();
        cli_step(cli, NULL);
        if (good && after)
            after(cli, model, list->row[i], context.changes, end - begin);
    }
    arena_free(&scratch);
    return good;
}
