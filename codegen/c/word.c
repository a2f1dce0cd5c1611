#include "c/expr.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Str print_parenthesized(Printer *printer, Piece piece, int least)
{
    if (piece.precedence >= least)
        return piece.text;
    return str_format(printer->arena, "(" STR_FMT ")", STR_ARG(piece.text));
}

/* Words: operators where C has them, else helpers.  Arguments come printed; `dtype` is that of the numbers. */

Str print_as_vector(Printer *printer, Piece piece)
{
    if (piece.vector)
        return piece.text;
    const char *splat = prelude_need(printer->needs, printer->arena, HELPER_SPLAT, DT_F32, printer->lanes);
    return str_format(printer->arena, "%s(" STR_FMT ")", splat, STR_ARG(piece.text));
}

Piece print_vector_piece(Printer *printer, Piece piece)
{
    return (Piece){print_as_vector(printer, piece), PREC_PRIMARY, true};
}

Piece print_call(Printer *printer, DType dtype, Helper helper, const Piece *arg)
{
    uint32_t count = arg[1].text.len ? 2 : 1;
    bool vector = arg[0].vector || arg[1].vector;
    const char *name =
        prelude_need(printer->needs, printer->arena, helper, vector ? DT_F32 : dtype, vector ? printer->lanes : 1);
    bool scalar_second = helper == HELPER_ATLEAST || helper == HELPER_ATMOST;
    Text text = {0};
    text_printf(&text, "%s(", name);
    for (uint32_t i = 0; i < count; i++) {
        Str shown = vector && !(scalar_second && i == 1) ? print_as_vector(printer, arg[i]) : arg[i].text;
        text_printf(&text, "%s" STR_FMT, i ? ", " : "", STR_ARG(shown));
    }
    text_char(&text, ')');
    Piece piece = {str_copy(printer->arena, text_view(&text)), PREC_PRIMARY, vector};
    text_free(&text);
    return piece;
}

/* In strict C99 operators take no vectors: functions stand for them. */

static const struct {
    Helper helper;
    bool masks; /* is what it takes */
} lane_call[WORD_COUNT] = {
    [WORD_ADD] = {HELPER_ADD, false},    [WORD_SUB] = {HELPER_SUB, false},  [WORD_MUL] = {HELPER_MUL, false},
    [WORD_DIV] = {HELPER_DIV, false},    [WORD_NEG] = {HELPER_NEG, false},  [WORD_LT] = {HELPER_LESS, false},
    [WORD_LE] = {HELPER_AT_MOST, false}, [WORD_EQ] = {HELPER_EQUAL, false}, [WORD_NE] = {HELPER_DIFFER, false},
    [WORD_AND] = {HELPER_AND, true},     [WORD_OR] = {HELPER_OR, true},     [WORD_XOR] = {HELPER_XOR, true},
    [WORD_NOT] = {HELPER_NOT, true},
};

static bool is_lane_call(const Printer *printer, Word word, const Piece *arg)
{
    return printer->target->dialect == DIALECT_C99 && (arg[0].vector || arg[1].vector) && lane_call[word].helper;
}

Str print_as_mask(Printer *printer, Piece piece)
{
    if (piece.vector)
        return piece.text;
    const char *splat = prelude_need(printer->needs, printer->arena, HELPER_SPLAT_MASK, DT_F32, printer->lanes);
    return str_format(printer->arena, "%s(" STR_FMT ")", splat, STR_ARG(piece.text));
}

static Piece print_lane_call(Printer *printer, Word word, const Piece *arg)
{
    if (!lane_call[word].masks)
        return print_call(printer, DT_F32, lane_call[word].helper, arg);
    Piece masks[2] = {{print_as_mask(printer, arg[0]), PREC_PRIMARY, true}};
    if (arg[1].text.len)
        masks[1] = (Piece){print_as_mask(printer, arg[1]), PREC_PRIMARY, true};
    return print_call(printer, DT_F32, lane_call[word].helper, masks);
}

Piece print_infix(Printer *printer, Piece a, const char *operator, Piece b, int precedence)
{
    int left = precedence == PREC_COMPARE ? precedence + 1 : precedence;
    return (Piece){str_format(printer->arena, STR_FMT " %s " STR_FMT,
                              STR_ARG(print_parenthesized(printer, a, left)), operator,
                              STR_ARG(print_parenthesized(printer, b, precedence + 1))),
                   precedence, a.vector || b.vector};
}

Str print_integers(Printer *printer, Piece piece)
{
    if (piece.vector)
        return piece.text;
    const char *splat = prelude_need(printer->needs, printer->arena, HELPER_SPLAT_PAIR, DT_F32, printer->lanes);
    return str_format(printer->arena, "%s(" STR_FMT ")", splat, STR_ARG(piece.text));
}

/* The same of vectors */
static Piece wrapped_vectors(Printer *printer, Piece a, const char *operator, Piece b)
{
    return (Piece){str_format(printer->arena, "(i32x%u)((u32x%u)" STR_FMT " %s (u32x%u)" STR_FMT ")", printer->lanes,
                              printer->lanes, STR_ARG(print_integers(printer, a)), operator, printer->lanes,
                              STR_ARG(print_integers(printer, b))),
                   PREC_UNARY, true};
}

/* Integers wrap around, as NumPy's do; C leaves the overflow of signed ones undefined, which u16 are widened to. */
static Piece arithmetic(Printer *printer, DType dtype, Piece a, const char *operator, Piece b, int precedence)
{
    static const char *const wrapped[DT_COUNT] = {[DT_I64] = "uint64_t", [DT_I32] = "uint32_t", [DT_U16] = "uint32_t"};
    Piece piece = print_infix(printer, a, operator, b, precedence);
    if (!dtype_is_int(dtype))
        return piece;
    if (piece.vector && dtype == DT_I32)
        return wrapped_vectors(printer, a, operator, b);
    const char *as = wrapped[dtype];
    if (as)
        piece.text = str_format(printer->arena, "(%s)" STR_FMT " %s (%s)" STR_FMT, as,
                                STR_ARG(print_parenthesized(printer, a, PREC_UNARY)), operator, as,
                                STR_ARG(print_parenthesized(printer, b, PREC_UNARY)));
    return (Piece){str_format(printer->arena, "(%s)(" STR_FMT ")", prelude_c_type(dtype), STR_ARG(piece.text)),
                   PREC_UNARY, false};
}

/* A number alone: no blank of an operator is in it. */
static bool is_number_text(Str text)
{
    size_t sign = text.len && text.ptr[0] == '-';
    return text.len > sign && isdigit((unsigned char)text.ptr[sign]) && !memchr(text.ptr, ' ', text.len);
}

static Piece negation(Printer *printer, DType dtype, Piece x)
{
    if (dtype_is_int(dtype) && !is_number_text(x.text))
        return arithmetic(printer, dtype, (Piece){STR("0"), PREC_PRIMARY, false}, "-", x, PREC_SUM);
    return (Piece){str_format(printer->arena, "-" STR_FMT, STR_ARG(print_parenthesized(printer, x, PREC_PRIMARY))),
                   PREC_UNARY, x.vector};
}

/* The decimal is the number itself, not just the nearest to it that its type has. */
static bool is_exact(DType dtype, Str decimal)
{
    char all[80], some[80];
    double number = strtod(decimal.ptr, NULL);
    if (dtype == DT_F32)
        return number == (double)(float)number;
    snprintf(all, sizeof all, "%.60g", number);
    snprintf(some, sizeof some, "%.17g", number);
    return strcmp(all, some) == 0;
}

/* Where FLT_EVAL_METHOD is not 0, C99 reads 0.1f as a wider number, which no float is equal to. */
static Piece as_typed(const Printer *printer, DType dtype, Piece number)
{
    bool vectors = printer->target->dialect == DIALECT_VECTOR; /* of machines that compute no wider */
    if (vectors || !dtype_is_float(dtype) || !is_number_text(number.text) || is_exact(dtype, number.text))
        return number;
    return (Piece){str_format(printer->arena, "(%s)" STR_FMT, prelude_c_type(dtype), STR_ARG(number.text)), PREC_UNARY,
                   false};
}

/* Compilers warn of the words: of floats they ask whether x is NaN, but for x < x, which no compiler minds. */
static Piece compared_to_itself(Printer *printer, DType dtype, Piece x, const char *operator)
{
    bool differs = operator[0] == '!', equal = !differs && operator[strlen(operator) - 1] == '=';
    if (!dtype_is_float(dtype))
        return (Piece){equal ? STR("1") : STR("0"), PREC_PRIMARY, false};
    if (!equal && !differs)
        return print_infix(printer, x, operator, x, PREC_COMPARE);
    return (Piece){str_format(printer->arena, "%sisnan(" STR_FMT ")", differs ? "" : "!", STR_ARG(x.text)),
                   differs ? PREC_PRIMARY : PREC_NOT, false};
}

static Piece comparison(Printer *printer, DType dtype, Piece a, const char *operator, Piece b)
{
    a = as_typed(printer, dtype, a);
    b = as_typed(printer, dtype, b);
    return str_eq(a.text, b.text) && !a.vector ? compared_to_itself(printer, dtype, a, operator)
                                               : print_infix(printer, a, operator, b, PREC_COMPARE);
}

/* A scalar truth among vector masks: all lanes or none. */
static Piece as_mask(Printer *printer, Piece piece)
{
    if (piece.vector)
        return piece;
    return (Piece){str_format(printer->arena, "-(" STR_FMT ")", STR_ARG(piece.text)), PREC_UNARY, false};
}

static bool has_call(Str text)
{
    for (size_t i = 1; i < text.len; i++)
        if (text.ptr[i] == '(' && (isalnum((unsigned char)text.ptr[i - 1]) || text.ptr[i - 1] == '_'))
            return true;
    return false;
}

static Piece logic(Printer *printer, Piece a, const char *scalar, const char *lanes, Piece b)
{
    bool vector = a.vector || b.vector;
    a = vector ? as_mask(printer, a) : a;
    b = vector ? as_mask(printer, b) : b;
    /* gcc makes one comparison of `a < b || b < a`, and then warns of its conversion; of calls it does not, for which
     * clang warns of `|` */
    bool compare = a.precedence == PREC_COMPARE && b.precedence == PREC_COMPARE;
    bool bits = vector || (*scalar == '|' && compare && !has_call(a.text) && !has_call(b.text));
    return (Piece){str_format(printer->arena, "(" STR_FMT " %s " STR_FMT ")",
                              STR_ARG(print_parenthesized(printer, a, PREC_PRIMARY)), bits ? lanes : scalar,
                              STR_ARG(print_parenthesized(printer, b, PREC_PRIMARY))),
                   PREC_PRIMARY, vector};
}

static Piece logical_not(Printer *printer, Piece x)
{
    Str shown = print_parenthesized(printer, x, PREC_PRIMARY);
    return (Piece){str_format(printer->arena, "%c" STR_FMT, x.vector ? '~' : '!', STR_ARG(shown)),
                   x.vector ? PREC_UNARY : PREC_NOT, x.vector};
}

static Piece bitwise(Printer *printer, DType dtype, Piece a, const char *operator, Piece b)
{
    return (Piece){str_format(printer->arena, "(%s)(" STR_FMT " %s " STR_FMT ")", prelude_c_type(dtype),
                              STR_ARG(print_parenthesized(printer, a, PREC_UNARY)), operator,
                              STR_ARG(print_parenthesized(printer, b, PREC_UNARY))),
                   PREC_UNARY, false};
}

Piece print_selected(Printer *printer, Piece mask, Piece a, Piece b)
{
    bool vector = a.vector || b.vector;
    if (mask.vector || vector) {
        a = print_vector_piece(printer, a);
        b = print_vector_piece(printer, b);
    }
    if (mask.vector) {
        const char *select = prelude_need(printer->needs, printer->arena, HELPER_SELECT, DT_F32, printer->lanes);
        return (Piece){str_format(printer->arena, "%s(" STR_FMT ", " STR_FMT ", " STR_FMT ")", select,
                                  STR_ARG(mask.text), STR_ARG(a.text), STR_ARG(b.text)),
                       PREC_PRIMARY, true};
    }
    return (Piece){str_format(printer->arena, STR_FMT " ? " STR_FMT " : " STR_FMT,
                              STR_ARG(print_parenthesized(printer, mask, PREC_COMPARE)),
                              STR_ARG(print_parenthesized(printer, a, PREC_COMPARE)),
                              STR_ARG(print_parenthesized(printer, b, PREC_COMPARE))),
                   PREC_SELECT, vector};
}

static const Helper helper_of[WORD_COUNT] = {
    [WORD_DIV] = HELPER_DIV,
    [WORD_MOD] = HELPER_MOD,
    [WORD_MAX] = HELPER_MAX,
    [WORD_MIN] = HELPER_MIN,
    [WORD_ABS] = HELPER_ABS,
    [WORD_SQRT] = HELPER_SQRT,
    [WORD_EXP] = HELPER_EXP,
    [WORD_EXPM1] = HELPER_EXPM1,
    [WORD_LOG] = HELPER_LOG,
    [WORD_LOG1P] = HELPER_LOG1P,
    [WORD_SIN] = HELPER_SIN,
    [WORD_COS] = HELPER_COS,
    [WORD_TAN] = HELPER_TAN,
    [WORD_ASIN] = HELPER_ASIN,
    [WORD_ACOS] = HELPER_ACOS,
    [WORD_ATAN] = HELPER_ATAN,
    [WORD_SINH] = HELPER_SINH,
    [WORD_COSH] = HELPER_COSH,
    [WORD_TANH] = HELPER_TANH,
    [WORD_ERF] = HELPER_ERF,
    [WORD_SIGMOID] = HELPER_SIGMOID,
    [WORD_POW] = HELPER_POW,
    [WORD_FMOD] = HELPER_FMOD,
    [WORD_FLOOR] = HELPER_FLOOR,
    [WORD_CEIL] = HELPER_CEIL,
    [WORD_ROUND] = HELPER_ROUND,
    [WORD_TRUNC] = HELPER_TRUNC,
    [WORD_FOLD_IN] = HELPER_FOLD_IN,
    [WORD_EXP2] = HELPER_EXP2,
    [WORD_LOG2] = HELPER_LOG2,
    [WORD_CBRT] = HELPER_CBRT,
    [WORD_ASINH] = HELPER_ASINH,
    [WORD_ACOSH] = HELPER_ACOSH,
    [WORD_ATANH] = HELPER_ATANH,
    [WORD_SHIFT_LEFT] = HELPER_SHIFT_LEFT,
    [WORD_SHIFT_RIGHT] = HELPER_SHIFT_RIGHT,
};

static bool is_number(const Expr *expr)
{
    return expr->kind == EXPR_NUMBER && isfinite(expr->number);
}

Piece print_applied(Printer *printer, const Expr *expr, const Piece *arg)
{
    if (is_lane_call(printer, expr->word, arg))
        return print_lane_call(printer, expr->word, arg);
    DType dtype = expr->arg[expr->word == WORD_SELECT]->dtype;
    bool second_number =
        dtype == DT_F32 && (expr->word == WORD_MAX || expr->word == WORD_MIN) && is_number(expr->arg[1]);

    switch (expr->word) {
    case WORD_ADD:
        return arithmetic(printer, dtype, arg[0], "+", arg[1], PREC_SUM);
    case WORD_SUB:
        return arithmetic(printer, dtype, arg[0], "-", arg[1], PREC_SUM);
    case WORD_MUL:
        return arithmetic(printer, dtype, arg[0], "*", arg[1], PREC_PRODUCT);
    case WORD_DIV:
        return dtype_is_float(dtype) ? print_infix(printer, arg[0], "/", arg[1], PREC_PRODUCT)
                                     : print_call(printer, dtype, HELPER_DIV, arg);
    case WORD_NEG:
        return negation(printer, dtype, arg[0]);
    case WORD_LT:
        return comparison(printer, dtype, arg[0], "<", arg[1]);
    case WORD_LE:
        return comparison(printer, dtype, arg[0], "<=", arg[1]);
    case WORD_EQ:
        return comparison(printer, dtype, arg[0], "==", arg[1]);
    case WORD_NE:
        return comparison(printer, dtype, arg[0], "!=", arg[1]);
    case WORD_AND:
        return logic(printer, arg[0], "&&", "&", arg[1]);
    case WORD_OR:
        return logic(printer, arg[0], "||", "|", arg[1]);
    case WORD_XOR:
        return logic(printer, arg[0], "!=", "^", arg[1]);
    case WORD_NOT:
        return logical_not(printer, arg[0]);
    case WORD_SELECT:
        return print_selected(printer, arg[0], arg[1], arg[2]);
    case WORD_BIT_AND:
        return bitwise(printer, dtype, arg[0], "&", arg[1]);
    case WORD_BIT_OR:
        return bitwise(printer, dtype, arg[0], "|", arg[1]);
    case WORD_BIT_XOR:
        return bitwise(printer, dtype, arg[0], "^", arg[1]);
    case WORD_MAX:
        return print_call(printer, dtype, second_number ? HELPER_ATLEAST : HELPER_MAX, arg);
    case WORD_MIN:
        return print_call(printer, dtype, second_number ? HELPER_ATMOST : HELPER_MIN, arg);
    default:
        return print_call(printer, dtype, helper_of[expr->word], arg);
    }
}
