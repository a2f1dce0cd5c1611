/* Bodies laid out in line: where they begin and end. */
#include "ops/infer.h"

#include "ir/attr.h"
#include "ops/families.h"
#include "ops/meaning.h"

bool infer_flow(Graph *graph, NodeId node)
{
    const Node *n = graph_node(graph, node);
    return diag_error(graph->module->diag, n->place, "%s is the compiler's own: write `while`, `do` or `case`",
                      op_info(n->op)->name);
}

FlowKind node_flow(const Node *node)
{
    switch (node->op) {
    case OP_LOOP_BEGIN:
        return FLOW_LOOP_BEGIN;
    case OP_LOOP_TEST:
        return FLOW_LOOP_TEST;
    case OP_LOOP_END:
        return FLOW_LOOP_END;
    case OP_BRANCH_BEGIN:
        return FLOW_BRANCH_BEGIN;
    case OP_BRANCH_NEXT:
        return FLOW_BRANCH_NEXT;
    case OP_BRANCH_END:
        return FLOW_BRANCH_END;
    default:
        return FLOW_NONE;
    }
}

int64_t flow_most_rounds(const Node *node)
{
    return attr_int(node, "max");
}

bool flow_tests(const Node *node)
{
    return attr_bool(node, "tests");
}

Branches flow_branches(const Node *node)
{
    const Attr *keys = attr_of(node, "keys");
    return (Branches){.keys = (uint32_t)keys->i, .key = keys->ints};
}

/* The types of results are those of the operands that stand at their place. */
static NodeId add(Graph *graph, OpCode op, const ValueId *in, uint32_t count, const Attr *attr, uint32_t results,
                  Place place)
{
    Attr none[1];
    if (!attr)
        attr_defaults(op, none);
    NodeId node = graph_add_node(graph, op, in, count, attr ? attr : none, results, place);
    for (uint32_t r = 0; r < results; r++)
        graph->value[graph->node[node].out[r]].type = value_type(graph, in[r]);
    return node;
}

NodeId flow_loop_begin(Graph *graph, const ValueId *first, uint32_t count, int64_t most, Place place)
{
    return add(graph, OP_LOOP_BEGIN, first, count, &(Attr){.i = most}, count, place);
}

NodeId flow_loop_test(Graph *graph, ValueId condition, Place place)
{
    return add(graph, OP_LOOP_TEST, &condition, 1, NULL, 0, place);
}

NodeId flow_loop_end(Graph *graph, const ValueId *next, uint32_t count, bool tests, Place place)
{
    return add(graph, OP_LOOP_END, next, count, &(Attr){.i = tests}, 0, place);
}

NodeId flow_branch_begin(Graph *graph, ValueId selector, const Node *choice)
{
    return add(graph, OP_BRANCH_BEGIN, &selector, 1, attr_of(choice, "keys"), 0, choice->place);
}

NodeId flow_branch_next(Graph *graph, Place place)
{
    return add(graph, OP_BRANCH_NEXT, NULL, 0, NULL, 0, place);
}

NodeId flow_branch_end(Graph *graph, const ValueId *yield, uint32_t count, uint32_t results, Place place)
{
    return add(graph, OP_BRANCH_END, yield, count, NULL, results, place);
}
