/* The one fatal path of the tool: the environment failed (memory, disk), not the input and not our code.
 * Prints `nnc: fatal: ...` to stderr and exits with status 3. */
#ifndef NNC_BASE_FATAL_H
#define NNC_BASE_FATAL_H

#include <stddef.h>

_Noreturn void fatal_memory(size_t bytes);

#endif
