/* The pipeline: graph -> passes -> fuse -> order, parts, recipes, in-place, plan -> kernels -> steps.  What is printed
 * from a Program is in c/ and cuda/. */
#include "program/program.h"

#include "ops/family.h"
#include "program/stage.h"

static void report_progress(const CompileOptions *options, const char *step)
{
    if (options->progress)
        options->progress(options->progress_context, step);
}

/* `@cpu` for C and `@gpu(0)` for CUDA ask for what is done anyway; nothing else is done yet. */
static void check_placement(const Graph *graph, const Target *target, Str placement, Place place)
{
    bool cuda = target->dialect == DIALECT_CUDA;
    if (!placement.len || str_is(placement, cuda ? "@gpu(0)" : "@cpu") || str_is(placement, cuda ? "@gpu" : "@cpu"))
        return;
    diag_error(graph->module->diag, place, STR_FMT " cannot be honoured for %s", STR_ARG(placement), target->name);
}

/* Marks that nobody would heed.  Recurses over the nesting of calls. */
static void check_marks(const Graph *graph, const Target *target)
{
    check_placement(graph, target, graph->placement, graph->place);
    for (ValueId v = 0; v < graph->value_count; v++)
        check_placement(graph, target, graph->value[v].placement, graph->value[v].place);
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        if (node->stream)
            diag_error(graph->module->diag, node->place, "@stream(%u) cannot be honoured: there is one stream",
                       node->stream);
        for (uint32_t i = 0; i < node->sub_count; i++)
            check_marks(node->sub[i], target);
    }
}

/* What this generator cannot carry out yet, said before any work is done. */
static bool check_supported(const Graph *graph, const Target *target)
{
    Diag *diag = graph->module->diag;
    check_marks(graph, target);
    for (uint32_t i = 0; i < graph->update_count; i++)
        diag_error(diag, graph->update[i].place, "updates cannot be compiled yet; the evaluator runs them");
    for (uint32_t v = 0; v < graph->value_count; v++)
        if (graph->value[v].role == ROLE_STATE)
            diag_error(diag, graph->value[v].place, "state cannot be compiled yet; the evaluator runs it");
    return diag->error_count == 0;
}

static PassContext stage_context(const CompileOptions *options, unsigned without, Arena *scratch, Diag *diag)
{
    PassContext context = pass_context(scratch, diag);
    context.target = options->target;
    context.lanes = options->target->lanes;
    context.apart = options->apart;
    context.keep_order = without & WITHOUT_ORDER;
    context.copy_views = without & WITHOUT_VIEWS;
    return context;
}

static bool run_passes(Graph *graph, const CompileOptions *options, PassContext *context)
{
    const char *const *pass = options->passes ? options->passes : pass_pipeline;
    for (; *pass; pass++) {
        report_progress(options, *pass);
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
    bool found;
} Ways;

static bool in_order(Ways *ways, bool keep, Graph **graph)
{
    ways->context->keep_order = keep;
    *graph = graph_clone(ways->fused);
    return pass_run(stage_find(STR("schedule")), *graph, ways->context);
}

/* Plans the graph; the plan becomes the best when it is smaller than the best so far by `gain` bytes. */
static bool try_way(Ways *ways, Graph *graph, const bool *copied, int64_t gain, Memory *memory)
{
    ways->options.copied = copied;
    if (!memory_plan(graph, &ways->options, memory))
        return false;
    if (!ways->found || memory->plan.peak <= ways->best.plan.peak - gain)
        ways->best = *memory;
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

static bool plan_graph(Graph *graph, const CompileOptions *options, unsigned without, PassContext *context, Ways *ways)
{
    *ways = (Ways){.fused = graph,
                   .options = {.target = options->target,
                               .without = without,
                               .allocator = options->allocator,
                               .effort = options->effort},
                   .context = context};
    return pass_run(stage_find(STR("fuse")), graph, context) && best_way(ways);
}

int64_t program_peak_without(const Program *program, unsigned without)
{
    Graph *graph = graph_clone(program->source);
    Arena scratch = {0};
    Diag *diag = graph->module->diag, quiet = {.arena = &scratch};
    Ways ways;
    without |= program->options.without;
    graph->module->diag = &quiet; /* all has been said of the model */
    PassContext context = stage_context(&program->options, without, &scratch, &quiet);
    bool good = plan_graph(graph, &program->options, without, &context, &ways);
    graph->module->diag = diag;
    diag_free(&quiet);
    arena_free(&scratch);
    return good ? ways.best.plan.peak : -1;
}

/* Kernels */

static void lower_kernels(Program *program)
{
    Graph *graph = program->graph;
    Memory *memory = &program->memory;
    Users users = graph_users(graph, graph->module->arena);
    Lower lower = lower_new(graph, program->options.target, &memory->storage, &users);
    lower_start(&lower, &program->weights);
    kernel_name_all(graph, graph->module->arena, memory->kernel, memory->kernel_count);
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        lower_kernel(&lower, &memory->kernel[k]);
}

/* Weights that no kernel reads any more are left out; the others get their offsets. */
static void place_weights(Program *program)
{
    const Memory *memory = &program->memory;
    uint32_t kept = 0;
    int64_t offset = 0;
    bool *read = ARENA_ARRAY(program->graph->module->arena, bool, memory->storage.count);
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        for (uint32_t b = 0; b < memory->kernel[k].buffer_count; b++)
            read[memory->kernel[k].buffer[b].storage] = true;
    for (uint32_t w = 0; w < program->weights.count; w++) {
        WeightArray array = program->weights.array[w];
        Storage *storage = &memory->storage.at[array.storage];
        if (!read[array.storage])
            continue;
        offset = (offset + WEIGHTS_ALIGNMENT - 1) / WEIGHTS_ALIGNMENT * WEIGHTS_ALIGNMENT;
        storage->offset = offset;
        storage->index = kept;
        offset += storage->bytes;
        program->weights.array[kept++] = array;
    }
    program->weights.count = kept;
    program->weights_bytes = offset;
}

static void note_used(Program *program)
{
    const Graph *graph = program->graph;
    const Memory *memory = &program->memory;
    program->used = ARENA_ARRAY(graph->module->arena, bool, graph->input_count + graph->output_count);
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        for (uint32_t b = 0; b < memory->kernel[k].buffer_count; b++) {
            const Storage *storage = &memory->storage.at[memory->kernel[k].buffer[b].storage];
            if (storage->role == STORAGE_INPUT)
                program->used[storage->index] = true;
            if (storage->role == STORAGE_OUTPUT)
                program->used[graph->input_count + storage->index] = true;
        }
}

static bool judge(const Program *program)
{
    Arena scratch = {0};
    Str message = {0};
    bool good = plan_check(&scratch, &program->memory.problem, &program->memory.plan, &message) &&
                memory_judge(&program->memory, &scratch, &message);
    if (!good)
        diag_error(program->graph->module->diag, (Place){0}, "internal error: the memory plan is wrong: " STR_FMT,
                   STR_ARG(message));
    arena_free(&scratch);
    return good;
}

static bool make_program(Program *program, Graph *graph, const Ways *ways)
{
    *graph = *ways->best.graph; /* the caller's graph is what was chosen */
    program->memory = ways->best;
    program->memory.graph = graph;
    program->arena_bytes = program->memory.plan.peak;
    lower_kernels(program);
    place_weights(program);
    note_used(program);
    program->step_count =
        step_list(graph, program->options.target, program->memory.kernel, program->memory.kernel_count, &program->step);
    return judge(program);
}

bool program_compile(Graph *graph, const CompileOptions *options, Program *program)
{
    Arena scratch = {0};
    Diag *diag = graph->module->diag;
    PassContext context = stage_context(options, options->without, &scratch, diag);
    Ways ways;
    *program = (Program){.graph = graph, .options = *options, .checksum = ARENA_NEW(graph->module->arena, Checksum)};
    bool good = check_supported(graph, options->target) && run_passes(graph, options, &context);
    if (good) {
        program->source = options->compare ? graph_clone(graph) : NULL;
        report_progress(options, "plan");
        good = plan_graph(graph, options, options->without, &context, &ways);
    }
    if (good) {
        program->order_gains = !(options->without & WITHOUT_ORDER) && !same_order(ways.best.graph, ways.fused);
        report_progress(options, "kernels");
        good = make_program(program, graph, &ways);
    }
    arena_free(&scratch);
    return good && diag->error_count == 0;
}
