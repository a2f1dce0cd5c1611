/* Late nodes: elementwise ones of values that wait for a gradient (`after`), which compute again what was not kept.
 *
 * They could run as soon as that gradient is there, but belong to the kernel that first reads what they make, where it
 * may be in registers: of the result of a GELU, which the gradient of the weight behind it reads, to the kernel of the
 * GELU's own gradient. */
#ifndef NNC_KERNEL_LATE_H
#define NNC_KERNEL_LATE_H

#include "kernel/fuser.h"

/* Is the node late, whose latest operand is from the kernel?  Then it has none yet: others are placed first. */
bool late_find(Fuser *fuser, uint32_t n, uint32_t kernel);
/* Does the node read what late ones make? */
bool late_reads(const Fuser *fuser, const Node *node);
/* Gives them kernels, when all others have theirs, and numbers kernels anew. */
void late_place(Fuser *fuser);

#endif
