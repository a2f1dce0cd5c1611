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

int64_t window_span(const WindowDimension *d)
{
    return d->dilation * (d->size - 1) + 1;
}

/* Windows along a dimension; 0 or less when none fits.  A last one may stick out where `ceil` says so. */
static int64_t count_windows(const WindowDimension *d, bool ceil)
{
    int64_t room = d->in + d->before + d->after - window_span(d) + (ceil ? d->stride - 1 : 0);
    int64_t count = room < 0 ? 0 : room / d->stride + 1;
    bool behind = (count - 1) * d->stride >= d->in + d->before;
    return ceil && count > 0 && behind ? count - 1 : count;
}

/* All but the padding and what follows from it. */
static Window read_window(const Node *node, const Shape *image, const Shape *weight)
{
    Window window = {.rank = image->rank - 2};
    int64_t stride[MAX_RANK], dilation[MAX_RANK], size[MAX_RANK];
    bool as_window = attr_of(node, "stride")->i == 0;

    attr_ints(node, "dilation", window.rank, dilation);
    if (!weight)
        attr_ints(node, "window", window.rank, size);
    if (!as_window)
        attr_ints(node, "stride", window.rank, stride);
    for (uint32_t i = 0; i < window.rank; i++) {
        WindowDimension *d = &window.dim[i];
        d->in = image->dim[2 + i];
        d->size = weight ? weight->dim[2 + i] : size[i];
        d->stride = as_window ? d->size : stride[i];
        d->dilation = dilation[i];
    }
    return window;
}

Window window_of(const Node *node, const Shape *image, const Shape *weight)
{
    Window window = read_window(node, image, weight);
    bool ceil = !weight && attr_bool(node, "ceil");

    read_pad(node, &window);
    for (uint32_t i = 0; i < window.rank; i++)
        window.dim[i].out = count_windows(&window.dim[i], ceil);
    return window;
}

bool window_is_inside(const Window *window)
{
    for (uint32_t i = 0; i < window->rank; i++) {
        const WindowDimension *d = &window->dim[i];
        if (d->before || (d->out - 1) * d->stride + window_span(d) > d->in)
            return false;
    }
    return true;
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

/* Padding by its name */

/* The pixels of padding that give ceil(in / stride) windows. */
static int64_t same_pad(const WindowDimension *d)
{
    int64_t windows = (d->in + d->stride - 1) / d->stride;
    int64_t missing = (windows - 1) * d->stride + window_span(d) - d->in;
    return missing > 0 ? missing : 0;
}

/* As short as it can be said: before and after, one number for both, one for all. */
static int64_t shorten(int64_t *pad, uint32_t rank)
{
    bool even = true, alike = true;
    for (uint32_t d = 0; d < rank; d++) {
        even &= pad[d] == pad[rank + d];
        alike &= pad[d] == pad[0];
    }
    return !even ? 2 * rank : !alike ? rank : 1;
}

/* "same" and "valid" become numbers, so that whoever reads the node finds only those. */
static void resolve_pad(Graph *graph, NodeId node, const Shape *image, const Shape *weight)
{
    Node *n = &graph->node[node];
    Arena *arena = graph->module->arena;
    if (!attr_of(n, "pad")->s.len)
        return;
    Window w = read_window(n, image, weight);
    int64_t *pad = ARENA_ARRAY(arena, int64_t, 2 * w.rank);
    bool same = str_is(attr_of(n, "pad")->s, "same");
    for (uint32_t d = 0; d < w.rank; d++) {
        int64_t total = same ? same_pad(&w.dim[d]) : 0;
        pad[d] = total / 2;
        pad[w.rank + d] = total - pad[d];
    }
    Attr *attr = arena_copy(arena, n->attr, op_attr_count(n->op) * sizeof *attr);
    attr[attr_index(n->op, STR("pad"))] = (Attr){.i = shorten(pad, w.rank), .ints = pad};
    n->attr = attr;
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

static bool check_stride(Graph *graph, NodeId node, uint32_t rank, const Shape *weight)
{
    if (!weight && attr_of(&graph->node[node], "stride")->i == 0)
        return true; /* as the window */
    return infer_check_count(graph, node, "stride", rank) && check_list(graph, node, "stride", 1);
}

static bool check_size(Graph *graph, NodeId node, uint32_t rank, const Shape *weight)
{
    for (uint32_t i = 2; weight && i < 2 + rank; i++)
        if (weight->dim[i] < 1 || weight->dim[i] > MOST)
            return infer_fail(graph, node, "takes a weight with a window in its last dimensions: " STR_FMT,
                              STR_ARG(infer_show_operand(graph, node, 1)));
    return (weight || (infer_check_count(graph, node, "window", rank) && check_list(graph, node, "window", 1))) &&
           infer_check_count(graph, node, "dilation", rank) && check_list(graph, node, "dilation", 1);
}

/* Does some window before the image step over all of it?  Only where the steps between its taps are longer than it. */
static bool steps_over(const WindowDimension *d)
{
    int64_t first = NONE; /* where in the image the first window enters; then they repeat */
    for (int64_t i = 0, start = -d->before; d->in < d->dilation && i < d->out && start < 0; i++, start += d->stride) {
        int64_t enters = (d->dilation - -start % d->dilation) % d->dilation;
        if (enters >= d->in || enters == first)
            return enters >= d->in;
        first = first == NONE ? enters : first;
    }
    return false;
}

/* Of the last dimension, the one before, others */
static const char *extent_name(const Window *w, uint32_t i)
{
    static const char *const name[] = {"wide", "high", "deep"};
    uint32_t from_last = w->rank - 1 - i;
    return name[from_last < 2 ? from_last : 2];
}

static bool fail_fit(Graph *graph, NodeId node, const Window *w, uint32_t i)
{
    const WindowDimension *d = &w->dim[i];
    return infer_fail(graph, node, "the window is %lld %s, the padded image only %lld: " STR_FMT,
                      (long long)window_span(d), extent_name(w, i), (long long)(d->in + d->before + d->after),
                      STR_ARG(infer_show_operand(graph, node, 0)));
}

static bool check_fit(Graph *graph, NodeId node, const Shape *image, const Shape *weight)
{
    Window w = window_of(&graph->node[node], image, weight);

    for (uint32_t i = 0; i < w.rank; i++) {
        const WindowDimension *d = &w.dim[i];
        if (!weight && d->in == 0)
            return infer_fail(graph, node, "takes an image that is not empty: " STR_FMT,
                              STR_ARG(infer_show_operand(graph, node, 0)));
        if (d->out < 1 && window_span(d) > d->in + d->before + d->after)
            return fail_fit(graph, node, &w, i);
        if (!weight && (d->before >= window_span(d) || d->after >= window_span(d)))
            return infer_fail(graph, node, "`pad` must be smaller than the window, or windows of padding alone arise");
        if (!weight && steps_over(d))
            return infer_fail(graph, node,
                              "windows of padding alone arise: the taps, %lld apart, step over the image, %lld %s",
                              (long long)d->dilation, (long long)d->in, extent_name(&w, i));
    }
    return true;
}

bool window_check(Graph *graph, NodeId node, const Shape *image, const Shape *weight)
{
    uint32_t rank = image->rank - 2;

    if (!check_stride(graph, node, rank, weight) || !check_size(graph, node, rank, weight))
        return false;
    resolve_pad(graph, node, image, weight);
    return check_pad(graph, node, rank) && check_fit(graph, node, image, weight);
}

/* What a window sees */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Taps of the window that begins at `start` before `place`. */
static int64_t taps_before(const WindowDimension *d, int64_t start, int64_t place)
{
    return place <= start ? 0 : smaller(d->size, (place - start - 1) / d->dilation + 1);
}

Box window_box(const Window *w, int64_t number, bool count_pad)
{
    Box box = {.rows = 1, .counted = 1};
    for (uint32_t i = w->rank; i-- > 0; number /= w->dim[i].out) {
        const WindowDimension *d = &w->dim[i];
        int64_t start = number % d->out * d->stride - d->before, first = taps_before(d, start, 0);
        box.begin[i] = start + first * d->dilation;
        box.taps[i] = taps_before(d, start, d->in) - first;
        box.rows *= i + 1 < w->rank ? box.taps[i] : 1;
        box.counted *= count_pad ? taps_before(d, start, d->in + d->after) : box.taps[i];
    }
    return box;
}

int64_t window_row(const Window *w, const Box *box, int64_t row)
{
    uint32_t last = w->rank - 1;
    int64_t at = box->begin[last], stride = w->dim[last].in;
    for (uint32_t i = last; i-- > 0; stride *= w->dim[i].in) {
        at += (box->begin[i] + row % box->taps[i] * w->dim[i].dilation) * stride;
        row /= box->taps[i];
    }
    return at;
}

/* From the result of a convolution to its image */

static bool check_image(Graph *graph, NodeId node, const Shape *result, const Shape *image, const Shape *weight)
{
    Window w = window_of(&graph->node[node], image, weight);
    for (uint32_t d = 0; d < w.rank; d++)
        if (w.dim[d].out != result->dim[2 + d])
            return infer_fail(graph, node, "a `size` of %lld has %lld windows in dimension %u: " STR_FMT,
                              (long long)w.dim[d].in, (long long)w.dim[d].out, 2 + d,
                              STR_ARG(infer_show_operand(graph, node, 0)));
    return true;
}

/* The least that has these windows; with "same" the largest. */
static int64_t least_image(const WindowDimension *d, int64_t windows, bool same)
{
    int64_t least = (windows - 1) * d->stride + window_span(d) - d->before - d->after;
    return same ? windows * d->stride : least > 0 ? least : 0;
}

bool window_image(Graph *graph, NodeId node, const Shape *result, const Shape *weight, Shape *image)
{
    uint32_t rank = result->rank - 2;
    const Attr *pad = attr_of(&graph->node[node], "pad"), *size = attr_of(&graph->node[node], "size");
    bool named = pad->s.len > 0, given = size->i > 0;

    if (!check_stride(graph, node, rank, weight) || !check_size(graph, node, rank, weight) ||
        (!named && !check_pad(graph, node, rank)) ||
        (given && (!infer_check_count(graph, node, "size", rank) || !check_list(graph, node, "size", 1))))
        return false;
    Window w = read_window(&graph->node[node], result, weight);
    if (!named)
        read_pad(&graph->node[node], &w);
    for (uint32_t d = 0; d < rank; d++) {
        if (result->dim[2 + d] > MOST)
            return infer_fail(graph, node, "the result would have too many elements");
        image->dim[2 + d] = least_image(&w.dim[d], result->dim[2 + d], named && str_is(pad->s, "same"));
    }
    if (given)
        attr_ints(&graph->node[node], "size", rank, image->dim + 2);
    return window_check(graph, node, image, weight) && check_image(graph, node, result, image, weight);
}
