#include "cli/passes.h"

#include <string.h>

#include "cli/clock.h"
#include "cli/program.h"
#include "codegen/program/program.h"
#include "program/number.h"
#include "program/share.h"

const PassRow *passes_find(Cli *cli, const char *flag, Str name)
{
    const PassRow *row = stage_find(name);
    const char **known = NULL;
    uint32_t count = 0, capacity = 0, none;
    if (row)
        return row;
    for (uint32_t i = 0; (row = stage_at(i)); i++)
        ARENA_PUSH(&cli->arena, known, count, capacity, row->name);
    ARENA_PUSH(&cli->arena, known, count, capacity, NULL);
    cli_choose(cli, flag, name, known, &none);
    return NULL;
}

static void add_pass(Cli *cli, PassList *list, const PassRow *row)
{
    ARENA_PUSH(&cli->arena, list->row, list->count, list->capacity, row);
}

bool passes_take(Cli *cli, PassList *list)
{
    Str word = args_value(cli, "passes");
    const char *name;

    for (uint32_t i = 0; !word.ptr && (name = stage_of_compilation(i)); i++)
        add_pass(cli, list, stage_find(str_from(name)));
    while (word.len) {
        const char *comma = memchr(word.ptr, ',', word.len);
        uint32_t length = comma ? (uint32_t)(comma - word.ptr) : word.len;
        const PassRow *row = passes_find(cli, "passes", (Str){word.ptr, length});
        if (!row)
            return false;
        add_pass(cli, list, row);
        length += comma != NULL;
        word = (Str){word.ptr + length, word.len - length};
    }
    return true;
}

bool passes_target(Cli *cli, const Target **target)
{
    Str name = args_value(cli, "target");
    *target = NULL;
    if (str_is(name, "none"))
        return true;
    *target = program_target_named(cli, name.ptr ? name : STR("generic"), "none");
    return *target && program_adjust_target(cli, target);
}

bool passes_number_steps(Cli *cli, const Target *target)
{
    return target && !args_has(cli, "passes");
}

/* On every graph of the file; counts are those of the model's own.  `fit` and `numbering` have one for each. */
static bool run_pass(const Model *model, const PassRow *row, PassContext *context, const Fit *fit,
                     const Numbering *numbering)
{
    Module *module = model->module;
    uint32_t changes = 0;
    bool floats = context->target && target_takes_floats(context->target);
    for (uint32_t i = 0; i < module->graph_count; i++) {
        context->remat = fit[i].remat;
        context->integers_as_floats = floats && !fit[i].integers;
        context->keep_order = numbering[i].keeps_order;
        if (!pass_run(row, module->graph[i], context))
            return false;
        changes = module->graph[i] == model->graph ? context->changes : changes;
    }
    context->changes = changes;
    return true;
}

/* As in a compilation: what one graph updates is kept in all of a file, but where one is taken alone each for itself.
 */
static void keep_updated(Cli *cli, const Model *model)
{
    const Module *module = model->module;
    uint32_t together = args_has(cli, "graph") ? 1 : module->graph_count;
    for (uint32_t i = 0; i < module->graph_count; i += together)
        share_kept(&module->graph[i], together, false);
}

/* Is it for a target that this is done?  A few passes are for none, unless one is named. */
static bool heeds_marks(Cli *cli, const PassList *list, const Target *target)
{
    return target && list->count && (args_has(cli, "target") || !args_has(cli, "passes"));
}

static void begin_numbers(const Module *module, const CompileOptions *options, Numbering *numbering)
{
    for (uint32_t i = 0; i < module->graph_count; i++)
        program_number_begin(&numbering[i], module->graph[i], options);
}

bool passes_run(Cli *cli, Model *model, const PassList *list, const Target *target, int64_t limit, PassWatch *after)
{
    Arena scratch = {0};
    PassContext context = pass_context(&scratch, &cli->diag);
    const Module *module = model->module;
    const CompileOptions options = {.target = target,
                                    .effort = 1,
                                    .name = model->program_name,
                                    .exact = args_has(cli, "exact"),
                                    .memory_limit = limit};
    const PassRow *expand = pass_find(STR("expand"));
    bool numbers = passes_number_steps(cli, target);
    Numbering *numbering = ARENA_ARRAY(&cli->arena, Numbering, module->graph_count);
    Fit *fit = ARENA_ARRAY(&cli->arena, Fit, module->graph_count);
    bool good = !heeds_marks(cli, list, target) || program_check_supported(model->graphs, model->graph_count, target);

    good = good && (!limit || program_fit(module->graph, module->graph_count, &options, fit));

    if (list->count && list->row[0] != expand) /* the text may be one that has been expanded */
        keep_updated(cli, model);
    context.target = target;
    context.lanes = target ? target_block(target) : 1;
    context.dear = target && target->dialect == DIALECT_C99;
    context.exact = args_has(cli, "exact");
    for (uint32_t i = 0; good && i < list->count; i++) {
        if (numbers && list->row[i] == stage_find(STR("fuse")))
            begin_numbers(module, &options, numbering);
        double begin = clock_seconds();
        cli_step(cli, list->row[i]->name);
        good = run_pass(model, list->row[i], &context, fit, numbering);
        if (list->row[i] == expand)
            keep_updated(cli, model);
        double end = clock_seconds();
        cli_step(cli, NULL);
        if (good && after)
            after(cli, model, list->row[i], context.changes, end - begin);
    }
    for (uint32_t i = 0; good && numbers && i < module->graph_count; i++)
        program_number_finish(&numbering[i]);
    arena_free(&scratch);
    return good;
}
