#include "ops/window.h"

#include "ir/attr.h"

#define MOST INT32_MAX /* of a stride, a padding, an extent of a window: sums and products stay in 64 bits */

/* Padding from one number, one per dimension, or all those before and then all those after. */
static void read_pad(const Node *node, Window *window)
{
    const Attr *pad = attr_of(node, "pad");
    uint32_t rank = window->rank;
    bool apart = pad->i == 2 * (int64_t)rank;
    for (uint32_t d = 0; d < rank; d++) {
        window->dim[d].before = pad->ints[pad->i == 1 ? 0 : d];
        window->dim[d].after = apart ? pad->ints[rank + d] : window->dim[d].before;
    }
}

Window window_of(const Node *node, const Shape *image, const Shape *weight)
{
    Window window = {.rank = image->rank - 2};
    int64_t stride[MAX_RANK], dilation[MAX_RANK], size[MAX_RANK];

    read_pad(node, &window);
    attr_ints(node, "stride", window.rank, stride);
    if (weight)
        attr_ints(node, "dilation", window.rank, dilation);
    else
        attr_ints(node, "window", window.rank, size);
    for (uint32_t i = 0; i < window.rank; i++) {
        WindowDimension *d = &window.dim[i];
        d->in = image->dim[2 + i];
        d->size = weight ? weight->dim[2 + i] : size[i];
        d->stride = stride[i];
        d->dilation = weight ? dilation[i] : 1;
        int64_t span = d->dilation * (d->size - 1) + 1; /* of the window, in pixels */
        d->out = (d->in + d->before + d->after - span) / d->stride + 1;
    }
    return window;
}

bool window_is_pointwise(const Window *window)
{
    for (uint32_t i = 0; i < window->rank; i++) {
        const WindowDimension *d = &window->dim[i];
        if (d->size != 1 || d->stride != 1 || d->before || d->after)
            return false;
    }
    return true;
}

/* Checks */

static bool check_list(Graph *graph, NodeId node, const char *name, int64_t least)
{
    const Attr *attr = attr_of(&graph->node[node], name);
    for (int64_t i = 0; i < attr->i; i++)
        if (attr->ints[i] > MOST)
            return infer_fail(graph, node, "`%s` is too large: %lld", name, (long long)attr->ints[i]);
    return infer_check_least(graph, node, name, least);
}

static bool check_pad(Graph *graph, NodeId node, uint32_t rank)
{
    long long given = attr_of(&graph->node[node], "pad")->i;
    if (given == 1 || given == rank || given == 2 * (long long)rank)
        return check_list(graph, node, "pad", 0);
    if (rank == 2)
        return infer_fail(graph, node, "`pad` takes one number, [h, w] or [top, left, bottom, right], not %lld numbers",
                          given);
    return infer_fail(graph, node, "`pad` takes 1, %u or %u numbers, not %lld", rank, 2 * rank, given);
}

static bool check_size(Graph *graph, NodeId node, uint32_t rank, const Shape *weight)
{
    if (!weight)
        return infer_check_count(graph, node, "window", rank) && check_list(graph, node, "window", 1);
    for (uint32_t i = 2; i < 2 + rank; i++)
        if (weight->dim[i] < 1 || weight->dim[i] > MOST)
            return infer_fail(graph, node, "takes a weight [o, c / groups, kh, kw] with a window: " STR_FMT,
                              STR_ARG(infer_show_operand(graph, node, 1)));
    return infer_check_count(graph, node, "dilation", rank) && check_list(graph, node, "dilation", 1);
}

static bool check_fit(Graph *graph, NodeId node, const Shape *image, const Shape *weight)
{
    static const char *const extent[] = {"wide", "high", "deep"}; /* of the last dimension, the one before, others */
    Window w = window_of(&graph->node[node], image, weight);

    for (uint32_t i = 0; i < w.rank; i++) {
        const WindowDimension *d = &w.dim[i];
        int64_t padded = d->in + d->before + d->after, span = d->dilation * (d->size - 1) + 1;
        uint32_t from_last = w.rank - 1 - i;
        if (span > padded)
            return infer_fail(graph, node, "the window is %lld %s, the padded image only %lld: " STR_FMT,
                              (long long)span, extent[from_last < 2 ? from_last : 2], (long long)padded,
                              STR_ARG(infer_show_operand(graph, node, 0)));
        if (!weight && (d->before >= d->size || d->after >= d->size))
            return infer_fail(graph, node, "`pad` must be smaller than the window, or windows of padding alone arise");
        if (!weight && d->in == 0)
            return infer_fail(graph, node, "takes an image that is not empty: " STR_FMT,
                              STR_ARG(infer_show_operand(graph, node, 0)));
    }
    return true;
}

bool window_check(Graph *graph, NodeId node, const Shape *image, const Shape *weight)
{
    uint32_t rank = image->rank - 2;

    return infer_check_count(graph, node, "stride", rank) && check_list(graph, node, "stride", 1) &&
           check_pad(graph, node, rank) && check_size(graph, node, rank, weight) &&
           check_fit(graph, node, image, weight);
}
