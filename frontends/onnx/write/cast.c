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

#define FAR 8 /* nodes between two conversions */

/* The largest of windows that all see something of the image. */
static bool chooses(const Graph *graph, ValueId v)
{
    const Node *node = export_maker(graph, v, "max_pool");
    if (!node)
        return false;
    Window window = reduction_of(graph, node).window;
    for (uint32_t d = 0; d < window.rank; d++) {
        const WindowDimension *w = &window.dim[d];
        if (w->dilation != 1 || w->before >= w->size || w->after >= w->size)
            return false;
    }
    return true;
}

/* Is it of integers of this dtype, which have only been moved, or chosen as the largest?  They go back as they are. */
static bool has_been(const Graph *graph, ValueId v, DType to)
{
    for (uint32_t i = 0; i < FAR; i++) {
        const Node *node = value_producer(graph, v), *cast = export_maker(graph, v, "cast");
        if (cast)
            return value_type(graph, cast->in[0])->dtype == to && value_type(graph, v)->dtype == DT_F32;
        bool moves = node && !node->call && op_info(node->op)->family == FAMILY_VIEW;
        if (!moves && !chooses(graph, v))
            return false;
        v = node->in[0];
    }
    return false;
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
    if (dtype_bytes(to) <= 2 && has_been(n->graph, n->node->in[0], to))
        return export_result(n, 0, "Cast(x){to=%s}", dtype_name(to));
    if (dtype_bytes(to) < 8)
        return cast_to_narrow(n, to);
    return to == DT_I64 ? cast_to_i64(n) : cast_to_u64(n);
}
