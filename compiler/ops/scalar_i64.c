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

/* Sign of the dividend. */
static inline T scalar_fmod(T a, T b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

/* Narrower integers are widened and cut, so that shifts by all their bits come out right here. */
static inline T scalar_shift_left(T a, T b)
{
    return b < 0 || b > 63 ? 0 : (T)((uint64_t)a << b);
}

static inline T scalar_shift_right(T a, T b)
{
    int by = b < 0 || b > 63 ? 63 : (int)b;
    return a < 0 ? ~(~a >> by) : a >> by;
}

/* clang-format off */
#define WORDS(WORD)                                                                                                    \
    WORD(ADD, x + y) WORD(SUB, x - y) WORD(MUL, x * y) WORD(DIV, scalar_div(x, y)) WORD(MOD, scalar_mod(x, y))         \
    WORD(NEG, -x) WORD(ABS, x < 0 ? -x : x) WORD(MAX, x > y ? x : y) WORD(MIN, x < y ? x : y)                          \
    WORD(LT, x < y) WORD(LE, x <= y) WORD(EQ, x == y) WORD(NE, x != y)                                                 \
    WORD(AND, x & y) WORD(OR, x | y) WORD(XOR, x ^ y) WORD(NOT, x ^ 1) WORD(SELECT, x ? y : z)                         \
    WORD(FMOD, scalar_fmod(x, y)) WORD(BIT_AND, x & y) WORD(BIT_OR, x | y) WORD(BIT_XOR, x ^ y)                        \
    WORD(SHIFT_LEFT, scalar_shift_left(x, y)) WORD(SHIFT_RIGHT, scalar_shift_right(x, y))                              \
    WORD(FOLD_IN, random_fold_in(x, y))
/* clang-format on */

WORDS(SCALAR_LOOP)
WordLoop *const scalar_i64[WORD_COUNT] = {WORDS(SCALAR_ROW)};
