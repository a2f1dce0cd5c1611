/* The plain helpers of emitted sources: memory, choice, reductions over lanes, rounding, integer division, conversions
 * of 16-bit floats (as compiler/ir/tensor.c does them).  See snippet.h for the form of a text. */
#include "c/snippet.h"

#include <stddef.h>

const Snippet snippet_basic[] = {
    {"bits", SNIPPET_F32,
     "static inline uint32_t bits$(float x)\n"
     "{\n"
     "    uint32_t u;\n"
     "    memcpy(&u, &x, sizeof u);\n"
     "    return u;\n"
     "}\n"},
    /* gcc rounds at assignments and casts, as C99 says, only when it is told to (-std=c99). */
    {"stored", SNIPPET_F32,
     "/* x rounded to a float, also where registers are wider: x87 */\n"
     "static inline float stored$(float x)\n"
     "{\n"
     "#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16\n"
     "    volatile float y = x;\n"
     "    return y;\n"
     "#else\n"
     "    return x;\n"
     "#endif\n"
     "}\n"},
    {"stored", SNIPPET_VECTOR,
     "static inline F stored$(F x)\n"
     "{\n"
     "    return x;\n"
     "}\n"},
    {"value", SNIPPET_F32,
     "static inline float value$(uint32_t u)\n"
     "{\n"
     "    float x;\n"
     "    memcpy(&x, &u, sizeof x);\n"
     "    return x;\n"
     "}\n"},
    {"bits", SNIPPET_VECTOR,
     "static inline U bits$(F x)\n"
     "{\n"
     "    return (U)x;\n"
     "}\n"},
    {"value", SNIPPET_VECTOR,
     "static inline F value$(U u)\n"
     "{\n"
     "    return (F)u;\n"
     "}\n"},
    {"load", SNIPPET_VECTOR,
     "static inline F load$(const float *p)\n"
     "{\n"
     "    return *(const UNALIGNED *)p;\n"
     "}\n"},
    {"store", SNIPPET_VECTOR,
     "static inline void store$(float *p, F x)\n"
     "{\n"
     "    *(UNALIGNED *)p = x;\n"
     "}\n"},
    {"load_mask", SNIPPET_VECTOR,
     "static inline I load_mask$(const unsigned char *p)\n"
     "{\n"
     "    return __builtin_convertvector(*(const UNALIGNED_BYTES *)p, I) != 0;\n"
     "}\n"},
    {"gather_mask", SNIPPET_VECTOR,
     "static inline I gather_mask$(const unsigned char *p, ptrdiff_t stride)\n"
     "{\n"
     "    const I x = {EACH(p[# * stride])};\n"
     "    return x != 0;\n"
     "}\n"},
    {"store_mask", SNIPPET_VECTOR,
     "static inline void store_mask$(unsigned char *p, I mask)\n"
     "{\n"
     "    *(UNALIGNED_BYTES *)p = __builtin_convertvector(mask & 1, BYTES);\n"
     "}\n"},
    {"splat_mask", SNIPPET_VECTOR,
     "static inline I splat_mask$(int truth)\n"
     "{\n"
     "    const I zero = {0};\n"
     "    return zero - truth;\n"
     "}\n"},
    {"gather", SNIPPET_VECTOR,
     "static inline F gather$(const float *p, ptrdiff_t stride)\n"
     "{\n"
     "    const F x = {EACH(p[# * stride])};\n"
     "    return x;\n"
     "}\n"},
    {"even", SNIPPET_VECTOR,
     "static inline F even$(const float *p)\n"
     "{\n"
     "    return NNC_SHUFFLE(load$(p), load$(p + LANES - 1), EVENS);\n"
     "}\n"},
    {"third", SNIPPET_VECTOR,
     "static inline F third$(const float *p)\n"
     "{\n"
     "    const F low = NNC_SHUFFLE(load$(p), load$(p + LANES), THIRDS_LOW);\n"
     "    return NNC_SHUFFLE(low, load$(p + 2 * (LANES - 1)), THIRDS_HIGH);\n"
     "}\n"},
    {"fourth", SNIPPET_VECTOR,
     "static inline F fourth$(const float *p)\n"
     "{\n"
     "    return NNC_SHUFFLE(even$(p), even$(p + 2 * (LANES - 1)), EVENS);\n"
     "}\n"},
    {"store_2", SNIPPET_VECTOR,
     "static inline void store_2$(float *p, F a, F b)\n"
     "{\n"
     "    store$(p, NNC_SHUFFLE(a, b, TURNS_LOW));\n"
     "    store$(p + LANES, NNC_SHUFFLE(a, b, TURNS_HIGH));\n"
     "}\n"},
    {"store_3", SNIPPET_VECTOR,
     "static inline void store_3$(float *p, F a, F b, F c)\n"
     "{\n"
     "    store$(p, NNC_SHUFFLE(NNC_SHUFFLE(a, b, TWO_OF_THREE_0), c, THIRD_OF_THREE_0));\n"
     "    store$(p + LANES, NNC_SHUFFLE(NNC_SHUFFLE(a, b, TWO_OF_THREE_1), c, THIRD_OF_THREE_1));\n"
     "    store$(p + 2 * LANES, NNC_SHUFFLE(NNC_SHUFFLE(a, b, TWO_OF_THREE_2), c, THIRD_OF_THREE_2));\n"
     "}\n"},
    {"store_4", SNIPPET_VECTOR,
     "static inline void store_4$(float *p, F a, F b, F c, F d)\n"
     "{\n"
     "    store_2$(p, NNC_SHUFFLE(a, c, TURNS_LOW), NNC_SHUFFLE(b, d, TURNS_LOW));\n"
     "    store_2$(p + 2 * LANES, NNC_SHUFFLE(a, c, TURNS_HIGH), NNC_SHUFFLE(b, d, TURNS_HIGH));\n"
     "}\n"},
    {"store_6", SNIPPET_VECTOR,
     "static inline void store_6$(float *p, F a, F b, F c, F d, F e, F f)\n"
     "{\n"
     "    store_3$(p, NNC_SHUFFLE(a, d, TURNS_LOW), NNC_SHUFFLE(b, e, TURNS_LOW), NNC_SHUFFLE(c, f, TURNS_LOW));\n"
     "    store_3$(p + 3 * LANES, NNC_SHUFFLE(a, d, TURNS_HIGH), NNC_SHUFFLE(b, e, TURNS_HIGH),\n"
     "            NNC_SHUFFLE(c, f, TURNS_HIGH));\n"
     "}\n"},
    {"store_8", SNIPPET_VECTOR,
     "static inline void store_8$(float *p, F a, F b, F c, F d, F e, F f, F g, F h)\n"
     "{\n"
     "    store_4$(p, NNC_SHUFFLE(a, e, TURNS_LOW), NNC_SHUFFLE(b, f, TURNS_LOW), NNC_SHUFFLE(c, g, TURNS_LOW),\n"
     "            NNC_SHUFFLE(d, h, TURNS_LOW));\n"
     "    store_4$(p + 4 * LANES, NNC_SHUFFLE(a, e, TURNS_HIGH), NNC_SHUFFLE(b, f, TURNS_HIGH),\n"
     "            NNC_SHUFFLE(c, g, TURNS_HIGH), NNC_SHUFFLE(d, h, TURNS_HIGH));\n"
     "}\n"},
    {"scatter", SNIPPET_VECTOR,
     "static inline void scatter$(float *p, ptrdiff_t stride, F x)\n"
     "{\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        p[i * stride] = x[i];\n"
     "}\n"},
    {"splat", SNIPPET_F32,
     "static inline float splat$(float x)\n"
     "{\n"
     "    return x;\n"
     "}\n"},
    {"splat", SNIPPET_VECTOR,
     "static inline F splat$(float x)\n"
     "{\n"
     "    const F zero = {0};\n"
     "    return x - zero; /* keeps -0 */\n"
     "}\n"},
    {"select", SNIPPET_SCALAR,
     "static inline T select$(int mask, T a, T b)\n"
     "{\n"
     "    return mask ? a : b;\n"
     "}\n"},
    {"select", SNIPPET_VECTOR,
     "static inline F select$(I mask, F a, F b)\n"
     "{\n"
     "    return (F)((mask & (I)a) | (~mask & (I)b));\n"
     "}\n"},
    {"max", SNIPPET_F32 | SNIPPET_F64,
     "static inline T max$(T a, T b)\n"
     "{\n"
     "    return a > b || a != a ? a : b;\n"
     "}\n"},
    {"min", SNIPPET_F32 | SNIPPET_F64,
     "static inline T min$(T a, T b)\n"
     "{\n"
     "    return a < b || a != a ? a : b;\n"
     "}\n"},
    {"max", SNIPPET_SIGNED | SNIPPET_UNSIGNED,
     "static inline T max$(T a, T b)\n"
     "{\n"
     "    return a > b ? a : b;\n"
     "}\n"},
    {"min", SNIPPET_SIGNED | SNIPPET_UNSIGNED,
     "static inline T min$(T a, T b)\n"
     "{\n"
     "    return a < b ? a : b;\n"
     "}\n"},
    {"max", SNIPPET_VECTOR,
     "static inline F max$(F a, F b)\n"
     "{\n"
     "    const F larger = select$(a > b, a, b); /* maxps: b where one is NaN */\n"
     "    return value$(bits$(larger) | NANS);\n"
     "}\n"},
    {"min", SNIPPET_VECTOR,
     "static inline F min$(F a, F b)\n"
     "{\n"
     "    const F smaller = select$(a < b, a, b);\n"
     "    return value$(bits$(smaller) | NANS);\n"
     "}\n"},
    {"atleast", SNIPPET_ANY_F32,
     "static inline F atleast$(F x, float low)\n"
     "{\n"
     "    return select$(x < low, splat$(low), x);\n"
     "}\n"},
    {"atmost", SNIPPET_ANY_F32,
     "static inline F atmost$(F x, float high)\n"
     "{\n"
     "    return select$(x > high, splat$(high), x);\n"
     "}\n"},
    {"sum", SNIPPET_VECTOR,
     "static inline float sum$(F x)\n"
     "{\n"
     "TREE(x + y)\n"
     "    return x[0];\n"
     "}\n"},
    {"product", SNIPPET_VECTOR,
     "static inline float product$(F x)\n"
     "{\n"
     "TREE(x * y)\n"
     "    return x[0];\n"
     "}\n"},
    /* As integers, which one instruction compares where floats would take three for a NaN to stay.  There is no mask in
     * it: compilers would load a constant under one, and where nothing else touches its page each such load traps. */
    {"ordered", SNIPPET_VECTOR,
     "/* integers that compare as the numbers do, -NaN least of all and NaN above all */\n"
     "static inline U ordered$(F v)\n"
     "{\n"
     "    const I x = (I)v;\n"
     "    return (U)(x ^ (x >> 31 & 0x7FFFFFFF));\n"
     "}\n"},
    {"unordered", SNIPPET_F32,
     "static inline float unordered$(uint32_t u)\n"
     "{\n"
     "    return value$(u & 0x80000000u ? u ^ 0x7FFFFFFFu : u);\n"
     "}\n"},
    {"larger", SNIPPET_VECTOR,
     "static inline I larger$(I a, I b)\n"
     "{\n"
     "    const I mask = a > b;\n"
     "    return (mask & a) | (~mask & b);\n"
     "}\n"},
    {"smaller", SNIPPET_VECTOR,
     "static inline I smaller$(I a, I b)\n"
     "{\n"
     "    const I mask = a < b;\n"
     "    return (mask & a) | (~mask & b);\n"
     "}\n"},
    {"largest", SNIPPET_VECTOR,
     "static inline float largest$(F v)\n"
     "{\n"
     "    I x = (I)(ordered$(v) - 0x7FFFFFu); /* -infinity is the least, and -NaN wraps around */\n"
     "TREE_I(larger$(x, y))\n"
     "    return unordered@((uint32_t)x[0] + 0x7FFFFFu);\n"
     "}\n"},
    {"least", SNIPPET_VECTOR,
     "static inline float least$(F v)\n"
     "{\n"
     "    I x = (I)(ordered$(v) + 0x7FFFFFu); /* infinity is the largest, and NaN wraps around */\n"
     "TREE_I(smaller$(x, y))\n"
     "    return unordered@((uint32_t)x[0] - 0x7FFFFFu);\n"
     "}\n"},
    {"abs", SNIPPET_SIGNED,
     "static inline T abs$(T x)\n"
     "{\n"
     "    return x < 0 ? (T)(0u - (uint64_t)x) : x;\n"
     "}\n"},
    {"abs", SNIPPET_UNSIGNED,
     "static inline T abs$(T x)\n"
     "{\n"
     "    return x;\n"
     "}\n"},
    {"abs", SNIPPET_VECTOR,
     "static inline F abs$(F x)\n"
     "{\n"
     "    return value$(bits$(x) & 0x7FFFFFFFu);\n"
     "}\n"},
    {"sign_of", SNIPPET_ANY_F32,
     "/* a, which is no less than 0 or has the sign of x, with that sign */\n"
     "static inline F sign_of$(F a, F x)\n"
     "{\n"
     "    return value$(bits$(a) | (bits$(x) & 0x80000000u));\n"
     "}\n"},
    {"sqrt", SNIPPET_VECTOR,
     "static inline F sqrt$(F x)\n"
     "{\n"
     "    F y;\n"
     "    /* C has no operator for it, and sqrtf sets errno. */\n"
     "#if defined(WIDE)\n"
     "    __asm__(\"vsqrtps %1, %0\" : \"=v\"(y) : \"v\"(x));\n"
     "#elif defined(__x86_64__) && !defined(NNC_ANY_MACHINE)\n"
     "    __asm__(\"sqrtps %1, %0\" : \"=x\"(y) : \"x\"(x));\n"
     "#elif defined(__aarch64__)\n"
     "    __asm__(\"fsqrt %0.4s, %1.4s\" : \"=w\"(y) : \"w\"(x));\n"
     "#else\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        y[i] = sqrtf(x[i]);\n"
     "#endif\n"
     "    return y;\n"
     "}\n"},
    /* From 2^23 on every float is an integer; below, adding 2^23 rounds. */
    {"round", SNIPPET_VECTOR,
     "static inline F round$(F x)\n"
     "{\n"
     "#if defined(WIDE)\n"
     "    F y;\n"
     "    __asm__(ROUNDS \" $8, %1, %0\" : \"=\" REGISTERS(y) : REGISTERS(x));\n"
     "    return y;\n"
     "#else\n"
     "    const U sign = (U)x & 0x80000000u;\n"
     "    const F a = (F)((U)x ^ sign);\n"
     "    const I small = a < 8388608.0f;\n"
     "    const F near = (a + 8388608.0f) - 8388608.0f;\n"
     "    return (F)(((U)small & (U)near) | (~(U)small & (U)a) | sign);\n"
     "#endif\n"
     "}\n"},
    {"floor", SNIPPET_VECTOR,
     "static inline F floor$(F x)\n"
     "{\n"
     "    const F y = round$(x);\n"
     "    return sign_of$(y - select$(y > x, splat$(1.0f), splat$(0.0f)), x);\n"
     "}\n"},
    {"ceil", SNIPPET_VECTOR,
     "static inline F ceil$(F x)\n"
     "{\n"
     "    const F y = round$(x);\n"
     "    return sign_of$(y + select$(y < x, splat$(1.0f), splat$(0.0f)), x);\n"
     "}\n"},
    {"trunc", SNIPPET_VECTOR,
     "static inline F trunc$(F x)\n"
     "{\n"
     "    return sign_of$(floor$(abs$(x)), x);\n"
     "}\n"},
    {"fmod", SNIPPET_VECTOR,
     "static inline F fmod$(F x, F y)\n"
     "{\n"
     "    F z;\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        z[i] = fmodf(x[i], y[i]);\n"
     "    return z;\n"
     "}\n"},
    {"mod", SNIPPET_VECTOR,
     "static inline F mod$(F x, F y)\n"
     "{\n"
     "    F z;\n"
     "    for (int i = 0; i < LANES; i++)\n"
     "        z[i] = mod@(x[i], y[i]);\n"
     "    return z;\n"
     "}\n"},
    {"mod", SNIPPET_F32 | SNIPPET_F64,
     "static inline T mod$(T x, T y)\n"
     "{\n"
     "    const T rest = fmod$(x, y);\n"
     "    if (rest == 0)\n"
     "        return copysign$(rest, y);\n"
     "    return (rest < 0) != (y < 0) ? rest + y : rest;\n"
     "}\n"},
    {"div", SNIPPET_SIGNED,
     "static inline T div$(T x, T y)\n"
     "{\n"
     "    if (y == 0)\n"
     "        return 0;\n"
     "    if (y == -1)\n"
     "        return (T)(0u - (uint64_t)x); /* wraps */\n"
     "    return (T)(x / y - (x % y != 0 && (x < 0) != (y < 0)));\n"
     "}\n"},
    {"mod", SNIPPET_SIGNED,
     "static inline T mod$(T x, T y)\n"
     "{\n"
     "    if (y == 0 || y == -1)\n"
     "        return 0;\n"
     "    const T rest = (T)(x % y);\n"
     "    return (T)(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);\n"
     "}\n"},
    {"div", SNIPPET_UNSIGNED,
     "static inline T div$(T x, T y)\n"
     "{\n"
     "    return (T)(y ? x / y : 0);\n"
     "}\n"},
    {"mod", SNIPPET_UNSIGNED,
     "static inline T mod$(T x, T y)\n"
     "{\n"
     "    return (T)(y ? x % y : 0);\n"
     "}\n"},
    {"fmod", SNIPPET_SIGNED,
     "static inline T fmod$(T x, T y)\n"
     "{\n"
     "    return (T)(y == 0 || y == -1 ? 0 : x % y);\n"
     "}\n"},
    {"fmod", SNIPPET_UNSIGNED,
     "static inline T fmod$(T x, T y)\n"
     "{\n"
     "    return (T)(y ? x % y : 0);\n"
     "}\n"},
    {"shift_left", SNIPPET_SIGNED | SNIPPET_UNSIGNED,
     "static inline T shift_left$(T x, T by)\n"
     "{\n"
     "    return (uint64_t)by < 8 * sizeof x ? (T)((uint64_t)x << by) : (T)0;\n"
     "}\n"},
    {"shift_right", SNIPPET_SIGNED,
     "static inline T shift_right$(T x, T by)\n"
     "{\n"
     "    const int n = (uint64_t)by < 8 * sizeof x ? (int)by : (int)(8 * sizeof x - 1);\n"
     "    return (T)(x < 0 ? ~(~x >> n) : x >> n);\n"
     "}\n"},
    {"shift_right", SNIPPET_UNSIGNED,
     "static inline T shift_right$(T x, T by)\n"
     "{\n"
     "    return (T)((uint64_t)by < 8 * sizeof x ? x >> by : 0);\n"
     "}\n"},
    {"to_f32_from_bf16", SNIPPET_PLAIN,
     "static inline float to_f32_from_bf16(uint16_t x)\n"
     "{\n"
     "    return value@((uint32_t)x << 16);\n"
     "}\n"},
    /* A NaN stays one when its low half is cut. */
    {"to_bf16_from_f32", SNIPPET_PLAIN,
     "static inline uint16_t to_bf16_from_f32(float x)\n"
     "{\n"
     "    const uint32_t u = bits@(x);\n"
     "    if (x != x)\n"
     "        return (uint16_t)((u >> 16) | 0x40u);\n"
     "    return (uint16_t)((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);\n"
     "}\n"},
    {"to_f32_from_f16", SNIPPET_PLAIN,
     "static inline float to_f32_from_f16(uint16_t x)\n"
     "{\n"
     "#if defined(__F16C__)\n"
     "    float y = value@(x);\n"
     "    __asm__(\"vcvtph2ps %0, %0\" : \"+x\"(y));\n"
     "    return y;\n"
     "#elif defined(__aarch64__) && defined(__GNUC__)\n"
     "    float y = value@(x);\n"
     "    __asm__(\"fcvt %s0, %h0\" : \"+w\"(y));\n"
     "    return y;\n"
     "#else\n"
     "    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, a = (uint32_t)(x & 0x7FFFu) << 13;\n"
     "    const float normal = value@(sign | (a + (a < 0x0F800000u ? 0x38000000u : 0x70000000u)));\n"
     "    const float small = value@(a + 0x38800000u) - 6.103515625e-05f; /* 2^-14; subnormals and zero */\n"
     "    return a < 0x00800000u ? (sign ? -small : small) : normal;\n"
     "#endif\n"
     "}\n"},
    {"to_f16_from_f32", SNIPPET_PLAIN,
     "static inline uint16_t to_f16_from_f32(float x)\n"
     "{\n"
     "#if defined(__F16C__)\n"
     "    __asm__(\"vcvtps2ph $0, %0, %0\" : \"+x\"(x));\n"
     "    return (uint16_t)bits@(x);\n"
     "#elif defined(__aarch64__) && defined(__GNUC__)\n"
     "    __asm__(\"fcvt %h0, %s0\" : \"+w\"(x));\n"
     "    return (uint16_t)bits@(x);\n"
     "#else\n"
     "    const uint32_t u = bits@(x), sign = (u >> 16) & 0x8000u, a = u & 0x7FFFFFFFu;\n"
     "    if (a > 0x7F800000u)\n"
     "        return (uint16_t)(sign | 0x7E00u);\n"
     "    if (a >= 0x477FF000u) /* rounds to 65536 or more */\n"
     "        return (uint16_t)(sign | 0x7C00u);\n"
     "    if (a < 0x38800000u) /* subnormal or zero: the addition rounds */\n"
     "        return (uint16_t)(sign | (bits@((sign ? -x : x) + 0.5f) - 0x3F000000u));\n"
     "    return (uint16_t)(sign | (((a + 0xFFFu + ((a >> 13) & 1u)) >> 13) - (112u << 10)));\n"
     "#endif\n"
     "}\n"},
    {"to_f32_from_f64", SNIPPET_PLAIN,
     "/* gcc 11 and 12 lose the rounding of (double)(float)x where they make vectors of it at -O3. */\n"
     "static inline float to_f32_from_f64(double x)\n"
     "{\n"
     "    float y = (float)x;\n"
     "#if defined(__GNUC__) && !defined(__clang__) && defined(__SSE2__)\n"
     "    __asm__(\"\" : \"+x\"(y));\n"
     "#endif\n"
     "    return y;\n"
     "}\n"},
    /* The step to f32 rounds to odd, so that the two steps round as one (Boldo and Melquiond 2008). */
    {"odd_f32_from_f64", SNIPPET_PLAIN,
     "static inline float odd_f32_from_f64(double x)\n"
     "{\n"
     "    const float near = stored@((float)x);\n"
     "    uint32_t u = bits@(near);\n"
     "    if ((double)near == x || x != x || (u & 0x7FFFFFFFu) == 0x7F800000u)\n"
     "        return near;\n"
     "    if (fabs((double)near) > fabs(x))\n"
     "        u--;\n"
     "    return value@(u | 1u);\n"
     "}\n"},
    {NULL, 0, NULL},
};
