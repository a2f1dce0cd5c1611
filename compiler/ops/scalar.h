/* The scalar expressions of op.def compiled over arrays: out[i] = expression(x[i], y[i], z[i]), all four of one
 * number type.  Masks and bools are the numbers 0 and 1.  An operand that the op lacks may point anywhere readable. */
#ifndef NNC_OPS_SCALAR_H
#define NNC_OPS_SCALAR_H

#include "ir/op.h"

typedef void ScalarLoop(int64_t count, const void *x, const void *y, const void *z, void *out);

/* By op; NULL where the op is not elementwise or does not take such numbers. */
extern ScalarLoop *const scalar_f32[OP_COUNT]; /* float, computed in float */
extern ScalarLoop *const scalar_f64[OP_COUNT]; /* double */
extern ScalarLoop *const scalar_i64[OP_COUNT]; /* int64_t, wrapping; narrower integers and bool are widened to it */

#endif
