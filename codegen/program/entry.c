/* From a graph to an entry: the best of several ways to run it is planned, lowered and judged. */
#include "program/entry.h"

#include "kernel/lower/lower.h"
#include "program/stage.h"
#include "program/tune.h"
#include "storage/deal.h"
#include "storage/flow.h"

#define MOST_STATEMENTS 1500000u /* statements of loops, of all kernels: some 700 bytes each */

PassContext entry_context(const CompileOptions *options, unsigned without, Arena *scratch, Diag *diag)
{
    PassContext context = pass_context(scratch, diag);
    context.target = options->target;
    context.lanes = target_block(options->target);
    context.integers_as_floats = target_takes_floats(options->target);
    context.dear = options->target->dialect == DIALECT_C99;
    context.exact = options->exact;
    context.apart = options->apart;
    context.keep_order = without & WITHOUT_ORDER;
    context.copy_views = without & WITHOUT_VIEWS;
    return context;
}

void entry_progress(const CompileOptions *options, const char *step)
{
    if (options->progress)
        options->progress(options->progress_context, step);
}

bool entry_run_passes(Graph *graph, const CompileOptions *options, PassContext *context)
{
    const char *const *pass = options->passes ? options->passes : pass_pipeline;
    for (; *pass; pass++) {
        entry_progress(options, *pass);
        if (!pass_run(pass_find(str_from(*pass)), graph, context))
            return false;
    }
    return true;
}

/* Ways to run a fused graph.  Two decisions are taken only when the plan gains by them, so all ways are planned.
 * Another order: schedule goes by live bytes, and knows neither the scratch of kernels nor parts of concats nor gaps.
 * And to copy parts: one that has room in front of it, or between its rows, for others which are made later, keeps that
 * room from everybody else.  A DenseNet block must not copy all of its concats for the sake of a few bytes, so only
 * those made early are ever copied. */

typedef struct Ways {
    const Graph *fused;
    MemoryOptions options;
    PassContext *context;
    Memory best;
    bool found, keeps_order; /* the best has the order that fuse leaves */
} Ways;

static bool in_order(Ways *ways, bool keep, Graph **graph)
{
    ways->context->keep_order = keep;
    *graph = graph_clone(ways->fused);
    return pass_run(stage_find(STR("schedule")), *graph, ways->context);
}

/* What the way takes: the arena, and states that have memory twice. */
static int64_t bytes_of(const Memory *memory)
{
    int64_t bytes = memory->plan.peak;
    for (uint32_t i = 0; i < memory->state_count; i++)
        if (memory->state[i].twice)
            bytes += memory->storage.at[memory->state[i].value].bytes;
    return bytes;
}

/* What updates of carried values leave as it is, and copy in each round, since they are made beside the old value: a
 * table that rounds fill row by row would take the square of their number. */
static int64_t copied_in_rounds(const Memory *memory)
{
    const Graph *graph = memory->graph;
    int64_t bytes = 0;
    for (uint32_t f = 0; f < memory->family_count; f++) {
        const Family *family = &memory->family[f];
        const Node *maker = family->maker == NONE ? NULL : value_producer(graph, family->maker);
        uint32_t step = maker && maker->kernel != NONE ? memory->kernel_of[maker->kernel] : NONE;
        if (step != NONE && family->places > 1 && memory->kernel[step].form == FORM_UPDATE)
            bytes += family->bytes;
    }
    return bytes;
}

/* By what is copied, as long as both are as large as they may be, or neither; then by `gain` bytes at least. */
static bool is_better(const Ways *ways, const Memory *memory, int64_t gain)
{
    int64_t limit = ways->options.capacity ? ways->options.capacity : INT64_MAX;
    int64_t copied = copied_in_rounds(memory), least = copied_in_rounds(&ways->best);
    bool fits = memory->plan.peak <= limit, did = ways->best.plan.peak <= limit;
    if (copied != least)
        return fits == did ? copied < least : fits;
    return bytes_of(memory) <= bytes_of(&ways->best) - gain;
}

/* Plans the graph; the plan becomes the best when it is better than the best so far. */
static bool try_way(Ways *ways, Graph *graph, const bool *copied, int64_t gain, Memory *memory)
{
    ways->options.copied = copied;
    if (!memory_plan(graph, &ways->options, memory))
        return false;
    if (!ways->found || is_better(ways, memory, gain)) {
        ways->best = *memory;
        ways->keeps_order = ways->context->keep_order;
    }
    ways->found = true;
    return true;
}

static bool try_order(Ways *ways, Graph *graph)
{
    Memory memory, copying;
    if (!try_way(ways, graph, NULL, 0, &memory))
        return false;
    /* recipes and in-place results are marks of a graph of its own */
    return !memory.has_holes || try_way(ways, graph_clone(graph), memory.early, 1, &copying);
}

static bool same_order(const Graph *a, const Graph *b)
{
    bool same = true;
    for (uint32_t v = 0; v < a->value_count; v++)
        same &= a->value[v].node == b->value[v].node;
    return same;
}

static bool best_way(Ways *ways)
{
    Graph *searched, *given;
    if (!in_order(ways, ways->context->keep_order, &searched))
        return false;
    bool differ = !same_order(searched, ways->fused);
    return try_order(ways, searched) && (!differ || (in_order(ways, true, &given) && try_order(ways, given)));
}

static bool plan_ways(Ways *ways, Graph *graph, const CompileOptions *options, unsigned without, PassContext *context)
{
    *ways = (Ways){.fused = graph,
                   .options = {.target = options->target,
                               .without = without,
                               .allocator = options->allocator,
                               .effort = options->effort,
                               .threads = options->threads,
                               .share_all = options->share_all,
                               .exact = options->exact,
                               .capacity = options->capacity ? options->capacity : options->memory_limit,
                               .hopeless = options->hopeless},
                   .context = context};
    if (!pass_run(stage_find(STR("fuse")), graph, context))
        return false;
    tune_follow(options, graph);
    if (!best_way(ways))
        return false;
    if (!ways->options.capacity || ways->best.plan.peak <= ways->options.capacity)
        return true;
    ways->options.lean = true;
    return best_way(ways);
}

/* Per value: what the text asks it to be made over, which the plan decides. */
static const ValueId *inplace_asked(const Graph *graph)
{
    ValueId *asked = ARENA_ARRAY(graph->module->arena, ValueId, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++)
        asked[v] = graph->value[v].inplace;
    return asked;
}

/* A mark that nothing heeds would be a promise that nobody keeps. */
static void warn_of_inplace(const Entry *entry, const ValueId *asked, uint32_t count)
{
    const Graph *graph = entry->graph;
    for (ValueId v = 0; v < count; v++) {
        const Storage *storage = entry_storage(entry, v);
        ValueId over = graph->value[v].inplace;
        if (asked[v] == NONE || (over != NONE && kernel_view_owner(graph, over) == kernel_view_owner(graph, asked[v])))
            continue;
        diag_warning(graph->module->diag, graph->value[v].place,
                     storage->bytes ? STR_FMT " is not made over " STR_FMT ": that cannot be, or saves nothing"
                                    : STR_FMT " is not made over " STR_FMT ": it stays inside a kernel",
                     STR_ARG(value_show(graph, v)), STR_ARG(value_show(graph, asked[v])));
    }
}

bool entry_plan(Entry *entry, PassContext *context)
{
    const CompileOptions *options = &entry->program->options;
    Ways ways;
    kernel_flatten(entry->graph, context->scratch, NULL);
    const ValueId *asked = inplace_asked(entry->graph);
    uint32_t count = entry->graph->value_count;
    entry->source = options->compare ? graph_clone(entry->graph) : NULL;
    if (!plan_ways(&ways, entry->graph, options, options->without, context))
        return false;
    entry->statement = options->tune ? tune_statements(options, ways.fused) : NULL;
    entry->keeps_order = ways.keeps_order;
    entry->order_gains = !(options->without & WITHOUT_ORDER) && !same_order(ways.best.graph, ways.fused);
    *entry->graph = *ways.best.graph; /* the caller's graph is what was chosen */
    entry->memory = ways.best;
    entry->memory.graph = entry->graph;
    if (!(options->without & WITHOUT_INPLACE))
        warn_of_inplace(entry, asked, count);
    return true;
}

int64_t entry_peak_of(Graph *graph, const CompileOptions *options, unsigned without)
{
    Arena scratch = {0};
    Diag *diag = graph->module->diag, quiet = {.arena = &scratch};
    Ways ways;
    graph->module->diag = &quiet; /* all has been said of the model, or will be */
    PassContext context = entry_context(options, without, &scratch, &quiet);
    bool good = plan_ways(&ways, graph, options, without, &context);
    graph->module->diag = diag;
    diag_free(&quiet);
    arena_free(&scratch);
    return good ? ways.best.plan.peak : -1;
}

int64_t entry_peak_without(const Entry *entry, unsigned without)
{
    const CompileOptions *options = &entry->program->options;
    return entry_peak_of(graph_clone(entry->source), options, options->without | without);
}

static void refuse_loops(const Entry *entry, const Kernel *kernel)
{
    const Graph *graph = entry->graph;
    diag_error(graph->module->diag, graph->node[kernel->node[0]].place,
               "the loops of all kernels take more than %u statements for %s", MOST_STATEMENTS,
               entry->program->options.target->name);
}

bool entry_lower(Entry *entry, WeightTable *weights)
{
    uint64_t statements = 0;
    Graph *graph = entry->graph;
    Memory *memory = &entry->memory;
    Users users = graph_users(graph, graph->module->arena);
    Lower lower = lower_new(graph, entry->program->options.target, &memory->storage, &users);
    lower.exact = entry->program->options.exact;
    lower_start(&lower, weights);
    kernel_name_all(graph, graph->module->arena, memory->kernel, memory->kernel_count);
    for (uint32_t k = 0; k < memory->kernel_count && statements <= MOST_STATEMENTS; k++) {
        Kernel *kernel = &memory->kernel[k];
        if (kernel->form == FORM_FLOW || kernel->there)
            continue;
        if (lower_kernel(&lower, kernel))
            statements += block_count(&kernel->body);
        if (statements > MOST_STATEMENTS)
            refuse_loops(entry, kernel);
    }
    return statements <= MOST_STATEMENTS;
}

/* Arrays of the caller that are handed round, and read in the end, and outputs that are places of what turns. */
static void note_passed(Entry *entry)
{
    for (uint32_t f = 0; f < entry->memory.family_count; f++)
        for (uint32_t p = 0; p < entry->memory.family[f].places; p++) {
            ValueId outside = entry->memory.family[f].outside[p];
            if (outside != NONE && entry_storage(entry, outside)->role == STORAGE_OUTPUT)
                entry->used[entry->graph->input_count + entry_storage(entry, outside)->index] = true;
        }
    Arena scratch = {0};
    const bool *needed = entry->memory.regions ? flow_needed(&entry->memory, &scratch) : NULL;
    for (uint32_t i = 0; needed && i < entry->graph->input_count; i++)
        entry->used[i] |= needed[entry->graph->input[i]];
    arena_free(&scratch);
}

static void note_used(Entry *entry)
{
    const Graph *graph = entry->graph;
    const Memory *memory = &entry->memory;
    entry->used = ARENA_ARRAY(graph->module->arena, bool, graph->input_count + graph->output_count);
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        for (uint32_t b = 0; b < memory->kernel[k].buffer_count; b++) {
            const Storage *storage = &memory->storage.at[memory->kernel[k].buffer[b].storage];
            if (storage->role == STORAGE_INPUT)
                entry->used[storage->index] = true;
            if (storage->role == STORAGE_OUTPUT)
                entry->used[graph->input_count + storage->index] = true;
        }
    note_passed(entry);
}

static bool judge(const Entry *entry)
{
    Arena scratch = {0};
    Str message = {0};
    bool good = plan_check(&scratch, &entry->memory.problem, &entry->memory.plan, &message) &&
                memory_judge(&entry->memory, &scratch, &message);
    if (!good)
        diag_error(entry->graph->module->diag, (Place){0}, "internal error: the memory plan is wrong: " STR_FMT,
                   STR_ARG(message));
    arena_free(&scratch);
    return good;
}

bool entry_finish(Entry *entry)
{
    note_used(entry);
    if (!judge(entry))
        return false;
    for (uint32_t k = 0; k < entry->memory.kernel_count; k++)
        deal_kernel(&entry->memory, &entry->memory.kernel[k], entry->program->options.share_all);
    return step_tree(&entry->memory, entry->program->options.target, &entry->steps);
}

uint32_t entry_updates(const Entry *entry, KeptBlock block)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < entry->memory.state_count; i++)
        count += entry->memory.state[i].next != NONE && entry->program->kept.slot[entry->slot[i]].block == block;
    return count;
}

const char *program_libraries(const Program *program)
{
    for (uint32_t v = 0; v < program->version_count; v++)
        if (*program_libraries(&program->version[v]))
            return program_libraries(&program->version[v]);
    for (uint32_t e = 0; e < program->entry_count; e++)
        for (uint32_t k = 0; k < program->entry[e].memory.kernel_count; k++)
            if (program->entry[e].memory.kernel[k].recipe.provider == &provider_openblas)
                return "-lopenblas";
    return "";
}

uint32_t entry_kernel_count(const Entry *entry)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < entry->memory.kernel_count; k++)
        count += entry->memory.kernel[k].form != FORM_FLOW && !entry->memory.kernel[k].there;
    return count;
}
