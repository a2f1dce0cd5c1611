/* Integers that stand for floats: scales, zero points, saturation; sums in i32. */
#include <string.h>

#include "base/number.h"
#include "onnx/narrow.h"
#include "onnx/pattern.h"
#include "onnx/window.h"

#define CONTRIB "com.microsoft"

/* Bounds of an integer type, for saturation. */
static bool bounds(OnnxNode *n, DType dtype, const char **low, const char **high)
{
    uint32_t bytes = dtype_bytes(dtype);
    *low = dtype_is_unsigned(dtype) ? "0.0" : bytes == 1 ? "-128.0" : "-32768.0";
    *high = dtype_is_unsigned(dtype) ? (bytes == 1 ? "255.0" : "65535.0") : bytes == 1 ? "127.0" : "32767.0";
    return (dtype_is_int(dtype) && bytes <= 2) || onnx_no(n, "it quantises to another type than 8 or 16 bits");
}

/* Each slice along the axis `block` times, and of these the first `extent`: views, behind which the narrow operand
 * stays as it is. */
static const char *repeated(OnnxNode *n, const Shape *own, const char *x, uint32_t axis, int64_t block, int64_t extent)
{
    int64_t unit[MAX_RANK], wide[MAX_RANK], merged[MAX_RANK];
    for (uint32_t d = 0; d <= own->rank; d++)
        unit[d] = wide[d] = d == axis + 1 ? 1 : own->dim[d - (d > axis)];
    wide[axis + 1] = block;
    memcpy(merged, own->dim, sizeof merged);
    merged[axis] *= block;
    const char *y = onnx_text(n, "reshape(broadcast(reshape(%s, shape = %s), shape = %s), shape = %s)", x,
                              onnx_list(n, unit, own->rank + 1), onnx_list(n, wide, own->rank + 1),
                              onnx_list(n, merged, own->rank));
    if (merged[axis] == extent)
        return y;
    return onnx_text(n, "slice(%s, axes = %u, begin = 0, end = %lld)", y, axis, (long long)extent);
}

/* The scale or zero point of operand `i` for operand 0: of the whole, of each slice along an axis, or of each block. */
static const char *spread(OnnxNode *n, uint32_t i, const char *x)
{
    const Shape *shape = &onnx_type(n, 0)->shape, *own = &onnx_type(n, i)->shape;
    int64_t axis = onnx_int(n, "axis", 1), dim[MAX_RANK], block = onnx_int(n, "block_size", 0);
    axis = axis < 0 ? axis + shape->rank : axis;
    if (own->rank == 0 || (own->rank == 1 && shape_elements(own) == 1))
        return own->rank ? onnx_text(n, "reshape(%s, shape = [])", x) : x;
    if (axis < 0 || axis >= shape->rank)
        return onnx_no(n, "its axis is not there"), NULL;
    if (block) {
        if (own->rank != shape->rank || block < 0 || block > INT32_MAX || own->rank == MAX_RANK ||
            own->dim[axis] * block < shape->dim[axis])
            return onnx_no(n, "its blocks are impossible"), NULL;
        return repeated(n, own, x, (uint32_t)axis, block, shape->dim[axis]);
    }
    if (own->rank != 1)
        return onnx_no(n, "its scale has %u dimensions", own->rank), NULL;
    for (uint32_t d = 0; d < shape->rank; d++)
        dim[d] = d == axis ? shape->dim[d] : 1;
    return onnx_text(n, "reshape(%s, shape = %s)", x, onnx_list(n, dim, shape->rank));
}

/* Operand 0 by its scale, as an integer type: rounded, moved by the zero point, saturated. */
static const char *quantised(OnnxNode *n, const char *ratio, DType dtype, const OnnxNarrow *narrow)
{
    const char *low, *high, *zero = "";
    if (narrow) {
        low = onnx_text(n, "%.1f", dtype_is_unsigned(dtype) ? 0.0 : -(double)(1 << (narrow->bits - 1)));
        high = onnx_text(n, "%.1f", (double)(1 << (narrow->bits - !dtype_is_unsigned(dtype))) - 1);
    } else if (!bounds(n, dtype, &low, &high)) {
        return NULL;
    }
    if (onnx_has(n, 2))
        zero = spread(n, 2, onnx_text(n, "cast(%s, to = f32)", onnx_in(n, 2)));
    return zero ? onnx_text(n, "cast(clip(round(%s)%s%s, %s, %s), to = %s)", ratio, *zero ? " + " : "", zero, low, high,
                            dtype_name(dtype))
                : NULL;
}

static bool is_divided(DType dtype)
{
    return dtype == DT_F32 || dtype_is_half(dtype);
}

/* What is made of operand `i`, as a dtype */
static const char *as_dtype(const OnnxNode *n, uint32_t i, const char *x, DType dtype)
{
    return onnx_type(n, i)->dtype == dtype ? x : onnx_text(n, "cast(%s, to = %s)", x, dtype_name(dtype));
}

/* Calls of the library, of f32 by a scale of f32 */

/* Is operand `i` one for each slice along the axis? */
static bool is_slice_wise(const OnnxNode *n, uint32_t i)
{
    const Shape *own = &onnx_type(n, i)->shape;
    return own->rank == 1 && shape_elements(own) != 1;
}

static const char *number_or_slices(OnnxNode *n, uint32_t i)
{
    double number;
    DType dtype = onnx_type(n, i)->dtype;
    if (is_slice_wise(n, i))
        return onnx_in(n, i);
    if (onnx_known_number(n, i, &number))
        return dtype_is_float(dtype) ? onnx_number(n, dtype, number) : onnx_text(n, "%.0f", number);
    return onnx_rank(n, i) ? onnx_text(n, "reshape(%s, shape = [])", onnx_in(n, i)) : onnx_in(n, i);
}

/* A constant of a call has its name, as where the language prints calls, and so has what is behind it. */
static const char *named(OnnxNode *n, uint32_t i, const char *name)
{
    double number;
    bool constant = !is_slice_wise(n, 1) && onnx_known_number(n, 1, &number);
    return onnx_text(n, ", %s%s%s", constant ? name : "", constant ? " = " : "", number_or_slices(n, i));
}

static bool is_call(const OnnxNode *n)
{
    bool alike = !onnx_has(n, 2) || shape_eq(&onnx_type(n, 1)->shape, &onnx_type(n, 2)->shape);
    return onnx_type(n, 1)->dtype == DT_F32 && onnx_rank(n, 1) <= 1 && alike && !onnx_int(n, "block_size", 0) &&
           !onnx_int(n, "precision", 0) && !onnx_int(n, "output_dtype", 0);
}

/* Weights' zero points of 0 are left out; of what is computed all are said, so that layers are alike. */
static const char *zero_text(OnnxNode *n)
{
    bool weight = (onnx_has(n, 0) && n->in[0]->known) || is_slice_wise(n, 1);
    bool there = onnx_has(n, 2) && !dtype_is_float(onnx_type(n, 2)->dtype);
    return there && !(weight && onnx_is_filled(n, 2, 0)) ? named(n, 2, "zero") : "";
}

/* `function(x, scale, zero, to = u8, axis = 0)`, `function(x, scale = 0.5, zero = 3, to = u8)` */
static const char *call_text(OnnxNode *n, const char *function, const char *x, const DType *to)
{
    const char *type = to ? onnx_text(n, ", to = %s", dtype_name(*to)) : "";
    const char *axis = is_slice_wise(n, 1) ? onnx_text(n, ", axis = %lld", (long long)onnx_int(n, "axis", 1)) : "";
    return onnx_text(n, "%s = %s(%s%s%s%s%s)", onnx_out(n, 0), function, x, named(n, 1, "scale"), zero_text(n), type,
                     axis);
}

/* Is it f32 as integers of 8 or 16 bits? */
static bool is_quantize(const OnnxNode *n, DType to)
{
    return is_call(n) && !onnx_narrow(n->narrow) && onnx_type(n, 0)->dtype == DT_F32 && dtype_is_int(to) &&
           dtype_bytes(to) <= 2;
}

/* The node before that makes integers, by the same scale and zero point, of which nobody reads these; NULL: none. */
static const OnnxNode *find_pair(OnnxNode *n)
{
    const OnnxNode *before = onnx_maker(n->in[0], "QuantizeLinear");
    OnnxMatch match;
    onnx_match_start(&match, n);
    if (!before || !onnx_has(n, 2) || !onnx_has(before, 2) || before->in[1] != n->in[1] || before->in[2] != n->in[2] ||
        onnx_int(before, "axis", 1) != onnx_int(n, "axis", 1) || !is_quantize(before, onnx_type(n, 0)->dtype))
        return NULL;
    onnx_match_enter(&match, onnx_operand(n, 0));
    return onnx_match_alone(&match) ? before : NULL;
}

static const char *dequantize_text(OnnxNode *n)
{
    const OnnxNode *pair = find_pair(n);
    const DType *to = &onnx_type(n, 0)->dtype;
    return pair ? call_text(n, "fake_quantize", onnx_name_value(n->onnx, pair->in[0]), to)
                : call_text(n, "dequantize", onnx_in(n, 0), NULL);
}

/* Divided as the scale's type, or as the one that `precision` says. */
static bool write_quantize(OnnxNode *n)
{
    DType dtype = DT_U8;
    int32_t type = (int32_t)onnx_int(n, "output_dtype", 0);
    if (onnx_has(n, 2))
        dtype = onnx_type(n, 2)->dtype;
    else if (type && !onnx_dtype(type, &dtype))
        return onnx_no(n, "it quantises to %s", onnx_dtype_name(type));
    DType divided = onnx_type(n, 1)->dtype;
    int32_t precision = (int32_t)onnx_int(n, "precision", 0);
    if (!is_divided(onnx_type(n, 0)->dtype) || !is_divided(divided) ||
        (precision && (!onnx_dtype(precision, &divided) || !is_divided(divided))))
        return onnx_no(n, "it quantises other numbers than f32, f16 and bf16");
    n->narrow = onnx_has(n, 2) ? n->in[2]->narrow : onnx_narrow(type) ? type : 0;
    const OnnxNarrow *narrow = onnx_narrow(n->narrow);
    if (is_quantize(n, dtype))
        n->said = call_text(n, "quantize", onnx_in(n, 0), &dtype);
    const char *scale = spread(n, 1, onnx_in(n, 1));
    const char *ratio =
        scale ? onnx_text(n, "%s / %s", as_dtype(n, 0, onnx_in(n, 0), divided), as_dtype(n, 1, scale, divided)) : NULL;
    if (ratio && divided != DT_F32)
        ratio = onnx_text(n, "cast(%s, to = f32)", ratio);
    const char *y = !ratio                   ? NULL
                    : narrow && narrow->bias ? onnx_narrow_text(n, narrow, ratio, onnx_int(n, "saturate", 1) != 0)
                                             : quantised(n, ratio, dtype, narrow);
    return y && onnx_emit(n, "%s = %s", onnx_out(n, 0), y);
}

/* Integers of more than 8 bits may be beyond f16, and of more digits than it has: these are scaled in f32. */
static bool write_dequantize(OnnxNode *n)
{
    DType dtype = onnx_type(n, 1)->dtype, from = onnx_type(n, 0)->dtype;
    DType scaled = dtype_is_half(dtype) && dtype_is_int(from) && dtype_bytes(from) > 1 ? DT_F32 : dtype;
    if (is_call(n))
        n->said = dequantize_text(n);
    const char *scale = spread(n, 1, onnx_in(n, 1)), *x = onnx_in(n, 0);
    bool moves = onnx_has(n, 2) && !dtype_is_float(onnx_type(n, 2)->dtype); /* the zero point of floats is 0 */
    const char *zero = scale && moves ? spread(n, 2, onnx_in(n, 2)) : "";
    int32_t type = (int32_t)onnx_int(n, "output_dtype", 0);
    DType result = dtype;
    if (!scale || !zero)
        return false;
    if (type && (!onnx_dtype(type, &result) || !dtype_is_float(result)))
        return onnx_no(n, "its result is %s", onnx_dtype_name(type));
    const char *moved = *zero ? onnx_text(n, "cast(%s, to = i32) - cast(%s, to = i32)", x, zero) : x;
    const char *y = onnx_text(n, "cast(%s, to = %s) * %s", moved, dtype_name(scaled), as_dtype(n, 1, scale, scaled));
    return onnx_emit(n, result == scaled ? "%s = %s" : "%s = cast(%s, to = %s)", onnx_out(n, 0), y, dtype_name(result));
}

/* To u8, by the range of the operand, in which 0 lies */
static bool write_dynamic_quantize(OnnxNode *n)
{
    const char *x = onnx_in(n, 0), *low = onnx_temp(n, "low"), *span = onnx_temp(n, "span");
    const char *scale = onnx_wants(n, 1) ? onnx_out(n, 1) : onnx_temp(n, "scale"), *zero = onnx_temp(n, "zero");
    return onnx_emit(n, "%s = minimum(reduce_min(%s), 0.0)", low, x) &&
           onnx_emit(n, "%s = maximum(reduce_max(%s), 0.0) - %s", span, x, low) &&
           onnx_emit(n, "%s = %s / 255.0", scale, span) &&
           onnx_emit(n, "%s = round(clip(-%s / %s, 0.0, 255.0))", zero, low, scale) &&
           (!onnx_wants(n, 2) || onnx_emit(n, "%s = cast(%s, to = u8)", onnx_out(n, 2), zero)) &&
           onnx_emit(n, "%s = cast(clip(round(%s / %s) + %s, 0.0, 255.0), to = u8)", onnx_out(n, 0), x, scale, zero);
}

/* Products */

/* Operand `i` as i32 without its zero point, which stands for all, or for each row or column. */
static const char *moved(OnnxNode *n, uint32_t i, uint32_t zero, bool rows)
{
    const char *x = onnx_text(n, "cast(%s, to = i32)", onnx_in(n, i));
    if (!onnx_has(n, zero))
        return x;
    const char *z = onnx_text(n, "cast(%s, to = i32)", onnx_in(n, zero));
    const Shape *shape = &onnx_type(n, zero)->shape;
    if (shape->rank == 1 && shape_elements(shape) == 1)
        z = onnx_text(n, "reshape(%s, shape = [])", z);
    else if (shape->rank == 1 && rows)
        z = onnx_text(n, "reshape(%s, shape = [%lld, 1])", z, (long long)shape->dim[0]);
    return onnx_text(n, "(%s - %s)", x, z);
}

static bool write_matmul_integer(OnnxNode *n)
{
    return onnx_emit(n, "%s = %s @ %s", onnx_out(n, 0), moved(n, 0, 2, true), moved(n, 1, 3, false));
}

/* A scale or zero point of the rows or columns of a product */
static const char *factor(OnnxNode *n, uint32_t i, bool rows)
{
    const Shape *shape = &onnx_type(n, i)->shape;
    DType dtype = onnx_type(n, i)->dtype;
    const char *x =
        dtype == DT_F16 || dtype == DT_BF16 ? onnx_text(n, "cast(%s, to = f32)", onnx_in(n, i)) : onnx_in(n, i);
    if (shape->rank == 1 && shape_elements(shape) == 1)
        return onnx_text(n, "reshape(%s, shape = [])", x);
    return shape->rank == 1 && rows ? onnx_text(n, "reshape(%s, shape = [%lld, 1])", x, (long long)shape->dim[0]) : x;
}

/* The product with its scales, as their type: A, B, their scales, their zero points, and what is added (com.microsoft)
 */
static bool write_matmul_to_float(OnnxNode *n)
{
    const char *sum = onnx_temp(n, "sum");
    DType dtype = onnx_type(n, 2)->dtype;
    const char *bias = onnx_has(n, 6) ? onnx_text(n, " + %s", as_dtype(n, 6, onnx_in(n, 6), DT_F32)) : "";
    const char *y =
        onnx_text(n, "cast(%s, to = f32) * (%s * %s)%s", sum, factor(n, 2, true), factor(n, 3, false), bias);
    return onnx_emit(n, "%s = %s @ %s", sum, moved(n, 0, 4, true), moved(n, 1, 5, false)) &&
           onnx_emit(n, dtype == DT_F32 ? "%s = %s" : "%s = cast(%s, to = %s)", onnx_out(n, 0), y, dtype_name(dtype));
}

/* The same of floats, which become u8 by their range: A, B, its scale and zero point, and what is added */
static bool write_dynamic_matmul(OnnxNode *n)
{
    static const uint32_t place[] = {1, 3, 5, 6};
    OnnxNode *first = onnx_cover(n, "DynamicQuantizeLinear", 11, 1), *second = onnx_cover(n, "MatMul", 13, 7);
    const char *name[] = {onnx_temp(n, "numbers"), onnx_temp(n, "scale"), onnx_temp(n, "zero")};
    onnx_set_operand(first, 0, n->in[0]);
    onnx_name_results(first, name, 3);
    if (!onnx_write_cover(n, first))
        return false;
    onnx_set_operand(second, 0, onnx_written(n, name[0]));
    onnx_set_operand(second, 2, onnx_written(n, name[1]));
    onnx_set_operand(second, 4, onnx_written(n, name[2]));
    for (uint32_t i = 1; i < 5; i++)
        if (onnx_has(n, i))
            onnx_set_operand(second, place[i - 1], n->in[i]);
    bool good = write_matmul_to_float(second);
    n->reason = n->reason ? n->reason : second->reason;
    return good;
}

static bool requantise(OnnxNode *n, const char *sum, const char *scale, uint32_t zero)
{
    const char *low, *high;
    DType dtype = onnx_type(n, zero)->dtype;
    return bounds(n, dtype, &low, &high) &&
           onnx_emit(n, "%s = cast(clip(round(cast(%s, to = f32) * (%s)) + cast(%s, to = f32), %s, %s), to = %s)",
                     onnx_out(n, 0), sum, scale, factor(n, zero, false), low, high, dtype_name(dtype));
}

static bool write_qlinear_matmul(OnnxNode *n)
{
    const char *sum = onnx_temp(n, "sum");
    const char *scale = onnx_text(n, "%s * %s / %s", factor(n, 1, true), factor(n, 4, false), factor(n, 6, true));
    return onnx_emit(n, "%s = %s @ %s", sum, moved(n, 0, 2, true), moved(n, 3, 5, false)) &&
           requantise(n, sum, scale, 7);
}

static const char *convolve(OnnxNode *n, const char *x, const char *w, uint32_t weight)
{
    OnnxWindow window;
    int64_t groups = onnx_int(n, "group", 1);
    if (onnx_rank(n, 0) < 3 || onnx_rank(n, 0) > 5 || onnx_rank(n, weight) != onnx_rank(n, 0))
        return onnx_no(n, "its image or its weight has other than 1 to 3 dimensions"), NULL;
    if (!onnx_window(n, onnx_type(n, weight)->shape.dim + 2, &window))
        return NULL;
    const char *group = groups == 1 ? "" : onnx_text(n, ", groups = %lld", (long long)groups);
    return onnx_text(n, "conv%ud(%s, %s%s%s)", window.rank, x, w, onnx_window_text(n, &window, 1), group);
}

/* The zero point of the weight stands for all or for each channel. */
static const char *moved_weight(OnnxNode *n, uint32_t i, uint32_t zero)
{
    const char *w = onnx_text(n, "cast(%s, to = i32)", onnx_in(n, i));
    if (!onnx_has(n, zero))
        return w;
    const Shape *shape = &onnx_type(n, zero)->shape;
    int64_t channels = shape_elements(shape), dim[] = {channels, 1, 1, 1, 1};
    return onnx_text(n, "(%s - reshape(cast(%s, to = i32), shape = %s))", w, onnx_in(n, zero),
                     onnx_list(n, dim, channels == 1 ? 0 : onnx_rank(n, i)));
}

static bool write_conv_integer(OnnxNode *n)
{
    const char *y = convolve(n, moved(n, 0, 2, false), moved_weight(n, 1, 3), 1);
    return y && onnx_emit(n, "%s = %s", onnx_out(n, 0), y);
}

static bool write_qlinear_conv(OnnxNode *n)
{
    const char *y = convolve(n, moved(n, 0, 2, false), moved_weight(n, 3, 5), 3), *sum = onnx_temp(n, "sum");
    if (!y)
        return false;
    int64_t channels = shape_elements(&onnx_type(n, 4)->shape), dim[] = {channels, 1, 1, 1};
    int64_t filters[] = {onnx_dim(n, 3, 0), 1, 1, 1};
    uint32_t rank = onnx_rank(n, 3) - 1;
    if (onnx_has(n, 8))
        y = onnx_text(n, "%s + reshape(%s, shape = %s)", y, onnx_in(n, 8), onnx_list(n, filters, rank));
    const char *scale = onnx_text(n, "%s * reshape(%s, shape = %s) / %s", factor(n, 1, false), onnx_in(n, 4),
                                  onnx_list(n, dim, channels == 1 ? 0 : rank), factor(n, 6, false));
    return onnx_emit(n, "%s = %s", sum, y) && requantise(n, sum, scale, 7);
}

const OnnxRow onnx_quantised[] = {
    {"QuantizeLinear", 10, write_quantize, NULL, NULL, false},
    {"DequantizeLinear", 10, write_dequantize, NULL, NULL, false},
    {"DynamicQuantizeLinear", 11, write_dynamic_quantize, NULL, NULL, false},
    {"MatMulInteger", 10, write_matmul_integer, NULL, NULL, false},
    {"MatMulIntegerToFloat", 1, write_matmul_to_float, NULL, CONTRIB, false},
    {"DynamicQuantizeMatMul", 1, write_dynamic_matmul, NULL, CONTRIB, false},
    {"ConvInteger", 10, write_conv_integer, NULL, NULL, false},
    {"QLinearMatMul", 10, write_qlinear_matmul, NULL, NULL, false},
    {"QLinearConv", 10, write_qlinear_conv, NULL, NULL, false},
    {0},
};
