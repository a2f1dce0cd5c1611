/* Transposed convolutions become convolutions whose outputs are put together.
 * Needs: a verified graph.  Keeps: results, but for the order in which sums are added up.
 * With a stride of s there are s x s kinds of results, the phases, by which taps of the weight they see.  Kernels
 * compute one after the other, of as many outputs as the layer has; here the outputs of all phases are those of one
 * convolution, a window of k / s x k / s taps over the small image, which are then interleaved (Shi et al.,
 * arXiv 1609.07009, which calls it sub-pixel convolution):
 *
 *     y = conv2d_transpose(x, w)            w: [channels, outputs, k, k]
 *
 *     v = w up to whole strides             [channels, outputs, taps, s, taps, s]
 *     v = phases first, taps in reverse     [outputs * s * s, channels, taps, taps]
 *     z = conv2d(x, v)                      [n, outputs, s, s, rows, columns]
 *     y = phases beside their pixel         [n, outputs, rows * s, columns * s], without the padding
 *
 * A window within its stride leaves results between that see no tap: zeros, or the bias, which are put there.
 *
 * It is for layers whose outputs leave most of a vector idle, as the last one of a generator or of what makes images
 * larger, where weights are constants, and for strides of more phases than kernels have texts for. */
#include "passes/phases.h"

#include <string.h>

#include "base/number.h"
#include "ops/meaning.h"
#include "passes/rewrite.h"
#include "passes/widen.h"

/* Cycles of an element that is put beside its pixel, where a vector is multiplied and added in one. */
#define INTERLEAVE_CYCLES 2
#define SCATTERS          2 /* phases one after the other count for one cycle more in so many, where they are not wanted */
#define MANY_PHASES       8 /* in a row */
#define MOST_FILLED       4 /* as large as what is asked for, in a dimension or in all: with rests of strides */

typedef struct Phases {
    Rewriter *rw;
    const Node *node;
    Convolution conv; /* whose image the node gives */
    uint32_t rank;
    int64_t outputs;
    int64_t count, strides;   /* phases that see taps, and all */
    int64_t seen[MAX_RANK];   /* phases of a dimension that see taps, ... */
    int64_t taps[MAX_RANK];   /* ... and how many each */
    int64_t rows[MAX_RANK];   /* of the image of phases, ... */
    int64_t before[MAX_RANK]; /* ... zeros in front of what it is made of, and behind, ... */
    int64_t after[MAX_RANK];
    int64_t crop[MAX_RANK]; /* ... and results before the first */
} Phases;

static bool see(Rewriter *rw, const Node *node, Phases *p)
{
    *p = (Phases){.rw = rw, .node = node, .count = 1, .strides = 1};
    if (node->mark || !convolution_transposed_of(rw->graph, node, &p->conv) || p->conv.window.rank > 2 ||
        !shape_elements(value_shape(rw->graph, node->in[0])) || !shape_elements(value_shape(rw->graph, node->out[0])))
        return false;
    p->rank = p->conv.window.rank;
    p->outputs = p->conv.channels;
    for (uint32_t d = 0; d < p->rank; d++) {
        const WindowDimension *w = &p->conv.window.dim[d];
        int64_t taps = ceil_div(w->size, w->stride), skipped = w->before / w->stride, span = (taps - 1) * w->dilation;
        skipped = skipped < span ? skipped : span;
        p->taps[d] = taps;
        p->before[d] = span - skipped;
        p->crop[d] = w->before - skipped * w->stride;
        p->rows[d] = ceil_div(p->crop[d] + w->in, w->stride);
        int64_t least = w->out - skipped; /* without zeros behind */
        p->after[d] = p->rows[d] > least ? p->rows[d] - least : 0;
        p->rows[d] = least + p->after[d];
        p->seen[d] = w->size < w->stride ? w->size : w->stride;
        p->count *= p->seen[d];
        p->strides *= w->stride;
        if ((w->dilation != 1 && w->stride != 1) || w->before < 0)
            return false; /* taps of one phase are side by side, or it is the only one */
    }
    return true;
}

/* Of results of one dimension: those that fill no blocks of channels are apart, or there are many texts. */
static bool wants_together(const Phases *p)
{
    return p->rank == 1 && (p->outputs % p->rw->context->lanes || p->count >= MANY_PHASES);
}

/* Vectors that a pixel of the image is multiplied by, one phase after the other and all in one. */
static bool saves_cycles(const Phases *p, int64_t lanes)
{
    int64_t size = 1, taps = 1;
    for (uint32_t d = 0; d < p->rank; d++) {
        size *= p->conv.window.dim[d].size;
        taps *= p->taps[d];
    }
    int64_t apart = size * p->conv.outputs * ceil_div(p->outputs, lanes);
    int64_t together = taps * p->conv.outputs * ceil_div(p->outputs * p->count, lanes);
    apart += wants_together(p) ? apart / SCATTERS : 0;
    return apart > together + INTERLEAVE_CYCLES * p->outputs * p->count;
}

/* Taps of zeros that fill up the weight would make a NaN of an infinity. */
static bool is_exact(const Phases *p)
{
    bool whole = true;
    for (uint32_t d = 0; d < p->rank; d++)
        whole &= p->conv.window.dim[d].size % p->seen[d] == 0;
    return whole;
}

/* Strides far beyond the result make what is cut off for the most part. */
static bool is_dense(const Phases *p)
{
    int64_t rows = 1, results = 1;
    for (uint32_t d = 0; d < p->rank; d++) {
        const WindowDimension *w = &p->conv.window.dim[d];
        if (p->rows[d] * w->stride > MOST_FILLED * w->in)
            return false;
        rows *= p->rows[d] * w->stride, results *= w->in;
    }
    return rows <= MOST_FILLED * results;
}

/* The phases are in memory beside the result: where kernels do without, they must be no larger than the image, but
 * where those would have many long texts. */
static bool is_worth(const Phases *p)
{
    const Rewriter *rw = p->rw;
    ValueId weight = p->node->in[1];
    if (!is_dense(p) || (rw->context->exact && !is_exact(p)))
        return false;
    bool fits = p->outputs * p->count <= p->conv.outputs || (p->rank == 1 && p->count >= MANY_PHASES);
    return p->strides > MOST_PHASES ||
           (fits && p->conv.groups == 1 && rewrite_constant(rw, weight) && !widen_is(rw->graph, rw->constant, weight) &&
            saves_cycles(p, rw->context->lanes));
}

/* The weight */

static ValueId whole_strides(const Phases *p, ValueId weight)
{
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0}, sum = 0;
    Attr attr[3];
    for (uint32_t d = 0; d < p->rank; d++)
        sum += after[2 + d] = p->taps[d] * p->seen[d] - p->conv.window.dim[d].size;
    attr_defaults(OP_PAD, attr);
    attr[attr_index(OP_PAD, STR("before"))] = (Attr){.i = 2 + p->rank, .ints = before};
    attr[attr_index(OP_PAD, STR("after"))] = (Attr){.i = 2 + p->rank, .ints = after};
    return sum ? rewrite_build(p->rw, OP_PAD, &weight, 1, attr) : weight;
}

static ValueId reversed(Rewriter *rw, ValueId x, int64_t axis)
{
    int64_t extent = value_shape(rw->graph, x)->dim[axis], begin = extent - 1, end = -extent - 1, step = -1;
    Attr attr[4];
    attr[attr_index(OP_SLICE, STR("axes"))] = (Attr){.i = 1, .ints = &axis};
    attr[attr_index(OP_SLICE, STR("begin"))] = (Attr){.i = 1, .ints = &begin};
    attr[attr_index(OP_SLICE, STR("end"))] = (Attr){.i = 1, .ints = &end};
    attr[attr_index(OP_SLICE, STR("step"))] = (Attr){.i = 1, .ints = &step};
    return extent > 1 ? rewrite_build(rw, OP_SLICE, &x, 1, attr) : x;
}

static ValueId transposed(Rewriter *rw, ValueId x, const int64_t *axes, uint32_t rank)
{
    Attr attr = {.i = rank, .ints = axes};
    return rewrite_build(rw, OP_TRANSPOSE, &x, 1, &attr);
}

/* Dimensions of the parts: groups, channels and outputs of one, then the taps and the phase of each dimension. */
static ValueId weight_of_phases(const Phases *p)
{
    Rewriter *rw = p->rw;
    int64_t groups = p->conv.groups, channels = p->conv.outputs / groups, outputs = p->outputs / groups;
    Shape parts = {3 + 2 * p->rank, {groups, channels, outputs}},
          all = {2 + p->rank, {p->outputs * p->count, channels}};
    int64_t axes[MAX_RANK] = {0, 2};
    axes[2 + p->rank] = 1;
    for (uint32_t d = 0; d < p->rank; d++) {
        parts.dim[3 + 2 * d] = all.dim[2 + d] = p->taps[d];
        parts.dim[4 + 2 * d] = p->seen[d];
        axes[2 + d] = 4 + 2 * d;
        axes[3 + p->rank + d] = 3 + 2 * d;
    }
    ValueId weight = rewrite_reshape(rw, whole_strides(p, p->node->in[1]), &parts);
    for (uint32_t d = 0; d < p->rank; d++)
        weight = reversed(rw, weight, 3 + 2 * d);
    return rewrite_reshape(rw, transposed(rw, weight, axes, parts.rank), &all);
}

static ValueId bias_of_phases(const Phases *p)
{
    Shape one = {2, {p->outputs, 1}}, each = {2, {p->outputs, p->count}}, all = {1, {p->outputs * p->count}};
    ValueId bias = rewrite_reshape(p->rw, p->node->in[2], &one);
    return rewrite_reshape(p->rw, rewrite_broadcast(p->rw, bias, &each), &all);
}

/* The image */

static ValueId convolve(const Phases *p)
{
    static const OpCode op_of_rank[] = {[1] = OP_CONV1D, [2] = OP_CONV2D};
    OpCode op = op_of_rank[p->rank];
    int64_t ones[MAX_RANK], dilation[MAX_RANK], pad[2 * MAX_RANK];
    Attr attr[4];
    for (uint32_t d = 0; d < p->rank; d++) {
        ones[d] = 1;
        dilation[d] = p->conv.window.dim[d].dilation;
        pad[d] = p->before[d];
        pad[p->rank + d] = p->after[d];
    }
    attr[attr_index(op, STR("stride"))] = (Attr){.i = p->rank, .ints = ones};
    attr[attr_index(op, STR("pad"))] = (Attr){.i = 2 * p->rank, .ints = pad};
    attr[attr_index(op, STR("dilation"))] = (Attr){.i = p->rank, .ints = dilation};
    attr[attr_index(op, STR("groups"))] = (Attr){.i = p->conv.groups};
    bool has_bias = p->node->in_count > 2 && p->count == p->strides;
    ValueId in[] = {p->node->in[0], weight_of_phases(p), has_bias ? bias_of_phases(p) : NONE};
    return rewrite_build(p->rw, op, in, has_bias ? 3 : 2, attr);
}

/* [n, outputs, rows, phases, ...], with zeros for phases that see no tap. */
static ValueId fill_strides(const Phases *p, ValueId x)
{
    uint32_t rank = 2 + 2 * p->rank;
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    Attr attr[3];
    for (uint32_t d = 0; d < p->rank; d++)
        after[3 + 2 * d] = p->conv.window.dim[d].stride - p->seen[d];
    attr_defaults(OP_PAD, attr);
    attr[attr_index(OP_PAD, STR("before"))] = (Attr){.i = rank, .ints = before};
    attr[attr_index(OP_PAD, STR("after"))] = (Attr){.i = rank, .ints = after};
    return p->count < p->strides ? rewrite_build(p->rw, OP_PAD, &x, 1, attr) : x;
}

/* To all results, also those that no phase has made. */
static ValueId add_bias(const Phases *p, ValueId y)
{
    Shape each = {1 + p->rank, {p->outputs, 1, 1}};
    if (p->node->in_count < 3 || p->count == p->strides)
        return y;
    return rewrite_build2(p->rw, OP_ADD, y, rewrite_reshape(p->rw, p->node->in[2], &each));
}

static ValueId interleave(const Phases *p, ValueId phases)
{
    Shape parts = {2 + 2 * p->rank, {p->conv.images, p->outputs}}, all = {2 + p->rank, {p->conv.images, p->outputs}};
    int64_t axes[MAX_RANK] = {0, 1};
    for (uint32_t d = 0; d < p->rank; d++) {
        parts.dim[2 + d] = p->seen[d];
        parts.dim[2 + p->rank + d] = p->rows[d];
        all.dim[2 + d] = p->rows[d] * p->conv.window.dim[d].stride;
        axes[2 + 2 * d] = 2 + p->rank + d;
        axes[3 + 2 * d] = 2 + d;
    }
    ValueId y = transposed(p->rw, rewrite_reshape(p->rw, phases, &parts), axes, parts.rank);
    y = rewrite_reshape(p->rw, fill_strides(p, y), &all);
    for (uint32_t d = 0; d < p->rank; d++)
        if (p->conv.window.dim[d].in < all.dim[2 + d])
            y = rewrite_slice(p->rw, y, 2 + d, p->crop[d], p->conv.window.dim[d].in, 1);
    return add_bias(p, y);
}

static ValueId phases_rule(Rewriter *rw, const Node *node)
{
    Phases p;
    return see(rw, node, &p) && is_worth(&p) ? interleave(&p, convolve(&p)) : NONE;
}

bool pass_phases(Graph *graph, PassContext *context)
{
    rewrite_graph(graph, context, phases_rule);
    return true;
}
