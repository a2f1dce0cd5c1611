/* What is known when compiling: constants, ranges, and the shapes of tensors. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

static bool set_tensor(OnnxNode *n, const Onnx__TensorProto *proto)
{
    const char *why = NULL;
    bool broken;
    const Tensor *tensor = onnx_tensor(&n->onnx->files, n->onnx->module, proto, &why, &broken);
    if (!tensor)
        return onnx_no(n, "%s", why);
    onnx_set_known(n, 0, tensor);
    return true;
}

static bool set_floats(OnnxNode *n, const float *list, int64_t count, bool scalar)
{
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_F32, !scalar, &count));
    if (count)
        memcpy(tensor->data, list, (size_t)count * sizeof *list);
    onnx_set_known(n, 0, tensor);
    return true;
}

static bool write_constant(OnnxNode *n)
{
    const Onnx__AttributeProto *a;
    if ((a = onnx_attribute(n, "value")) && a->t)
        return set_tensor(n, a->t);
    if ((a = onnx_attribute(n, "value_int")))
        return onnx_set_ints(n, 0, DT_I64, &a->i, 1, true);
    if ((a = onnx_attribute(n, "value_ints")))
        return onnx_set_ints(n, 0, DT_I64, a->ints, (uint32_t)a->n_ints, false);
    if ((a = onnx_attribute(n, "value_float")))
        return set_floats(n, &a->f, 1, true);
    if ((a = onnx_attribute(n, "value_floats")))
        return set_floats(n, a->floats, (int64_t)a->n_floats, false);
    if ((a = onnx_attribute(n, "sparse_value")) && a->sparse_tensor) {
        const char *why;
        const Tensor *tensor = onnx_sparse_tensor(n->onnx, a->sparse_tensor, &why);
        if (tensor)
            onnx_set_known(n, 0, tensor);
        return tensor || onnx_no(n, "its value: %s", why);
    }
    return onnx_no(n, "its value is a text");
}

/* full(value, shape, dtype) of a known shape */
static bool write_constant_of_shape(OnnxNode *n)
{
    const Onnx__AttributeProto *a = onnx_attribute(n, "value");
    const int64_t *dim;
    uint32_t count;
    const char *why = NULL, *value = "0.0";
    bool broken;
    DType dtype = DT_F32;
    int64_t elements;

    if (!onnx_known_extents(n, 0, &dim, &count))
        return false;
    Shape shape = shape_of(count > MAX_RANK ? 0 : count, dim);
    if (count > MAX_RANK || !shape_checked_elements(&shape, &elements))
        return onnx_no(n, "its shape is no shape");
    if (a && a->t) {
        const Tensor *tensor = onnx_tensor(&n->onnx->files, n->onnx->module, a->t, &why, &broken);
        if (!tensor || shape_elements(&tensor->type->shape) != 1)
            return onnx_no(n, "%s", tensor ? "its value is not one number" : why);
        dtype = tensor->type->dtype;
        double number = tensor_number(tensor, 0);
        if (!onnx_is_attribute(tensor))
            return onnx_emit(n, "%s = broadcast(%s, shape = %s)", onnx_out(n, 0), onnx_literal(n->onnx, tensor),
                             onnx_list(n, dim, count));
        value = dtype == DT_BOOL ? number != 0 ? "1" : "0" : onnx_number(n, dtype, number);
    }
    return onnx_emit(n, "%s = full(%s, %s, %s)", onnx_out(n, 0), value, onnx_list(n, dim, count), dtype_name(dtype));
}

/* From a number on to how many there are of something that is as large as data say */
static bool write_counted_range(OnnxNode *n, const OnnxExtent *limit)
{
    double from, step;
    if (!onnx_known(n, 0) || !onnx_known(n, 2) || !onnx_known_number(n, 0, &from) || !onnx_known_number(n, 2, &step))
        return false;
    if (step != 1 || from < 0 || from > INT32_MAX)
        return onnx_no(n, "it goes by %g from %g to what is known only when running", step, from);
    const char *dtype = dtype_name(onnx_type(n, 0)->dtype);
    int64_t first = (int64_t)from, longest = most(limit->most - first, 0);
    n->count = limit->count; /* the same one, so that arithmetic with what it counts is possible */
    n->counted = 1;
    n->count_axis[0] = 0;
    if (first == 0)
        return onnx_emit(n, "%s = iota(shape = [%lld], dtype = %s)", onnx_out(n, 0), (long long)longest, dtype);
    const char *many = onnx_temp(n, "many");
    if (!onnx_emit(n, "%s = iota(shape = [%lld], dtype = %s) + %lld", onnx_out(n, 0), (long long)longest, dtype,
                   (long long)first) ||
        !onnx_emit(n, "%s = maximum(%s - %lld, 0)", many, onnx_name_value(n->onnx, limit->count), (long long)first))
        return false;
    n->count = onnx_written(n, many);
    return true;
}

/* How many steps there are from a number up to another, or down to it: exact in all of i64. */
static uint64_t count_steps(int64_t from, int64_t to, int64_t step)
{
    uint64_t way = step > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
    uint64_t by = step > 0 ? (uint64_t)step : -(uint64_t)step;
    bool there = step > 0 ? from < to : from > to;
    return there ? (way - 1) / by + 1 : 0;
}

/* Elements wrap around, as ONNX Runtime adds them up. */
static bool write_integer_range(OnnxNode *n)
{
    const Tensor *first = n->in[0]->known, *delta = n->in[2]->known;
    int64_t from = onnx_int_at(first, 0), step = onnx_int_at(delta, 0);
    uint64_t steps = step ? count_steps(from, onnx_int_at(n->in[1]->known, 0), step) : 0;
    if (steps > INT32_MAX || !step)
        return onnx_no(n, "it has too many steps");
    DType dtype = onnx_type(n, 0)->dtype;
    int64_t count = (int64_t)steps, *list = ARENA_ARRAY(n->onnx->arena, int64_t, least(count, ONNX_FOLDED) + 1);
    if (count > ONNX_FOLDED)
        return onnx_emit(n, "%s = iota(shape = [%lld], dtype = %s)%s%s", onnx_out(n, 0), (long long)count,
                         dtype_name(dtype), step == 1 ? "" : onnx_text(n, " * %s", onnx_literal(n->onnx, delta)),
                         from == 0 ? "" : onnx_text(n, " + %s", onnx_literal(n->onnx, first)));
    for (int64_t i = 0; i < count; i++)
        list[i] = (int64_t)((uint64_t)from + (uint64_t)i * (uint64_t)step);
    return onnx_set_ints(n, 0, dtype, list, (uint32_t)count, false);
}

static bool write_range(OnnxNode *n)
{
    OnnxExtent counted;
    if (onnx_has(n, 1) && !n->in[1]->known && onnx_type(n, 1)->dtype != DT_BOOL &&
        onnx_find_extent(n->in[1], 0, &counted) && counted.count)
        return write_counted_range(n, &counted);
    const Tensor *first = onnx_known(n, 0), *limit = onnx_known(n, 1), *delta = onnx_known(n, 2);
    if (!first || !limit || !delta)
        return false;
    if (dtype_is_int(onnx_type(n, 0)->dtype))
        return write_integer_range(n);
    double from = tensor_number(first, 0), to = tensor_number(limit, 0), step = tensor_number(delta, 0);
    double steps = step != 0 ? ceil((to - from) / step) : 0;
    if (!(steps <= INT32_MAX) || step == 0)
        return onnx_no(n, "it has too many steps");
    DType dtype = onnx_type(n, 0)->dtype;
    int64_t count = steps > 0 ? (int64_t)steps : 0;
    if (count > ONNX_FOLDED)
        return onnx_emit(n, "%s = iota(shape = [%lld], dtype = %s) * %s + %s", onnx_out(n, 0), (long long)count,
                         dtype_name(dtype), onnx_number(n, dtype, step), onnx_number(n, dtype, from));
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, dtype, 1, &count));
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(tensor, i,
                          dtype == DT_F32 ? (double)((float)from + (float)i * (float)step) : from + (double)i * step);
    onnx_set_known(n, 0, tensor);
    return true;
}

/* Extents of operand 0, from `start` to `end` */
static bool write_shape(OnnxNode *n)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t rank = shape->rank, start = onnx_int(n, "start", 0), end = onnx_int(n, "end", rank);
    start = least(most(start < 0 ? start + rank : start, 0), rank);
    end = least(most(end < 0 ? end + rank : end, 0), rank);
    if (onnx_has(n, 0) && n->in[0]->count)
        return onnx_write_counted_shape(n, shape->dim, (uint32_t)start, (uint32_t)most(end - start, 0));
    return onnx_set_ints(n, 0, DT_I64, shape->dim + start, (uint32_t)most(end - start, 0), false);
}

static bool write_size(OnnxNode *n)
{
    int64_t elements = shape_elements(&onnx_type(n, 0)->shape);
    return onnx_has(n, 0) && n->in[0]->count ? onnx_write_counted_size(n)
                                             : onnx_set_ints(n, 0, DT_I64, &elements, 1, true);
}

static bool write_eye_like(OnnxNode *n)
{
    int32_t type = (int32_t)onnx_int(n, "dtype", 0);
    DType dtype = onnx_type(n, 0)->dtype;
    if (type && !onnx_dtype(type, &dtype))
        return onnx_no(n, "its result is %s", onnx_dtype_name(type));
    if (onnx_rank(n, 0) != 2)
        return onnx_no(n, "its operand is no matrix");
    const char *shape = onnx_list(n, onnx_type(n, 0)->shape.dim, 2);
    return onnx_emit(n, "%s = cast(iota(axis = 1, shape = %s) - iota(axis = 0, shape = %s) == %lld, to = %s)",
                     onnx_out(n, 0), shape, shape, (long long)onnx_int(n, "k", 0), dtype_name(dtype));
}

/* Windows of signals */

static bool write_window(OnnxNode *n)
{
    const int64_t *size;
    uint32_t count;
    DType dtype;
    if (!onnx_known_ints(n, 0, &size, &count))
        return false;
    if (!onnx_dtype((int32_t)onnx_int(n, "output_datatype", 1), &dtype) || count != 1 || *size < 0 ||
        *size > ONNX_FOLDED)
        return onnx_no(n, "its size or dtype is impossible");
    double a[3] = {0.5, 0.5, 0},
           turn = 6.283185307179586 / (double)most(onnx_int(n, "periodic", 1) ? *size : *size - 1, 1);
    if (strcmp(n->row->text, "hamming") == 0)
        a[0] = 25.0 / 46.0, a[1] = 1 - 25.0 / 46.0;
    if (strcmp(n->row->text, "blackman") == 0)
        a[0] = 0.42, a[1] = 0.5, a[2] = 0.08;
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, dtype, 1, size));
    for (int64_t i = 0; i < *size; i++)
        tensor_set_number(tensor, i, a[0] - a[1] * cos(turn * (double)i) + a[2] * cos(2 * turn * (double)i));
    onnx_set_known(n, 0, tensor);
    return true;
}

const OnnxRow onnx_constant[] = {
    {"Constant", 1, write_constant, NULL, NULL, false},
    {"ConstantOfShape", 9, write_constant_of_shape, NULL, NULL, false},
    {"Range", 11, write_range, NULL, NULL, false},
    {"Shape", 1, write_shape, NULL, NULL, false},
    {"Size", 1, write_size, NULL, NULL, false},
    {"EyeLike", 9, write_eye_like, NULL, NULL, false},
    {"HannWindow", 17, write_window, "hann", NULL, false},
    {"HammingWindow", 17, write_window, "hamming", NULL, false},
    {"BlackmanWindow", 17, write_window, "blackman", NULL, false},
    {0},
};
