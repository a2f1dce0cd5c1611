/* Pooling: the largest element, or the mean, of each window of an image. */
#include "ops/infer.h"

#include "ops/attrs.h"
#include "ops/families.h"
#include "ops/window.h"

bool infer_pool(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = in_type(graph, node, 0);

    if (!check_class(graph, node, 0, n->op == OP_AVG_POOL ? CLASS_FLOAT : CLASS_NUMBER))
        return false;
    if (x->shape.rank != 4)
        return infer_fail(graph, node, "takes an image [n, c, h, w]: " STR_FMT, STR_ARG(show_operand(graph, node, 0)));
    if (!check_window(graph, node))
        return false;

    Window window = window_of(n, &x->shape, NULL);
    Shape shape = x->shape;
    shape.dim[2] = window.out[0];
    shape.dim[3] = window.out[1];
    return set_result(graph, node, 0, x->dtype, &shape, x->layout);
}

void eval_pool(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    (void)graph, (void)node, (void)in, (void)out;
}
