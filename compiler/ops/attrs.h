/* Attributes of inferred nodes brought to one form, for the evaluator, passes and code generation: axes as positions,
 * ranges clamped, defaults spelled out.  All of these take for granted that inference has accepted the node. */
#ifndef NNC_OPS_ATTRS_H
#define NNC_OPS_ATTRS_H

#include "ir/graph.h"

/* An axis as a position from 0. */
static inline uint32_t axis_position(int64_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

/* Reductions, argmax and argmin: bit i is set when dimension i is reduced. */
uint32_t reduce_mask(const Node *node, uint32_t rank);

/* transpose: dimension i of the result is dimension axes[i] of the operand. */
void transpose_axes(const Node *node, uint32_t rank, uint32_t axes[MAX_RANK]);

/* slice, per dimension of the operand: element i of the result is element begin + i * step of the operand.  Begin and
 * end follow NumPy: negative ones count from the end, then both are clamped. */
typedef struct Range {
    int64_t begin, step, count;
} Range;
void slice_ranges(const Node *node, const Shape *shape, Range range[MAX_RANK]);

/* The window of conv2d, max_pool and avg_pool; [0] is the vertical direction. */
typedef struct Window {
    int64_t size[2], stride[2], dilation[2];
    int64_t before[2], after[2]; /* padding: top and left, bottom and right */
    int64_t in[2], out[2];       /* extents of the image and of the result */
} Window;
/* `x` is [n, c, h, w]; `weight` is [o, c / groups, kh, kw], or NULL for a pool. */
Window window_of(const Node *node, const Shape *x, const Shape *weight);

/* Where matmul's operands lie after promotion of rank 1: x is [batch..., m, k], y is [batch..., k, n] (or [batch..., n,
 * k] when transposed). */
typedef struct MatmulShape {
    int64_t m, n, k;
    Shape batch;            /* of the result, broadcast */
    Shape x_batch, y_batch; /* of the operands */
} MatmulShape;
bool matmul_shape(const Node *node, const Shape *x, const Shape *y, MatmulShape *out); /* false: shapes do not fit */

#endif
