/* Contractions: matmul and conv2d.  Inference; contract_form.c says what they are, contract_eval.c evaluates. */
#include "ops/contract.h"

#include "ir/attr.h"
#include "ops/families.h"
#include "ops/window.h"

static bool infer_matmul(Graph *graph, NodeId node)
{
    const Shape *x = infer_in_shape(graph, node, 0), *y = infer_in_shape(graph, node, 1);
    Product product;
    Shape shape;

    if (!infer_check_class(graph, node, 0, CLASS_NUMBER) || !infer_check_same_dtype(graph, node, 0, 1))
        return false;
    if (x->rank == 0 || y->rank == 0)
        return infer_fail(graph, node, "takes at least one dimension: " STR_FMT,
                          STR_ARG(infer_show_operands(graph, node)));
    if (!product_of_matmul(&graph->node[node], x, y, &product, &shape)) {
        int64_t inner = y->dim[y->rank == 1 || product.transposed ? y->rank - 1 : y->rank - 2];
        return infer_fail(graph, node, "%s: " STR_FMT "%s",
                          inner != product.depth ? "inner extents differ" : "leading dimensions do not broadcast",
                          STR_ARG(infer_show_operands(graph, node)), product.transposed ? " (transposed)" : "");
    }
    if (product.has_rows) /* leading dimensions are two short of MAX_RANK at least */
        shape.dim[shape.rank++] = product.rows;
    if (product.has_columns)
        shape.dim[shape.rank++] = product.columns;
    return infer_set_plain(graph, node, 0, infer_in_type(graph, node, 0)->dtype, &shape);
}

static bool check_conv_operands(Graph *graph, NodeId node)
{
    uint32_t count = graph->node[node].in_count;

    if (!infer_check_class(graph, node, 0, CLASS_NUMBER) || !infer_check_same_dtype(graph, node, 0, 1) ||
        (count > 2 && !infer_check_same_dtype(graph, node, 0, 2)))
        return false;
    if (infer_in_shape(graph, node, 0)->rank != 4)
        return infer_fail(graph, node, "takes an image [n, c, h, w]: " STR_FMT,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    if (infer_in_shape(graph, node, 1)->rank != 4)
        return infer_fail(graph, node, "takes a weight [o, c / groups, kh, kw]: " STR_FMT,
                          STR_ARG(infer_show_operand(graph, node, 1)));
    if (infer_in_type(graph, node, 1)->layout.block)
        return infer_fail(graph, node, "takes a plain weight: " STR_FMT, STR_ARG(infer_show_operand(graph, node, 1)));
    return true;
}

static bool check_conv_channels(Graph *graph, NodeId node)
{
    const Shape *x = infer_in_shape(graph, node, 0), *weight = infer_in_shape(graph, node, 1);
    int64_t groups = attr_int(&graph->node[node], "groups");
    Str operands = infer_show_operands(graph, node);

    if (groups < 1)
        return infer_fail(graph, node, "`groups` must be at least 1, not %lld", (long long)groups);
    if (x->dim[1] % groups)
        return infer_fail(graph, node, "%lld groups do not divide %lld channels: " STR_FMT, (long long)groups,
                          (long long)x->dim[1], STR_ARG(operands));
    if (weight->dim[0] % groups)
        return infer_fail(graph, node, "%lld groups do not divide %lld output channels: " STR_FMT, (long long)groups,
                          (long long)weight->dim[0], STR_ARG(operands));
    if (weight->dim[1] != x->dim[1] / groups)
        return infer_fail(graph, node, "the weight takes %lld channels, the image has %lld%s: " STR_FMT,
                          (long long)weight->dim[1], (long long)(x->dim[1] / groups), groups > 1 ? " per group" : "",
                          STR_ARG(operands));
    if (graph->node[node].in_count > 2) {
        const Shape *bias = infer_in_shape(graph, node, 2);
        if (bias->rank != 1 || bias->dim[0] != weight->dim[0])
            return infer_fail(graph, node, "takes a bias of %lld numbers: " STR_FMT, (long long)weight->dim[0],
                              STR_ARG(infer_show_operand(graph, node, 2)));
    }
    return true;
}

static bool infer_convolution(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    const Shape *weight = infer_in_shape(graph, node, 1);
    if (!check_conv_operands(graph, node) || !check_conv_channels(graph, node) ||
        !window_check(graph, node, &x->shape, weight))
        return false;

    Convolution conv = convolution_with(&graph->node[node], &x->shape, weight);
    Shape shape = {2 + conv.window.rank, {conv.images, conv.outputs}};
    for (uint32_t d = 0; d < conv.window.rank; d++)
        shape.dim[2 + d] = conv.window.dim[d].out;
    return infer_set_result(graph, node, 0, x->dtype, &shape, x->layout);
}

bool infer_contract(Graph *graph, NodeId node)
{
    return graph->node[node].op == OP_MATMUL ? infer_matmul(graph, node) : infer_convolution(graph, node);
}
