/* Words over arrays: out[i] = word(x[i], y[i], z[i]), all four of one number type.  Masks and bools are the numbers 0
 * and 1.  An argument that the word lacks may point anywhere readable. */
#ifndef NNC_OPS_SCALAR_H
#define NNC_OPS_SCALAR_H

#include "ops/elements.h"
#include "ir/op.h"

typedef void WordLoop(int64_t count, const void *x, const void *y, const void *z, void *out);

/* By word; NULL for the leaves and where the word does not take such numbers. */
extern WordLoop *const scalar_f32[WORD_COUNT]; /* float, computed in float */
extern WordLoop *const scalar_f64[WORD_COUNT]; /* double */
extern WordLoop *const scalar_i64[WORD_COUNT]; /* int64_t, wrapping; narrower integers and bool are widened to it */
extern WordLoop *const scalar_u64[WORD_COUNT]; /* uint64_t */

static inline WordLoop *const *scalar_loops(Compute compute)
{
    static WordLoop *const *const loops[] = {
        [COMPUTE_F32] = scalar_f32, [COMPUTE_F64] = scalar_f64, [COMPUTE_I64] = scalar_i64, [COMPUTE_U64] = scalar_u64};
    return loops[compute];
}

/* A dialect's table from WORDS(row), its list of rows (WORD, expression over x, y, z), for numbers of type T. */
#define SCALAR_LOOP(WORD, expression)                                                                                  \
    static void loop_##WORD(int64_t count, const void *x_, const void *y_, const void *z_, void *out_)                 \
    {                                                                                                                  \
        const T *xs = x_, *ys = y_, *zs = z_;                                                                          \
        T *out = out_;                                                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            T x = xs[i], y = ys[i], z = zs[i];                                                                         \
            (void)x, (void)y, (void)z;                                                                                 \
            out[i] = (T)(expression);                                                                                  \
        }                                                                                                              \
    }
#define SCALAR_ROW(WORD, expression) [WORD_##WORD] = loop_##WORD,

#endif
