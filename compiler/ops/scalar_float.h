/* The words of floating-point numbers.  Include with T (the type), F(name) (its form of a libm function) and TABLE
 * defined, in a file of its own. */
#include "ops/scalar.h"

#include <math.h>

static inline T scalar_max(T a, T b)
{
    return a > b || a != a ? a : b; /* when b is NaN, neither holds */
}

static inline T scalar_min(T a, T b)
{
    return a < b || a != a ? a : b;
}

/* Sign of the divisor, as NumPy's mod; x mod 0 is NaN. */
static inline T scalar_mod(T a, T b)
{
    T rest = F(fmod)(a, b);
    if (b == 0)
        return rest;
    if (rest == 0)
        return F(copysign)(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Words that come after a comparison get masks, as numbers: 0 or 1.  rint, in the default mode, is half to even. */
/* clang-format off */
#define WORDS(WORD)                                                                                                    \
    WORD(ADD, x + y) WORD(SUB, x - y) WORD(MUL, x * y) WORD(DIV, x / y) WORD(MOD, scalar_mod(x, y)) WORD(NEG, -x)      \
    WORD(LT, x < y) WORD(LE, x <= y) WORD(EQ, x == y) WORD(NE, x != y)                                                 \
    WORD(AND, x != 0 && y != 0) WORD(OR, x != 0 || y != 0) WORD(XOR, (x != 0) != (y != 0)) WORD(NOT, x == 0)           \
    WORD(SELECT, x != 0 ? y : z) WORD(MAX, scalar_max(x, y)) WORD(MIN, scalar_min(x, y))                               \
    WORD(ABS, F(fabs)(x)) WORD(SQRT, F(sqrt)(x)) WORD(EXP, F(exp)(x)) WORD(EXPM1, F(expm1)(x)) WORD(LOG, F(log)(x))    \
    WORD(EXP2, F(exp2)(x)) WORD(LOG2, F(log2)(x)) WORD(CBRT, F(cbrt)(x))                                               \
    WORD(ASINH, F(asinh)(x)) WORD(ACOSH, F(acosh)(x)) WORD(ATANH, F(atanh)(x))                                         \
    WORD(LOG1P, F(log1p)(x)) WORD(SIN, F(sin)(x)) WORD(COS, F(cos)(x)) WORD(TAN, F(tan)(x)) WORD(ASIN, F(asin)(x))     \
    WORD(ACOS, F(acos)(x)) WORD(ATAN, F(atan)(x)) WORD(SINH, F(sinh)(x)) WORD(COSH, F(cosh)(x))                        \
    WORD(TANH, F(tanh)(x)) WORD(ERF, F(erf)(x)) WORD(SIGMOID, 1 / (1 + F(exp)(-x))) WORD(POW, F(pow)(x, y)) WORD(FMOD, F(fmod)(x, y))                      \
    WORD(FLOOR, F(floor)(x)) WORD(CEIL, F(ceil)(x)) WORD(ROUND, F(rint)(x)) WORD(TRUNC, F(trunc)(x))
/* clang-format on */

WORDS(SCALAR_LOOP)
WordLoop *const TABLE[WORD_COUNT] = {WORDS(SCALAR_ROW)};
