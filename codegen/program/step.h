/* Steps: what an entry point does, as a tree.  The printers print steps, and nothing else decides what runs when.
 *
 * A launch runs a kernel: in C a call of its function, or one for each deal of a kernel that threads share
 * (storage/deal.h); on a GPU each section of a kernel is a launch.  A loop has the
 * steps of its condition and of a round, a branch those of each of its branches.  What loops carry and branches give
 * are pointers (storage/flow.h) and need no steps.  What is kept and has memory twice ends a run: a state turns, so
 * that the place where its next value was made is the one that holds it; a param, which others look for in its own
 * place, is copied there, and so is a state where the host does not read which place holds it. */
#ifndef NNC_PROGRAM_STEP_H
#define NNC_PROGRAM_STEP_H

#include "storage/memory.h"

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

typedef enum StepKind { STEP_LAUNCH, STEP_LOOP, STEP_BRANCH, STEP_TURN, STEP_COPY } StepKind;

typedef struct StepList {
    struct Step *step;
    uint32_t count, capacity;
} StepList;

typedef struct Step {
    StepKind kind;
    uint32_t kernel;        /* in Memory.kernel: that is launched, or where the loop or the branches begin ... */
    uint32_t test, end;     /* ... where the loop is left, NONE when it is at its end; and where they end */
    const Section *section; /* of a launch on a GPU; else NULL: the whole kernel ... */
    const Deal *deal;       /* ... or this of it, where threads share it */
    uint32_t number;        /* of a launch, among those of the entry */
    StepList *body;         /* of a loop: its condition, a round; of branches: each */
    uint32_t body_count;
    uint32_t state; /* in Memory.state: that turns, or is copied, unless it was made where it is */
} Step;

typedef struct Steps {
    StepList list;
    uint32_t launches;
} Steps;

/* The steps of kernels that are lowered.  False after a diag error: a section has more blocks than a grid. */
bool step_tree(const Memory *memory, const Target *target, Steps *steps);

/* Is it the first of its kernel's launches, where threads share it? */
static inline bool step_is_first(const Kernel *kernel, const Step *launch)
{
    return !launch->deal || launch->deal == kernel[launch->kernel].deal;
}

#endif
