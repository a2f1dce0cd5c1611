/* Convolutions of volumes become convolutions of planes.
 * Needs: a verified graph.  Keeps: results, but for the order in which sums are added up.
 * A convolution of [n, c, d, h, w] is a sum of convolutions of two dimensions, one for each tap in depth, over images
 * [n * d, c, h, w], the slices that the tap sees.  A transposed one is made likewise of those results in depth that see
 * the same taps, which are then interleaved.  So the kernels for images do for volumes; nothing is copied but for
 * the padding, for slices are views.  It comes before grad: gradients are those of images then, too.  Integers and
 * 16-bit floats, whose sums would be rounded between taps, stay, as does what asks for a recipe. */
#include "ops/meaning.h"
#include "passes/rewrite.h"

typedef struct Planes {
    Rewriter *rw;
    Convolution conv; /* of a transposed one: that whose image it gives */
    const Node *node;
    bool transposed;
} Planes;

static ValueId exchange_channels(Planes *p, ValueId x)
{
    static const int64_t axes[] = {0, 2, 1, 3, 4};
    Attr attr = {.i = 5, .ints = axes};
    return rewrite_build(p->rw, OP_TRANSPOSE, &x, 1, &attr);
}

/* Zeros before and behind in depth. */
static ValueId padded(Planes *p, ValueId x, int64_t in_front, int64_t behind)
{
    int64_t before[5] = {0, 0, in_front}, after[5] = {0, 0, behind};
    Attr attr[3];
    attr_defaults(OP_PAD, attr);
    attr[attr_index(OP_PAD, STR("before"))] = (Attr){.i = 5, .ints = before};
    attr[attr_index(OP_PAD, STR("after"))] = (Attr){.i = 5, .ints = after};
    return in_front || behind ? rewrite_build(p->rw, OP_PAD, &x, 1, attr) : x;
}

static ValueId convolve(Planes *p, ValueId images, ValueId weight, ValueId bias)
{
    const WindowDimension *h = &p->conv.window.dim[1], *w = &p->conv.window.dim[2];
    OpCode op = p->transposed ? OP_CONV2D_TRANSPOSE : OP_CONV2D;
    int64_t stride[] = {h->stride, w->stride}, dilation[] = {h->dilation, w->dilation}, size[] = {h->in, w->in};
    int64_t pad[] = {h->before, w->before, h->after, w->after};
    Attr attr[5];
    attr[attr_index(op, STR("stride"))] = (Attr){.i = 2, .ints = stride};
    attr[attr_index(op, STR("pad"))] = (Attr){.i = 4, .ints = pad};
    attr[attr_index(op, STR("dilation"))] = (Attr){.i = 2, .ints = dilation};
    attr[attr_index(op, STR("groups"))] = (Attr){.i = p->conv.groups};
    if (p->transposed)
        attr[attr_index(op, STR("size"))] = (Attr){.i = 2, .ints = size};
    return rewrite_build(p->rw, op, (ValueId[]){images, weight, bias}, bias == NONE ? 2 : 3, attr);
}

typedef struct Tap {
    int64_t begin, count, step; /* slices of the padded volume that it sees */
    int64_t number;             /* in the weight */
    bool first;                 /* of those that are added up, which takes the bias */
} Tap;

/* What the tap gives; `volume` is [n, d, c, h, w], with its padding in depth. */
static ValueId convolve_tap(Planes *p, ValueId volume, const Tap *tap)
{
    ValueId weight = p->node->in[1], bias = tap->first && p->node->in_count > 2 ? p->node->in[2] : NONE;
    Shape from = *value_shape(p->rw->graph, volume), all = *value_shape(p->rw->graph, weight);
    Shape images = {4, {from.dim[0] * tap->count, from.dim[2], from.dim[3], from.dim[4]}};
    Shape taps = {4, {all.dim[0], all.dim[1], all.dim[3], all.dim[4]}};
    ValueId seen = rewrite_reshape(p->rw, rewrite_slice(p->rw, volume, 1, tap->begin, tap->count, tap->step), &images);
    return convolve(p, seen, rewrite_reshape(p->rw, rewrite_slice(p->rw, weight, 2, tap->number, 1, 1), &taps), bias);
}

static ValueId convolve_volume(Planes *p)
{
    const WindowDimension *d = p->conv.window.dim;
    ValueId volume = exchange_channels(p, padded(p, p->node->in[0], d[0].before, d[0].after)), sum = NONE;
    for (int64_t t = 0; t < d[0].size; t++) {
        ValueId one = convolve_tap(p, volume, &(Tap){t * d[0].dilation, d[0].out, d[0].stride, t, t == 0});
        sum = t ? rewrite_build2(p->rw, OP_ADD, sum, one) : one;
    }
    Shape shape = {5, {p->conv.images, d[0].out, p->conv.outputs, d[1].out, d[2].out}};
    return exchange_channels(p, rewrite_reshape(p->rw, sum, &shape));
}

/* Transposed */

static int64_t phases(const WindowDimension *d)
{
    return d->stride < d->in ? d->stride : d->in;
}

/* The results begin, begin + stride, ... in depth. */
static ConvolutionPhase phase_in_depth(const Planes *p, int64_t begin)
{
    const WindowDimension *d = p->conv.window.dim;
    return convolution_phase_of(p->rw->graph, p->node, (uint32_t)(begin * phases(&d[1]) * phases(&d[2])));
}

/* `count` of them; `front` slices of zeros stand before the volume. */
static ValueId results_of_phase(Planes *p, ValueId volume, int64_t begin, int64_t count, int64_t front)
{
    ConvolutionPhase phase = phase_in_depth(p, begin);
    const WindowDimension *d = &phase.conv.window.dim[0];
    ValueId sum = NONE;
    for (int64_t t = 0; t < d->size; t++) {
        Tap tap = {front - d->before + t * d->dilation, count, 1, phase.tap_begin[0] + phase.tap_step[0] * t, t == 0};
        ValueId one = convolve_tap(p, volume, &tap);
        sum = t ? rewrite_build2(p->rw, OP_ADD, sum, one) : one;
    }
    return sum;
}

/* All phases have as many results as the first, those past the end are left out. */
static ValueId transpose_volume(Planes *p)
{
    const WindowDimension *d = p->conv.window.dim;
    int64_t strides = phases(&d[0]), count = (d[0].in + strides - 1) / strides, front = 0, behind = 0;
    for (int64_t r = 0; r < strides; r++) {
        ConvolutionPhase phase = phase_in_depth(p, r);
        const WindowDimension *w = &phase.conv.window.dim[0];
        int64_t end = count + w->dilation * (w->size - 1) - w->before - w->in;
        front = w->before > front ? w->before : front;
        behind = end > behind ? end : behind;
    }
    ValueId volume = exchange_channels(p, padded(p, p->node->in[0], front, behind));
    ValueId *part = ARENA_ARRAY(p->rw->scratch, ValueId, (size_t)strides);
    Shape one = {6, {p->conv.images, count, 1, p->conv.channels, d[1].in, d[2].in}};
    Shape all = {5, {p->conv.images, count * strides, p->conv.channels, d[1].in, d[2].in}};
    for (int64_t r = 0; r < strides; r++)
        part[r] = rewrite_reshape(p->rw, results_of_phase(p, volume, r, count, front), &one);
    Attr axis = {.i = 2};
    ValueId y = strides > 1 ? rewrite_build(p->rw, OP_CONCAT, part, (uint32_t)strides, &axis) : part[0];
    y = rewrite_reshape(p->rw, y, &all);
    return exchange_channels(p, all.dim[1] > d[0].in ? rewrite_slice(p->rw, y, 1, 0, d[0].in, 1) : y);
}

static bool is_of_volume(const Graph *graph, const Node *node, const Convolution *conv)
{
    DType dtype = value_type(graph, node->in[0])->dtype;
    return conv->window.rank == 3 && !node->mark && (dtype == DT_F32 || dtype == DT_F64) &&
           shape_elements(value_shape(graph, node->in[0])) > 0 && shape_elements(value_shape(graph, node->out[0])) > 0;
}

/* Results that no tap reaches are left to others. */
static bool has_full_phases(const Planes *p)
{
    const WindowDimension *d = &p->conv.window.dim[0];
    bool full = true;
    for (int64_t r = 0; r < phases(d); r++) {
        ConvolutionPhase phase = phase_in_depth(p, r);
        const WindowDimension *w = &phase.conv.window.dim[0];
        full &= w->before < w->in + w->out;
    }
    return full;
}

static ValueId planes_rule(Rewriter *rw, const Node *node)
{
    Planes p = {.rw = rw, .node = node};
    if (convolution_of(rw->graph, node, &p.conv))
        return is_of_volume(rw->graph, node, &p.conv) ? convolve_volume(&p) : NONE;
    p.transposed = convolution_transposed_of(rw->graph, node, &p.conv);
    return p.transposed && is_of_volume(rw->graph, node, &p.conv) && has_full_phases(&p) ? transpose_volume(&p) : NONE;
}

bool pass_planes(Graph *graph, PassContext *context)
{
    rewrite_graph(graph, context, planes_rule);
    return true;
}
