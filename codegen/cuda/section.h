/* Sections of a kernel (program/step.h) as __global__ functions. */
#ifndef NNC_CUDA_SECTION_H
#define NNC_CUDA_SECTION_H

#include "c/expr.h"
#include "program/step.h"

/* `static __global__ void name(const float *__restrict__ x, ...) { ... }`.  Parameters are the used buffers but for
 * those in `global`, which are device arrays known by name. */
void cuda_print_section(Printer *printer, const Section *section, const bool *aliased, const bool *global);

#endif
