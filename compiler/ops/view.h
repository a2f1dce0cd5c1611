/* What inference and forms of views share, and simplify. */
#ifndef NNC_OPS_VIEW_H
#define NNC_OPS_VIEW_H

#include "ir/graph.h"

/* transpose: dimension i of the result is dimension axes[i] of the operand. */
void view_permutation(const Node *node, uint32_t rank, uint32_t axes[MAX_RANK]);

/* slice, per dimension of the operand: element i of the result is element begin + i * step of the operand.  Begin and
 * end follow NumPy: negative ones count from the end, then both are clamped. */
typedef struct Range {
    int64_t begin, step, count;
} Range;
void view_slice_ranges(const Node *node, const Shape *shape, Range range[MAX_RANK]);

/* windows, along dimension `axis` of the operand: element j of window i is element begin + i * step + j * dilation;
 * `count` is 0 where none fits. */
typedef struct Sliding {
    uint32_t axis;
    int64_t begin, step, count, size, dilation;
} Sliding;
Sliding view_sliding(const Node *node, const Shape *x);

#endif
