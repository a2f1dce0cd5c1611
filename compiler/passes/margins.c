/* Convolutions of long windows over one dimension read an image that has margins of zeros.
 * Needs: a verified graph, after simplify, which would undo it.  Keeps: results, but for infinite weights, whose
 * products with zeros are NaN.
 *
 * Kernels leave out the taps that fall outside the image, which is exact and free where they are few: each tile of
 * results near an end has steps of its own.  The ends of a window of 128 taps, as of the positions of wav2vec 2.0, cut
 * ten tiles, each in another way; half a megabyte of C says so.  With margins all tiles are alike, and the products
 * with zeros cost a few per cent; but the image lies in the arena once more, so shorter windows do without. */
#include "base/number.h"
#include "ops/meaning.h"
#include "passes/rewrite.h"

#define MANY_TAPS 48 /* of a window that may fall outside: some 120 kB of C */
#define FEW_LANES 4  /* whose tiles are few pixels, and whose machines are short of memory rather */
#define MOST_WORK 5  /* fourths of the products that there are */

/* Zeros that the last window reaches. */
static int64_t margin_behind(const WindowDimension *w)
{
    int64_t end = (w->out - 1) * w->stride + (w->size - 1) * w->dilation + 1;
    return end - w->before > w->in ? end - w->before - w->in : 0;
}

/* Windows whose tap falls on the image, of all taps. */
static int64_t products_inside(const WindowDimension *w)
{
    int64_t inside = 0;
    for (int64_t tap = 0; tap < w->size; tap++) {
        int64_t at = tap * w->dilation - w->before, end = ceil_div(w->in - at, w->stride);
        int64_t begin = at < 0 ? ceil_div(-at, w->stride) : 0;
        end = w->in <= at ? 0 : end < w->out ? end : w->out;
        inside += end > begin ? end - begin : 0;
    }
    return inside;
}

static bool is_worth(const Rewriter *rw, const Node *node, const Convolution *conv)
{
    const WindowDimension *w = &conv->window.dim[0];
    const Node *made = value_producer(rw->graph, node->in[0]);
    bool casts = made && op_info(made->op)->family == FAMILY_CAST; /* its reader would read what is narrow */
    bool depthwise = conv->outputs == conv->groups;
    if (conv->window.rank != 1 || node->mark || casts || depthwise || rw->context->exact ||
        rw->context->lanes <= FEW_LANES || value_type(rw->graph, node->in[0])->dtype != DT_F32 || w->before < 0 ||
        w->in < 1 || w->out < 1)
        return false;
    int64_t before = ceil_div(w->before, w->dilation), after = ceil_div(margin_behind(w), w->dilation);
    return (before >= MANY_TAPS || after >= MANY_TAPS) && w->size <= INT32_MAX / w->out &&
           4 * w->out * w->size <= MOST_WORK * products_inside(w);
}

static ValueId with_margins(Rewriter *rw, ValueId image, const WindowDimension *w)
{
    int64_t before[3] = {0, 0, w->before}, after[3] = {0, 0, margin_behind(w)};
    Attr attr[3];
    attr_defaults(OP_PAD, attr);
    attr[attr_index(OP_PAD, STR("before"))] = (Attr){.i = 3, .ints = before};
    attr[attr_index(OP_PAD, STR("after"))] = (Attr){.i = 3, .ints = after};
    return rewrite_build(rw, OP_PAD, &image, 1, attr);
}

static ValueId margins_rule(Rewriter *rw, const Node *node)
{
    Convolution conv;
    if (!convolution_of(rw->graph, node, &conv) || !is_worth(rw, node, &conv))
        return NONE;
    Node plain = *node; /* building moves the list of nodes */
    const WindowDimension *w = &conv.window.dim[0];
    int64_t none[2] = {0, 0};
    Attr attr[4];
    ValueId in[3] = {with_margins(rw, plain.in[0], w), plain.in[1], plain.in_count > 2 ? plain.in[2] : NONE};
    for (uint32_t i = 0; i < 4; i++)
        attr[i] = plain.attr[i];
    attr[attr_index(plain.op, STR("pad"))] = (Attr){.i = 2, .ints = none};
    return rewrite_build(rw, plain.op, in, plain.in_count, attr);
}

bool pass_margins(Graph *graph, PassContext *context)
{
    rewrite_graph(graph, context, margins_rule);
    return true;
}
