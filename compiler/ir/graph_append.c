/* Nodes from elsewhere at the end of a schedule: of the same graph, or of a body that becomes a part of it. */
#include "ir/graph.h"

void graph_append_node(Graph *graph, const Node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        graph->value[node->out[i]].node = graph->node_count;
        graph->value[node->out[i]].result = i;
    }
    ARENA_PUSH(graph->module->arena, graph->node, graph->node_count, graph->node_capacity, *node);
}

/* The calls that the body's nodes come from follow the graph's own. */
static uint32_t append_inlined(Graph *graph, const Graph *body)
{
    uint32_t base = graph->inlined_count;
    for (uint32_t i = 0; i < body->inlined_count; i++) {
        Inlined inlined = body->inlined[i];
        inlined.outer += inlined.outer == NONE ? 0 : base;
        ARENA_PUSH(graph->module->arena, graph->inlined, graph->inlined_count, graph->inlined_capacity, inlined);
    }
    return base;
}

static ValueId append_value(Graph *graph, const Graph *body, ValueId v, const ValueId *map)
{
    const Value *from = &body->value[v];
    ValueId to = graph_add_value(graph, from->role, from->type, from->name, from->place);
    graph->value[to].data = from->data;
    graph->value[to].placement = from->placement;
    graph->value[to].inplace = from->inplace == NONE ? NONE : map[from->inplace];
    return to;
}

static void append_copy(Graph *graph, const Graph *body, const Node *from, ValueId *map, uint32_t calls)
{
    Arena *arena = graph->module->arena;
    Node node = *from;

    node.in = ARENA_ARRAY(arena, ValueId, node.in_count);
    node.out = ARENA_ARRAY(arena, ValueId, node.out_count);
    node.from += node.from == NONE ? 0 : calls;
    for (uint32_t i = 0; i < node.in_count; i++)
        node.in[i] = map[from->in[i]];
    for (uint32_t i = 0; i < node.out_count; i++)
        node.out[i] = map[from->out[i]] = append_value(graph, body, from->out[i], map);
    if (node_has_bodies(from)) {
        node.sub = ARENA_ARRAY(arena, Graph *, node.sub_count);
        for (uint32_t i = 0; i < node.sub_count; i++)
            node.sub[i] = graph_clone(from->sub[i]);
    }
    graph_append_node(graph, &node);
}

void graph_append_body(Graph *graph, const Graph *body, const ValueId *in, ValueId *out)
{
    Arena scratch = {0};
    ValueId *map = ARENA_ARRAY(&scratch, ValueId, body->value_count);
    uint32_t calls = append_inlined(graph, body);

    for (ValueId v = 0; v < body->value_count; v++)
        if (body->value[v].role == ROLE_CONST)
            map[v] = append_value(graph, body, v, NULL);
    for (uint32_t i = 0; i < body->input_count; i++)
        map[body->input[i]] = in[i];
    for (NodeId n = 0; n < body->node_count; n++)
        if (!body->node[n].dead)
            append_copy(graph, body, &body->node[n], map, calls);
    for (uint32_t i = 0; i < body->output_count; i++)
        out[i] = map[body->output[i].value];
    arena_free(&scratch);
}
