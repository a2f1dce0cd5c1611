/* Words of an elementwise op as expressions of the loop IR. */
#include "kernel/lower/lower.h"

#include <math.h>

/* x == x and the like, whose words compilers warn of. Floats are another matter: they may be NaN. */
static bool compares_itself(Word word, const Expr *const *arg, double *known)
{
    *known = word == WORD_EQ || word == WORD_LE;
    bool compares = *known || word == WORD_NE || word == WORD_LT || word == WORD_XOR;
    return compares && (!dtype_is_float(arg[0]->dtype) || word == WORD_LT) && expr_eq(arg[0], arg[1]);
}

/* An integer against a number at the end of its dtype's range: x < 0 of u8, x <= 127 of i8. */
static bool compares_with_end(Arena *arena, Word word, const Expr *const *arg, double *known)
{
    if ((word != WORD_LT && word != WORD_LE) || dtype_is_float(arg[0]->dtype))
        return false;
    bool equal = word == WORD_LE;
    const Expr *low = arg[0], *high = arg[1]; /* low < high, or low <= high */
    double least = expr_number(arena, low->dtype, -INFINITY)->number;
    double most = expr_number(arena, low->dtype, INFINITY)->number;
    *known = equal;
    return (low->kind == EXPR_NUMBER && low->number == (equal ? least : most)) ||
           (high->kind == EXPR_NUMBER && high->number == (equal ? most : least));
}

const Expr *lower_term(Arena *arena, const ScalarTerm *term, const Expr *const *value)
{
    const Expr *arg[3] = {0};
    double known;
    for (uint32_t i = 0; i < term->args; i++)
        arg[i] = value[term->arg[i]];
    if (compares_itself(term->word, arg, &known) || compares_with_end(arena, term->word, arg, &known))
        return expr_number(arena, DT_BOOL, known);
    if (term->word == WORD_SELECT && arg[0]->kind == EXPR_NUMBER)
        return arg[0]->number ? arg[1] : arg[2];
    DType dtype = word_is_mask(term->word) ? DT_BOOL : arg[term->word == WORD_SELECT]->dtype;
    return expr_word(arena, term->word, dtype, arg[0], arg[1], arg[2]);
}
