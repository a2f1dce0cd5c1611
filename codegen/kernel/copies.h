/* Copies that are made whatever is fused, for fuse (copies.c). */
#ifndef NNC_KERNEL_COPIES_H
#define NNC_KERNEL_COPIES_H

#include "ir/graph.h"

void kernel_add_copies(Graph *graph, Arena *scratch);

#endif
