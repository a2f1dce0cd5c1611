#include "c/expr.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *print_index_type(const Printer *printer)
{
    return printer->wide ? "ptrdiff_t" : "int";
}

Str print_parenthesized(Printer *printer, Piece piece, int least)
{
    if (piece.precedence >= least)
        return piece.text;
    return str_format(printer->arena, "(" STR_FMT ")", STR_ARG(piece.text));
}

Str print_number(Arena *arena, DType dtype, double number)
{
    if (!dtype_is_float(dtype)) {
        if (dtype == DT_U64 && number >= 0x1p63)
            return number >= 0x1p64 ? STR("UINT64_MAX")
                                    : str_format(arena, "UINT64_C(%llu)", (unsigned long long)number);
        if (number <= -0x1p63)
            return STR("INT64_MIN");
        if (number >= 0x1p63)
            return STR("INT64_MAX");
        if (number == -0x1p31 && dtype == DT_I32)
            return STR("INT32_MIN");
        return str_format(arena, number > 0x7fffffff || number < -0x7fffffff ? "INT64_C(%lld)" : "%lld",
                          (long long)number);
    }
    if (dtype == DT_F16 || dtype == DT_BF16) /* held as bits */
        return str_format(arena, "0x%04x",
                          dtype == DT_F16 ? dtype_f32_to_f16((float)number) : dtype_f32_to_bf16((float)number));
    const char *suffix = dtype == DT_F64 ? "" : "f";
    if (isnan(number))
        return dtype == DT_F64 ? STR("(double)NAN") : STR("NAN");
    if (isinf(number))
        return number > 0 ? STR("INFINITY") : STR("-INFINITY");
    for (int digits = dtype == DT_F64 ? 15 : 6;; digits++) { /* the shortest that reads back the same */
        Str text = str_format(arena, "%.*g", digits, number);
        double back = strtod(text.ptr, NULL);
        if ((dtype == DT_F64 ? back == number : (float)back == (float)number) || digits >= 17) {
            bool point = memchr(text.ptr, '.', text.len) || memchr(text.ptr, 'e', text.len);
            return str_format(arena, STR_FMT "%s%s", STR_ARG(text), point ? "" : ".0", suffix);
        }
    }
}

/* Positions */

Str print_var(const Printer *printer, const Var *var)
{
    for (uint32_t i = printer->depth; i-- > 0;)
        if (printer->var[i] == var)
            return printer->var_name[i];
    assert(!"a loop variable in scope");
    return (Str){0};
}

/* A local that names a position, and has the positions' type. */
static bool is_position(const Expr *expr)
{
    return expr->kind == EXPR_LOCAL && expr->local->dtype == DT_I64 && !expr->local->lanes && !expr->local->extent[0];
}

/* In parentheses, unless it is a variable or a quotient. */
static Str print_dividend(Printer *printer, Index index)
{
    Str shown = print_index(printer, index);
    bool bare = !index.constant && index.count == 1 && index.term->factor == 1 && index.term->atom->kind != ATOM_DATA;
    return bare ? shown : str_format(printer->arena, "(" STR_FMT ")", STR_ARG(shown));
}

static Str print_atom(Printer *printer, const Atom *atom)
{
    switch (atom->kind) {
    case ATOM_VAR:
        return print_var(printer, atom->var);
    case ATOM_DIV:
        return str_format(printer->arena, STR_FMT " / %lld", STR_ARG(print_dividend(printer, atom->index)),
                          (long long)atom->divisor);
    case ATOM_MOD:
        return str_format(printer->arena, STR_FMT " %% %lld", STR_ARG(print_dividend(printer, atom->index)),
                          (long long)atom->divisor);
    case ATOM_DATA:
        if (is_position(atom->data))
            return print_local(printer, atom->data->local, index_constant(0), index_constant(0));
        return str_format(printer->arena, "(%s)" STR_FMT, print_index_type(printer),
                          STR_ARG(print_parenthesized(printer, print_expr(printer, atom->data), PREC_UNARY)));
    }
    return (Str){0};
}

static void print_term(Printer *printer, Text *text, const Term *term)
{
    const Atom *atom = term->atom;
    Str shown = print_atom(printer, atom);
    text_printf(text, "%s", term->factor < 0 ? (text->len ? " - " : "-") : text->len ? " + " : "");
    if (llabs(term->factor) == 1)
        text_str(text, shown);
    else if (atom->kind == ATOM_DIV || atom->kind == ATOM_MOD)
        text_printf(text, "(" STR_FMT ") * %lld", STR_ARG(shown), (long long)llabs(term->factor));
    else
        text_printf(text, STR_FMT " * %lld", STR_ARG(shown), (long long)llabs(term->factor));
}

/* What is added stands before what is taken away: `2 - row`, not `-row + 2`. */
Str print_index(Printer *printer, Index index)
{
    Text text = {0};
    uint32_t first = 0;
    while (first < index.count && index.term[first].factor < 0)
        first++;
    bool constant_first = first == index.count && index.constant > 0;
    if (constant_first)
        text_printf(&text, "%lld", (long long)index.constant);
    else if (first < index.count)
        print_term(printer, &text, &index.term[first]);
    for (uint32_t i = 0; i < index.count; i++)
        if (i != first)
            print_term(printer, &text, &index.term[i]);
    if (!text.len)
        text_printf(&text, "%lld", (long long)index.constant);
    else if (index.constant && !constant_first)
        text_printf(&text, " %c %lld", index.constant < 0 ? '-' : '+', (long long)llabs(index.constant));
    Str shown = str_copy(printer->arena, text_view(&text));
    text_free(&text);
    return shown;
}

Str print_base(Printer *printer, Index index, int64_t *lane_factor)
{
    *lane_factor = 0;
    if (printer->lane) {
        bool affine = index_factor(index, printer->lane, lane_factor);
        assert(affine && "vector accesses are affine in the lane");
        (void)affine;
        index = index_substitute(printer->arena, index, printer->lane, index_constant(0));
    }
    return print_index(printer, index);
}

Str print_local(Printer *printer, const Local *local, Index i, Index j)
{
    Text text = {0};
    if (local->extent[0])
        text_printf(&text, "%s%lld_%lld", local->name, (long long)i.constant, (long long)j.constant);
    else
        text_printf(&text, "%s%u", local->name, local->id);
    Str shown = str_copy(printer->arena, text_view(&text));
    text_free(&text);
    return shown;
}

/* Words: operators where C has them, else helpers.  Arguments come printed; `dtype` is that of the numbers. */

static Str as_vector(Printer *printer, Piece piece)
{
    if (piece.vector)
        return piece.text;
    const char *splat = prelude_need(printer->needs, printer->arena, HELPER_SPLAT, DT_F32, printer->lanes);
    return str_format(printer->arena, "%s(" STR_FMT ")", splat, STR_ARG(piece.text));
}

static Piece vector_piece(Printer *printer, Piece piece)
{
    return (Piece){as_vector(printer, piece), PREC_PRIMARY, true};
}

static Piece call(Printer *printer, DType dtype, Helper helper, const Piece *arg)
{
    uint32_t count = arg[1].text.len ? 2 : 1;
    bool vector = arg[0].vector || arg[1].vector;
    const char *name =
        prelude_need(printer->needs, printer->arena, helper, vector ? DT_F32 : dtype, vector ? printer->lanes : 1);
    bool scalar_second = helper == HELPER_ATLEAST || helper == HELPER_ATMOST;
    Text text = {0};
    text_printf(&text, "%s(", name);
    for (uint32_t i = 0; i < count; i++) {
        Str shown = vector && !(scalar_second && i == 1) ? as_vector(printer, arg[i]) : arg[i].text;
        text_printf(&text, "%s" STR_FMT, i ? ", " : "", STR_ARG(shown));
    }
    text_char(&text, ')');
    Piece piece = {str_copy(printer->arena, text_view(&text)), PREC_PRIMARY, vector};
    text_free(&text);
    return piece;
}

static Piece infix(Printer *printer, Piece a, const char *operator, Piece b, int precedence);

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

static Str as_mask_vector(Printer *printer, Piece piece)
{
    if (piece.vector)
        return piece.text;
    const char *splat = prelude_need(printer->needs, printer->arena, HELPER_SPLAT_MASK, DT_F32, printer->lanes);
    return str_format(printer->arena, "%s(" STR_FMT ")", splat, STR_ARG(piece.text));
}

static Piece print_lane_call(Printer *printer, Word word, const Piece *arg)
{
    if (!lane_call[word].masks)
        return call(printer, DT_F32, lane_call[word].helper, arg);
    Piece masks[2] = {{as_mask_vector(printer, arg[0]), PREC_PRIMARY, true}};
    if (arg[1].text.len)
        masks[1] = (Piece){as_mask_vector(printer, arg[1]), PREC_PRIMARY, true};
    return call(printer, DT_F32, lane_call[word].helper, masks);
}

bool print_is_product_sum(const Printer *printer, const Expr *expr)
{
    return printer->target->dialect == DIALECT_C99 && printer->lane && expr->kind == EXPR_WORD &&
           expr->word == WORD_ADD && expr->dtype == DT_F32 && expr->arg[1]->kind == EXPR_WORD &&
           expr->arg[1]->word == WORD_MUL;
}

/* sum + a * b, by one function, which compilers contract. */
static Piece product_sum(Printer *printer, const Expr *expr)
{
    Piece sum = print_expr(printer, expr->arg[0]), a = print_expr(printer, expr->arg[1]->arg[0]),
          b = print_expr(printer, expr->arg[1]->arg[1]);
    bool by_scalar = a.vector != b.vector;
    if (!a.vector && !b.vector) {
        Piece both[2] = {sum, infix(printer, a, "*", b, PREC_PRODUCT)};
        return sum.vector ? call(printer, DT_F32, HELPER_ADD, both) : infix(printer, sum, "+", both[1], PREC_SUM);
    }
    Piece scalar = a.vector ? b : a, vector = a.vector ? a : b;
    const char *madd =
        prelude_need(printer->needs, printer->arena, by_scalar ? HELPER_MADDS : HELPER_MADD, DT_F32, printer->lanes);
    return (Piece){str_format(printer->arena, "%s(" STR_FMT ", " STR_FMT ", " STR_FMT ")", madd,
                              STR_ARG(as_vector(printer, sum)), STR_ARG(by_scalar ? scalar.text : a.text),
                              STR_ARG(by_scalar ? vector.text : b.text)),
                   PREC_PRIMARY, true};
}

static Piece infix(Printer *printer, Piece a, const char *operator, Piece b, int precedence)
{
    int left = precedence == PREC_COMPARE ? precedence + 1 : precedence;
    return (Piece){str_format(printer->arena, STR_FMT " %s " STR_FMT,
                              STR_ARG(print_parenthesized(printer, a, left)), operator,
                              STR_ARG(print_parenthesized(printer, b, precedence + 1))),
                   precedence, a.vector || b.vector};
}

/* Integers wrap around, as NumPy's do; C leaves the overflow of signed ones undefined, which u16 are widened to. */
static Piece arithmetic(Printer *printer, DType dtype, Piece a, const char *operator, Piece b, int precedence)
{
    static const char *const wrapped[DT_COUNT] = {[DT_I64] = "uint64_t", [DT_I32] = "uint32_t", [DT_U16] = "uint32_t"};
    Piece piece = infix(printer, a, operator, b, precedence);
    if (!dtype_is_int(dtype))
        return piece;
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

/* x != x asks whether x is NaN, but compilers warn of the words. */
static Piece comparison(Printer *printer, DType dtype, Piece a, const char *operator, Piece b)
{
    bool differs = operator[0] == '!';
    if (!str_eq(a.text, b.text) || a.vector || !dtype_is_float(dtype))
        return infix(printer, a, operator, b, PREC_COMPARE);
    return (Piece){str_format(printer->arena, "%sisnan(" STR_FMT ")", differs ? "" : "!", STR_ARG(a.text)),
                   differs ? PREC_PRIMARY : PREC_NOT, false};
}

/* A scalar truth among vector masks: all lanes or none. */
static Piece as_mask(Printer *printer, Piece piece)
{
    if (piece.vector)
        return piece;
    return (Piece){str_format(printer->arena, "-(" STR_FMT ")", STR_ARG(piece.text)), PREC_UNARY, false};
}

static Piece logic(Printer *printer, Piece a, const char *scalar, const char *lanes, Piece b)
{
    bool vector = a.vector || b.vector;
    a = vector ? as_mask(printer, a) : a;
    b = vector ? as_mask(printer, b) : b;
    return (Piece){str_format(printer->arena, "(" STR_FMT " %s " STR_FMT ")",
                              STR_ARG(print_parenthesized(printer, a, PREC_PRIMARY)), vector ? lanes : scalar,
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

static Piece choice(Printer *printer, Piece mask, Piece a, Piece b)
{
    bool vector = a.vector || b.vector;
    if (mask.vector || vector) {
        a = vector_piece(printer, a);
        b = vector_piece(printer, b);
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

static Piece print_word(Printer *printer, const Expr *expr)
{
    Piece arg[3] = {0};
    if (print_is_product_sum(printer, expr))
        return product_sum(printer, expr);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            arg[i] = print_expr(printer, expr->arg[i]);
    if (is_lane_call(printer, expr->word, arg))
        return print_lane_call(printer, expr->word, arg);
    DType dtype = expr->arg[expr->word == WORD_SELECT]->dtype;
    bool second_number = dtype == DT_F32 && is_number_text(arg[1].text);

    switch (expr->word) {
    case WORD_ADD:
        return arithmetic(printer, dtype, arg[0], "+", arg[1], PREC_SUM);
    case WORD_SUB:
        return arithmetic(printer, dtype, arg[0], "-", arg[1], PREC_SUM);
    case WORD_MUL:
        return arithmetic(printer, dtype, arg[0], "*", arg[1], PREC_PRODUCT);
    case WORD_DIV:
        return dtype_is_float(dtype) ? infix(printer, arg[0], "/", arg[1], PREC_PRODUCT)
                                     : call(printer, dtype, HELPER_DIV, arg);
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
        return choice(printer, arg[0], arg[1], arg[2]);
    case WORD_BIT_AND:
        return bitwise(printer, dtype, arg[0], "&", arg[1]);
    case WORD_BIT_OR:
        return bitwise(printer, dtype, arg[0], "|", arg[1]);
    case WORD_BIT_XOR:
        return bitwise(printer, dtype, arg[0], "^", arg[1]);
    case WORD_MAX:
        return call(printer, dtype, second_number ? HELPER_ATLEAST : HELPER_MAX, arg);
    case WORD_MIN:
        return call(printer, dtype, second_number ? HELPER_ATMOST : HELPER_MIN, arg);
    default:
        return call(printer, dtype, helper_of[expr->word], arg);
    }
}

/* A vector where the lanes stand one behind another. */
static Piece print_random(Printer *printer, const Expr *expr)
{
    static const Helper helper[] = {[DRAW_WORD] = HELPER_WORD, [DRAW_UNIT] = HELPER_UNIT, [DRAW_GAUSS] = HELPER_GAUSS};
    Piece key = print_expr(printer, expr->arg[0]);
    int64_t factor;
    Str position = print_base(printer, expr->index, &factor);
    const char *name =
        prelude_need(printer->needs, printer->arena, helper[expr->draw], expr->dtype, factor ? printer->lanes : 1);
    Str text = str_format(printer->arena, "%s(" STR_FMT ", " STR_FMT ")", name, STR_ARG(key.text), STR_ARG(position));
    return (Piece){text, PREC_PRIMARY, factor != 0};
}

/* A vector of narrow elements as f32: those that follow one another, or one part of each word of 32 bits. */
static Piece print_widened(Printer *printer, const Expr *load)
{
    static const Helper follow[DT_COUNT] = {
        [DT_I8] = HELPER_LOAD_I8,   [DT_U8] = HELPER_LOAD_U8,   [DT_I16] = HELPER_LOAD_I16,
        [DT_U16] = HELPER_LOAD_U16, [DT_F16] = HELPER_LOAD_F16, [DT_BF16] = HELPER_LOAD_BF16};
    int64_t factor, part = 0;
    Index at = load->index;
    bool parts = index_factor(at, printer->lane, &factor) && factor > 1;
    Helper helper = follow[load->dtype];
    if (parts) {
        helper += HELPER_PART_I8 - HELPER_LOAD_I8;
        part = at.constant % factor;
        at.constant -= part;
    }
    Str name = printer->names->buffer[load->buffer], base = print_base(printer, at, &factor), last = {0};
    if (parts)
        last = str_format(printer->arena, ", %lld", (long long)part);
    const char *widen = prelude_need(printer->needs, printer->arena, helper, DT_F32, printer->lanes);
    return (Piece){str_format(printer->arena, "%s(" STR_FMT " + " STR_FMT STR_FMT ")", widen, STR_ARG(name),
                              STR_ARG(base), STR_ARG(last)),
                   PREC_PRIMARY, true};
}

static Piece print_load(Printer *printer, const Expr *expr)
{
    int64_t factor;
    Str name = printer->names->buffer[expr->buffer], base = print_base(printer, expr->index, &factor);
    if (!factor)
        return (Piece){str_format(printer->arena, STR_FMT "[" STR_FMT "]", STR_ARG(name), STR_ARG(base)), PREC_PRIMARY,
                       false};
    bool mask = expr->dtype == DT_BOOL;
    Helper helper = factor == 1                   ? (mask ? HELPER_LOAD_MASK : HELPER_LOAD)
                    : factor == 2 && expr->spread ? HELPER_EVEN
                    : mask                        ? HELPER_GATHER_MASK
                                                  : HELPER_GATHER;
    const char *load = prelude_need(printer->needs, printer->arena, helper, DT_F32, printer->lanes);
    Str plus =
        str_is(base, "0") ? name : str_format(printer->arena, STR_FMT " + " STR_FMT, STR_ARG(name), STR_ARG(base));
    if (helper != HELPER_GATHER && helper != HELPER_GATHER_MASK)
        return (Piece){str_format(printer->arena, "%s(" STR_FMT ")", load, STR_ARG(plus)), PREC_PRIMARY, true};
    return (Piece){str_format(printer->arena, "%s(" STR_FMT ", %lld)", load, STR_ARG(plus), (long long)factor),
                   PREC_PRIMARY, true};
}

static Piece print_within(Printer *printer, const Expr *expr)
{
    Str index = print_index(printer, expr->index), test;
    bool low = index_low(expr->index) < 0, high = index_high(expr->index) >= expr->limit;
    if (low && high)
        test = str_format(printer->arena, STR_FMT " >= 0 && " STR_FMT " < %lld", STR_ARG(index), STR_ARG(index),
                          (long long)expr->limit);
    else if (low)
        test = str_format(printer->arena, STR_FMT " >= 0", STR_ARG(index));
    else
        test = str_format(printer->arena, STR_FMT " < %lld", STR_ARG(index), (long long)expr->limit);
    Piece a = print_expr(printer, expr->arg[0]), b = print_expr(printer, expr->arg[1]);
    bool vector = a.vector || b.vector;
    if (vector) {
        a = vector_piece(printer, a);
        b = vector_piece(printer, b);
    }
    return (Piece){str_format(printer->arena, STR_FMT " ? " STR_FMT " : " STR_FMT, STR_ARG(test),
                              STR_ARG(print_parenthesized(printer, a, PREC_COMPARE)),
                              STR_ARG(print_parenthesized(printer, b, PREC_COMPARE))),
                   PREC_SELECT, vector};
}

static bool loads_narrow_vector(const Printer *printer, const Expr *expr)
{
    return printer->lane && expr->kind == EXPR_LOAD && expr->dtype != DT_F32 && expr->dtype != DT_BOOL &&
           expr_uses(expr, printer->lane);
}

static Piece print_cast(Printer *printer, const Expr *expr)
{
    if (loads_narrow_vector(printer, expr->arg[0]))
        return print_widened(printer, expr->arg[0]);
    Piece x = print_expr(printer, expr->arg[0]);
    DType from = expr->arg[0]->dtype, to = expr->dtype;
    if (x.vector) /* of vectors, but for loads, the only one: a mask to numbers */
        return choice(printer, x, (Piece){STR("1.0f"), PREC_PRIMARY, false}, (Piece){STR("0.0f"), PREC_PRIMARY, false});
    if (to == DT_BOOL && from != DT_F16 && from != DT_BF16)
        return (Piece){
            str_format(printer->arena, STR_FMT " != 0", STR_ARG(print_parenthesized(printer, x, PREC_COMPARE + 1))),
            PREC_COMPARE, false};
    const char *convert = prelude_need_convert(printer->needs, printer->arena, from, to);
    if (from == DT_F64 && to == DT_F32 && printer->target->dialect != DIALECT_CUDA) {
        printer->needs->convert[from][to] = true; /* where a compiler forgets to round */
        convert = "to_f32_from_f64";
    }
    if (convert)
        return (Piece){str_format(printer->arena, "%s(" STR_FMT ")", convert, STR_ARG(x.text)), PREC_PRIMARY, false};
    return (Piece){str_format(printer->arena, "(%s)" STR_FMT, prelude_c_type(to),
                              STR_ARG(print_parenthesized(printer, x, PREC_UNARY))),
                   PREC_UNARY, false};
}

static Piece print_bits(Printer *printer, const Expr *expr)
{
    Piece x = print_expr(printer, expr->arg[0]);
    const char *bits = prelude_need_bits(printer->needs, printer->arena, expr->arg[0]->dtype, expr->dtype);
    return (Piece){str_format(printer->arena, "%s(" STR_FMT ")", bits, STR_ARG(x.text)), PREC_PRIMARY, false};
}

Piece print_expr(Printer *printer, const Expr *expr)
{
    switch (expr->kind) {
    case EXPR_NUMBER: {
        Str number = print_number(printer->arena, expr->dtype, expr->number);
        return (Piece){number, number.ptr[0] == '-' ? PREC_UNARY : PREC_PRIMARY, false};
    }
    case EXPR_INDEX:
        return (Piece){str_format(printer->arena, "(%s)(" STR_FMT ")", prelude_c_type(expr->dtype),
                                  STR_ARG(print_index(printer, expr->index))),
                       PREC_UNARY, false};
    case EXPR_LOAD:
        return print_load(printer, expr);
    case EXPR_RANDOM:
        return print_random(printer, expr);
    case EXPR_LOCAL:
        return (Piece){print_local(printer, expr->local, expr->index, expr->index2), PREC_PRIMARY,
                       expr->local->lanes && printer->lane};
    case EXPR_WORD:
        return print_word(printer, expr);
    case EXPR_CAST:
        return print_cast(printer, expr);
    case EXPR_BITS:
        return print_bits(printer, expr);
    case EXPR_WITHIN:
        return print_within(printer, expr);
    }
    return (Piece){0};
}

Str print_vector(Printer *printer, const Expr *expr)
{
    Piece piece = print_expr(printer, expr);
    if (!printer->lane || piece.vector)
        return piece.text;
    return expr->dtype != DT_BOOL ? as_vector(printer, piece) : as_mask_vector(printer, piece);
}
