/* The verifier: what every graph must satisfy between passes.  A broken graph is our bug, never the user's. */
#ifndef NNC_IR_VERIFY_H
#define NNC_IR_VERIFY_H

#include "ir/graph.h"

/* Checks indices, single producers, order (operands before users), operand counts, types present, updates of params and
 * states only, in-place values, sub-graphs.  True, or false with what is wrong in `message`. */
bool graph_verify(const Graph *graph, Arena *arena, Str *message);

#endif
