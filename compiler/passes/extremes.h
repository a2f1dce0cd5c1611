/* Values whose very bits count.  The gradient of a maximum or minimum, of pools too, goes to the elements that equal
 * it: computed again, an element may differ in its last bit, as C compilers make one instruction of a product and a sum
 * here and two there, and its gradient would be lost. */
#ifndef NNC_PASSES_EXTREMES_H
#define NNC_PASSES_EXTREMES_H

#include "ir/graph.h"

/* Per value: does an extreme depend on its bits, through views and ops that round nothing?  Those are true here, too:
 * they may be computed again, of operands that are not. */
bool *extremes_find(const Graph *graph, Arena *arena);
/* Elementwise, and of the same bits wherever it is computed: choices, signs, comparisons, casts. */
bool extremes_exact(const Node *node);

#endif
