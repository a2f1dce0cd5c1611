/* Scales and shifts after a contraction, folded into its weights and bias.
 *
 *     conv2d(x, w, b) * s   ->  conv2d(x, w * s, b * s)      s per output channel: [o, 1, 1], or a scalar
 *     conv2d(x, w, b) + t   ->  conv2d(x, w, b + t)
 *     (x @ w) * s           ->  x @ (w * s)                  s per column: [n], or a scalar
 *     (x @ w + t) * s       ->  x @ (w * s) + t * s
 *     x @ w + t + u         ->  x @ w + (t + u)
 *     (x @ w * s + t) * u   ->  x @ w * (s * u) + t * u      of weights that stay narrow (widen.h), behind the sums
 *     (i * s + j * t) / u   ->  i * (s / u) + j * (t / u)    of narrow integers i and j, and numbers
 *
 * and so for - and /.  Batch normalisation is a chain of these and vanishes.  Conditions: the contraction's result has
 * no other user; weights and scales are constants, so that fold computes the product once; the scale repeats only along
 * dimensions other than the channels and does not enlarge the result; weights that others read too are small, for they
 * are duplicated; f32 or f64, whose rounding of the product is as small as that of the sum it replaces. */
#include "passes/simplify.h"

#include <string.h>

#include "ir/attr.h"
#include "ops/meaning.h"
#include "passes/integers.h"

#define SMALL_WEIGHTS 65536 /* bytes */

typedef struct Affine {
    OpCode op;
    ValueId product, term; /* the contraction's result, and what it is scaled or shifted by */
    bool left;             /* product op term; else term op product */
    uint32_t axis;         /* of the result: the channels or columns */
} Affine;

/* The contraction that gives v, if it may be changed for the sake of its only user. */
static const Node *contraction(const Rewriter *rw, ValueId v)
{
    const Node *node = value_producer(rw->graph, v);
    if (!node || (node->op != OP_MATMUL && !node_is_convolution(node)) || !rewrite_used_once(rw, v))
        return NULL;
    const Type *type = value_type(rw->graph, v);
    bool columns = value_shape(rw->graph, node->in[1])->rank > 1; /* x @ vector has none */
    return (type->dtype == DT_F32 || type->dtype == DT_F64) && !type->layout.block && columns ? node : NULL;
}

/* One number for each position along the axis of the result, or one for all. */
static bool is_per_channel(const Shape *term, const Shape *result, uint32_t axis)
{
    if (term->rank > result->rank)
        return false;
    for (uint32_t i = 0; i < term->rank; i++) {
        uint32_t position = result->rank - term->rank + i;
        if (term->dim[i] != 1 && (position != axis || term->dim[i] != result->dim[axis]))
            return false;
    }
    return true;
}

static bool may_scale_weights(const Rewriter *rw, ValueId weights)
{
    return rewrite_constant(rw, weights) && !simplify_widens(rw, weights) &&
           (rewrite_used_once(rw, weights) || type_bytes(value_type(rw->graph, weights)) <= SMALL_WEIGHTS);
}

/* The term as [channels], or as a scalar. */
static ValueId flat(Rewriter *rw, ValueId term)
{
    int64_t elements = shape_elements(value_shape(rw->graph, term));
    Shape shape = {.rank = elements != 1, .dim = {elements}};
    return rewrite_reshape(rw, term, &shape);
}

/* x scaled by s, then by t, as x scaled once:
 * (x * s) * t = x * (s * t), (x / s) * t = x * (t / s), (x * s) / t = x * (s / t), (x / s) / t = x / (s * t). */
static ValueId scale_once(Rewriter *rw, ValueId x, OpCode first, ValueId s, OpCode second, ValueId t)
{
    if (first == OP_MUL)
        return rewrite_build2(rw, OP_MUL, x, rewrite_build2(rw, second, s, t));
    if (second == OP_MUL)
        return rewrite_build2(rw, OP_MUL, x, rewrite_build2(rw, OP_DIV, t, s));
    return rewrite_build2(rw, OP_DIV, x, rewrite_build2(rw, OP_MUL, s, t));
}

/* The weights' earlier scale joins the new one, so that large weights are multiplied once. */
static ValueId join_scales(Rewriter *rw, ValueId weights, OpCode op, ValueId scale)
{
    const Node *inner = value_producer(rw->graph, weights);
    if (!inner || (inner->op != OP_MUL && inner->op != OP_DIV) || !rewrite_used_once(rw, weights))
        return NONE;
    ValueId w = inner->in[0], s = inner->in[1];
    OpCode first = inner->op;
    const Type *type = value_type(rw->graph, w);
    if (type != value_type(rw->graph, weights) ||
        type_bytes(value_type(rw->graph, s)) + type_bytes(value_type(rw->graph, scale)) >= type_bytes(type))
        return NONE;
    return scale_once(rw, w, first, s, op, scale);
}

ValueId simplify_scale_weights(Rewriter *rw, ValueId weights, OpCode op, ValueId scale)
{
    ValueId joined = join_scales(rw, weights, op, scale);
    return joined == NONE ? rewrite_build2(rw, op, weights, scale) : joined;
}

/* Convolution */

/* The scale so that it broadcasts along dimension 0 of weights [o, c, ...]. */
static ValueId along_outputs(Rewriter *rw, ValueId term, uint32_t rank)
{
    int64_t elements = shape_elements(value_shape(rw->graph, term));
    Shape shape = {.rank = elements == 1 ? 0 : rank, .dim = {elements}};
    for (uint32_t d = 1; d < shape.rank; d++)
        shape.dim[d] = 1;
    return rewrite_reshape(rw, term, &shape);
}

static ValueId full_bias(Rewriter *rw, ValueId flat_term, int64_t channels)
{
    Shape shape = {.rank = 1, .dim = {channels}};
    return rewrite_broadcast(rw, flat_term, &shape);
}

static ValueId shifted_bias(Rewriter *rw, const Affine *a, ValueId bias, int64_t channels)
{
    ValueId term = flat(rw, a->term);
    if (bias == NONE && (a->op == OP_ADD || !a->left))
        return full_bias(rw, term, channels);
    if (bias == NONE)
        return full_bias(rw, rewrite_build1(rw, OP_NEG, term), channels);
    return a->left ? rewrite_build2(rw, a->op, bias, term) : rewrite_build2(rw, a->op, term, bias);
}

static ValueId fold_into_conv(Rewriter *rw, const Affine *a, const Node *conv)
{
    ValueId in[3] = {conv->in[0], conv->in[1], conv->in_count > 2 ? conv->in[2] : NONE};
    const Attr *attr = conv->attr;
    OpCode op = conv->op;
    int64_t channels = value_shape(rw->graph, in[1])->dim[0];
    bool scales = a->op == OP_MUL || a->op == OP_DIV;
    bool negates = a->op == OP_SUB && !a->left;

    if ((scales || negates) && !may_scale_weights(rw, in[1]))
        return NONE;
    if (!rewrite_constant(rw, a->term) && (scales || shape_elements(value_shape(rw->graph, a->term)) != channels))
        return NONE;
    rw->from = conv->from;
    if (scales) {
        in[1] =
            simplify_scale_weights(rw, in[1], a->op, along_outputs(rw, a->term, value_shape(rw->graph, in[1])->rank));
        in[2] = in[2] == NONE ? NONE : rewrite_build2(rw, a->op, in[2], flat(rw, a->term));
    } else {
        in[1] = negates ? rewrite_build1(rw, OP_NEG, in[1]) : in[1];
        in[2] = shifted_bias(rw, a, in[2], channels);
    }
    return rewrite_build(rw, op, in, in[2] == NONE ? 2 : 3, attr);
}

/* Matrix product */

/* The scale so that it broadcasts along the columns of [..., k, n], or of [..., n, k] when transposed. */
static ValueId along_columns(Rewriter *rw, ValueId term, bool transposed)
{
    int64_t elements = shape_elements(value_shape(rw->graph, term));
    Shape shape = {.rank = elements == 1 ? 0 : 1 + transposed, .dim = {elements, 1}};
    return rewrite_reshape(rw, term, &shape);
}

static ValueId scaled_matmul(Rewriter *rw, const Affine *a, const Node *matmul)
{
    bool transposed = attr_bool(matmul, "transpose_y");
    ValueId in[] = {matmul->in[0], matmul->in[1]};
    const Attr *attr = matmul->attr;
    rw->from = matmul->from;
    in[1] = simplify_scale_weights(rw, in[1], a->op, along_columns(rw, a->term, transposed));
    return rewrite_build(rw, OP_MATMUL, in, 2, attr);
}

/* Is v `x @ w + t` or `x @ w - t` with a constant t that makes nothing larger? */
static const Node *shifted_matmul(const Rewriter *rw, ValueId v)
{
    const Node *shift = value_producer(rw->graph, v);
    if (!shift || (shift->op != OP_ADD && shift->op != OP_SUB) || !rewrite_used_once(rw, v))
        return NULL;
    const Node *matmul = contraction(rw, shift->in[0]);
    if (!matmul || matmul->op != OP_MATMUL || !rewrite_constant(rw, shift->in[1]))
        return NULL;
    return value_type(rw->graph, v) == value_type(rw->graph, shift->in[0]) ? shift : NULL;
}

/* (x @ w + t) * s, where t * s must not be larger than the larger of both. */
static ValueId scale_shifted(Rewriter *rw, const Affine *a, const Node *shift)
{
    OpCode op = shift->op;
    ValueId product = shift->in[0], t = shift->in[1];
    const Node *matmul = value_producer(rw->graph, product);
    const Shape *term = value_shape(rw->graph, a->term), *shape = value_shape(rw->graph, t);
    Shape joint;
    if (!may_scale_weights(rw, matmul->in[1]) || !shape_broadcast(term, shape, &joint) ||
        (!shape_eq(&joint, term) && !shape_eq(&joint, shape)))
        return NONE;
    uint32_t from = shift->from;
    ValueId scaled = scaled_matmul(rw, a, matmul);
    rw->from = from;
    return rewrite_build2(rw, op, scaled, rewrite_build2(rw, a->op, t, a->term));
}

/* x @ w + t + u: one addition less at run time. */
static ValueId join_shifts(Rewriter *rw, const Affine *a, const Node *shift)
{
    OpCode first = shift->op;
    ValueId product = shift->in[0], t = shift->in[1];
    const Shape *term = value_shape(rw->graph, a->term), *shape = value_shape(rw->graph, t);
    Shape joint;
    if (!a->left || !shape_broadcast(term, shape, &joint) || (!shape_eq(&joint, term) && !shape_eq(&joint, shape)))
        return NONE;
    rw->from = shift->from;
    OpCode op = first == a->op ? OP_ADD : OP_SUB; /* p - t - u = p - (t + u), p - t + u = p - (t - u) */
    return rewrite_build2(rw, first, product, rewrite_build2(rw, op, t, a->term));
}

static ValueId fold_into_matmul(Rewriter *rw, const Affine *a)
{
    bool scales = a->op == OP_MUL || a->op == OP_DIV;
    if (!rewrite_constant(rw, a->term))
        return NONE;
    const Node *shift = shifted_matmul(rw, a->product);
    if (shift)
        return scales ? scale_shifted(rw, a, shift) : join_shifts(rw, a, shift);
    const Node *matmul = contraction(rw, a->product);
    return scales && may_scale_weights(rw, matmul->in[1]) ? scaled_matmul(rw, a, matmul) : NONE;
}

static ValueId try_side(Rewriter *rw, const Node *node, bool left)
{
    bool either = op_info(node->op)->commutative;
    Affine a = {node->op, node->in[!left], node->in[left], left || either, 0};
    const Node *product = contraction(rw, a.product);
    const Shape *result = value_shape(rw->graph, node->out[0]);
    if (value_type(rw->graph, a.product) != value_type(rw->graph, node->out[0]) || (node->op == OP_DIV && !left))
        return NONE;
    if (!product && !shifted_matmul(rw, a.product))
        return NONE;
    bool conv = product && node_is_convolution(product);
    a.axis = conv ? 1 : result->rank - 1;
    if (!is_per_channel(value_shape(rw->graph, a.term), result, a.axis))
        return NONE;
    return conv ? fold_into_conv(rw, &a, product) : fold_into_matmul(rw, &a);
}

/* Scales behind sums: their weights have to stay as they are. */

static bool is_scale(const Node *node)
{
    return node->op == OP_MUL || node->op == OP_DIV;
}

/* Is v, for its only reader, such a sum times a constant? */
static const Node *scaled_sum(const Rewriter *rw, ValueId v)
{
    const Node *scale = value_producer(rw->graph, v);
    if (!scale || !is_scale(scale) || !rewrite_used_once(rw, v) || !rewrite_constant(rw, scale->in[1]))
        return NULL;
    const Node *sum = contraction(rw, scale->in[0]);
    bool same = value_type(rw->graph, scale->in[0]) == value_type(rw->graph, v);
    return same && sum && simplify_widens(rw, sum->in[1]) ? scale : NULL;
}

/* Together they repeat along no other dimension than one of them does. */
static bool join_is_small(const Rewriter *rw, ValueId a, ValueId b)
{
    const Shape *one = value_shape(rw->graph, a), *other = value_shape(rw->graph, b);
    Shape joint;
    return shape_broadcast(one, other, &joint) && (shape_eq(&joint, one) || shape_eq(&joint, other));
}

/* Narrow integers times a number: where they come from, and the number. */
static bool is_dequantised(const Rewriter *rw, ValueId v, ValueId *integers, double *scale)
{
    const Node *node = simplify_producer(rw, v, OP_MUL);
    if (!node || !rewrite_number(rw, node->in[1], scale) || !integers_are_narrow(rw->graph, node->in[0]))
        return false;
    *integers = node->in[0];
    return value_type(rw->graph, v) == value_type(rw->graph, *integers);
}

/* The sum of two of them, requantised */
static ValueId scale_quantised_sum(Rewriter *rw, const Node *node)
{
    const Node *sum = simplify_producer(rw, node->in[0], OP_ADD);
    ValueId integers[2];
    double scale[2], by;
    if (!sum || !rewrite_used_once(rw, node->in[0]) || !rewrite_number(rw, node->in[1], &by) || by == 0)
        return NONE;
    for (int i = 0; i < 2; i++)
        if (!is_dequantised(rw, sum->in[i], &integers[i], &scale[i]) ||
            value_type(rw->graph, integers[i]) != value_type(rw->graph, node->out[0]))
            return NONE;
    for (int i = 0; i < 2; i++) {
        double joint = node->op == OP_MUL ? scale[i] * by : scale[i] / by;
        integers[i] = rewrite_build2(rw, OP_MUL, integers[i], rewrite_scalar(rw, DT_F32, joint));
    }
    return rewrite_build2(rw, OP_ADD, integers[0], integers[1]);
}

static ValueId scale_behind_sum(Rewriter *rw, const Node *node)
{
    if (!is_scale(node) || !rewrite_constant(rw, node->in[1]) ||
        value_type(rw->graph, node->in[0]) != value_type(rw->graph, node->out[0]))
        return NONE;
    Node copy = *node; /* building moves the list of nodes */
    ValueId sum_of_two = scale_quantised_sum(rw, &copy);
    if (sum_of_two != NONE)
        return sum_of_two;
    ValueId u = node->in[1];
    OpCode op = node->op;
    const Node *scale = scaled_sum(rw, node->in[0]), *shift = value_producer(rw->graph, node->in[0]);
    if (scale) {
        ValueId sum = scale->in[0], s = scale->in[1];
        OpCode first = scale->op;
        return join_is_small(rw, s, u) ? scale_once(rw, sum, first, s, op, u) : NONE;
    }
    if (!shift || (shift->op != OP_ADD && shift->op != OP_SUB) || !rewrite_used_once(rw, node->in[0]) ||
        !rewrite_constant(rw, shift->in[1]) || !scaled_sum(rw, shift->in[0]) || !join_is_small(rw, shift->in[1], u) ||
        value_type(rw->graph, shift->in[0]) != value_type(rw->graph, node->out[0]))
        return NONE;
    ValueId scaled = shift->in[0], t = shift->in[1];
    OpCode added = shift->op;
    scaled = rewrite_build2(rw, op, scaled, u);
    return rewrite_build2(rw, added, scaled, rewrite_build2(rw, op, t, u));
}

ValueId simplify_affine(Rewriter *rw, const Node *node)
{
    if (node->op != OP_ADD && node->op != OP_SUB && node->op != OP_MUL && node->op != OP_DIV)
        return NONE;
    ValueId scaled = scale_behind_sum(rw, node);
    if (scaled != NONE)
        return scaled;
    ValueId by = try_side(rw, node, true);
    return by == NONE ? try_side(rw, node, false) : by;
}
