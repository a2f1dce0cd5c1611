/* What stands before a contraction.
 *
 *     conv2d(x / 255, w)              ->  conv2d(x, w / 255)          a scalar, or one number per channel [c, 1, 1]
 *     (x * s) @ w                     ->  x @ (w * s)                 a scalar, or one number per row of w: [k]
 *     conv2d(pad(x), w, pad = p)      ->  conv2d(x, w, pad = p + q)   zeros around [h, w]
 *     x @ transpose(y)                ->  matmul(x, y, transpose_y)   the last two dimensions exchanged, no others
 *     y @ x                           ->  matmul(x, y, transpose_y)   a matrix by one vector, which recipes take first
 *
 * Scales move only from a value that nothing else uses into constant weights; zeros of the padding are zeros under any
 * scale.  A shift (x - mean) stays: the padding of what it gives is not zero. */
#include "passes/simplify.h"

#include <string.h>

#include "ir/attr.h"
#include "ops/meaning.h"
#include "ops/view.h"
#include "passes/integers.h"

static bool is_scalable(const Rewriter *rw, ValueId v)
{
    DType dtype = value_type(rw->graph, v)->dtype;
    return dtype == DT_F32 || dtype == DT_F64;
}

/* x scaled by a constant, for this user only unless x is as good to others; the side of the scale. */
static const Node *scaled_operand(const Rewriter *rw, ValueId v, int *side)
{
    const Node *node = value_producer(rw->graph, v);
    if (!node || (node->op != OP_MUL && node->op != OP_DIV) ||
        !(rewrite_used_once(rw, v) || integers_are_narrow(rw->graph, node->in[0])))
        return NULL;
    for (*side = 1; *side >= (node->op == OP_DIV); --*side)
        if (rewrite_constant(rw, node->in[*side]) &&
            value_type(rw->graph, node->in[1 - *side]) == value_type(rw->graph, v))
            return node;
    return NULL;
}

/* One number per position of dimension `axis` of a tensor of `rank` dimensions, or a scalar. */
static bool runs_along(const Shape *scale, uint32_t rank, uint32_t axis)
{
    for (uint32_t i = 0; i < scale->rank; i++)
        if (scale->dim[i] != 1 && i + rank != axis + scale->rank)
            return false;
    return scale->rank <= rank;
}

/* The scale as dimension `position` of `rank`, counted from the last. */
static ValueId place_scale(Rewriter *rw, ValueId scale, uint32_t from_last)
{
    int64_t elements = shape_elements(value_shape(rw->graph, scale));
    Shape shape = {.rank = elements == 1 ? 0 : from_last + 1};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = i ? 1 : elements;
    return rewrite_reshape(rw, scale, &shape);
}

static ValueId rebuild(Rewriter *rw, const Node *node, ValueId x, ValueId weights)
{
    ValueId in[3];
    memcpy(in, node->in, node->in_count * sizeof *in);
    in[0] = x;
    in[1] = weights;
    return rewrite_build(rw, node->op, in, node->in_count, node->attr);
}

/* Which dimension of the weights, from the last, meets dimension `axis` of x; that axis is summed over. */
static void summed_axis(const Rewriter *rw, const Node *node, uint32_t *axis, uint32_t *from_last)
{
    bool conv = node_is_convolution(node);
    bool vector = value_shape(rw->graph, node->in[1])->rank == 1;
    *axis = conv ? 1 : value_shape(rw->graph, node->in[0])->rank - 1;
    *from_last = conv ? value_shape(rw->graph, node->in[1])->rank - 2 : !vector && !attr_bool(node, "transpose_y");
}

static ValueId absorb_scale(Rewriter *rw, const Node *node)
{
    int side;
    uint32_t axis, from_last;
    ValueId x = node->in[0], weights = node->in[1];
    const Node *scaled = scaled_operand(rw, x, &side);
    if (!scaled || !is_scalable(rw, x) || !rewrite_constant(rw, weights) || !rewrite_used_once(rw, weights))
        return NONE;

    OpCode op = scaled->op;
    ValueId unscaled = scaled->in[1 - side], scale = scaled->in[side];
    bool single = shape_elements(value_shape(rw->graph, scale)) == 1;
    if (simplify_widens(rw, weights))
        return single ? simplify_scale_result(rw, node, (ValueId[]){unscaled, weights}, op, scale) : NONE;
    bool grouped = node_is_convolution(node) && attr_int(node, "groups") != 1;
    summed_axis(rw, node, &axis, &from_last);
    if (!single && (grouped || !runs_along(value_shape(rw->graph, scale), value_shape(rw->graph, x)->rank, axis)))
        return NONE;
    scale = place_scale(rw, scale, from_last);
    return rebuild(rw, node, unscaled, simplify_scale_weights(rw, weights, op, scale));
}

/* reshape(x / 255) @ w: one number for all commutes with a view, so the scale is moved behind it and met there. */
static ValueId scale_behind_view(Rewriter *rw, const Node *node)
{
    int side;
    const Node *view = value_producer(rw->graph, node->in[0]);
    if (!view || (view->op != OP_RESHAPE && view->op != OP_TRANSPOSE) || !rewrite_used_once(rw, node->in[0]) ||
        !is_scalable(rw, node->in[0]) || !rewrite_constant(rw, node->in[1]) || !rewrite_used_once(rw, node->in[1]) ||
        simplify_widens(rw, node->in[1]))
        return NONE;
    const Node *scaled = scaled_operand(rw, view->in[0], &side);
    if (!scaled || shape_elements(value_shape(rw->graph, scaled->in[side])) != 1)
        return NONE;

    OpCode view_op = view->op, op = scaled->op;
    const Attr *attr = view->attr;
    ValueId unscaled = scaled->in[1 - side], scale = place_scale(rw, scaled->in[side], 0);
    ValueId viewed = rewrite_build(rw, view_op, &unscaled, 1, attr);
    return rebuild(rw, node, viewed, simplify_scale_weights(rw, node->in[1], op, scale));
}

static ValueId absorb_padding(Rewriter *rw, const Node *node)
{
    const Node *pad = simplify_producer(rw, node->in[0], OP_PAD);
    int64_t before[MAX_RANK], after[MAX_RANK], sum[2 * MAX_RANK];
    Convolution conv;
    Attr attr[4];
    if (!pad || !rewrite_used_once(rw, node->in[0]) || attr_float(pad, "value") != 0)
        return NONE;
    convolution_of(rw->graph, node, &conv);
    uint32_t rank = conv.window.rank;
    attr_ints(pad, "before", 2 + rank, before);
    attr_ints(pad, "after", 2 + rank, after);
    if (before[0] || before[1] || after[0] || after[1])
        return NONE;

    for (uint32_t d = 0; d < rank; d++) {
        sum[d] = conv.window.dim[d].before + before[2 + d];
        sum[rank + d] = conv.window.dim[d].after + after[2 + d];
    }
    memcpy(attr, node->attr, sizeof attr);
    attr[attr_index(node->op, STR("pad"))] = (Attr){.i = 2 * rank, .ints = sum};
    ValueId in[3];
    memcpy(in, node->in, node->in_count * sizeof *in);
    in[0] = pad->in[0];
    return rewrite_build(rw, node->op, in, node->in_count, attr);
}

static ValueId absorb_transpose(Rewriter *rw, const Node *node)
{
    const Node *transpose = simplify_producer(rw, node->in[1], OP_TRANSPOSE);
    uint32_t rank = value_shape(rw->graph, node->in[1])->rank, axes[MAX_RANK];
    if (!transpose || rank < 2)
        return NONE;
    view_permutation(transpose, rank, axes);
    for (uint32_t i = 0; i < rank; i++)
        if (axes[i] != (i + 2 < rank ? i : 2 * rank - 3 - i))
            return NONE;
    Attr attr = {.i = !attr_bool(node, "transpose_y")};
    ValueId in[] = {node->in[0], transpose->in[0]};
    return rewrite_build(rw, OP_MATMUL, in, 2, &attr);
}

static ValueId vector_first(Rewriter *rw, const Node *node)
{
    Attr transposed = {.i = true};
    ValueId in[] = {node->in[1], node->in[0]};
    bool vector = value_shape(rw->graph, in[0])->rank == 1 && value_shape(rw->graph, in[1])->rank == 2;
    return vector ? rewrite_build(rw, OP_MATMUL, in, 2, &transposed) : NONE;
}

ValueId simplify_contract(Rewriter *rw, const Node *node)
{
    bool conv = node_is_convolution(node);
    if (!conv && node->op != OP_MATMUL)
        return NONE;
    ValueId by = conv ? absorb_padding(rw, node) : absorb_transpose(rw, node);
    by = by == NONE && !conv ? vector_first(rw, node) : by;
    by = by == NONE ? simplify_scaled_weights(rw, node) : by;
    by = by == NONE ? absorb_scale(rw, node) : by;
    return by == NONE ? scale_behind_view(rw, node) : by;
}
