/* The words of integers, with wrapping arithmetic (this library is compiled with -fwrapv).  Those of floating-point
 * numbers only are left out. */
#include "ops/random.h"
#include "ops/scalar.h"

#define T int64_t

/* Rounds down; x / 0 is 0; the least integer divided by -1 wraps. */
static inline T scalar_div(T a, T b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return -a;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline T scalar_mod(T a, T b)
{
    if (b == 0 || b == -1)
        return 0;
    T rest = a % b;
    return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* clang-format off */
#define WORDS(WORD)                                                                                                    \
    WORD(ADD, x + y) WORD(SUB, x - y) WORD(MUL, x * y) WORD(DIV, scalar_div(x, y)) WORD(MOD, scalar_mod(x, y))         \
    WORD(NEG, -x) WORD(ABS, x < 0 ? -x : x) WORD(MAX, x > y ? x : y) WORD(MIN, x < y ? x : y)                          \
    WORD(LT, x < y) WORD(LE, x <= y) WORD(EQ, x == y) WORD(NE, x != y)                                                 \
    WORD(AND, x & y) WORD(OR, x | y) WORD(XOR, x ^ y) WORD(NOT, x ^ 1) WORD(SELECT, x ? y : z)                         \
    WORD(FOLD_IN, random_fold_in(x, y))
/* clang-format on */

WORDS(SCALAR_LOOP)
WordLoop *const scalar_i64[WORD_COUNT] = {WORDS(SCALAR_ROW)};
