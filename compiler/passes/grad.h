/* Reverse mode over graphs, for the parts of the pass grad. */
#ifndef NNC_PASSES_GRAD_H
#define NNC_PASSES_GRAD_H

#include "ops/meaning.h"
#include "ops/reverse.h"
#include "passes/pass.h"

typedef struct GradPass {
    PassContext *context;
    Arena *arena; /* lasts as long as the pass */
    Map taped;    /* a loop with a tape, by graph and result 0, to how many values it carried without */
    Map sums;     /* results of loops backward that add up from zero all that reaches a value, by graph and result */
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

/* All of the graph and of its bodies.  False after errors. */
bool grad_all(Graph *graph, PassContext *context);

/* grad_recompute.c: calls that are computed again when their gradients are asked for.  NULL where there are none. */
typedef struct Recompute Recompute;
Recompute *grad_recompute_open(GradPass *pass, Graph *graph, Arena *scratch);
/* The gradient of a value, when all that reads it has been asked; else NONE. */
typedef ValueId GradArrival(void *context, ValueId value);
/* Node n with operands and results as its gradient is to see them: where it stands in such calls, computed again once
 * the gradients of their results have arrived. */
Node grad_recomputed(Recompute *recompute, NodeId n, GradArrival *arrived, void *context);
/* No node comes from what the pass remat has put together any more. */
void grad_forget_remat(Graph *graph);

/* Loops whose rounds are bounded get a tape, on which each round writes what it begins with; map[v] is what has become
 * of the values there were.  What no gradient reads is dead, and goes with the pass dce. */
void grad_tape_loops(GradPass *pass, Graph *graph, ValueId *map);
/* The same for a loop that is made now. */
NodeId grad_append_loop(GradPass *pass, Graph *graph, const Loop *loop, const ValueId *in, const Node *node);
/* How many values the loop carries beside the number of rounds and the tapes, which follow in this order; MAP_NONE
 * where it has no tape. */
uint32_t grad_taped(const GradPass *pass, const Graph *graph, const Node *loop);
/* Keys of these maps. */
Str grad_key(Arena *arena, const Graph *graph, ValueId result);
/* A copy of a loop has a tape where the loop has. */
void grad_tape_copied(GradPass *pass, const Graph *graph, const Node *loop, const Node *copy);
ValueId grad_read_slice(Reverse *reverse, ValueId tape, ValueId round, const Shape *shape);
/* The node that is asked is a loop, or a branch. */
bool grad_reverse_control(GradPass *pass, Reverse *reverse);

#endif
