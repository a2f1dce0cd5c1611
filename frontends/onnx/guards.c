/* What ONNX leaves open, and the language does not, export says by nodes around an op: positions are brought to where
 * elements are, floats to where an integer has them, divisors and shifts to what can be divided and shifted by.  Read
 * again these nodes mean the op alone. */
#include <math.h>
#include <string.h>

#include "onnx/narrow.h"
#include "onnx/pattern.h"

static const OnnxNode *maker(const OnnxNode *n, uint32_t i, const char *op)
{
    return n && onnx_has(n, i) ? onnx_maker(n->in[i], op) : NULL;
}

/* NULL: it is left out, or no tensor */
static OnnxValue *operand(const OnnxNode *n, uint32_t i)
{
    return n && onnx_has(n, i) && n->in[i]->type ? n->in[i] : NULL;
}

static bool is_integer(const OnnxNode *n, uint32_t i, int64_t wanted)
{
    const Tensor *known = operand(n, i) ? operand(n, i)->known : NULL;
    return known && shape_elements(&known->type->shape) == 1 && dtype_is_int(known->type->dtype) &&
           onnx_int_at(known, 0) == wanted;
}

static bool is_number(const OnnxNode *n, uint32_t i, double wanted)
{
    double number;
    return onnx_known_number(n, i, &number) && number == wanted;
}

/* `text` is of the operands x and y, each a `$`; NULL ones do not stand in it. */
static bool write(OnnxNode *n, const char *text, OnnxValue *x, OnnxValue *y)
{
    Text out = {0};
    OnnxValue *operand[] = {x, y};
    uint32_t next = 0;
    if (!x)
        return false;
    for (; *text; text++)
        if (*text == '$')
            text_printf(&out, "%s", onnx_name_value(n->onnx, operand[next++]));
        else
            text_char(&out, *text);
    bool good = onnx_emit(n, "%s = %s", onnx_out(n, 0), out.ptr);
    text_free(&out);
    return good;
}

/* Positions */

/* Gather(x, Clip(i, -extent, extent - 1)) */
static bool write_gather(OnnxNode *n)
{
    int64_t axis, extent;
    const OnnxNode *clip = maker(n, 1, "Clip");
    if (!clip || clip->opset < 11 || !onnx_axis(n, "axis", 0, onnx_rank(n, 0), &axis))
        return false;
    extent = onnx_dim(n, 0, axis);
    if (!is_integer(clip, 1, -extent) || !is_integer(clip, 2, extent - 1))
        return false;
    return write(n, axis ? onnx_text(n, "gather($, $, axis = %lld)", (long long)axis) : "gather($, $)", operand(n, 0),
                 operand(clip, 0));
}

/* Floats as integers */

#define END         0x1p63
#define LAST_BEFORE 9223372036854774784.0 /* of f64 */

/* What it is made f64 of */
static OnnxValue *narrow(const OnnxNode *n, uint32_t i)
{
    const OnnxNode *cast = maker(n, i, "Cast");
    OnnxValue *from = operand(cast, 0);
    return from && dtype_is_float(from->type->dtype) ? from : operand(n, i);
}

/* Where(IsNaN(x), 0, Clip(y, low, high)) */
static const OnnxNode *cut(const OnnxNode *n, uint32_t i, double low, double high, OnnxValue **x)
{
    const OnnxNode *where = maker(n, i, "Where"), *nan = maker(where, 0, "IsNaN"), *clip = maker(where, 2, "Clip");
    if (!nan || !clip || clip->opset < 11 || !is_number(where, 1, 0) || !is_number(clip, 1, low) ||
        !is_number(clip, 2, high))
        return NULL;
    *x = operand(nan, 0);
    return clip;
}

static bool write_cast_to_narrow(OnnxNode *n, DType to)
{
    OnnxValue *x = NULL;
    int bits = 8 * (int)dtype_bytes(to) - !dtype_is_unsigned(to);
    double high = ldexp(1, bits) - 1, low = dtype_is_unsigned(to) ? 0 : -high - 1;
    const OnnxNode *clip = cut(n, 0, low, high, &x);
    return clip && narrow(clip, 0) == x && write(n, onnx_text(n, "cast($, to = %s)", dtype_name(to)), x, NULL);
}

/* The upper half by way of i64 */
static bool write_cast_to_u64(OnnxNode *n)
{
    OnnxValue *x = NULL;
    const OnnxNode *where = maker(n, 0, "Where"), *beyond = maker(where, 0, "GreaterOrEqual");
    const OnnxNode *back = maker(where, 2, "Where"), *upper = maker(back, 0, "GreaterOrEqual"),
                   *add = maker(back, 1, "Add");
    const OnnxNode *clip = cut(maker(back, 2, "Cast"), 0, 0, LAST_BEFORE, &x), *inner = maker(clip, 0, "Where"),
                   *sub = maker(inner, 1, "Sub");
    return beyond && upper && add && sub && operand(back, 2)->type->dtype == DT_I64 && is_number(beyond, 1, 2 * END) &&
           is_integer(where, 1, -1) && is_number(upper, 1, END) && operand(add, 0) == operand(back, 2) &&
           is_integer(add, 1, INT64_MIN) && operand(inner, 0) == operand(back, 0) && is_number(sub, 1, END) &&
           narrow(sub, 0) == x && narrow(inner, 2) == x && narrow(upper, 0) == x && narrow(beyond, 0) == x &&
           write(n, "cast($, to = u64)", x, NULL);
}

static bool write_cast(OnnxNode *n)
{
    DType to;
    int32_t type = (int32_t)onnx_int(n, "to", 0);
    if (!maker(n, 0, "Where") || onnx_narrow(type) || !onnx_dtype(type, &to) || !dtype_is_int(to) || to == DT_I64)
        return false;
    return to == DT_U64 ? write_cast_to_u64(n) : write_cast_to_narrow(n, to);
}

/* Where(GreaterOrEqual(x, END), the largest, Cast(...)) */
static bool write_cast_to_i64(OnnxNode *n)
{
    OnnxValue *x = NULL;
    const OnnxNode *beyond = maker(n, 0, "GreaterOrEqual"), *cast = maker(n, 2, "Cast");
    const OnnxNode *clip = cast && operand(n, 2)->type->dtype == DT_I64 ? cut(cast, 0, -END, LAST_BEFORE, &x) : NULL;
    return clip && beyond && is_number(beyond, 1, END) && is_integer(n, 1, INT64_MAX) && narrow(clip, 0) == x &&
           narrow(beyond, 0) == x && write(n, "cast($, to = i64)", x, NULL);
}

/* Division of integers, rounded down; by 0 it gives 0, and by -1 it wraps around. */

/* Where(Or(Equal(y, 0), Equal(y, -1)), 1, y): the y */
static OnnxValue *divisor(const OnnxNode *n, uint32_t i)
{
    const OnnxNode *where = maker(n, i, "Where"), *either = maker(where, 0, "Or"), *zero = maker(either, 0, "Equal"),
                   *minus = maker(either, 1, "Equal");
    bool guards = zero && minus && is_integer(zero, 1, 0) && is_integer(minus, 1, -1) && is_integer(where, 1, 1) &&
                  operand(zero, 0) == operand(minus, 0) && operand(zero, 0) == operand(where, 2);
    return guards ? operand(zero, 0) : NULL;
}

/* Sub(Div(x, d), Cast(And(Xor(Less(x, 0), S), Not(Equal(Mul(Div(x, d), d), x))))): S */
static OnnxValue *floored(const OnnxNode *sub, OnnxValue **x, const OnnxNode **div)
{
    const OnnxNode *cast = maker(sub, 1, "Cast"), *both = maker(cast, 0, "And"), *signs = maker(both, 0, "Xor"),
                   *less = maker(signs, 0, "Less");
    const OnnxNode *rest = maker(both, 1, "Not"), *equal = maker(rest, 0, "Equal"), *mul = maker(equal, 0, "Mul");
    *div = maker(sub, 0, "Div");
    if (!*div || !less || !mul || !is_integer(less, 1, 0) || operand(mul, 0) != operand(sub, 0) ||
        operand(mul, 1) != operand(*div, 1))
        return NULL;
    *x = operand(*div, 0);
    return operand(less, 0) == *x && operand(equal, 1) == *x ? operand(signs, 1) : NULL;
}

/* Where(Equal(y, 0), 0, Where(Equal(y, -1), Sub(0, x), floored)) */
static bool write_division(OnnxNode *n)
{
    OnnxValue *x = NULL;
    const OnnxNode *zero = maker(n, 0, "Equal"), *rest = maker(n, 2, "Where"), *minus = maker(rest, 0, "Equal"),
                   *neg = maker(rest, 1, "Sub"), *div;
    OnnxValue *sign = floored(maker(rest, 2, "Sub"), &x, &div);
    const OnnxNode *less = sign ? onnx_maker(sign, "Less") : NULL;
    if (!zero || !minus || !neg || !less || !is_integer(zero, 1, 0) || !is_integer(n, 1, 0) ||
        !is_integer(minus, 1, -1) || !is_integer(neg, 0, 0) || !is_integer(less, 1, 0))
        return false;
    OnnxValue *y = operand(zero, 0);
    return operand(minus, 0) == y && operand(neg, 1) == x && operand(less, 0) == y && divisor(div, 1) == y &&
           write(n, "$ / $", x, y);
}

static bool are_signs(const Tensor *sign, const Tensor *y)
{
    bool good = sign && y && dtype_is_int(y->type->dtype) && shape_eq(&sign->type->shape, &y->type->shape);
    for (int64_t i = 0; good && i < shape_elements(&y->type->shape); i++)
        good = (tensor_number(sign, i) != 0) == (tensor_number(y, i) < 0);
    return good;
}

/* By numbers that are known to be none of these: their sign is known, too. */
static bool write_known_division(OnnxNode *n)
{
    OnnxValue *x = NULL;
    const OnnxNode *div;
    const OnnxValue *sign = floored(n, &x, &div);
    return sign && are_signs(sign->known, operand(div, 1)->known) && write(n, "$ / $", x, operand(div, 1));
}

/* Sub(x, Mul(Div(x, d), d)) */
static bool write_remainder(OnnxNode *n)
{
    const OnnxNode *mul = maker(n, 1, "Mul"), *div = maker(mul, 0, "Div");
    if (!div || operand(div, 0) != operand(n, 0) || operand(div, 1) != operand(mul, 1) ||
        !dtype_is_int(onnx_type(n, 0)->dtype))
        return false;
    OnnxValue *y = operand(div, 1)->known ? operand(div, 1) : divisor(div, 1);
    return y && write(n, "fmod($, $)", operand(n, 0), y);
}

static bool write_sub(OnnxNode *n)
{
    return write_known_division(n) || write_remainder(n);
}

static bool write_mod(OnnxNode *n)
{
    OnnxValue *y = onnx_int(n, "fmod", 0) ? NULL : divisor(n, 1);
    return y && write(n, "$ % $", operand(n, 0), y);
}

/* Without a sign: Mul(Div(x, Max(y, 1)), Min(y, 1)) */
static bool write_unsigned(OnnxNode *n, const char *op, const char *text)
{
    const OnnxNode *div = maker(n, 0, op), *max = maker(div, 1, "Max"), *min = maker(n, 1, "Min");
    return max && min && max->in_count == 2 && min->in_count == 2 && dtype_is_unsigned(onnx_type(n, 0)->dtype) &&
           operand(max, 0) == operand(min, 0) && is_integer(max, 1, 1) && is_integer(min, 1, 1) &&
           write(n, text, operand(div, 0), operand(max, 0));
}

/* Shifts */

/* Of which this is a conversion that keeps the bits */
static OnnxValue *unconverted(OnnxValue *value)
{
    const OnnxNode *cast = onnx_maker(value, "Cast");
    OnnxValue *from = operand(cast, 0);
    bool keeps =
        from && dtype_is_int(from->type->dtype) && dtype_bytes(from->type->dtype) == dtype_bytes(value->type->dtype);
    return keeps ? from : value;
}

/* Mul(BitShift(x, Min(y, bits - 1)), Cast(Less(y, bits))) */
static bool write_shift(OnnxNode *n)
{
    const OnnxNode *cast = maker(n, 0, "Cast"), *shift = cast ? maker(cast, 0, "BitShift") : maker(n, 0, "BitShift");
    const OnnxNode *min = maker(shift, 1, "Min"), *less = maker(maker(n, 1, "Cast"), 0, "Less");
    int64_t bits = 8 * dtype_bytes(onnx_type(n, 0)->dtype);
    if (!min || min->in_count != 2 || !less || operand(min, 0) != operand(less, 0) || !is_integer(min, 1, bits - 1) ||
        !is_integer(less, 1, bits))
        return false;
    bool left = strcmp(onnx_string(shift, "direction", ""), "LEFT") == 0;
    OnnxValue *x = unconverted(operand(shift, 0)), *y = unconverted(operand(min, 0));
    return (left || !cast) && x->type->dtype == onnx_type(n, 0)->dtype && y->type->dtype == x->type->dtype &&
           write(n, left ? "shift_left($, $)" : "shift_right($, $)", x, y);
}

static bool write_mul(OnnxNode *n)
{
    return write_unsigned(n, "Div", "$ / $") || write_unsigned(n, "Mod", "$ % $") || write_shift(n);
}

/* Where(IsNaN(x), x, Sign(x)) */
static bool write_sign(OnnxNode *n)
{
    const OnnxNode *nan = maker(n, 0, "IsNaN"), *sign = maker(n, 2, "Sign");
    return nan && sign && operand(nan, 0) == operand(n, 1) && operand(sign, 0) == operand(n, 1) &&
           write(n, "sign($)", operand(n, 1), NULL);
}

static bool write_where(OnnxNode *n)
{
    return write_sign(n) || write_cast_to_i64(n) || write_division(n);
}

bool onnx_write_unguarded(OnnxNode *n)
{
    static const struct {
        const char *op;
        bool (*write)(OnnxNode *n);
    } row[] = {{"Gather", write_gather}, {"Cast", write_cast}, {"Where", write_where},
               {"Sub", write_sub},       {"Mod", write_mod},   {"Mul", write_mul}};
    bool own = !n->row->domain && n->opset >= 13;
    for (size_t i = 0; own && i < sizeof row / sizeof *row; i++)
        if (strcmp(n->proto->op_type, row[i].op) == 0)
            return row[i].write(n);
    return false;
}
