/* May a kernel write a result over a value that it reads, and that nobody reads later? */
#include "storage/memory.h"

#include "kernel/lower/lower.h"
#include "ops/meaning.h"
#include "storage/inplace.h"

/* How many results the kernel writes to memory. */
static uint32_t stored_results(const Memory *memory, Kernel *kernel, const Users *users, const bool *live_out)
{
    const Graph *graph = memory->graph;
    Lower lower = {.graph = memory->graph, .kernel = kernel, .users = users, .live_out = live_out};
    uint32_t stored = 0;
    for (uint32_t n = 0; n < kernel->node_count; n++)
        for (uint32_t r = 0; r < graph->node[kernel->node[n]].out_count; r++)
            stored += kernel_stores(&lower, graph->node[kernel->node[n]].out[r]);
    return stored;
}

/* Another shape of the owner, each element in its place? */
static bool covers(const Graph *graph, ValueId value, ValueId owner)
{
    for (; value != owner; value = value_producer(graph, value)->in[0])
        if (!view_is_reshape(value_producer(graph, value)))
            return false;
    return true;
}

ValueId memory_updated(const Graph *graph, const Node *node)
{
    ValueId owner = node && node_is_update(node) ? kernel_view_owner(graph, node->in[0]) : NONE;
    return owner != NONE && covers(graph, node->in[0], owner) ? owner : NONE;
}

bool memory_stores_last(const Memory *memory, NodeId producer)
{
    const Graph *graph = memory->graph;
    uint32_t step = memory->kernel_of[graph->node[producer].kernel];
    const Kernel *kernel = step == NONE ? NULL : &memory->kernel[step];
    if (!kernel || kernel->form != FORM_ROWS || !kernel->recipe.stores_last)
        return false;
    const Node *reduction = &graph->node[kernel->anchor];
    return shape_eq(value_shape(graph, graph->node[producer].out[0]), value_shape(graph, reduction->in[0]));
}

bool memory_reads_by_element(const Memory *memory, const Users *users, const bool *live_out, ValueId result,
                             ValueId value)
{
    const Graph *graph = memory->graph;
    NodeId producer = graph->value[result].node;
    uint32_t step = memory->kernel_of[graph->node[producer].kernel];
    if (step == NONE || memory->storage.at[result].has_parts) /* made by others, earlier */
        return false;
    Kernel *kernel = &memory->kernel[step];
    ValueId seen = NONE;
    for (uint32_t n = 0; n < kernel->node_count; n++)
        for (uint32_t i = 0; i < graph->node[kernel->node[n]].in_count; i++) {
            ValueId in = graph->node[kernel->node[n]].in[i], owner = kernel_view_owner(graph, in);
            if (owner != value && memory->storage.at[owner].whole == value)
                return false; /* a part of it, which lies elsewhere in it */
            if (owner != value)
                continue;
            if ((seen != NONE && seen != in) || !covers(graph, in, value))
                return false;
            seen = in;
        }
    if (seen == NONE || kernel->recipe.rewrites)
        return false;
    if (kernel_stores_together(kernel))
        return inplace_map_rule(graph, producer, seen);
    if (memory_stores_last(memory, producer))
        return inplace_rows_rule(graph, producer, seen);
    return inplace_kernel_rule(graph, producer, seen) &&
           (kernel->form == FORM_UPDATE || stored_results(memory, kernel, users, live_out) == 1);
}
