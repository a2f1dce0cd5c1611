/* Scales of weights that stay narrow (widen.h), brought behind the contraction that reads them.
 *
 *     x @ (f32(w) * s)               ->  (x @ f32(w)) * s                   s per column, or a scalar
 *     conv2d(x, f32(w) * s, b)       ->  conv2d(x, f32(w)) * s + b          s per output channel, or a scalar
 *     conv2d(x / 255, f32(w), b)     ->  conv2d(x, f32(w)) / 255 + b        a scalar
 *     f32(i32(w) - i32(z))           ->  f32(w) - f32(z)                    of integers that f32 has: exact
 *     f32(i32(w) - 128)              ->  f32(w) - 128.0
 *     f32(w) @ x                     ->  matmul(x, f32(w), transpose_y)     of a vector x
 *
 * A product of each weight becomes one of each result.  Scales of blocks of the summed axis stay where they are. */
#include "ir/attr.h"
#include "ops/meaning.h"
#include "passes/integers_floats.h"
#include "passes/simplify.h"
#include "passes/widen.h"

bool simplify_widens(const Rewriter *rw, ValueId v)
{
    return widen_is(rw->graph, rw->constant, v);
}

/* Dimension of the weights that the result has too: columns, output channels. */
static uint32_t kept_dimension(const Rewriter *rw, const Node *node)
{
    uint32_t rank = value_shape(rw->graph, node->in[1])->rank;
    if (node_is_convolution(node))
        return 0;
    return attr_bool(node, "transpose_y") ? rank - 2 : rank - 1;
}

/* Is it one number for each position of the dimension of weights of this rank, or one for all? */
static bool runs_along(const Shape *scale, uint32_t rank, uint32_t dimension)
{
    for (uint32_t i = 0; i < scale->rank; i++)
        if (scale->dim[i] != 1 && i + rank - scale->rank != dimension)
            return false;
    return scale->rank <= rank;
}

/* [channels] as it broadcasts along the channels of the result: [channels, 1, 1] of an image. */
static ValueId along_result(Rewriter *rw, ValueId v, uint32_t trailing)
{
    int64_t elements = shape_elements(value_shape(rw->graph, v));
    Shape shape = {.rank = elements == 1 ? 0 : 1 + trailing, .dim = {elements}};
    for (uint32_t d = 1; d < shape.rank; d++)
        shape.dim[d] = 1;
    return rewrite_reshape(rw, v, &shape);
}

ValueId simplify_scale_result(Rewriter *rw, const Node *node, const ValueId in[2], OpCode op, ValueId scale)
{
    bool conv = node_is_convolution(node);
    uint32_t trailing = conv ? value_shape(rw->graph, node->in[1])->rank - 2 : 0;
    ValueId bias = node->in_count > 2 ? node->in[2] : NONE;
    ValueId sum = rewrite_build(rw, node->op, in, 2, node->attr);
    sum = rewrite_build2(rw, op, sum, along_result(rw, scale, trailing));
    return bias == NONE ? sum : rewrite_build2(rw, OP_ADD, sum, along_result(rw, bias, trailing));
}

/* Weights come second, where contractions look for them. */
static ValueId vector_first(Rewriter *rw, const Node *node)
{
    ValueId in[] = {node->in[1], node->in[0]};
    if (node->op != OP_MATMUL || attr_bool(node, "transpose_y") || value_shape(rw->graph, in[0])->rank != 1 ||
        value_shape(rw->graph, in[1])->rank != 2 || !simplify_widens(rw, in[1]))
        return NONE;
    return rewrite_build(rw, OP_MATMUL, in, 2, &(Attr){.i = true});
}

ValueId simplify_scaled_weights(Rewriter *rw, const Node *node)
{
    ValueId turned = vector_first(rw, node);
    if (turned != NONE)
        return turned;
    const Node *scaled = value_producer(rw->graph, node->in[1]);
    uint32_t rank = value_shape(rw->graph, node->in[1])->rank;
    if (!scaled || (scaled->op != OP_MUL && scaled->op != OP_DIV) || rank < 2)
        return NONE;
    for (int side = 1; side >= (scaled->op == OP_DIV); side--) {
        ValueId scale = scaled->in[side], in[] = {node->in[0], scaled->in[1 - side]};
        if (value_type(rw->graph, in[1]) == value_type(rw->graph, node->in[1]) && rewrite_constant(rw, scale) &&
            runs_along(value_shape(rw->graph, scale), rank, kept_dimension(rw, node)) && simplify_widens(rw, in[1]))
            return simplify_scale_result(rw, node, in, scaled->op, scale);
    }
    return NONE;
}

static bool is_narrow_integer(const Rewriter *rw, ValueId v)
{
    const Node *cast = simplify_producer(rw, v, OP_CAST);
    DType dtype = cast ? value_type(rw->graph, cast->in[0])->dtype : DT_F32;
    return dtype_is_int(dtype) && widen_is_narrow(dtype);
}

/* Of images only what is surely no slower. */
static bool is_narrow_difference(const Rewriter *rw, ValueId v)
{
    const Node *node = value_producer(rw->graph, v);
    return node && (node->op == OP_SUB || node->op == OP_ADD) && value_type(rw->graph, v)->dtype == DT_I32 &&
           is_narrow_integer(rw, node->in[0]) && is_narrow_integer(rw, node->in[1]);
}

ValueId simplify_widened_difference(Rewriter *rw, const Node *cast)
{
    ValueId x = cast->in[0];
    if (value_type(rw->graph, cast->out[0])->dtype != DT_F32 ||
        !(rewrite_constant(rw, x) || is_narrow_difference(rw, x)) || !integers_go_deeper(rw, x))
        return NONE;
    return integers_as_floats(rw, x);
}
