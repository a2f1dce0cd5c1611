/* The parts of the simplifier; each is a Rule for the ops of its families. */
#ifndef NNC_PASSES_SIMPLIFY_H
#define NNC_PASSES_SIMPLIFY_H

#include "passes/rewrite.h"

/* The producer of v if it is an instance of the op, else NULL.  The pointer is good until something is built. */
static inline const Node *simplify_producer(const Rewriter *rewriter, ValueId v, OpCode op)
{
    const Node *node = value_producer(rewriter->graph, v);
    return node && node->op == op ? node : NULL;
}

ValueId simplify_elementwise(Rewriter *rewriter, const Node *node);  /* algebra of numbers and masks, casts */
ValueId simplify_broadcast(Rewriter *rewriter, const Node *node);    /* broadcast operands of elementwise ops */
ValueId simplify_view(Rewriter *rewriter, const Node *node);         /* views, reductions, assembly, layouts */
ValueId simplify_dynamic(Rewriter *rewriter, const Node *node);      /* parts at positions that are constants */
ValueId simplify_scatter(Rewriter *rewriter, const Node *node);      /* nothing that is added */
ValueId simplify_sum_of_parts(Rewriter *rewriter, const Node *node); /* of an add */
ValueId simplify_affine(Rewriter *rewriter, const Node *node);       /* scales and shifts after a contraction */
ValueId simplify_contract(Rewriter *rewriter, const Node *node);     /* scales, padding, transposes before one */

/* weights op scale, op being * or /, in one multiplication of the weights however often they are scaled.  The scale
 * broadcasts to the weights. */
ValueId simplify_scale_weights(Rewriter *rewriter, ValueId weights, OpCode op, ValueId scale);

/* Is it what widens a constant of 8 or 16 bits?  Nothing is multiplied into that. */
bool simplify_widens(const Rewriter *rewriter, ValueId v);
/* Scales of such weights, behind the contraction. */
ValueId simplify_scaled_weights(Rewriter *rewriter, const Node *contraction);
/* The contraction of two operands, op the scale, a scalar or one for each channel, and its bias if it has one. */
ValueId simplify_scale_result(Rewriter *rewriter, const Node *contraction, const ValueId in[2], OpCode op,
                              ValueId scale);
ValueId simplify_widened_difference(Rewriter *rewriter, const Node *cast); /* of integers less their zero point */

#endif
