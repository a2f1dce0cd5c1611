/* Integers made again in f32, where that has all of them. */
#ifndef NNC_PASSES_INTEGERS_FLOATS_H
#define NNC_PASSES_INTEGERS_FLOATS_H

#include "passes/rewrite.h"

/* x, of integers of any dtype that are at most 2^24 (integers.h), as f32: what it is computed of is cast, as near to
 * memory as can be, and sums, differences and views are those of f32.
 *
 *     i32(w) - 128                     ->  f32(w) - 128.0
 *     reshape(i16(w) * 2 + i16(z))     ->  reshape(f32(w) * 2.0 + f32(z)) */
ValueId integers_as_floats(Rewriter *rewriter, ValueId x);

/* Is there anything of this to do but to cast x itself? */
bool integers_go_deeper(const Rewriter *rewriter, ValueId x);

#endif
