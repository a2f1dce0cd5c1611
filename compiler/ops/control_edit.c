/* Loops and branches rewritten in place: what they capture and carry. */
#include "ops/control.h"

#include <string.h>

void loop_set(Graph *graph, Node *node, const Loop *loop)
{
    Attr *attr = ARENA_ARRAY(graph->module->arena, Attr, 3);
    attr[attr_index(OP_WHILE, STR("carried"))].i = loop->carried;
    attr[attr_index(OP_WHILE, STR("max"))].i = loop->most;
    attr[attr_index(OP_WHILE, STR("unroll"))].i = loop->unroll;
    node->attr = attr;
}

static uint32_t find_captured(const Graph *graph, const Node *node, ValueId value)
{
    uint32_t i = node_first_captured(graph, node);
    while (i < node->in_count && node->in[i] != value)
        i++;
    return i;
}

uint32_t node_capture(Graph *graph, Node *node, ValueId value)
{
    uint32_t at = find_captured(graph, node, value);
    if (at < node->in_count)
        return at;

    const Value *from = &graph->value[value];
    ValueId *in = ARENA_ARRAY(graph->module->arena, ValueId, node->in_count + 1);
    memcpy(in, node->in, node->in_count * sizeof *in);
    in[node->in_count++] = value;
    node->in = in;
    for (uint32_t s = 0; s < node->sub_count; s++)
        graph_add_input(node->sub[s], from->type, from->name, from->place);
    return at;
}

uint32_t node_input(const Graph *graph, const Node *node, uint32_t operand)
{
    return node_is_loop(node) ? operand : operand - node_first_captured(graph, node);
}

/* Dropping */

static void drop_inputs(Graph *body, const bool *drop)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < body->input_count; i++) {
        if (drop[i]) /* like the result of a node that was removed */
            body->value[body->input[i]].role = ROLE_RESULT;
        else
            body->input[kept++] = body->input[i];
    }
    body->input_count = kept;
}

static void drop_outputs(Graph *body, const bool *drop, uint32_t carried)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < body->output_count; i++)
        if (i >= carried || !drop[i])
            body->output[kept++] = body->output[i];
    body->output_count = kept;
}

static void drop_results(Graph *graph, Node *node, const bool *drop)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->out_count; i++) {
        Value *value = &graph->value[node->out[i]];
        if (drop[i]) {
            value->node = NONE;
            continue;
        }
        value->result = kept;
        node->out[kept++] = node->out[i];
    }
    node->out_count = kept;
}

static void drop_operands(Node *node, const bool *drop)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!drop[i])
            node->in[kept++] = node->in[i];
    node->in_count = kept;
}

void node_drop_results(Graph *graph, Node *node, const bool *drop)
{
    for (uint32_t s = 0; s < node->sub_count; s++)
        drop_outputs(node->sub[s], drop, node->out_count);
    drop_results(graph, node, drop);
}

void node_drop(Graph *graph, Node *node, const bool *drop)
{
    bool loops = node_is_loop(node);
    const bool *inputs = drop + (loops ? 0 : node_first_captured(graph, node));
    for (uint32_t s = 0; s < node->sub_count; s++)
        drop_inputs(node->sub[s], inputs);
    if (loops) {
        Loop loop = loop_of(graph, node);
        uint32_t carried = loop.carried;
        drop_outputs(loop.body, drop, carried);
        drop_results(graph, node, drop);
        loop.carried = node->out_count;
        loop_set(graph, node, &loop);
    }
    drop_operands(node, drop);
}
