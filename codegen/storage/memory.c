/* From a graph in its order of execution to a plan, without lowering anything. */
#include "storage/memory.h"

#include "kernel/lower/lower.h"
#include "passes/pass.h"
#include "storage/deal.h"
#include "storage/flow.h"
#include "storage/inplace.h"
#include "storage/parts.h"

#define MANY_CONTRACTIONS 500 /* that are not alike: of long texts more than some thousand would be refused */

/* Steps */

static bool makes_something(const Lower *lower, const Kernel *kernel)
{
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &lower->graph->node[kernel->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++)
            if (kernel_stores(lower, node->out[r]) && shape_elements(value_shape(lower->graph, node->out[r])) > 0)
                return true;
    }
    return false;
}

/* An assembly whose operands all lie in it, and that has no border to fill, is there already. */
static bool assembly_is_there(const Lower *lower, const Kernel *kernel)
{
    const Graph *graph = lower->graph;
    const Node *node = &graph->node[kernel->anchor];
    int64_t elements = shape_elements(value_shape(graph, node->out[0]));
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Storage *part = &lower->storage->at[lower_rearranged_value(graph, node->in[i])];
        if (part->inside == node->out[0] && part->operand == i)
            elements -= shape_elements(value_shape(graph, node->in[i]));
    }
    return elements == 0;
}

static bool is_step(Lower *lower, Kernel *kernel)
{
    lower->kernel = kernel;
    if (kernel->form == FORM_FLOW)
        return true;
    return makes_something(lower, kernel) && !(kernel->form == FORM_ASSEMBLY && assembly_is_there(lower, kernel));
}

static void renumber(Graph *graph, Kernel *kernel, uint32_t number)
{
    kernel->id = number;
    for (uint32_t n = 0; n < kernel->node_count; n++)
        graph->node[kernel->node[n]].kernel = number;
}

/* Kernels get the numbers of their steps, those that are none greater ones. */
static void keep_steps(Lower *lower, Memory *memory)
{
    uint32_t kept = 0, count = memory->kernel_count;
    Kernel *kernel = memory->kernel, *none = ARENA_ARRAY(lower->arena, Kernel, count);
    for (uint32_t k = 0; k < count; k++) {
        if (is_step(lower, &kernel[k]))
            kernel[kept++] = kernel[k];
        else
            none[k - kept] = kernel[k];
    }
    for (uint32_t k = 0; k < count; k++) {
        renumber(memory->graph, k < kept ? &kernel[k] : &none[k - kept], k);
        memory->kernel_of[k] = k < kept ? k : NONE;
    }
    memory->kernel_count = kept;
}

/* What is read of the parts of a whole must be over before it is written over. */
static void note_part_readers(Memory *memory)
{
    const Graph *graph = memory->graph;
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        for (uint32_t n = 0; n < memory->kernel[k].node_count; n++) {
            const Node *node = &graph->node[memory->kernel[k].node[n]];
            for (uint32_t i = 0; i < node->in_count; i++) {
                ValueId part = kernel_view_owner(graph, node->in[i]);
                StorageId whole = memory->storage.at[part].whole;
                if (whole != part)
                    memory->storage.at[whole].parts_end = (int64_t)k + 1;
            }
        }
}

/* What was made outside of a loop is read again in its next round; what is passed is looked after by flow.c. */
static bool may_overwrite_here(const Memory *memory, NodeId producer, ValueId operand, uint32_t step)
{
    const Graph *graph = memory->graph;
    const Regions *regions = memory->regions;
    ValueId owner = kernel_view_owner(graph, operand);
    const Node *maker = value_producer(graph, owner);
    uint32_t made = maker && maker->kernel != NONE ? memory->kernel_of[maker->kernel] : NONE;
    return made != NONE && !memory->member[owner] && !memory->member[graph->node[producer].out[0]] &&
           flow_loop_of(regions, regions->of[made]) == flow_loop_of(regions, regions->of[step]);
}

static bool stores_last(void *context, const Graph *graph, NodeId producer)
{
    (void)graph;
    return memory_stores_last(context, producer);
}

/* A kernel must not write over an operand that it, or another thread of it, still reads; what lies
 * inside another value keeps its place, and so does what has others inside it that are still read. */
static bool may_overwrite(void *context, const Graph *graph, NodeId producer, ValueId operand)
{
    const Memory *memory = context;
    uint32_t step = memory->kernel_of[graph->node[producer].kernel];
    if (step != NONE && memory->regions && !may_overwrite_here(memory, producer, operand, step))
        return false;
    const Storage *result = &memory->storage.at[graph->node[producer].out[0]];
    const Storage *owner = &memory->storage.at[kernel_view_owner(graph, operand)];
    return step != NONE && !memory->kernel[step].recipe.rewrites && result->inside == NONE && owner->inside == NONE &&
           owner->parts_end <= step &&
           (inplace_kernel_rule(graph, producer, operand) ||
            (memory_stores_last(memory, producer) && inplace_rows_rule(graph, producer, operand)));
}

static void note_regions(Memory *memory, Arena *arena)
{
    bool flows = false;
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        flows |= memory->kernel[k].form == FORM_FLOW;
    if (!flows)
        return;
    memory->regions = ARENA_NEW(arena, Regions);
    *memory->regions = flow_regions(memory->graph, arena, memory->kernel, memory->kernel_count);
    memory->member = flow_members(memory->graph, arena);
}

bool memory_decide(Graph *graph, const MemoryOptions *options, Memory *memory)
{
    Arena *arena = graph->module->arena, scratch = {0};
    Users users = graph_users(graph, arena);
    *memory = (Memory){.graph = graph};
    memory->kernel_count = kernel_collect(graph, arena, &memory->kernel);
    memory->kernel_of = kernel_by_number(graph, arena, memory->kernel, memory->kernel_count);
    memory->storage = parts_place(graph, arena, memory->kernel, memory->kernel_count, options->copied,
                                  options->without & WITHOUT_PARTS);
    Lower lower = lower_new(graph, options->target, &memory->storage, &users);
    lower.exact = options->exact, lower.lean = options->lean;
    keep_steps(&lower, memory);
    lower.brief = memory->kernel_count > MANY_CONTRACTIONS &&
                  kernel_count_contractions(&lower, memory->kernel, memory->kernel_count) > MANY_CONTRACTIONS;
    bool good = recipe_marks_are_heeded(graph);
    for (uint32_t k = 0; k < memory->kernel_count; k++) {
        lower.kernel = &memory->kernel[k];
        bool chosen = memory->kernel[k].form == FORM_FLOW || recipe_choose(&lower, &memory->kernel[k]);
        good &= chosen;
        if (chosen && memory->kernel[k].recipe.provider) {
            recipe_mark(graph, &memory->kernel[k]);
            memory->kernel[k].parts = deal_parts(&lower, &memory->kernel[k], options);
            memory->kernel[k].threads = memory->kernel[k].parts > 1 ? options->threads : 1;
        }
    }
    note_part_readers(memory);
    note_regions(memory, arena);
    if (good)
        inplace_find(graph,
                     (OverwriteRule){options->without & WITHOUT_INPLACE ? NULL : may_overwrite, stores_last, memory},
                     &scratch, &memory->inplace_count);
    arena_free(&scratch);
    return good;
}

/* Is every node of a kernel, but for those that whoever reads them computes? */
static bool is_fused(const Graph *graph)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        if (node->dead || node->kernel != NONE || node->joined || node_is_view(node) || node_is_formula(node))
            continue;
        diag_error(graph->module->diag, node->place, "%s is of no kernel yet: the pass 'fuse' comes before this one",
                   op_info(node->op)->name);
        return false;
    }
    return true;
}

/* The third of the stages: a way to compute each kernel. */
bool stage_choose(Graph *graph, PassContext *context)
{
    Memory memory;
    MemoryOptions options = {.target = context->target, .exact = context->exact, .without = WITHOUT_INPLACE};
    return !context->target || (is_fused(graph) && memory_decide(graph, &options, &memory));
}

/* The last: alone, it goes by the nodes; for a target as a compilation does, by parts and recipes too. */
bool stage_inplace(Graph *graph, PassContext *context)
{
    Memory memory;
    MemoryOptions options = {.target = context->target, .exact = context->exact};
    if (context->target)
        return is_fused(graph) && memory_decide(graph, &options, &memory);
    inplace_find(graph, inplace_rule, context->scratch, &context->changes);
    return true;
}

static void note_offsets(Memory *memory)
{
    for (StorageId s = 0; s < memory->storage.count; s++) {
        Storage *storage = &memory->storage.at[s];
        if (storage->role == STORAGE_ARENA || storage->role == STORAGE_SCRATCH)
            storage->offset = memory->plan.offset[storage->buffer];
    }
    for (uint32_t f = 0; f < memory->family_count; f++)
        for (uint32_t p = 0; p < memory->family[f].places; p++)
            if (memory->family[f].outside[p] == NONE)
                memory->family[f].offset[p] = memory->plan.offset[memory->family[f].buffer[p]];
}

bool memory_plan(Graph *graph, const MemoryOptions *options, Memory *memory)
{
    Diag *diag = graph->module->diag;
    if (!memory_decide(graph, options, memory))
        return false;
    memory_lives(memory);
    PlanProblem problem = memory->problem;
    problem.capacity = options->capacity;
    bool wanted = !options->hopeless || plan_lower_bound(&problem) < options->hopeless;
    int effort = wanted ? options->effort : 0;
    if (!plan_place(graph->module->arena, &problem, options->allocator, effort, &memory->plan) && !memory->plan.offset)
        return diag_error(diag, (Place){0}, "memory plan: " STR_FMT, STR_ARG(memory->plan.message));
    note_offsets(memory);
    return true;
}
