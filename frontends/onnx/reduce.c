/* Reductions over axes, running sums, and positions of the largest. */
#include <string.h>

#include "onnx/import.h"

#define AXES_ARE_OPERANDS 18 /* of reductions but sum, from this opset on */

/* A form of the operand, `$`, and of the axes and keep, `@` */
static const char *fill(OnnxNode *n, const char *form, const char *x, const char *rest)
{
    Text text = {0};
    for (const char *at = form; *at; at++) {
        if (*at == '$')
            text_str(&text, str_from(x));
        else if (*at == '@')
            text_str(&text, str_from(rest));
        else
            text_char(&text, *at);
    }
    const char *filled = onnx_text(n, "%s", text.ptr);
    text_free(&text);
    return filled;
}

/* What the largest or the smallest of nothing is: what any element takes the place of.  NULL where something is
 * reduced, or where the sum or product of nothing is meant. */
static const char *of_nothing(const OnnxNode *n, const int64_t *axes, uint32_t count)
{
    const char *op = n->proto->op_type;
    DType dtype = onnx_type(n, 0)->dtype;
    bool smallest = strcmp(op, "ReduceMin") == 0, empty = !count && !shape_elements(&onnx_type(n, 0)->shape);
    for (uint32_t i = 0; i < count; i++)
        empty |= onnx_dim(n, 0, axes[i]) == 0;
    if (!empty || (!smallest && strcmp(op, "ReduceMax") != 0 && strcmp(op, "ReduceLogSumExp") != 0))
        return NULL;
    return onnx_farthest(n, dtype, !smallest);
}

static bool write_of_nothing(OnnxNode *n, const char *value, const int64_t *axes, uint32_t count)
{
    const Type *type = onnx_type(n, 0);
    Shape shape = {0};
    bool keep = onnx_int(n, "keepdims", 1) != 0;
    for (uint32_t d = 0; d < type->shape.rank; d++) {
        bool gone = !count;
        for (uint32_t i = 0; i < count; i++)
            gone |= axes[i] == d;
        if (keep || !gone)
            shape.dim[shape.rank++] = gone ? 1 : type->shape.dim[d];
    }
    return onnx_emit(n, "%s = broadcast(cast(%s, to = %s), shape = %s)", onnx_out(n, 0), value, dtype_name(type->dtype),
                     onnx_list(n, shape.dim, shape.rank));
}

/* How many elements become one */
static int64_t reduced_count(const OnnxNode *n, const int64_t *axes, uint32_t count)
{
    int64_t elements = count ? 1 : shape_elements(&onnx_type(n, 0)->shape);
    for (uint32_t i = 0; i < count; i++)
        elements *= onnx_dim(n, 0, axes[i]);
    return elements;
}

/* The sum, divided towards zero */
static bool write_mean_of_integers(OnnxNode *n, const char *rest, int64_t count)
{
    const char *sum = onnx_temp(n, "sum"), *dtype = dtype_name(onnx_type(n, 0)->dtype);
    if (count < 1)
        return onnx_no(n, "it takes the mean of no integers");
    if (!onnx_emit(n, "%s = reduce_sum(%s%s)", sum, onnx_in(n, 0), rest))
        return false;
    if (dtype_is_unsigned(onnx_type(n, 0)->dtype))
        return onnx_emit(n, "%s = %s / %lld", onnx_out(n, 0), sum, (long long)count);
    return onnx_emit(n, "%s = %s / %lld + cast(%s %% %lld != 0 and %s < 0, to = %s)", onnx_out(n, 0), sum,
                     (long long)count, sum, (long long)count, sum, dtype);
}

/* Means, norms and logarithms, whose results are integers again, cut off as ONNX Runtime does */
static bool write_of_integers(OnnxNode *n, const char *rest, int64_t count)
{
    const char *op = n->proto->op_type, *dtype = dtype_name(onnx_type(n, 0)->dtype);
    if (dtype_bytes(onnx_type(n, 0)->dtype) < 4)
        return onnx_no(n, "its operand is %s", dtype);
    if (strcmp(op, "ReduceMean") == 0)
        return write_mean_of_integers(n, rest, count);
    const char *form = strcmp(op, "ReduceL2") == 0       ? "sqrt(cast(reduce_sum(square($)@), to = f64))"
                       : strcmp(op, "ReduceLogSum") == 0 ? "log(cast(reduce_sum($@), to = f64))"
                                                         : "logsumexp(cast($, to = f64)@)";
    return onnx_emit(n, "%s = cast(%s, to = %s)", onnx_out(n, 0), fill(n, form, onnx_in(n, 0), rest), dtype);
}

/* What one that reduces over no axes does to each element; NULL: nothing. */
static const char *each_of(const char *op)
{
    static const char *const of[][2] = {
        {"ReduceL1", "abs"}, {"ReduceL2", "abs"}, {"ReduceLogSum", "log"}, {"ReduceSumSquare", "square"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strcmp(op, of[i][0]) == 0)
            return of[i][1];
    return NULL;
}

static bool write_reduce(OnnxNode *n)
{
    const int64_t *axes;
    uint32_t count;
    bool sum = strcmp(n->proto->op_type, "ReduceSum") == 0;
    if (!onnx_axes(n, sum ? 13 : AXES_ARE_OPERANDS, onnx_rank(n, 0), &axes, &count))
        return false;
    bool plain = strncmp(n->row->text, "reduce", 6) == 0 && strstr(n->row->text, "($@)");
    if (!count && onnx_int(n, "noop_with_empty_axes", 0)) {
        const char *each = each_of(n->proto->op_type), *dtype = dtype_name(onnx_type(n, 0)->dtype);
        if (each && strcmp(each, "log") == 0 && !dtype_is_float(onnx_type(n, 0)->dtype))
            return onnx_emit(n, "%s = cast(log(cast(%s, to = f64)), to = %s)", onnx_out(n, 0), onnx_in(n, 0), dtype);
        if (each)
            return onnx_emit(n, "%s = %s(%s)", onnx_out(n, 0), each, onnx_in(n, 0));
        onnx_set_value(n, 0, n->in[0]);
        return true;
    }
    const char *nothing = of_nothing(n, axes, count);
    if (nothing)
        return write_of_nothing(n, nothing, axes, count);
    DType dtype = onnx_type(n, 0)->dtype;
    bool bools = dtype == DT_BOOL;
    const char *x = bools ? onnx_text(n, "cast(%s, to = i32)", onnx_in(n, 0)) : onnx_in(n, 0);
    const char *keep = onnx_int(n, "keepdims", 1) ? ", keep = true" : "";
    const char *rest = count ? onnx_text(n, ", axes = %s%s", onnx_list(n, axes, count), keep) : keep;
    if (!dtype_is_float(dtype) && !plain && !strstr(n->row->text, "abs") && !strstr(n->row->text, "square("))
        return write_of_integers(n, rest, reduced_count(n, axes, count));
    if (strncmp(n->row->text, "log(", 4) == 0) /* of a sum, which may be beyond halves */
        return onnx_put_rounded(n, 0, fill(n, n->row->text, onnx_widened(n, 0), rest));
    return onnx_emit(n, bools ? "%s = %s != 0" : "%s = %s", onnx_out(n, 0), fill(n, n->row->text, x, rest));
}

/* The last one of several: the first from the end. */
static bool write_arg(OnnxNode *n)
{
    int64_t axis;
    if (!onnx_axis(n, "axis", 0, onnx_rank(n, 0), &axis))
        return false;
    if (!onnx_dim(n, 0, axis))
        return onnx_no(n, "it chooses from nothing: dimension %lld is empty", (long long)axis);
    const char *x = onnx_in(n, 0), *keep = onnx_int(n, "keepdims", 1) ? ", keep = true" : "";
    if (!onnx_int(n, "select_last_index", 0))
        return onnx_emit(n, "%s = %s(%s, axis = %lld%s)", onnx_out(n, 0), n->row->text, x, (long long)axis, keep);
    int64_t last = onnx_dim(n, 0, axis) - 1;
    return onnx_emit(n, "%s = %lld - %s(slice(%s, axes = %lld, begin = %lld, end = %lld, step = -1), axis = %lld%s)",
                     onnx_out(n, 0), (long long)last, n->row->text, x, (long long)axis, (long long)last,
                     (long long)(-last - 2), (long long)axis, keep);
}

/* text is the primitive */
static bool write_running(OnnxNode *n)
{
    const int64_t *list;
    uint32_t count, rank = onnx_rank(n, 0);
    if (!onnx_known_ints(n, 1, &list, &count))
        return false;
    int64_t axis = count == 1 ? list[0] : INT64_MAX;
    if (axis < -(int64_t)rank || axis >= rank)
        return onnx_no(n, "its axis is none of %u dimensions", rank);
    return onnx_emit(n, "%s = %s(%s, axis = %lld%s%s)", onnx_out(n, 0), n->row->text, onnx_in(n, 0), (long long)axis,
                     onnx_int(n, "exclusive", 0) ? ", exclusive = true" : "",
                     onnx_int(n, "reverse", 0) ? ", reverse = true" : "");
}

const OnnxRow onnx_reduce[] = {
    {"ReduceSum", 1, write_reduce, "reduce_sum($@)", NULL, false},
    {"ReduceMax", 1, write_reduce, "reduce_max($@)", NULL, false},
    {"ReduceMin", 1, write_reduce, "reduce_min($@)", NULL, false},
    {"ReduceProd", 1, write_reduce, "reduce_prod($@)", NULL, false},
    {"ReduceMean", 1, write_reduce, "mean($@)", NULL, false},
    {"ReduceL1", 1, write_reduce, "reduce_sum(abs($)@)", NULL, false},
    {"ReduceL2", 1, write_reduce, "l2_norm($@)", NULL, false},
    {"ReduceLogSum", 1, write_reduce, "log(reduce_sum($@))", NULL, false},
    {"ReduceLogSumExp", 1, write_reduce, "logsumexp($@)", NULL, false},
    {"ReduceSumSquare", 1, write_reduce, "reduce_sum(square($)@)", NULL, false},
    {"ArgMax", 1, write_arg, "argmax", NULL, false},
    {"ArgMin", 1, write_arg, "argmin", NULL, false},
    {"CumSum", 11, write_running, "cumsum", NULL, false},
    {"CumProd", 26, write_running, "cumprod", NULL, false},
    {0},
};
