/* The transforms of a line by minimal filtering.  Points come in pairs of opposite ones: what is even in them is the
 * same for both, what is odd differs by its sign. */
#include "kernel/lower/winograd.h"

const Local *filter_line(const Filter *filter, Block *block, bool lanes, int64_t count)
{
    const Local *line = lower_registers(filter->lower, "d", DT_F32, lanes, 1, count);
    stmt_local(filter->lower->arena, block, line, NULL);
    return line;
}

Index filter_at(const Filter *filter, const Index *digit, const int64_t *extent, uint32_t count)
{
    Arena *arena = filter->lower->arena;
    Index at = digit[0];
    for (uint32_t i = 1; i < count; i++)
        at = index_add(arena, index_scale(arena, at, extent[i]), digit[i]);
    return index_add(arena, index_scale(arena, at, filter->lanes), index_var(arena, filter->lane));
}

static const Expr *element(const Filter *filter, const Local *from, uint32_t i)
{
    return expr_local_at(filter->lower->arena, from, index_constant(0), index_constant(i));
}

static const Expr *word(const Filter *filter, Word word, const Expr *a, const Expr *b)
{
    return expr_word(filter->lower->arena, word, DT_F32, a, b, NULL);
}

/* sum + factor * x, where sum may be NULL. */
static const Expr *add_scaled(const Filter *filter, const Expr *sum, double factor, const Expr *x)
{
    if (factor == 0)
        return sum;
    double size = factor < 0 && sum ? -factor : factor;
    if (size != 1)
        x = word(filter, WORD_MUL, expr_number(filter->lower->arena, DT_F32, size), x);
    return sum ? word(filter, factor < 0 ? WORD_SUB : WORD_ADD, sum, x) : x;
}

static const Expr *named(const Filter *filter, Block *block, const char *name, bool lanes, const Expr *value)
{
    const Local *local = lower_local(filter->lower, name, DT_F32, lanes);
    stmt_local(filter->lower->arena, block, local, value);
    return expr_local(filter->lower->arena, local);
}

/* The even or the odd part of a row of B^T, divided by its last coefficient. */
static const Expr *part(const Filter *filter, const Local *from, uint32_t row, bool odd)
{
    const double *coefficient = filter->form.forward[row];
    uint32_t last = filter->form.size - (odd ? 1 : 2);
    while (coefficient[last] == 0)
        last -= 2;
    const Expr *sum = NULL;
    for (uint32_t k = 0; k <= last / 2; k++) {
        uint32_t i = last - 2 * k;
        sum = add_scaled(filter, sum, coefficient[i] / coefficient[last], element(filter, from, i));
    }
    return sum;
}

void filter_forward(const Filter *filter, Block *block, const Local *from, const Expr **to)
{
    const Winograd *form = &filter->form;
    to[0] = part(filter, from, 0, false);
    to[form->size - 1] = part(filter, from, form->size - 1, true);
    for (uint32_t j = 0; j < form->pairs; j++) {
        uint32_t row = 1 + 2 * j;
        const Expr *even = named(filter, block, "even", from->lanes, part(filter, from, row, false));
        const Expr *odd = named(filter, block, "odd", from->lanes, part(filter, from, row, true));
        to[row] = add_scaled(filter, even, form->point[j], odd);
        to[row + 1] = add_scaled(filter, even, -form->point[j], odd);
    }
}

void filter_backward(const Filter *filter, Block *block, const Local *from, int64_t count, const Expr **to)
{
    const Winograd *form = &filter->form;
    const Expr *sum[WINOGRAD_MOST_PAIRS], *difference[WINOGRAD_MOST_PAIRS];
    for (uint32_t j = 0; j < form->pairs; j++) {
        const Expr *plus = element(filter, from, 1 + 2 * j), *minus = element(filter, from, 2 + 2 * j);
        sum[j] = named(filter, block, "even", from->lanes, word(filter, WORD_ADD, plus, minus));
        difference[j] = named(filter, block, "odd", from->lanes, word(filter, WORD_SUB, plus, minus));
    }
    for (uint32_t i = 0; i < count; i++) {
        to[i] = i == 0                   ? element(filter, from, 0)
                : i == form->results - 1 ? element(filter, from, form->size - 1)
                                         : NULL;
        for (uint32_t j = 0; j < form->pairs; j++)
            to[i] = add_scaled(filter, to[i], form->backward[i][1 + 2 * j], i % 2 ? difference[j] : sum[j]);
    }
}
