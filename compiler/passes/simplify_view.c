/* Views that cancel or merge, reductions over nothing, assembly of one part. */
#include "passes/simplify.h"

#include <string.h>

#include "ops/meaning.h"
#include "ops/view.h"
#include "passes/integers.h"

static bool same_type(const Rewriter *rw, ValueId a, ValueId b)
{
    return value_type(rw->graph, a) == value_type(rw->graph, b);
}

/* For a scalar repeated to a shape, its number under another shape. */
static ValueId reshaped_full(Rewriter *rw, const Node *node)
{
    const Node *full = simplify_producer(rw, node->in[0], OP_FULL);
    if (!full)
        return NONE;
    Attr attr[3];
    memcpy(attr, full->attr, sizeof attr);
    const Shape *shape = value_shape(rw->graph, node->out[0]);
    attr[attr_index(OP_FULL, STR("shape"))] = (Attr){.i = shape->rank, .ints = shape->dim};
    return rewrite_build(rw, OP_FULL, NULL, 0, attr);
}

static ValueId simplify_reshape(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0];
    if (same_type(rw, x, node->out[0]))
        return x;
    const Node *inner = simplify_producer(rw, x, OP_RESHAPE);
    if (inner)
        return rewrite_reshape(rw, inner->in[0], value_shape(rw->graph, node->out[0]));
    return reshaped_full(rw, node);
}

/* Permutations */

/* Do dimensions of more than one element keep their order? Then no element moves. */
static bool moves_nothing(const Shape *x, const uint32_t *axes)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->dim[axes[i]] == 1)
            continue;
        if (axes[i] < last)
            return false;
        last = axes[i];
    }
    return true;
}

static ValueId merge_transposes(Rewriter *rw, const Node *inner, const uint32_t *axes, uint32_t rank)
{
    uint32_t first[MAX_RANK];
    int64_t both[MAX_RANK];
    view_permutation(inner, rank, first);
    for (uint32_t i = 0; i < rank; i++)
        both[i] = first[axes[i]];
    Attr attr = {.i = rank, .ints = both};
    return rewrite_build(rw, OP_TRANSPOSE, inner->in, 1, &attr);
}

#define LONGEST_WAY   16
#define MOST_OPERANDS 3 /* of select */

static bool is_of_element(const Node *node)
{
    bool of_element = op_info(node->op)->family == FAMILY_ELEMENTWISE || op_info(node->op)->family == FAMILY_CAST;
    return of_element && node->out_count == 1 && node->in_count <= MOST_OPERANDS;
}

/* The operand that is no constant, when all others are and it has the shape; NONE. */
static ValueId only_operand(const Rewriter *rw, const Node *node)
{
    ValueId only = NONE;
    for (uint32_t i = 0; i < node->in_count; i++) {
        if (rewrite_constant(rw, node->in[i]))
            continue;
        if (only != NONE)
            return NONE;
        only = node->in[i];
    }
    bool whole = only != NONE && shape_eq(value_shape(rw->graph, only), value_shape(rw->graph, node->out[0]));
    return whole ? only : NONE;
}

/* Is the value computed of an input, element by element and for one reader?  By what, the last first; 0: it is not. */
static uint32_t way_from_input(const Rewriter *rw, ValueId v, Node *way)
{
    uint32_t count = 0;
    for (const Node *node; (node = value_producer(rw->graph, v)); count++) {
        if (count == LONGEST_WAY || !is_of_element(node) || !rewrite_used_once(rw, v))
            return 0;
        way[count] = *node;
        v = only_operand(rw, node);
        if (v == NONE)
            return 0;
    }
    return rw->graph->value[v].role == ROLE_INPUT ? count : 0;
}

/* An operand that broadcasts to the rank, as the transposed result reads it. */
static ValueId transposed_operand(Rewriter *rw, ValueId operand, const Node *transpose, uint32_t rank)
{
    const Shape *shape = value_shape(rw->graph, operand);
    Shape whole = {.rank = rank};
    if (shape_elements(shape) == 1 && shape->rank <= 1)
        return operand;
    for (uint32_t d = 0; d < rank; d++)
        whole.dim[d] = d + shape->rank < rank ? 1 : shape->dim[d + shape->rank - rank];
    operand = rewrite_reshape(rw, operand, &whole);
    return rewrite_build(rw, OP_TRANSPOSE, &operand, 1, transpose->attr);
}

/* transpose(f(x)) of an input x is f(transpose(x)): who reads it then converts what it reads, and nothing is copied. */
static ValueId transpose_of_input(Rewriter *rw, const Node *transpose)
{
    Node way[LONGEST_WAY];
    ValueId last = NONE;
    uint32_t rank = value_shape(rw->graph, transpose->in[0])->rank;
    for (uint32_t n = way_from_input(rw, transpose->in[0], way); n-- > 0;) {
        ValueId in[MOST_OPERANDS], only = only_operand(rw, &way[n]);
        for (uint32_t i = 0; i < way[n].in_count; i++)
            in[i] = way[n].in[i] == only && last != NONE ? last : transposed_operand(rw, way[n].in[i], transpose, rank);
        last = rewrite_build(rw, way[n].op, in, way[n].in_count, way[n].attr);
    }
    return last;
}

static ValueId simplify_transpose(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0];
    const Shape *shape = value_shape(rw->graph, x);
    uint32_t axes[MAX_RANK];
    view_permutation(node, shape->rank, axes);
    if (moves_nothing(shape, axes))
        return rewrite_reshape(rw, x, value_shape(rw->graph, node->out[0]));
    const Node *inner = simplify_producer(rw, x, OP_TRANSPOSE);
    if (inner)
        return merge_transposes(rw, inner, axes, shape->rank);
    ValueId of_input = transpose_of_input(rw, node);
    return of_input != NONE ? of_input : reshaped_full(rw, node);
}

static ValueId simplify_broadcast_node(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0];
    const Shape *shape = value_shape(rw->graph, node->out[0]);
    if (same_type(rw, x, node->out[0]))
        return x;
    const Node *inner = simplify_producer(rw, x, OP_BROADCAST);
    if (inner)
        return rewrite_broadcast(rw, inner->in[0], shape);
    if (shape_elements(shape) && shape_elements(shape) == shape_elements(value_shape(rw->graph, x)))
        return rewrite_reshape(rw, x, shape); /* leading extents of 1 */
    return reshaped_full(rw, node);
}

/* The whole tensor, forwards. */
static ValueId simplify_slice(Rewriter *rw, const Node *node)
{
    const Shape *x = value_shape(rw->graph, node->in[0]);
    Range range[MAX_RANK];
    view_slice_ranges(node, x, range);
    for (uint32_t i = 0; i < x->rank; i++)
        if (range[i].count != x->dim[i] || (range[i].step != 1 && x->dim[i] > 1))
            return NONE;
    return node->in[0];
}

/* The sum of -x is that of x, negated: so the gradients of a difference share what is summed. */
static ValueId negate_behind_sum(Rewriter *rw, const Node *node)
{
    const Node *negated = simplify_producer(rw, node->in[0], OP_NEG);
    if (node->op != OP_REDUCE_SUM || !negated)
        return NONE;
    ValueId x = negated->in[0];
    return rewrite_build1(rw, OP_NEG, rewrite_build(rw, OP_REDUCE_SUM, &x, 1, node->attr));
}

/* Reductions over extents of 1 only; the mean of one is the one. */
static ValueId simplify_reduce(Rewriter *rw, const Node *node)
{
    const Shape *x = value_shape(rw->graph, node->in[0]);
    Reduction reduction = reduction_of(rw->graph, node);
    if (reduction.kind == REDUCE_POSITION)
        return NONE;
    for (uint32_t i = 0; i < x->rank; i++)
        if (reduction.reduced[i] && x->dim[i] != 1)
            return negate_behind_sum(rw, node);
    return rewrite_reshape(rw, node->in[0], value_shape(rw->graph, node->out[0]));
}

/* The largest of x * s, s > 0, is s times the largest of x.  So narrow integers are pooled as they are. */
static ValueId scale_behind_pool(Rewriter *rw, const Node *node)
{
    const Node *scaled = simplify_producer(rw, node->in[0], OP_MUL);
    double scale;
    if (node->op != OP_MAX_POOL || !scaled || !rewrite_number(rw, scaled->in[1], &scale) || !(scale > 0) ||
        !same_type(rw, scaled->in[0], node->in[0]) || !integers_are_narrow(rw->graph, scaled->in[0]))
        return NONE;
    ValueId x = scaled->in[0], s = scaled->in[1];
    return rewrite_build2(rw, OP_MUL, rewrite_build(rw, OP_MAX_POOL, &x, 1, node->attr), s);
}

/* A window of one element that visits every position. */
static ValueId simplify_pool(Rewriter *rw, const Node *node)
{
    Reduction reduction = reduction_of(rw->graph, node);
    return window_is_pointwise(&reduction.window) ? node->in[0] : scale_behind_pool(rw, node);
}

/* There and back again; and to where it is, but for the copy of a transpose, which the pass panels makes. */
static ValueId simplify_relayout(const Rewriter *rw, const Node *node)
{
    const Node *inner = simplify_producer(rw, node->in[0], OP_RELAYOUT);
    if (same_type(rw, node->in[0], node->out[0]))
        return simplify_producer(rw, node->in[0], OP_TRANSPOSE) ? NONE : node->in[0];
    return inner && same_type(rw, inner->in[0], node->out[0]) ? inner->in[0] : NONE;
}

/* Constants are there from the start, and so what waits for nothing else, or is one, does not wait. */
static ValueId simplify_after(Rewriter *rw, const Node *node)
{
    ValueId *in = ARENA_ARRAY(rw->scratch, ValueId, node->in_count);
    uint32_t count = 1;
    in[0] = node->in[0];
    for (uint32_t i = 1; i < node->in_count; i++)
        if (!rewrite_constant(rw, node->in[i]) && node->in[i] != node->in[0])
            in[count++] = node->in[i];
    if (count == 1 || rewrite_constant(rw, in[0]))
        return in[0];
    return count < node->in_count ? rewrite_build(rw, OP_AFTER, in, count, NULL) : NONE;
}

ValueId simplify_view(Rewriter *rw, const Node *node)
{
    switch (node->op) {
    case OP_RESHAPE:
        return simplify_reshape(rw, node);
    case OP_TRANSPOSE:
        return simplify_transpose(rw, node);
    case OP_BROADCAST:
        return simplify_broadcast_node(rw, node);
    case OP_SLICE:
        return simplify_slice(rw, node);
    case OP_SPLIT:
        return node->out_count == 1 ? node->in[0] : NONE;
    case OP_CONCAT:
        return node->in_count == 1 ? node->in[0] : NONE;
    case OP_AFTER:
        return simplify_after(rw, node);
    case OP_PAD: /* nothing is added when the type stays */
        return same_type(rw, node->in[0], node->out[0]) ? node->in[0] : NONE;
    case OP_RELAYOUT:
        return simplify_relayout(rw, node);
    case OP_MAX_POOL:
    case OP_AVG_POOL:
        return simplify_pool(rw, node);
    default:
        return op_info(node->op)->family == FAMILY_REDUCE ? simplify_reduce(rw, node) : NONE;
    }
}
