/* What elementwise ops make where some operands are known and others may be any finite number: by the rules of
 * arithmetic alone, so that what is known holds whatever the others are. */
#include <math.h>

#include "ops/meaning.h"
#include "ops/scalar.h"

static const Known anything = {KNOWN_NOTHING, 0};

static Known number(double value)
{
    return isnan(value) ? anything : (Known){KNOWN_NUMBER, value};
}

static bool is(Known a, double value)
{
    return a.kind == KNOWN_NUMBER && a.number == value;
}

/* Below all that is not known, also when some of that is added. */
static bool is_low(Known a)
{
    return a.kind == KNOWN_LOW || (a.kind == KNOWN_NUMBER && a.number < KNOWN_LOWEST);
}

static Known low(Known a)
{
    return is(a, -INFINITY) ? a : (Known){KNOWN_LOW, 0};
}

/* Is it finite, and no match for what is low? */
static bool is_moderate(Known a)
{
    return a.kind == KNOWN_NOTHING || (a.kind == KNOWN_NUMBER && fabs(a.number) < -KNOWN_LOWEST);
}

/* An infinity stays one, whatever finite is added. */
static Known sum(Known a, Known b)
{
    Known most = is_moderate(a) ? b : a, other = is_moderate(a) ? a : b;
    if (is_low(most) && (is_moderate(other) || is_low(other)))
        return is(other, -INFINITY) ? other : low(most);
    return is(most, INFINITY) && is_moderate(other) ? most : anything;
}

static Known negated(Known a)
{
    return a.kind == KNOWN_NUMBER ? number(-a.number) : anything;
}

static Known selected(Known mask, Known a, Known b)
{
    bool same = a.kind == b.kind && a.kind != KNOWN_NOTHING && a.number == b.number;
    if (mask.kind == KNOWN_NUMBER)
        return mask.number != 0 ? a : b;
    return same ? a : is_low(a) && is_low(b) ? (Known){KNOWN_LOW, 0} : anything;
}

/* Truths. */
static Known both(Known a, Known b, double decides)
{
    if (is(a, decides) || is(b, decides))
        return number(decides);
    return is(a, 1 - decides) && is(b, 1 - decides) ? number(1 - decides) : anything;
}

static bool all_numbers(Word word, Known a, Known b)
{
    bool unary = word == WORD_NEG || word >= WORD_ABS;
    return a.kind == KNOWN_NUMBER && ((unary && word != WORD_POW && word != WORD_FMOD) || b.kind == KNOWN_NUMBER);
}

static Known made(Word word, Known a, Known b, Known c)
{
    double result;
    if (word == WORD_SELECT)
        return selected(a, b, c);
    if (word == WORD_AND || word == WORD_OR)
        return both(a, b, word == WORD_OR);
    if (word == WORD_NOT)
        return a.kind == KNOWN_NUMBER ? number(a.number == 0) : anything;
    if (all_numbers(word, a, b) && scalar_f64[word]) {
        scalar_f64[word](1, &a.number, &b.number, &c.number, &result);
        return number(result);
    }
    switch (word) {
    case WORD_ADD:
        return sum(a, b);
    case WORD_SUB:
        return sum(a, negated(b));
    case WORD_MUL:
        return is(a, 0) || is(b, 0) ? number(0) : anything;
    case WORD_DIV:
        return is(a, 0) ? number(0) : anything;
    case WORD_EXP:
    case WORD_EXP2:
    case WORD_SIGMOID:
        return is_low(a) ? number(0) : anything;
    case WORD_MAX: /* with a number that is above, or not */
        if (is_low(a) && is_low(b))
            return low(is(a, -INFINITY) ? b : a);
        return is_low(a) && b.kind == KNOWN_NUMBER ? b : is_low(b) && a.kind == KNOWN_NUMBER ? a : anything;
    default:
        return anything;
    }
}

Known node_where_known(const Graph *graph, const Node *node, const Known *operand)
{
    const ScalarList *list = op_info(node->op)->scalar;
    Known value[MOST_TERMS];
    for (uint32_t i = 0; i < node->in_count; i++) {
        DType dtype = value_type(graph, node->in[i])->dtype;
        if (!dtype_is_float(dtype) && dtype != DT_BOOL)
            return anything;
    }
    for (uint32_t t = 0; t < list->count; t++) {
        const ScalarTerm *term = &list->term[t];
        const uint8_t *arg = term->arg;
        value[t] = term->word == WORD_OPERAND  ? operand[arg[0]]
                   : term->word == WORD_NUMBER ? number(term->number)
                                               : made(term->word, value[arg[0]], value[arg[1]], value[arg[2]]);
    }
    return value[list->count - 1];
}
