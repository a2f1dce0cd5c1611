/* How many rounds a loop runs, where that is known when compiling. */
#ifndef NNC_PASSES_ROUNDS_H
#define NNC_PASSES_ROUNDS_H

#include "passes/pass.h"

/* The rounds of a loop whose condition hangs on constants alone (elements at hand; params when frozen), by running what
 * it hangs on; false when it does not, or when that takes more than *work (as of eval_graph_within). */
bool constant_rounds(Graph *graph, const Node *node, const PassContext *context, int64_t *work, int64_t *rounds);

/* The same with some effort, little where the loop has a bound that could do; -1 where they are not known. */
int64_t rounds_known(Graph *graph, const Node *node, const PassContext *context);

/* The most rounds that a loop runs, at least 1: as it says, or as rounds_known finds; 0 where nobody knows. */
int64_t rounds_bound(Graph *graph, const Node *node, const PassContext *context);

/* The elements of a value that is known when compiling, and no node has to be run for; else NULL. */
const Tensor *constant_tensor(Graph *graph, ValueId value, const PassContext *context);

#endif
