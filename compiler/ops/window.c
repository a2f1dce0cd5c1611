#include "ops/window.h"

#include "ops/attrs.h"

#define MOST INT32_MAX /* of a stride, a padding, an extent of a window: sums and products stay in 64 bits */

static bool check_list(Graph *graph, NodeId node, const char *name, int64_t least)
{
    const Attr *attr = node_attr(&graph->node[node], name);
    for (int64_t i = 0; i < attr->i; i++)
        if (attr->ints[i] > MOST)
            return infer_fail(graph, node, "`%s` is too large: %lld", name, (long long)attr->ints[i]);
    return check_least(graph, node, name, least);
}

static bool check_pad(Graph *graph, NodeId node)
{
    int64_t given = node_attr(&graph->node[node], "pad")->i;
    if (given != 1 && given != 2 && given != 4)
        return infer_fail(graph, node, "`pad` takes one number, [h, w] or [top, left, bottom, right], not %lld numbers",
                          (long long)given);
    return check_list(graph, node, "pad", 0);
}

static bool check_size(Graph *graph, NodeId node, bool conv)
{
    if (!conv)
        return check_count(graph, node, "window", 2) && check_list(graph, node, "window", 1);
    const Shape *weight = in_shape(graph, node, 1);
    for (int i = 2; i < 4; i++)
        if (weight->dim[i] < 1 || weight->dim[i] > MOST)
            return infer_fail(graph, node, "takes a weight [o, c / groups, kh, kw] with a window: " STR_FMT,
                              STR_ARG(show_operand(graph, node, 1)));
    return check_count(graph, node, "dilation", 2) && check_list(graph, node, "dilation", 1);
}

static bool check_fit(Graph *graph, NodeId node, bool conv)
{
    static const char *const direction[] = {"high", "wide"};
    Window w = window_of(&graph->node[node], in_shape(graph, node, 0), conv ? in_shape(graph, node, 1) : NULL);

    for (int i = 0; i < 2; i++) {
        int64_t padded = w.in[i] + w.before[i] + w.after[i], span = w.dilation[i] * (w.size[i] - 1) + 1;
        if (span > padded)
            return infer_fail(graph, node, "the window is %lld %s, the padded image only %lld: " STR_FMT,
                              (long long)span, direction[i], (long long)padded, STR_ARG(show_operand(graph, node, 0)));
        if (!conv && (w.before[i] >= w.size[i] || w.after[i] >= w.size[i]))
            return infer_fail(graph, node, "`pad` must be smaller than the window, or windows of padding alone arise");
        if (!conv && w.in[i] == 0)
            return infer_fail(graph, node, "takes an image that is not empty: " STR_FMT,
                              STR_ARG(show_operand(graph, node, 0)));
    }
    return true;
}

bool check_window(Graph *graph, NodeId node)
{
    bool conv = graph->node[node].op == OP_CONV2D;

    return check_count(graph, node, "stride", 2) && check_list(graph, node, "stride", 1) && check_pad(graph, node) &&
           check_size(graph, node, conv) && check_fit(graph, node, conv);
}
