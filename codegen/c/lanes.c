/* Lanes of strict C99: four floats are a vector where the compiler has them, and four variables elsewhere, which any
 * compiler keeps in registers, at every level.  What kernels do with them are calls, so that one text serves both.
 *
 * The vector's functions are those of the targets that have vectors (SNIPPET_VECTOR); those here are of the structure,
 * element by element, by the scalar function of the name where nothing else is said. */
#include "c/snippet.h"

#include <stddef.h>

#define ALL(type, head, each)                                                                                          \
    "NNC_INLINE " type " " head "\n{\n    const " type " y = {EACH(" each ")};\n    return y;\n}\n"
#define FLOATS(head, each) ALL("F", head, each)
#define TRUTHS(head, each) ALL("I", head, each)
#define STORE_AS(name, element)                                                                                        \
    "NNC_INLINE void store_" name "$(" element                                                                         \
    " *p, F x)\n"                                                                                                      \
    "{\n"                                                                                                              \
    "    p[0] = to_" name                                                                                              \
    "_from_f32(x.e0);\n"                                                                                               \
    "    p[1] = to_" name                                                                                              \
    "_from_f32(x.e1);\n"                                                                                               \
    "    p[2] = to_" name                                                                                              \
    "_from_f32(x.e2);\n"                                                                                               \
    "    p[3] = to_" name                                                                                              \
    "_from_f32(x.e3);\n"                                                                                               \
    "}\n"

/* Of elements two to a byte */
#define NIBBLE(at)        "(float)(p[" at " / 2] >> " at " % 2 * 4 & 15)"
#define SIGNED_NIBBLE(at) "(float)(((p[" at " / 2] >> " at " % 2 * 4 & 15) ^ 8) - 8)"

const Snippet snippet_lanes[] = {
    {"load", SNIPPET_LANES, FLOATS("load$(const float *p)", "p[#]")},
    {"gather", SNIPPET_LANES, FLOATS("gather$(const float *p, ptrdiff_t stride)", "p[# * stride]")},
    {"even", SNIPPET_LANES, FLOATS("even$(const float *p)", "p[2 * #]")},
    {"splat", SNIPPET_LANES, FLOATS("splat$(float x)", "x")},
    {"store", SNIPPET_LANES,
     "NNC_INLINE void store$(float *p, F x)\n"
     "{\n"
     "    p[0] = x.e0;\n"
     "    p[1] = x.e1;\n"
     "    p[2] = x.e2;\n"
     "    p[3] = x.e3;\n"
     "}\n"},
    {"scatter", SNIPPET_LANES,
     "NNC_INLINE void scatter$(float *p, ptrdiff_t stride, F x)\n"
     "{\n"
     "    p[0] = x.e0;\n"
     "    p[stride] = x.e1;\n"
     "    p[2 * stride] = x.e2;\n"
     "    p[3 * stride] = x.e3;\n"
     "}\n"},
    {"load_i8", SNIPPET_LANES, FLOATS("load_i8$(const int8_t *p)", "(float)p[#]")},
    {"load_u8", SNIPPET_LANES, FLOATS("load_u8$(const uint8_t *p)", "(float)p[#]")},
    {"load_i16", SNIPPET_LANES, FLOATS("load_i16$(const int16_t *p)", "(float)p[#]")},
    {"load_u16", SNIPPET_LANES, FLOATS("load_u16$(const uint16_t *p)", "(float)p[#]")},
    {"load_f16", SNIPPET_LANES, FLOATS("load_f16$(const uint16_t *p)", "to_f32_from_f16(p[#])")},
    {"load_bf16", SNIPPET_LANES, FLOATS("load_bf16$(const uint16_t *p)", "to_f32_from_bf16(p[#])")},
    {"round_f16", SNIPPET_LANES, FLOATS("round_f16$(F x)", "to_f32_from_f16(to_f16_from_f32(x.e#))")},
    {"round_bf16", SNIPPET_LANES, FLOATS("round_bf16$(F x)", "to_f32_from_bf16(to_bf16_from_f32(x.e#))")},
    {"store_f16", SNIPPET_LANES, STORE_AS("f16", "uint16_t")},
    {"store_bf16", SNIPPET_LANES, STORE_AS("bf16", "uint16_t")},
    {"cut_i8", SNIPPET_LANES, FLOATS("cut_i8$(F x)", "(float)to_i8_from_f32(x.e#)")},
    {"cut_u8", SNIPPET_LANES, FLOATS("cut_u8$(F x)", "(float)to_u8_from_f32(x.e#)")},
    {"cut_i16", SNIPPET_LANES, FLOATS("cut_i16$(F x)", "(float)to_i16_from_f32(x.e#)")},
    {"cut_u16", SNIPPET_LANES, FLOATS("cut_u16$(F x)", "(float)to_u16_from_f32(x.e#)")},
    {"store_i8", SNIPPET_LANES, STORE_AS("i8", "int8_t")},
    {"store_u8", SNIPPET_LANES, STORE_AS("u8", "uint8_t")},
    {"store_i16", SNIPPET_LANES, STORE_AS("i16", "int16_t")},
    {"store_u16", SNIPPET_LANES, STORE_AS("u16", "uint16_t")},
    {"store_i32", SNIPPET_LANES, STORE_AS("i32", "int32_t")},
    {"store_i64", SNIPPET_LANES,
     "NNC_INLINE void store_i64$(int64_t *p, F x)\n"
     "{\n"
     "    p[0] = to_i32_from_f32(x.e0);\n"
     "    p[1] = to_i32_from_f32(x.e1);\n"
     "    p[2] = to_i32_from_f32(x.e2);\n"
     "    p[3] = to_i32_from_f32(x.e3);\n"
     "}\n"},
    {"part_i8", SNIPPET_LANES, FLOATS("part_i8$(const int8_t *p, int part)", "(float)p[4 * # + part]")},
    {"part_u8", SNIPPET_LANES, FLOATS("part_u8$(const uint8_t *p, int part)", "(float)p[4 * # + part]")},
    {"load_nibble", SNIPPET_LANES,
     FLOATS("load_nibble$(const uint8_t *p, int high)", "(float)(p[#] >> high * 4 & 15)")},
    {"nibble", SNIPPET_LANES,
     FLOATS("nibble$(const uint8_t *p, int part)", "(float)(p[4 * # + part / 2] >> part % 2 * 4 & 15)")},
    {"load_i4", SNIPPET_LANES, FLOATS("load_i4$(const uint8_t *p)", SIGNED_NIBBLE("#"))},
    {"load_u4", SNIPPET_LANES, FLOATS("load_u4$(const uint8_t *p)", NIBBLE("#"))},
    {"part_i4", SNIPPET_LANES, FLOATS("part_i4$(const uint8_t *p, int part)", SIGNED_NIBBLE("(4 * # + part)"))},
    {"part_u4", SNIPPET_LANES, FLOATS("part_u4$(const uint8_t *p, int part)", NIBBLE("(4 * # + part)"))},
    {"each_i4", SNIPPET_LANES,
     FLOATS("each_i4$(const uint8_t *p, ptrdiff_t at, ptrdiff_t stride)", SIGNED_NIBBLE("(at + # * stride)"))},
    {"each_u4", SNIPPET_LANES,
     FLOATS("each_u4$(const uint8_t *p, ptrdiff_t at, ptrdiff_t stride)", NIBBLE("(at + # * stride)"))},
    {"part_i16", SNIPPET_LANES, FLOATS("part_i16$(const int16_t *p, int part)", "(float)p[2 * # + part]")},
    {"part_u16", SNIPPET_LANES, FLOATS("part_u16$(const uint16_t *p, int part)", "(float)p[2 * # + part]")},
    {"part_f16", SNIPPET_LANES, FLOATS("part_f16$(const uint16_t *p, int part)", "to_f32_from_f16(p[2 * # + part])")},
    {"part_bf16", SNIPPET_LANES,
     FLOATS("part_bf16$(const uint16_t *p, int part)", "to_f32_from_bf16(p[2 * # + part])")},
    {"load_mask", SNIPPET_LANES, TRUTHS("load_mask$(const unsigned char *p)", "p[#] != 0")},
    {"gather_mask", SNIPPET_LANES,
     TRUTHS("gather_mask$(const unsigned char *p, ptrdiff_t stride)", "p[# * stride] != 0")},
    {"store_mask", SNIPPET_LANES,
     "NNC_INLINE void store_mask$(unsigned char *p, I mask)\n"
     "{\n"
     "    p[0] = (unsigned char)mask.e0;\n"
     "    p[1] = (unsigned char)mask.e1;\n"
     "    p[2] = (unsigned char)mask.e2;\n"
     "    p[3] = (unsigned char)mask.e3;\n"
     "}\n"},
    {"splat_mask", SNIPPET_LANES, TRUTHS("splat_mask$(int truth)", "truth")},
    {"select", SNIPPET_LANES, FLOATS("select$(I mask, F a, F b)", "mask.e# ? a.e# : b.e#")},
    {"atleast", SNIPPET_LANES, FLOATS("atleast$(F x, float low)", "x.e# < low ? low : x.e#")},
    {"atmost", SNIPPET_LANES, FLOATS("atmost$(F x, float high)", "x.e# > high ? high : x.e#")},
    {"add", SNIPPET_LANES, FLOATS("add$(F a, F b)", "a.e# + b.e#")},
    {"sub", SNIPPET_LANES, FLOATS("sub$(F a, F b)", "a.e# - b.e#")},
    {"mul", SNIPPET_LANES, FLOATS("mul$(F a, F b)", "a.e# * b.e#")},
    {"div", SNIPPET_LANES, FLOATS("div$(F a, F b)", "a.e# / b.e#")},
    {"neg", SNIPPET_LANES, FLOATS("neg$(F a)", "-a.e#")},
    {"madd", SNIPPET_LANES, FLOATS("madd$(F sum, F a, F b)", "sum.e# + a.e# * b.e#")},
    {"madds", SNIPPET_LANES, FLOATS("madds$(F sum, float s, F x)", "sum.e# + s * x.e#")},
    {"less", SNIPPET_LANES, TRUTHS("less$(F a, F b)", "a.e# < b.e#")},
    {"at_most", SNIPPET_LANES, TRUTHS("at_most$(F a, F b)", "a.e# <= b.e#")},
    {"equal", SNIPPET_LANES, TRUTHS("equal$(F a, F b)", "a.e# == b.e#")},
    {"differ", SNIPPET_LANES, TRUTHS("differ$(F a, F b)", "a.e# != b.e#")},
    {"and", SNIPPET_LANES, TRUTHS("and$(I a, I b)", "a.e# & b.e#")},
    {"or", SNIPPET_LANES, TRUTHS("or$(I a, I b)", "a.e# | b.e#")},
    {"xor", SNIPPET_LANES, TRUTHS("xor$(I a, I b)", "a.e# ^ b.e#")},
    {"not", SNIPPET_LANES, TRUTHS("not$(I a)", "!a.e#")},
    {"sum", SNIPPET_LANES,
     "NNC_INLINE float sum$(F x)\n"
     "{\n"
     "    return (x.e0 + x.e2) + (x.e1 + x.e3);\n"
     "}\n"},
    {"product", SNIPPET_LANES,
     "NNC_INLINE float product$(F x)\n"
     "{\n"
     "    return (x.e0 * x.e2) * (x.e1 * x.e3);\n"
     "}\n"},
    {"largest", SNIPPET_LANES,
     "NNC_INLINE float largest$(F x)\n"
     "{\n"
     "    return max@(max@(x.e0, x.e2), max@(x.e1, x.e3));\n"
     "}\n"},
    {"least", SNIPPET_LANES,
     "NNC_INLINE float least$(F x)\n"
     "{\n"
     "    return min@(min@(x.e0, x.e2), min@(x.e1, x.e3));\n"
     "}\n"},
    /* These serve the vector, too. */
    {"unit", SNIPPET_LANES, FLOATS("unit$(int64_t key, int64_t position)", "unit@(key, position + #)")},
    {"gauss", SNIPPET_LANES, FLOATS("gauss$(int64_t key, int64_t position)", "gauss@(key, position + #)")},
    {NULL, 0, NULL},
};

#define VECTOR(type, head, value) "NNC_INLINE " type " " head "\n{\n    return " value ";\n}\n"

/* What targets with vectors write as operators. */
const Snippet snippet_operators[] = {
    {"add", SNIPPET_VECTOR, VECTOR("F", "add$(F a, F b)", "a + b")},
    {"sub", SNIPPET_VECTOR, VECTOR("F", "sub$(F a, F b)", "a - b")},
    {"mul", SNIPPET_VECTOR, VECTOR("F", "mul$(F a, F b)", "a * b")},
    {"div", SNIPPET_VECTOR, VECTOR("F", "div$(F a, F b)", "a / b")},
    {"neg", SNIPPET_VECTOR, VECTOR("F", "neg$(F a)", "-a")},
    {"madd", SNIPPET_VECTOR, VECTOR("F", "madd$(F sum, F a, F b)", "sum + a * b")},
    {"madds", SNIPPET_VECTOR, VECTOR("F", "madds$(F sum, float s, F x)", "sum + s * x")},
    {"less", SNIPPET_VECTOR, VECTOR("I", "less$(F a, F b)", "a < b")},
    {"at_most", SNIPPET_VECTOR, VECTOR("I", "at_most$(F a, F b)", "a <= b")},
    {"equal", SNIPPET_VECTOR, VECTOR("I", "equal$(F a, F b)", "a == b")},
    {"differ", SNIPPET_VECTOR, VECTOR("I", "differ$(F a, F b)", "a != b")},
    {"and", SNIPPET_VECTOR, VECTOR("I", "and$(I a, I b)", "a & b")},
    {"or", SNIPPET_VECTOR, VECTOR("I", "or$(I a, I b)", "a | b")},
    {"xor", SNIPPET_VECTOR, VECTOR("I", "xor$(I a, I b)", "a ^ b")},
    {"not", SNIPPET_VECTOR, VECTOR("I", "not$(I a)", "~a")},
    {NULL, 0, NULL},
};
