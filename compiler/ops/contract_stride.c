/* Pointwise convolutions with strides, which see only some pixels of their image. */
#include "ir/attr.h"
#include "ops/contract.h"
#include "ops/family.h"

bool convolution_skips_pixels(const Convolution *convolution)
{
    int64_t pixels = 1;
    for (uint32_t i = 0; i < convolution->window.rank; i++) {
        const WindowDimension *d = &convolution->window.dim[i];
        if (d->size != 1 || d->before || d->after)
            return false;
        pixels *= d->stride;
    }
    return pixels > 1;
}

static ValueId pixels_seen(Graph *graph, ValueId image, const Window *window, Place place)
{
    int64_t axes[MAX_RANK], begin[MAX_RANK] = {0}, end[MAX_RANK], step[MAX_RANK];
    for (uint32_t i = 0; i < window->rank; i++) {
        axes[i] = 2 + i;
        end[i] = window->dim[i].in;
        step[i] = window->dim[i].stride;
    }
    Attr attr[4];
    attr[attr_index(OP_SLICE, STR("axes"))] = (Attr){.i = window->rank, .ints = axes};
    attr[attr_index(OP_SLICE, STR("begin"))] = (Attr){.i = window->rank, .ints = begin};
    attr[attr_index(OP_SLICE, STR("end"))] = (Attr){.i = window->rank, .ints = end};
    attr[attr_index(OP_SLICE, STR("step"))] = (Attr){.i = window->rank, .ints = step};
    return op_build(graph, OP_SLICE, &image, 1, attr, place);
}

NodeId convolution_see_all(Graph *graph, NodeId n)
{
    Convolution convolution;
    convolution_of(graph, &graph->node[n], &convolution);
    ValueId seen = pixels_seen(graph, graph->node[n].in[0], &convolution.window, graph->node[n].place);
    Node *node = &graph->node[n];
    Attr *attr = arena_copy(graph->module->arena, node->attr, op_attr_count(node->op) * sizeof *attr);
    int64_t one = 1;
    attr[attr_index(node->op, STR("stride"))] =
        (Attr){.i = 1, .ints = arena_copy(graph->module->arena, &one, sizeof one)};
    node->attr = attr;
    node->in[0] = seen;
    return graph->value[seen].node;
}
