/* The one fatal path: the environment failed (memory), not the input and not our code.
 *
 * The tool prints `nnc: fatal: ...` to stderr and exits with status 3.  A library must not: it sets a trap around its
 * work, and fatal_memory jumps back to it.  What the work has allocated outside of arenas that the trap's owner knows
 * is lost, and what it was changing is half changed.  Traps are a thread's own, and nest. */
#ifndef NNC_BASE_FATAL_H
#define NNC_BASE_FATAL_H

#include <setjmp.h>
#include <stddef.h>

_Noreturn void fatal_memory(size_t bytes);

typedef struct FatalTrap {
    jmp_buf jump; /* for setjmp, before fatal_set */
    size_t bytes; /* that were asked for */
    struct FatalTrap *outer;
} FatalTrap;

void fatal_set(FatalTrap *trap);
void fatal_release(FatalTrap *trap); /* the one set last; one that has been jumped to is released already */

#endif
