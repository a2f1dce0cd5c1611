/* How the evaluator combines numbers, for reductions and pools. */
#ifndef NNC_OPS_REDUCE_H
#define NNC_OPS_REDUCE_H

#include "ops/elements.h"
#include "ops/meaning.h"

Number reduce_neutral(Word combine, Compute compute);
/* to[i * stride] = combine(to[i * stride], from[i]), in order; stride 0 combines all into one. */
void reduce_combine(Word combine, Compute compute, Number *to, int64_t stride, const Number *from, int64_t count);

#endif
