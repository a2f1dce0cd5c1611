/* What kernels keep for others, for fuse (keep.c). */
#ifndef NNC_KERNEL_KEEP_H
#define NNC_KERNEL_KEEP_H

#include "ir/graph.h"

#define MOST_NODES 48 /* in one kernel */

/* What fuse knows of the graph. */
typedef struct KeepContext {
    Users users;
    const bool *live_out;        /* per value */
    const uint32_t *ends;        /* per node: how many flow nodes come before */
    const struct Target *target; /* NULL: none */
    bool expensive;              /* exponentials and the like may be computed again, too */
} KeepContext;

/* Per value of a graph whose nodes have their kernels: kernels other than its own compute it again, instead of reading
 * it from memory. */
const bool *keep_find(const Graph *graph, Arena *arena, const KeepContext *context);

/* Removes elementwise nodes and casts that nobody reads any more. */
void keep_drop(Graph *graph, Arena *arena);

#endif
