/* Checks the helpers of emitted sources: included by PRELUDE, with LANES lanes.  CALLS: its vectors have functions for
 * operators.
 *
 *     prelude_check [STEP]     every STEP-th float, over all of them, and the special values
 *
 * f32 functions are measured in units in the last place of the double-precision result, and must stay within the bounds
 * of docs/math.md; the vector forms must give the bits of the scalar forms. */
#include PRELUDE

#include "unit.h"
#include <float.h>
#include <stdlib.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
/* The words are Random123's known answers for the key 0, the pair that of ops_test.c. */
UNIT(random_numbers_keep_their_bits)
{
    static const uint32_t word[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (int i = 0; i < 4; i++) {
        EXPECT(word_i64(0, i) == word[i]);
        EXPECT(unit_f32(0, i) == (float)(word[i] >> 8) / 16777216);
    }
    EXPECT(gauss_f32(0, 0) == 0x1.79d164p-1f && gauss_f32(0, 1) == -0x1.607a6p-1f);
    EXPECT(fold_in_i64(0, 0) != fold_in_i64(0, 1) && fold_in_i64(0, 0) != fold_in_i64(1, 0));
}

/* Against Box and Muller's formula in double. */
UNIT(gaussian_numbers_are_close)
{
    double worst = 0, sum = 0, squares = 0;
    const int count = 100000;
    for (int i = 0; i < count; i++) {
        const double u = 1 - (double)unit_f32(7, i & ~1), turn = 6.283185307179586 * (double)unit_f32(7, i | 1);
        const double wanted = sqrt(-2 * log(u)) * (i & 1 ? sin(turn) : cos(turn)), got = (double)gauss_f32(7, i);
        worst = fmax(worst, fabs(got - wanted));
        sum += got;
        squares += got * got;
    }
    EXPECT(worst < 2e-6);
    EXPECT(fabs(sum / count) < 0.02 && fabs(squares / count - 1) < 0.02);
}

#ifdef CALLS
#define LESS(a, b)  WIDE(less)(a, b)
#define NEGATIVE(a) WIDE(neg)(a)
#else
#define LESS(a, b)  ((a) < (b))
#define NEGATIVE(a) (-(a))
#endif
#define WIDE(name) JOIN(name##_f32x, LANES)
typedef JOIN(f32x, LANES) Wide;

static uint32_t step = 65521;

static uint32_t word_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* |got - want| in units in the last place of a float near want; 0 for two NaN, 1e30 for what must not differ at all. */
static double ulps(float got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : 1e30;
    if (want == 0)
        return got == 0 && !signbit(got) == !signbit(want) ? 0 : 1e30;
    double number = isinf(got) ? (got > 0 ? 0x1p128 : -0x1p128) : (double)got;
    if (fabs(want) > 0x1p128)
        want = want > 0 ? 0x1p128 : -0x1p128;
    int exponent;
    (void)frexp(want, &exponent);
    int last = exponent - 24 < -149 ? -149 : exponent - 24;
    return fabs(ldexp(number - want, -last));
}

typedef struct Measure {
    const char *name;
    double bound, worst;
    float at;
    unsigned long differ; /* from the scalar form */
} Measure;

static const uint32_t special[] = {
    0x00000000, 0x00000001, 0x00000002, 0x007fffff, 0x00800000, 0x00800001, 0x32ffffff, 0x33000000, 0x33800000,
    0x38ffffff, 0x39000000, 0x3effffff, 0x3f000000, 0x3f1fffff, 0x3f200000, 0x3f3504f2, 0x3f3504f3, 0x3f3504f4,
    0x3f666666, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fb504f2, 0x3fb504f3, 0x3fb504f4, 0x3fc90fda, 0x3fc90fdb,
    0x3fc90fdc, 0x40490fda, 0x40490fdb, 0x40490fdc, 0x407fffff, 0x40800000, 0x41102cb3, 0x42ae9999, 0x42b0c0a5,
    0x42b17217, 0x42b17218, 0x42b17219, 0x42cff1b4, 0x42cff1b5, 0x42cff1b6, 0x42d20000, 0x45ffffff, 0x46000000,
    0x46000001, 0x4affffff, 0x4b000000, 0x4b000001, 0x4b7fffff, 0x4b800000, 0x4f000000, 0x5f000000, 0x7e800000,
    0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000,
};
#define SPECIALS ((uint32_t)(sizeof special / sizeof *special))

/* Argument number i of the sweep: the special values with both signs, then every step-th float. */
static float argument(uint64_t i)
{
    if (i < 2 * SPECIALS)
        return float_of(special[i / 2] | (uint32_t)(i & 1) << 31);
    return float_of((uint32_t)((i - 2 * SPECIALS) * step));
}

static uint64_t arguments(void)
{
    return 2 * SPECIALS + ((uint64_t)1 << 32) / step;
}

static void measure(Measure *m, float x, float scalar, float vector, double want)
{
    double error = ulps(scalar, want);
    if (error > m->worst || m->worst < 0) {
        m->worst = error;
        m->at = x;
    }
    m->differ += isnan(scalar) ? !isnan(vector) : word_of(scalar) != word_of(vector);
}

static void report(Unit *unit, const Measure *m)
{
    printf("# %-6s %.3f ULP at %.9g\n", m->name, m->worst, (double)m->at);
    if (m->worst > m->bound) {
        unit->failed++;
        printf("# %s: beyond %.2f\n", m->name, m->bound);
    }
    if (m->differ) {
        unit->failed++;
        printf("# %s: vector and scalar differ %lu times\n", m->name, m->differ);
    }
}

#define SWEEP(name, scalar_form, exact, limit)                                                                         \
    UNIT(name##_is_close)                                                                                              \
    {                                                                                                                  \
        Measure m = {#name, limit, -1, 0, 0};                                                                          \
        float x[LANES], y[LANES];                                                                                      \
        for (uint64_t i = 0; i < arguments(); i += LANES) {                                                            \
            for (unsigned j = 0; j < LANES; j++)                                                                       \
                x[j] = argument(i + j);                                                                                \
            WIDE(store)(y, name##_wide(WIDE(load)(x)));                                                                \
            for (unsigned j = 0; j < LANES; j++)                                                                       \
                measure(&m, x[j], scalar_form(x[j]), y[j], exact((double)x[j]));                                       \
        }                                                                                                              \
        report(unit, &m);                                                                                              \
    }

#define FORM(name, scalar_form)                                                                                        \
    static Wide name##_wide(Wide x)                                                                                    \
    {                                                                                                                  \
        return WIDE(name)(x);                                                                                          \
    }
#define CHECK(name, scalar_form, exact, limit)                                                                         \
    FORM(name, scalar_form)                                                                                            \
    SWEEP(name, scalar_form, exact, limit)

/* Beyond -88.37 the f32 forms give 0. */
static double logistic(double x)
{
    return x < -88.3762626 ? 0 : 1 / (1 + exp(-x));
}

CHECK(abs, fabsf, fabs, 0)
CHECK(sqrt, sqrtf, sqrt, 0.5001)
CHECK(floor, floorf, floor, 0)
CHECK(ceil, ceilf, ceil, 0)
CHECK(round, rintf, rint, 0)
CHECK(trunc, truncf, trunc, 0)
CHECK(exp, exp_f32, exp, 1.25)
CHECK(expm1, expm1_f32, expm1, 1.75)
CHECK(log, log_f32, log, 1.0)
CHECK(log1p, log1p_f32, log1p, 1.5)
CHECK(tanh, tanh_f32, tanh, 2.75)
CHECK(erf, erf_f32, erf, 1.5)
CHECK(sigmoid, sigmoid_f32, logistic, 2.5)
CHECK(sin, sin_f32, sin, 1.0)
CHECK(cos, cos_f32, cos, 1.0)
CHECK(tan, tan_f32, tan, 2.5)
CHECK(asin, asin_f32, asin, 1.5)
CHECK(acos, acos_f32, acos, 1.5)
CHECK(atan, atan_f32, atan, 1.5)
CHECK(sinh, sinh_f32, sinh, 2.0)
CHECK(cosh, cosh_f32, cosh, 2.0)

/* The halves and what lies between them: a float at the midpoint goes to the even one, a neighbour to the nearer one.
 */
static double half_number(unsigned bits)
{
    int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    return exponent ? ldexp(fraction + 1024, exponent - 25) : ldexp(fraction, -24);
}

UNIT(f16_rounds_to_nearest_even)
{
    for (unsigned h = 0; h < 0x7c00; h++) {
        double low = half_number(h), middle = (low + half_number(h + 1)) / 2; /* 65536 stands above the largest */
        unsigned even = h + (h & 1);
        EXPECT((double)to_f32_from_f16((uint16_t)h) == low);
        EXPECT((double)to_f32_from_f16((uint16_t)(h | 0x8000)) == -low);
        EXPECT_INT(to_f16_from_f32((float)low), h);
        EXPECT_INT(to_f16_from_f32((float)middle), even);
        EXPECT_INT(to_f16_from_f32(-(float)middle), even | 0x8000);
        EXPECT_INT(to_f16_from_f32(nextafterf((float)middle, 0)), h);
        EXPECT_INT(to_f16_from_f32(nextafterf((float)middle, INFINITY)), h + 1);
        EXPECT_INT(to_f16_from_f64(nextafter(middle, 0)), h); /* once, not twice */
        EXPECT_INT(to_f16_from_f64(nextafter(middle, INFINITY)), h + 1);
    }
    EXPECT_INT(to_f16_from_f32(-0.0f), 0x8000);
    EXPECT_INT(to_f16_from_f32(INFINITY), 0x7c00);
    EXPECT_INT(to_f16_from_f64(-1e300), 0xfc00);
    EXPECT_INT(to_f16_from_i32(65519), 0x7bff);
    EXPECT_INT(to_f16_from_i64(65520), 0x7c00);
    EXPECT(isnan(to_f32_from_f16(to_f16_from_f32(NAN))));
    EXPECT(isinf(to_f32_from_f16(0xfc00)));
    EXPECT(to_bool_from_f16(0x8000) == 0 && to_bool_from_f16(1) == 1);
}

UNIT(bf16_rounds_to_nearest_even)
{
    for (uint32_t h = 0; h < 0x7f80; h++) {
        uint32_t middle = h << 16 | 0x8000;
        EXPECT(word_of(to_f32_from_bf16((uint16_t)h)) == h << 16);
        EXPECT_INT(to_bf16_from_f32(float_of(h << 16)), h);
        EXPECT_INT(to_bf16_from_f32(float_of(middle)), h + (h & 1));
        EXPECT_INT(to_bf16_from_f32(float_of(middle - 1)), h);
        EXPECT_INT(to_bf16_from_f32(float_of(middle + 1)), h + 1);
        EXPECT_INT(to_bf16_from_f64(nextafter((double)float_of(middle), INFINITY)), h + 1);
        EXPECT_INT(to_bf16_from_f64(nextafter((double)float_of(middle), 0)), h);
    }
    EXPECT(isnan(to_f32_from_bf16(to_bf16_from_f32(float_of(0x7f800001)))));
}

UNIT(floats_to_integers_are_clamped)
{
    EXPECT_INT(to_i32_from_f32(2147483520.0f), 2147483520);
    EXPECT_INT(to_i32_from_f32(2147483648.0f), INT32_MAX);
    EXPECT_INT(to_i32_from_f32(-1e20f), INT32_MIN);
    EXPECT_INT(to_i32_from_f32(NAN), 0);
    EXPECT_INT(to_i32_from_f64(2147483647.5), INT32_MAX);
    EXPECT_INT(to_i32_from_f64(-2147483647.5), -2147483647);
    EXPECT_INT(to_i64_from_f64(9223372036854774784.0), 9223372036854774784);
    EXPECT_INT(to_i64_from_f64(1e30), INT64_MAX);
    EXPECT_INT(to_i64_from_f32(-INFINITY), INT64_MIN);
    EXPECT_INT(to_i16_from_f32(-32767.9f), -32767);
    EXPECT_INT(to_i16_from_f32(32768.0f), 32767);
    EXPECT_INT(to_i8_from_f32(127.9f), 127);
    EXPECT_INT(to_i8_from_f64(-128.5), -128);
    EXPECT_INT(to_u8_from_f32(-0.5f), 0);
    EXPECT_INT(to_u8_from_f32(255.9f), 255);
    EXPECT_INT(to_u8_from_f64(NAN), 0);
    EXPECT_INT(to_i8_from_f16(0xfc00), -128);
    EXPECT_INT(to_bool_from_f32(0.5f), 1);
    EXPECT_INT(to_bool_from_f32(-0.0f), 0);
    EXPECT_INT(to_bool_from_i32(256), 1);
}

UNIT(integers_divide_downwards)
{
    for (int x = -128; x < 128; x++)
        for (int y = -128; y < 128; y++) {
            int quotient = y ? (int)floor((double)x / y) : 0, rest = y ? x - y * quotient : 0;
            EXPECT_INT(div_i8((int8_t)x, (int8_t)y), (int8_t)(quotient == 128 ? -128 : quotient));
            EXPECT_INT(mod_i8((int8_t)x, (int8_t)y), rest);
            EXPECT_INT(div_i64(x, y), quotient);
            EXPECT_INT(mod_i32(x, y), rest);
            if (x >= 0 && y >= 0)
                EXPECT_INT(div_u8((uint8_t)x, (uint8_t)y), quotient);
        }
    EXPECT_INT(div_i64(INT64_MIN, -1), INT64_MIN);
    EXPECT_INT(mod_i64(INT64_MIN, -1), 0);
    EXPECT_INT(fmod_i64(INT64_MIN, -1), 0);
    EXPECT_INT(fmod_i32(-7, 3), -1);
    EXPECT_INT(fmod_u8(7, 0), 0);
    EXPECT_INT(shift_left_i64(-1, 63), INT64_MIN);
    EXPECT_INT(shift_left_i8(65, 1), -126);
    EXPECT_INT(shift_left_u8(255, 8), 0);
    EXPECT_INT(shift_right_i64(INT64_MIN, 63), -1);
    EXPECT_INT(shift_right_i16(-5, -1), -1);
    EXPECT_INT(shift_right_u8(255, 7), 1);
    EXPECT_INT(div_i32(INT32_MIN, -1), INT32_MIN);
    EXPECT_INT(abs_i32(INT32_MIN), INT32_MIN);
    EXPECT_INT(abs_i64(-5), 5);
    EXPECT_INT(max_u8(200, 100), 200);
}

UNIT(float_mod_has_the_sign_of_the_divisor)
{
    EXPECT(mod_f32(-1.0f, 3.0f) == 2.0f && mod_f32(1.0f, -3.0f) == -2.0f && mod_f64(5.5, 2.0) == 1.5);
    EXPECT(mod_f32(3.0f, -3.0f) == 0.0f && signbit(mod_f32(3.0f, -3.0f)));
    EXPECT(!signbit(mod_f32(-3.0f, 3.0f)));
    EXPECT(isnan(mod_f32(1.0f, 0.0f)));
}

UNIT(nan_wins)
{
    EXPECT(isnan(max_f32(NAN, 1.0f)) && isnan(max_f32(1.0f, NAN)) && max_f32(1.0f, 2.0f) == 2.0f);
    EXPECT(isnan(min_f64((double)NAN, 1.0)) && isnan(min_f64(1.0, (double)NAN)) && min_f64(1.0, 2.0) == 1.0);
    EXPECT(isnan(atleast_f32(NAN, 0.0f)) && atleast_f32(-1.0f, 0.0f) == 0.0f && atleast_f32(3.0f, 0.0f) == 3.0f);
    EXPECT(isnan(atmost_f32(NAN, 0.0f)) && atmost_f32(1.0f, 0.0f) == 0.0f && atmost_f32(-3.0f, 0.0f) == -3.0f);
}

/* Lane j of x is at j mod 4: NaN, 1.5, -2, j. */
static void some_lanes(float *x, float shift)
{
    static volatile float one_and_half = 1.5f, minus_two = -2.0f; /* which no compiler folds */
    for (unsigned j = 0; j < LANES; j++)
        x[j] = j % 4 == 0 ? NAN : j % 4 == 1 ? one_and_half : j % 4 == 2 ? minus_two : (float)j + shift;
}

static bool same(const float *a, const float *b)
{
    for (unsigned j = 0; j < LANES; j++)
        if (isnan(a[j]) ? !isnan(b[j]) : word_of(a[j]) != word_of(b[j]))
            return false;
    return true;
}

#define EXPECT_LANES(vector, scalar)                                                                                   \
    do {                                                                                                               \
        float got[LANES], want[LANES];                                                                                 \
        WIDE(store)(got, vector);                                                                                      \
        for (unsigned j = 0; j < LANES; j++)                                                                           \
            want[j] = scalar;                                                                                          \
        EXPECT(same(got, want));                                                                                       \
    } while (0)

UNIT(vectors_do_as_scalars_of_two_operands)
{
    float x[LANES + 1], y[LANES];
    some_lanes(x + 1, 0);
    for (unsigned turn = 0; turn < LANES; turn++) {
        for (unsigned j = 0; j < LANES; j++)
            y[j] = x[1 + (j + turn) % LANES] * (turn & 1 ? 1.0f : -1.0f);
        const Wide a = WIDE(load)(x + 1), b = WIDE(load)(y);
        EXPECT_LANES(WIDE(max)(a, b), max_f32(x[j + 1], y[j]));
        EXPECT_LANES(WIDE(min)(a, b), min_f32(x[j + 1], y[j]));
        EXPECT_LANES(WIDE(select)(LESS(a, b), a, b), x[j + 1] < y[j] ? x[j + 1] : y[j]);
        EXPECT_LANES(WIDE(atleast)(a, 1.75f), atleast_f32(x[j + 1], 1.75f));
        EXPECT_LANES(WIDE(atmost)(a, 1.75f), atmost_f32(x[j + 1], 1.75f));
        EXPECT_LANES(WIDE(pow)(a, b), powf(x[j + 1], y[j]));
        EXPECT_LANES(WIDE(fmod)(a, b), fmodf(x[j + 1], y[j]));
        EXPECT_LANES(WIDE(mod)(a, b), mod_f32(x[j + 1], y[j]));
    }
    const Wide a = WIDE(load)(x + 1);
    EXPECT_LANES(WIDE(exp2)(a), exp2f(x[j + 1]));
    EXPECT_LANES(WIDE(log2)(a), log2f(x[j + 1]));
    EXPECT_LANES(WIDE(cbrt)(a), cbrtf(x[j + 1]));
    EXPECT_LANES(WIDE(asinh)(a), asinhf(x[j + 1]));
    EXPECT_LANES(WIDE(acosh)(a), acoshf(x[j + 1]));
    EXPECT_LANES(WIDE(atanh)(a), atanhf(x[j + 1]));
    EXPECT_LANES(WIDE(splat)(-0.0f), -0.0f);
    EXPECT_LANES(WIDE(splat)(NAN), NAN);
}

UNIT(reductions_reach_every_lane)
{
    float x[LANES];
    for (unsigned at = 0; at < LANES; at++) {
        for (unsigned j = 0; j < LANES; j++)
            x[j] = j == at ? 3.0f : 1.0f;
        const Wide a = WIDE(load)(x);
        EXPECT(WIDE(sum)(a) == LANES + 2 && WIDE(product)(a) == 3 && WIDE(largest)(a) == 3);
        EXPECT(WIDE(least)(NEGATIVE(a)) == -3 && WIDE(least)(a) == 1);
        for (int sign = 0; sign < 2; sign++) {
            x[at] = sign ? -NAN : NAN;
            EXPECT(isnan(WIDE(largest)(WIDE(load)(x))) && isnan(WIDE(least)(WIDE(load)(x))));
        }
    }
}

/* Of each two of these in all lanes but one, and in that one. */
UNIT(extremes_are_those_of_numbers)
{
    const float number[] = {-INFINITY, -FLT_MAX, -3.5f,   -FLT_MIN, -1e-42f, -0.0f,
                            0.0f,      1e-42f,   FLT_MIN, 3.5f,     FLT_MAX, INFINITY};
    const unsigned count = sizeof number / sizeof *number;
    for (unsigned i = 0; i < count * count; i++)
        for (unsigned at = 0; at < LANES; at++) {
            const float most = number[i / count], one = number[i % count];
            float x[LANES];
            for (unsigned j = 0; j < LANES; j++)
                x[j] = j == at ? one : most;
            EXPECT(WIDE(largest)(WIDE(load)(x)) == (one > most ? one : most));
            EXPECT(WIDE(least)(WIDE(load)(x)) == (one < most ? one : most));
        }
}

UNIT(strides)
{
    float x[LANES * 40], y[LANES * 40];
    for (unsigned i = 0; i < LANES * 40; i++)
        x[i] = (float)i, y[i] = -1;
    EXPECT_LANES(WIDE(gather)(x + 1, 3), x[1 + 3 * j]);
    EXPECT_LANES(WIDE(even)(x + 3), x[3 + 2 * j]);
    WIDE(scatter)(y + 2, 5, WIDE(load)(x));
    for (unsigned i = 0; i < LANES * 40; i++)
        EXPECT(y[i] == (i >= 2 && (i - 2) % 5 == 0 && (i - 2) / 5 < LANES ? x[(i - 2) / 5] : -1));
}

#ifndef CALLS
UNIT(squares)
{
    float x[LANES * 40], y[LANES * 40];
    for (unsigned i = 0; i < LANES * 40; i++)
        x[i] = (float)i, y[i] = -1;
    WIDE(transpose)(x + 3, 37, y + 1, LANES + 2);
    for (unsigned i = 0; i < LANES; i++)
        for (unsigned j = 0; j < LANES; j++)
            EXPECT(y[1 + j * (LANES + 2) + i] == x[3 + i * 37 + j]);
    EXPECT(y[0] == -1 && y[LANES + 1] == -1 && y[1 + LANES * (LANES + 2)] == -1);
}

/* Of elements of 1, 2 and 8 bytes */
#define EXPECT_TURNED(type, transpose)                                                                                 \
    do {                                                                                                               \
        enum { EDGE = 16 / sizeof(type), APART = EDGE + 3 };                                                           \
        type x[EDGE * APART + 1], y[EDGE * APART + 1];                                                                 \
        for (unsigned i = 0; i <= EDGE * APART; i++)                                                                   \
            x[i] = (type)(i * 3), y[i] = (type)1;                                                                      \
        transpose(x + 1, APART, y + 1, EDGE + 1);                                                                      \
        for (unsigned i = 0; i < EDGE; i++)                                                                            \
            for (unsigned j = 0; j < EDGE; j++)                                                                        \
                EXPECT(y[1 + j * (EDGE + 1) + i] == x[1 + i * APART + j]);                                             \
        EXPECT(y[0] == 1 && y[EDGE + 1] == 1 && y[EDGE * (EDGE + 1)] == 1);                                            \
    } while (0)

UNIT(squares_of_words)
{
    EXPECT_TURNED(uint8_t, transpose_u8);
    EXPECT_TURNED(int8_t, transpose_u8);
    EXPECT_TURNED(uint16_t, transpose_u16);
    EXPECT_TURNED(uint64_t, transpose_u64);
    EXPECT_TURNED(double, transpose_u64);
}
#else
UNIT(calls_do_as_operators)
{
    float x[LANES], y[LANES];
    for (unsigned turn = 0; turn < LANES; turn++) {
        some_lanes(x, 0.25f);
        for (unsigned j = 0; j < LANES; j++)
            y[j] = x[(j + turn) % LANES];
        const Wide a = WIDE(load)(x), b = WIDE(load)(y), one = WIDE(splat)(1.0f), none = WIDE(splat)(0.0f);
        EXPECT_LANES(WIDE(add)(a, b), x[j] + y[j]);
        EXPECT_LANES(WIDE(sub)(a, b), x[j] - y[j]);
        EXPECT_LANES(WIDE(mul)(a, b), x[j] * y[j]);
        EXPECT_LANES(WIDE(div)(a, b), x[j] / y[j]);
        EXPECT_LANES(WIDE(madd)(one, a, b), 1.0f + x[j] * y[j]);
        EXPECT_LANES(WIDE(madds)(a, 0.5f, b), x[j] + 0.5f * y[j]);
        EXPECT_LANES(WIDE(select)(WIDE(at_most)(a, b), one, none), x[j] <= y[j] ? 1.0f : 0.0f);
        EXPECT_LANES(WIDE(select)(WIDE(equal)(a, b), one, none), x[j] == y[j] ? 1.0f : 0.0f);
        EXPECT_LANES(WIDE(select)(WIDE(differ)(a, b), one, none), x[j] != y[j] ? 1.0f : 0.0f);
    }
}

UNIT(masks_combine)
{
    static const unsigned char p[4] = {0, 1, 0, 1}, q[4] = {0, 0, 1, 1};
    unsigned char all[4][4];
    WIDE(store_mask)(all[0], WIDE(and)(WIDE(load_mask)(p), WIDE(load_mask)(q)));
    WIDE(store_mask)(all[1], WIDE(or)(WIDE(load_mask)(p), WIDE(load_mask)(q)));
    WIDE(store_mask)(all[2], WIDE(xor)(WIDE(load_mask)(p), WIDE(gather_mask)(q, 1)));
    WIDE(store_mask)(all[3], WIDE(not )(WIDE(or)(WIDE(load_mask)(p), WIDE(splat_mask)(0))));
    for (unsigned j = 0; j < 4; j++)
        EXPECT(all[0][j] == (p[j] & q[j]) && all[1][j] == (p[j] | q[j]) && all[2][j] == (p[j] ^ q[j]) &&
               all[3][j] == !p[j]);
}
#endif

/* From any multiple of 4 on, also where the counter needs its second word. */
UNIT(vectors_draw_as_scalars)
{
    static const int64_t start[] = {0, 4, 100, 0x3fffffffcll - 8, 0x400000000ll, 0x7fffffffffffff00ll},
                         key[] = {0, 1, -1, 0x123456789abcdefll, INT64_MIN};
    for (unsigned s = 0; s < sizeof start / sizeof *start; s++)
        for (unsigned k = 0; k < sizeof key / sizeof *key; k++) {
            EXPECT_LANES(WIDE(unit)(key[k], start[s]), unit_f32(key[k], start[s] + (int)j));
            EXPECT_LANES(WIDE(gauss)(key[k], start[s]), gauss_f32(key[k], start[s] + (int)j));
        }
}

/* Every element of 8 and 16 bits, those that follow one another and each part of a word, against the scalar conversion:
 * the same bits, but for those of NaN. */
static bool same_number(float a, float b)
{
    return word_of(a) == word_of(b) || (a != a && b != b);
}

static float from_i8(int8_t x)
{
    return x;
}

static float from_u8(uint8_t x)
{
    return x;
}

static float from_i16(int16_t x)
{
    return x;
}

static float from_u16(uint16_t x)
{
    return x;
}

#define WIDENS(name, type, scalar)                                                                                     \
    static bool widens_##name(void)                                                                                    \
    {                                                                                                                  \
        enum { PARTS = 4 / sizeof(type) };                                                                             \
        bool good = true;                                                                                              \
        for (int first = 0; first < 1 << 8 * sizeof(type); first += LANES) {                                           \
            type x[PARTS * LANES + 1];                                                                                 \
            float y[LANES];                                                                                            \
            for (int i = 0; i < (int)PARTS * LANES + 1; i++)                                                           \
                x[i] = (type)(first + i - 1);                                                                          \
            WIDE(store)(y, WIDE(load_##name)(x + 1));                                                                  \
            for (int i = 0; i < LANES; i++)                                                                            \
                good &= same_number(y[i], scalar(x[1 + i]));                                                           \
            for (int part = 0; part < (int)PARTS; part++) {                                                            \
                WIDE(store)(y, WIDE(part_##name)(x + 1, part));                                                        \
                for (int i = 0; i < LANES; i++)                                                                        \
                    good &= same_number(y[i], scalar(x[1 + i * PARTS + part]));                                        \
            }                                                                                                          \
        }                                                                                                              \
        return good;                                                                                                   \
    }

WIDENS(i8, int8_t, from_i8)
WIDENS(u8, uint8_t, from_u8)
WIDENS(i16, int16_t, from_i16)
WIDENS(u16, uint16_t, from_u16)
WIDENS(f16, uint16_t, to_f32_from_f16)
WIDENS(bf16, uint16_t, to_f32_from_bf16)

UNIT(narrow_elements_are_widened)
{
    EXPECT(widens_i8() && widens_u8());
    EXPECT(widens_i16() && widens_u16());
    EXPECT(widens_f16());
    EXPECT(widens_bf16());
}

int main(int argc, char **argv)
{
    static const Test test[] = {
        RUN(abs_is_close),
        RUN(sqrt_is_close),
        RUN(floor_is_close),
        RUN(ceil_is_close),
        RUN(round_is_close),
        RUN(trunc_is_close),
        RUN(exp_is_close),
        RUN(expm1_is_close),
        RUN(log_is_close),
        RUN(log1p_is_close),
        RUN(tanh_is_close),
        RUN(erf_is_close),
        RUN(sigmoid_is_close),
        RUN(sin_is_close),
        RUN(cos_is_close),
        RUN(tan_is_close),
        RUN(asin_is_close),
        RUN(acos_is_close),
        RUN(atan_is_close),
        RUN(sinh_is_close),
        RUN(cosh_is_close),
        RUN(narrow_elements_are_widened),
        RUN(f16_rounds_to_nearest_even),
        RUN(bf16_rounds_to_nearest_even),
        RUN(floats_to_integers_are_clamped),
        RUN(integers_divide_downwards),
        RUN(float_mod_has_the_sign_of_the_divisor),
        RUN(nan_wins),
        RUN(random_numbers_keep_their_bits),
        RUN(gaussian_numbers_are_close),
        RUN(vectors_do_as_scalars_of_two_operands),
        RUN(reductions_reach_every_lane),
        RUN(extremes_are_those_of_numbers),
        RUN(strides),
#ifdef CALLS
        RUN(calls_do_as_operators),
        RUN(masks_combine),
#else
        RUN(squares),
        RUN(squares_of_words),
#endif
        RUN(vectors_draw_as_scalars),
    };
    if (argc > 1)
        step = (uint32_t)strtoul(argv[1], NULL, 10);
    return UNIT_MAIN(test);
}
