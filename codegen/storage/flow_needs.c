/* What printers and the judge ask of what is passed, once kernels are lowered (flow.h). */
#include "storage/flow.h"

#include "ops/meaning.h"

KernelBuffer flow_buffer(const Memory *memory, ValueId value)
{
    ValueId owner = flow_owner(memory->graph, value);
    const Storage *storage = &memory->storage.at[owner];
    bool part = storage->whole != owner;
    return (KernelBuffer){.role = "y",
                          .dtype = storage->dtype,
                          .storage = storage->whole,
                          .begin = part ? memory_extent(memory, owner).begin / dtype_bytes(storage->dtype) : 0,
                          .part = part ? owner : NONE};
}

typedef struct Needs {
    const Memory *memory;
    bool *needed;
    bool changed;
} Needs;

static void need(Needs *n, ValueId value)
{
    ValueId owner = flow_owner(n->memory->graph, value);
    n->changed |= !n->needed[owner];
    n->needed[owner] = true;
}

static void need_read(Needs *n)
{
    const Memory *memory = n->memory;
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        for (uint32_t b = 0; b < memory->kernel[k].buffer_count; b++)
            if (memory->storage.at[memory->kernel[k].buffer[b].storage].value != NONE)
                need(n, memory->storage.at[memory->kernel[k].buffer[b].storage].value);
    for (uint32_t i = 0; i < memory->state_count; i++)
        if (memory->state[i].from != NONE)
            need(n, memory->state[i].from);
    for (ValueId v = 0; v < memory->graph->value_count; v++)
        for (const ValueId *other = flow_avoided(memory, v); *other != NONE; other++)
            need(n, *other);
}

/* What is passed to what is needed is needed; and what the way is chosen by. */
static void need_passed(Needs *n)
{
    const Graph *graph = n->memory->graph;
    const Node **loop = NULL;
    uint32_t depth = 0, capacity = 0;
    Arena scratch = {0};
    for (NodeId i = 0; i < graph->node_count; i++) {
        const Node *node = &graph->node[i];
        FlowKind kind = node_flow(node);
        if (kind == FLOW_LOOP_BEGIN)
            ARENA_PUSH(&scratch, loop, depth, capacity, node);
        const Node *to = kind == FLOW_LOOP_END ? loop[depth - 1] : node;
        for (uint32_t k = 0; kind != FLOW_NONE && k < node->in_count; k++) {
            bool chooses =
                kind == FLOW_LOOP_TEST || kind == FLOW_BRANCH_BEGIN || (kind == FLOW_LOOP_END && k >= to->out_count);
            if (chooses || n->needed[to->out[k % to->out_count]])
                need(n, node->in[k]);
        }
        depth -= kind == FLOW_LOOP_END;
    }
    arena_free(&scratch);
}

const bool *flow_needed(const Memory *memory, Arena *arena)
{
    Needs n = {memory, ARENA_ARRAY(arena, bool, memory->graph->value_count), false};
    need_read(&n);
    do {
        n.changed = false;
        need_passed(&n);
    } while (n.changed);
    return n.needed;
}
