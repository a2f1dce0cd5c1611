/* Conversion to another dtype.  Among integers the low bits are kept; floats to integers truncate, values out of range
 * take the nearest end and NaN gives 0; to bool, everything but 0 is true. */
#include "ops/infer.h"

#include "ops/elements.h"
#include "ir/attr.h"
#include "ops/families.h"

bool infer_cast(Graph *graph, NodeId node)
{
    const Type *type = infer_in_type(graph, node, 0);
    DType to = (DType)attr_int(&graph->node[node], "to");

    return infer_set_result(graph, node, 0, to, &type->shape, type->layout);
}

#define CHUNK 1024

void eval_cast(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    Compute compute = elements_compute_exact(in[0]->type->dtype);
    int64_t numbers[CHUNK], elements = shape_elements(&out[0]->type->shape);

    (void)graph, (void)node;
    for (int64_t start = 0; start < elements; start += CHUNK) {
        int64_t count = elements - start < CHUNK ? elements - start : CHUNK;
        elements_load_plain(in[0], start, count, compute, numbers);
        elements_store(out[0], start, count, compute, numbers);
    }
}
