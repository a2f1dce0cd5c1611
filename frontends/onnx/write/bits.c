/* The bits of floats as those of integers, and back, by arithmetic: ONNX has an op for them from opset 26 on.  All is
 * exact, for in f64 each of these floats is a whole number times a power of two; of NaN one is left. */
#include "onnx/write/export.h"

#include <math.h>

typedef struct FloatForm {
    int fraction, bias; /* bits; exponents go from 1 - bias to bias */
} FloatForm;

static FloatForm form_of(DType dtype)
{
    switch (dtype) {
    case DT_F64:
        return (FloatForm){52, 1023};
    case DT_F16:
        return (FloatForm){10, 15};
    case DT_BF16:
        return (FloatForm){7, 127};
    default:
        return (FloatForm){23, 127};
    }
}

/* 2 ^ (first + i) for i from 0 to 2 * bias - 1, and infinity. */
static ExportId powers(ExportNode *n, FloatForm form, int first, const char *name)
{
    int64_t count = 2 * form.bias + 1;
    Tensor *tensor = tensor_new(n->e->arena, module_plain_type(n->graph->module, DT_F64, 1, &count));
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(tensor, i, i + 1 < count ? ldexp(1, first + (int)i) : (double)INFINITY);
    return export_array(n->e, tensor, export_text(n->e, "%s_%d_%d", name, form.fraction, form.bias));
}

static const char *sign_bit(const ExportNode *n, DType dtype)
{
    return dtype_bytes(dtype) == 8 ? "i64:-9223372036854775808"
                                   : export_text(n->e, "i64:%lld", 1LL << (8 * dtype_bytes(dtype) - 1));
}

/* The exponent by a logarithm, which may be one off, and the table of powers that says so. */
static ExportId float_to_bits(ExportNode *n, DType dtype)
{
    FloatForm form = form_of(dtype);
    ExportId power = powers(n, form, 1 - form.bias, "powers");
    long long one = 1LL << form.fraction, endless = (2LL * form.bias + 1) << form.fraction;
    ExportId wide = export_make(n, "Cast(x){to=f64}");
    ExportId odd = export_make(n, "Or(IsNaN($%u), IsInf($%u))", wide, wide);
    ExportId a = export_make(n, "Where($%u, f64:1, Abs($%u))", odd, wide);
    ExportId near =
        export_make(n, "Cast(Clip(Sub(Floor(Div(Log($%u), f64:0.6931471805599453)), f64:%d), f64:0, f64:%d)){to=i64}",
                    a, 1 - form.bias, 2 * form.bias - 1);
    ExportId more = export_make(n, "Cast(GreaterOrEqual($%u, Gather($%u, Add($%u, i64:1)))){to=i64}", a, power, near);
    ExportId less =
        export_make(n, "Cast(And(Less($%u, Gather($%u, $%u)), Greater($%u, i64:0))){to=i64}", a, power, near, near);
    ExportId exponent = export_make(n, "Sub(Add($%u, $%u), $%u)", near, more, less);
    ExportId digits =
        export_make(n, "Cast(Mul(Div($%u, Gather($%u, $%u)), f64:%lld)){to=i64}", a, power, exponent, one);
    ExportId bits = export_make(n, "Where($%u, Where(IsNaN($%u), i64:%lld, i64:%lld), Add(Mul($%u, i64:%lld), $%u))",
                                odd, wide, endless + one / 2, endless, exponent, one, digits);
    ExportId negative =
        export_make(n, "Or(Less($%u, f64:0), And(Equal($%u, f64:0), Less(Div(f64:1, $%u), f64:0)))", wide, wide, wide);
    return export_make(n, "Where($%u, Add($%u, %s), $%u)", negative, bits, sign_bit(n, dtype), bits);
}

/* Of bits as an i64, of which those above the float's count for nothing. */
static ExportId bits_to_float(ExportNode *n, ExportId bits, DType dtype)
{
    FloatForm form = form_of(dtype);
    ExportId power = powers(n, form, 1 - form.bias - form.fraction, "scales");
    long long one = 1LL << form.fraction, endless = 2LL * form.bias + 1;
    const char *sign = sign_bit(n, dtype);
    ExportId size = export_make(n, "BitwiseAnd($%u, i64:%lld)", bits, (endless << form.fraction) + (one - 1));
    ExportId exponent = export_make(n, "Div($%u, i64:%lld)", size, one);
    ExportId digits = export_make(n, "Sub($%u, Mul($%u, i64:%lld))", size, exponent, one);
    ExportId whole = export_make(n, "Add($%u, Mul(Min($%u, i64:1), i64:%lld))", digits, exponent, one);
    ExportId finite = export_make(n, "Mul(Cast($%u){to=f64}, Gather($%u, Clip(Sub($%u, i64:1), i64:0, i64:%d)))", whole,
                                  power, exponent, 2 * form.bias - 1);
    ExportId number = export_make(n, "Where(Equal($%u, i64:%lld), Where(Equal($%u, i64:0), f64:inf, f64:nan), $%u)",
                                  exponent, endless, digits, finite);
    return export_make(n, "Where(Equal(BitwiseAnd($%u, %s), %s), Neg($%u), $%u)", bits, sign, sign, number, number);
}

bool export_bits(ExportNode *n, DType to)
{
    ExportId bits = dtype_is_float(n->dtype) ? float_to_bits(n, n->dtype) : export_make(n, "Cast(x){to=i64}");
    ExportId made = dtype_is_float(to) ? bits_to_float(n, bits, to) : bits;
    return export_result(n, 0, "Cast($%u){to=%s}", made, dtype_name(to));
}
