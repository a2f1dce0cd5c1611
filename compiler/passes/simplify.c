/* Simplification.
 * Needs: a verified graph, before fusion.  Keeps: the order of what stays.
 * Replaces nodes by cheaper ones that compute the same, by local rules: algebra, views that cancel or merge, and scales
 * and shifts by constants (batch normalisation, x / 255) folded into the weights of a convolution or matmul.
 * What is legal is said in pass.h: same type always; same bits but for the sign of zero, and but for the rounding of
 * weights.  So x + 0, x * 1 and x / 4 -> x * 0.25 are in; x * 0 -> 0 (wrong for NaN and infinities), x - x and other
 * orders of a float sum are not.
 * Rules look at producers, so one forward sweep catches most; the pipeline runs it twice. */
#include "passes/simplify.h"

#include "ops/meaning.h"

static ValueId simplify_node(Rewriter *rw, const Node *node)
{
    ValueId by = NONE;
    switch (op_info(node->op)->family) {
    case FAMILY_ELEMENTWISE:
        by = simplify_elementwise(rw, node);
        by = by == NONE ? simplify_broadcast(rw, node) : by;
        return by == NONE ? simplify_affine(rw, node) : by;
    case FAMILY_CAST:
        by = simplify_elementwise(rw, node);
        return by == NONE ? simplify_broadcast(rw, node) : by;
    case FAMILY_REDUCE:
    case FAMILY_VIEW:
    case FAMILY_ASSEMBLE:
    case FAMILY_LAYOUT:
    case FAMILY_POOL:
        return simplify_view(rw, node);
    case FAMILY_CONTRACT:
        return simplify_contract(rw, node);
    case FAMILY_GATHER:
        return simplify_scatter(rw, node);
    case FAMILY_DYNAMIC:
        return simplify_dynamic(rw, node);
    default:
        return NONE;
    }
}

/* Is there a gradient in it that grad has not made yet?  Recurses over the nesting. */
static bool asks_gradients(const Graph *graph)
{
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        if (node->dead)
            continue;
        if (node_is_gradient(node))
            return true;
        for (uint32_t i = 0; i < node->sub_count; i++)
            if (asks_gradients(node->sub[i]))
                return true;
    }
    return false;
}

bool pass_simplify(Graph *graph, PassContext *context)
{
    if (!context->in_body)
        context->asks_gradients = asks_gradients(graph);
    rewrite_graph(graph, context, simplify_node);
    return true;
}
