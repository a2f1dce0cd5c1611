#include "ops/attrs.h"

uint32_t reduce_mask(const Node *node, uint32_t rank)
{
    if (node->op == OP_ARGMAX || node->op == OP_ARGMIN)
        return 1u << axis_position(attr_int(node, "axis"), rank);

    const Attr *axes = node_attr(node, "axes");
    uint32_t mask = axes->i ? 0 : (1u << rank) - 1;
    for (int64_t i = 0; i < axes->i; i++)
        mask |= 1u << axis_position(axes->ints[i], rank);
    return mask;
}

void transpose_axes(const Node *node, uint32_t rank, uint32_t axes[MAX_RANK])
{
    const Attr *given = node_attr(node, "axes");
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = given->i ? axis_position(given->ints[i], rank) : rank - 1 - i;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* NumPy's slice.indices(). */
static Range slice_range(int64_t extent, int64_t begin, int64_t end, int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    begin = clamp(begin < 0 ? begin + extent : begin, low, high);
    end = clamp(end < 0 ? end + extent : end, low, high);

    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step; /* also of the least int64 */
    int64_t distance = step > 0 ? end - begin : begin - end;
    Range range = {begin, step, 0};
    if (distance > 0)
        range.count = (int64_t)(((uint64_t)distance - 1) / stride) + 1;
    else
        range.begin = 0; /* an empty range still points inside */
    return range;
}

void slice_ranges(const Node *node, const Shape *shape, Range range[MAX_RANK])
{
    const Attr *axes = node_attr(node, "axes");
    uint32_t count = (uint32_t)axes->i;
    int64_t begin[MAX_RANK], end[MAX_RANK], step[MAX_RANK];

    attr_ints(node, "begin", count, begin);
    attr_ints(node, "end", count, end);
    attr_ints(node, "step", count, step);
    for (uint32_t i = 0; i < shape->rank; i++)
        range[i] = (Range){0, 1, shape->dim[i]};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = axis_position(axes->ints[i], shape->rank);
        range[axis] = slice_range(shape->dim[axis], begin[i], end[i], step[i]);
    }
}

Window window_of(const Node *node, const Shape *x, const Shape *weight)
{
    Window window = {.dilation = {1, 1}};
    int64_t pad[4];

    attr_pad2d(node, pad);
    attr_ints(node, "stride", 2, window.stride);
    if (weight)
        attr_ints(node, "dilation", 2, window.dilation);
    else
        attr_ints(node, "window", 2, window.size);
    for (int i = 0; i < 2; i++) {
        if (weight)
            window.size[i] = weight->dim[2 + i];
        window.in[i] = x->dim[2 + i];
        window.before[i] = pad[i];
        window.after[i] = pad[2 + i];
        int64_t span = window.dilation[i] * (window.size[i] - 1) + 1; /* of the window, in pixels */
        window.out[i] = (window.in[i] + pad[i] + pad[2 + i] - span) / window.stride[i] + 1;
    }
    return window;
}

bool matmul_shape(const Node *node, const Shape *x, const Shape *y, MatmulShape *out)
{
    bool transposed = attr_bool(node, "transpose_y") && y->rank > 1;
    uint32_t xr = x->rank, yr = y->rank;

    out->m = xr > 1 ? x->dim[xr - 2] : 1;
    out->k = x->dim[xr - 1];
    out->n = yr > 1 ? y->dim[transposed ? yr - 2 : yr - 1] : 1;
    out->x_batch = shape_of(xr > 1 ? xr - 2 : 0, x->dim);
    out->y_batch = shape_of(yr > 1 ? yr - 2 : 0, y->dim);
    return y->dim[yr == 1 || transposed ? yr - 1 : yr - 2] == out->k &&
           shape_broadcast(&out->x_batch, &out->y_batch, &out->batch);
}
