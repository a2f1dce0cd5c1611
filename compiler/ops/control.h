/* Changes of loops and branches, for passes; what they mean is in ops/meaning.h.  A node's operands and the inputs of
 * all its bodies change together. */
#ifndef NNC_OPS_CONTROL_H
#define NNC_OPS_CONTROL_H

#include "ops/meaning.h"

/* The number of carried values, the bound of rounds and the rounds in one that `loop` has; its bodies are the node's.
 */
void loop_set(Graph *graph, Node *node, const Loop *loop);
/* Makes a value of the graph an input of all bodies, if it is none yet; which operand it is. */
uint32_t node_capture(Graph *graph, Node *node, ValueId value);
/* Which input of the bodies an operand is; not for a selector. */
uint32_t node_input(const Graph *graph, const Node *node, uint32_t operand);
/* Drops operands, one flag each, which no body reads; of carried ones the outputs and the results, which nobody reads,
 * too.  One carried value stays at least. */
void node_drop(Graph *graph, Node *node, const bool *drop);
/* Drops results of a branch, one flag each, which nobody reads.  One stays at least. */
void node_drop_results(Graph *graph, Node *node, const bool *drop);

#endif
