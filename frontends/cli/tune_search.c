/* Sweeps: each compiles the graph as it stands, and then again and again with another recipe for every kernel at once,
 * timed in turns with the first, so that a machine that slows down slows both.  What was faster is taken together,
 * compared once more, and is what the next sweep begins with. */
#include "cli/tune_search.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/clock.h"
#include "cli/halt.h"
#include "cli/inputs.h"
#include "cli/kernel_times.h"
#include "cli/terminal.h"
#include "codegen/kernel/lower/lower.h"

#define NO_TEXT     UINT32_MAX /* where a mark stands that is asked for, but in no file */
#define MOST_SWEEPS 3
#define TURNS       4    /* of the two that are compared */
#define LEAST_RUNS  5    /* of a turn */
#define GAIN        0.97 /* what is not faster than that may be noise */

/* One compilation of the graph, loaded. */
typedef struct Built {
    Cli cli; /* an arena and diagnostics of its own */
    Model model;
    Program program;
    Host host;
    KernelTimes times;
} Built;

/* Without `tune` by the file that the flags name, or that stands beside the model, if any. */
static int build(const TuneSearch *s, Tune *tune, Built *built)
{
    CompileOptions options;
    int status;
    *built =
        (Built){.cli = {.verb = s->cli->verb, .argument = s->cli->argument, .argument_count = s->cli->argument_count}};
    built->cli.diag.arena = &built->cli.arena;
    Cli *cli = &built->cli;
    if ((status = model_load(cli, WEIGHTS_ALL, &built->model)) != STATUS_OK)
        return status;
    built->model.graph = built->model.graphs[s->graph];
    const Tensor *const *input = inputs_read(cli, &built->model, "random:1", &status);
    if (!input || (status = program_options(cli, &built->model, "host", WEIGHTS_FILE, &options)) != STATUS_OK)
        return status;
    options.tune = tune ? tune : options.tune ? options.tune : ARENA_NEW(&cli->arena, Tune);
    options.timed = true;
    if (!program_compile(&built->model.graph, 1, &options, &built->program))
        return STATUS_INPUT;
    if ((status = host_open(cli, &built->program, 0, &built->host)) != STATUS_OK)
        return status;
    host_bind(cli, built->program.entry->graph, &built->host, input);
    built->times = kernel_times_open(&cli->arena, &built->program, &built->host);
    return STATUS_OK;
}

static void discard(Built *built)
{
    host_close(&built->host);
    diag_free(&built->cli.diag);
    arena_free(&built->cli.arena);
}

static void take_turns(const TuneSearch *s, Built *a, Built *b)
{
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        Built *built = turn % 2 ? b : a;
        uint32_t runs = 0;
        for (double begin = clock_seconds(); runs < LEAST_RUNS || clock_seconds() - begin < s->seconds / TURNS; runs++)
            kernel_times_run(&built->times, &built->cli.arena, &built->host);
    }
}

static Str statement_of(const Entry *entry, const Kernel *kernel)
{
    return entry->statement[entry->graph->node[kernel->node[0]].out[0]];
}

/* Adds the times of each group's kernels: what a quarter of the runs is below. */
static void add_times(const TuneSearch *s, const Built *built, double *second)
{
    const Entry *entry = built->program.entry;
    for (uint32_t k = 0; k < built->times.kernels; k++) {
        const Kernel *kernel = &entry->memory.kernel[k];
        uint32_t group = kernel->form == FORM_FLOW ? MAP_NONE : map_get(&s->group_of, statement_of(entry, kernel));
        if (group != MAP_NONE)
            second[group] += kernel_times_quantile(&built->times, k, 0.25);
    }
}

/* Groups */

static Str signature_of(Arena *arena, const Graph *graph, const Kernel *kernel, const KernelMark *mark)
{
    Text text = {0};
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        text_printf(&text, "%s", op_info(node->op)->name);
        for (uint32_t i = 0; i < node->in_count + node->out_count; i++) {
            ValueId value = i < node->in_count ? node->in[i] : node->out[i - node->in_count];
            text_printf(&text, " " STR_FMT, STR_ARG(type_show(graph->module->arena, value_type(graph, value))));
        }
        text_char(&text, '\n');
    }
    text_printf(&text, "%" PRId64 " %" PRId64 " ", kernel->flops, kernel->bytes);
    kernel_mark_put(&text, mark);
    Str signature = str_copy(arena, text_view(&text));
    text_free(&text);
    return signature;
}

static uint32_t group_of(TuneSearch *s, const Graph *graph, const Kernel *kernel)
{
    Arena *arena = &s->cli->arena;
    KernelMark mark = recipe_as_mark(arena, &kernel->recipe);
    Str signature = signature_of(arena, graph, kernel, &mark);
    for (uint32_t g = 0; g < s->group_count; g++)
        if (str_eq(s->group[g].signature, signature))
            return g;
    TuneGroup group = {
        .signature = signature, .name = str_copy(arena, kernel->name), .mark = mark, .best = mark, .ratio = 1};
    ARENA_PUSH(arena, s->group, s->group_count, s->group_capacity, group);
    return s->group_count - 1;
}

/* Is the recipe offered, as it is, for all kernels of a group? */
static bool serves_all(TuneSearch *s, Lower *lower, const Entry *entry, uint32_t group, const Recipe *recipe)
{
    for (uint32_t k = 0; k < entry->memory.kernel_count; k++) {
        Kernel *kernel = &entry->memory.kernel[k];
        if (kernel->form == FORM_FLOW || map_get(&s->group_of, statement_of(entry, kernel)) != group)
            continue;
        Recipe same = *recipe;
        lower->kernel = kernel;
        if (!recipe_offered(lower, kernel, &same) || !recipe_eq(&same, recipe))
            return false;
    }
    return true;
}

static void find_variants(TuneSearch *s, Lower *lower, const Entry *entry, Kernel *kernel, uint32_t group)
{
    Recipe *list;
    uint32_t count = recipe_variants(lower, kernel, &list);
    TuneGroup *g = &s->group[group];
    g->variant = ARENA_ARRAY(&s->cli->arena, KernelMark, count);
    for (uint32_t i = 0; i < count; i++)
        if (serves_all(s, lower, entry, group, &list[i]))
            g->variant[g->count++] = recipe_as_mark(&s->cli->arena, &list[i]);
}

/* What a sweep begins with: the kernels, which of them are the same, and what else could be tried. */
static void look(TuneSearch *s, const Built *built)
{
    const Entry *entry = built->program.entry;
    Graph *graph = entry->graph;
    Arena *arena = &s->cli->arena;
    Users users = graph_users(graph, graph->module->arena);
    Lower lower = lower_new(graph, built->program.options.target, &built->program.entry->memory.storage, &users);
    lower.exact = built->program.options.exact;
    s->group_count = s->line_count = 0;
    s->group_of = (Map){.arena = arena};
    for (uint32_t k = 0; k < entry->memory.kernel_count; k++) {
        const Kernel *kernel = &entry->memory.kernel[k];
        if (kernel->form == FORM_FLOW || kernel->there)
            continue;
        uint32_t group = group_of(s, graph, kernel);
        TuneLine line = {.graph = s->name, .statement = str_copy(arena, statement_of(entry, kernel))};
        line.mark.number = k;
        s->group[group].kernels++;
        map_put(&s->group_of, line.statement, group);
        ARENA_PUSH(arena, s->line, s->line_count, s->line_capacity, line);
    }
    for (uint32_t k = 0; k < entry->memory.kernel_count; k++) {
        Kernel *kernel = &entry->memory.kernel[k];
        uint32_t group =
            kernel->form == FORM_FLOW || kernel->there ? MAP_NONE : map_get(&s->group_of, statement_of(entry, kernel));
        if (group != MAP_NONE && !s->group[group].variant)
            find_variants(s, &lower, entry, kernel, group);
    }
}

/* Recipes for all kernels of the graph: `mark_of` says which of its group. */
typedef KernelMark MarkOf(const TuneGroup *group, uint32_t number);

static KernelMark present(const TuneGroup *group, uint32_t number)
{
    (void)number;
    return group->mark;
}

static KernelMark fastest(const TuneGroup *group, uint32_t number)
{
    (void)number;
    return group->best;
}

static KernelMark variant(const TuneGroup *group, uint32_t number)
{
    return number < group->count ? group->variant[number] : group->mark;
}

static void set_recipes(const TuneSearch *s, Arena *arena, Tune *tune, MarkOf *mark_of, uint32_t number)
{
    for (uint32_t i = 0; i < s->line_count; i++) {
        TuneLine line = s->line[i];
        line.mark = mark_of(&s->group[map_get(&s->group_of, line.statement)], number);
        line.mark.number = s->line[i].mark.number;
        line.mark.place.source = NO_TEXT;
        tune_add(tune, arena, &line);
    }
}

/* Sweeps */

static bool is_over(const TuneSearch *s)
{
    return clock_seconds() >= s->deadline || halt_signal();
}

static void show(const TuneSearch *s, uint32_t round, uint32_t rounds)
{
    char line[128];
    uint32_t faster = 0;
    double left = s->deadline - clock_seconds();
    for (uint32_t g = 0; g < s->group_count; g++)
        faster += s->group[g].ratio < GAIN;
    snprintf(line, sizeof line, "recipes %u of %u, %u kernel%s faster, at most %.0f s left", round, rounds, faster,
             faster == 1 ? "" : "s", left > 0 ? left : 0);
    terminal_line(line);
}

static uint32_t most_variants(const TuneSearch *s)
{
    uint32_t most = 0;
    for (uint32_t g = 0; g < s->group_count; g++)
        most = s->group[g].count > most ? s->group[g].count : most;
    return most;
}

/* Times the program against the sweep's first one.  `aloud`: it must compile, and what keeps it from that is told. */
static bool compare(TuneSearch *s, Built *first, Tune *tune, bool aloud, double *before, double *after)
{
    Built other;
    bool good = build(s, tune, &other) == STATUS_OK;
    if (good) {
        first->times.runs = other.times.runs = 0;
        first->times.count = other.times.count = 0;
        take_turns(s, first, &other);
        add_times(s, first, before);
        add_times(s, &other, after);
    }
    if (!good && aloud)
        terminal_put_diagnostics(&other.cli.diag.text);
    discard(&other);
    return good;
}

static void try_variants(TuneSearch *s, Built *first, uint32_t number)
{
    Arena scratch = {0};
    Tune tune = {0};
    double *before = ARENA_ARRAY(&scratch, double, s->group_count);
    double *after = ARENA_ARRAY(&scratch, double, s->group_count);
    set_recipes(s, &scratch, &tune, variant, number);
    bool good = compare(s, first, &tune, false, before, after);
    for (uint32_t g = 0; good && g < s->group_count; g++) {
        TuneGroup *group = &s->group[g];
        if (number >= group->count)
            continue;
        s->timed++;
        if (before[g] > 0 && after[g] / before[g] < group->ratio) {
            group->ratio = after[g] / before[g];
            group->best = group->variant[number];
        }
    }
    arena_free(&scratch);
}

/* All that was faster at once, compared once more: what is not faster then stays as it was.  Returns how many changed.
 */
static uint32_t confirm(TuneSearch *s, Built *first)
{
    Arena scratch = {0};
    Tune tune = {0};
    double *before = ARENA_ARRAY(&scratch, double, s->group_count);
    double *after = ARENA_ARRAY(&scratch, double, s->group_count);
    uint32_t changed = 0;
    for (uint32_t g = 0; g < s->group_count; g++)
        if (s->group[g].ratio >= GAIN)
            s->group[g].best = s->group[g].mark;
    set_recipes(s, &scratch, &tune, fastest, 0);
    bool good = compare(s, first, &tune, true, before, after);
    for (uint32_t g = 0; g < s->group_count; g++) {
        TuneGroup *group = &s->group[g];
        bool faster = good && group->ratio < GAIN && after[g] < before[g] * (1 + GAIN) / 2;
        group->before = before[g];
        group->after = faster ? after[g] : before[g];
        group->mark = faster ? group->best : group->mark;
        changed += faster;
    }
    arena_free(&scratch);
    return changed;
}

static int sweep(TuneSearch *s, Tune *from, uint32_t *changed)
{
    Built first;
    int status = build(s, from, &first);
    *changed = 0;
    if (status == STATUS_OK) {
        look(s, &first);
        uint32_t rounds = most_variants(s), round = 0;
        for (; round < rounds && !is_over(s); round++) {
            show(s, round, rounds);
            try_variants(s, &first, round);
        }
        s->complete = round == rounds;
        *changed = confirm(s, &first);
        set_recipes(s, &s->cli->arena, s->tune, present, 0);
    }
    if (status != STATUS_OK && first.cli.diag.text.len)
        terminal_put_diagnostics(&first.cli.diag.text);
    discard(&first);
    return status;
}

/* What all sweeps together have come to. */
static void compare_ends(TuneSearch *s)
{
    Built first;
    double *before = ARENA_ARRAY(&s->cli->arena, double, s->group_count);
    double *after = ARENA_ARRAY(&s->cli->arena, double, s->group_count);
    terminal_line("comparing with the recipes it began with");
    if (build(s, NULL, &first) == STATUS_OK && compare(s, &first, s->tune, true, before, after))
        for (uint32_t g = 0; g < s->group_count; g++) {
            s->group[g].before = before[g];
            s->group[g].after = after[g];
        }
    discard(&first);
}

int tune_search(TuneSearch *s)
{
    uint32_t changed, sweeps = 1;
    int status = sweep(s, NULL, &changed);
    for (; status == STATUS_OK && changed && sweeps < MOST_SWEEPS && !is_over(s); sweeps++)
        status = sweep(s, s->tune, &changed);
    if (status == STATUS_OK && sweeps > 1)
        compare_ends(s);
    return status;
}
