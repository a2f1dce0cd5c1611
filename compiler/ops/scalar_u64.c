/* The words of u64; those of floating-point numbers only are left out. */
#include "ops/scalar.h"

#define T uint64_t

/* clang-format off */
#define WORDS(WORD)                                                                                                    \
    WORD(ADD, x + y) WORD(SUB, x - y) WORD(MUL, x * y) WORD(DIV, y ? x / y : 0) WORD(MOD, y ? x % y : 0)               \
    WORD(FMOD, y ? x % y : 0) WORD(NEG, 0 - x) WORD(ABS, x) WORD(MAX, x > y ? x : y) WORD(MIN, x < y ? x : y)          \
    WORD(LT, x < y) WORD(LE, x <= y) WORD(EQ, x == y) WORD(NE, x != y)                                                 \
    WORD(AND, x & y) WORD(OR, x | y) WORD(XOR, x ^ y) WORD(NOT, x ^ 1) WORD(SELECT, x ? y : z)                         \
    WORD(BIT_AND, x & y) WORD(BIT_OR, x | y) WORD(BIT_XOR, x ^ y)                                                      \
    WORD(SHIFT_LEFT, y > 63 ? 0 : x << y) WORD(SHIFT_RIGHT, y > 63 ? 0 : x >> y)
/* clang-format on */

WORDS(SCALAR_LOOP)
WordLoop *const scalar_u64[WORD_COUNT] = {WORDS(SCALAR_ROW)};
