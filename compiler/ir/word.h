/* Words: the language that scalar computations are said in.
 *
 * An elementwise row of op.def is an expression over its operands x, y, z.  It is parsed once, when the compiler is
 * built (words.py), into a list of terms: each applies a word to earlier terms of its list, and the last one is the
 * result.  A term that the expression writes twice is one term.  The evaluator interprets the list, the lowering
 * inlines it into the loop IR, and printers and reductions switch over the words alone. */
#ifndef NNC_IR_WORD_H
#define NNC_IR_WORD_H

#include <stdbool.h>
#include <stdint.h>

typedef enum Word {
    WORD_OPERAND, /* leaves: an operand of the op, by position; a number */
    WORD_NUMBER,
    WORD_ADD, /* integers wrap around */
    WORD_SUB,
    WORD_MUL,
    WORD_DIV, /* of integers rounded down, x / 0 is 0 */
    WORD_MOD, /* sign of the divisor; of integers, x mod 0 is 0 */
    WORD_NEG,
    WORD_LT, /* comparisons give a mask; masks and bools are 0 or 1 */
    WORD_LE,
    WORD_EQ,
    WORD_NE,
    WORD_AND, /* of masks and bools */
    WORD_OR,
    WORD_XOR,
    WORD_NOT,
    WORD_SELECT, /* mask, a, b */
    WORD_MAX,    /* NaN in either operand gives NaN */
    WORD_MIN,
    WORD_ABS,
    WORD_SQRT,
    WORD_EXP,
    WORD_EXP2,
    WORD_EXPM1,
    WORD_LOG,
    WORD_LOG2,
    WORD_LOG1P,
    WORD_CBRT,
    WORD_SIN,
    WORD_COS,
    WORD_TAN,
    WORD_ASIN,
    WORD_ACOS,
    WORD_ATAN,
    WORD_SINH,
    WORD_COSH,
    WORD_TANH,
    WORD_ASINH,
    WORD_ACOSH,
    WORD_ATANH,
    WORD_ERF,
    WORD_SIGMOID, /* 1 / (1 + e^-x) */
    WORD_POW,
    WORD_FMOD, /* sign of the dividend; of integers, a rest of 0 divides by 0 */
    WORD_FLOOR,
    WORD_CEIL,
    WORD_ROUND, /* half to even */
    WORD_TRUNC,
    WORD_BIT_AND, /* of integers */
    WORD_BIT_OR,
    WORD_BIT_XOR,
    WORD_SHIFT_LEFT,  /* of integers; by less than 0 or by all their bits and more: 0 */
    WORD_SHIFT_RIGHT, /* with the sign; by less than 0 or by all their bits and more: 0 or -1 */
    WORD_FOLD_IN,     /* a key made of a key and a number; i64 only */
    WORD_COUNT
} Word;

#define MOST_TERMS 16 /* of a list */

typedef struct ScalarTerm {
    Word word;
    uint8_t args;   /* how many terms the word is applied to */
    uint8_t arg[3]; /* which: earlier ones; of WORD_OPERAND arg[0] is the operand's position */
    uint8_t uses;   /* how often later terms name this one */
    double number;  /* WORD_NUMBER */
} ScalarTerm;

typedef struct ScalarList {
    uint32_t count;
    const ScalarTerm *term;
} ScalarList;

bool word_is_mask(Word word);                       /* does it give a mask, whatever it is applied to? */
bool word_takes_mask(Word word, uint32_t argument); /* ... or take one as that argument? */
bool word_is_expensive(Word word); /* worth a load and a store rather than computing again: exp, tanh, erf, ... */
bool word_list_is_expensive(const ScalarList *list);
/* What a machine spends on it, in the time of a multiply-add counted as two: 1 for what may be half of one, and for a
 * function what its f32 text takes in vectors (codegen/c/math.c; a quotient or root: 16). */
uint32_t word_work(Word word);
uint32_t word_list_work(const ScalarList *list);

#endif
