/* What kernels keep for others, for fuse (keep.c). */
#ifndef NNC_KERNEL_KEEP_H
#define NNC_KERNEL_KEEP_H

#include "ir/graph.h"

#define MOST_NODES 48 /* in one kernel */

/* Per value of a graph whose nodes have their kernels: kernels other than its own compute it again, instead of reading
 * it from memory.  `expensive`: exponentials and the like, too. */
const bool *keep_find(const Graph *graph, Arena *arena, bool expensive);

/* Removes elementwise nodes that nobody reads any more. */
void keep_drop(Graph *graph, Arena *arena);

#endif
