/* Pooling, and what its gradients are made of: what windows give to the elements that equal theirs. */
#include "onnx/write/export.h"

#define MOST_POOLED 3 /* dimensions that ONNX Runtime's pools slide over */

/* Padding behind the image with which there are as many windows as there are, without ceil_mode. */
static int64_t needed_after(const WindowDimension *d)
{
    int64_t missing = (d->out - 1) * d->stride + window_span(d) - d->in - d->before;
    return missing > 0 ? missing : 0;
}

static bool is_plain(const ExportNode *n, const Reduction *r)
{
    const Window *w = &r->window;
    for (uint32_t d = 0; d < w->rank; d++) {
        int64_t after = needed_after(&w->dim[d]);
        if (w->dim[d].before >= w->dim[d].size || after >= w->dim[d].size || (r->count_pad && after > w->dim[d].after))
            return false;
    }
    return w->rank <= MOST_POOLED &&
           (n->dtype == DT_F32 || n->dtype == DT_F16 || (n->dtype == DT_F64 && r->kind == REDUCE_VALUES));
}

static bool write_pool(ExportNode *n, const Reduction *r)
{
    const Window *w = &r->window;
    int64_t size[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], pads[2 * MAX_RANK];
    for (uint32_t d = 0; d < w->rank; d++) {
        size[d] = w->dim[d].size;
        stride[d] = w->dim[d].stride;
        dilation[d] = w->dim[d].dilation;
        pads[d] = w->dim[d].before;
        pads[w->rank + d] = needed_after(&w->dim[d]);
    }
    const char *op = r->kind == REDUCE_MEAN ? "AveragePool" : "MaxPool";
    const char *more = r->kind == REDUCE_MEAN ? export_text(n->e, ", count_include_pad=%d", r->count_pad) : "";
    return export_result(n, 0, "%s(x){kernel_shape=%s, strides=%s, pads=%s, dilations=%s%s}", op,
                         export_ints(n, size, w->rank), export_ints(n, stride, w->rank),
                         export_ints(n, pads, 2 * w->rank), export_ints(n, dilation, w->rank), more);
}

/* Windows as dimensions: [n, c, out, size, out, size, ...]. */

static Unfolding start_unfolding(const Shape *image)
{
    Unfolding u = {.access = {.rank = image->rank, .divisor = {1, 1}}, .axis_count = 2};
    for (uint32_t d = 0; d < 2; d++) {
        u.axis[d] = (Axis){AXIS_BATCH, image->dim[d]};
        u.access.factor[d][d] = 1;
    }
    return u;
}

static void add_dimension(Unfolding *u, uint32_t d, int64_t begin, int64_t divisor, const int64_t factor[2],
                          const int64_t extent[2])
{
    u->access.begin[d] = begin;
    u->access.divisor[d] = divisor;
    for (int i = 0; i < 2; i++) {
        u->axis[u->axis_count] = (Axis){i ? AXIS_TAP : AXIS_ROW, extent[i]};
        u->access.factor[d][u->axis_count++] = factor[i];
    }
}

/* The image's pixels by window and tap. */
static Unfolding by_window(const Shape *image, const Window *w)
{
    Unfolding u = start_unfolding(image);
    for (uint32_t d = 0; d < w->rank; d++)
        add_dimension(&u, 2 + d, -w->dim[d].before, 1, (int64_t[]){w->dim[d].stride, w->dim[d].dilation},
                      (int64_t[]){w->dim[d].out, w->dim[d].size});
    return u;
}

/* The windows that see a pixel, by pixel and tap. */
static Unfolding by_pixel(const Shape *image, const Window *w)
{
    Unfolding u = start_unfolding(image);
    for (uint32_t d = 0; d < w->rank; d++)
        add_dimension(&u, 2 + d, w->dim[d].before, w->dim[d].stride, (int64_t[]){1, -w->dim[d].dilation},
                      (int64_t[]){w->dim[d].in, w->dim[d].size});
    return u;
}

static ExportId unfold(ExportNode *n, uint32_t operand, Unfolding *u, double fill)
{
    u->fill = fill;
    return export_unfold(n, n->in[operand], value_shape(n->graph, n->node->in[operand]), u);
}

static const char *tap_axes(const ExportNode *n, const Window *w)
{
    int64_t axes[MAX_RANK];
    for (uint32_t d = 0; d < w->rank; d++)
        axes[d] = 3 + 2 * d;
    return export_ints(n, axes, w->rank);
}

/* Pixels of the window that count, as a product over its dimensions. */
static int64_t counted(const WindowDimension *d, int64_t number, bool count_pad)
{
    int64_t count = 0, low = count_pad ? -d->before : 0, high = d->in + (count_pad ? d->after : 0);
    for (int64_t t = 0; t < d->size; t++) {
        int64_t at = number * d->stride - d->before + t * d->dilation;
        count += at >= low && at < high;
    }
    return count;
}

static ExportId write_counts(ExportNode *n, const Reduction *r)
{
    const Window *w = &r->window;
    int64_t dim[MAX_RANK];
    for (uint32_t d = 0; d < w->rank; d++)
        dim[d] = w->dim[d].out;
    Tensor *tensor = tensor_new(n->e->arena, module_plain_type(n->graph->module, n->dtype, w->rank, dim));
    for (int64_t i = 0; i < shape_elements(&tensor->type->shape); i++) {
        int64_t rest = i, product = 1;
        for (uint32_t d = w->rank; d-- > 0; rest /= dim[d])
            product *= counted(&w->dim[d], rest % dim[d], r->count_pad);
        tensor_set_number(tensor, i, (double)product);
    }
    return export_tensor(n->e, tensor, "counts");
}

/* Along one dimension after another: [outer, in, inner] by window and tap, which are combined. */
static ExportId write_dimension(ExportNode *n, ExportId x, const Shape *shape, uint32_t d, const WindowDimension *w,
                                const char *op, double fill)
{
    long long outer = 1, inner = 1;
    Unfolding u = {.access = {.rank = 3, .divisor = {1, 1, 1}}, .axis_count = 4, .fill = fill};
    for (uint32_t k = 0; k < shape->rank; k++)
        *(k < d ? &outer : &inner) *= k == d ? 1 : shape->dim[k];
    u.axis[0] = (Axis){AXIS_BATCH, outer};
    u.axis[1] = (Axis){AXIS_ROW, w->out};
    u.axis[2] = (Axis){AXIS_TAP, w->size};
    u.axis[3] = (Axis){AXIS_BATCH, inner};
    u.access.factor[0][0] = u.access.factor[2][3] = 1;
    u.access.factor[1][1] = w->stride;
    u.access.factor[1][2] = w->dilation;
    u.access.begin[1] = -w->before;
    ExportId rows = export_make(n, "Reshape($%u, [%lld, %lld, %lld])", x, outer, (long long)w->in, inner);
    ExportId by_tap = export_unfold(n, rows, &(Shape){3, {outer, w->in, inner}}, &u);
    return export_make(n, "%s($%u, [2]){keepdims=0}", op, by_tap);
}

static ExportId write_dimensions(ExportNode *n, const Reduction *r, const char *op, double fill)
{
    Shape shape = *value_shape(n->graph, n->node->in[0]);
    ExportId x = n->in[0];
    for (uint32_t d = 0; d < r->window.rank; d++) {
        x = write_dimension(n, x, &shape, 2 + d, &r->window.dim[d], op, fill);
        shape.dim[2 + d] = r->window.dim[d].out;
    }
    return export_make(n, "Reshape($%u, %s)", x, export_ints(n, shape.dim, shape.rank));
}

bool export_pool(ExportNode *n)
{
    Reduction r = reduction_of(n->graph, n->node);
    if (is_plain(n, &r))
        return write_pool(n, &r);
    if (r.kind == REDUCE_MEAN)
        return export_result(n, 0, "Div($%u, $%u)", write_dimensions(n, &r, "ReduceSum", 0), write_counts(n, &r));
    n->out[0] = write_dimensions(n, &r, "ReduceMax", reduction_neutral(r.combine, n->dtype));
    return true;
}

/* With a dimension of extent 1 for the taps of each. */
static ExportId beside_taps(ExportNode *n, uint32_t operand)
{
    const Shape *shape = value_shape(n->graph, n->node->in[operand]);
    int64_t dim[2 * MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        dim[rank++] = shape->dim[d];
        if (d >= 2)
            dim[rank++] = 1;
    }
    return export_make(n, "Reshape($%u, %s)", n->in[operand], export_ints(n, dim, rank));
}

bool export_match(ExportNode *n)
{
    Reduction r = reduction_of(n->graph, n->node);
    bool collect = r.kind == REDUCE_COLLECT;
    const Shape *image = value_shape(n->graph, n->node->in[0]);
    Unfolding u = collect ? by_window(image, &r.window) : by_pixel(image, &r.window);
    ExportId inner = unfold(n, collect ? 0 : 1, &u, 0), outer = beside_taps(n, collect ? 1 : 0);
    return export_result(n, 0, "ReduceSum(Where(Equal($%u, $%u), $%u, 0), %s){keepdims=0}", inner, outer,
                         unfold(n, 2, &u, 0), tap_axes(n, &r.window));
}
