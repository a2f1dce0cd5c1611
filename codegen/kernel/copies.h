/* Copies that are made whatever is fused, for fuse (copies.c). */
#ifndef NNC_KERNEL_COPIES_H
#define NNC_KERNEL_COPIES_H

#include "ir/graph.h"
#include "target.h"

/* The target may be NULL; `in_body`: the graph is the body of a loop or a branch. */
void kernel_add_copies(Graph *graph, const Target *target, bool in_body, Arena *scratch);

#endif
