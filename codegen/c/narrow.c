/* The helpers that load a vector of 8- or 16-bit elements as f32: load_i8 those that follow one another, part_i8 one
 * part of each word of 32 bits, p[part], p[4 + part], ... (of 16 bits p[2 + part], ...).  Parts take no shuffle, so
 * that weights are packed in words whose parts belong to several vectors.  Bytes that follow one another are widened in
 * steps: gcc 12 takes the way from 8 to 32 bits lane by lane. */
#include "c/snippet.h"

#include <stddef.h>

#define LOAD(name, element, size)                                                                                      \
    "static inline F load_" name "$(const " element                                                                    \
    " *p)\n"                                                                                                           \
    "{\n"                                                                                                              \
    "    typedef " element " narrow __attribute__((vector_size(" size                                                  \
    ")));\n"                                                                                                           \
    "    narrow x;\n"                                                                                                  \
    "    memcpy(&x, p, sizeof x);\n"

#define PART(name, element)                                                                                            \
    "static inline F part_" name "$(const " element                                                                    \
    " *p, int part)\n"                                                                                                 \
    "{\n"                                                                                                              \
    "    U x;\n"                                                                                                       \
    "    memcpy(&x, p, sizeof x);\n"

#define IN_STEPS                                                                                                       \
    "    typedef int16_t wider __attribute__((vector_size(2 * LANES)));\n"                                             \
    "    return __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(x, wider), I), F);\n"          \
    "}\n"

const Snippet snippet_narrow[] = {
    /* Subnormal numbers are the bits of 2^-14 + x, less 2^-14; the bias of infinities and NaN is added twice. */
    {"half", SNIPPET_VECTOR,
     "static inline F half$(U x)\n"
     "{\n"
     "    const U m = (x & 0x7FFFu) << 13, small = (U)(m < 1u << 23), large = (U)(m >= 31u << 23);\n"
     "    const F tiny = (F)(m + (113u << 23)) - 6.103515625e-05f;\n"
     "    const U y = m + (112u << 23) + (large & 112u << 23);\n"
     "    return (F)((small & (U)tiny) | (~small & y) | (x & 0x8000u) << 16);\n"
     "}\n"},
    {"load_i8", SNIPPET_VECTOR, LOAD("i8", "int8_t", "LANES") IN_STEPS},
    {"load_u8", SNIPPET_VECTOR, LOAD("u8", "uint8_t", "LANES") IN_STEPS},
    {"load_i16", SNIPPET_VECTOR,
     LOAD("i16", "int16_t", "2 * LANES") "    return __builtin_convertvector(__builtin_convertvector(x, I), F);\n}\n"},
    {"load_u16", SNIPPET_VECTOR,
     LOAD("u16", "uint16_t", "2 * LANES") "    return __builtin_convertvector(__builtin_convertvector(x, I), F);\n}\n"},
    {"load_bf16", SNIPPET_VECTOR,
     LOAD("bf16", "uint16_t", "2 * LANES") "    return (F)(__builtin_convertvector(x, U) << 16);\n}\n"},
    {"load_f16", SNIPPET_VECTOR,
     LOAD("f16", "uint16_t", "2 * LANES") "    return half$(__builtin_convertvector(x, U));\n}\n"},
    {"part_i8", SNIPPET_VECTOR,
     PART("i8", "int8_t") "    return __builtin_convertvector((I)(x << (24 - 8 * part)) >> 24, F);\n}\n"},
    {"part_u8", SNIPPET_VECTOR,
     PART("u8", "uint8_t") "    return __builtin_convertvector((I)(x >> 8 * part & 255u), F);\n}\n"},
    {"load_nibble", SNIPPET_VECTOR,
     "static inline F load_nibble$(const uint8_t *p, int high)\n"
     "{\n"
     "    typedef uint8_t narrow __attribute__((vector_size(LANES)));\n"
     "    narrow x;\n"
     "    memcpy(&x, p, sizeof x);\n"
     "    x = high ? x >> 4 : x & 15;\n" IN_STEPS},
    {"nibble", SNIPPET_VECTOR,
     "static inline F nibble$(const uint8_t *p, int part)\n"
     "{\n"
     "    U x;\n"
     "    memcpy(&x, p, sizeof x);\n"
     "    return __builtin_convertvector((I)(x >> 4 * part & 15u), F);\n}\n"},
    {"part_i16", SNIPPET_VECTOR,
     PART("i16", "int16_t") "    return __builtin_convertvector((I)(x << (16 - 16 * part)) >> 16, F);\n}\n"},
    {"part_u16", SNIPPET_VECTOR,
     PART("u16", "uint16_t") "    return __builtin_convertvector((I)(x >> 16 * part & 65535u), F);\n}\n"},
    {"part_bf16", SNIPPET_VECTOR, PART("bf16", "uint16_t") "    return (F)(part ? x & 0xFFFF0000u : x << 16);\n}\n"},
    {"part_f16", SNIPPET_VECTOR, PART("f16", "uint16_t") "    return half$(x >> 16 * part);\n}\n"},
    {NULL, 0, NULL},
};
