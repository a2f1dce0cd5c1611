/* Carried: do rounds of a loop go on with what others have left in registers? */
#ifndef NNC_STORAGE_CARRIED_H
#define NNC_STORAGE_CARRIED_H

#include "kernel/loop/loop.h"

/* The loop of the block, behind statements that only prepare registers, which each of several threads may do anew for
 * its rounds; NULL where there is another statement, or where a round reads what one before has left in a local. */
const Stmt *carried_only_loop(const Block *block, Arena *arena);

#endif
