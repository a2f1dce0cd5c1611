/* Between the evaluator and nodes with sub-graphs. */
#ifndef NNC_OPS_EVAL_H
#define NNC_OPS_EVAL_H

#include "ops/family.h"

/* A node with sub-graphs, as eval_graph_within. */
bool eval_control_within(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out,
                         int64_t *work);
/* eval_tolerance through the sub-graphs: of the operands, which it may raise, to the results. */
void eval_control_tolerance(const Graph *graph, const Node *node, Arena *arena, double *in, double *out);

#endif
