/* Nodes that ask for gradients.  They mean what the pass grad makes of them, so nobody evaluates them. */
#include "ops/families.h"
#include "ops/infer.h"
#include "ops/meaning.h"

bool node_is_gradient(const Node *node)
{
    return node->op == OP_GRAD;
}

bool infer_derivative(Graph *graph, NodeId node)
{
    for (uint32_t i = 0; i < graph->node[node].in_count; i++)
        if (!infer_check_class(graph, node, i, CLASS_FLOAT))
            return false;
    for (uint32_t i = 0; i < graph->node[node].out_count; i++) {
        const Type *type = infer_in_type(graph, node, i + 1);
        if (!infer_set_result(graph, node, i, type->dtype, &type->shape, type->layout))
            return false;
    }
    return true;
}
