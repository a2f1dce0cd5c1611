/* Dealing: which rounds of a kernel's loops threads may run at once, in any order.
 *
 * The statements at the top of a kernel's body are its nests, and of each nest one loop is dealt: a part of the kernel
 * runs some of its rounds.  That parts do not get in each other's way is proved from the addresses, whatever the recipe
 * says of its loops: of all memory that the nests write and that is not each thread's own, every round has a window
 *
 *     base + span * round  ...  base + span * (round + 1) - 1,   but for multiples of a modulus that all rounds fit in
 *
 * and loads and stores of the round stay inside.  Nests whose windows are the same run together, as do those that touch
 * different bytes; others wait until those before them are done: that is another deal.  An operand in whose memory the
 * result is made is read at the element that is written (judge.c), hence in the same round.
 *
 * No sum is split and no order within a round is changed: results are the same bits for any number of threads. */
#ifndef NNC_STORAGE_DEAL_H
#define NNC_STORAGE_DEAL_H

#include "storage/memory.h"

/* In how many parts threads should share a kernel that has a recipe: 1 where it is done before they have met. */
uint32_t deal_parts(const Lower *lower, const Kernel *kernel, const MemoryOptions *options);

/* Fills in kernel->deal, when it is lowered and kernel->parts of it are wanted.  `all`: also nests that do little. */
void deal_kernel(Memory *memory, Kernel *kernel, bool all);

#endif
