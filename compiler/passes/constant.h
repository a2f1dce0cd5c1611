/* Which values are known when compiling. */
#ifndef NNC_PASSES_CONSTANT_H
#define NNC_PASSES_CONSTANT_H

#include "passes/pass.h"

/* May the evaluator stand in for this node, given constant operands? Pure, without sub-graphs, in plain layouts, and of
 * no tensor above 8 GiB, none above 256 MiB that is more than what it is made of, and of no more than 2^34 operations;
 * what takes longer is computed where the model runs. */
bool constant_is_foldable(const Graph *graph, const Node *node);
bool constant_has_operands(const Node *node, const bool *constant);

/* One flag per value: constants, params that are frozen (PassContext.freeze_params, not updated, with elements stored
 * or an initialiser), and what foldable nodes make of these. */
bool *constant_values(const Graph *graph, const PassContext *context, Arena *arena);

#endif
