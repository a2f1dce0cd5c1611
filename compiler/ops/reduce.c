/* Reductions over dimensions, and the position of an extreme along one. */
#include "ops/infer.h"

#include "ops/attrs.h"
#include "ops/families.h"

static bool is_arg(OpCode op)
{
    return op == OP_ARGMAX || op == OP_ARGMIN;
}

static bool check_reduced(Graph *graph, NodeId node, uint32_t rank)
{
    const Node *n = &graph->node[node];
    uint32_t axis;
    if (!is_arg(n->op))
        return check_axes(graph, node, "axes", rank);
    if (rank == 0)
        return infer_fail(graph, node, "takes at least one dimension: " STR_FMT, STR_ARG(show_operand(graph, node, 0)));
    return check_axis(graph, node, attr_int(n, "axis"), rank, &axis);
}

bool infer_reduce(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = in_type(graph, node, 0);
    bool keep = attr_bool(n, "keep"), empty_fits = n->op == OP_REDUCE_SUM || n->op == OP_REDUCE_PROD;

    if (!check_class(graph, node, 0, CLASS_NUMBER) || !check_reduced(graph, node, x->shape.rank))
        return false;

    uint32_t mask = reduce_mask(n, x->shape.rank);
    Shape shape = {0};
    for (uint32_t i = 0; i < x->shape.rank; i++) {
        bool reduced = mask >> i & 1;
        if (reduced && x->shape.dim[i] == 0 && !empty_fits)
            return infer_fail(graph, node, "nothing to choose from, dimension %u is empty: " STR_FMT, i,
                              STR_ARG(show_operand(graph, node, 0)));
        if (!reduced || keep)
            shape.dim[shape.rank++] = reduced ? 1 : x->shape.dim[i];
    }
    return set_plain(graph, node, 0, is_arg(n->op) ? DT_I64 : x->dtype, &shape);
}

void eval_reduce(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    (void)graph, (void)node, (void)in, (void)out;
}
