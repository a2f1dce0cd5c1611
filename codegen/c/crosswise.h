/* Kernels that read an array both ways, along its rows and along its columns (crosswise.c). */
#ifndef NNC_C_CROSSWISE_H
#define NNC_C_CROSSWISE_H

#include "kernel/kernel.h"

/* Is an array loaded at places some of which go with a variable of a loop by one step, and some by another? */
bool crosswise_reads(const Kernel *kernel, Arena *arena);

#endif
