/* relayout: the same tensor, its elements elsewhere in memory.  The evaluator's tensors are always plain, so for it
 * this is the identity. */
#include "ops/infer.h"

#include <string.h>

#include "ir/attr.h"
#include "ops/families.h"

#define MOST_BLOCK 64

bool infer_layout(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    int64_t block = attr_int(&graph->node[node], "block");

    if (block < 0 || block > MOST_BLOCK)
        return infer_fail(graph, node, "`block` must be from 0 to %d, not %lld", MOST_BLOCK, (long long)block);
    if (block && !type_layout_dimensions(x->shape.rank))
        return infer_fail(graph, node, "blocks the channels of an image [n, c, h, w], or [n, c, w]: " STR_FMT,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    return infer_set_result(graph, node, 0, x->dtype, &x->shape, (Layout){(uint32_t)block});
}

void eval_layout(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    size_t bytes = (size_t)shape_elements(&in[0]->type->shape) * dtype_bytes(in[0]->type->dtype);
    (void)graph, (void)node;
    if (bytes)
        memcpy(out[0]->data, in[0]->data, bytes);
}
