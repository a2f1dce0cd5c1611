/* Nodes that belong to whatever kernel reads them, for fuse (join.c). */
#ifndef NNC_KERNEL_JOIN_H
#define NNC_KERNEL_JOIN_H

#include "ir/graph.h"

/* Per node of a flat graph: slices at run-time positions that are read where they are, what goes with them, and what
 * widens weights. */
const bool *join_find(const Graph *graph, Arena *arena);

/* Gives them to the kernels of their readers, which are known by now, and to kernels of readers other than their own
 * copies of what makes the values that `again` names (keep.h).  Keeps the order of the other nodes. */
void join_kernels(Graph *graph, Arena *arena, const bool *joins, const bool *again);

#endif
