/* The rows of family_table.  Inference and evaluation live in the file of their family, reverse mode in reverse*.c. */
#ifndef NNC_OPS_FAMILIES_H
#define NNC_OPS_FAMILIES_H

#include "ops/family.h"

#define FAMILY(name)                                                                                                   \
    bool infer_##name(Graph *graph, NodeId node);                                                                      \
    void eval_##name(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out);               \
    bool reverse_##name(Reverse *reverse);
FAMILY(elementwise)
FAMILY(cast)
FAMILY(reduce)
FAMILY(cumulate)
FAMILY(sort)
FAMILY(contract)
FAMILY(pool)
FAMILY(match)
FAMILY(view)
FAMILY(assemble)
FAMILY(gather)
FAMILY(dynamic)
FAMILY(generate)
FAMILY(draw)
FAMILY(layout)
FAMILY(control)
#undef FAMILY
bool infer_derivative(Graph *graph, NodeId node);
bool infer_flow(Graph *graph, NodeId node);

#endif
