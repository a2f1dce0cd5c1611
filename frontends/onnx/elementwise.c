/* Ops on elements: arithmetic, comparison, activations, conversion. */
#include <math.h>
#include <string.h>

#include "onnx/narrow.h"

#define MOST_MULTIPLIED 64 /* factors of a power that is written as products */

static DType dtype_at(const OnnxNode *n, uint32_t i)
{
    return onnx_type(n, i)->dtype;
}

static bool is_constant(const OnnxNode *n, uint32_t i)
{
    return n->in[i]->known && !n->in[i]->weight;
}

/* An operand beside another that is computed: a number without its dtype, where that follows from the other. */
static const char *beside(OnnxNode *n, uint32_t i, uint32_t other)
{
    double number;
    bool plain = onnx_is_constant(n, i, &number) && onnx_has(n, other) && !is_constant(n, other) &&
                 dtype_at(n, i) == dtype_at(n, other) && dtype_at(n, i) != DT_BOOL && fabs(number) < 0x1p53 &&
                 onnx_rank(n, i) <= onnx_rank(n, other);
    return plain ? onnx_number(n, dtype_at(n, i), number) : onnx_in(n, i);
}

static const char *alpha(const OnnxNode *n, const char *name, double fallback)
{
    return onnx_number(n, dtype_at(n, 0), onnx_float(n, name, fallback));
}

/* text is a function of one operand */
static bool write_unary(OnnxNode *n)
{
    return onnx_emit(n, "%s = %s(%s)", onnx_out(n, 0), n->row->text, onnx_in(n, 0));
}

/* Before opset 7 the second operand began at an axis of the first, if it was broadcast at all. */
static bool write_old_binary(OnnxNode *n, const char *operator)
{
    const Shape *x = &onnx_type(n, 0)->shape, *y = &onnx_type(n, 1)->shape;
    int64_t axis = onnx_int(n, "axis", (int64_t)x->rank - y->rank), dim[MAX_RANK];
    axis += axis < 0 ? x->rank : 0;
    if (axis < 0 || axis > x->rank || axis + y->rank > x->rank)
        return onnx_no(n, "its operands do not fit each other");
    for (uint32_t d = 0; d < x->rank; d++)
        dim[d] = d >= axis && d < axis + y->rank ? y->dim[d - axis] : 1;
    const char *right = shape_eq(x, y) || axis + y->rank == x->rank
                            ? onnx_in(n, 1)
                            : onnx_text(n, "reshape(%s, shape = %s)", onnx_in(n, 1), onnx_list(n, dim, x->rank));
    return onnx_emit(n, "%s = %s %s %s", onnx_out(n, 0), onnx_in(n, 0), operator, right);
}

/* text is an operator */
static bool write_binary(OnnxNode *n)
{
    if (n->opset < 7)
        return write_old_binary(n, n->row->text);
    const char *x = beside(n, 0, 1), *y = beside(n, 1, 0);
    return onnx_emit(n, "%s = %s %s %s", onnx_out(n, 0), x, n->row->text, y);
}

/* Integers are divided towards zero here, and rounded down there. */
static bool write_div(OnnxNode *n)
{
    double divisor;
    bool is_signed = dtype_is_int(dtype_at(n, 0)) && !dtype_is_unsigned(dtype_at(n, 0));
    if (!is_signed)
        return write_binary(n);
    if (onnx_known_number(n, 1, &divisor) && divisor == 0)
        return onnx_no(n, "it divides by zero");
    const char *x = onnx_in(n, 0), *y = onnx_in(n, 1), *dtype = dtype_name(dtype_at(n, 0));
    return onnx_emit(n, "%s = %s / %s + cast(%s %% %s != 0 and (%s < 0) != (%s < 0), to = %s)", onnx_out(n, 0), x, y, x,
                     y, x, y, dtype);
}

static bool write_mod(OnnxNode *n)
{
    const char *x = onnx_in(n, 0), *y = onnx_in(n, 1);
    return onnx_int(n, "fmod", 0) ? onnx_emit(n, "%s = fmod(%s, %s)", onnx_out(n, 0), x, y)
                                  : onnx_emit(n, "%s = %s %% %s", onnx_out(n, 0), x, y);
}

static bool write_shift(OnnxNode *n)
{
    bool left = strcmp(onnx_string(n, "direction", ""), "LEFT") == 0;
    return onnx_emit(n, "%s = %s(%s, %s)", onnx_out(n, 0), left ? "shift_left" : "shift_right", onnx_in(n, 0),
                     onnx_in(n, 1));
}

/* x times itself, so many times: by squares. */
static const char *product_of(OnnxNode *n, const char *x, int64_t times)
{
    if (times <= 3)
        return onnx_text(n, times == 1 ? "%s" : times == 2 ? "%s * %s" : "%s * %s * %s", x, x, x);
    const char *half = onnx_define(n, "square", "%s", product_of(n, x, times / 2));
    return !half ? x : onnx_text(n, times % 2 ? "%s * %s * %s" : "%s * %s", half, half, x);
}

/* Of integers, which wrap around.  Whole powers in f64 are whole, whatever a library of mathematics makes of them, or
 * below 1/2; others are cut off. */
static bool write_integer_pow(OnnxNode *n)
{
    double exponent;
    const char *x = onnx_in(n, 0), *y = onnx_in(n, 1), *out = onnx_out(n, 0);
    bool known = onnx_known_number(n, 1, &exponent) && exponent == floor(exponent);
    bool whole = known || !dtype_is_float(dtype_at(n, 1));
    if (known && exponent >= 1 && exponent <= MOST_MULTIPLIED && onnx_rank(n, 1) <= onnx_rank(n, 0))
        return onnx_emit(n, "%s = %s", out, product_of(n, x, (int64_t)exponent));
    if (!dtype_is_float(dtype_at(n, 1)))
        return onnx_emit(n, "%s = integer_power(%s, %s)", out, x, y);
    return onnx_emit(n, "%s = cast(%s(cast(%s, to = f64) ** cast(%s, to = f64)), to = %s)", out, whole ? "round" : "",
                     x, y, dtype_name(dtype_at(n, 0)));
}

static bool write_pow(OnnxNode *n)
{
    DType base = dtype_at(n, 0);
    double exponent;
    if (n->opset < 7)
        return write_old_binary(n, "**");
    if (!dtype_is_float(base))
        return write_integer_pow(n);
    const char *x = onnx_in(n, 0);
    const char *y = dtype_at(n, 1) == base ? beside(n, 1, 0)
                    : onnx_is_constant(n, 1, &exponent) && onnx_rank(n, 1) == 0
                        ? onnx_scalar(n, base, exponent)
                        : onnx_text(n, "cast(%s, to = %s)", onnx_in(n, 1), dtype_name(base));
    return onnx_emit(n, "%s = %s ** %s", onnx_out(n, 0), x, y);
}

/* Any number of operands, from left to right; text is a function or an operator of two. */
static bool write_chain(OnnxNode *n)
{
    const char *so_far = onnx_in(n, 0);
    bool is_operator = strlen(n->row->text) == 1;
    if (n->in_count == 1)
        return onnx_emit(n, "%s = %s", onnx_out(n, 0), so_far);
    for (uint32_t i = 1; i < n->in_count; i++) {
        const char *y = onnx_in(n, i);
        const char *to = i + 1 == n->in_count ? onnx_out(n, 0) : onnx_temp(n, "part");
        if (!(is_operator ? onnx_emit(n, "%s = %s %s %s", to, so_far, n->row->text, y)
                          : onnx_emit(n, "%s = %s(%s, %s)", to, n->row->text, so_far, y)))
            return false;
        so_far = to;
    }
    return true;
}

static bool write_mean(OnnxNode *n)
{
    Text sum = {0};
    for (uint32_t i = 0; i < n->in_count; i++)
        text_printf(&sum, "%s%s", i ? " + " : "", onnx_widened(n, i));
    bool good =
        onnx_put_rounded(n, 0, onnx_text(n, "(%s) / %s", sum.ptr, onnx_scalar(n, onnx_wide_dtype(n), n->in_count)));
    text_free(&sum);
    return good;
}

/* text is a template of x alone, said several times */
static bool write_formula(OnnxNode *n)
{
    Text text = {0};
    const char *x = onnx_in(n, 0);
    for (const char *at = n->row->text; *at; at++)
        if (*at == '$')
            text_str(&text, str_from(x));
        else
            text_char(&text, *at);
    bool good = onnx_emit(n, "%s = %s", onnx_out(n, 0), text.ptr);
    text_free(&text);
    return good;
}

static bool write_elu(OnnxNode *n)
{
    const char *a = alpha(n, "alpha", 1);
    return onnx_emit(n, strcmp(a, "1.0") == 0 ? "%s = elu(%s)" : "%s = elu(%s, %s)", onnx_out(n, 0), onnx_in(n, 0), a);
}

static bool write_celu(OnnxNode *n)
{
    const char *a = alpha(n, "alpha", 1), *x = onnx_in(n, 0);
    return onnx_emit(n, "%s = maximum(%s, 0.0) + minimum(expm1(%s / %s) * %s, 0.0)", onnx_out(n, 0), x, x, a, a);
}

static bool write_selu(OnnxNode *n)
{
    bool old = n->opset < 6;
    const char *a = alpha(n, "alpha", old ? (double)1.6732f : (double)1.67326319217681884765625f);
    const char *gamma = alpha(n, "gamma", old ? (double)1.0507f : (double)1.05070102214813232421875f);
    return onnx_emit(n, "%s = elu(%s, %s) * %s", onnx_out(n, 0), onnx_in(n, 0), a, gamma);
}

static bool write_leaky_relu(OnnxNode *n)
{
    return onnx_emit(n, "%s = leaky_relu(%s, %s)", onnx_out(n, 0), onnx_in(n, 0), alpha(n, "alpha", (double)0.01f));
}

static bool write_thresholded_relu(OnnxNode *n)
{
    const char *x = onnx_in(n, 0);
    return onnx_emit(n, "%s = select(%s > %s, %s, 0.0)", onnx_out(n, 0), x, alpha(n, "alpha", 1), x);
}

static bool write_hard_sigmoid(OnnxNode *n)
{
    if ((float)onnx_float(n, "alpha", 0.2) == 1 / 6.0f && onnx_float(n, "beta", 0.5) == 0.5)
        return onnx_emit(n, "%s = hard_sigmoid(%s)", onnx_out(n, 0), onnx_in(n, 0));
    return onnx_emit(n, "%s = clip(%s * %s + %s, 0.0, 1.0)", onnx_out(n, 0), onnx_in(n, 0),
                     alpha(n, "alpha", (double)0.2f), alpha(n, "beta", 0.5));
}

/* Integers are floats meanwhile, where the numbers are none of theirs, and are cut off; unsigned ones wrap around. */
static bool write_shrink(OnnxNode *n)
{
    DType dtype = dtype_at(n, 0);
    double lambda = onnx_float(n, "lambd", 0.5), bias = onnx_float(n, "bias", 0);
    bool whole = lambda == floor(lambda) && bias == floor(bias) && !dtype_is_unsigned(dtype);
    bool widens = !dtype_is_float(dtype) && !whole;
    DType wide = widens ? DT_F64 : dtype;
    const char *x = widens ? onnx_text(n, "cast(%s, to = f64)", onnx_in(n, 0)) : onnx_in(n, 0);
    const char *b = onnx_number(n, wide, bias);
    const char *y =
        onnx_text(n, "select(%s < %s, %s + %s, select(%s > %s, %s - %s, %s))", x, onnx_number(n, wide, -lambda), x, b,
                  x, onnx_number(n, wide, lambda), x, b, onnx_number(n, wide, 0));
    return widens ? onnx_emit(n, "%s = cast(cast(%s, to = i64), to = %s)", onnx_out(n, 0), y, dtype_name(dtype))
                  : onnx_emit(n, "%s = %s", onnx_out(n, 0), y);
}

static bool write_gelu(OnnxNode *n)
{
    bool tanh = strcmp(onnx_string(n, "approximate", "none"), "tanh") == 0;
    return onnx_emit(n, "%s = %s(%s)", onnx_out(n, 0), tanh ? "gelu_tanh" : "gelu", onnx_in(n, 0));
}

static bool write_swish(OnnxNode *n)
{
    double a = onnx_float(n, "alpha", 1);
    return a == 1 ? onnx_emit(n, "%s = silu(%s)", onnx_out(n, 0), onnx_in(n, 0))
                  : onnx_emit(n, "%s = swish(%s, %s)", onnx_out(n, 0), onnx_in(n, 0), alpha(n, "alpha", 1));
}

/* A gate and what it lets pass (Shazeer 2020) */
static bool write_swiglu(OnnxNode *n)
{
    bool plain = onnx_float(n, "alpha", 1) == 1;
    const char *gate = plain ? onnx_text(n, "silu(%s)", onnx_in(n, 0))
                             : onnx_text(n, "swish(%s, %s)", onnx_in(n, 0), alpha(n, "alpha", 1));
    return onnx_emit(n, "%s = %s * %s", onnx_out(n, 0), gate, onnx_in(n, 1));
}

static bool write_prelu(OnnxNode *n)
{
    const char *x = onnx_in(n, 0), *zero = onnx_number(n, dtype_at(n, 0), 0), *slope = onnx_in(n, 1);
    int64_t dim[MAX_RANK] = {onnx_rank(n, 1) ? onnx_dim(n, 1, 0) : 1, 1, 1, 1, 1, 1, 1, 1};
    if (n->opset < 7 && onnx_rank(n, 1) == 1 && onnx_rank(n, 0) > 1) /* one for each channel */
        slope = onnx_text(n, "reshape(%s, shape = %s)", slope, onnx_list(n, dim, onnx_rank(n, 0) - 1));
    return onnx_emit(n, "%s = select(%s < %s, %s * %s, %s)", onnx_out(n, 0), x, zero, slope, x, x);
}

/* A bound of clip: an attribute at first, later an operand; NULL: none. */
static const char *bound(OnnxNode *n, uint32_t i, const char *name)
{
    if (n->opset >= 11)
        return onnx_has(n, i) ? beside(n, i, 0) : NULL;
    const Onnx__AttributeProto *a = onnx_attribute(n, name);
    return a ? onnx_number(n, dtype_at(n, 0), (double)a->f) : NULL;
}

static bool write_clip(OnnxNode *n)
{
    const char *low = bound(n, 1, "min"), *high = bound(n, 2, "max"), *x = onnx_in(n, 0), *out = onnx_out(n, 0);
    if (low && high && strcmp(low, "0.0") == 0 && strcmp(high, "6.0") == 0)
        return onnx_emit(n, "%s = relu6(%s)", out, x);
    if (low && high)
        return onnx_emit(n, "%s = clip(%s, %s, %s)", out, x, low, high);
    if (low || high)
        return onnx_emit(n, "%s = %s(%s, %s)", out, low ? "maximum" : "minimum", x, low ? low : high);
    return onnx_emit(n, "%s = %s", out, x);
}

static bool write_is_inf(OnnxNode *n)
{
    bool positive = onnx_int(n, "detect_positive", 1), negative = onnx_int(n, "detect_negative", 1);
    const char *x = onnx_in(n, 0), *out = onnx_out(n, 0);
    if (positive && negative)
        return onnx_emit(n, "%s = abs(%s) == inf", out, x);
    if (!positive && !negative)
        return onnx_emit(n, "%s = %s != %s and %s == %s", out, x, x, x, x);
    return onnx_emit(n, "%s = %s == %s", out, x, positive ? "inf" : "-inf");
}

static bool write_where(OnnxNode *n)
{
    double a, b;
    bool numbers = onnx_is_constant(n, 1, &a) && onnx_is_constant(n, 2, &b);
    const char *x = numbers ? onnx_in(n, 1) : beside(n, 1, 2), *y = numbers ? onnx_in(n, 2) : beside(n, 2, 1);
    return onnx_emit(n, "%s = select(%s, %s, %s)", onnx_out(n, 0), onnx_in(n, 0), x, y);
}

/* Conversion */

static bool convert(OnnxNode *n, DType to)
{
    DType from = dtype_at(n, 0);
    if (from == to) {
        onnx_set_value(n, 0, n->in[0]);
        return true;
    }
    if (to == DT_BOOL)
        return onnx_emit(n, "%s = %s != %s", onnx_out(n, 0), onnx_in(n, 0), onnx_number(n, from, 0));
    return onnx_emit(n, "%s = cast(%s, to = %s)", onnx_out(n, 0), onnx_in(n, 0), dtype_name(to));
}

static bool convert_narrow(OnnxNode *n, int32_t type)
{
    n->narrow = type;
    return onnx_write_narrow(n, onnx_narrow(type));
}

static bool write_cast(OnnxNode *n)
{
    DType to;
    int32_t type = (int32_t)onnx_int(n, "to", 0);
    if (onnx_narrow(type))
        return convert_narrow(n, type);
    return onnx_dtype(type, &to) ? convert(n, to) : onnx_no(n, "it converts to %s", onnx_dtype_name(type));
}

/* Of what is known only the dtype of the other operand is asked for. */
static bool write_cast_like(OnnxNode *n)
{
    const Tensor *known = onnx_has(n, 0) && is_constant(n, 0) ? n->in[0]->known : NULL;
    DType to = dtype_at(n, 1);
    if (onnx_has(n, 1) && n->in[1]->narrow)
        return convert_narrow(n, n->in[1]->narrow);
    if (known && dtype_is_float(known->type->dtype) && dtype_is_float(to) &&
        shape_elements(&known->type->shape) <= ONNX_FOLDED) {
        Tensor *tensor = tensor_new(n->onnx->arena, module_type(n->onnx->module, to, &known->type->shape, (Layout){0}));
        for (int64_t i = 0; i < shape_elements(&known->type->shape); i++)
            tensor_set_number(tensor, i, tensor_number(known, i));
        onnx_set_known(n, 0, tensor);
        return true;
    }
    return convert(n, dtype_at(n, 1));
}

static bool write_bitcast(OnnxNode *n)
{
    DType to, from = dtype_at(n, 0);
    int32_t type = (int32_t)onnx_int(n, "to", 0);
    if (!onnx_dtype(type, &to))
        return onnx_no(n, "it converts to %s", onnx_dtype_name(type));
    if (from == to)
        return convert(n, to);
    if (to == DT_BOOL || dtype_bytes(to) != dtype_bytes(from))
        return onnx_no(n, "bits of %s are none of %s", dtype_name(from), dtype_name(to));
    return onnx_emit(n, "%s = %s(%s, to = %s)", onnx_out(n, 0), from == DT_BOOL ? "cast" : "bitcast", onnx_in(n, 0),
                     dtype_name(to));
}

static bool write_identity(OnnxNode *n)
{
    onnx_set_value(n, 0, n->in[0]);
    return true;
}

/* When inferring it gives its operand, and a mask that keeps all. */
static bool write_dropout(OnnxNode *n)
{
    double training = 0, ratio = 0.5;
    bool trains = n->opset >= 12 && onnx_has(n, 2);
    if (trains && (!onnx_known(n, 2) || !onnx_known_number(n, 2, &training)))
        return false;
    if (trains && training != 0 && onnx_has(n, 1) && !onnx_known(n, 1))
        return false;
    if (trains && training != 0 && (!onnx_has(n, 1) || (onnx_known_number(n, 1, &ratio) && ratio != 0)))
        return onnx_write_training_dropout(n, ratio);
    onnx_set_value(n, 0, n->in[0]);
    const Shape *shape = &onnx_type(n, 0)->shape;
    return !onnx_wants(n, 1) ||
           onnx_emit(n, "%s = full(1, %s, %s)", onnx_out(n, 1), onnx_list(n, shape->dim, shape->rank),
                     n->opset < 10 ? dtype_name(dtype_at(n, 0)) : "bool");
}

const OnnxRow onnx_elementwise[] = {
    {"Abs", 1, write_unary, "abs", NULL, false},
    {"Acos", 7, write_unary, "acos", NULL, false},
    {"Asin", 7, write_unary, "asin", NULL, false},
    {"Atan", 7, write_unary, "atan", NULL, false},
    {"Ceil", 1, write_unary, "ceil", NULL, false},
    {"Cos", 7, write_unary, "cos", NULL, false},
    {"Cosh", 9, write_unary, "cosh", NULL, false},
    {"Erf", 9, write_unary, "erf", NULL, false},
    {"Exp", 1, write_unary, "exp", NULL, false},
    {"Floor", 1, write_unary, "floor", NULL, false},
    {"Log", 1, write_unary, "log", NULL, false},
    {"Neg", 1, write_unary, "neg", NULL, false},
    {"Not", 1, write_unary, "not", NULL, false},
    {"Reciprocal", 1, write_unary, "recip", NULL, false},
    {"Relu", 1, write_unary, "relu", NULL, false},
    {"Round", 11, write_unary, "round", NULL, false},
    {"Sigmoid", 1, write_unary, "sigmoid", NULL, false},
    {"Sign", 9, write_unary, "sign", NULL, false},
    {"Sin", 7, write_unary, "sin", NULL, false},
    {"Sinh", 9, write_unary, "sinh", NULL, false},
    {"Softplus", 1, write_unary, "softplus", NULL, false},
    {"Softsign", 1, write_unary, "softsign", NULL, false},
    {"Sqrt", 1, write_unary, "sqrt", NULL, false},
    {"Tan", 7, write_unary, "tan", NULL, false},
    {"Tanh", 1, write_unary, "tanh", NULL, false},
    {"Mish", 18, write_unary, "mish", NULL, false},
    {"HardSwish", 14, write_unary, "hard_swish", NULL, false},
    {"Acosh", 9, write_unary, "acosh", NULL, false},
    {"Asinh", 9, write_unary, "asinh", NULL, false},
    {"Atanh", 9, write_unary, "atanh", NULL, false},
    {"IsNaN", 9, write_formula, "$ != $", NULL, false},
    {"IsInf", 10, write_is_inf, NULL, NULL, false},
    {"Elu", 1, write_elu, NULL, NULL, false},
    {"Celu", 12, write_celu, NULL, NULL, false},
    {"Selu", 1, write_selu, NULL, NULL, false},
    {"LeakyRelu", 1, write_leaky_relu, NULL, NULL, false},
    {"ThresholdedRelu", 1, write_thresholded_relu, NULL, NULL, false},
    {"HardSigmoid", 1, write_hard_sigmoid, NULL, NULL, false},
    {"Shrink", 9, write_shrink, NULL, NULL, false},
    {"Gelu", 20, write_gelu, NULL, NULL, false},
    {"Gelu", 1, write_gelu, NULL, "com.microsoft", false},
    {"Swish", 24, write_swish, NULL, NULL, false},
    {"SwiGLU", 28, write_swiglu, NULL, NULL, false},
    {"PRelu", 1, write_prelu, NULL, NULL, false},
    {"Clip", 1, write_clip, NULL, NULL, false},
    {"Add", 1, write_binary, "+", NULL, false},
    {"Sub", 1, write_binary, "-", NULL, false},
    {"Mul", 1, write_binary, "*", NULL, false},
    {"Div", 1, write_div, "/", NULL, false},
    {"Mod", 10, write_mod, NULL, NULL, false},
    {"Pow", 1, write_pow, NULL, NULL, false},
    {"Equal", 1, write_binary, "==", NULL, false},
    {"Less", 1, write_binary, "<", NULL, false},
    {"Greater", 1, write_binary, ">", NULL, false},
    {"LessOrEqual", 12, write_binary, "<=", NULL, false},
    {"GreaterOrEqual", 12, write_binary, ">=", NULL, false},
    {"And", 1, write_binary, "and", NULL, false},
    {"Or", 1, write_binary, "or", NULL, false},
    {"Xor", 7, write_chain, "xor", NULL, false},
    {"BitwiseAnd", 18, write_chain, "bit_and", NULL, false},
    {"BitwiseOr", 18, write_chain, "bit_or", NULL, false},
    {"BitwiseXor", 18, write_chain, "bit_xor", NULL, false},
    {"BitwiseNot", 18, write_unary, "bit_not", NULL, false},
    {"BitShift", 11, write_shift, NULL, NULL, false},
    {"Sum", 1, write_chain, "+", NULL, false},
    {"Max", 1, write_chain, "maximum", NULL, false},
    {"Min", 1, write_chain, "minimum", NULL, false},
    {"Mean", 1, write_mean, NULL, NULL, false},
    {"Where", 9, write_where, NULL, NULL, false},
    {"Cast", 6, write_cast, NULL, NULL, false},
    {"CastLike", 15, write_cast_like, NULL, NULL, false},
    {"BitCast", 26, write_bitcast, NULL, NULL, false},
    {"Identity", 1, write_identity, NULL, NULL, true},
    {"Dropout", 1, write_dropout, NULL, NULL, false},
    {0},
};
