/* Layout where images are made of tokens, or tokens of images: views turn [pixels, channels], whose channels lie side
 * by side, into [channels, height, width] and back.  Blocks of channels go there and come from there by whole vectors;
 * planes would be turned element by element, and whoever read tokens off planes would step over a plane for each. */
#include "passes/layout.h"

#include "ops/meaning.h"
#include "ops/strided.h"

static bool is_view(const Node *node)
{
    return node_is_view(node) && !view_only_waits(node) && node->out_count == 1;
}

/* Of the view's operand the dimension that this one of its result is, all of it in order; NONE. */
static uint32_t dimension_behind(const Graph *graph, const Node *node, uint32_t dimension)
{
    const Shape *x = value_shape(graph, node->in[0]), *out = value_shape(graph, node->out[0]);
    View view = view_of(graph, node, 0);
    for (uint32_t d = 0; d < x->rank; d++)
        if (x->dim[d] == out->dim[dimension] &&
            (view.kind == VIEW_STRIDED ? view.from[d] == dimension && view.step[d] == 1 && view.slid != d
                                       : strided_plain(x).stride[d] == strided_plain(out).stride[dimension]))
            return d;
    return NONE;
}

/* Of its result the dimension that this one of the operand is; NONE. */
static uint32_t dimension_ahead(const Graph *graph, const Node *node, uint32_t dimension)
{
    uint32_t rank = value_shape(graph, node->out[0])->rank;
    for (uint32_t d = 0; d < rank; d++)
        if (dimension_behind(graph, node, d) == dimension)
            return d;
    return NONE;
}

bool layout_lies_by_pixels(const Graph *graph, const Node *order, ValueId image)
{
    ValueId source = image;
    uint32_t channels = 1;
    for (;;) {
        const Value *value = graph_value(graph, source);
        const Node *node = value->role == ROLE_RESULT ? &order[value->node] : NULL;
        if (!node || !is_view(node))
            break;
        channels = dimension_behind(graph, node, channels);
        if (channels == NONE)
            return false;
        source = node->in[0];
    }
    const Type *type = value_type(graph, source);
    return source != image && !type->layout.block && channels + 1 == type->shape.rank;
}

NodeId layout_tokens_of(const Graph *graph, const Users *users, const bool *live_out, NodeId first)
{
    uint32_t channels = 1;
    for (NodeId n = first; is_view(&graph->node[n]); n = users->user[users->first[graph->node[n].out[0]]]) {
        ValueId result = graph->node[n].out[0];
        channels = dimension_ahead(graph, &graph->node[n], channels);
        if (channels == NONE)
            return NONE;
        if (channels + 1 == value_shape(graph, result)->rank)
            return n;
        if (live_out[result] || users->first[result + 1] - users->first[result] != 1)
            return NONE;
    }
    return NONE;
}
