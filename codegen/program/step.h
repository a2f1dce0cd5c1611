/* Steps: what an entry point does, in order.  The printers print steps, and nothing else decides what runs when.
 *
 * A step launches a kernel.  In C that is a call of its function; on a GPU each section of a kernel is a launch. */
#ifndef NNC_PROGRAM_STEP_H
#define NNC_PROGRAM_STEP_H

#include "kernel/kernel.h"

#define BLOCK_THREADS 256       /* of a section whose threads do not meet */
#define MOST_LOOPS    64        /* around a statement */
#define MOST_BLOCKS   INT32_MAX /* of a grid, in x */

/* Each nest of parallel loops at the top of a kernel's body is a section, whose rounds become threads; what stands
 * between such nests runs in one thread.  Sections run one after another. */
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

typedef struct Step {
    uint32_t kernel;
    const Section *section; /* on a GPU; else NULL: the whole kernel */
} Step;

/* The steps of kernels that run one after another; returns how many.  With a diag error, and 0, when a section has more
 * blocks than a grid. */
uint32_t step_list(const Graph *graph, const Target *target, const Kernel *kernel, uint32_t count, Step **step);

int64_t step_rounds(const Stmt *loop); /* of constant bounds */

#endif
