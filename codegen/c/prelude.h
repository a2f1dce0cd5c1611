/* The helpers at the head of an emitted source: vector types, loads and stores, scalar operations that C has no
 * operator for, and the mathematical functions with their error bounds.  Only what the kernels use is printed.
 *
 * A helper is named by its function, dtype and lanes: exp_f32 (scalar), exp_f32x16, max_i64.  Vector forms exist for
 * f32 only.  The types are f32x16 (a GNU vector of 16 floats), i32x16, u32x16; a vector mask is an i32x16 of 0 and -1,
 * a scalar mask an int.  In strict C99 a vector may also be a structure (lanes.c), whose masks are of 0 and 1. */
#ifndef NNC_C_PRELUDE_H
#define NNC_C_PRELUDE_H

#include "ir/graph.h"
#include "kernel/loop/loop.h"
#include "target.h"

typedef enum Helper {
    HELPER_LOAD,   /* f32x16 load_f32x16(const float *p): unaligned */
    HELPER_STORE,  /* void store_f32x16(float *p, f32x16 x): unaligned */
    HELPER_GATHER, /* f32x16 gather_f32x16(const float *p, ptrdiff_t stride): p[0], p[stride], ... */
    HELPER_EVEN,   /* f32x16 even_f32x16(const float *p): p[0], p[2], ...; reads those between them, too */
    HELPER_THIRD,  /* the same of p[0], p[3], ... */
    HELPER_FOURTH,
    HELPER_STORE_2, /* void store_2_f32x16(float *p, f32x16 a, f32x16 b): their lanes by turns */
    HELPER_STORE_3,
    HELPER_STORE_4,
    HELPER_STORE_6,
    HELPER_STORE_8,
    HELPER_SCATTER, /* void scatter_f32x16(float *p, ptrdiff_t stride, f32x16 x) */
    HELPER_LOAD_I8, /* f32x16 load_i8_f32x16(const int8_t *p): unaligned; these stand as the dtypes do */
    HELPER_LOAD_U8,
    HELPER_LOAD_I16,
    HELPER_LOAD_U16,
    HELPER_LOAD_F16,
    HELPER_LOAD_BF16,
    HELPER_PART_I8, /* f32x16 part_i8_f32x16(const int8_t *p, int part): p[part], p[4 + part], ... of words of 4 */
    HELPER_PART_U8,
    HELPER_PART_I16,
    HELPER_PART_U16,
    HELPER_PART_F16,
    HELPER_PART_BF16,
    HELPER_ROUND_F16, /* f32x16 round_f16_f32x16(f32x16 x): to the nearest of these */
    HELPER_ROUND_BF16,
    HELPER_STORE_F16, /* void store_f16_f32x16(uint16_t *p, f32x16 x): rounded; unaligned */
    HELPER_STORE_BF16,
    HELPER_CUT_I8, /* f32x16 cut_i8_f32x16(f32x16 x): what a cast makes of it, as f32 */
    HELPER_CUT_U8,
    HELPER_CUT_I16,
    HELPER_CUT_U16,
    HELPER_STORE_I8, /* void store_i8_f32x16(int8_t *p, f32x16 x): as a cast, the nearest end beyond the range;
                        unaligned */
    HELPER_STORE_U8,
    HELPER_STORE_I16,
    HELPER_STORE_U16,
    HELPER_STORE_I32,
    HELPER_STORE_I64, /* void store_i64_f32x16(int64_t *p, f32x16 x): what a cast to i32 makes of it; unaligned */
    HELPER_PAIR,      /* int32_t pair_i16(const int16_t *p): both as they are, of i16 and u16 */
    HELPER_PAIRS_I8,  /* i32x16 pairs_i8_f32x16(const int8_t *p, int less): 16 pairs, widened, less a number */
    HELPER_PAIRS_U8,
    HELPER_PAIRS_BF16, /* i32x16 pairs_bf16_f32x16(const uint16_t *p): as they are */
    HELPER_QUAD,       /* int32_t quad_u8(const uint8_t *p): four as they are */
    HELPER_QUADS_I8,   /* i32x16 quads_i8_f32x16(const int8_t *p, int less): 16 quads, each byte less a number */
    HELPER_QUADS_U8,
    HELPER_DOT,         /* i32x16 dot_f32x16(i32x16 sum, i32x16 x, i32x16 y): + the products of pairs */
    HELPER_DOT_BYTES,   /* the same of quads, u8 by i8 */
    HELPER_DOT_BF16,    /* f32x16 dot_bf16_f32x16(f32x16 sum, i32x16 x, i32x16 y): of pairs of bf16 */
    HELPER_STORE_PARTS, /* void store_parts_f32x16(uint16_t *p, int parts, ptrdiff_t rest, f32x16 x): as bf16 */
    HELPER_SPLAT_PAIR,  /* i32x16 splat_pair_f32x16(int32_t x) */
    HELPER_LOAD_WORDS,  /* i32x16 load_words_f32x16(const int32_t *p): unaligned */
    HELPER_STORE_WORDS, /* void store_words_f32x16(int32_t *p, i32x16 x): unaligned */
    HELPER_FLOATS,      /* f32x16 floats_f32x16(i32x16 x): rounded */
    HELPER_LOAD_NIBBLE, /* f32x16 load_nibble_f32x16(const uint8_t *p, int high): 4 bits of each byte */
    HELPER_NIBBLE,      /* f32x16 nibble_f32x16(const uint8_t *p, int part): 4 bits of p, of words of 8 */
    HELPER_NIBBLE_AT,   /* int8_t nibble_at_i8(const uint8_t *p, ptrdiff_t at): of elements that lie two to a byte */
    HELPER_LOAD_I4,     /* f32x16 load_i4_f32x16(const uint8_t *p): of such, those that follow one another */
    HELPER_LOAD_U4,
    HELPER_PART_I4, /* f32x16 part_i4_f32x16(const uint8_t *p, int part): elements part, 4 + part, ... */
    HELPER_PART_U4,
    HELPER_EACH_I4, /* f32x16 each_i4_f32x16(const uint8_t *p, ptrdiff_t at, ptrdiff_t stride) */
    HELPER_EACH_U4,
    HELPER_SPLAT,       /* f32x16 splat_f32x16(float x) */
    HELPER_LOAD_MASK,   /* i32x16 load_mask_f32x16(const unsigned char *p): of bools, which are 0 or 1 */
    HELPER_GATHER_MASK, /* i32x16 gather_mask_f32x16(const unsigned char *p, ptrdiff_t stride) */
    HELPER_STORE_MASK,  /* void store_mask_f32x16(unsigned char *p, i32x16 mask) */
    HELPER_SPLAT_MASK,  /* i32x16 splat_mask_f32x16(int truth) */
    HELPER_SELECT,      /* f32x16 select_f32x16(i32x16 mask, f32x16 a, f32x16 b): a where the mask holds */
    HELPER_MAX,         /* max_*(a, b): NaN in either gives NaN */
    HELPER_MIN,
    HELPER_ATLEAST, /* atleast_f32x16(f32x16 x, float low): max with a number; NaN in x stays; one compare */
    HELPER_ATMOST,  /* atmost_f32x16(f32x16 x, float high) */
    HELPER_SUM,     /* float sum_f32x16(f32x16 x): over the lanes, as a tree */
    HELPER_PRODUCT,
    HELPER_LARGEST, /* NaN wins */
    HELPER_LEAST,
    HELPER_TRANSPOSE, /* void transpose_f32x16(const float *from, ptrdiff_t stride, float *to, ptrdiff_t to_stride):
                         to[j * to_stride + i] = from[i * stride + j] for a square of lanes x lanes; for u8, u16 and u64
                         void transpose_u8(const void *from, ...), of all elements of the size: 16 bytes square */
    HELPER_ABS,       /* from here on: f(x), for f32, f64 and vectors of f32 */
    HELPER_SQRT,
    HELPER_CBRT,
    HELPER_EXP,
    HELPER_EXP2,
    HELPER_EXPM1,
    HELPER_LOG,
    HELPER_LOG2,
    HELPER_LOG1P,
    HELPER_SIN,
    HELPER_COS,
    HELPER_TAN,
    HELPER_ASIN,
    HELPER_ACOS,
    HELPER_ATAN,
    HELPER_SINH,
    HELPER_COSH,
    HELPER_TANH,
    HELPER_ASINH,
    HELPER_ACOSH,
    HELPER_ATANH,
    HELPER_ERF,
    HELPER_SIGMOID,
    HELPER_FLOOR,
    HELPER_CEIL,
    HELPER_ROUND, /* half to even */
    HELPER_TRUNC,
    HELPER_POW,        /* f(x, y) */
    HELPER_FMOD,       /* sign of the dividend; of integers x fmod 0 is 0 */
    HELPER_SHIFT_LEFT, /* f(x, by), of integers: see WORD_SHIFT_LEFT */
    HELPER_SHIFT_RIGHT,
    HELPER_DIV, /* integers: rounded down; x / 0 is 0; the least integer / -1 wraps.  Scalar floats use the operator. */
    HELPER_MOD, /* sign of the divisor; integers: x mod 0 is 0; floats as NumPy's mod */
    HELPER_UNIT, /* random numbers, f(key, position), for f32 and vectors: uniform in [0, 1); of vectors the position is
                    a multiple of 4, and lane i has that of position + i */
    HELPER_GAUSS,
    HELPER_WORD,    /* 32 random bits, for i64 */
    HELPER_FOLD_IN, /* f(key, number), for i64: another key */
    HELPER_CONVERT, /* conversions that C leaves undefined or lacks: see prelude_need_convert */
    HELPER_ADD,     /* from here on: of vectors, where strict C99 has no operators for them */
    HELPER_SUB,
    HELPER_MUL,
    HELPER_NEG,
    HELPER_MADD,  /* f32x4 madd_f32x4(f32x4 sum, f32x4 a, f32x4 b): sum + a * b */
    HELPER_MADDS, /* f32x4 madds_f32x4(f32x4 sum, float s, f32x4 x): sum + s * x */
    HELPER_LESS,  /* masks: a < b */
    HELPER_AT_MOST,
    HELPER_EQUAL,
    HELPER_DIFFER,
    HELPER_AND, /* of masks */
    HELPER_OR,
    HELPER_XOR,
    HELPER_NOT,
    HELPER_COUNT
} Helper;

typedef struct PreludeNeeds { /* what has been asked for */
    bool scalar[HELPER_COUNT][DT_COUNT];
    uint32_t vector[HELPER_COUNT];    /* in these numbers of lanes, powers of two, added up */
    bool convert[DT_COUNT][DT_COUNT]; /* [from][to] */
    bool bits[DT_COUNT][DT_COUNT];
    bool product[DT_COUNT];   /* product_f32, product_f64 */
    bool tiles[BUNDLE_COUNT]; /* tiles_set, ...: tile registers for such products (tiles.c) */
    bool careful;             /* NNC_CAREFUL */
    bool in_order;            /* NNC_IN_ORDER */
    bool rolled;              /* NNC_ROLLED */
    bool held;                /* NNC_HELD, NNC_APART */
} PreludeNeeds;

/* Notes the need and gives the name to call, in static storage or the arena. */
const char *prelude_need(PreludeNeeds *needs, Arena *arena, Helper helper, DType dtype, uint32_t lanes);
/* to_i32_from_f32(x): a float beyond the range takes the nearest end and NaN gives 0, as the reference does; f16 and
 * bf16 are uint16_t.  NULL when a plain C cast does the same. */
const char *prelude_need_convert(PreludeNeeds *needs, Arena *arena, DType from, DType to);

/* bits_i32_from_f32(x): what has the bits of x. */
const char *prelude_need_bits(PreludeNeeds *needs, Arena *arena, DType from, DType to);
/* Are there products of matrices by tile registers?  The system must grant these: the source's tiles_granted() asks. */
bool prelude_has_tiles(const PreludeNeeds *needs);
/* Prints what makes them, where that is needed. */
void prelude_print_tiles(Text *out, const PreludeNeeds *needs);
/* Prints what hands products of matrices to a library, where that is needed. */
void prelude_print_products(Text *out, const PreludeNeeds *needs);
/* Prints those that are needed, after `head`: static inline ... */
void prelude_print_bits(Text *out, const char *head, const PreludeNeeds *needs);

/* Is it one of random numbers?  Their scalar forms serve CUDA as well. */
bool prelude_is_random(Helper helper);
/* Prints these, as functions of the device. */
void prelude_print_device(Text *out, const PreludeNeeds *needs);

/* Prints the includes, the typedefs (when vectors are used) and every needed helper after those it depends on. */
void prelude_print(Text *out, const Target *target, const PreludeNeeds *needs);

/* The C type of an element: float, double, int64_t, uint16_t (f16, bf16), unsigned char (bool) ... */
const char *prelude_c_type(DType dtype);

#endif
