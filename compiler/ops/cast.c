/* Conversion to another dtype, of numbers or of what their bits stand for.  Among integers the low bits are kept;
 * floats to integers truncate, values out of range take the nearest end and NaN gives 0; to bool, everything but 0 is
 * true. */
#include "ops/infer.h"

#include <string.h>

#include "ops/elements.h"
#include "ir/attr.h"
#include "ops/families.h"
#include "ops/meaning.h"

bool infer_cast(Graph *graph, NodeId node)
{
    const Type *type = infer_in_type(graph, node, 0);
    DType to = (DType)attr_int(&graph->node[node], "to");
    bool bits = op_keeps_bits(graph->node[node].op);

    if (bits && dtype_bytes(type->dtype) != dtype_bytes(to))
        return infer_fail(graph, node, "%s has %u bytes, not %u: " STR_FMT, dtype_name(to), dtype_bytes(to),
                          dtype_bytes(type->dtype), STR_ARG(infer_show_operand(graph, node, 0)));
    if (bits && to != type->dtype && (to == DT_BOOL || type->dtype == DT_BOOL))
        return infer_fail(graph, node, "a bool is 0 or 1, and no other bits: " STR_FMT,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    return infer_set_result(graph, node, 0, to, &type->shape, type->layout);
}

bool op_keeps_bits(OpCode op)
{
    return op == OP_BITCAST;
}

bool node_passes_elements(const Node *node)
{
    return node_is_view(node) || (op_info(node->op)->family == FAMILY_CAST && !op_keeps_bits(node->op));
}

#define CHUNK 1024

void eval_cast(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    Compute compute = elements_compute_exact(in[0]->type->dtype);
    int64_t numbers[CHUNK], elements = shape_elements(&out[0]->type->shape);

    (void)graph;
    if (op_keeps_bits(node->op)) {
        memcpy(out[0]->data, in[0]->data, (size_t)elements * dtype_bytes(out[0]->type->dtype));
        return;
    }
    for (int64_t start = 0; start < elements; start += CHUNK) {
        int64_t count = elements - start < CHUNK ? elements - start : CHUNK;
        elements_load_plain(in[0], start, count, compute, numbers);
        elements_store(out[0], start, count, compute, numbers);
    }
}
