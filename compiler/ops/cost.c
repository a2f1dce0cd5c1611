/* What nodes cost to compute. */
#include "ops/meaning.h"

static int64_t window_elements(const Window *window)
{
    int64_t elements = 1;
    for (uint32_t d = 0; d < window->rank; d++)
        elements *= window->dim[d].size;
    return elements;
}

int64_t node_macs(const Graph *graph, const Node *node)
{
    if (!node_is_contraction(graph, node))
        return 0;
    Contraction contraction = contraction_of(graph, node);
    return shape_elements(value_shape(graph, node->out[0])) * contraction_extent(&contraction, AXIS_SUM) *
           contraction_extent(&contraction, AXIS_TAP);
}

int64_t node_flops(const Graph *graph, const Node *node)
{
    int64_t results = shape_elements(value_shape(graph, node->out[0]));
    switch (op_info(node->op)->family) {
    case FAMILY_ELEMENTWISE:
    case FAMILY_DRAW:
    case FAMILY_CUMULATE:
        return results;
    case FAMILY_REDUCE:
        return shape_elements(value_shape(graph, node->in[0]));
    case FAMILY_POOL:
    case FAMILY_MATCH: {
        Reduction reduction = reduction_of(graph, node);
        return results * window_elements(&reduction.window);
    }
    case FAMILY_GATHER:
        return node_is_scatter(node) ? shape_elements(value_shape(graph, node->in[2])) : 0;
    case FAMILY_CONTRACT:
        return 2 * node_macs(graph, node);
    default:
        return 0;
    }
}

bool node_is_expensive(const Node *node)
{
    const ScalarList *scalar = op_info(node->op)->scalar;
    return node_is_random(node) || (scalar && word_list_is_expensive(scalar));
}
