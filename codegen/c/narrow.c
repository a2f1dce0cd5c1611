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

/* Those of elements that lie two to a byte: x is to have them in the low bits of its lanes. */
#define FROM_I4 "    return __builtin_convertvector((I)((x & 15u) ^ 8u) - 8, F);\n}\n"
#define FROM_U4 "    return __builtin_convertvector((I)(x & 15u), F);\n}\n"
#define LOAD_NIBBLES(name, from)                                                                                       \
    {                                                                                                                  \
        "load_" name, SNIPPET_VECTOR,                                                                                  \
            "static inline F load_" name                                                                               \
            "$(const uint8_t *p)\n"                                                                                    \
            "{\n"                                                                                                      \
            "    uint32_t word[2] = {0, 0};\n"                                                                         \
            "    memcpy(word, p, LANES / 2);\n"                                                                        \
            "    const U words = {EACH(word[# / 8])}, places = {EACH(# % 8 * 4)}, x = words >> places;\n" from         \
    }
#define PART_NIBBLES(name, from)                                                                                       \
    {                                                                                                                  \
        "part_" name, SNIPPET_VECTOR,                                                                                  \
            "static inline F part_" name                                                                               \
            "$(const uint8_t *p, int part)\n"                                                                          \
            "{\n"                                                                                                      \
            "    typedef uint16_t narrow __attribute__((vector_size(2 * LANES)));\n"                                   \
            "    narrow words;\n"                                                                                      \
            "    memcpy(&words, p, sizeof words);\n"                                                                   \
            "    const U x = __builtin_convertvector(words, U) >> 4 * part;\n" from                                    \
    }
#define EACH_NIBBLE(name, from)                                                                                        \
    {                                                                                                                  \
        "each_" name, SNIPPET_VECTOR,                                                                                  \
            "static inline F each_" name                                                                               \
            "$(const uint8_t *p, ptrdiff_t at, ptrdiff_t stride)\n"                                                    \
            "{\n"                                                                                                      \
            "    U x;\n"                                                                                               \
            "    for (int i = 0; i < LANES; i++, at += stride)\n"                                                      \
            "        x[i] = (uint32_t)(p[at / 2] >> at % 2 * 4);\n" from                                               \
    }

#define LOAD_BYTES(name, element, instruction)                                                                         \
    "static inline F load_" name "$(const " element                                                                    \
    " *p)\n"                                                                                                           \
    "{\n"                                                                                                              \
    "    typedef " element                                                                                             \
    " narrow __attribute__((vector_size(LANES), aligned(1), may_alias));\n"                                            \
    "    const narrow *const x = (const narrow *)(const void *)p;\n"                                                   \
    "#if defined(PAIRED)\n"                                                                                            \
    "    I y;\n"                                                                                                       \
    "    __asm__(\"" instruction                                                                                       \
    " %1, %0\" : \"=v\"(y) : \"m\"(*x));\n"                                                                            \
    "    return __builtin_convertvector(y, F);\n"                                                                      \
    "#else\n"                                                                                                          \
    "    typedef int16_t wider __attribute__((vector_size(2 * LANES)));\n"                                             \
    "    return __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(*x, wider), I), F);\n"         \
    "#endif\n"                                                                                                         \
    "}\n"

/* An f32 as an integer, as a cast does: NaN is 0, and what lies beyond the range its nearest end. */
#define WITHIN_ENDS(low, high) "    const F y = atmost$(atleast$((F)((U)(x == x) & (U)x), " low "), " high ");\n"
#define CUT(name, low, high)                                                                                           \
    "static inline F cut_" name                                                                                        \
    "$(F x)\n{\n" WITHIN_ENDS(low, high) "    return __builtin_convertvector(__builtin_convertvector(y, I), F);\n}\n"
#define STORE_INTEGER(name, element, size, low, high, narrowed)                                                        \
    "static inline void store_" name "$(" element                                                                      \
    " *p, F x)\n"                                                                                                      \
    "{\n"                                                                                                              \
    "    typedef " element " narrow __attribute__((vector_size(" size "), aligned(sizeof(" element                     \
    ")), may_alias));\n"                                                                                               \
    "    narrow *const to = (narrow *)(void *)p;\n" WITHIN_ENDS(low, high) narrowed "}\n"

/* To bytes; AVX2 packs 8 of them from their halves, AVX-512 16, and what is beyond 8 bits is brought to the ends. */
#define STORE_BYTES(name, element, number, low, high, cut, pack, halves)                                               \
    "static inline void store_" name "$(" element                                                                      \
    " *p, F x)\n"                                                                                                      \
    "{\n"                                                                                                              \
    "#if defined(PAIRED)\n"                                                                                            \
    "    uint64_t bytes __attribute__((vector_size(16)));\n"                                                           \
    "    I y = __builtin_convertvector(atmost$(" number ", " high                                                      \
    "), I);\n"                                                                                                         \
    "#if LANES > 8\n" cut "    __asm__(" pack                                                                          \
    " : \"=v\"(bytes) : \"v\"(y));\n"                                                                                  \
    "#else\n"                                                                                                          \
    "    __asm__(\"vextracti128 $1, %t1, %0\\n\\tvpackssdw %0, %x1, %0\\n\\t" halves                                   \
    " %0, %0, %0\" : \"=&x\"(bytes) : \"x\"(y));\n"                                                                    \
    "#endif\n"                                                                                                         \
    "    memcpy(p, &bytes, LANES);\n"                                                                                  \
    "#else\n"                                                                                                          \
    "    typedef " element                                                                                             \
    " narrow __attribute__((vector_size(LANES), aligned(1), may_alias));\n"                                            \
    "    narrow *const to = (narrow *)(void *)p;\n"                                                                    \
    "    const F z = (F)((U)(x == x) & (U)x), y = atmost$(select$(z < " low ", splat$(" low "), z), " high             \
    ");\n" TO_BYTES                                                                                                    \
    "#endif\n"                                                                                                         \
    "}\n"

/* In steps, as bytes are widened. */
#define TO_BYTES                                                                                                       \
    "    typedef int16_t wider __attribute__((vector_size(2 * LANES)));\n"                                             \
    "    *to = __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(y, I), wider), narrow);\n"
#define TO_WORDS "    *to = __builtin_convertvector(__builtin_convertvector(y, I), narrow);\n"

/* Where vectors of 16 bits go. */
#define NARROW                                                                                                         \
    "    typedef uint16_t narrow __attribute__((vector_size(2 * LANES), aligned(2), may_alias));\n"                    \
    "    narrow *const to = (narrow *)(void *)p;\n"

/* Of f32: the bits, those of the amount, and what of f16 is subnormal, infinite or no number. */
#define HALF_BITS                                                                                                      \
    "    const U u = (U)x, a = u & 0x7FFFFFFFu, small = (U)((I)a < 0x38800000), large = (U)((I)a >= 0x477FF000),\n"    \
    "            nan = (U)((I)a > 0x7F800000);\n"

/* The 16 bits of bf16 that are nearest. */
#define BRAIN_BITS(indent)                                                                                             \
    indent "const U u = (U)x, nan = (U)((I)(u & 0x7FFFFFFFu) > 0x7F800000);\n" indent                                  \
           "const U y = (nan & (u >> 16 | 0x40u)) | (~nan & (u + 0x7FFFu + (u >> 16 & 1u)) >> 16);\n"

/* Of x, of which y is between the ends that f32 holds. */
#define WORDS_OF_32                                                                                                    \
    "    const U high = (U)(x >= 2147483648.0f);\n"                                                                    \
    "    const I words = (I)((~high & (U)__builtin_convertvector(y, I)) | (high & 0x7FFFFFFFu));\n"

const Snippet snippet_narrow[] = {
    {"floats", SNIPPET_VECTOR,
     "static inline F floats$(I x)\n"
     "{\n"
     "    return __builtin_convertvector(x, F);\n"
     "}\n"},
    /* Subnormal numbers are the bits of 2^-14 + x, less 2^-14; the bias of infinities and NaN is added twice. */
    {"half", SNIPPET_VECTOR,
     "static inline __attribute__((unused)) F half$(U x)\n"
     "{\n"
     "    const U m = (x & 0x7FFFu) << 13, small = (U)(m < 1u << 23), large = (U)(m >= 31u << 23);\n"
     "    const F tiny = (F)(m + (113u << 23)) - 6.103515625e-05f;\n"
     "    const U y = m + (112u << 23) + (large & 112u << 23);\n"
     "    return (F)((small & (U)tiny) | (~small & y) | (x & 0x8000u) << 16);\n"
     "}\n"},
    {"load_i8", SNIPPET_VECTOR, LOAD_BYTES("i8", "int8_t", "vpmovsxbd")},
    {"load_u8", SNIPPET_VECTOR, LOAD_BYTES("u8", "uint8_t", "vpmovzxbd")},
    {"load_i16", SNIPPET_VECTOR,
     LOAD("i16", "int16_t", "2 * LANES") "    return __builtin_convertvector(__builtin_convertvector(x, I), F);\n}\n"},
    {"load_u16", SNIPPET_VECTOR,
     LOAD("u16", "uint16_t", "2 * LANES") "    return __builtin_convertvector(__builtin_convertvector(x, I), F);\n}\n"},
    {"load_bf16", SNIPPET_VECTOR,
     LOAD("bf16", "uint16_t", "2 * LANES") "    return (F)(__builtin_convertvector(x, U) << 16);\n}\n"},
    {"load_f16", SNIPPET_VECTOR,
     "static inline F load_f16$(const uint16_t *p)\n"
     "{\n"
     "    typedef uint16_t narrow __attribute__((vector_size(2 * LANES), aligned(2), may_alias));\n"
     "    const narrow *const x = (const narrow *)(const void *)p;\n"
     "#if defined(HALVES)\n"
     "    F y;\n"
     "    __asm__(\"vcvtph2ps %1, %0\" : \"=v\"(y) : \"m\"(*x));\n"
     "    return y;\n"
     "#elif defined(__aarch64__)\n"
     "    F y;\n"
     "    __asm__(\"fcvtl %0.4s, %1.4h\" : \"=w\"(y) : \"w\"(*x));\n"
     "    return y;\n"
     "#else\n"
     "    return half$(__builtin_convertvector(*x, U));\n"
     "#endif\n"
     "}\n"},
    {"round_f16", SNIPPET_VECTOR,
     "static inline F round_f16$(F x)\n"
     "{\n"
     "#if defined(HALVES)\n"
     "    uint16_t __attribute__((vector_size(LANES > 8 ? 32 : 16))) y;\n"
     "    __asm__(\"vcvtps2ph $0, %1, %0\" : \"=v\"(y) : \"v\"(x));\n"
     "    __asm__(\"vcvtph2ps %1, %0\" : \"=v\"(x) : \"v\"(y));\n"
     "    return x;\n"
     "#else\n" HALF_BITS "    const F tiny = ((F)a + 0.5f) - 0.5f; /* the sum rounds */\n"
     "    U y = (a + 0xFFFu + (a >> 13 & 1u)) & ~0x1FFFu;\n"
     "    y = (small & (U)tiny) | (~small & y);\n"
     "    y = (large & 0x7F800000u) | (~large & y);\n"
     "    return (F)((nan & 0x7FC00000u) | (~nan & y) | (u & 0x80000000u));\n"
     "#endif\n"
     "}\n"},
    {"round_bf16", SNIPPET_VECTOR,
     "static inline F round_bf16$(F x)\n"
     "{\n" BRAIN_BITS("    ") "    return (F)(y << 16);\n"
                              "}\n"},
    {"store_f16", SNIPPET_VECTOR,
     "static inline void store_f16$(uint16_t *p, F x)\n"
     "{\n" NARROW "#if defined(HALVES)\n"
     "    __asm__(\"vcvtps2ph $0, %1, %0\" : \"=m\"(*to) : \"v\"(x));\n"
     "#else\n" HALF_BITS "    U y = ((a + 0xFFFu + (a >> 13 & 1u)) >> 13) - (112u << 10);\n"
     "    y = (small & ((U)((F)a + 0.5f) - 0x3F000000u)) | (~small & y); /* the sum rounds */\n"
     "    y = (large & 0x7C00u) | (~large & y);\n"
     "    *to = __builtin_convertvector((nan & 0x7E00u) | (~nan & y) | (u >> 16 & 0x8000u), narrow);\n"
     "#endif\n"
     "}\n"},
    {"store_bf16", SNIPPET_VECTOR,
     "static inline void store_bf16$(uint16_t *p, F x)\n"
     "{\n" NARROW BRAIN_BITS("    ") "    *to = __builtin_convertvector(y, narrow);\n"
                                     "}\n"},
    {"store_parts", SNIPPET_VECTOR,
     "static inline void store_parts$(uint16_t *p, int parts, ptrdiff_t rest, F x)\n"
     "{\n"
     "    typedef uint16_t narrow __attribute__((vector_size(2 * LANES), aligned(2), may_alias));\n"
     "    for (int part = 0; part < parts; part++, p += rest) {\n"
     "        narrow *const to = (narrow *)(void *)p;\n"
     "#if defined(BRAIN_DOTS) && LANES == 16 /* subnormal numbers are 0, as they are in the products */\n"
     "        uint16_t __attribute__((vector_size(2 * LANES))) nearest;\n"
     "        __asm__(\"vcvtneps2bf16 %1, %0\" : \"=v\"(nearest) : \"v\"(x));\n"
     "#else\n" BRAIN_BITS("        ") "        const narrow nearest = __builtin_convertvector(y, narrow);\n"
                                      "#endif\n"
                                      "        *to = nearest;\n"
                                      "        x -= (F)(__builtin_convertvector(nearest, U) << 16);\n"
                                      "    }\n"
                                      "}\n"},
    {"cut_i8", SNIPPET_VECTOR, CUT("i8", "-128.0f", "127.0f")},
    {"cut_u8", SNIPPET_VECTOR, CUT("u8", "0.0f", "255.0f")},
    {"cut_i16", SNIPPET_VECTOR, CUT("i16", "-32768.0f", "32767.0f")},
    {"cut_u16", SNIPPET_VECTOR, CUT("u16", "0.0f", "65535.0f")},
    /* NaN becomes the least i32, which is 0 as u8. */
    {"store_i8", SNIPPET_VECTOR,
     STORE_BYTES("i8", "int8_t", "(F)((U)(x == x) & (U)x)", "-128.0f", "127.0f", "", "\"vpmovsdb %1, %0\"",
                 "vpacksswb")},
    {"store_u8", SNIPPET_VECTOR,
     STORE_BYTES("u8", "uint8_t", "x", "0.0f", "255.0f", "    y &= y > 0;\n", "\"vpmovusdb %1, %0\"", "vpackuswb")},
    {"store_i16", SNIPPET_VECTOR, STORE_INTEGER("i16", "int16_t", "2 * LANES", "-32768.0f", "32767.0f", TO_WORDS)},
    {"store_u16", SNIPPET_VECTOR, STORE_INTEGER("u16", "uint16_t", "2 * LANES", "0.0f", "65535.0f", TO_WORDS)},
    /* 2147483520 is the last f32 before 2^31, which is one too many. */
    {"store_i32", SNIPPET_VECTOR,
     STORE_INTEGER("i32", "int32_t", "4 * LANES", "-2147483648.0f", "2147483520.0f",
                   WORDS_OF_32 "    *to = (narrow)words;\n")},
    {"store_i64", SNIPPET_VECTOR,
     STORE_INTEGER("i64", "int64_t", "8 * LANES", "-2147483648.0f", "2147483520.0f",
                   WORDS_OF_32 "    *to = __builtin_convertvector(words, narrow);\n")},
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
    {"nibble_at", SNIPPET_SIGNED,
     "static inline T nibble_at$(const uint8_t *p, ptrdiff_t at)\n"
     "{\n"
     "    return (T)(((p[at / 2] >> at % 2 * 4 & 15) ^ 8) - 8);\n"
     "}\n"},
    {"nibble_at", SNIPPET_UNSIGNED,
     "static inline T nibble_at$(const uint8_t *p, ptrdiff_t at)\n"
     "{\n"
     "    return (T)(p[at / 2] >> at % 2 * 4 & 15);\n"
     "}\n"},
    LOAD_NIBBLES("i4", FROM_I4),
    LOAD_NIBBLES("u4", FROM_U4),
    PART_NIBBLES("i4", FROM_I4),
    PART_NIBBLES("u4", FROM_U4),
    EACH_NIBBLE("i4", FROM_I4),
    EACH_NIBBLE("u4", FROM_U4),
    {"part_i16", SNIPPET_VECTOR,
     PART("i16", "int16_t") "    return __builtin_convertvector((I)(x << (16 - 16 * part)) >> 16, F);\n}\n"},
    {"part_u16", SNIPPET_VECTOR,
     PART("u16", "uint16_t") "    return __builtin_convertvector((I)(x >> 16 * part & 65535u), F);\n}\n"},
    {"part_bf16", SNIPPET_VECTOR, PART("bf16", "uint16_t") "    return (F)(part ? x & 0xFFFF0000u : x << 16);\n}\n"},
    {"part_f16", SNIPPET_VECTOR, PART("f16", "uint16_t") "    return half$(x >> 16 * part);\n}\n"},
    {NULL, 0, NULL},
};
