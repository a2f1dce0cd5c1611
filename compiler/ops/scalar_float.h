/* The floating-point dialect of op.def.  Include with T (the type), F(name) (its form of a libm function) and TABLE
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

#define LT(a, b)           ((a) < (b))
#define LE(a, b)           ((a) <= (b))
#define EQ(a, b)           ((a) == (b))
#define NE(a, b)           ((a) != (b))
#define AND(a, b)          ((a) != 0 && (b) != 0)
#define OR(a, b)           ((a) != 0 || (b) != 0)
#define XOR(a, b)          (((a) != 0) != ((b) != 0))
#define NOT(a)             ((a) == 0)
#define SELECT(mask, a, b) ((mask) != 0 ? (a) : (b))
#define MAX(a, b)          scalar_max(a, b)
#define MIN(a, b)          scalar_min(a, b)
#define DIV(a, b)          ((a) / (b))
#define MOD(a, b)          scalar_mod(a, b)
#define POW(a, b)          F(pow)(a, b)
#define FMOD(a, b)         F(fmod)(a, b)
#define ABS(a)             F(fabs)(a)
#define SQRT(a)            F(sqrt)(a)
#define EXP(a)             F(exp)(a)
#define EXPM1(a)           F(expm1)(a)
#define LOG(a)             F(log)(a)
#define LOG1P(a)           F(log1p)(a)
#define SIN(a)             F(sin)(a)
#define COS(a)             F(cos)(a)
#define TAN(a)             F(tan)(a)
#define ASIN(a)            F(asin)(a)
#define ACOS(a)            F(acos)(a)
#define ATAN(a)            F(atan)(a)
#define SINH(a)            F(sinh)(a)
#define COSH(a)            F(cosh)(a)
#define TANH(a)            F(tanh)(a)
#define ERF(a)             F(erf)(a)
#define FLOOR(a)           F(floor)(a)
#define CEIL(a)            F(ceil)(a)
#define ROUND(a)           F(rint)(a) /* in the default rounding mode: half to even */
#define TRUNC(a)           F(trunc)(a)

#define ELEMENTWISE(NAME, name, operands, expression, ...)                                                             \
    static void loop_##name(int64_t count, const void *x_, const void *y_, const void *z_, void *out_)                 \
    {                                                                                                                  \
        const T *xs = x_, *ys = y_, *zs = z_;                                                                          \
        T *out = out_;                                                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            T x = xs[i], y = ys[i], z = zs[i];                                                                         \
            (void)x, (void)y, (void)z;                                                                                 \
            out[i] = (T)(expression);                                                                                  \
        }                                                                                                              \
    }
#include "ir/op.def"

#define ELEMENTWISE(NAME, name, ...) [OP_##NAME] = loop_##name,
ScalarLoop *const TABLE[OP_COUNT] = {
#include "ir/op.def"
};
