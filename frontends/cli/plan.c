/* `nnc plan`: where every tensor lives in the arena, and when. */
#include <stdlib.h>
#include <string.h>

#include "api/loops.h"
#include "api/report.h"
#include "api/savings.h"
#include "cli/budget.h"
#include "cli/model.h"
#include "cli/program.h"
#include "cli/terminal.h"
#include "cli/verify.h"
#include "plan/problem_csv.h"
#include "plan/report.h"

typedef enum PlanFormat { FORMAT_TABLE, FORMAT_CHART, FORMAT_JSON, FORMAT_SVG, FORMAT_HTML, FORMAT_MD } PlanFormat;
static const char *const formats[] = {"table", "chart", "json", "svg", "html", "md", NULL};

static void put_report(Text *out, const PlanReport *report, PlanFormat format)
{
    switch (format) {
    case FORMAT_TABLE:
        plan_print_table(out, report, terminal_known_width());
        break;
    case FORMAT_CHART:
        plan_print_chart(out, report, terminal_width());
        break;
    case FORMAT_JSON:
        plan_print_json(out, report);
        break;
    case FORMAT_SVG:
        plan_print_svg(out, report);
        break;
    case FORMAT_HTML:
        plan_print_html(out, report);
        break;
    case FORMAT_MD: /* of a budget only */
        break;
    }
}

typedef struct Limits { /* bytes that there are; 0: any number */
    int64_t arena, ram, flash;
    int64_t copies; /* of a round of loops; -1: any number */
} Limits;

/* The words of the flag --without as a sum of Without; false after a usage error. */
static bool take_without(Cli *cli, unsigned *without)
{
    const char *known[SAVINGS_PARTS + 1] = {NULL};
    Str list = args_value(cli, "without");

    for (uint32_t i = 0; i < SAVINGS_PARTS; i++)
        known[i] = savings_part[i].word;
    for (*without = 0; list.len;) {
        const char *comma = memchr(list.ptr, ',', list.len);
        Str word = {list.ptr, comma ? (uint32_t)(comma - list.ptr) : list.len};
        uint32_t chosen, taken = word.len + (comma != NULL);
        if (!cli_choose(cli, "without", word, known, &chosen))
            return false;
        *without |= savings_part[chosen].bit;
        list.ptr += taken;
        list.len -= taken;
    }
    return true;
}

/* problems/A.csv as A */
static Str problem_name(Str path)
{
    uint32_t begin = path.len;
    while (begin > 0 && path.ptr[begin - 1] != '/')
        begin--;
    Str name = {path.ptr + begin, path.len - begin};
    if (str_ends(name, ".csv") && name.len > 4)
        name.len -= 4;
    return name;
}

static int plan_problem(Cli *cli, Str path, PlanFormat format, const char *allocator, int64_t capacity, int effort)
{
    PlanNamedProblem named = {0};
    PlanResult result;
    Str text;

    bool input = str_is(path, "-");
    path = input ? STR("<stdin>") : path;
    if (!(input ? file_read_input(&cli->arena, &cli->diag, &text) : file_read(&cli->arena, &cli->diag, path, &text)) ||
        !plan_read_csv(&cli->arena, &cli->diag, diag_add_source(&cli->diag, path, text), &named))
        return STATUS_INPUT;
    named.problem.capacity = capacity;
    cli_step(cli, "placing");
    bool good = plan_place(&cli->arena, &named.problem, allocator, effort, &result);
    cli_step(cli, NULL);
    Str fault = {0};
    Text out = {0};
    if (result.offset && format == FORMAT_JSON) {
        plan_write_json(&out, &named, &result);
    } else if (result.offset) {
        PlanReport report = plan_report_of(&cli->arena, &named.problem, &result, named.id);
        report.title = plan_printable(&cli->arena, input ? STR("problem") : problem_name(path));
        put_report(&out, &report, format);
    }
    cli_put(&out);
    text_free(&out);
    if (good && !plan_check(&cli->arena, &named.problem, &result, &fault))
        diag_file_error(&cli->diag, path, "internal error: the plan is wrong: " STR_FMT, STR_ARG(fault));
    if (!good)
        diag_file_error(&cli->diag, path, STR_FMT, STR_ARG(result.message));
    return cli->diag.error_count ? STATUS_INPUT : STATUS_OK;
}

typedef struct Making { /* of the program */
    int64_t effort;
    unsigned without;
    WeightsForm form;
} Making;

/* Compiles for the plan alone, with the verb's own flags. */
static int compile(Cli *cli, Model *model, Making how, int64_t capacity, Program *program)
{
    CompileOptions options;
    int status = program_flags(cli) ? model_load(cli, WEIGHTS_SOME, model) : STATUS_USAGE;

    if (status == STATUS_OK)
        status = program_options(cli, model, "generic", how.form, &options);
    if (status != STATUS_OK)
        return status;
    options.effort = (int)how.effort;
    options.capacity = capacity;
    options.without = how.without;
    options.compare = true;
    return program_of_all(model, &options, 1, program);
}

static PlanReport report_entry(Cli *cli, const Entry *entry, PlanFormat format)
{
    PlanReport report = report_of_entry(&cli->arena, entry);
    if (format != FORMAT_CHART && format != FORMAT_SVG) /* they do not show it */
        savings_measure(&cli->arena, entry, &report);
    return report;
}

/* A table or a chart of every entry; what is one document is of the one that takes most. */
/* More than is allowed is an error for each loop. */
static void check_copies(Cli *cli, const Model *model, const Program *program, int64_t most)
{
    for (uint32_t e = 0; e < program->entry_count; e++) {
        PlanReport report = {0};
        loops_note(&cli->arena, &program->entry[e], &report);
        for (uint32_t i = 0; i < report.loop_count; i++)
            if (report.loop[i].copied > most)
                diag_file_error(&cli->diag, model->path,
                                "the loop of " STR_FMT
                                " in steps %lld to %lld copies %lld bytes in each round, more than %lld",
                                STR_ARG(program->entry[e].graph->name), (long long)report.loop[i].first,
                                (long long)report.loop[i].last - 1, (long long)report.loop[i].copied, (long long)most);
    }
}

static void print_entries(Cli *cli, const Program *program, PlanFormat format)
{
    bool all = format == FORMAT_TABLE || format == FORMAT_CHART;
    const Entry *largest = program_largest_entry(program);
    for (uint32_t e = 0; e < program->entry_count; e++) {
        if (!all && &program->entry[e] != largest)
            continue;
        PlanReport report = report_entry(cli, &program->entry[e], format);
        Text out = {0};
        cli_step(cli, NULL);
        if (all && e)
            text_char(&out, '\n');
        put_report(&out, &report, format);
        cli_put(&out);
        text_free(&out);
    }
}

static void print_budget(const Budget *budget, PlanFormat format)
{
    Text out = {0};
    if (format == FORMAT_JSON)
        budget_print_json(&out, budget);
    else if (format == FORMAT_HTML)
        budget_print_html(&out, budget);
    else if (format == FORMAT_MD)
        budget_print_markdown(&out, budget);
    else
        budget_print_table(&out, budget, terminal_known_width());
    cli_put(&out);
    text_free(&out);
}

static int report_budget(Cli *cli, Str path, const Program *program, PlanFormat format, Limits limits)
{
    Budget budget = budget_of_program(&cli->arena, program);
    int status = args_has(cli, "cc") ? budget_measure(cli, &budget) : STATUS_OK;

    if (status != STATUS_OK)
        return status;
    budget.ram_limit = limits.ram;
    budget.flash_limit = limits.flash;
    cli_step(cli, NULL);
    print_budget(&budget, format);
    budget_check(cli, path, &budget);
    return STATUS_OK;
}

static int plan_model(Cli *cli, PlanFormat format, Limits limits, Making how)
{
    Str verify = args_value(cli, "verify");
    int64_t capacity = limits.arena;
    Model model;
    Program program;
    int status = compile(cli, &model, how, capacity, &program);

    if (status == STATUS_OK && args_has(cli, "report"))
        status = report_budget(cli, model.path, &program, format, limits);
    if (status != STATUS_OK)
        return status;
    if (verify.ptr) {
        const Entry *entry = program_largest_entry(&program);
        PlanReport report = report_of_entry(&cli->arena, entry);
        cli_step(cli, NULL);
        return verify_plan(cli, entry, &report, verify);
    }
    if (!args_has(cli, "report"))
        print_entries(cli, &program, format);
    if (limits.copies >= 0)
        check_copies(cli, &model, &program, limits.copies);
    if (capacity && program.arena_bytes > capacity)
        diag_file_error(&cli->diag, model.path, STR_FMT, STR_ARG(program_largest_entry(&program)->memory.plan.message));
    return STATUS_OK;
}

static bool take_operands(Cli *cli, Str problem, Str verify)
{
    static const char *const of_models[] =
        {"without", "copies", "target",    "D",       "weights-from", "init-missing", "convert-weights",
         "graph",   "verify", "report",    "cc",      "ram",          "flash",        "memory-limit",
         "threads", "exact",  "precision", "backend", "size",         "weights",      NULL},
                             *const of_plans[] = {"format", "allocator", "effort", "capacity", "report", NULL};
    if (!problem.ptr == !args_operand(cli, 0).ptr)
        return cli_usage(cli, problem.ptr ? "give a MODEL or --problem FILE.csv, not both"
                                          : "give a MODEL or --problem FILE.csv"),
               false;
    return (!problem.ptr || args_exclude(cli, "problem", of_models)) &&
           (!verify.ptr || args_exclude(cli, "verify", of_plans));
}

/* What only a report prints, asks or measures, and what it cannot; false after a usage error. */
static bool take_report(Cli *cli, PlanFormat format, Limits *limits)
{
    static const char *const of_reports[] = {"ram", "flash", "cc", "weights"};
    bool report = args_has(cli, "report");
    Str target = args_value(cli, "target");

    for (size_t i = 0; !report && i < sizeof of_reports / sizeof *of_reports; i++)
        if (args_has(cli, of_reports[i]))
            return cli_usage(cli, "--%s goes with --report", of_reports[i]), false;
    if (!report && format == FORMAT_MD)
        return cli_usage(cli, "--format md goes with --report"), false;
    if (report && (format == FORMAT_CHART || format == FORMAT_SVG))
        return cli_usage(cli, "--report comes as table, json, md or html, not as %s", formats[format]), false;
    if (args_has(cli, "cc") && target.len >= 4 && memcmp(target.ptr, "cuda", 4) == 0)
        return cli_usage(cli, "--cc measures C, which is not what " STR_FMT " runs", STR_ARG(target)), false;
    return program_compiler(cli) && args_bytes(cli, "ram", &limits->ram) && args_bytes(cli, "flash", &limits->flash);
}

static int run(Cli *cli)
{
    Str problem = args_value(cli, "problem"), word = args_value(cli, "format"), verify = args_value(cli, "verify");
    Limits limits = {.copies = -1};
    Making how = {.effort = 1};
    const char *allocator;
    uint32_t format = FORMAT_TABLE;

    if ((word.ptr && !cli_choose(cli, "format", word, formats, &format)) || !program_allocator(cli, &allocator) ||
        !args_bytes(cli, "capacity", &limits.arena) ||
        !args_number(cli, "copies", 0, INT64_C(1) << 40, &limits.copies) ||
        !args_number(cli, "effort", 0, 1000, &how.effort) || !take_without(cli, &how.without) ||
        !program_take_form(cli, &how.form) || !take_operands(cli, problem, verify) ||
        !take_report(cli, (PlanFormat)format, &limits))
        return STATUS_USAGE;
    if (problem.ptr)
        return plan_problem(cli, problem, (PlanFormat)format, allocator, limits.arena, (int)how.effort);
    return plan_model(cli, (PlanFormat)format, limits, how);
}

const Verb verb_plan = {
    .name = "plan",
    .operands = "[MODEL]",
    .summary = "Show where every tensor lives in memory, and when",
    .text =
        "The plan of a model, or of a bare placement problem: a table with the columns id, lower, upper and size, "
        "each buffer live in [lower, upper). The exit status is 1 when a capacity is given and exceeded; the message "
        "says whether a plan that keeps to it is ruled out or more effort may find one.\n"
        "\n"
        "With --report, what the model takes of a machine instead, by layer and in all: multiply-adds (MACs), weights, "
        "arena, inputs and outputs, and with --cc also stack and code, as that compiler makes them. --ram and --flash "
        "check the sums: the exit status is 1 where one is exceeded.",
    .flag =
        (const Flag[]){
            {"format", "table|chart|json|svg|html",
             "How to print (default: table); with --report table, json, md or html"},
            {"report", NULL, "Print what the model takes of a machine, by layer and in all"},
            {"cc", "CC",
             "With --report: measure stack and code with this C compiler, at the level that NAME.c recommends unless "
             "it says another"},
            {"weights", "c|blob|file", "With --report: the form that weights take (default: as nnc compile's)"},
            {"ram", "BYTES", "With --report: the memory there is for arena, state, inputs, outputs and stack"},
            {"flash", "BYTES", "With --report: the memory there is for weights and code"},
            FLAGS_BUILD,
            {"effort", "N", "Scale the work limit of the search; 1 is normal"},
            {"without", "inplace,views,parts,order",
             "Leave out some of what lowers the peak before placement: results written over their "
             "operands, views, operands of concats and pads that are made inside them, an order of kernels that needs "
             "less"},
            {"problem", "FILE.csv", "Plan this problem instead of a model; - is standard input"},
            {"capacity", "BYTES",
             "The memory there is, for which the search tries as much again; K, M and G are understood"},
            {"copies", "BYTES", "What loops may copy in a round; exit status 1 when it is more"},
            {"verify", "PLAN.json", "Do not plan, but check this plan of the model; exit status 1 when it is wrong"},
            FLAG_TARGET,
            FLAG_DEFINE,
            FLAGS_WEIGHTS,
            FLAG_GRAPH,
            FLAG_END},
    .example = (const Example[]){{"nnc plan digits.nnc --format chart", "time across, addresses up"},
                                 {"nnc plan --problem A.1048576.csv --capacity 1M --format json", "a bare problem"},
                                 {"nnc plan digits.nnc --format html >plan.html", "a page for the browser"},
                                 {"nnc plan digits.nnc --verify plan.json", "is a stored plan right?"},
                                 {"nnc plan digits.nnc --report --ram 64K --flash 512K --cc \"arm-none-eabi-gcc -O2 "
                                  "-mcpu=cortex-m4 -mthumb\"",
                                  "does it fit into this part?"},
                                 {NULL, NULL}},
    .run = run,
};
