#include "base/fatal.h"

#include <stdio.h>
#include <stdlib.h>

static _Thread_local FatalTrap *innermost;

void fatal_set(FatalTrap *trap)
{
    trap->outer = innermost;
    innermost = trap;
}

void fatal_release(FatalTrap *trap)
{
    innermost = trap->outer;
}

_Noreturn void fatal_memory(size_t bytes)
{
    FatalTrap *trap = innermost;
    if (trap) {
        innermost = trap->outer;
        trap->bytes = bytes;
        longjmp(trap->jump, 1);
    }
    fprintf(stderr, "nnc: fatal: out of memory (%zu bytes asked for)\n", bytes);
    exit(3);
}
