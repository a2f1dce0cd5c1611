/* Random draws as expressions of the loop IR. */
#include "kernel/lower/lower.h"

#include <math.h>
#include <stdlib.h>

/* The `count` leading bits of a number, those after the point included. */
static double leading_bits(double number, int count)
{
    int exponent;
    double fraction = frexp(number, &exponent);
    return ldexp(trunc(ldexp(fraction, count)), exponent - count);
}

/* base + scale * number, in double.  The scale in two parts of so few bits that both products are exact: contracted or
 * not, the bits are the same. */
static const Expr *spread_in_f64(Lower *lower, const Random *random, const Expr *number)
{
    Arena *arena = lower->arena;
    double coarse = leading_bits(random->scale, 29), fine = random->scale - coarse;
    const Expr *wide = expr_cast(arena, DT_F64, fine != 0 ? lower_named(lower, number) : number);
    const Expr *scaled = expr_word(arena, WORD_MUL, DT_F64, expr_number(arena, DT_F64, coarse), wide, NULL);
    if (fine != 0)
        scaled = expr_word(arena, WORD_ADD, DT_F64, scaled,
                           expr_word(arena, WORD_MUL, DT_F64, expr_number(arena, DT_F64, fine), wide, NULL), NULL);
    return random->base == 0
               ? scaled
               : expr_word(arena, WORD_ADD, DT_F64, expr_number(arena, DT_F64, random->base), scaled, NULL);
}

/* The same in f32, where that rounds no more: to a power of two times the number only a float is added. */
static bool is_spread_in_f32(const Random *random)
{
    int exponent;
    return fabs(frexp(random->scale, &exponent)) == 0.5 && abs(exponent) < 64 &&
           (double)(float)random->base == random->base && fabs(random->base) < 0x1p64;
}

static const Expr *spread_in_f32(Arena *arena, const Random *random, const Expr *number)
{
    const Expr *scaled = random->scale == 1 ? number
                                            : expr_word(arena, WORD_MUL, DT_F32, number,
                                                        expr_number(arena, DT_F32, random->scale), NULL);
    Word word = random->base < 0 ? WORD_SUB : WORD_ADD;
    return random->base == 0
               ? scaled
               : expr_word(arena, word, DT_F32, scaled, expr_number(arena, DT_F32, fabs(random->base)), NULL);
}

const Expr *lower_spread(Lower *lower, const Random *random, DType dtype, const Expr *number)
{
    bool standard = random->base == 0 && random->scale == 1;
    bool narrow = standard || (dtype == DT_F32 && is_spread_in_f32(random));
    const Expr *spread = narrow ? spread_in_f32(lower->arena, random, number) : spread_in_f64(lower, random, number);
    return expr_cast(lower->arena, dtype, spread);
}
