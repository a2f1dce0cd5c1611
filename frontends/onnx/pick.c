/* One slice at a position that is known, without its axis: a view, x[:, 3]. */
#include "onnx/pattern.h"

bool onnx_write_pick(OnnxNode *n, OnnxValue *x, int64_t axis, int64_t position)
{
    Text text = {0};
    for (int64_t d = 0; d < axis; d++)
        text_printf(&text, ":, ");
    bool good = onnx_emit(n, "%s = %s[%s%lld]", onnx_out(n, 0), onnx_name_value(n->onnx, x), text.ptr ? text.ptr : "",
                          (long long)position);
    text_free(&text);
    return good;
}

/* The axis of which the slice has one entry, and the result none; MAX_RANK: it is another change. */
static uint32_t dropped_axis(const Shape *from, const Shape *slice, const Shape *to)
{
    uint32_t axis = MAX_RANK;
    for (uint32_t d = 0; d < from->rank; d++) {
        if (slice->dim[d] == from->dim[d])
            continue;
        if (axis < MAX_RANK || slice->dim[d] != 1)
            return MAX_RANK;
        axis = d;
    }
    bool drops = axis < MAX_RANK && to->rank + 1 == from->rank;
    for (uint32_t d = 0; drops && d < to->rank; d++)
        drops = to->dim[d] == from->dim[d + (d >= axis)];
    return drops ? axis : MAX_RANK;
}

/* Where does the slice begin along the axis? */
static bool find_begin(const OnnxNode *slice, int64_t axis, int64_t *begin)
{
    const Tensor *starts = onnx_has(slice, 1) ? slice->in[1]->known : NULL;
    const Tensor *axes = onnx_has(slice, 3) ? slice->in[3]->known : NULL;
    int64_t rank = onnx_rank(slice, 0), extent = onnx_dim(slice, 0, axis);
    if (!starts || (onnx_has(slice, 3) && !axes))
        return false;
    for (int64_t i = 0; i < shape_elements(&starts->type->shape); i++) {
        int64_t of = axes ? onnx_int_at(axes, i) : i;
        *begin = onnx_int_at(starts, i);
        *begin += *begin < 0 ? extent : 0;
        if (of == axis || of + rank == axis)
            return *begin >= 0 && *begin < extent;
    }
    return false;
}

bool onnx_write_picked(OnnxNode *n, const Shape *to)
{
    const OnnxNode *slice = onnx_maker(n->in[0], "Slice");
    int64_t begin;
    if (!slice || slice->opset < 10 || !onnx_has(slice, 0) || slice->in[0]->count || n->in[0]->count)
        return false;
    uint32_t axis = dropped_axis(&onnx_type(slice, 0)->shape, &onnx_type(n, 0)->shape, to);
    return axis < MAX_RANK && find_begin(slice, axis, &begin) && onnx_write_pick(n, slice->in[0], axis, begin);
}
