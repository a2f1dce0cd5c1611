/* Weights that stay narrow: what widens them belongs to whoever reads it. */
#ifndef NNC_PASSES_WIDEN_H
#define NNC_PASSES_WIDEN_H

#include "ir/graph.h"

/* Integers and floats of 8 and 16 bits. */
static inline bool widen_is_narrow(DType dtype)
{
    return dtype != DT_BOOL && dtype_bytes(dtype) <= 2;
}

/* Is a constant of the type worth being kept narrow: is it of such, and no mere handful of elements? */
bool widen_is_worth(const Type *type);

/* Does the node take one half of each byte, x & 15 or x >> 4 of u8?  Weights of 4 bits stay two to a byte so. */
bool widen_takes_half(const Graph *graph, const Node *node);

/* Is it a constant of bytes worth being kept narrow, and are they all of 4 bits, or a param of which the text says so?
 */
bool widen_fits_nibbles(const Graph *graph, ValueId value);

#define WIDEN_DEEPEST 16 /* nodes from a constant on */

/* Per value: the constant of 8 or 16 bits that it is made of, element by element, in a wider dtype, by casts, views,
 * and cheap arithmetic with constants that are much smaller (scales, zero points); else NONE.  `constant`, per value,
 * says what is known when compiling.  Below some 256 bytes nothing is worth it. */
ValueId *widen_cores(const Graph *graph, const bool *constant, Arena *arena);

/* Is the one value such, about?  For rules that would make it wide. */
bool widen_is(const Graph *graph, const bool *constant, ValueId value);

/* Per value: is it such, and do all who read it read single elements, which they can widen themselves?  Then it need
 * not exist: contractions, gathers, slices and elementwise nodes that are not constant themselves.
 * Also the views that repeat scales and zero points for these. */
bool *widen_find(const Graph *graph, const bool *constant, Arena *arena);

#endif
