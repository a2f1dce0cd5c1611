/* Products of matrices and convolutions.  What ONNX has no op for, or nobody computes in that dtype, is Einstein's sum
 * over operands with a dimension for each axis. */
#include "onnx/write/export.h"

static const char *pads_of(const ExportNode *n, const int64_t *before, const int64_t *after, uint32_t rank)
{
    int64_t pads[2 * MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        pads[d] = before[d];
        pads[rank + d] = after[d];
    }
    return export_ints(n, pads, 2 * rank);
}

static bool write_product(ExportNode *n, const Product *p)
{
    uint32_t rank = value_shape(n->graph, n->node->in[1])->rank;
    int64_t perm[MAX_RANK];
    if (!p->transposed)
        return export_result(n, 0, "MatMul(x, y)");
    if (rank == 2 && value_shape(n->graph, n->node->in[0])->rank == 2 && dtype_is_float(n->dtype))
        return export_result(n, 0, "Gemm(x, y){transB=1}");
    for (uint32_t d = 0; d < rank; d++)
        perm[d] = d;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return export_result(n, 0, "MatMul(x, Transpose(y){perm=%s})", export_ints(n, perm, rank));
}

const char *export_window_words(const ExportNode *n, const Convolution *c)
{
    int64_t stride[MAX_RANK], dilation[MAX_RANK], before[MAX_RANK], after[MAX_RANK];
    const Window *w = &c->window;
    for (uint32_t d = 0; d < w->rank; d++) {
        stride[d] = w->dim[d].stride;
        dilation[d] = w->dim[d].dilation;
        before[d] = w->dim[d].before;
        after[d] = w->dim[d].after;
    }
    return export_text(n->e, "{strides=%s, pads=%s, dilations=%s, group=%lld}", export_ints(n, stride, w->rank),
                       pads_of(n, before, after, w->rank), export_ints(n, dilation, w->rank), (long long)c->groups);
}

/* Of the image that reaches a convolution's results: an image's pixel is at (before + pixel - dilation * tap) / stride
 * of them.  What is missing at its end no window reaches. */
static bool write_transposed(ExportNode *n, const Contraction *c)
{
    const Shape *x = value_shape(n->graph, n->node->in[0]), *w = value_shape(n->graph, n->node->in[1]);
    const Shape *image = value_shape(n->graph, n->node->out[0]);
    int64_t stride[MAX_RANK], dilation[MAX_RANK], before[MAX_RANK], after[MAX_RANK], more[MAX_RANK];
    uint32_t rank = x->rank - 2, tap = c->axis_count - rank;
    for (uint32_t d = 0; d < rank; d++) {
        stride[d] = c->first.divisor[2 + d];
        dilation[d] = -c->first.factor[2 + d][tap + d];
        before[d] = c->first.begin[2 + d];
        int64_t end = (x->dim[2 + d] - 1) * stride[d] + dilation[d] * (w->dim[2 + d] - 1) + 1 - before[d];
        after[d] = end > image->dim[2 + d] ? end - image->dim[2 + d] : 0;
        more[d] = end > image->dim[2 + d] ? 0 : image->dim[2 + d] - end;
        if (more[d] >= stride[d] && more[d] >= dilation[d])
            return false;
    }
    return export_result(n, 0,
                         "ConvTranspose(x, y%s){strides=%s, pads=%s, dilations=%s, output_padding=%s, group=%lld}",
                         c->has_bias ? ", z" : "", export_ints(n, stride, rank), pads_of(n, before, after, rank),
                         export_ints(n, dilation, rank), export_ints(n, more, rank), (long long)c->axis[1].extent);
}

/* Sums of products */

static void put_axes(Text *out, const Unfolding *u)
{
    for (uint32_t i = 0; i < u->rank; i++)
        text_char(out, (char)('a' + u->order[i]));
}

static ExportId add_bias(ExportNode *n, const Contraction *c, ExportId sum)
{
    const Shape *shape = value_shape(n->graph, n->node->out[0]);
    int64_t dim[MAX_RANK];
    for (uint32_t d = 0; d < shape->rank; d++)
        dim[d] = d == c->bias_dimension ? shape->dim[d] : 1;
    return export_make(n, "Add($%u, Reshape(z, %s))", sum, export_ints(n, dim, shape->rank));
}

static Unfolding unfolding_of(const Contraction *c, const Access *access)
{
    Unfolding u = {.access = *access, .axis_count = c->axis_count, .brief = true};
    for (uint32_t a = 0; a < c->axis_count; a++)
        u.axis[a] = c->axis[a];
    return u;
}

static ExportId write_sum(ExportNode *n, const Contraction *c)
{
    Unfolding u[] = {unfolding_of(c, &c->first), unfolding_of(c, &c->second)};
    const Shape *result = value_shape(n->graph, n->node->out[0]);
    ExportId part[2];
    for (uint32_t i = 0; i < 2; i++)
        part[i] = export_unfold(n, n->in[i], value_shape(n->graph, n->node->in[i]), &u[i]);
    Text equation = {0};
    uint32_t rank = 0;
    bool same = true; /* has it the result's shape?  Groups and their channels are two axes, extents of 1 are none. */
    put_axes(&equation, &u[0]);
    text_char(&equation, ',');
    put_axes(&equation, &u[1]);
    text_printf(&equation, "->");
    for (uint32_t a = 0; a < c->axis_count; a++)
        if (c->axis[a].role != AXIS_SUM && c->axis[a].role != AXIS_TAP && c->axis[a].extent != 1) {
            text_char(&equation, (char)('a' + a));
            same = same && rank < result->rank && result->dim[rank] == c->axis[a].extent;
            rank++;
        }
    ExportId sum = export_make(n, "Einsum($%u, $%u){equation='%s'}", part[0], part[1], equation.ptr);
    text_free(&equation);
    return same && rank == result->rank
               ? sum
               : export_make(n, "Reshape($%u, %s)", sum, export_ints(n, result->dim, result->rank));
}

static bool is_empty(const ExportNode *n, uint32_t i)
{
    return shape_elements(value_shape(n->graph, n->node->in[i])) == 0;
}

bool export_contract(ExportNode *n)
{
    Contraction c = contraction_of(n->graph, n->node);
    const Shape *result = value_shape(n->graph, n->node->out[0]);
    bool convolves = n->dtype == DT_F32 || n->dtype == DT_F16;
    Convolution convolution;
    Product product;

    if (is_empty(n, 0) || is_empty(n, 1)) { /* sums of nothing */
        ExportId zero = export_make(n, "Expand(0, %s)", export_ints(n, result->dim, result->rank));
        n->out[0] = c.has_bias ? add_bias(n, &c, zero) : zero;
        return true;
    }
    if (product_of(n->graph, n->node, &product))
        return write_product(n, &product);
    if (convolves && node_is_convolution(n->node) && convolution_of(n->graph, n->node, &convolution))
        return export_result(n, 0, "Conv(x, y%s)%s", c.has_bias ? ", z" : "", export_window_words(n, &convolution));
    if (convolves && contraction_extent(&c, AXIS_TAP) && c.axis[c.axis_count - 1].role == AXIS_TAP &&
        !node_is_convolution(n->node) && write_transposed(n, &c))
        return true;
    ExportId sum = write_sum(n, &c);
    n->out[0] = c.has_bias ? add_bias(n, &c, sum) : sum;
    return true;
}
