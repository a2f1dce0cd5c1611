/* What nodes cost to compute. */
#include "base/number.h"
#include "ops/meaning.h"

#define DRAW_WORK 100 /* ten rounds of Philox for four numbers */

static int64_t window_elements(const Window *window)
{
    int64_t elements = 1;
    for (uint32_t d = 0; d < window->rank; d++)
        elements *= window->dim[d].size;
    return elements;
}

/* Of a transposed convolution: taps between its strides meet nothing. */
static int64_t phase_macs(const ConvolutionPhase *phase)
{
    const Convolution *conv = &phase->conv;
    int64_t macs = conv->images * conv->outputs * (conv->channels / conv->groups);
    for (uint32_t d = 0; d < conv->window.rank; d++)
        macs *= conv->window.dim[d].out * conv->window.dim[d].size;
    return macs;
}

int64_t node_macs(const Graph *graph, const Node *node)
{
    if (!node_is_contraction(graph, node))
        return 0;
    uint32_t phases = convolution_phase_count(graph, node);
    int64_t macs = 0;
    for (uint32_t i = 0; phases > 1 && i < phases; i++) {
        ConvolutionPhase phase = convolution_phase_of(graph, node, i);
        if (!convolution_phase_is_empty(&phase))
            macs = number_plus(macs, phase_macs(&phase));
    }
    if (phases > 1)
        return macs;
    Contraction contraction = contraction_of(graph, node);
    return shape_elements(value_shape(graph, node->out[0])) * contraction_extent(&contraction, AXIS_SUM) *
           contraction_extent(&contraction, AXIS_TAP);
}

int64_t node_flops(const Graph *graph, const Node *node)
{
    int64_t results = shape_elements(value_shape(graph, node->out[0]));
    switch (op_info(node->op)->family) {
    case FAMILY_ELEMENTWISE:
    case FAMILY_DRAW:
    case FAMILY_CUMULATE:
        return results;
    case FAMILY_REDUCE:
        return shape_elements(value_shape(graph, node->in[0]));
    case FAMILY_SORT:
        return sorting_comparisons(graph, node);
    case FAMILY_POOL:
    case FAMILY_MATCH: {
        Reduction reduction = reduction_of(graph, node);
        return results * window_elements(&reduction.window);
    }
    case FAMILY_GATHER:
        return node_is_scatter(node) ? shape_elements(value_shape(graph, node->in[2])) : 0;
    case FAMILY_CONTRACT:
        return 2 * node_macs(graph, node);
    default:
        return 0;
    }
}

int64_t node_work(const Graph *graph, const Node *node)
{
    const ScalarList *scalar = op_info(node->op)->scalar;
    int64_t each = scalar ? word_list_work(scalar) : node_is_random(node) ? DRAW_WORK : 1;
    return number_times(node_flops(graph, node), each);
}

int64_t ops_flops(const Graph *graph)
{
    int64_t flops = 0;
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead)
            flops = number_plus(flops, node_flops_nested(graph, &graph->node[n]));
    return flops;
}

int64_t node_flops_nested(const Graph *graph, const Node *node)
{
    int64_t flops = 0;
    if (!node_has_bodies(node))
        return node->out_count ? node_flops(graph, node) : 0;
    for (uint32_t i = 0; i < node->sub_count; i++)
        flops = number_plus(flops, ops_flops(node->sub[i]));
    int64_t rounds = node_is_loop(node) ? loop_of(graph, node).most : 1;
    return number_times(flops, rounds ? rounds : 1);
}

bool node_is_expensive(const Node *node)
{
    const ScalarList *scalar = op_info(node->op)->scalar;
    return node_is_random(node) || (scalar && word_list_is_expensive(scalar));
}
