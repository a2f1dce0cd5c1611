/* Contractions: matmul and convolutions.  Inference; contract_form.c says what they are, contract_eval.c evaluates. */
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

/* By the number of spatial dimensions. */
static const char *const extents[] = {NULL, "w", "h, w", "d, h, w"}, *const taps[] = {NULL, "kw", "kh, kw",
                                                                                      "kd, kh, kw"};

static bool check_conv_operands(Graph *graph, NodeId node)
{
    uint32_t count = graph->node[node].in_count;

    if (!infer_check_class(graph, node, 0, CLASS_NUMBER) || !infer_check_same_dtype(graph, node, 0, 1) ||
        (count > 2 && !infer_check_same_dtype(graph, node, 0, 2)))
        return false;
    uint32_t rank = convolution_rank(&graph->node[node]);
    if (infer_in_shape(graph, node, 0)->rank != 2 + rank)
        return infer_fail(graph, node, "takes an image [n, c, %s]: " STR_FMT, extents[rank],
                          STR_ARG(infer_show_operand(graph, node, 0)));
    if (infer_in_shape(graph, node, 1)->rank != 2 + rank)
        return infer_fail(graph, node, "takes a weight [o, c / groups, %s]: " STR_FMT, taps[rank],
                          STR_ARG(infer_show_operand(graph, node, 1)));
    if (infer_in_type(graph, node, 1)->layout.block)
        return infer_fail(graph, node, "takes a plain weight: " STR_FMT, STR_ARG(infer_show_operand(graph, node, 1)));
    return true;
}

static bool check_conv_channels(Graph *graph, NodeId node)
{
    const Shape *x = infer_in_shape(graph, node, 0), *weight = infer_in_shape(graph, node, 1);
    int64_t groups = attr_int(&graph->node[node], "groups");

    if (groups < 1)
        return infer_fail(graph, node, "`groups` must be at least 1, not %lld", (long long)groups);
    if (x->dim[1] % groups)
        return infer_fail(graph, node, "%lld groups do not divide %lld channels: " STR_FMT, (long long)groups,
                          (long long)x->dim[1], STR_ARG(infer_show_operands(graph, node)));
    if (weight->dim[0] % groups)
        return infer_fail(graph, node, "%lld groups do not divide %lld output channels: " STR_FMT, (long long)groups,
                          (long long)weight->dim[0], STR_ARG(infer_show_operands(graph, node)));
    if (weight->dim[1] != x->dim[1] / groups)
        return infer_fail(graph, node, "the weight takes %lld channels, the image has %lld%s: " STR_FMT,
                          (long long)weight->dim[1], (long long)(x->dim[1] / groups), groups > 1 ? " per group" : "",
                          STR_ARG(infer_show_operands(graph, node)));
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

/* What the gradients of a convolution, and transposed convolutions, have in common. */
static bool check_images(Graph *graph, NodeId node)
{
    uint32_t rank = 2 + convolution_rank(&graph->node[node]);
    if (!infer_check_class(graph, node, 0, CLASS_NUMBER))
        return false;
    for (uint32_t i = 0; i < graph->node[node].in_count; i++) {
        if (!infer_check_same_dtype(graph, node, 0, i))
            return false;
        if (i < 2 && infer_in_shape(graph, node, i)->rank != rank)
            return infer_fail(graph, node, "takes tensors of %u dimensions: " STR_FMT, rank,
                              STR_ARG(infer_show_operand(graph, node, i)));
    }
    return true;
}

static bool check_groups(Graph *graph, NodeId node, int64_t channels, int64_t outputs)
{
    int64_t groups = attr_int(&graph->node[node], "groups");
    if (groups < 1)
        return infer_fail(graph, node, "`groups` must be at least 1, not %lld", (long long)groups);
    if (channels % groups || outputs % groups)
        return infer_fail(graph, node, "%lld groups do not divide %lld channels: " STR_FMT, (long long)groups,
                          (long long)(channels % groups ? channels : outputs),
                          STR_ARG(infer_show_operands(graph, node)));
    return true;
}

static bool infer_convolution_transpose(Graph *graph, NodeId node)
{
    if (!check_images(graph, node))
        return false;
    const Shape *x = infer_in_shape(graph, node, 0), *weight = infer_in_shape(graph, node, 1);
    const Node *n = &graph->node[node];
    int64_t channels;
    if (!check_groups(graph, node, x->dim[1], weight->dim[0]))
        return false;
    if (x->dim[1] != weight->dim[0])
        return infer_fail(graph, node, "the weight takes %lld channels, the operand has %lld: " STR_FMT,
                          (long long)weight->dim[0], (long long)x->dim[1], STR_ARG(infer_show_operands(graph, node)));
    if (__builtin_mul_overflow(weight->dim[1], attr_int(n, "groups"), &channels))
        return infer_fail(graph, node, "the result would have too many elements");
    if (n->in_count > 2 &&
        (infer_in_shape(graph, node, 2)->rank != 1 || infer_in_shape(graph, node, 2)->dim[0] != channels))
        return infer_fail(graph, node, "takes a bias of %lld numbers: " STR_FMT, (long long)channels,
                          STR_ARG(infer_show_operand(graph, node, 2)));
    Shape image = {x->rank, {x->dim[0], channels}};
    return window_image(graph, node, x, weight, &image) &&
           infer_set_plain(graph, node, 0, infer_in_type(graph, node, 0)->dtype, &image);
}

static bool infer_weight_gradient(Graph *graph, NodeId node)
{
    if (!check_images(graph, node))
        return false;
    const Shape *image = infer_in_shape(graph, node, 0), *result = infer_in_shape(graph, node, 1);
    if (image->dim[0] != result->dim[0])
        return infer_fail(graph, node, "operands have different numbers of images: " STR_FMT,
                          STR_ARG(infer_show_operands(graph, node)));
    if (!check_groups(graph, node, image->dim[1], result->dim[1]) ||
        !infer_check_count(graph, node, "size", convolution_rank(&graph->node[node])) ||
        !infer_check_least(graph, node, "size", 1))
        return false;
    Shape weight = {image->rank, {result->dim[1], image->dim[1] / attr_int(&graph->node[node], "groups")}};
    attr_ints(&graph->node[node], "size", image->rank - 2, weight.dim + 2);
    if (!window_check(graph, node, image, &weight))
        return false;
    Convolution conv = convolution_with(&graph->node[node], image, &weight);
    for (uint32_t d = 0; d < conv.window.rank; d++)
        if (conv.window.dim[d].out != result->dim[2 + d])
            return infer_fail(graph, node, "dimension %u has %lld windows: " STR_FMT, 2 + d,
                              (long long)conv.window.dim[d].out, STR_ARG(infer_show_operands(graph, node)));
    return infer_set_plain(graph, node, 0, infer_in_type(graph, node, 0)->dtype, &weight);
}

bool infer_contract(Graph *graph, NodeId node)
{
    switch (convolution_kind(&graph->node[node])) {
    case CONVOLVES_TO_RESULT:
        return infer_convolution(graph, node);
    case CONVOLVES_TO_IMAGE:
        return infer_convolution_transpose(graph, node);
    case CONVOLVES_TO_WEIGHT:
        return infer_weight_gradient(graph, node);
    default:
        return infer_matmul(graph, node);
    }
}
