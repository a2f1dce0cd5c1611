/* The pipeline: graph -> passes -> kernels -> plan.  What is printed from a Program is in c/ and cuda/. */
#include "program.h"

#include <string.h>

#include "ops/family.h"
#include "passes/pass.h"

static void report_progress(const CompileOptions *options, const char *step)
{
    if (options->progress)
        options->progress(options->progress_context, step);
}

/* What this generator cannot carry out yet, said before any work is done. */
static bool check_supported(const Graph *graph)
{
    Diag *diag = graph->module->diag;
    for (uint32_t i = 0; i < graph->update_count; i++)
        diag_error(diag, graph->update[i].place, "updates cannot be compiled yet; the evaluator runs them");
    for (uint32_t v = 0; v < graph->value_count; v++)
        if (graph->value[v].role == ROLE_STATE)
            diag_error(diag, graph->value[v].place, "state cannot be compiled yet; the evaluator runs it");
    return diag->error_count == 0;
}

/* Kernels: nodes of one number, which stand together in the schedule. */

static void collect_kernels(Program *program)
{
    Graph *graph = program->graph;
    Arena *arena = graph->module->arena;
    uint32_t capacity = 0;
    for (uint32_t n = 0; n < graph->node_count;) {
        uint32_t id = graph->node[n].kernel;
        if (id == NONE) {
            n++;
            continue;
        }
        Kernel kernel = {.id = id};
        uint32_t end = n, count = 0;
        for (; end < graph->node_count && (graph->node[end].kernel == id || graph->node[end].kernel == NONE); end++)
            count += graph->node[end].kernel == id;
        kernel.node = ARENA_ARRAY(arena, NodeId, count);
        for (uint32_t i = n; i < end; i++)
            if (graph->node[i].kernel == id)
                kernel.node[kernel.node_count++] = i;
        ARENA_PUSH(arena, program->kernel, program->kernel_count, capacity, kernel);
        n = end;
    }
    program->kernel_of = ARENA_ARRAY(arena, uint32_t, program->kernel_count);
    for (uint32_t k = 0; k < program->kernel_count; k++)
        program->kernel_of[program->kernel[k].id] = k;
}

/* Weights that no kernel reads any more are left out. */
static void drop_unread_weights(Program *program)
{
    uint32_t kept = 0, *number = ARENA_ARRAY(program->graph->module->arena, uint32_t, program->weights.count);
    for (uint32_t k = 0; k < program->kernel_count; k++)
        for (uint32_t b = 0; b < program->kernel[k].buffer_count; b++)
            if (program->kernel[k].buffer[b].weights != NONE)
                number[program->kernel[k].buffer[b].weights] = 1;
    for (uint32_t w = 0; w < program->weights.count; w++)
        if (number[w]) {
            program->weights.array[kept] = program->weights.array[w];
            number[w] = kept++;
        }
    program->weights.count = kept;
    for (uint32_t k = 0; k < program->kernel_count; k++)
        for (uint32_t b = 0; b < program->kernel[k].buffer_count; b++)
            if (program->kernel[k].buffer[b].weights != NONE)
                program->kernel[k].buffer[b].weights = number[program->kernel[k].buffer[b].weights];
}

static void lower_kernels(Program *program)
{
    Graph *graph = program->graph;
    Arena *arena = graph->module->arena;
    Users users = graph_users(graph, arena);
    Lower lower = {.graph = graph,
                   .target = program->options.target,
                   .arena = arena,
                   .weights = &program->weights,
                   .users = &users,
                   .live_out = graph_live_out(graph, arena)};
    lower.bound = ARENA_ARRAY(arena, const Expr *, graph->value_count);
    lower.spill = ARENA_ARRAY(arena, uint32_t, graph->value_count);
    lower.spilled = ARENA_ARRAY(arena, bool, graph->value_count);
    lower.window = ARENA_ARRAY(arena, Window, graph->value_count);
    place_parts(program, &lower);
    name_kernels(graph, arena, program->kernel, program->kernel_count);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < program->kernel_count; k++) {
        Kernel *kernel = &program->kernel[k];
        lower_kernel(&lower, kernel);
        program->kernel_of[kernel->id] = kernel->body.first ? kept : NONE;
        if (kernel->body.first) /* one that makes no element is no step */
            program->kernel[kept++] = *kernel;
    }
    program->kernel_count = kept;
    note_part_readers(program);
    drop_unread_weights(program);
}

static void make_kernels(Program *program)
{
    if (program->kernel_of)
        return;
    collect_kernels(program);
    lower_kernels(program);
}

static bool place_buffers(Program *program)
{
    Graph *graph = program->graph;
    Arena *arena = graph->module->arena;
    Str message = {0};
    find_homes(program);
    if (!plan_place(arena, &program->problem, program->options.allocator, program->options.effort, &program->plan))
        return diag_error(graph->module->diag, (Place){0}, "memory plan: " STR_FMT, STR_ARG(program->plan.message));
    if (!program_check_lives(program, &message) || !plan_check(arena, &program->problem, &program->plan, &message))
        return diag_error(graph->module->diag, (Place){0}, "internal error: the memory plan is wrong: " STR_FMT,
                          STR_ARG(message));
    program->arena_bytes = program->plan.peak;
    return true;
}

static void place_weights(Program *program)
{
    int64_t offset = 0;
    for (uint32_t i = 0; i < program->weights.count; i++) {
        WeightArray *array = &program->weights.array[i];
        offset = (offset + WEIGHTS_ALIGNMENT - 1) / WEIGHTS_ALIGNMENT * WEIGHTS_ALIGNMENT;
        array->offset = offset;
        offset += array->bytes;
    }
    program->weights_bytes = offset;
}

/* A kernel that keeps partial sums in its result must not write over an operand it still reads; what lies inside
 * another value keeps its place, and so does what has others inside it that are still read. */
static bool may_overwrite(void *context, const Graph *graph, NodeId producer, ValueId operand)
{
    const Program *program = context;
    if (program->options.without & WITHOUT_INPLACE)
        return false;
    uint32_t kernel = program->kernel_of[graph->node[producer].kernel];
    ValueId result = graph->node[producer].out[0], owner = view_owner(graph, operand);
    if (kernel == NONE || program->kernel[kernel].partial_sums || program->placement[result].owner != NONE ||
        program->placement[owner].owner != NONE || program->parts_end[owner] > kernel)
        return false;
    return inplace_kernel_rule(graph, producer, operand);
}

/* All from the pass on, to the plan. */
static bool finish(Program *program, const char *const *pass, PassContext *context)
{
    for (; *pass; pass++) {
        report_progress(&program->options, *pass);
        if (strcmp(*pass, "inplace") == 0) /* the last one, which asks what the kernels do */
            make_kernels(program);
        if (!pass_run(pass_find(str_from(*pass)), program->graph, context))
            return false;
    }
    make_kernels(program);
    report_progress(&program->options, "plan");
    bool good = place_buffers(program);
    place_weights(program);
    return good;
}

/* The order of a graph, to come back to: all that schedule, inplace and the kernels change. */
typedef struct Order {
    Node *node;
    Value *value;
} Order;

static Order keep_order(const Graph *graph, Arena *arena)
{
    return (Order){arena_copy(arena, graph->node, graph->node_count * sizeof *graph->node),
                   arena_copy(arena, graph->value, graph->value_count * sizeof *graph->value)};
}

static bool same_order(const Graph *graph, const Order *order)
{
    bool same = true;
    for (uint32_t v = 0; v < graph->value_count; v++)
        same &= graph->value[v].node == order->value[v].node;
    return same;
}

static void restore_order(Graph *graph, const Order *order)
{
    memcpy(graph->node, order->node, graph->node_count * sizeof *graph->node);
    memcpy(graph->value, order->value, graph->value_count * sizeof *graph->value);
}

/* What was tried, and the best of it so far. */
typedef struct Trials {
    const char *const *pass;
    PassContext *context;
    Order given, best_order;
    Program blank, best;
    const bool *early; /* Program.early of the last trial that copied no part; NULL: it had no holes */
} Trials;

/* Once more from `schedule` on, without the parts in `copied` (NULL: with all); the new plan stays if it is at least
 * `gain` bytes smaller. */
static bool try_again(Program *program, Trials *trials, const bool *copied, int64_t gain)
{
    Graph *graph = program->graph;
    trials->best = *program;
    trials->best_order = keep_order(graph, trials->context->scratch);
    restore_order(graph, &trials->given);
    *program = trials->blank;
    program->copied = copied;
    program->options.progress = NULL; /* all has been said */
    if (!finish(program, trials->pass, trials->context))
        return false;
    program->options.progress = trials->blank.options.progress;
    if (!copied)
        trials->early = program->has_holes ? program->early : NULL;
    if (program->plan.peak > trials->best.plan.peak - gain) {
        restore_order(graph, &trials->best_order);
        *program = trials->best;
    }
    return true;
}

/* With copies of the parts that were made early, but of no others: a DenseNet block must not copy all of its concats
 * for the sake of a few bytes. */
static bool try_copies(Program *program, Trials *trials)
{
    return !trials->early || try_again(program, trials, trials->early, 1);
}

/* Two decisions are taken only when the plan gains by them, so all ways are planned.  Another order: schedule goes by
 * live bytes, and knows neither the scratch of kernels nor parts of concats nor gaps.  And to copy parts: one that has
 * room in front of it, or between its rows, for others which are made later, keeps that room from everybody else. */
static bool schedule_and_finish(Program *program, const char *const *pass, PassContext *context)
{
    Trials trials = {pass, context, .given = keep_order(program->graph, context->scratch), .blank = *program};
    if (!finish(program, pass, context))
        return false;
    trials.early = program->has_holes ? program->early : NULL;
    bool changed = !context->keep_order && !same_order(program->graph, &trials.given);
    if (!try_copies(program, &trials))
        return false;
    context->keep_order = true;
    if (changed && !(try_again(program, &trials, NULL, 0) && try_copies(program, &trials)))
        return false;
    program->order_gains = changed && !same_order(program->graph, &trials.given);
    return true;
}

bool program_compile(Graph *graph, const CompileOptions *options, Program *program)
{
    Arena scratch = {0};
    PassContext context = pass_context(&scratch, graph->module->diag);
    *program = (Program){.graph = graph, .options = *options};
    context.lanes = options->target->lanes;
    context.may_overwrite = may_overwrite;
    context.target = program;
    context.keep_order = options->without & WITHOUT_ORDER;
    context.copy_views = options->without & WITHOUT_VIEWS;
    context.apart = options->apart;

    const char *const *pass = options->passes ? options->passes : pass_pipeline;
    bool good = check_supported(graph);
    for (; good && *pass && strcmp(*pass, "schedule") != 0 && strcmp(*pass, "inplace") != 0; pass++) {
        report_progress(options, *pass);
        good = pass_run(pass_find(str_from(*pass)), graph, &context);
    }
    bool ends = good && *pass && (!pass[1] || (strcmp(pass[1], "inplace") == 0 && !pass[2]));
    good = good && (ends ? schedule_and_finish(program, pass, &context) : finish(program, pass, &context));
    arena_free(&scratch);
    return good && graph->module->diag->error_count == 0;
}
