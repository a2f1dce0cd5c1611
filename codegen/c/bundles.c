/* The helpers of contractions that multiply bundles, words of 32 bits with several neighbours of the depth, and add up
 * the products of each (kernel/loop/loop.h).  Without the instructions the same bits come of others. */
#include "c/snippet.h"

#include <stddef.h>

/* Of pairs of i16 in words of 32 bits, as the instructions that multiply them want them. */
#define PAIRS(name, element, instruction)                                                                              \
    "static inline I pairs_" name "$(const " element                                                                   \
    " *p, int less)\n"                                                                                                 \
    "{\n"                                                                                                              \
    "    typedef " element                                                                                             \
    " narrow __attribute__((vector_size(2 * LANES), aligned(1), may_alias));\n"                                        \
    "    typedef int16_t wider __attribute__((vector_size(4 * LANES)));\n"                                             \
    "    wider y;\n"                                                                                                   \
    "#if defined(PAIRED)\n"                                                                                            \
    "    __asm__(\"" instruction                                                                                       \
    " %1, %0\" : \"=v\"(y) : \"m\"(*(const narrow *)(const void *)p));\n"                                              \
    "#else\n"                                                                                                          \
    "    narrow x;\n"                                                                                                  \
    "    memcpy(&x, p, sizeof x);\n"                                                                                   \
    "    y = __builtin_convertvector(x, wider);\n"                                                                     \
    "#endif\n"                                                                                                         \
    "    return (I)(y - (int16_t)less);\n"                                                                             \
    "}\n"

#define QUADS(name, element)                                                                                           \
    "static inline I quads_" name "$(const " element                                                                   \
    " *p, int less)\n"                                                                                                 \
    "{\n"                                                                                                              \
    "    typedef uint8_t bytes __attribute__((vector_size(4 * LANES)));\n"                                             \
    "    bytes x;\n"                                                                                                   \
    "    memcpy(&x, p, sizeof x);\n"                                                                                   \
    "    return (I)(x - (uint8_t)less);\n"                                                                             \
    "}\n"

#define BUNDLE(name, type, form)                                                                                       \
    {                                                                                                                  \
        name, form,                                                                                                    \
            "static inline " type " " name                                                                             \
            "$(const T *p)\n"                                                                                          \
            "{\n"                                                                                                      \
            "    " type                                                                                                \
            " x;\n"                                                                                                    \
            "    memcpy(&x, p, sizeof x);\n"                                                                           \
            "    return x;\n"                                                                                          \
            "}\n"                                                                                                      \
    }

const Snippet snippet_bundles[] = {
    BUNDLE("pair", "int32_t", SNIPPET_SIGNED | SNIPPET_UNSIGNED),
    BUNDLE("quad", "int32_t", SNIPPET_UNSIGNED),
    {"pairs_i8", SNIPPET_VECTOR, PAIRS("i8", "int8_t", "vpmovsxbw")},
    {"pairs_u8", SNIPPET_VECTOR, PAIRS("u8", "uint8_t", "vpmovzxbw")},
    {"pairs_bf16", SNIPPET_VECTOR,
     "static inline I pairs_bf16$(const uint16_t *p)\n"
     "{\n"
     "    I x;\n"
     "    memcpy(&x, p, sizeof x);\n"
     "    return x;\n"
     "}\n"},
    {"quads_i8", SNIPPET_VECTOR, QUADS("i8", "int8_t")},
    {"quads_u8", SNIPPET_VECTOR, QUADS("u8", "uint8_t")},
    {"splat_pair", SNIPPET_VECTOR,
     "static inline I splat_pair$(int32_t x)\n"
     "{\n"
     "    const I zero = {0};\n"
     "    return zero + x;\n"
     "}\n"},
    {"load_words", SNIPPET_VECTOR,
     "static inline I load_words$(const int32_t *p)\n"
     "{\n"
     "    I x;\n"
     "    memcpy(&x, p, sizeof x);\n"
     "    return x;\n"
     "}\n"},
    {"store_words", SNIPPET_VECTOR,
     "static inline void store_words$(int32_t *p, I x)\n"
     "{\n"
     "    memcpy(p, &x, sizeof x);\n"
     "}\n"},
    /* C has no operator for any of them. */
    {"dot", SNIPPET_VECTOR,
     "static inline I dot$(I sum, I x, I y)\n"
     "{\n"
     "#if defined(DOTS)\n"
     "    __asm__(SUMS_PAIRS \" %2, %1, %0\" : \"+\" REGISTERS(sum) : REGISTERS(x), REGISTERS(y));\n"
     "    return sum;\n"
     "#elif defined(PAIRED)\n"
     "    I z;\n"
     "    __asm__(\"vpmaddwd %2, %1, %0\" : \"=v\"(z) : \"v\"(x), \"v\"(y));\n"
     "    return (I)((U)sum + (U)z);\n"
     "#else\n"
     "    const I low = ((I)((U)x << 16) >> 16) * ((I)((U)y << 16) >> 16);\n"
     "    return (I)((U)sum + (U)low + (U)((x >> 16) * (y >> 16)));\n"
     "#endif\n"
     "}\n"},
    {"dot_bytes", SNIPPET_VECTOR,
     "static inline I dot_bytes$(I sum, I x, I y)\n"
     "{\n"
     "#if defined(DOTS)\n"
     "    __asm__(SUMS_BYTES \" %2, %1, %0\" : \"+\" REGISTERS(sum) : REGISTERS(x), REGISTERS(y));\n"
     "    return sum;\n"
     "#else\n"
     "    for (int at = 0; at < 32; at += 8)\n"
     "        sum = (I)((U)sum + (U)((I)((U)x >> at & 255u) * ((I)((U)y << (24 - at)) >> 24)));\n"
     "    return sum;\n"
     "#endif\n"
     "}\n"},
    /* Products are exact, so that a fused multiply-add makes no difference; the instruction takes subnormal numbers
     * for 0, and makes none. */
    {"dot_bf16", SNIPPET_VECTOR,
     "static inline F dot_bf16$(F sum, I x, I y)\n"
     "{\n"
     "#if defined(BRAIN_DOTS)\n"
     "    __asm__(\"vdpbf16ps %2, %1, %0\" : \"+v\"(sum) : \"v\"(x), \"v\"(y));\n"
     "    return sum;\n"
     "#else\n"
     "    sum += (F)((U)x & 0xFFFF0000u) * (F)((U)y & 0xFFFF0000u);\n"
     "    return sum + (F)((U)x << 16) * (F)((U)y << 16);\n"
     "#endif\n"
     "}\n"},
    {NULL, 0, NULL},
};
