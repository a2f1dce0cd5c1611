#include "cli/reduce_bodies.h"

#include "ops/control.h"

static bool same_type(const Graph *graph, ValueId a, ValueId b)
{
    return graph->value[a].type == graph->value[b].type;
}

/* What may stand for a result of node n: an operand, what was there before it, or zeros. */
static ValueId stand_in(Graph *graph, NodeId n, uint32_t result)
{
    const Node *node = &graph->node[n];
    ValueId out = node->out[result];
    if (node_is_loop(node))
        return node->in[result];
    for (uint32_t i = 0; i < node->in_count; i++)
        if (same_type(graph, node->in[i], out))
            return node->in[i];
    for (ValueId v = 0; v < graph->value_count; v++)
        if ((graph->value[v].node == NONE || graph->value[v].node < n) && same_type(graph, v, out))
            return v;
    Tensor *zeros = tensor_new(graph->module->arena, graph->value[out].type);
    return graph_add_const(graph, zeros, (Str){0}, node->place);
}

static void pass_by(Graph *graph, NodeId n)
{
    Arena scratch = {0};
    uint32_t values = graph->value_count, results = graph->node[n].out_count;
    ValueId *map = ARENA_ARRAY(&scratch, ValueId, values + results);
    for (ValueId v = 0; v < values + results; v++)
        map[v] = v;
    for (uint32_t i = 0; i < results; i++)
        map[graph->node[n].out[i]] = stand_in(graph, n, i);
    graph->node[n].dead = true;
    graph_replace(graph, map);
    graph_compact(graph);
    arena_free(&scratch);
}

static void run_once(Graph *graph, Node *node)
{
    Loop loop = loop_of(graph, node);
    loop.most = 1;
    loop_set(graph, node, &loop);
}

/* Counts down to the thing that is wanted, and takes it away.  Recurses over the nesting. */
static bool take_away(Graph *graph, bool inner, uint32_t *which)
{
    for (NodeId n = 0; n < graph->node_count; n++) {
        Node *node = &graph->node[n];
        bool loop = node_is_loop(node);
        if ((inner || loop) && (*which)-- == 0)
            return pass_by(graph, n), true;
        if (loop && loop_of(graph, node).most != 1 && (*which)-- == 0)
            return run_once(graph, node), true;
        for (uint32_t i = 0; (loop || node_is_choice(node)) && i < node->sub_count; i++)
            if (take_away(node->sub[i], true, which))
                return true;
    }
    return false;
}

uint32_t reduce_bodies_count(const Graph *graph)
{
    uint32_t left = UINT32_MAX;
    take_away(graph_clone(graph), false, &left);
    return UINT32_MAX - left;
}

Graph *reduce_bodies_without(const Graph *graph, uint32_t which)
{
    Graph *smaller = graph_clone(graph);
    take_away(smaller, false, &which);
    return smaller;
}

uint32_t reduce_bodies_nodes(const Graph *graph)
{
    uint32_t count = graph->node_count;
    for (NodeId n = 0; n < graph->node_count; n++)
        if (node_is_loop(&graph->node[n]) || node_is_choice(&graph->node[n]))
            for (uint32_t i = 0; i < graph->node[n].sub_count; i++)
                count += reduce_bodies_nodes(graph->node[n].sub[i]);
    return count;
}
