/* Sections: a kernel of the loop IR as __global__ functions.
 *
 * Each nest of parallel loops at the top of a kernel's body is a section, whose rounds become threads; what stands
 * between such nests runs in one thread.  Sections run one after another on the stream. */
#ifndef NNC_CUDA_SECTION_H
#define NNC_CUDA_SECTION_H

#include "c/expr.h"

#define BLOCK_THREADS 256 /* of a section whose threads do not meet */

typedef struct Section {
    const Stmt *loop[MOST_LOOPS]; /* parallel, outermost first, with constant bounds */
    uint32_t loop_count;
    const Stmt *team; /* the LOOP_THREADS inside them, or NULL: each round of `loop` is one block */
    Block body;       /* of one thread */
    int64_t rounds;   /* of all loops together */
    int64_t blocks;   /* the launch */
    uint32_t threads;
    bool *used; /* buffers of the kernel */
} Section;

/* The sections of a kernel, in order; returns how many. */
uint32_t sections_of(Arena *arena, const Kernel *kernel, Section **section);

/* `static __global__ void name(const float *__restrict__ x, ...) { ... }`.  Parameters are the used buffers but for
 * those in `global`, which are device arrays known by name. */
void print_section(Printer *printer, const Section *section, const bool *aliased, const bool *global);

#endif
