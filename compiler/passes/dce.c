/* Dead code elimination.
 * Needs: a verified graph.  Keeps: the order of nodes and of values; all inputs.
 * Removes nodes that no output, update or effect reaches, then values that nothing mentions: their results, and
 * params, states and constants that are not read and not updated.  Values are renumbered. */
#include "passes/pass.h"

#include <string.h>

static void mark_uses(const Node *node, bool *live)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        live[node->in[i]] = true;
}

static bool node_is_live(const Node *node, const bool *live)
{
    if (op_info(node->op)->effect != EFFECT_PURE)
        return true;
    for (uint32_t i = 0; i < node->sub_count; i++) /* a call whose body updates a state has an effect */
        if (node->sub[i]->update_count)
            return true;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (live[node->out[i]])
            return true;
    return false;
}

/* The order is topological, so one sweep from the end sees every user before its operand. */
static void remove_nodes(Graph *graph, bool *live, PassContext *context)
{
    for (NodeId n = graph->node_count; n-- > 0;) {
        Node *node = &graph->node[n];
        if (!node->dead && node_is_live(node, live))
            mark_uses(node, live);
        else {
            context->changes += !node->dead;
            node->dead = true;
        }
    }
}

/* All results of a node that stays stay with it. */
static void mark_mentioned(const Graph *graph, bool *live)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        live[graph->input[i]] = true;
    for (uint32_t i = 0; i < graph->update_count; i++)
        live[graph->update[i].target] = true;
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].out_count; i++)
            live[graph->node[n].out[i]] = true;
}

/* A call's own params live as long as the call. */
static void mark_owned(const Graph *graph, bool *live)
{
    for (ValueId v = 0; v < graph->value_count; v++) {
        NodeId owner = graph->value[v].owner;
        if (owner != NONE && !graph->node[owner].dead)
            live[v] = true;
    }
}

static void renumber(ValueId *list, uint32_t count, const ValueId *number)
{
    for (uint32_t i = 0; i < count; i++)
        list[i] = number[list[i]];
}

static void remove_values(Graph *graph, const bool *live, Arena *scratch)
{
    ValueId *number = ARENA_ARRAY(scratch, ValueId, graph->value_count);
    uint32_t kept = 0;
    for (ValueId v = 0; v < graph->value_count; v++) {
        number[v] = live[v] ? kept : NONE;
        if (live[v])
            graph->value[kept++] = graph->value[v];
    }
    if (kept == graph->value_count)
        return;

    graph->value_count = kept;
    for (ValueId v = 0; v < kept; v++)
        if (graph->value[v].inplace != NONE)
            graph->value[v].inplace = number[graph->value[v].inplace];
    for (NodeId n = 0; n < graph->node_count; n++) {
        renumber(graph->node[n].in, graph->node[n].in_count, number);
        renumber(graph->node[n].out, graph->node[n].out_count, number);
    }
    renumber(graph->input, graph->input_count, number);
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = number[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++) {
        graph->update[i].target = number[graph->update[i].target];
        graph->update[i].source = number[graph->update[i].source];
    }
}

bool pass_dce(Graph *graph, PassContext *context)
{
    bool *live = graph_live_out(graph, context->scratch);
    remove_nodes(graph, live, context);
    mark_owned(graph, live);
    graph_compact(graph);
    mark_mentioned(graph, live);
    remove_values(graph, live, context->scratch);
    return true;
}
