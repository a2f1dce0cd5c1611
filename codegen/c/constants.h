/* The integers of a kernel's loops where they are printed, strides, offsets and bounds, and the floats that it computes
 * with, such as the scales of a quantised layer; but 0, which is none of its own.  Kernels that differ in nothing else
 * are one function, which takes those that differ as parameters (sharing.h).
 *
 * What C compilers need to know stays a number: offsets in a loop that holds no other, which stand in instructions (but
 * not of an update, whose positions are no numbers anyhow: layers of a decoder write into parts of their own), its
 * bounds where they may unroll it, steps, and divisors, without which a quotient is a division. */
#ifndef NNC_C_CONSTANTS_H
#define NNC_C_CONSTANTS_H

#include "base/text.h"

typedef enum ConstantKind {
    CONSTANT_STRIDE, /* elements from one round of a loop to the next */
    CONSTANT_OFFSET, /* elements that are always added */
    CONSTANT_END,    /* of a loop ... */
    CONSTANT_BEGIN,
    CONSTANT_LIMIT,  /* that a position is compared with */
    CONSTANT_NUMBER, /* a float */
    CONSTANT_APART,  /* elements from one thread's scratch to the next one's: not in the kernel's text (deal.c) */
} ConstantKind;

typedef struct Constant {
    ConstantKind kind;
    int64_t value;     /* as it is printed, without a sign; of a float, its bits as f64 */
    Str of;            /* the buffer or local that it leads into; may be empty */
    const char *along; /* the loop's variable, or NULL */
    bool printed;      /* else what was printed has been left out */
    const char *type;  /* of a float in C; NULL: an integer */
    Str number;        /* the float in C */
} Constant;

typedef struct Constants { /* in the order in which they are printed */
    Constant *at;
    uint32_t count, capacity;
    bool wide;          /* they need more than an int */
    const Str *written; /* per constant what stands for it, empty where it is a number; NULL: they are being noted */
    uint32_t next;
} Constants;

static inline bool constant_is_distance(ConstantKind kind)
{
    return kind == CONSTANT_STRIDE || kind == CONSTANT_OFFSET;
}

Str constants_text(Arena *arena, const Constant *constant); /* its value in C */
/* Notes the next constant, or says what was written for it; `constants` NULL: the number. */
Str constants_next(Constants *constants, Arena *arena, Constant constant);
/* Finds those that stand in the text that has been printed while they were noted. */
void constants_mark_printed(const Constants *constants, Str text);

#endif
