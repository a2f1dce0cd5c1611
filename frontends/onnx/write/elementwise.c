/* Elementwise ops, by the words that they are made of (ir/word.h).  Some have an op of their own in ONNX. */
#include "onnx/write/export.h"

#include <string.h>

typedef struct WordExport {
    Word word;
    DTypeSet takes; /* operands that ONNX Runtime's CPU computes, too */
    const char *text;
} WordExport;

#define SET_COMPARED (SET_FLOAT | SET_INT)
#define SET_SIZED    (SET_FLOAT | SET_WIDE | DTYPE_IN(DT_U64) | DTYPE_IN(DT_U32) | DTYPE_IN(DT_I8) | DTYPE_IN(DT_U8))
#define SET_CHOSEN   (SET_FLOAT | SET_WIDE | DTYPE_IN(DT_U32) | DTYPE_IN(DT_I8) | DTYPE_IN(DT_U8))
#define SET_F        SET_FLOAT
#define SET_EXACT    (DTYPE_IN(DT_F64) | DTYPE_IN(DT_F32)) /* what takes several steps, which would each be rounded */

/* Integers are divided by something that is no 0, and by no -1, which would overflow. */
#define DIVISOR "Where(Or(Equal(y, 0), Equal(y, -1)), 1, y)"

#define ROOT "Pow(Abs(x), 0.3333333333333333)"

/* The first row of a word that takes the dtype. */
static const WordExport word_export[] = {
    {WORD_ADD, SET_NUMBER, "Add(x, y)"},
    {WORD_SUB, SET_NUMBER, "Sub(x, y)"},
    {WORD_MUL, SET_NUMBER, "Mul(x, y)"},
    {WORD_DIV, SET_F, "Div(x, y)"},
    {WORD_DIV, DTYPE_IN(DT_U64) | DTYPE_IN(DT_U32) | DTYPE_IN(DT_U8), "Mul(Div(x, Max(y, 1)), Min(y, 1))"},
    {WORD_DIV, SET_WIDE,
     "Where(Equal(y, 0), 0, Where(Equal(y, -1), Sub(0, x), Sub(Div(x, " DIVISOR
     "), Cast(And(Xor(Less(x, 0), Less(y, 0)), "
     "Not(Equal(Mul(Div(x, " DIVISOR "), " DIVISOR "), x)))){to=%s})))"},
    {WORD_MOD, SET_EXACT,
     "Where(And(Not(Equal(Mod(x, y){fmod=1}, 0)), Xor(Less(Mod(x, y){fmod=1}, 0), Less(y, 0))), "
     "Add(Mod(x, y){fmod=1}, y), Mod(x, y){fmod=1})"},
    {WORD_MOD, DTYPE_IN(DT_U64) | DTYPE_IN(DT_U32) | DTYPE_IN(DT_U8), "Mul(Mod(x, Max(y, 1)), Min(y, 1))"},
    {WORD_MOD, SET_WIDE, "Mod(x, " DIVISOR ")"},
    {WORD_FMOD, SET_F, "Mod(x, y){fmod=1}"},
    {WORD_FMOD, DTYPE_IN(DT_U64) | DTYPE_IN(DT_U32) | DTYPE_IN(DT_U8), "Mul(Mod(x, Max(y, 1)), Min(y, 1))"},
    {WORD_FMOD, SET_WIDE, "Sub(x, Mul(Div(x, " DIVISOR "), " DIVISOR "))"},
    {WORD_NEG, SET_F | SET_SIGNED, "Neg(x)"},
    {WORD_NEG, SET_UNSIGNED, "Sub(0, x)"},
    {WORD_LT, SET_COMPARED, "Less(x, y)"},
    {WORD_LE, SET_COMPARED, "LessOrEqual(x, y)"},
    {WORD_EQ, SET_COMPARED | SET_BOOL, "Equal(x, y)"},
    {WORD_NE, SET_COMPARED | SET_BOOL, "Not(Equal(x, y))"},
    {WORD_AND, SET_ALL, "And(x, y)"},
    {WORD_OR, SET_ALL, "Or(x, y)"},
    {WORD_XOR, SET_ALL, "Xor(x, y)"},
    {WORD_NOT, SET_ALL, "Not(x)"},
    {WORD_SELECT, SET_CHOSEN, "Where(x, y, z)"},
    {WORD_SELECT, SET_BOOL, "Or(And(x, y), And(Not(x), z))"},
    {WORD_MAX, SET_SIZED, "Max(x, y)"},
    {WORD_MIN, SET_SIZED, "Min(x, y)"},
    {WORD_ABS, SET_NUMBER, "Abs(x)"},
    {WORD_SQRT, SET_F, "Sqrt(x)"},
    {WORD_EXP, SET_F, "Exp(x)"},
    {WORD_EXP2, SET_F, "Pow(2, x)"},
    /* Kahan's: what exp rounds away, log gives back; far from 0 there is nothing to give back. */
    {WORD_EXPM1, SET_EXACT,
     "Where(Less(1, Abs(x)), Sub(Exp(x), 1), Where(Equal(Exp(x), 1), x, Div(Mul(Sub(Exp(x), 1), x), Log(Exp(x)))))"},
    {WORD_LOG, SET_F, "Log(x)"},
    {WORD_LOG2, SET_EXACT, "Div(Log(x), 0.6931471805599453)"},
    {WORD_LOG1P, SET_EXACT,
     "Where(Less(1, Abs(x)), Log(Add(x, 1)), Where(Equal(Add(x, 1), 1), x, Div(Mul(Log(Add(x, 1)), x), "
     "Sub(Add(x, 1), 1))))"},
    /* and one step of Newton's, where there is one to make */
    {WORD_CBRT, SET_EXACT,
     "Where(And(Less(0, " ROOT "), Less(" ROOT ", inf)), Mul(Sign(x), Sub(" ROOT ", Div(Sub(" ROOT
     ", Div(Abs(x), Mul(" ROOT ", " ROOT "))), 3))), x)"},
    {WORD_SIN, SET_F, "Sin(x)"},
    {WORD_COS, SET_F, "Cos(x)"},
    {WORD_TAN, SET_F, "Tan(x)"},
    {WORD_ASIN, SET_F, "Asin(x)"},
    {WORD_ACOS, SET_F, "Acos(x)"},
    {WORD_ATAN, SET_F, "Atan(x)"},
    {WORD_SINH, SET_F, "Sinh(x)"},
    {WORD_COSH, SET_F, "Cosh(x)"},
    {WORD_TANH, SET_F, "Tanh(x)"},
    {WORD_ASINH, SET_F, "Asinh(x)"},
    {WORD_ACOSH, SET_F, "Acosh(x)"},
    {WORD_ATANH, SET_F, "Atanh(x)"},
    {WORD_ERF, SET_F, "Erf(x)"},
    {WORD_SIGMOID, SET_F, "Sigmoid(x)"},
    {WORD_POW, SET_F, "Pow(x, y)"},
    {WORD_FLOOR, SET_F, "Floor(x)"},
    {WORD_CEIL, SET_F, "Ceil(x)"},
    {WORD_ROUND, SET_F, "Round(x)"},
    {WORD_TRUNC, SET_F, "Where(Less(x, 0), Ceil(x), Floor(x))"},
    {WORD_BIT_AND, SET_INT, "BitwiseAnd(x, y)"},
    {WORD_BIT_OR, SET_INT, "BitwiseOr(x, y)"},
    {WORD_BIT_XOR, SET_INT, "BitwiseXor(x, y)"},
    {WORD_FOLD_IN, DTYPE_IN(DT_I64), "@FoldIn(x, y)"},
};

/* By numbers that are known to be neither 0 nor -1 */
static const WordExport known_export[] = {
    {WORD_DIV, SET_UNSIGNED, "Div(x, y)"},
    {WORD_DIV, SET_WIDE,
     "Sub(Div(x, y), Cast(And(Xor(Less(x, 0), Less(y, 0)), Not(Equal(Mul(Div(x, y), y), x)))){to=%s})"},
    {WORD_MOD, SET_UNSIGNED | SET_WIDE, "Mod(x, y)"},
    {WORD_FMOD, SET_UNSIGNED, "Mod(x, y)"},
    {WORD_FMOD, SET_WIDE, "Sub(x, Mul(Div(x, y), y))"},
};

/* Ops that ONNX has under a name of its own. */
static const struct OpExport {
    const char *op;
    DTypeSet takes;
    const char *text;
} op_export[] = {
    {"stop_gradient", SET_ALL, "x"},       {"relu", SET_F | DTYPE_IN(DT_I32) | DTYPE_IN(DT_I8), "Relu(x)"},
    {"recip", SET_F, "Reciprocal(x)"},     {"rsqrt", SET_EXACT, "Reciprocal(Sqrt(x))"},
    {"sign", SET_INT, "Sign(x)"},          {"sign", SET_F, "Where(IsNaN(x), x, Sign(x))"},
    {"gt", SET_COMPARED, "Greater(x, y)"}, {"ge", SET_COMPARED, "GreaterOrEqual(x, y)"},
    {"bit_not", SET_INT, "BitwiseNot(x)"},
};

static const struct OpExport *find_op(const Node *node, DType dtype)
{
    for (size_t i = 0; i < sizeof op_export / sizeof *op_export; i++)
        if (strcmp(op_export[i].op, op_info(node->op)->name) == 0 && op_export[i].takes & DTYPE_IN(dtype))
            return &op_export[i];
    return NULL;
}

/* Shifts: only unsigned integers have them, and by fewer places than they have bits. */

static DType as_unsigned(DType dtype)
{
    switch (dtype) {
    case DT_I64:
        return DT_U64;
    case DT_I32:
        return DT_U32;
    case DT_I8:
        return DT_U8;
    default:
        return dtype;
    }
}

#define SET_SHIFTED (SET_WIDE | DTYPE_IN(DT_I8) | DTYPE_IN(DT_U64) | DTYPE_IN(DT_U32) | DTYPE_IN(DT_U8))

/* `inside`: it is known that there are so many places. */
static const char *shift_text(Export *e, Word word, DType dtype, bool inside)
{
    DType u = as_unsigned(dtype);
    const char *bits = dtype_name(u), *own = dtype_name(dtype);
    uint32_t width = 8 * dtype_bytes(dtype);
    const char *by = export_text(e, inside ? "Cast(y){to=%s}" : "Min(Cast(y){to=%s}, %s:%u)", bits, bits, width - 1);
    if (u == dtype && inside)
        by = "y";
    /* of a negative one all bits turned round, which is none, and back */
    const char *sign = export_text(e, "Neg(Cast(Less(x, 0)){to=%s})", own);
    const char *text =
        word == WORD_SHIFT_LEFT
            ? export_text(e, "Cast(BitShift(Cast(x){to=%s}, %s){direction='LEFT'}){to=%s}", bits, by, own)
        : u == dtype
            ? export_text(e, "BitShift(x, %s){direction='RIGHT'}", by)
            : export_text(
                  e, "BitwiseXor(Cast(BitShift(Cast(BitwiseXor(x, %s)){to=%s}, %s){direction='RIGHT'}){to=%s}, %s)",
                  sign, bits, by, own, sign);
    bool guarded = !inside && (word == WORD_SHIFT_LEFT || u == dtype);
    return guarded ? export_text(e, "Mul(%s, Cast(Less(Cast(y){to=%s}, %s:%u)){to=%s})", text, bits, bits, width, own)
                   : text;
}

static bool shifts_inside(const ExportNode *n, ExportId by)
{
    const Tensor *known = n->e->tensor[by].known;
    int64_t count = known ? shape_elements(&known->type->shape) : 0;
    bool inside = known;
    for (int64_t i = 0; i < count; i++)
        inside &= tensor_number(known, i) >= 0 && tensor_number(known, i) < 8 * dtype_bytes(n->dtype);
    return inside;
}

/* NULL: it is no division, or by what may be 0 or -1 */
static const char *known_division(const ExportNode *n, Word word, ExportId by)
{
    const Tensor *known = n->e->tensor[by].known;
    bool plain = known;
    for (int64_t i = 0; plain && i < shape_elements(&known->type->shape); i++)
        plain = tensor_number(known, i) != 0 && tensor_number(known, i) != -1;
    for (size_t i = 0; plain && i < sizeof known_export / sizeof *known_export; i++)
        if (known_export[i].word == word && known_export[i].takes & DTYPE_IN(n->dtype))
            return known_export[i].text;
    return NULL;
}

static bool is_shift(Word word)
{
    return word == WORD_SHIFT_LEFT || word == WORD_SHIFT_RIGHT;
}

static const char *find_word(Word word, DType dtype)
{
    if (is_shift(word))
        return SET_SHIFTED & DTYPE_IN(dtype) ? "" : NULL;
    for (size_t i = 0; i < sizeof word_export / sizeof *word_export; i++)
        if (word_export[i].word == word && word_export[i].takes & DTYPE_IN(dtype))
            return word_export[i].text;
    return NULL;
}

bool export_elementwise_takes(const Node *node, DType dtype)
{
    const ScalarList *list = op_info(node->op)->scalar;
    if (find_op(node, dtype))
        return true;
    for (uint32_t t = 0; t < list->count; t++)
        if (list->term[t].word > WORD_NUMBER && !find_word(list->term[t].word, dtype))
            return false;
    return true;
}

/* The text of a term, of what its arguments have become. */
static ExportId write_term(ExportNode *n, const ScalarTerm *term, const ExportId *made, const char *name)
{
    ExportId operand[3];
    const char *text = find_word(term->word, n->dtype);
    for (uint32_t i = 0; i < term->args; i++)
        operand[i] = made[term->arg[i]];
    const char *plain = term->args == 2 ? known_division(n, term->word, operand[1]) : NULL;
    if (plain)
        text = plain;
    if (term->word == WORD_FOLD_IN)
        text = export_fold_in(n->e);
    else if (is_shift(term->word))
        text = shift_text(n->e, term->word, n->dtype, shifts_inside(n, operand[1]));
    else if (strstr(text, "%s"))
        text = export_text(n->e, text, dtype_name(n->dtype)); // NOLINT(clang-diagnostic-format-nonliteral)
    return export_say(n->e, n->dtype, operand, name, text);
}

/* What alone is unlike itself */
static bool asks_for_nan(const ExportNode *n)
{
    return strcmp(op_info(n->node->op)->name, "ne") == 0 && n->in[0] == n->in[1] && dtype_is_float(n->dtype);
}

bool export_elementwise(ExportNode *n)
{
    const ScalarList *list = op_info(n->node->op)->scalar;
    const struct OpExport *own = find_op(n->node, n->dtype);
    ExportId made[MOST_TERMS];

    if (own)
        return export_result(n, 0, "%s", own->text);
    if (asks_for_nan(n))
        return export_result(n, 0, "IsNaN(x)");
    for (uint32_t t = 0; t < list->count; t++) {
        const ScalarTerm *term = &list->term[t];
        bool last = t + 1 == list->count;
        if (term->word == WORD_OPERAND)
            made[t] = n->in[term->arg[0]];
        else if (term->word == WORD_NUMBER)
            made[t] = export_scalar(n->e, n->dtype, export_number(n, n->dtype, term->number));
        else
            made[t] = write_term(n, term, made, last ? n->wish[0] : export_text(n->e, "%s.part", n->wish[0]));
    }
    n->out[0] = made[list->count - 1];
    return true;
}
