/* The verifier: what every graph must satisfy between passes.  A broken graph is our bug, never the user's. */
#ifndef NNC_IR_VERIFY_H
#define NNC_IR_VERIFY_H

#include "ir/graph.h"

/* Checks indices, single producers, order (operands before users), operand counts, types present, updates of params and
 * states only, in-place values, sub-graphs, and that these fit their node.  True, or false with what is wrong in
 * `message`. */
bool graph_verify(const Graph *graph, Arena *arena, Str *message);

/* What is wrong with the sub-graphs of a loop or a branch, seen from the node: counts, types, roles; NULL when nothing
 * is.  For graph_verify, which has looked at the node and its operands before. */
const char *graph_verify_bodies(const Graph *graph, const Node *node);

#endif
