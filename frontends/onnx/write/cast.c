/* Conversions.  Of floats out of range the nearest integer is what the language says, and 0 of NaN; ONNX leaves that
 * open, so they are brought into the range before. */
#include "onnx/write/export.h"

/* In f64, which has all bounds exactly but those of 64 bits: the largest there is the last f64 before. */
static bool cast_to_narrow(ExportNode *n, DType to)
{
    int bits = 8 * (int)dtype_bytes(to) - !dtype_is_unsigned(to);
    int64_t high = ((int64_t)1 << bits) - 1, low = dtype_is_unsigned(to) ? 0 : -high - 1;
    return export_result(n, 0, "Cast(Where(IsNaN(x), f64:0, Clip(Cast(x){to=f64}, f64:%lld, f64:%lld))){to=%s}",
                         (long long)low, (long long)high, dtype_name(to));
}

static bool cast_to_i64(ExportNode *n)
{
    return export_result(n, 0,
                         "Where(GreaterOrEqual(Cast(x){to=f64}, f64:9223372036854775808), i64:9223372036854775807, "
                         "Cast(Where(IsNaN(x), f64:0, Clip(Cast(x){to=f64}, f64:-9223372036854775808, "
                         "f64:9223372036854774784))){to=i64})");
}

/* The upper half goes by way of i64: what is beyond it is brought there, and back. */
static bool cast_to_u64(ExportNode *n)
{
    ExportId upper = export_make(n, "GreaterOrEqual(Cast(x){to=f64}, f64:9223372036854775808)");
    ExportId moved =
        export_make(n,
                    "Cast(Where(IsNaN(x), f64:0, Clip(Where($%u, Sub(Cast(x){to=f64}, "
                    "f64:9223372036854775808), Cast(x){to=f64}), f64:0, f64:9223372036854774784))){to=i64}",
                    upper);
    ExportId back = export_make(n, "Where($%u, Add($%u, i64:-9223372036854775808), $%u)", upper, moved, moved);
    return export_result(
        n, 0, "Cast(Where(GreaterOrEqual(Cast(x){to=f64}, f64:18446744073709551616), i64:-1, $%u)){to=u64}", back);
}

bool export_cast(ExportNode *n)
{
    DType to = value_type(n->graph, n->node->out[0])->dtype;
    bool float_bits = dtype_is_float(n->dtype) || dtype_is_float(to);
    if (to == n->dtype)
        return export_result(n, 0, "x");
    if (op_keeps_bits(n->node->op) && float_bits)
        return export_bits(n, to);
    if (!dtype_is_float(n->dtype) || !dtype_is_int(to))
        return export_result(n, 0, "Cast(x){to=%s}", dtype_name(to));
    if (dtype_bytes(to) < 8)
        return cast_to_narrow(n, to);
    return to == DT_I64 ? cast_to_i64(n) : cast_to_u64(n);
}
