/* The mathematical functions of emitted sources, for f32.
 *
 * One text per function, without branches, for scalars and vectors alike (see snippet.h).  The polynomials come from
 * fit.py.  Where a product must not round, a factor has few enough bits: x - n * 0.693145752 is exact because the
 * constant has 15 bits and n at most 8.  docs/math.md states the error bounds; tests/unit/prelude_check.c checks them.
 *
 * Adding 12582912 = 1.5 * 2^23 to a float of less than 2^22 rounds it to an integer, half to even, and leaves that
 * integer in the low bits: 0x4B400000 + n.  stored$ makes it round where registers are wider than floats. */
#include "c/snippet.h"

#include <stddef.h>

const Snippet snippet_math[] = {
    {"exp_part", SNIPPET_ANY_F32,
     "/* e^r for |r| <= log(2) / 2 */\n"
     "static inline F exp_part$(F r)\n"
     "{\n"
     "    F p = 0.00138189562f * r + 0.00836853124f;\n"
     "    p = p * r + 0.0416682847f;\n"
     "    p = p * r + 0.166665226f;\n"
     "    p = p * r + 0.49999994f;\n"
     "    p = p * r + 1.0f;\n"
     "    return p * r + 1.0f;\n"
     "}\n"},
    /* 2^n is split in two factors, so that overflow and denormals come out by one rounding at the end: t has 254 + n in
     * its low nine bits, of which one half and the other are the exponents.  The lower end makes a factor 0, so that
     * what is masked, the exp of -1e4 or -inf, is no denormal, which processors are slow at. */
    {"exp_by", SNIPPET_ANY_F32,
     "/* 2^k e^x; k is -1, 0 or 1 */\n"
     "static inline F exp_by$(F x, int k)\n"
     "{\n"
     "    const float whole = 12583166.0f + (float)k;\n"
     "    const F y = atmost$(atleast$(x, -175.4f), 91.0f);\n"
     "    const F t = stored$(y * 1.44269502f + whole);\n"
     "    const F n = t - whole;\n"
     "    const F r = (y - n * 0.693145752f) - n * 1.42860677e-06f;\n"
     "    const U m = bits$(t);\n"
     "    const U h = m >> 1;\n"
     "    return (exp_part$(r) * value$(h << 23)) * value$((m - h) << 23);\n"
     "}\n"},
    {"exp", SNIPPET_ANY_F32,
     "static inline F exp$(F x)\n"
     "{\n"
     "    return exp_by$(x, 0);\n"
     "}\n"},
    /* s is 2^(n - 1), since 2^128 is no float; s * e is exact. */
    {"expm1", SNIPPET_ANY_F32,
     "static inline F expm1$(F x)\n"
     "{\n"
     "    const F y = atmost$(atleast$(x, -20.0f), 89.0f);\n"
     "    const F t = stored$(y * 1.44269502f + 12582912.0f);\n"
     "    const F n = t - 12582912.0f;\n"
     "    const F r = (y - n * 0.693145752f) - n * 1.42860677e-06f;\n"
     "    F p = 0.000199497183f * r + 0.00139326451f;\n"
     "    p = p * r + 0.00833320152f;\n"
     "    p = p * r + 0.0416664891f;\n"
     "    p = p * r + 0.166666672f;\n"
     "    p = p * r + 0.5f;\n"
     "    const F e = p * (r * r) + r;\n"
     "    const F s = value$((bits$(t) - (0x4B400000u - 126u)) << 23);\n"
     "    const F z = (s * e + (s - 0.5f)) * 2.0f;\n"
     "    return select$(abs$(x) < 2.98023224e-08f, x, z);\n"
     "}\n"},
    /* All products in e * ln2 - f^2 / 2 are exact, so one rounding each is left to contract. */
    {"log_of", SNIPPET_ANY_F32,
     "/* e log(2) + log(1 + f) for an integer e and sqrt(1/2) <= 1 + f < sqrt(2) */\n"
     "static inline F log_of$(F e, F f)\n"
     "{\n"
     "    const F z = f * f;\n"
     "    F p = 0.0689184442f * f - 0.117927931f;\n"
     "    p = p * f + 0.118835263f;\n"
     "    p = p * f - 0.123847634f;\n"
     "    p = p * f + 0.142176092f;\n"
     "    p = p * f - 0.166691855f;\n"
     "    p = p * f + 0.200022548f;\n"
     "    p = p * f - 0.249999881f;\n"
     "    p = p * f + 0.333333105f;\n"
     "    const F low = e * 1.42861973e-06f - 0.5f * z;\n"
     "    return e * 0.693145752f + (f + ((f * z) * p + low));\n"
     "}\n"},
    {"log", SNIPPET_ANY_F32,
     "static inline F log$(F x)\n"
     "{\n"
     "    const I tiny = x < 1.17549435e-38f;\n"
     "    const U b = bits$(select$(tiny, x * 8388608.0f, x)) + (0x3F800000u - 0x3F3504F3u);\n"
     "    const F e = value$((b >> 23) | 0x4B000000u) - select$(tiny, splat$(8388758.0f), splat$(8388735.0f));\n"
     "    const F m = value$((b & 0x007FFFFFu) + 0x3F3504F3u); /* x = 2^e m, m from sqrt(1/2) to sqrt(2) */\n"
     "    F y = log_of$(e, m - 1.0f);\n"
     "    y = select$(x < INFINITY, y, x);\n"
     "    y = select$(x < 0.0f, splat$(NAN), y);\n"
     "    return select$(x == 0.0f, splat$(-INFINITY), y);\n"
     "}\n"},
    {"log1p", SNIPPET_ANY_F32,
     "static inline F log1p$(F x)\n"
     "{\n"
     "    const F u = x + 1.0f;\n"
     "    const F d = u - x;\n"
     "    const F c = (x - (u - d)) + (1.0f - d); /* what rounding took from u */\n"
     "    const U b = bits$(u) + (0x3F800000u - 0x3F3504F3u);\n"
     "    const F e = value$((b >> 23) | 0x4B000000u) - 8388735.0f;\n"
     "    const F m = value$((b & 0x007FFFFFu) + 0x3F3504F3u);\n"
     "    F y = log_of$(e, (m - 1.0f) + c * (m / u)); /* m / u is a power of two */\n"
     "    y = select$(x < INFINITY, y, x);\n"
     "    y = select$(x < -1.0f, splat$(NAN), y);\n"
     "    y = select$(x == -1.0f, splat$(-INFINITY), y);\n"
     "    return select$(x == 0.0f, x, y);\n"
     "}\n"},
    /* Where 2^n is a normal number there is one factor: t has 127 + n in its low bits. */
    {"exp_near", SNIPPET_ANY_F32,
     "/* e^x for -87 <= x <= 89, which may be infinite */\n"
     "static inline F exp_near$(F x)\n"
     "{\n"
     "    const F t = stored$(x * 1.44269502f + 12583039.0f);\n"
     "    const F n = t - 12583039.0f;\n"
     "    const F r = (x - n * 0.693145752f) - n * 1.42860677e-06f;\n"
     "    return exp_part$(r) * value$(bits$(t) << 23);\n"
     "}\n"},
    /* At the upper end of -x the sum is infinite, so that the quotient is 0. */
    {"sigmoid", SNIPPET_ANY_F32,
     "static inline F sigmoid$(F x)\n"
     "{\n"
     "    return 1.0f / (1.0f + exp_near$(atmost$(atleast$(-x, -87.0f), 89.0f)));\n"
     "}\n"},
    {"sigmoid", SNIPPET_F64,
     "static inline double sigmoid$(double x)\n"
     "{\n"
     "    return 1.0 / (1.0 + exp(-x));\n"
     "}\n"},
    /* With m = (e^2x - 1) / 2 it is m / (m + 1); from 9.02 on that rounds to 1.  As in expm1, and 2x = n log(2) + 2r;
     * the sum that makes m would lose the sign of -0. */
    {"tanh", SNIPPET_ANY_F32,
     "static inline F tanh$(F x)\n"
     "{\n"
     "    const F y = atmost$(atleast$(x, -9.02f), 9.02f);\n"
     "    const F t = stored$(y * 2.88539004f + 12583039.0f);\n"
     "    const F n = t - 12583039.0f;\n"
     "    const F r = (y - n * 0.346572876f) - n * 7.14303383e-07f; /* |r| <= log(2) / 4 */\n"
     "    F p = 0.0127678197f * r + 0.0445844643f;\n"
     "    p = p * r + 0.133331224f;\n"
     "    p = p * r + 0.333331913f;\n"
     "    p = p * r + 0.666666687f;\n"
     "    p = p * r + 1.0f;\n"
     "    const F e = p * (r * r) + r;\n"
     "    const F s = value$(bits$(t) << 23);\n"
     "    const F m = s * e + (0.5f * s - 0.5f);\n"
     "    return sign_of$(m / (m + 1.0f), x);\n"
     "}\n"},
    {"erf", SNIPPET_ANY_F32,
     "static inline F erf$(F x)\n"
     "{\n"
     "    const F a = abs$(x);\n"
     "    const F z = a * a;\n"
     "    F p = 8.3922605e-05f * z - 0.000814415747f;\n"
     "    p = p * z + 0.00520072179f;\n"
     "    p = p * z - 0.0268590227f;\n"
     "    p = p * z + 0.112836815f;\n"
     "    p = p * z - 0.376126319f;\n"
     "    p = p * z + 0.128379166f;\n"
     "    const F near = p * a + a;\n"
     "    const F c = atmost$(a, 4.0f); /* erfc(4) is lost beside 1 */\n"
     "    F q = -0.00019718775f * c + 0.00305563794f; /* -log(erfc(c)) */\n"
     "    q = q * c - 0.022277141f;\n"
     "    q = q * c + 0.104037397f;\n"
     "    q = q * c + 0.637059748f;\n"
     "    q = q * c + 1.12774956f;\n"
     "    q = q * c + 0.000177492431f;\n"
     "    const F far = 1.0f - exp_near$(-q);\n"
     "    return sign_of$(select$(a < 0.9f, near, far), x);\n"
     "}\n"},
    /* The first three of four parts of pi / 2 have 11 bits: n * part is exact for |n| < 2^13.  Only the third
     * subtraction can round, and what it loses goes to *low. */
    {"quarter", SNIPPET_ANY_F32,
     "/* x less the nearest multiple of pi / 2, for |x| <= 8192: the result + *low; the multiple is in the low bits of "
     "*n */\n"
     "static inline F quarter$(F x, F *low, U *n)\n"
     "{\n"
     "    const F t = stored$(x * 0.636619747f + 12582912.0f);\n"
     "    const F k = t - 12582912.0f;\n"
     "    const F a = (x - k * 1.5703125f) - k * 0.000483751297f;\n"
     "    const F b = a - k * 7.54953362e-08f;\n"
     "    const F c = ((a - b) - k * 7.54953362e-08f) - k * 2.56334407e-12f;\n"
     "    const F r = b + c;\n"
     "    *low = (b - r) + c;\n"
     "    *n = bits$(t);\n"
     "    return r;\n"
     "}\n"},
    {"sin_of", SNIPPET_ANY_F32,
     "static inline F sin_of$(F r, F low) /* of r + low, |r| <= pi / 4 */\n"
     "{\n"
     "    const F z = r * r;\n"
     "    F p = 2.84074781e-06f * z - 0.000198538692f;\n"
     "    p = p * z + 0.00833338127f;\n"
     "    p = p * z - 0.166666672f;\n"
     "    p = p * z;\n"
     "    const F q = low - low * (0.5f * z);\n"
     "    return r + (p * r + q);\n"
     "}\n"},
    {"cos_of", SNIPPET_ANY_F32,
     "static inline F cos_of$(F r, F low)\n"
     "{\n"
     "    const F z = r * r;\n"
     "    const F y = 1.0f - 0.5f * z;\n"
     "    F p = 2.44482926e-05f * z - 0.00138874666f;\n"
     "    p = p * z + 0.0416666493f;\n"
     "    p = p * z;\n"
     "    p = p * r - low;\n"
     "    return y + (p * r + ((1.0f - y) - 0.5f * z));\n"
     "}\n"},
    {"sin_near", SNIPPET_ANY_F32,
     "static inline F sin_near$(F x) /* |x| <= 8192 */\n"
     "{\n"
     "    F low;\n"
     "    U n;\n"
     "    const F r = quarter$(x, &low, &n);\n"
     "    const F y = select$((n & 1u) != 0u, cos_of$(r, low), sin_of$(r, low));\n"
     "    return select$(abs$(x) < 0.000122070312f, x, value$(bits$(y) ^ ((n & 2u) << 30)));\n"
     "}\n"},
    {"cos_near", SNIPPET_ANY_F32,
     "static inline F cos_near$(F x)\n"
     "{\n"
     "    F low;\n"
     "    U n;\n"
     "    const F r = quarter$(x, &low, &n);\n"
     "    const F y = select$((n & 1u) != 0u, sin_of$(r, low), cos_of$(r, low));\n"
     "    return value$(bits$(y) ^ (((n + 1u) & 2u) << 30));\n"
     "}\n"},
    {"tan_near", SNIPPET_ANY_F32,
     "static inline F tan_near$(F x)\n"
     "{\n"
     "    F low;\n"
     "    U n;\n"
     "    const F r = quarter$(x, &low, &n);\n"
     "    const F s = sin_of$(r, low), c = cos_of$(r, low);\n"
     "    const I odd = (n & 1u) != 0u;\n"
     "    const F y = select$(odd, -c, s) / select$(odd, s, c);\n"
     "    return select$(abs$(x) < 0.000122070312f, x, y);\n"
     "}\n"},
    {"sin", SNIPPET_F32,
     "static inline F sin$(F x)\n"
     "{\n"
     "    return fabsf(x) <= 8192.0f ? sin_near$(x) : (float)sin((double)x);\n"
     "}\n"},
    {"cos", SNIPPET_F32,
     "static inline F cos$(F x)\n"
     "{\n"
     "    return fabsf(x) <= 8192.0f ? cos_near$(x) : (float)cos((double)x);\n"
     "}\n"},
    {"tan", SNIPPET_F32,
     "static inline F tan$(F x)\n"
     "{\n"
     "    return fabsf(x) <= 8192.0f ? tan_near$(x) : (float)tan((double)x);\n"
     "}\n"},
    {"sin", SNIPPET_VECTOR,
     "static inline F sin$(F x)\n"
     "{\n"
     "    F y;\n"
     "    if (largest$(abs$(x)) <= 8192.0f)\n"
     "        return sin_near$(x);\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = sin@(x[i]);\n"
     "    return y;\n"
     "}\n"},
    {"cos", SNIPPET_VECTOR,
     "static inline F cos$(F x)\n"
     "{\n"
     "    F y;\n"
     "    if (largest$(abs$(x)) <= 8192.0f)\n"
     "        return cos_near$(x);\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = cos@(x[i]);\n"
     "    return y;\n"
     "}\n"},
    {"tan", SNIPPET_VECTOR,
     "static inline F tan$(F x)\n"
     "{\n"
     "    F y;\n"
     "    if (largest$(abs$(x)) <= 8192.0f)\n"
     "        return tan_near$(x);\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = tan@(x[i]);\n"
     "    return y;\n"
     "}\n"},
    {"asin_of", SNIPPET_ANY_F32,
     "/* asin(r) = r + r p for 0 <= r <= 1/2; gives p for z = r^2 */\n"
     "static inline F asin_of$(F z)\n"
     "{\n"
     "    F p = 0.0415561534f * z + 0.024580773f;\n"
     "    p = p * z + 0.0453775525f;\n"
     "    p = p * z + 0.0749617219f;\n"
     "    p = p * z + 0.166667253f;\n"
     "    return p * z;\n"
     "}\n"},
    /* asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) */
    {"asin", SNIPPET_ANY_F32,
     "static inline F asin$(F x)\n"
     "{\n"
     "    const F a = abs$(x);\n"
     "    const I near = a < 0.5f;\n"
     "    const F z = select$(near, a * a, 0.5f - 0.5f * a);\n"
     "    const F r = select$(near, a, -2.0f * sqrt$(z));\n"
     "    const F high = select$(near, splat$(0.0f), splat$(1.57079637f));\n"
     "    const F low = select$(near, splat$(0.0f), splat$(-4.37113883e-08f));\n"
     "    const F y = high + r;\n"
     "    return sign_of$(y + (((high - y) + r) + (asin_of$(z) * r + low)), x);\n"
     "}\n"},
    {"acos", SNIPPET_ANY_F32,
     "static inline F acos$(F x)\n"
     "{\n"
     "    const F a = abs$(x);\n"
     "    const I near = a < 0.5f;\n"
     "    const F z = select$(near, a * a, 0.5f - 0.5f * a);\n"
     "    const F r = select$(near, x, sqrt$(z));\n"
     "    const F y = asin_of$(z) * r + r;\n"
     "    const F end = select$(x < 0.0f, 3.14159274f - (2.0f * y + 8.74227766e-08f), 2.0f * y);\n"
     "    return select$(near, 1.57079637f - (y + 4.37113883e-08f), end);\n"
     "}\n"},
    /* atan(a) = pi/2 + atan(-1 / a) */
    {"atan", SNIPPET_ANY_F32,
     "static inline F atan$(F x)\n"
     "{\n"
     "    const F a = abs$(x);\n"
     "    const I far = a > 1.0f;\n"
     "    const F t = select$(far, -1.0f / a, a);\n"
     "    const F z = t * t;\n"
     "    const F high = select$(far, splat$(1.57079637f), splat$(0.0f));\n"
     "    const F low = select$(far, splat$(-4.37113883e-08f), splat$(0.0f));\n"
     "    F p = -0.00187027827f * z + 0.0112687415f;\n"
     "    p = p * z - 0.0318607613f;\n"
     "    p = p * z + 0.0586693548f;\n"
     "    p = p * z - 0.0844679996f;\n"
     "    p = p * z + 0.109677382f;\n"
     "    p = p * z - 0.142673805f;\n"
     "    p = p * z + 0.199988633f;\n"
     "    p = p * z - 0.333333105f;\n"
     "    p = p * z;\n"
     "    return sign_of$(high + (t + (p * t + low)), x);\n"
     "}\n"},
    {"sinh", SNIPPET_ANY_F32,
     "static inline F sinh$(F x)\n"
     "{\n"
     "    const F a = abs$(x);\n"
     "    const F z = a * a;\n"
     "    F p = 2.78421794e-06f * z + 0.000198426118f;\n"
     "    p = p * z + 0.00833331142f;\n"
     "    p = p * z + 0.166666672f;\n"
     "    p = p * z;\n"
     "    const F near = p * a + a;\n"
     "    const F h = exp_by$(a, -1);\n"
     "    return sign_of$(select$(a < 1.0f, near, h - 0.25f / h), x);\n"
     "}\n"},
    {"cosh", SNIPPET_ANY_F32,
     "static inline F cosh$(F x)\n"
     "{\n"
     "    const F h = exp_by$(abs$(x), -1);\n"
     "    return h + 0.25f / h;\n"
     "}\n"},
    {"pow", SNIPPET_VECTOR,
     "static inline F pow$(F x, F y)\n"
     "{\n"
     "    F z;\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        z[i] = powf(x[i], y[i]);\n"
     "    return z;\n"
     "}\n"},
    /* Functions that are left to the C library. */
    {"exp2", SNIPPET_VECTOR,
     "static inline F exp2$(F x)\n"
     "{\n"
     "    F y;\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = exp2f(x[i]);\n"
     "    return y;\n"
     "}\n"},
    {"log2", SNIPPET_VECTOR,
     "static inline F log2$(F x)\n"
     "{\n"
     "    F y;\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = log2f(x[i]);\n"
     "    return y;\n"
     "}\n"},
    {"cbrt", SNIPPET_VECTOR,
     "static inline F cbrt$(F x)\n"
     "{\n"
     "    F y;\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = cbrtf(x[i]);\n"
     "    return y;\n"
     "}\n"},
    {"asinh", SNIPPET_VECTOR,
     "static inline F asinh$(F x)\n"
     "{\n"
     "    F y;\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = asinhf(x[i]);\n"
     "    return y;\n"
     "}\n"},
    {"acosh", SNIPPET_VECTOR,
     "static inline F acosh$(F x)\n"
     "{\n"
     "    F y;\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = acoshf(x[i]);\n"
     "    return y;\n"
     "}\n"},
    {"atanh", SNIPPET_VECTOR,
     "static inline F atanh$(F x)\n"
     "{\n"
     "    F y;\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = atanhf(x[i]);\n"
     "    return y;\n"
     "}\n"},
    {NULL, 0, NULL},
};
