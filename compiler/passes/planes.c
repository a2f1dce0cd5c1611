/* Convolutions of volumes become convolutions of planes.
 * Needs: a verified graph.  Keeps: results, but for the order in which sums are added up.
 * A convolution of [n, c, d, h, w] is a sum of convolutions of two dimensions, one for each tap in depth, over images
 * [n * d, c, h, w], the slices that the tap sees.  So the kernels for images do for volumes; nothing is copied but for
 * the padding, for slices are views.  It comes before grad: gradients are those of images then, too.  Integers and
 * 16-bit floats, whose sums would be rounded between taps, stay, as does what asks for a recipe. */
#include "ops/meaning.h"
#include "passes/rewrite.h"

typedef struct Planes {
    Rewriter *rw;
    Convolution conv;
    const Node *node;
} Planes;

static ValueId exchange_channels(Planes *p, ValueId x)
{
    static const int64_t axes[] = {0, 2, 1, 3, 4};
    Attr attr = {.i = 5, .ints = axes};
    return rewrite_build(p->rw, OP_TRANSPOSE, &x, 1, &attr);
}

/* Zeros before and behind in depth. */
static ValueId padded(Planes *p, ValueId x)
{
    const WindowDimension *d = &p->conv.window.dim[0];
    int64_t before[5] = {0, 0, d->before}, after[5] = {0, 0, d->after};
    Attr attr[3];
    attr_defaults(OP_PAD, attr);
    attr[attr_index(OP_PAD, STR("before"))] = (Attr){.i = 5, .ints = before};
    attr[attr_index(OP_PAD, STR("after"))] = (Attr){.i = 5, .ints = after};
    return d->before || d->after ? rewrite_build(p->rw, OP_PAD, &x, 1, attr) : x;
}

static ValueId convolve(Planes *p, ValueId images, ValueId weight, ValueId bias)
{
    const WindowDimension *h = &p->conv.window.dim[1], *w = &p->conv.window.dim[2];
    int64_t stride[] = {h->stride, w->stride}, dilation[] = {h->dilation, w->dilation};
    int64_t pad[] = {h->before, w->before, h->after, w->after};
    Attr attr[4];
    attr[attr_index(OP_CONV2D, STR("stride"))] = (Attr){.i = 2, .ints = stride};
    attr[attr_index(OP_CONV2D, STR("pad"))] = (Attr){.i = 4, .ints = pad};
    attr[attr_index(OP_CONV2D, STR("dilation"))] = (Attr){.i = 2, .ints = dilation};
    attr[attr_index(OP_CONV2D, STR("groups"))] = (Attr){.i = p->conv.groups};
    return rewrite_build(p->rw, OP_CONV2D, (ValueId[]){images, weight, bias}, bias == NONE ? 2 : 3, attr);
}

/* What the tap gives; `volume` is [n, d, c, h, w], with its padding in depth. */
static ValueId convolve_tap(Planes *p, ValueId volume, int64_t tap)
{
    const WindowDimension *d = &p->conv.window.dim[0];
    ValueId weight = p->node->in[1], bias = tap == 0 && p->node->in_count > 2 ? p->node->in[2] : NONE;
    Shape from = *value_shape(p->rw->graph, volume), all = *value_shape(p->rw->graph, weight);
    Shape images = {4, {from.dim[0] * d->out, from.dim[2], from.dim[3], from.dim[4]}};
    Shape taps = {4, {all.dim[0], all.dim[1], all.dim[3], all.dim[4]}};
    ValueId seen =
        rewrite_reshape(p->rw, rewrite_slice(p->rw, volume, 1, tap * d->dilation, d->out, d->stride), &images);
    return convolve(p, seen, rewrite_reshape(p->rw, rewrite_slice(p->rw, weight, 2, tap, 1, 1), &taps), bias);
}

static bool has_planes(const Graph *graph, const Node *node, Convolution *conv)
{
    if (!convolution_of(graph, node, conv) || conv->window.rank != 3 || node->mark)
        return false;
    DType dtype = value_type(graph, node->in[0])->dtype;
    return (dtype == DT_F32 || dtype == DT_F64) && shape_elements(value_shape(graph, node->in[0])) > 0 &&
           shape_elements(value_shape(graph, node->out[0])) > 0;
}

static ValueId planes_rule(Rewriter *rw, const Node *node)
{
    Planes p = {.rw = rw, .node = node};
    if (!has_planes(rw->graph, node, &p.conv))
        return NONE;
    const WindowDimension *d = p.conv.window.dim;
    ValueId volume = exchange_channels(&p, padded(&p, node->in[0])), sum = convolve_tap(&p, volume, 0);
    for (int64_t tap = 1; tap < d[0].size; tap++)
        sum = rewrite_build2(rw, OP_ADD, sum, convolve_tap(&p, volume, tap));
    Shape shape = {5, {p.conv.images, d[0].out, p.conv.outputs, d[1].out, d[2].out}};
    return exchange_channels(&p, rewrite_reshape(rw, sum, &shape));
}

bool pass_planes(Graph *graph, PassContext *context)
{
    rewrite_graph(graph, context, planes_rule);
    return true;
}
