/* What lies inside what.  Fills in inside, operand, whole, settled, begin, stride and has_parts of every value's
 * storage; the other fields are cleared. */
#ifndef NNC_STORAGE_PARTS_H
#define NNC_STORAGE_PARTS_H

#include "kernel/kernel.h"

/* `kernel` are the graph's kernels in order of execution, not yet lowered.  Values in `copied` (or NULL) are not to be
 * parts.  Where `none` is set every assembly copies. */
Storages parts_place(Graph *graph, Arena *arena, const Kernel *kernel, uint32_t count, const bool *copied, bool none);

#endif
