/* Copies that are made whatever is fused, for fuse (copies.c). */
#ifndef NNC_KERNEL_COPIES_H
#define NNC_KERNEL_COPIES_H

#include "ir/graph.h"
#include "target.h"

void kernel_add_copies(Graph *graph, const Target *target, Arena *scratch); /* target may be NULL */

#endif
