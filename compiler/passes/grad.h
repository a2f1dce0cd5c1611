/* Reverse mode over graphs, for the parts of the pass grad. */
#ifndef NNC_PASSES_GRAD_H
#define NNC_PASSES_GRAD_H

#include "ops/reverse.h"
#include "passes/pass.h"

typedef struct GradPass {
    PassContext *context;
    Arena *arena; /* lasts as long as the pass */
    Map taped;    /* a loop with a tape, by graph and result 0, to how many values it carried without */
} GradPass;

typedef struct GradRequest {
    const ValueId *y, *seed; /* what is differentiated, and what reaches each, of its type */
    uint32_t y_count;
    const ValueId *wrt;
    uint32_t wrt_count;
    const Node *node; /* that asks: what is built has its place and comes from the same call */
} GradRequest;

/* Appends the nodes; gradient[i] is that of wrt[i], or NONE where nothing reaches it.  False after an error. */
bool grad_derive(GradPass *pass, Graph *graph, const GradRequest *request, ValueId *gradient);

/* Loops whose rounds are bounded get a tape, on which each round writes what it begins with; map[v] is what has become
 * of the values there were.  What no gradient reads is dead, and goes with the pass dce. */
void grad_tape_loops(GradPass *pass, Graph *graph, ValueId *map);
/* The node that is asked is a loop, or a branch. */
bool grad_reverse_control(GradPass *pass, Reverse *reverse);

#endif
