/* Runs of graphs one after another: what one leaves in states and params, the next finds. */
#include "ops/family.h"

static const Tensor **kept(EvalMemory *memory, Str name)
{
    uint32_t known = map_get(&memory->known, name);
    if (known == MAP_NONE) {
        known = memory->count;
        map_put(&memory->known, name, known);
        ARENA_PUSH(memory->arena, memory->tensor, memory->count, memory->capacity, NULL);
    }
    return &memory->tensor[known];
}

/* Gives the graph's params and states what was kept for them; returns what they had.  What has another type in another
 * graph, which is an error that others report, keeps to itself. */
static const Tensor **swap_in(EvalMemory *memory, Graph *graph, Arena *scratch)
{
    const Tensor **own = ARENA_ARRAY(scratch, const Tensor *, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++) {
        Value *value = &graph->value[v];
        own[v] = value->data;
        uint32_t known =
            value->role == ROLE_PARAM || value->role == ROLE_STATE ? map_get(&memory->known, value->name) : MAP_NONE;
        if (known != MAP_NONE && memory->tensor[known]->type == value->type)
            value->data = memory->tensor[known];
    }
    return own;
}

void eval_run(EvalMemory *memory, Graph *graph, const Tensor *const *input, const Tensor **output)
{
    Arena scratch = {0};
    const Tensor **own = swap_in(memory, graph, &scratch);
    const Tensor **updated = ARENA_ARRAY(&scratch, const Tensor *, graph->update_count);
    eval_graph(graph, memory->arena, input, output, updated);
    for (uint32_t i = 0; i < graph->update_count; i++)
        *kept(memory, graph->value[graph->update[i].target].name) = updated[i];
    for (ValueId v = 0; v < graph->value_count; v++)
        if (graph->value[v].role == ROLE_PARAM || graph->value[v].role == ROLE_STATE)
            graph->value[v].data = own[v];
    arena_free(&scratch);
}
