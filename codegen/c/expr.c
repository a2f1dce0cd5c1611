#include "c/expr.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *print_index_type(const Printer *printer)
{
    return printer->wide ? "ptrdiff_t" : "int";
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

Str print_constant(Printer *printer, ConstantKind kind, const char *along, int64_t value)
{
    bool fixed = printer->innermost && kind == CONSTANT_OFFSET && printer->kernel->form != FORM_UPDATE;
    return constants_next(fixed ? NULL : printer->constants, printer->arena,
                          (Constant){.kind = kind, .value = value, .of = printer->place.of, .along = along});
}

/* Of a sum, which a parameter may be, what is taken away stands in parentheses. */
static Str print_distance(Printer *printer, const char *along, int64_t value)
{
    ConstantKind kind = along ? CONSTANT_STRIDE : CONSTANT_OFFSET;
    Str shown = print_constant(printer, kind, along, llabs(value));
    bool sum = memchr(shown.ptr, '+', shown.len) || memchr(shown.ptr, '-', shown.len);
    return sum && value < 0 ? str_format(printer->arena, "(" STR_FMT ")", STR_ARG(shown)) : shown;
}

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

static bool has_wide_local(const Printer *printer, Index index)
{
    bool has = false;
    for (uint32_t i = 0; i < index.count && !has; i++) {
        const Atom *atom = index.term[i].atom;
        if (atom->kind == ATOM_DATA)
            has = is_position(atom->data) && printer->wide_local[atom->data->local->id];
        else
            has = atom->kind != ATOM_VAR && has_wide_local(printer, atom->index);
    }
    return has;
}

bool print_is_wide(const Printer *printer, Index index)
{
    return !printer->wide && has_wide_local(printer, index);
}

Str print_narrowed(Printer *printer, Str shown)
{
    return str_format(printer->arena, "(%s)(" STR_FMT ")", print_index_type(printer), STR_ARG(shown));
}

/* In parentheses, unless it is a variable or a quotient. */
static Str print_dividend(Printer *printer, Index index)
{
    Str shown = print_index(printer, index);
    const Atom *atom = index.count == 1 && index.term->factor == 1 && !index.constant ? index.term->atom : NULL;
    bool bare = atom && (atom->kind != ATOM_DATA || is_position(atom->data));
    return bare ? shown : str_format(printer->arena, "(" STR_FMT ")", STR_ARG(shown));
}

static Str print_atom(Printer *printer, const Atom *atom)
{
    Str shown;
    switch (atom->kind) {
    case ATOM_VAR:
        return print_var(printer, atom->var);
    case ATOM_DIV:
    case ATOM_MOD:
        shown = print_dividend(printer, atom->index);
        return str_format(printer->arena, STR_FMT " %c %lld", STR_ARG(shown), atom->kind == ATOM_DIV ? '/' : '%',
                          (long long)atom->divisor);
    case ATOM_DATA:
        if (is_position(atom->data))
            return print_local(printer, atom->data->local, index_constant(0), index_constant(0));
        shown = print_parenthesized(printer, print_expr(printer, atom->data), PREC_UNARY);
        return str_format(printer->arena, "(%s)" STR_FMT, print_index_type(printer), STR_ARG(shown));
    }
    return (Str){0};
}

static void print_term(Printer *printer, Text *text, const Term *term)
{
    const Atom *atom = term->atom;
    const char *along = atom->kind == ATOM_VAR ? atom->var->name : "";
    Str shown = print_atom(printer, atom);
    text_printf(text, "%s", term->factor < 0 ? (text->len ? " - " : "-") : text->len ? " + " : "");
    if (llabs(term->factor) == 1) {
        text_str(text, shown);
        return;
    }
    text_printf(text, atom->kind == ATOM_DIV || atom->kind == ATOM_MOD ? "(" STR_FMT ") * " : STR_FMT " * ",
                STR_ARG(shown));
    text_str(text, print_distance(printer, along, term->factor));
}

/* Of an index that is no more than that.  0 stays, since accesses leave it out. */
static void print_alone(Printer *printer, Text *text, int64_t constant)
{
    const Constant *place = &printer->place;
    text_printf(text, "%s", constant < 0 ? "-" : "");
    text_str(text, constant ? print_constant(printer, place->kind, place->along, llabs(constant)) : STR("0"));
}

/* What is added stands before what is taken away: `2 - row`, not `-row + 2`. */
Str print_index(Printer *printer, Index index)
{
    Text text = {0};
    uint32_t first = 0;
    while (first < index.count && index.term[first].factor < 0)
        first++;
    bool constant_first = index.count && first == index.count && index.constant > 0;
    if (constant_first)
        text_str(&text, print_distance(printer, NULL, index.constant));
    else if (first < index.count)
        print_term(printer, &text, &index.term[first]);
    for (uint32_t i = 0; i < index.count; i++)
        if (i != first)
            print_term(printer, &text, &index.term[i]);
    if (!text.len)
        print_alone(printer, &text, index.constant);
    else if (index.constant && !constant_first) {
        text_printf(&text, " %c ", index.constant < 0 ? '-' : '+');
        text_str(&text, print_distance(printer, NULL, index.constant));
    }
    Str shown = str_copy(printer->arena, text_view(&text));
    text_free(&text);
    return shown;
}

Str print_index_of(Printer *printer, Str of, Index index)
{
    Constant before = printer->place;
    printer->place = (Constant){.kind = CONSTANT_OFFSET, .of = of};
    Str shown = print_index(printer, index);
    printer->place = before;
    return shown;
}

Str print_base(Printer *printer, Str of, Index index, int64_t *lane_factor)
{
    *lane_factor = 0;
    if (printer->lane) {
        bool affine = index_factor(index, printer->lane, lane_factor);
        assert(affine && "vector accesses are affine in the lane");
        (void)affine;
        index = index_substitute(printer->arena, index, printer->lane, index_constant(0));
    }
    return print_index_of(printer, of, index);
}

Str print_local(Printer *printer, const Local *local, Index i, Index j)
{
    Text text = {0};
    text_str(&text, printer->local_name[local->id]);
    if (local->array) {
        text_printf(&text, "[" STR_FMT "]", STR_ARG(print_index(printer, i)));
        if (local->extent[1] > 1)
            text_printf(&text, "[" STR_FMT "]", STR_ARG(print_index(printer, j)));
    } else if (local->extent[0])
        text_printf(&text, "%lld_%lld", (long long)i.constant, (long long)j.constant);
    Str shown = str_copy(printer->arena, text_view(&text));
    text_free(&text);
    return shown;
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
        Piece both[2] = {sum, print_infix(printer, a, "*", b, PREC_PRODUCT)};
        return sum.vector ? print_call(printer, DT_F32, HELPER_ADD, both)
                          : print_infix(printer, sum, "+", both[1], PREC_SUM);
    }
    Piece scalar = a.vector ? b : a, vector = a.vector ? a : b;
    const char *madd =
        prelude_need(printer->needs, printer->arena, by_scalar ? HELPER_MADDS : HELPER_MADD, DT_F32, printer->lanes);
    return (Piece){str_format(printer->arena, "%s(" STR_FMT ", " STR_FMT ", " STR_FMT ")", madd,
                              STR_ARG(print_as_vector(printer, sum)), STR_ARG(by_scalar ? scalar.text : a.text),
                              STR_ARG(by_scalar ? vector.text : b.text)),
                   PREC_PRIMARY, true};
}

/* `x < 0`, as positions are asked, where x is a comparison: compilers warn that it never holds. */
static bool is_negative_truth(const Expr *expr)
{
    if (expr->kind != EXPR_WORD || expr->word != WORD_LT || expr->arg[1]->kind != EXPR_NUMBER ||
        expr->arg[1]->number != 0)
        return false;
    const Expr *x = expr->arg[0];
    while (x->kind == EXPR_CAST && dtype_is_int(x->dtype))
        x = x->arg[0];
    return x->kind == EXPR_WORD && x->dtype == DT_BOOL;
}

static Piece print_word(Printer *printer, const Expr *expr)
{
    Piece arg[3] = {0};
    if (print_is_product_sum(printer, expr))
        return product_sum(printer, expr);
    if (expr->word == WORD_SELECT && is_negative_truth(expr->arg[0]))
        return print_expr(printer, expr->arg[2]);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            arg[i] = print_expr(printer, expr->arg[i]);
    return print_applied(printer, expr, arg);
}

/* A vector where the lanes stand one behind another. */
static Piece print_random(Printer *printer, const Expr *expr)
{
    static const Helper helper[] = {[DRAW_WORD] = HELPER_WORD, [DRAW_UNIT] = HELPER_UNIT, [DRAW_GAUSS] = HELPER_GAUSS};
    Piece key = print_expr(printer, expr->arg[0]);
    int64_t factor;
    Str position = print_base(printer, (Str){0}, expr->index, &factor);
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
    Str name = printer->names->buffer[load->buffer], base = print_base(printer, name, at, &factor), last = {0};
    if (parts)
        last = str_format(printer->arena, ", %lld", (long long)part);
    const char *widen = prelude_need(printer->needs, printer->arena, helper, DT_F32, printer->lanes);
    return (Piece){str_format(printer->arena, "%s(" STR_FMT " + " STR_FMT STR_FMT ")", widen, STR_ARG(name),
                              STR_ARG(base), STR_ARG(last)),
                   PREC_PRIMARY, true};
}

static Piece one_nibble(Printer *printer, const Expr *load, Str name)
{
    const char *at = prelude_need(printer->needs, printer->arena, HELPER_NIBBLE_AT, load->dtype, 1);
    Str index = print_index_of(printer, name, load->index);
    return (Piece){str_format(printer->arena, "%s(" STR_FMT ", " STR_FMT ")", at, STR_ARG(name), STR_ARG(index)),
                   PREC_PRIMARY, false};
}

/* Elements that lie two to a byte: one, or a vector. */
static Piece print_nibbles(Printer *printer, const Expr *load)
{
    Str name = printer->names->buffer[load->buffer], last = {0};
    int64_t factor = 0;
    if (!printer->lane || !expr_uses(load, printer->lane))
        return one_nibble(printer, load, name);
    index_factor(load->index, printer->lane, &factor);
    Index at = index_substitute(printer->arena, load->index, printer->lane, index_constant(0)), whole = at;
    int64_t part = factor == 4 ? at.constant % 4 : 0;
    whole.constant -= part;
    bool even = print_nibble_byte(printer->arena, whole, &whole);
    Helper helper = print_nibble_helper(load->dtype, factor, even);
    bool each = helper == HELPER_EACH_I4 || helper == HELPER_EACH_U4;
    const char *widen = prelude_need(printer->needs, printer->arena, helper, DT_F32, printer->lanes);
    Str place = print_index_of(printer, name, each ? at : whole);
    if (each)
        last = str_format(printer->arena, ", " STR_FMT, STR_ARG(print_lane_stride(printer, name, factor)));
    else if (factor == 4)
        last = str_format(printer->arena, ", %lld", (long long)part);
    return (Piece){str_format(printer->arena, "%s(" STR_FMT "%s" STR_FMT STR_FMT ")", widen, STR_ARG(name),
                              each ? ", " : " + ", STR_ARG(place), STR_ARG(last)),
                   PREC_PRIMARY, true};
}

/* The low or the high half of bytes that follow one another, or of one of each word of 32 bits */
static Piece print_halved(Printer *printer, const Expr *load, bool high)
{
    int64_t factor;
    if (printer->kernel->buffer[load->buffer].nibbles) /* which are all low */
        return high ? (Piece){STR("0.0f"), PREC_PRIMARY, false} : print_nibbles(printer, load);
    Index at = load->index;
    bool parts = index_factor(at, printer->lane, &factor) && factor > 1;
    long long part = parts ? 2 * (at.constant % 4) + high : high;
    at.constant -= parts ? at.constant % 4 : 0;
    Str name = printer->names->buffer[load->buffer], base = print_base(printer, name, at, &factor);
    Helper helper = parts ? HELPER_NIBBLE : HELPER_LOAD_NIBBLE;
    const char *nibble = prelude_need(printer->needs, printer->arena, helper, DT_F32, printer->lanes);
    return (Piece){
        str_format(printer->arena, "%s(" STR_FMT " + " STR_FMT ", %lld)", nibble, STR_ARG(name), STR_ARG(base), part),
        PREC_PRIMARY, true};
}

static bool loads_narrow_vector(const Printer *printer, const Expr *expr)
{
    return printer->lane && expr->kind == EXPR_LOAD && expr->dtype != DT_F32 && expr->dtype != DT_BOOL &&
           expr->dtype != DT_I32 && expr_uses(expr, printer->lane);
}

static Str print_limit(Printer *printer, int64_t limit)
{
    printer->place.of = (Str){0};
    return print_constant(printer, CONSTANT_LIMIT, NULL, limit);
}

Str print_lane_stride(Printer *printer, Str of, int64_t factor)
{
    printer->place.of = of;
    Str shown = print_constant(printer, CONSTANT_STRIDE, "lane", llabs(factor));
    return factor < 0 ? str_format(printer->arena, "-(" STR_FMT ")", STR_ARG(shown)) : shown;
}

/* Elements so far apart, between which others may be read. */
static Helper step_helper(const Printer *printer, int64_t step)
{
    static const Helper helper[] = {[2] = HELPER_EVEN, [3] = HELPER_THIRD, [4] = HELPER_FOURTH};
    int64_t most = printer->target->dialect == DIALECT_VECTOR ? 4 : 2;
    return step >= 2 && step <= most ? helper[step] : HELPER_GATHER;
}

static Piece print_load(Printer *printer, const Expr *expr)
{
    int64_t factor;
    if (printer->kernel->buffer[expr->buffer].nibbles)
        return print_nibbles(printer, expr);
    if (loads_narrow_vector(printer, expr))
        return print_widened(printer, expr);
    Str name = printer->names->buffer[expr->buffer], base = print_base(printer, name, expr->index, &factor);
    if (!factor)
        return (Piece){str_format(printer->arena, STR_FMT "[" STR_FMT "]", STR_ARG(name), STR_ARG(base)), PREC_PRIMARY,
                       false};
    bool mask = expr->dtype == DT_BOOL;
    Helper helper = expr->dtype == DT_I32 ? HELPER_LOAD_WORDS
                    : factor == 1         ? (mask ? HELPER_LOAD_MASK : HELPER_LOAD)
                    : mask                ? HELPER_GATHER_MASK
                    : expr->spread        ? step_helper(printer, factor)
                                          : HELPER_GATHER;
    const char *load = prelude_need(printer->needs, printer->arena, helper, DT_F32, printer->lanes);
    Str plus =
        str_is(base, "0") ? name : str_format(printer->arena, STR_FMT " + " STR_FMT, STR_ARG(name), STR_ARG(base));
    if (helper != HELPER_GATHER && helper != HELPER_GATHER_MASK)
        return (Piece){str_format(printer->arena, "%s(" STR_FMT ")", load, STR_ARG(plus)), PREC_PRIMARY, true};
    Str stride = print_lane_stride(printer, name, factor);
    return (Piece){str_format(printer->arena, "%s(" STR_FMT ", " STR_FMT ")", load, STR_ARG(plus), STR_ARG(stride)),
                   PREC_PRIMARY, true};
}

static Piece print_within(Printer *printer, const Expr *expr)
{
    Str index = print_index_of(printer, (Str){0}, expr->index), test;
    bool low = index_low(expr->index) < 0, high = index_high(expr->index) >= expr->limit;
    Str limit = print_limit(printer, expr->limit);
    if (low && high)
        test = str_format(printer->arena, STR_FMT " >= 0 && " STR_FMT " < " STR_FMT, STR_ARG(index), STR_ARG(index),
                          STR_ARG(limit));
    else if (low)
        test = str_format(printer->arena, STR_FMT " >= 0", STR_ARG(index));
    else
        test = str_format(printer->arena, STR_FMT " < " STR_FMT, STR_ARG(index), STR_ARG(limit));
    Piece a = print_expr(printer, expr->arg[0]), b = print_expr(printer, expr->arg[1]);
    bool vector = a.vector || b.vector;
    if (vector) {
        a = print_vector_piece(printer, a);
        b = print_vector_piece(printer, b);
    }
    return (Piece){str_format(printer->arena, STR_FMT " ? " STR_FMT " : " STR_FMT, STR_ARG(test),
                              STR_ARG(print_parenthesized(printer, a, PREC_COMPARE)),
                              STR_ARG(print_parenthesized(printer, b, PREC_COMPARE))),
                   PREC_SELECT, vector};
}

/* Vectors of narrow elements are of f32, those of f16 and bf16 rounded to these; masks become numbers. */
static Piece cast_vector(Printer *printer, Piece x, DType from, DType to)
{
    if (from == DT_I32)
        return print_call(printer, DT_F32, HELPER_FLOATS, (Piece[2]){x});
    if (from == DT_BOOL)
        return print_selected(printer, x, (Piece){STR("1.0f"), PREC_PRIMARY, false},
                              (Piece){STR("0.0f"), PREC_PRIMARY, false});
    static const Helper narrowing[DT_COUNT] = {
        [DT_F16] = HELPER_ROUND_F16, [DT_BF16] = HELPER_ROUND_BF16, [DT_I8] = HELPER_CUT_I8,
        [DT_U8] = HELPER_CUT_U8,     [DT_I16] = HELPER_CUT_I16,     [DT_U16] = HELPER_CUT_U16};
    return narrowing[to] ? print_call(printer, DT_F32, narrowing[to], (Piece[2]){x}) : x;
}

static Piece print_cast(Printer *printer, const Expr *expr)
{
    bool high;
    const Expr *halved = expr->dtype == DT_F32 ? expr_halved(expr->arg[0], &high) : NULL;
    if (halved && loads_narrow_vector(printer, halved))
        return print_halved(printer, halved, high);
    Piece x = print_expr(printer, expr->arg[0]);
    DType from = expr->arg[0]->dtype, to = expr->dtype;
    if (x.vector)
        return cast_vector(printer, x, from, to);
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

static const struct {
    Helper one; /* of what is in scratch as it is multiplied ... */
    DType element;
    Helper signed_lanes, unsigned_lanes; /* ... and one for each lane */
    bool takes_zero;                     /* a number is taken away */
    Helper dot;
} bundle_helper[] = {
    [BUNDLE_I16] = {HELPER_PAIR, DT_I16, HELPER_PAIRS_I8, HELPER_PAIRS_U8, true, HELPER_DOT},
    [BUNDLE_BYTES] = {HELPER_QUAD, DT_U8, HELPER_QUADS_I8, HELPER_QUADS_U8, true, HELPER_DOT_BYTES},
    [BUNDLE_BF16] = {HELPER_PAIR, DT_U16, HELPER_PAIRS_BF16, HELPER_PAIRS_BF16, false, HELPER_DOT_BF16},
};

/* Bundles that stand side by side, one for each lane, or one. */
static Piece print_bundle(Printer *printer, const Expr *expr)
{
    const Expr *load = expr->arg[0];
    Bundle bundle = expr->bundle;
    int64_t factor;
    Str name = printer->names->buffer[load->buffer], base = print_base(printer, name, load->index, &factor);
    Str plus =
        str_is(base, "0") ? name : str_format(printer->arena, STR_FMT " + " STR_FMT, STR_ARG(name), STR_ARG(base));
    Helper lanes = load->dtype == DT_I8 ? bundle_helper[bundle].signed_lanes : bundle_helper[bundle].unsigned_lanes;
    const char *load_bundle = factor ? prelude_need(printer->needs, printer->arena, lanes, DT_F32, printer->lanes)
                                     : prelude_need(printer->needs, printer->arena, bundle_helper[bundle].one,
                                                    bundle_helper[bundle].element, 1);
    Str less = {0};
    if (factor && bundle_helper[bundle].takes_zero)
        less = str_format(printer->arena, ", %lld", (long long)expr->number);
    assert((!factor || factor == (int64_t)bundle_count(bundle)) && (expr->number == 0 || less.len));
    return (Piece){str_format(printer->arena, "%s(" STR_FMT STR_FMT ")", load_bundle, STR_ARG(plus), STR_ARG(less)),
                   PREC_PRIMARY, factor != 0};
}

static Piece print_dot(Printer *printer, const Expr *expr)
{
    Piece sum = print_expr(printer, expr->arg[0]);
    Str arg[3] = {expr->dtype == DT_F32 ? print_as_vector(printer, sum) : print_integers(printer, sum)};
    for (int i = 1; i < 3; i++)
        arg[i] = print_integers(printer, print_expr(printer, expr->arg[i]));
    const char *dot =
        prelude_need(printer->needs, printer->arena, bundle_helper[expr->bundle].dot, DT_F32, printer->lanes);
    return (Piece){str_format(printer->arena, "%s(" STR_FMT ", " STR_FMT ", " STR_FMT ")", dot, STR_ARG(arg[0]),
                              STR_ARG(arg[1]), STR_ARG(arg[2])),
                   PREC_PRIMARY, true};
}

/* A number that positions are compared with, and which an int holds. */
static bool is_limit(const Expr *expr)
{
    return expr->dtype == DT_I64 && expr->number > 0 && expr->number <= INT32_MAX;
}

/* A number; a float may be one that other kernels have another for. */
static Str print_literal(Printer *printer, const Expr *expr)
{
    Str number = print_number(printer->arena, expr->dtype, expr->number);
    bool differs = (expr->dtype == DT_F32 || expr->dtype == DT_F64) && expr->number != 0 && isfinite(expr->number);
    Constant constant = {.kind = CONSTANT_NUMBER, .type = prelude_c_type(expr->dtype), .number = number};
    memcpy(&constant.value, &expr->number, sizeof constant.value);
    return differs ? constants_next(printer->constants, printer->arena, constant) : number;
}

Piece print_expr(Printer *printer, const Expr *expr)
{
    switch (expr->kind) {
    case EXPR_NUMBER: {
        Str number = is_limit(expr) ? print_limit(printer, (int64_t)expr->number) : print_literal(printer, expr);
        return (Piece){number, number.ptr[0] == '-' ? PREC_UNARY : PREC_PRIMARY, false};
    }
    case EXPR_INDEX: {
        Str index = print_index_of(printer, (Str){0}, expr->index);
        return (Piece){str_format(printer->arena, "(%s)(" STR_FMT ")", prelude_c_type(expr->dtype), STR_ARG(index)),
                       PREC_UNARY, false};
    }
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
    case EXPR_BUNDLE:
        return print_bundle(printer, expr);
    case EXPR_DOT:
        return print_dot(printer, expr);
    case EXPR_WITHIN:
        return print_within(printer, expr);
    }
    return (Piece){0};
}

/* May it be the int that isnan gives?  Of that gcc does not know that it is 0 or 1. */
static bool asks_for_nan(const Expr *expr)
{
    if (expr->kind != EXPR_WORD)
        return false;
    if (expr->word == WORD_NOT)
        return asks_for_nan(expr->arg[0]);
    if (expr->word == WORD_SELECT)
        return asks_for_nan(expr->arg[1]) || asks_for_nan(expr->arg[2]);
    return (expr->word == WORD_EQ || expr->word == WORD_NE || expr->word == WORD_LE) &&
           dtype_is_float(expr->arg[0]->dtype) && expr_eq(expr->arg[0], expr->arg[1]);
}

Str print_scalar(Printer *printer, const Expr *expr)
{
    Piece piece = print_expr(printer, expr);
    if (piece.vector || !asks_for_nan(expr))
        return piece.text;
    return str_format(printer->arena, "(%s)" STR_FMT, prelude_c_type(expr->dtype),
                      STR_ARG(print_parenthesized(printer, piece, PREC_UNARY)));
}

Str print_vector(Printer *printer, const Expr *expr)
{
    Piece piece = print_expr(printer, expr);
    if (!printer->lane || piece.vector)
        return piece.text;
    if (expr->dtype == DT_I32)
        return print_integers(printer, piece);
    return expr->dtype != DT_BOOL ? print_as_vector(printer, piece) : print_as_mask(printer, piece);
}
