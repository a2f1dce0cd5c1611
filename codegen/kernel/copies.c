/* Copies that are made whatever is fused: of what leaves the graph without memory of its own, and of what an update
 * reads of the tensor that it is written to. */
#include "kernel/copies.h"

#include "kernel/kernel.h"
#include "ops/family.h"
#include "ops/meaning.h"

static ValueId copy_of(Graph *graph, ValueId value)
{
    Attr attr[1];
    attr_defaults(OP_RELAYOUT, attr);
    return op_build(graph, OP_RELAYOUT, &value, 1, attr, graph->value[value].place);
}

/* What leaves the graph, to the caller or into a state, is plain memory of its own: not a view, an input, a constant,
 * what a loop or branches give, nor the same value twice. */
static void copy_shared_ends(Graph *graph, Arena *arena)
{
    bool *taken = ARENA_ARRAY(arena, bool, graph->value_count);
    uint32_t updates = graph->update_count;
    for (uint32_t i = 0; i < graph->output_count + updates; i++) {
        ValueId *value = i < updates ? &graph->update[i].source : &graph->output[i - updates].value;
        const Node *node = value_producer(graph, *value);
        bool blocked = value_type(graph, *value)->layout.block;
        if (!node || blocked || node_is_view(node) || node_is_formula(node) || node_flow(node) || taken[*value])
            *value = copy_of(graph, *value);
        else
            taken[*value] = true;
    }
}

/* A part of the tensor that the node updates, which may be changed while it is read. */
static bool is_of_updated(const Graph *graph, const Node *node, uint32_t operand)
{
    return operand && node->in[operand] != node->in[0] &&
           kernel_view_owner(graph, node->in[operand]) == kernel_view_owner(graph, node->in[0]);
}

/* x is written to where it lies, as its other readers allow, and only the part that is read of it is copied. */
static void copy_updated_parts(Graph *graph, Arena *arena)
{
    uint32_t count = graph->node_count, sorted_count = 0, capacity = 0;
    Node *sorted = NULL;
    for (NodeId n = 0; n < count; n++) {
        for (uint32_t i = 1; node_is_update(&graph->node[n]) && i < graph->node[n].in_count; i++) {
            if (!is_of_updated(graph, &graph->node[n], i))
                continue;
            ValueId copy = copy_of(graph, graph->node[n].in[i]);
            graph->node[n].in[i] = copy;
            ARENA_PUSH(arena, sorted, sorted_count, capacity, graph->node[graph->value[copy].node]);
        }
        ARENA_PUSH(arena, sorted, sorted_count, capacity, graph->node[n]);
    }
    if (sorted_count == count)
        return;
    for (NodeId n = 0; n < sorted_count; n++) {
        graph->node[n] = sorted[n];
        for (uint32_t r = 0; r < sorted[n].out_count; r++)
            graph->value[sorted[n].out[r]].node = n;
    }
}

void kernel_add_copies(Graph *graph, Arena *scratch)
{
    copy_updated_parts(graph, scratch);
    copy_shared_ends(graph, scratch);
}
