/* What the plan has to place: where each value lives, from which kernel to which, and the buffers of the arena. */
#include "program.h"

static void assign_callers_arrays(Program *program)
{
    Graph *graph = program->graph;
    for (uint32_t i = 0; i < graph->input_count; i++)
        program->home[graph->input[i]] = (Home){SPACE_INPUT, i, 0, 0};
    for (uint32_t i = 0; i < graph->output_count; i++)
        program->home[view_owner(graph, graph->output[i].value)] = (Home){SPACE_OUTPUT, i, 0, 0};
}

/* A kernel may have found that it need not read an operand of its nodes (x == x); the checker goes by the nodes. */
static void hold_operands(Program *program, uint32_t k)
{
    const Graph *graph = program->graph;
    for (uint32_t n = 0; n < program->kernel[k].node_count; n++) {
        const Node *node = &graph->node[program->kernel[k].node[n]];
        for (uint32_t i = 0; i < node->in_count; i++) {
            Home *home = &program->home[whole_of(program, view_owner(graph, node->in[i]))];
            if (home->first >= 0 && home->last <= k)
                home->last = (int64_t)k + 1;
        }
    }
}

static void measure_lives(Program *program)
{
    for (uint32_t v = 0; v < program->graph->value_count; v++)
        program->home[v].first = -1;
    for (uint32_t k = 0; k < program->kernel_count; k++)
        for (uint32_t b = 0; b < program->kernel[k].buffer_count; b++) {
            const KernelBuffer *buffer = &program->kernel[k].buffer[b];
            if (buffer->value == NONE || buffer->weights != NONE)
                continue;
            Home *home = &program->home[buffer->value];
            if (home->first < 0)
                home->first = k;
            home->last = (int64_t)k + 1;
            if (home->space == SPACE_NONE)
                home->space = SPACE_ARENA;
        }
    for (uint32_t k = 0; k < program->kernel_count; k++)
        hold_operands(program, k);
}

typedef struct PlanDraft {
    PlanBuffer *buffer;
    ValueId *value;
    uint32_t count, capacity, value_count, value_capacity, groups;
    bool *begun; /* per value: the buffer of its home is of the draft */
} PlanDraft;

static uint32_t add_buffer(Program *program, PlanDraft *draft, PlanBuffer buffer, ValueId value)
{
    Arena *arena = program->graph->module->arena;
    ARENA_PUSH(arena, draft->buffer, draft->count, draft->capacity, buffer);
    ARENA_PUSH(arena, draft->value, draft->value_count, draft->value_capacity, value);
    return draft->count - 1;
}

/* A result written over an operand shares its address: both are of one group. */
static void group_inplace(Program *program, PlanDraft *draft)
{
    Graph *graph = program->graph;
    for (uint32_t i = 0; i < draft->count; i++) {
        if (draft->value[i] == NONE || graph->value[draft->value[i]].inplace == NONE)
            continue;
        const Home *operand = &program->home[view_owner(graph, graph->value[draft->value[i]].inplace)];
        if (operand->space != SPACE_ARENA)
            continue;
        PlanBuffer *from = &draft->buffer[operand->index];
        if (!from->group)
            from->group = ++draft->groups;
        draft->buffer[i].group = from->group;
    }
}

/* A whole takes only the bytes up to the end of the parts that have been made: whenever that grows it goes on as a
 * larger buffer at the same address. */
static void grow_whole(Program *program, PlanDraft *draft, ValueId whole, ValueId part, int64_t k)
{
    Home *home = &program->home[whole];
    PlanBuffer *now = draft->begun[whole] ? &draft->buffer[home->index] : NULL;
    Extent extent = value_extent(program, part);
    PlanBuffer larger = {
        .size = extent.end, .alignment = ARENA_ALIGNMENT, .pinned = PLAN_FREE, .first = k, .last = home->last};
    int64_t own = type_bytes(value_type(program->graph, part)), grows = larger.size - (now ? now->size : 0);
    program->early[part] = grows > own;
    program->has_holes |= program->early[part];
    if (now && now->size >= larger.size)
        return;
    if (now && now->first == k) {
        now->size = larger.size;
        return;
    }
    if (now) {
        now->group = now->group ? now->group : ++draft->groups;
        now->last = k;
        larger.group = now->group;
    }
    draft->begun[whole] = true;
    home->index = add_buffer(program, draft, larger, whole);
}

static void draft_wholes(Program *program, PlanDraft *draft, uint32_t k)
{
    const Kernel *kernel = &program->kernel[k];
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &program->graph->node[kernel->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++) {
            ValueId part = node->out[r], whole = whole_of(program, part);
            if (program->has_parts[whole] && program->home[whole].space == SPACE_ARENA)
                grow_whole(program, draft, whole, part, k);
        }
    }
}

/* Memory of its own that the kernel is the first to use: scratch, and what it makes. */
static void draft_kernel(Program *program, PlanDraft *draft, uint32_t k)
{
    const Kernel *kernel = &program->kernel[k];
    program->scratch[k] = ARENA_ARRAY(program->graph->module->arena, uint32_t, kernel->buffer_count);
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const KernelBuffer *buffer = &kernel->buffer[b];
        PlanBuffer place = {.alignment = ARENA_ALIGNMENT, .pinned = PLAN_FREE, .first = k, .last = k + 1};
        if (buffer->scratch) {
            place.size = buffer->scratch;
            program->scratch[k][b] = add_buffer(program, draft, place, NONE);
            continue;
        }
        Home *home = buffer->value == NONE || buffer->weights != NONE ? NULL : &program->home[buffer->value];
        if (!home || home->space != SPACE_ARENA || home->first != k || draft->begun[buffer->value])
            continue;
        place.size = type_bytes(value_type(program->graph, buffer->value));
        place.last = home->last;
        draft->begun[buffer->value] = true;
        home->index = add_buffer(program, draft, place, buffer->value);
    }
}

/* Buffers come in the order of the kernels that first touch them, so a result comes after the operand it takes over. */
static void draft_plan(Program *program)
{
    Arena *arena = program->graph->module->arena;
    PlanDraft draft = {.begun = ARENA_ARRAY(arena, bool, program->graph->value_count)};
    program->early = ARENA_ARRAY(arena, bool, program->graph->value_count);
    program->scratch = ARENA_ARRAY(arena, uint32_t *, program->kernel_count);
    for (uint32_t k = 0; k < program->kernel_count; k++) {
        draft_wholes(program, &draft, k);
        draft_kernel(program, &draft, k);
    }
    group_inplace(program, &draft);
    program->problem = (PlanProblem){.buffer = draft.buffer, .count = draft.count};
    program->plan_value = draft.value;
}

void find_homes(Program *program)
{
    program->home = ARENA_ARRAY(program->graph->module->arena, Home, program->graph->value_count);
    assign_callers_arrays(program);
    measure_lives(program);
    draft_plan(program);
}
