/* Nodes that ask for gradients.  They mean what the pass grad makes of them, so nobody evaluates them. */
#include "ops/families.h"
#include "ops/infer.h"
#include "ops/meaning.h"

bool node_is_gradient(const Node *node)
{
    return node->op == OP_GRAD || node->op == OP_PULLBACK;
}

uint32_t op_first_wrt(OpCode op)
{
    return op == OP_PULLBACK ? 2 : 1;
}

static bool check_cotangent(Graph *graph, NodeId node)
{
    const Type *y = infer_in_type(graph, node, 0), *cotangent = infer_in_type(graph, node, 1);
    bool fits = cotangent->dtype == y->dtype && shape_eq(&cotangent->shape, &y->shape);
    return fits || infer_fail(graph, node, "the cotangent takes the dtype and shape of y: " STR_FMT ", " STR_FMT,
                              STR_ARG(infer_show_operand(graph, node, 1)), STR_ARG(infer_show_operand(graph, node, 0)));
}

bool infer_derivative(Graph *graph, NodeId node)
{
    for (uint32_t i = 0; i < graph->node[node].in_count; i++)
        if (!infer_check_class(graph, node, i, CLASS_FLOAT))
            return false;
    uint32_t first = op_first_wrt(graph->node[node].op);
    if (first > 1 && !check_cotangent(graph, node))
        return false;
    for (uint32_t i = 0; i < graph->node[node].out_count; i++) {
        const Type *type = infer_in_type(graph, node, first + i);
        if (!infer_set_result(graph, node, i, type->dtype, &type->shape, type->layout))
            return false;
    }
    return true;
}
