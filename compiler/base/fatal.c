#include "base/fatal.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void fatal_memory(size_t bytes)
{
    fprintf(stderr, "nnc: fatal: out of memory (%zu bytes asked for)\n", bytes);
    exit(3);
}
