/* Elementwise ops: one scalar expression at each position, operands broadcast by NumPy's rule.
 * The result is laid out as the operands that have its full shape; smaller ones (a bias, a scalar) are plain. */
#include "ops/infer.h"

#include "ops/families.h"

/* dtypes: each operand in the op's class, and all that RESULT_SAME speaks of agree. */
static bool infer_dtype(Graph *graph, NodeId node, DType *result)
{
    const Node *n = &graph->node[node];
    const OpInfo *info = op_info(n->op);
    uint32_t first = 0; /* of those that must agree */

    if (info->result == RESULT_SELECT) {
        if (!check_class(graph, node, 0, CLASS_BOOL))
            return false;
        first = 1;
    }
    for (uint32_t i = first; i < n->in_count; i++) {
        if (!check_class(graph, node, i, info->operand_class))
            return false;
        if (!check_same_dtype(graph, node, first, i))
            return false;
    }
    bool is_bool = info->result == RESULT_BOOL || info->result == RESULT_LOGIC;
    *result = is_bool ? DT_BOOL : in_type(graph, node, first)->dtype;
    return true;
}

static bool infer_shape(Graph *graph, NodeId node, Shape *result)
{
    *result = *in_shape(graph, node, 0);
    for (uint32_t i = 1; i < graph->node[node].in_count; i++)
        if (!shape_broadcast(result, in_shape(graph, node, i), result))
            return infer_fail(graph, node, "shapes do not broadcast: " STR_FMT, STR_ARG(show_operands(graph, node)));
    return true;
}

static bool infer_block(Graph *graph, NodeId node, const Shape *result, Layout *layout)
{
    const Type *full = NULL;
    for (uint32_t i = 0; i < graph->node[node].in_count; i++) {
        const Type *type = in_type(graph, node, i);
        if (!shape_eq(&type->shape, result)) {
            if (type->layout.block)
                return infer_fail(graph, node, "a blocked operand cannot be broadcast: " STR_FMT,
                                  STR_ARG(show_operand(graph, node, i)));
            continue;
        }
        if (full && full->layout.block != type->layout.block)
            return infer_fail(graph, node, "layouts differ: " STR_FMT, STR_ARG(show_operands(graph, node)));
        full = type;
    }
    *layout = full ? full->layout : (Layout){0};
    return true;
}

bool infer_elementwise(Graph *graph, NodeId node)
{
    DType dtype;
    Shape shape;
    Layout layout;

    return infer_dtype(graph, node, &dtype) && infer_shape(graph, node, &shape) &&
           infer_block(graph, node, &shape, &layout) && set_result(graph, node, 0, dtype, &shape, layout);
}

void eval_elementwise(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    (void)graph, (void)node, (void)in, (void)out;
}
