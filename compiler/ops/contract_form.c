/* The normal form of contractions: matmul and convolutions as axes and affine accesses, and two narrower views of them,
 * as products of matrices and as convolutions. */
#include "ops/contract.h"

#include "ir/attr.h"
#include "ops/window.h"

bool node_is_contraction(const Graph *graph, const Node *node)
{
    (void)graph;
    return op_info(node->op)->family == FAMILY_CONTRACT;
}

int64_t contraction_extent(const Contraction *contraction, AxisRole role)
{
    int64_t extent = 1;
    for (uint32_t a = 0; a < contraction->axis_count; a++)
        extent *= contraction->axis[a].role == role ? contraction->axis[a].extent : 1;
    return extent;
}

/* Building */

static uint32_t add_axis(Contraction *c, AxisRole role, int64_t extent)
{
    c->axis[c->axis_count] = (Axis){role, extent};
    return c->axis_count++;
}

static void open_access(Access *access, uint32_t rank)
{
    access->rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        access->divisor[d] = 1;
}

static bool reads_outside(const Access *access, const Axis *axis, uint32_t axis_count, uint32_t d, int64_t extent)
{
    int64_t low = access->begin[d], high = access->begin[d];
    for (uint32_t a = 0; a < axis_count; a++) {
        int64_t far = access->factor[d][a] * (axis[a].extent - 1);
        low += far < 0 ? far : 0;
        high += far > 0 ? far : 0;
    }
    return access->divisor[d] > 1 || low < 0 || high >= extent;
}

void contraction_guard(Access *access, const Axis *axis, uint32_t axis_count, const Shape *shape)
{
    for (uint32_t d = 0; d < access->rank; d++)
        access->guarded[d] = reads_outside(access, axis, axis_count, d, shape->dim[d]);
}

/* Matmul: NumPy's, with leading dimensions broadcast and rank 1 promoted. */

bool product_of_matmul(const Node *matmul, const Shape *x, const Shape *y, Product *product, Shape *batch)
{
    uint32_t xr = x->rank, yr = y->rank;
    bool transposed = attr_bool(matmul, "transpose_y") && yr > 1;
    Shape x_batch = shape_of(xr > 1 ? xr - 2 : 0, x->dim), y_batch = shape_of(yr > 1 ? yr - 2 : 0, y->dim);

    *product = (Product){.has_rows = xr > 1, .has_columns = yr > 1, .transposed = transposed};
    product->rows = xr > 1 ? x->dim[xr - 2] : 1;
    product->depth = x->dim[xr - 1];
    product->columns = yr > 1 ? y->dim[transposed ? yr - 2 : yr - 1] : 1;
    if (y->dim[yr == 1 || transposed ? yr - 1 : yr - 2] != product->depth ||
        !shape_broadcast(&x_batch, &y_batch, batch))
        return false;
    product->batch_rank = batch->rank;
    return true;
}

/* Of an operand: its leading dimensions are the last of the batch, or repeated; then come `first` and `second`, which
 * are axes or NONE. */
static void read_matrix(Access *access, const Shape *shape, uint32_t batch_rank, uint32_t first, uint32_t second)
{
    uint32_t own = (first != NONE) + (second != NONE), leading = shape->rank - own, d = leading;
    open_access(access, shape->rank);
    for (uint32_t i = 0; i < leading; i++)
        access->factor[i][batch_rank - leading + i] = shape->dim[i] != 1;
    if (first != NONE)
        access->factor[d++][first] = 1;
    if (second != NONE)
        access->factor[d][second] = 1;
}

static Contraction matmul_contraction(const Product *p, const Shape *batch, const Shape *x, const Shape *y)
{
    Contraction c = {0};
    for (uint32_t d = 0; d < batch->rank; d++)
        add_axis(&c, AXIS_BATCH, batch->dim[d]);
    uint32_t row = p->has_rows ? add_axis(&c, AXIS_ROW, p->rows) : NONE;
    uint32_t column = p->has_columns ? add_axis(&c, AXIS_COLUMN, p->columns) : NONE;
    uint32_t k = add_axis(&c, AXIS_SUM, p->depth);

    read_matrix(&c.first, x, batch->rank, row, k);
    read_matrix(&c.second, y, batch->rank, p->transposed ? column : k, p->transposed ? k : column);
    open_access(&c.result, batch->rank + p->has_rows + p->has_columns);
    for (uint32_t d = 0; d < c.result.rank; d++)
        c.result.factor[d][d] = 1;
    return c;
}

/* Convolution */

static const OpCode convolutions[][3] = {
    [CONVOLVES_TO_RESULT] = {OP_CONV1D, OP_CONV2D, OP_CONV3D},
    [CONVOLVES_TO_IMAGE] = {OP_CONV1D_TRANSPOSE, OP_CONV2D_TRANSPOSE, OP_CONV3D_TRANSPOSE},
    [CONVOLVES_TO_WEIGHT] = {OP_CONV1D_WEIGHT_GRADIENT, OP_CONV2D_WEIGHT_GRADIENT, OP_CONV3D_WEIGHT_GRADIENT},
};

OpCode convolution_op(ConvolutionKind kind, uint32_t rank)
{
    return convolutions[kind][rank - 1];
}

static ConvolutionKind find_convolution(OpCode op, uint32_t *rank)
{
    for (ConvolutionKind kind = CONVOLVES_TO_RESULT; kind <= CONVOLVES_TO_WEIGHT; kind++)
        for (*rank = 1; *rank <= 3; ++*rank)
            if (op == convolution_op(kind, *rank))
                return kind;
    return CONVOLVES_NOT;
}

ConvolutionKind convolution_kind(const Node *node)
{
    uint32_t rank;
    return find_convolution(node->op, &rank);
}

uint32_t convolution_rank(const Node *node)
{
    uint32_t rank;
    find_convolution(node->op, &rank);
    return rank;
}

bool node_is_convolution(const Node *node)
{
    return convolution_kind(node) == CONVOLVES_TO_RESULT;
}

Convolution convolution_with(const Node *node, const Shape *image, const Shape *weight)
{
    return (Convolution){.window = window_of(node, image, weight),
                         .images = image->dim[0],
                         .groups = attr_int(node, "groups"),
                         .channels = image->dim[1],
                         .outputs = weight->dim[0]};
}

Contraction convolution_contraction(const Convolution *conv)
{
    const Window *w = &conv->window;
    int64_t channels = conv->channels / conv->groups, outputs = conv->outputs / conv->groups;
    Contraction c = {0};
    uint32_t image = add_axis(&c, AXIS_BATCH, conv->images);
    uint32_t group = add_axis(&c, AXIS_BATCH, conv->groups), output = add_axis(&c, AXIS_COLUMN, outputs);
    uint32_t pixel = c.axis_count;
    for (uint32_t d = 0; d < w->rank; d++)
        add_axis(&c, AXIS_ROW, w->dim[d].out);
    uint32_t channel = add_axis(&c, AXIS_SUM, channels), tap = c.axis_count;
    for (uint32_t d = 0; d < w->rank; d++)
        add_axis(&c, AXIS_TAP, w->dim[d].size);

    Shape shape = {2 + w->rank, {conv->images, conv->channels}};
    open_access(&c.first, 2 + w->rank);
    open_access(&c.second, 2 + w->rank);
    open_access(&c.result, 2 + w->rank);
    c.first.factor[0][image] = c.result.factor[0][image] = 1;
    c.first.factor[1][group] = channels;
    c.second.factor[0][group] = c.result.factor[1][group] = outputs;
    c.second.factor[0][output] = c.result.factor[1][output] = 1;
    c.first.factor[1][channel] = c.second.factor[1][channel] = 1;
    for (uint32_t d = 0; d < w->rank; d++) {
        c.first.begin[2 + d] = -w->dim[d].before;
        c.first.factor[2 + d][pixel + d] = w->dim[d].stride;
        c.first.factor[2 + d][tap + d] = w->dim[d].dilation;
        c.second.factor[2 + d][tap + d] = c.result.factor[2 + d][pixel + d] = 1;
        shape.dim[2 + d] = w->dim[d].in;
    }
    contraction_guard(&c.first, c.axis, c.axis_count, &shape);
    return c;
}

/* Its transpose: an element of the image is a sum over the windows that see it.  At a tap that is the window which
 * begins (pixel + before - dilation * tap) / stride, if that is one. */
Contraction convolution_to_image(const Convolution *conv)
{
    const Window *w = &conv->window;
    int64_t channels = conv->channels / conv->groups, outputs = conv->outputs / conv->groups;
    Contraction c = {0};
    uint32_t image = add_axis(&c, AXIS_BATCH, conv->images);
    uint32_t group = add_axis(&c, AXIS_BATCH, conv->groups), channel = add_axis(&c, AXIS_COLUMN, channels);
    uint32_t pixel = c.axis_count;
    for (uint32_t d = 0; d < w->rank; d++)
        add_axis(&c, AXIS_ROW, w->dim[d].in);
    uint32_t output = add_axis(&c, AXIS_SUM, outputs), tap = c.axis_count;
    for (uint32_t d = 0; d < w->rank; d++)
        add_axis(&c, AXIS_TAP, w->dim[d].size);

    Shape shape = {2 + w->rank, {conv->images, conv->outputs}};
    open_access(&c.first, 2 + w->rank);
    open_access(&c.second, 2 + w->rank);
    open_access(&c.result, 2 + w->rank);
    c.first.factor[0][image] = c.result.factor[0][image] = 1;
    c.first.factor[1][group] = c.second.factor[0][group] = outputs;
    c.first.factor[1][output] = c.second.factor[0][output] = 1;
    c.result.factor[1][group] = channels;
    c.result.factor[1][channel] = c.second.factor[1][channel] = 1;
    for (uint32_t d = 0; d < w->rank; d++) {
        c.first.begin[2 + d] = w->dim[d].before;
        c.first.factor[2 + d][pixel + d] = 1;
        c.first.factor[2 + d][tap + d] = -w->dim[d].dilation;
        c.first.divisor[2 + d] = w->dim[d].stride;
        c.second.factor[2 + d][tap + d] = c.result.factor[2 + d][pixel + d] = 1;
        shape.dim[2 + d] = w->dim[d].out;
    }
    contraction_guard(&c.first, c.axis, c.axis_count, &shape);
    return c;
}

/* What a weight is to be multiplied by, summed over images and windows. */
Contraction convolution_to_weight(const Convolution *conv)
{
    const Window *w = &conv->window;
    int64_t channels = conv->channels / conv->groups, outputs = conv->outputs / conv->groups;
    Contraction c = {0};
    uint32_t group = add_axis(&c, AXIS_BATCH, conv->groups), output = add_axis(&c, AXIS_COLUMN, outputs);
    uint32_t channel = add_axis(&c, AXIS_ROW, channels), tap = c.axis_count;
    for (uint32_t d = 0; d < w->rank; d++)
        add_axis(&c, AXIS_ROW, w->dim[d].size);
    uint32_t image = add_axis(&c, AXIS_SUM, conv->images), pixel = c.axis_count;
    for (uint32_t d = 0; d < w->rank; d++)
        add_axis(&c, AXIS_SUM, w->dim[d].out);

    Shape shape = {2 + w->rank, {conv->images, conv->channels}};
    open_access(&c.first, 2 + w->rank);
    open_access(&c.second, 2 + w->rank);
    open_access(&c.result, 2 + w->rank);
    c.first.factor[0][image] = c.second.factor[0][image] = 1;
    c.first.factor[1][group] = channels;
    c.second.factor[1][group] = c.result.factor[0][group] = outputs;
    c.second.factor[1][output] = c.result.factor[0][output] = 1;
    c.first.factor[1][channel] = c.result.factor[1][channel] = 1;
    for (uint32_t d = 0; d < w->rank; d++) {
        c.first.begin[2 + d] = -w->dim[d].before;
        c.first.factor[2 + d][pixel + d] = w->dim[d].stride;
        c.first.factor[2 + d][tap + d] = w->dim[d].dilation;
        c.second.factor[2 + d][pixel + d] = c.result.factor[2 + d][tap + d] = 1;
        shape.dim[2 + d] = w->dim[d].in;
    }
    contraction_guard(&c.first, c.axis, c.axis_count, &shape);
    return c;
}

/* Of nodes */

static const Shape *operand_shape(const Graph *graph, const Node *node, uint32_t i)
{
    return value_shape(graph, node->in[i]);
}

Convolution convolution_relating(const Graph *graph, const Node *node)
{
    const Shape *x = operand_shape(graph, node, 0), *y = operand_shape(graph, node, 1);
    const Shape *result = value_shape(graph, node->out[0]);
    ConvolutionKind kind = convolution_kind(node);
    return kind == CONVOLVES_TO_IMAGE    ? convolution_with(node, result, y)
           : kind == CONVOLVES_TO_WEIGHT ? convolution_with(node, x, result)
                                         : convolution_with(node, x, y);
}

bool convolution_of(const Graph *graph, const Node *node, Convolution *convolution)
{
    if (!node_is_convolution(node))
        return false;
    *convolution = convolution_with(node, operand_shape(graph, node, 0), operand_shape(graph, node, 1));
    return true;
}

#define MOST_JOINED 8 /* groups: of all products with their weights one in so many counts */
#define FEW_JOINED  2

/* Do neighbours along a row fill vectors? */
static bool has_long_rows(const Convolution *convolution, int64_t lanes)
{
    const WindowDimension *w = &convolution->window.dim[convolution->window.rank - 1];
    return w->stride == 1 && w->out - w->before - w->after >= lanes;
}

int64_t convolution_joined_groups(const Convolution *convolution, int64_t lanes)
{
    if (convolution->groups == 1)
        return 1;
    int64_t channels = convolution->channels / convolution->groups,
            outputs = convolution->outputs / convolution->groups;
    if (outputs >= lanes || outputs == 0)
        return outputs > 0;
    int64_t joined = lanes / outputs;
    if (joined > (has_long_rows(convolution, lanes) ? FEW_JOINED : MOST_JOINED))
        return 0;
    if (lanes % outputs == 0 && convolution->groups % joined == 0 && channels <= lanes)
        return joined;
    return 2 * outputs >= lanes;
}

bool convolution_weight_gradient_of(const Graph *graph, const Node *node, Convolution *convolution)
{
    if (convolution_kind(node) != CONVOLVES_TO_WEIGHT)
        return false;
    *convolution = convolution_relating(graph, node);
    return true;
}

bool convolution_transposed_of(const Graph *graph, const Node *node, Convolution *convolution)
{
    if (convolution_kind(node) != CONVOLVES_TO_IMAGE)
        return false;
    *convolution = convolution_relating(graph, node);
    return true;
}

bool product_of(const Graph *graph, const Node *node, Product *product)
{
    Shape batch;
    return node->op == OP_MATMUL &&
           product_of_matmul(node, operand_shape(graph, node, 0), operand_shape(graph, node, 1), product, &batch);
}

Contraction contraction_of(const Graph *graph, const Node *node)
{
    const Shape *x = operand_shape(graph, node, 0), *y = operand_shape(graph, node, 1);
    DType dtype = value_type(graph, node->in[0])->dtype;
    Contraction c;
    if (node->op == OP_MATMUL) {
        Product product;
        Shape batch = {0};
        product_of_matmul(node, x, y, &product, &batch);
        c = matmul_contraction(&product, &batch, x, y);
    } else {
        Convolution convolution = convolution_relating(graph, node);
        ConvolutionKind kind = convolution_kind(node);
        c = kind == CONVOLVES_TO_IMAGE    ? convolution_to_image(&convolution)
            : kind == CONVOLVES_TO_WEIGHT ? convolution_to_weight(&convolution)
                                          : convolution_contraction(&convolution);
        c.has_bias = node->in_count > 2;
        c.bias_dimension = 1;
    }
    c.element = dtype;
    c.sum = reduction_accumulator(dtype);
    return c;
}
