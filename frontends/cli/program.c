#include "cli/program.h"

#include <string.h>

#include "api/prepare.h"
#include "base/file.h"
#include "codegen/program/tune.h"
#include "nnc.h"

const Target *program_target_named(Cli *cli, Str name, const char *more)
{
    const char **known = ARENA_ARRAY(&cli->arena, const char *, target_count + 3);
    uint32_t count = 0, chosen;
    if (memchr(name.ptr, ',', name.len))
        return cli_usage(cli, "--target is one target here; `nnc compile` makes a library of several"), NULL;
    for (uint32_t i = 0; i < target_count; i++)
        known[count++] = target_table[i].name;
    known[count++] = "host";
    if (more)
        known[count++] = more;
    return cli_choose(cli, "target", name, known, &chosen) ? target_find(name, &cli->diag) : NULL;
}

const Target *program_target(Cli *cli, const char *fallback)
{
    Str name = args_value(cli, "target");
    return program_target_named(cli, name.ptr ? name : str_from(fallback), NULL);
}

const Target **program_targets(Cli *cli, const char *fallback, uint32_t *count)
{
    Str rest = args_value(cli, "target");
    const Target **list = NULL;
    uint32_t capacity = 0;
    *count = 0;
    rest = rest.ptr ? rest : str_from(fallback);
    for (bool more = true; more;) { /* an empty name is none that is known, also after a comma */
        const char *comma = memchr(rest.ptr, ',', rest.len);
        uint32_t length = comma ? (uint32_t)(comma - rest.ptr) : rest.len;
        const Target *target = program_target_named(cli, (Str){rest.ptr, length}, NULL);
        if (!target)
            return NULL;
        ARENA_PUSH(&cli->arena, list, *count, capacity, target);
        more = comma != NULL;
        rest = (Str){rest.ptr + length + more, rest.len - length - more};
    }
    Str wrong = target_arrange(&cli->arena, list, *count);
    if (wrong.len)
        return cli_usage(cli, "--target: " STR_FMT, STR_ARG(wrong)), NULL;
    return list;
}

bool program_runs_here(Cli *cli)
{
    const Target *target = program_target(cli, "host");
    if (target && target->dialect == DIALECT_CUDA)
        cli_usage(cli, "a model for %s cannot be run from here; compile it, and run its own program", target->name);
    else if (target && !target_is_here(target))
        cli_usage(cli, "this machine is no %s, and cannot run a model for it; `nnc compile` can make it", target->name);
    else
        return target != NULL;
    return false;
}

static void show_step(void *context, const char *step)
{
    cli_step(context, step);
}

bool program_allocator(Cli *cli, const char **allocator)
{
    Str word = args_value(cli, "allocator");
    const char **known = NULL;
    uint32_t count = 0, capacity = 0, chosen;

    *allocator = NULL;
    for (const PlanAllocator *a = plan_allocators(); a->name; a++)
        ARENA_PUSH(&cli->arena, known, count, capacity, a->name);
    ARENA_PUSH(&cli->arena, known, count, capacity, NULL);
    if (word.ptr && !cli_choose(cli, "allocator", word, known, &chosen))
        return false;
    *allocator = word.ptr ? known[chosen] : NULL;
    return true;
}

bool program_take_form(Cli *cli, WeightsForm *form)
{
    static const char *const names[] = {[WEIGHTS_C] = "c", [WEIGHTS_BLOB] = "blob", [WEIGHTS_FILE] = "file", NULL};
    Str word = args_value(cli, "weights");
    uint32_t chosen = WEIGHTS_AUTO;

    if (word.ptr && !cli_choose(cli, "weights", word, names, &chosen))
        return false;
    *form = (WeightsForm)chosen;
    return true;
}

bool program_compiler(Cli *cli)
{
    Str cc = args_value(cli, "cc");
    uint32_t blanks = 0;
    while (blanks < cc.len && cc.ptr[blanks] == ' ')
        blanks++;
    if (args_has(cli, "cc") && blanks == cc.len)
        return cli_usage(cli, "--cc wants a C compiler"), false;
    return true;
}

/* Threads of this machine are CUDA's own. */
static bool program_threads(Cli *cli, CompileOptions *options)
{
    int64_t threads = 1;
    if (!args_takes(cli, "threads")) /* tuning is of one */
        return true;
    if (!args_number(cli, "threads", 1, NNC_MOST_THREADS, &threads))
        return false;
    if (threads > 1 && options->target->dialect == DIALECT_CUDA)
        return cli_usage(cli, "--threads are those of a processor, which %s is not", options->target->name), false;
    options->threads = (uint32_t)threads;
    return true;
}

bool program_flags(Cli *cli)
{
    int64_t number = 0;
    const char *allocator;
    return program_compiler(cli) && (!args_takes(cli, "allocator") || program_allocator(cli, &allocator)) &&
           (!args_takes(cli, "memory-limit") || args_bytes(cli, "memory-limit", &number)) &&
           (!args_takes(cli, "threads") || args_number(cli, "threads", 1, NNC_MOST_THREADS, &number));
}

static bool take_size(Cli *cli, const Target **target)
{
    if (!args_takes(cli, "size") || !args_has(cli, "size"))
        return true;
    if ((*target)->dialect != DIALECT_C99)
        return cli_usage(cli, "--size is for strict C99: --target generic or cortex-m"), false;
    if ((*target)->backend != BACKEND_GENERATED)
        return cli_usage(cli, "--size is for generated code: --backend goes without it"), false;
    *target = target_small(&cli->arena, *target);
    return true;
}

static bool take_backend(Cli *cli, const Target **target)
{
    Str word = args_value(cli, "backend");
    uint32_t chosen = BACKEND_GENERATED;
    if (word.ptr && !cli_choose(cli, "backend", word, backend_names, &chosen))
        return false;
    if (chosen != BACKEND_GENERATED && !target_takes_libraries(*target))
        return cli_usage(cli, "no library computes for %s", (*target)->name), false;
    *target = target_with_backend(&cli->arena, *target, (Backend)chosen);
    return true;
}

static bool take_precision(Cli *cli, const Target **target)
{
    Str word = args_value(cli, "precision");
    uint32_t chosen = PRECISION_HIGHEST;
    if (word.ptr && !cli_choose(cli, "precision", word, target_precision_names, &chosen))
        return false;
    if (chosen != PRECISION_HIGHEST && args_has(cli, "exact"))
        return cli_usage(cli, "--exact keeps to the products that the model says: --precision goes without it"), false;
    *target = target_with_precision(&cli->arena, *target, (Precision)chosen);
    return true;
}

bool program_adjust_target(Cli *cli, const Target **target)
{
    return take_precision(cli, target) && take_backend(cli, target) && take_size(cli, target);
}

Str program_tune_path(Arena *arena, const Model *model, const Target *target)
{
    Str stem = model->path;
    for (uint32_t i = stem.len; i-- > 0 && stem.ptr[i] != '/';)
        if (stem.ptr[i] == '.') {
            stem.len = i;
            break;
        }
    return str_format(arena, STR_FMT ".%s.tune", STR_ARG(stem), target->name);
}

/* The recipes that --tune names, or that stand beside the model.  False after an error. */
static bool take_tune(Cli *cli, Model *model, CompileOptions *options)
{
    Str word = args_value(cli, "tune"), text;
    Str path = word.ptr ? word : program_tune_path(&cli->arena, model, options->target);
    bool beside = !options->target->small && file_exists(path); /* what is fastest is not least */
    if (str_is(word, "none") || (!word.ptr && !beside))
        return true;
    options->tune = ARENA_NEW(&cli->arena, Tune);
    ARENA_PUSH(&cli->arena, model->tune_path, model->tune_count, model->tune_capacity, path);
    return file_read(&cli->arena, &cli->diag, path, &text) &&
           tune_read(options->tune, &cli->arena, &cli->diag, path, text, options->target->name);
}

static int options_for(Cli *cli, Model *model, const Target *target, WeightsForm weights, CompileOptions *options)
{
    *options = (CompileOptions){.weights = weights,
                                .byte_order = program_byte_order_here(),
                                .effort = 1,
                                .name = model->name,
                                .progress = show_step,
                                .progress_context = cli,
                                .source = prepare_file_name(model->path),
                                .describe = prepare_describe,
                                .describe_context = prepare_printer(&cli->arena),
                                .target = target};
    if (!target || !program_compiler(cli) || !program_allocator(cli, &options->allocator) ||
        !args_bytes(cli, "memory-limit", &options->memory_limit) || !program_threads(cli, options) ||
        !program_adjust_target(cli, &options->target))
        return STATUS_USAGE;
    options->exact = args_has(cli, "exact");
    return take_tune(cli, model, options) ? STATUS_OK : STATUS_INPUT;
}

int program_options(Cli *cli, Model *model, const char *target, WeightsForm weights, CompileOptions *options)
{
    return options_for(cli, model, program_target(cli, target), weights, options);
}

int program_options_each(Cli *cli, Model *model, const Target *const *target, uint32_t count, WeightsForm weights,
                         CompileOptions *options)
{
    int status = STATUS_OK;
    Str tune = args_value(cli, "tune");
    if (count > 1 && tune.ptr && !str_is(tune, "none"))
        return cli_usage(cli, "a tune file is of one target; those of several stand beside the model");
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++)
        status = options_for(cli, model, target[i], weights, &options[i]);
    return status;
}

int program_of(Cli *cli, Model *model, const char *target, WeightsForm weights, Program *program)
{
    CompileOptions options;
    int status = program_options(cli, model, target, weights, &options);

    if (status != STATUS_OK)
        return status;
    return program_compile(&model->graph, 1, &options, program) ? STATUS_OK : STATUS_INPUT;
}

int program_of_all(const Model *model, CompileOptions *options, uint32_t targets, Program *program)
{
    for (uint32_t i = 0; i < targets; i++)
        options[i].name = model->program_name;
    bool good = program_compile_versions(model->graphs, model->graph_count, options, targets, program);
    return good ? STATUS_OK : STATUS_INPUT;
}
