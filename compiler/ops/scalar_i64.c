/* The integer dialect of op.def, with wrapping arithmetic (this library is compiled with -fwrapv).  Ops that take
 * floating-point numbers only are left out. */
#include "ops/scalar.h"

/* Rounds down; x / 0 is 0; the least integer divided by -1 wraps. */
static inline int64_t scalar_div(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return -a;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t scalar_mod(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    int64_t rest = a % b;
    return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

#define LT(a, b)           ((a) < (b))
#define LE(a, b)           ((a) <= (b))
#define EQ(a, b)           ((a) == (b))
#define NE(a, b)           ((a) != (b))
#define AND(a, b)          ((a) & (b))
#define OR(a, b)           ((a) | (b))
#define XOR(a, b)          ((a) ^ (b))
#define NOT(a)             ((a) ^ 1)
#define SELECT(mask, a, b) ((mask) ? (a) : (b))
#define MAX(a, b)          ((a) > (b) ? (a) : (b))
#define MIN(a, b)          ((a) < (b) ? (a) : (b))
#define DIV(a, b)          scalar_div(a, b)
#define MOD(a, b)          scalar_mod(a, b)
#define ABS(a)             ((a) < 0 ? -(a) : (a))

#define LOOP(name, expression)                                                                                         \
    static void loop_##name(int64_t count, const void *x_, const void *y_, const void *z_, void *out_)                 \
    {                                                                                                                  \
        const int64_t *xs = x_, *ys = y_, *zs = z_;                                                                    \
        int64_t *out = out_;                                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            int64_t x = xs[i], y = ys[i], z = zs[i];                                                                   \
            (void)x, (void)y, (void)z;                                                                                 \
            out[i] = (expression);                                                                                     \
        }                                                                                                              \
    }
#define LOOP_ANY    LOOP
#define LOOP_NUMBER LOOP
#define LOOP_INT    LOOP
#define LOOP_BOOL   LOOP
#define LOOP_FLOAT(name, expression)
#define ELEMENTWISE(NAME, name, operands, expression, CLASS, ...) LOOP_##CLASS(name, expression)
#include "ir/op.def"

#define ROW(NAME, name) [OP_##NAME] = loop_##name,
#define ROW_ANY         ROW
#define ROW_NUMBER      ROW
#define ROW_INT         ROW
#define ROW_BOOL        ROW
#define ROW_FLOAT(NAME, name)
#define ELEMENTWISE(NAME, name, operands, expression, CLASS, ...) ROW_##CLASS(NAME, name)
ScalarLoop *const scalar_i64[OP_COUNT] = {
#include "ir/op.def"
};
