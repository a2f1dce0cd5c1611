/* `nnc tune`: times what kernels could be computed by, and writes the fastest down. */
#include <stdio.h>

#include "base/file.h"
#include "cli/clock.h"
#include "cli/folder.h"
#include "cli/halt.h"
#include "cli/roofline.h"
#include "cli/terminal.h"
#include "cli/tune_search.h"
#include "plan/report.h"

/* Begins with what an earlier run has found. */
static bool take_earlier(Cli *cli, Str path, const Target *target, Tune *tune)
{
    Str text;
    return !file_exists(path) || (file_read(&cli->arena, &cli->diag, path, &text) &&
                                  tune_read(tune, &cli->arena, &cli->diag, path, text, target->name));
}

static void put_time(Text *out, double second)
{
    char time[32];
    text_printf(out, "%9s", roofline_seconds(time, second));
}

static void print_group(Text *out, const TuneGroup *group)
{
    Text row = {0};
    text_printf(&row, "  ");
    put_time(&row, group->before);
    put_time(&row, group->after);
    int width = plan_columns(group->name), most = (int)terminal_known_width() / 2;
    text_printf(&row, "  ");
    plan_put_elided(&row, group->name, most && width > most ? most : width);
    if (group->kernels > 1)
        text_printf(&row, " (%u)", group->kernels);
    text_printf(&row, ": ");
    kernel_mark_put(&row, &group->mark);
    text_char(&row, '\n');
    terminal_fold(out, text_view(&row));
    text_free(&row);
}

static void print_search(Text *out, const TuneSearch *s)
{
    double before = 0, after = 0;
    for (uint32_t g = 0; g < s->group_count; g++) {
        before += s->group[g].before;
        after += s->group[g].after;
    }
    text_printf(out, STR_FMT " for %s: %u recipe%s timed for %u kernel%s%s\n", STR_ARG(s->name), s->target, s->timed,
                s->timed == 1 ? "" : "s", s->group_count, s->group_count == 1 ? "" : "s",
                s->complete     ? ""
                : halt_signal() ? "; a signal came before all were"
                                : "; the time was over before all were");
    text_printf(out, "  %9s%9s  by kernel (how often)\n", "before", "after");
    for (uint32_t g = 0; g < s->group_count; g++)
        print_group(out, &s->group[g]);
    text_printf(out, "  ");
    put_time(out, before);
    put_time(out, after);
    text_printf(out, "  in all, %.2f times as fast\n", after > 0 ? before / after : 1);
}

/* Found out now, not when all the time has gone into what cannot be kept. */
static bool can_write(Cli *cli, Str path)
{
    FileWriter writer;
    bool opened = file_writer_open(&writer, &cli->diag, path);
    if (opened)
        file_writer_abandon(&writer);
    return opened;
}

static int finish(Cli *cli, Str path, const Tune *tune, const char *target, Text *out)
{
    Text text = {0};
    tune_print(&text, tune, target);
    bool written = file_write(&cli->diag, path, text.ptr, text.len);
    if (written)
        text_printf(out, "written to " STR_FMT "\n", STR_ARG(path));
    cli_step(cli, NULL);
    cli_put_rows(out);
    text_free(&text);
    text_free(out);
    return written ? STATUS_OK : STATUS_ENVIRONMENT;
}

static int tune_model(Cli *cli, const Model *model, double seconds, double limit)
{
    const Target *target = program_target(cli, "host");
    Str path = args_value(cli, "o");
    Tune tune = {0};
    Text out = {0};
    double begin = clock_seconds();
    int status = STATUS_OK;
    path = path.ptr ? path : program_tune_path(&cli->arena, model, target);
    if (!take_earlier(cli, path, target, &tune))
        return STATUS_INPUT;
    if (!can_write(cli, path))
        return STATUS_ENVIRONMENT;
    folder_watch_signals(); /* before those of this run, as else the first folder would */
    halt_watch();
    for (uint32_t g = 0; g < model->graph_count && status == STATUS_OK && !halt_signal(); g++) {
        TuneSearch search = {.cli = cli,
                             .graph = g,
                             .seconds = seconds,
                             .deadline = begin + limit * (g + 1) / model->graph_count,
                             .tune = &tune,
                             .name = model->graphs[g]->name,
                             .target = target->name};
        status = tune_search(&search);
        if (status == STATUS_OK)
            print_search(&out, &search);
    }
    halt_unwatch();
    if (status == STATUS_OK)
        status = finish(cli, path, &tune, target->name, &out);
    else
        text_free(&out);
    return status == STATUS_OK && halt_signal() ? 128 + halt_signal() : status;
}

static int run(Cli *cli)
{
    int64_t milliseconds = 200, limit = 300;
    Model model;
    if (!args_number(cli, "milliseconds", 1, 60000, &milliseconds) ||
        !args_number(cli, "time-limit", 1, 86400, &limit) || !program_flags(cli) || !program_runs_here(cli))
        return STATUS_USAGE;
    int status = model_load(cli, WEIGHTS_ALL, &model);
    return status == STATUS_OK ? tune_model(cli, &model, (double)milliseconds * 1e-3, (double)limit) : status;
}

const Verb verb_tune = {
    .name = "tune",
    .operands = "MODEL",
    .summary = "Time other ways to compute a model's kernels, and keep the fastest",
    .text =
        "Compiles the model again and again with other recipes (what register tiles hold, in which order loops run, "
        "who "
        "computes a kernel at all), times each in turns with what it began with, and writes the fastest of each kernel "
        "to MODEL.TARGET.tune beside the model: lines of the printed IR, which compile, run, bench, plan and train "
        "follow from then on.  Without such a file the cost table decides.  A later run begins with the file, which a "
        "run that is interrupted writes, too; what a "
        "changed model has no use for any more is warned of.  Results may differ in their last digits.",
    .flag = (const Flag[]){FLAG_TARGET,
                           {"o", "FILE", "The file to write (default: MODEL.TARGET.tune beside the model)"},
                           {"time-limit", "SECONDS", "When to stop, about (default: 300)"},
                           {"milliseconds", "N", "How long to time each recipe (default: 200)"},
                           {"input", "NAME=FILE|random:SEED|zeros", "An input (default: random:1)"},
                           FLAG_CC,
                           FLAG_DEFINE,
                           FLAGS_WEIGHTS,
                           FLAG_ALLOCATOR,
                           FLAG_MEMORY_LIMIT,
                           FLAG_EXACT,
                           FLAG_PRECISION,
                           FLAG_BACKEND,
                           FLAG_TUNE,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc tune digits.nnc --time-limit 60", "for this machine"},
                                 {"nnc bench digits.nnc --tune none", "as fast as it is without"},
                                 {NULL, NULL}},
    .run = run,
};
