/* Random numbers of emitted sources: the bits of compiler/ops/random.h, whatever compiles them.
 *
 * Philox is made of integers, and a uniform number is exact.  Of a Gaussian one every product that rounds is made by
 * times$, so that no compiler contracts it with a sum, and every sum rounds by stored$, as does sqrt, which
 * IEEE 754 rounds once.  A constant that no short decimal tells exactly goes through splat$: where FLT_EVAL_METHOD is
 * not 0, C99 reads it as a double.  A vector form takes a position that is a multiple of 4: whole blocks, each word in
 * its own lane. */
#include "c/snippet.h"

#include <stddef.h>

const Snippet snippet_random[] = {
    {"philox", SNIPPET_F32,
     "/* Random words of a key, block `counter` of a stream: Philox 4x32-10 (Salmon et al. 2011) */\n"
     "static inline void philox$(int64_t key, int64_t counter, uint32_t stream, uint32_t c[4])\n"
     "{\n"
     "    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)((uint64_t)key >> 32);\n"
     "    c[0] = (uint32_t)counter;\n"
     "    c[1] = (uint32_t)((uint64_t)counter >> 32);\n"
     "    c[2] = stream;\n"
     "    c[3] = 0;\n"
     "    for (int round = 0; round < 10; round++) {\n"
     "        const uint64_t p = (uint64_t)0xD2511F53u * c[0], q = (uint64_t)0xCD9E8D57u * c[2];\n"
     "        c[0] = (uint32_t)(q >> 32) ^ c[1] ^ k0;\n"
     "        c[1] = (uint32_t)q;\n"
     "        c[2] = (uint32_t)(p >> 32) ^ c[3] ^ k1;\n"
     "        c[3] = (uint32_t)p;\n"
     "        k0 += 0x9E3779B9u;\n"
     "        k1 += 0xBB67AE85u;\n"
     "    }\n"
     "}\n"},
    {"philox", SNIPPET_VECTOR,
     "/* Random words of a key (Philox 4x32-10) from `position` on, a multiple of 4.  Words 0 and 1 of a block stand "
     "in\n"
     "   64 bits, 2 and 3 in the next. */\n"
     "static inline U philox$(int64_t key, int64_t position)\n"
     "{\n"
     "    typedef uint64_t pairs __attribute__((vector_size(4 * LANES)));\n"
     "    const U lane = {EACH(#)};\n"
     "    const U at0 = (U)((lane & 3u) == 0u), at2 = (U)((lane & 3u) == 2u);\n"
     "    const pairs factor = (pairs)((at0 & 0xD2511F53u) | (at2 & 0xCD9E8D57u));\n"
     "    const U step = (at0 & 0x9E3779B9u) | (at2 & 0xBB67AE85u);\n"
     "    U k = (at0 & (uint32_t)key) | (at2 & (uint32_t)((uint64_t)key >> 32));\n"
     "    pairs c = ((pairs)(lane >> 2 & at0) + (uint64_t)(position / 4)) & (pairs)(U)((lane & 2u) == 0u);\n"
     "    for (int round = 0; round < 10; round++) {\n"
     "#if defined(WIDE) && !defined(__clang__)\n"
     "        U p;\n"
     "        __asm__(\"vpmuludq %1, %2, %0\" : \"=v\"(p) : \"v\"(c), \"v\"(factor)); /* gcc would multiply all 64 "
     "bits */\n"
     "#else\n"
     "        const U p = (U)((c & 0xFFFFFFFFu) * factor);\n"
     "#endif\n"
     "        c = (pairs)(NNC_SHUFFLE(p, p, EACH(# ^ 3)) ^ k) ^ (c >> 32);\n"
     "        k += step;\n"
     "    }\n"
     "    return (U)c;\n"
     "}\n"},
    {"word", SNIPPET_SIGNED,
     "static inline T word$(int64_t key, int64_t position)\n"
     "{\n"
     "    uint32_t c[4];\n"
     "    philox@(key, position / 4, 0, c);\n"
     "    return (T)c[position % 4];\n"
     "}\n"},
    {"fold_in", SNIPPET_SIGNED,
     "/* Another key, made of a key and a number */\n"
     "static inline T fold_in$(T key, T number)\n"
     "{\n"
     "    uint32_t c[4];\n"
     "    philox@(key, number, 1, c);\n"
     "    return (T)((uint64_t)c[1] << 32 | c[0]);\n"
     "}\n"},
    {"unit", SNIPPET_F32,
     "/* Uniform in [0, 1), with 24 bits */\n"
     "static inline float unit$(int64_t key, int64_t position)\n"
     "{\n"
     "    uint32_t c[4];\n"
     "    philox$(key, position / 4, 0, c);\n"
     "    return (float)(c[position % 4] >> 8) * 5.9604644775390625e-08f;\n"
     "}\n"},
    {"unit", SNIPPET_VECTOR,
     "static inline F unit$(int64_t key, int64_t position)\n"
     "{\n"
     "    return whole$((I)(philox$(key, position) >> 8)) * 5.9604644775390625e-08f;\n"
     "}\n"},
    {"whole", SNIPPET_F32,
     "static inline float whole$(int x)\n"
     "{\n"
     "    return (float)x;\n"
     "}\n"},
    {"whole", SNIPPET_VECTOR,
     "static inline F whole$(I x)\n"
     "{\n"
     "    return __builtin_convertvector(x, F);\n"
     "}\n"},
    {"times", SNIPPET_ANY_F32,
     "/* a * b, rounded before anything is added to it */\n"
     "static inline F times$(F a, F b)\n"
     "{\n"
     "    volatile F product = a * b;\n"
     "    return product;\n"
     "}\n"},
    /* The steps of random_log and random_normal_pair, one by one. */
    {"gauss_of", SNIPPET_ANY_F32,
     "/* The first or, where odd is 1, the second Gaussian number of two words (Box and Muller 1958) */\n"
     "static inline F gauss_of$(U a, U b, U odd)\n"
     "{\n"
     "    const F u = whole$((I)(0x1000000u - (a >> 8))) * 5.9604644775390625e-08f;\n"
     "    const I n = (I)(bits$(u) - 0x3F3504F3u) >> 23;\n"
     "    const F e = whole$(n); /* log(u) = e log(2) + log(1 + x) */\n"
     "    const F x = value$(bits$(u) - ((U)n << 23)) - 1.0f, z = times$(x, x);\n"
     "    F p = stored$(times$(splat$(0.0703768358f), x) - splat$(0.115146101f));\n"
     "    p = stored$(times$(p, x) + splat$(0.116769984f));\n"
     "    p = stored$(times$(p, x) - splat$(0.12420141f));\n"
     "    p = stored$(times$(p, x) + splat$(0.142493233f));\n"
     "    p = stored$(times$(p, x) - splat$(0.166680574f));\n"
     "    p = stored$(times$(p, x) + splat$(0.200007141f));\n"
     "    p = stored$(times$(p, x) - splat$(0.24999994f));\n"
     "    p = stored$(times$(p, x) + splat$(0.333333313f));\n"
     "    p = stored$(times$(times$(p, x), z) - times$(e, splat$(0.000212194442f)));\n"
     "    p = stored$(x + stored$(p - 0.5f * z));\n"
     "    const F r = stored$(sqrt$(-2.0f * stored$(e * 0.693359375f + p)));\n"
     "    const U turn = (b >> 8) + 0x200000u, quadrant = turn >> 22; /* of a turn by quadrant * pi / 2 + t */\n"
     "    const F t = times$(whole$((I)(turn & 0x3FFFFFu) - 0x200000), splat$(3.74507039e-07f)), q = times$(t, t);\n"
     "    F s = stored$(times$(splat$(-0.000195152956f), q) + splat$(0.00833216123f));\n"
     "    s = stored$(times$(s, q) - splat$(0.166666552f));\n"
     "    s = stored$(times$(times$(s, q), t) + t);\n"
     "    F c = stored$(times$(splat$(2.44331568e-05f), q) - splat$(0.00138873165f));\n"
     "    c = stored$(times$(c, q) + splat$(0.0416666456f));\n"
     "    c = stored$(stored$(times$(times$(c, q), q) - 0.5f * q) + 1.0f);\n"
     "    const U sign = ((quadrant + 1u - odd) & 2u) << 30;\n"
     "    const F wave = times$(r, select$(((quadrant ^ odd) & 1u) != 0u, s, c));\n"
     "    return value$(bits$(wave) ^ sign) + 0.0f; /* never -0 */\n"
     "}\n"},
    {"gauss", SNIPPET_F32,
     "static inline float gauss$(int64_t key, int64_t position)\n"
     "{\n"
     "    uint32_t c[4];\n"
     "    philox$(key, position / 4, 0, c);\n"
     "    const int pair = (int)(position & 2);\n"
     "    return gauss_of$(c[pair], c[pair + 1], (uint32_t)(position & 1));\n"
     "}\n"},
    {"gauss", SNIPPET_VECTOR,
     "static inline F gauss$(int64_t key, int64_t position)\n"
     "{\n"
     "    const U lane = {EACH(#)};\n"
     "    const U w = philox$(key, position);\n"
     "    return gauss_of$(NNC_SHUFFLE(w, w, EACH(# & ~1)), NNC_SHUFFLE(w, w, EACH(# | 1)), lane & 1u);\n"
     "}\n"},
    {NULL, 0, NULL},
};

const Snippet snippet_device[] = {
    {"times", SNIPPET_F32,
     "static inline float times$(float a, float b)\n"
     "{\n"
     "    return __fmul_rn(a, b); /* never contracted */\n"
     "}\n"},
    {NULL, 0, NULL},
};
