/* Quantised ops of com.microsoft: each computes in f32 between the scales of its operands and of its result. */
#include <string.h>

#include "onnx/window.h"

#define CONTRIB "com.microsoft"

/* The integers `x` as f32, by a scale and a zero point */
static const char *real_of(OnnxNode *n, const char *x, uint32_t scale, uint32_t zero)
{
    x = onnx_text(n, "cast(%s, to = f32)", x);
    if (onnx_has(n, zero))
        x = onnx_text(n, "(%s - cast(%s, to = f32))", x, onnx_in(n, zero));
    return onnx_text(n, "%s * %s", x, onnx_in(n, scale));
}

/* Operand `i` as f32, by the scale and zero point behind it */
static const char *real(OnnxNode *n, uint32_t i, uint32_t scale, uint32_t zero)
{
    return real_of(n, onnx_in(n, i), scale, zero);
}

/* The result by its own scale: as the type of its zero point, or of operand `like` */
static bool write_real(OnnxNode *n, const char *y, uint32_t scale, uint32_t zero, uint32_t like)
{
    DType dtype = onnx_type(n, onnx_has(n, zero) ? zero : like)->dtype;
    bool is_unsigned = dtype == DT_U8;
    if (!is_unsigned && dtype != DT_I8)
        return onnx_no(n, "its integers have other than 8 bits");
    const char *moved = onnx_has(n, zero) ? onnx_text(n, " + cast(%s, to = f32)", onnx_in(n, zero)) : "";
    return onnx_emit(n, "%s = cast(clip(round((%s) / %s)%s, %s, %s), to = %s)", onnx_out(n, 0), y, onnx_in(n, scale),
                     moved, is_unsigned ? "0.0" : "-128.0", is_unsigned ? "255.0" : "127.0", dtype_name(dtype));
}

/* text is an operator: a, its scale and zero point, b, those of b, those of the result */
static bool write_binary(OnnxNode *n)
{
    const char *a = real(n, 0, 1, 2), *b = real(n, 3, 4, 5);
    return write_real(n, onnx_text(n, "(%s) %s (%s)", a, n->row->text, b), 6, 7, 0);
}

/* text is a function of one operand */
static bool write_unary(OnnxNode *n)
{
    const char *y = onnx_text(n, "%s(%s)", n->row->text, real(n, 0, 1, 2));
    return write_real(n, y, 3, 4, 0);
}

static bool write_leaky(OnnxNode *n)
{
    const char *slope = onnx_number(n, DT_F32, onnx_float(n, "alpha", (double)0.01f));
    return write_real(n, onnx_text(n, "leaky_relu(%s, %s)", real(n, 0, 1, 2), slope), 3, 4, 0);
}

static bool write_softmax(OnnxNode *n)
{
    int64_t axis;
    if (!onnx_axis(n, "axis", -1, onnx_rank(n, 0), &axis))
        return false;
    if (onnx_int(n, "opset", 13) < 13 && axis + 1 != onnx_rank(n, 0))
        return onnx_no(n, "its axes are one");
    return write_real(n, onnx_text(n, "softmax(%s, axis = %lld)", real(n, 0, 1, 2), (long long)axis), 3, 4, 0);
}

/* The result's scale and zero point, then three operands for each part */
static bool write_concat(OnnxNode *n)
{
    Text parts = {0};
    int64_t axis = 0;
    if (n->in_count < 5 || (n->in_count - 2) % 3 || !onnx_axis(n, "axis", 0, onnx_rank(n, 2), &axis))
        return onnx_no(n, "its operands do not come in threes");
    for (uint32_t i = 2; i < n->in_count; i += 3)
        text_printf(&parts, "%s, ", real(n, i, i + 1, i + 2));
    bool good = write_real(n, onnx_text(n, "concat(%saxis = %lld)", parts.ptr, (long long)axis), 0, 1, 2);
    text_free(&parts);
    return good;
}

static bool write_global_pool(OnnxNode *n)
{
    if (onnx_int(n, "channels_last", 0) || onnx_rank(n, 0) < 3)
        return onnx_no(n, "its channels come last");
    return write_real(n, onnx_text(n, "global_avg_pool(%s, keep = true)", real(n, 0, 1, 2)), 3, 4, 0);
}

static bool write_average_pool(OnnxNode *n)
{
    OnnxWindow window;
    if (onnx_int(n, "channels_last", 0))
        return onnx_no(n, "its channels come last");
    if (!onnx_window(n, NULL, &window))
        return false;
    const char *rest = onnx_int(n, "count_include_pad", 0) ? ", count_pad = true" : "";
    return write_real(n, onnx_pool_text(n, &window, real(n, 0, 1, 2), "avg_pool", rest), 3, 4, 0);
}

static bool write_mean(OnnxNode *n)
{
    const int64_t *axes;
    uint32_t count, rank = onnx_rank(n, 0);
    const char *keep = onnx_int(n, "keepdims", 1) ? "true" : "false";
    if (!onnx_axes(n, INT64_MAX, rank, &axes, &count))
        return false;
    int64_t all[MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        all[d] = d;
    const char *list = count ? onnx_list(n, axes, count) : onnx_list(n, all, rank);
    return write_real(n, onnx_text(n, "mean(%s, %s, %s)", real(n, 0, 1, 2), list, keep), 3, 4, 0);
}

/* The condition, then x and y, with the scale and the zero point of each, and those of the result */
static bool write_where(OnnxNode *n)
{
    const char *x = real(n, 1, 2, 3), *y = real(n, 4, 5, 6);
    return write_real(n, onnx_text(n, "select(%s, %s, %s)", onnx_in(n, 0), x, y), 7, 8, 1);
}

/* Product of A and B, with what C adds before the result is scaled; the result is f32 where it has no scale. */
static bool write_gemm(OnnxNode *n)
{
    double alpha = onnx_float(n, "alpha", 1);
    if (onnx_rank(n, 0) != 2 || onnx_rank(n, 3) != 2)
        return onnx_no(n, "its operands are no matrices");
    const char *a = real(n, 0, 1, 2), *b = onnx_in(n, 3);
    a = onnx_int(n, "transA", 0) ? onnx_text(n, "transpose(%s)", a) : a;
    b = real_of(n, onnx_int(n, "transB", 0) ? onnx_text(n, "transpose(%s)", b) : b, 4, 5); /* scales of columns */
    const char *y = onnx_text(n, "((%s) @ (%s)) * %s", a, b, onnx_number(n, DT_F32, alpha));
    if (onnx_has(n, 6))
        y = onnx_text(n, "%s + cast(%s, to = f32) * (%s * %s * %s)", y, onnx_in(n, 6), onnx_in(n, 1), onnx_in(n, 4),
                      onnx_number(n, DT_F32, alpha));
    return onnx_has(n, 7) ? write_real(n, y, 7, 8, 0) : onnx_emit(n, "%s = %s", onnx_out(n, 0), y);
}

/* The weights of gates, [directions, inputs, gates * width], by their scales, as LSTM has them: the other way round */
static OnnxValue *put_gates(OnnxNode *n, uint32_t i, uint32_t scale, uint32_t zero, const char *word)
{
    const Shape *own = &onnx_type(n, scale)->shape;
    int64_t dim[] = {onnx_dim(n, i, 0), 1, own->rank == 2 ? own->dim[1] : 1};
    const char *list = onnx_list(n, dim, 3), *w = onnx_text(n, "cast(%s, to = f32)", onnx_in(n, i));
    const char *name = onnx_temp(n, word);
    if (onnx_has(n, zero))
        w = onnx_text(n, "(%s - reshape(cast(%s, to = f32), shape = %s))", w, onnx_in(n, zero), list);
    return onnx_emit(n, "%s = transpose(%s * reshape(%s, shape = %s), axes = [0, 2, 1])", name, w, onnx_in(n, scale),
                     list)
               ? onnx_written(n, name)
               : NULL;
}

/* LSTM of quantised weights.  Its operand and its state, which ONNX Runtime quantises for each product, stay floats. */
static bool write_lstm(OnnxNode *n)
{
    OnnxNode *node = onnx_cover(n, "LSTM", 14, 8);
    if (onnx_rank(n, 1) != 3 || onnx_rank(n, 2) != 3)
        return onnx_no(n, "its weights have other than 3 dimensions");
    OnnxValue *w = put_gates(n, 1, 8, 9, "weight"), *r = w ? put_gates(n, 2, 10, 11, "recurrence") : NULL;
    if (!r)
        return false;
    onnx_copy_attributes(node, n);
    for (uint32_t i = 0; i < 8; i++)
        if (i == 1 || i == 2 || onnx_has(n, i))
            onnx_set_operand(node, i, i == 1 ? w : i == 2 ? r : n->in[i]);
    return onnx_write_cover(n, node);
}

const OnnxRow onnx_qlinear[] = {
    {"QLinearAdd", 1, write_binary, "+", CONTRIB, false},
    {"QLinearMul", 1, write_binary, "*", CONTRIB, false},
    {"QLinearSigmoid", 1, write_unary, "sigmoid", CONTRIB, false},
    {"QLinearLeakyRelu", 1, write_leaky, NULL, CONTRIB, false},
    {"QLinearSoftmax", 1, write_softmax, NULL, CONTRIB, false},
    {"QLinearConcat", 1, write_concat, NULL, CONTRIB, false},
    {"QLinearGlobalAveragePool", 1, write_global_pool, NULL, CONTRIB, false},
    {"QLinearAveragePool", 1, write_average_pool, NULL, CONTRIB, false},
    {"QLinearReduceMean", 1, write_mean, NULL, CONTRIB, false},
    {"QLinearWhere", 1, write_where, NULL, CONTRIB, false},
    {"QGemm", 1, write_gemm, NULL, CONTRIB, false},
    {"DynamicQuantizeLSTM", 1, write_lstm, NULL, CONTRIB, false},
    {0},
};
