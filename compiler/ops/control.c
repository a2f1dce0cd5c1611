/* Nodes with sub-graphs: what they mean, and their types.  A call takes its result types from its callee's outputs, a
 * loop from its first values, a branch from what its branches give. */
#include "ops/infer.h"

#include <assert.h>

#include "ir/attr.h"
#include "ops/families.h"
#include "ops/meaning.h"

bool node_is_loop(const Node *node)
{
    return node->op == OP_WHILE;
}

Loop loop_of(const Graph *graph, const Node *node)
{
    bool tests_first = node->sub_count == 2;
    uint32_t carried = (uint32_t)attr_int(node, "carried");
    (void)graph;
    return (Loop){.carried = carried,
                  .captured = node->in_count - carried,
                  .most = attr_int(node, "max"),
                  .unroll = attr_int(node, "unroll"),
                  .condition = tests_first ? node->sub[0] : NULL,
                  .body = node->sub[tests_first]};
}

bool node_is_choice(const Node *node)
{
    return node->op == OP_CASE;
}

Branches branches_of(const Graph *graph, const Node *node)
{
    const Attr *keys = attr_of(node, "keys");
    (void)graph;
    return (Branches){.keys = (uint32_t)keys->i, .key = keys->ints, .captured = node->in_count - 1};
}

uint32_t branches_select(const Branches *branches, int64_t selector)
{
    uint32_t i = 0;
    while (i < branches->keys && branches->key[i] != selector)
        i++;
    return i;
}

uint32_t node_first_captured(const Graph *graph, const Node *node)
{
    return node_is_loop(node) ? loop_of(graph, node).carried : 1;
}

/* Building */

static NodeId add_node(Graph *graph, OpCode op, const ValueId *in, uint32_t in_count, const Attr *attr,
                       uint32_t results, Graph *const *sub, uint32_t subs, Place place)
{
    NodeId id = graph_add_node(graph, op, in, in_count, attr, results, place);
    Node *node = graph_node(graph, id);
    node->sub = arena_copy(graph->module->arena, sub, subs * sizeof *sub);
    node->sub_count = subs;
    op_infer(graph, id);
    return id;
}

NodeId op_build_loop(Graph *graph, const Loop *loop, const ValueId *in, Place place)
{
    Attr attr[3];
    Graph *sub[2] = {loop->condition, loop->body};
    attr[attr_index(OP_WHILE, STR("carried"))].i = loop->carried;
    attr[attr_index(OP_WHILE, STR("max"))].i = loop->most;
    attr[attr_index(OP_WHILE, STR("unroll"))].i = loop->unroll;
    return add_node(graph, OP_WHILE, in, loop->carried + loop->captured, attr, loop->carried,
                    loop->condition ? sub : sub + 1, loop->condition ? 2 : 1, place);
}

NodeId op_build_choice(Graph *graph, const Branches *branches, const ValueId *in, Graph *const *sub, Place place)
{
    Attr keys = {.i = branches->keys, .ints = branches->key};
    return add_node(graph, OP_CASE, in, branches->captured + 1, &keys, sub[0]->output_count, sub, branches->keys + 1,
                    place);
}

/* Types */

static bool infer_from_outputs(Graph *graph, NodeId node, const Graph *body)
{
    const Node *n = &graph->node[node];
    bool typed = true;

    assert(n->out_count <= body->output_count);
    for (uint32_t i = 0; i < n->out_count; i++) {
        const Type *type = value_type(body, body->output[i].value);
        graph->value[n->out[i]].type = type; /* NULL after an error inside, which has been reported */
        typed &= type != NULL;
    }
    return typed;
}

static bool infer_loop(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    for (uint32_t i = 0; i < n->out_count; i++)
        graph->value[n->out[i]].type = value_type(graph, n->in[i]);
    return true;
}

bool infer_control(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    if (node_is_minimize(n))
        return true;
    return node_is_loop(n) ? infer_loop(graph, node) : infer_from_outputs(graph, node, n->sub[0]);
}
