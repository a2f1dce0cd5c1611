/* The rows of family_table; each pair lives in the file of its family. */
#ifndef NNC_OPS_FAMILIES_H
#define NNC_OPS_FAMILIES_H

#include "ops/family.h"

#define FAMILY(name)                                                                                                   \
    bool infer_##name(Graph *graph, NodeId node);                                                                      \
    void eval_##name(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out);
FAMILY(elementwise)
FAMILY(cast)
FAMILY(reduce)
FAMILY(cumulate)
FAMILY(contract)
FAMILY(pool)
FAMILY(view)
FAMILY(assemble)
FAMILY(gather)
FAMILY(dynamic)
FAMILY(generate)
FAMILY(draw)
FAMILY(layout)
FAMILY(control)
#undef FAMILY
bool infer_flow(Graph *graph, NodeId node);

#endif
