/* Integers in f32: how large they may be, and which contractions of them f32 adds up exactly. */
#ifndef NNC_PASSES_INTEGERS_H
#define NNC_PASSES_INTEGERS_H

#include "ir/graph.h"
#include "ir/word.h"

#define INTEGERS_MOST 0x1p24 /* f32 has all integers up to it */

/* What a value of integers, in any dtype, may be: its ends, the most in amount that it is computed of, and whether none
 * of that is negative.  Known from dtypes, constants, and sums and products of these; all infinite where it may be no
 * integer. */
typedef struct IntegerRange {
    double low, high, most;
    bool positive;
} IntegerRange;

/* Does it convert numbers? */
bool integers_cast(const Node *node);
/* What joins the operands of x + y, x * y, -x and the like, in their order; WORD_OPERAND of any other node. */
Word integers_word(const Node *node);
/* 1 of a sum of two operands, -1 of their difference, 0 of anything else. */
int integers_sign(const Node *node);

IntegerRange integers_range(const Graph *graph, ValueId value);

/* Does the dtype of a conversion, sum, difference, product or negation hold all that it may give, so that nothing wraps
 * around or is cut off? */
bool integers_stay(const Graph *graph, const Node *node);

/* Is it f32 of integers of 8 bits, less a zero point or none?  Whoever reads it widens these as easily. */
static inline bool integers_are_narrow(const Graph *graph, ValueId value)
{
    return value_type(graph, value)->dtype == DT_F32 && integers_range(graph, value).most <= 511;
}

/* The most in amount that a sum of products of the contraction may be, and each part of it, where its depth (k, or the
 * channels of a group) is cut into so many equal parts; infinite: no integers, or it does not go into so many. */
double integers_sum(const Graph *graph, const Node *contraction, int64_t parts);

/* Are both operands integers and all sums exact in f32, in whatever order? */
static inline bool integers_are_exact(const Graph *graph, const Node *contraction)
{
    return integers_sum(graph, contraction, 1) <= INTEGERS_MOST;
}

#endif
