/* Roles, bytes and lives of everything that the steps touch, and the buffers of the plan. */
#include "storage/memory.h"

#include "kernel/lower/lower.h"
#include "storage/flow.h"
#include "storage/state.h"

static Arena *arena_of(const Memory *memory)
{
    return memory->graph->module->arena;
}

StorageId memory_whole(const Memory *memory, ValueId value)
{
    return memory->storage.at[kernel_view_owner(memory->graph, value)].whole;
}

Extent memory_extent(const Memory *memory, ValueId value)
{
    Storages storage = memory->storage;
    Arena scratch = {0};
    Lower lower = {.graph = memory->graph, .storage = &storage};
    int64_t element = dtype_bytes(value_type(memory->graph, value)->dtype), begin, end;
    kernel_value_range(&lower, &scratch, value, &begin, &end);
    arena_free(&scratch);
    return (Extent){begin * element, end * element};
}

static void assign_callers_arrays(Memory *memory)
{
    const Graph *graph = memory->graph;
    Storage *storage = memory->storage.at;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        storage[graph->input[i]].role = STORAGE_INPUT;
        storage[graph->input[i]].index = i;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        Storage *output = &storage[kernel_view_owner(graph, graph->output[i].value)];
        output->role = STORAGE_OUTPUT;
        output->index = i;
    }
    for (uint32_t i = 0; i < memory->state_count; i++) {
        const StateValue *state = &memory->state[i];
        StorageRole role = graph->value[state->value].trained ? STORAGE_PARAMS : STORAGE_STATE;
        storage[state->value].role = role;
        storage[state->value].index = i;
        if (state->next == NONE)
            continue;
        storage[state->next].role = role;
        storage[state->next].index = i;
    }
}

/* A step touches the memory of a value: constants have theirs elsewhere. */
static void touch(Memory *memory, ValueId value, uint32_t step)
{
    ValueId owner = kernel_view_owner(memory->graph, value);
    Role role = memory->graph->value[owner].role;
    Storage *whole = &memory->storage.at[memory->storage.at[owner].whole];
    if (role == ROLE_CONST || role == ROLE_PARAM || kernel_value_is_inline(memory->graph, owner))
        return;
    if (whole->first < 0)
        whole->first = step;
    whole->last = (int64_t)step + 1;
    if (whole->role == STORAGE_NONE)
        whole->role = STORAGE_ARENA;
}

static void measure_straight(Memory *memory)
{
    const Graph *graph = memory->graph;
    Users users = graph_users(graph, arena_of(memory));
    const bool *live_out = graph_live_out(graph, arena_of(memory));
    for (uint32_t k = 0; k < memory->kernel_count; k++) {
        const Kernel *kernel = &memory->kernel[k];
        Lower lower = {.graph = memory->graph, .kernel = &memory->kernel[k], .users = &users, .live_out = live_out};
        for (uint32_t n = 0; n < kernel->node_count; n++) {
            const Node *node = &graph->node[kernel->node[n]];
            for (uint32_t r = 0; r < node->out_count; r++)
                if (kernel_stores(&lower, node->out[r]))
                    touch(memory, node->out[r], k);
            for (uint32_t i = 0; i < node->in_count; i++)
                if (!kernel_makes(&lower, kernel_view_owner(graph, node->in[i])))
                    touch(memory, node->in[i], k);
        }
    }
}

static void measure_lives(Memory *memory)
{
    Arena scratch = {0};
    if (memory->regions)
        flow_lives(memory, &scratch);
    else
        measure_straight(memory);
    for (ValueId v = 0; v < memory->graph->value_count; v++)
        if (memory->storage.at[v].role != STORAGE_NONE)
            memory->storage.at[v].bytes = type_bytes(value_type(memory->graph, v));
    arena_free(&scratch);
}

/* The plan's buffers */

typedef struct PlanDraft {
    Memory *memory;
    PlanBuffer *buffer;
    uint32_t count, capacity, holder_count, holder_capacity, groups;
    bool *begun; /* per value: it has a buffer */
} PlanDraft;

static uint32_t add_buffer(PlanDraft *draft, PlanBuffer buffer, StorageId holder)
{
    Arena *arena = arena_of(draft->memory);
    ARENA_PUSH(arena, draft->buffer, draft->count, draft->capacity, buffer);
    ARENA_PUSH(arena, draft->memory->holder, draft->holder_count, draft->holder_capacity, holder);
    return draft->count - 1;
}

/* A result written over an operand shares its address: both are of one group. */
static void group_inplace(PlanDraft *draft)
{
    const Memory *memory = draft->memory;
    const Graph *graph = memory->graph;
    for (uint32_t i = 0; i < draft->count; i++) {
        ValueId value = memory->storage.at[memory->holder[i]].value;
        if (value == NONE || graph->value[value].inplace == NONE)
            continue;
        const Storage *operand = &memory->storage.at[kernel_view_owner(graph, graph->value[value].inplace)];
        if (operand->role != STORAGE_ARENA)
            continue;
        PlanBuffer *from = &draft->buffer[operand->buffer];
        if (!from->group)
            from->group = ++draft->groups;
        draft->buffer[i].group = from->group;
    }
}

/* A whole takes only the bytes up to the end of the parts that have been made: whenever that grows it goes on as a
 * larger buffer at the same address. */
static void grow_whole(PlanDraft *draft, StorageId whole, ValueId part, int64_t step)
{
    Memory *memory = draft->memory;
    Storage *storage = &memory->storage.at[whole];
    PlanBuffer *now = draft->begun[whole] ? &draft->buffer[storage->buffer] : NULL;
    Extent extent = memory_extent(memory, part);
    PlanBuffer larger = {
        .size = extent.end, .alignment = ARENA_ALIGNMENT, .pinned = PLAN_FREE, .first = step, .last = storage->last};
    int64_t own = type_bytes(value_type(memory->graph, part)), grows = larger.size - (now ? now->size : 0);
    memory->early[part] = grows > own;
    memory->has_holes |= memory->early[part];
    if (now && now->size >= larger.size)
        return;
    if (now && now->first == step) {
        now->size = larger.size;
        return;
    }
    if (now) {
        now->group = now->group ? now->group : ++draft->groups;
        now->last = step;
        larger.group = now->group;
    }
    draft->begun[whole] = true;
    storage->buffer = add_buffer(draft, larger, whole);
}

/* What the step makes, or reads without anybody having made it, as what is empty: if it is the first to use its
 * memory. */
static void draft_value(PlanDraft *draft, ValueId value, int64_t step)
{
    Memory *memory = draft->memory;
    StorageId whole = memory->storage.at[value].whole;
    Storage *storage = &memory->storage.at[whole];
    if (storage->role != STORAGE_ARENA)
        return;
    if (storage->has_parts && shape_elements(value_shape(memory->graph, value)) > 0)
        grow_whole(draft, whole, value, step);
    else if (storage->first == step && !draft->begun[whole]) {
        PlanBuffer buffer = {.size = storage->bytes,
                             .alignment = ARENA_ALIGNMENT,
                             .pinned = PLAN_FREE,
                             .first = step,
                             .last = storage->last};
        draft->begun[whole] = true;
        storage->buffer = add_buffer(draft, buffer, whole);
    }
}

static void draft_scratch(PlanDraft *draft, Kernel *kernel, uint32_t step)
{
    Memory *memory = draft->memory;
    Recipe *recipe = &kernel->recipe;
    for (uint32_t i = 0; i < recipe->scratch_count; i++) {
        Scratch *scratch = &recipe->scratch[i];
        int64_t bytes = scratch->elements * dtype_bytes(scratch->dtype), line = ARENA_ALIGNMENT;
        int64_t others = scratch->per_thread && kernel->threads > 1 ? kernel->threads - 1 : 0;
        int64_t apart = (bytes + line - 1) / line * line;
        Storage storage = {.role = STORAGE_SCRATCH,
                           .dtype = scratch->dtype,
                           .bytes = others * apart + bytes,
                           .apart = apart,
                           .value = NONE,
                           .index = step,
                           .per_thread = scratch->per_thread,
                           .carries = scratch->carries,
                           .inside = NONE,
                           .family = NONE,
                           .whole = memory->storage.count,
                           .first = step,
                           .last = (int64_t)step + 1};
        PlanBuffer buffer = {
            .size = storage.bytes, .alignment = ARENA_ALIGNMENT, .pinned = PLAN_FREE, .first = step, .last = step + 1};
        scratch->storage = memory->storage.count;
        storage.buffer = add_buffer(draft, buffer, scratch->storage);
        ARENA_PUSH(arena_of(memory), memory->storage.at, memory->storage.count, memory->storage.capacity, storage);
    }
}

/* A buffer for each piece of a life, all of one group: the last of them. */
static uint32_t draft_pieces(PlanDraft *draft, StorageId holder, const Life *life, int64_t bytes)
{
    uint32_t buffer = 0, group = life->count > 1 ? ++draft->groups : 0;
    for (uint32_t i = 0; i < life->count; i++)
        buffer = add_buffer(draft,
                            (PlanBuffer){.size = bytes,
                                         .alignment = ARENA_ALIGNMENT,
                                         .pinned = PLAN_FREE,
                                         .first = life->piece[i].first,
                                         .last = life->piece[i].last,
                                         .group = group},
                            holder);
    return buffer;
}

/* The places of a family, held by the first member that some kernel makes. */
static void draft_family(PlanDraft *draft, Family *family)
{
    Arena *arena = arena_of(draft->memory);
    Storages storage = draft->memory->storage;
    ValueId holder = family->member[0];
    for (uint32_t m = family->count; m-- > 0;)
        if (storage.at[family->member[m]].role == STORAGE_ARENA || storage.at[family->member[m]].role == STORAGE_TURNS)
            holder = family->member[m];
    family->buffer = ARENA_ARRAY(arena, uint32_t, family->places);
    family->offset = ARENA_ARRAY(arena, int64_t, family->places);
    for (uint32_t m = 0; m < family->count; m++)
        storage.at[family->member[m]].buffer = NONE;
    for (uint32_t p = family->places; p-- > 0;) {
        if (family->outside[p] != NONE)
            continue;
        family->buffer[p] = draft_pieces(draft, holder, storage.at[holder].life, family->bytes);
        for (uint32_t m = 0; m < family->count; m++)
            storage.at[family->member[m]].buffer = family->buffer[p];
    }
}

/* Values in order of the steps that first touch them. */
static ValueId *in_order_of_life(const Memory *memory, Arena *arena)
{
    uint32_t values = memory->graph->value_count;
    uint32_t *next = ARENA_ARRAY(arena, uint32_t, memory->kernel_count + 2);
    ValueId *order = ARENA_ARRAY(arena, ValueId, values);
    for (ValueId v = 0; v < values; v++)
        next[memory->storage.at[v].first < 0 ? 1 : memory->storage.at[v].first + 1]++;
    for (uint32_t k = 0; k <= memory->kernel_count; k++)
        next[k + 1] += next[k];
    for (ValueId v = 0; v < values; v++)
        order[next[memory->storage.at[v].first < 0 ? 0 : memory->storage.at[v].first]++] = v;
    return order;
}

static void draft_flow(PlanDraft *draft)
{
    Memory *memory = draft->memory;
    const ValueId *order = in_order_of_life(memory, arena_of(memory));
    for (uint32_t i = 0; i < memory->graph->value_count; i++) {
        Storage *storage = &memory->storage.at[order[i]];
        if (storage->role == STORAGE_ARENA && storage->family == NONE && storage->whole == order[i])
            storage->buffer = draft_pieces(draft, order[i], storage->life, storage->bytes);
    }
    for (uint32_t f = 0; f < memory->family_count; f++)
        draft_family(draft, &memory->family[f]);
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        draft_scratch(draft, &memory->kernel[k], k);
}

/* Buffers come in the order of the steps that first touch them, so a result comes after the operand it takes over. */
static void draft_straight(PlanDraft *draft)
{
    Memory *memory = draft->memory;
    for (uint32_t k = 0; k < memory->kernel_count; k++) {
        Kernel *kernel = &memory->kernel[k];
        for (uint32_t n = 0; n < kernel->node_count; n++) {
            const Node *node = &memory->graph->node[kernel->node[n]];
            for (uint32_t r = 0; r < node->out_count; r++)
                draft_value(draft, node->out[r], k);
            for (uint32_t i = 0; i < node->in_count; i++)
                if (shape_elements(value_shape(memory->graph, node->in[i])) == 0)
                    draft_value(draft, kernel_view_owner(memory->graph, node->in[i]), k);
        }
        draft_scratch(draft, kernel, k);
    }
}

static void draft_plan(Memory *memory)
{
    Arena *arena = arena_of(memory);
    PlanDraft draft = {.memory = memory, .begun = ARENA_ARRAY(arena, bool, memory->graph->value_count)};
    memory->early = ARENA_ARRAY(arena, bool, memory->graph->value_count);
    if (memory->regions)
        draft_flow(&draft);
    else
        draft_straight(&draft);
    group_inplace(&draft);
    memory->problem = (PlanProblem){.buffer = draft.buffer, .count = draft.count};
}

void memory_lives(Memory *memory)
{
    memory->state_count = state_list(memory->graph, arena_of(memory), &memory->state);
    assign_callers_arrays(memory);
    measure_lives(memory);
    state_settle(memory);
    draft_plan(memory);
}
