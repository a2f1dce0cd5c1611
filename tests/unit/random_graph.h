/* Random graphs for tests that compare two ways of computing the same: before and after a pass, evaluator and emitted
 * code.  A function of the options alone.  Each node is drawn from its own number, so leaving some out (to shrink a
 * failure) does not change what the others are, except where they read one that is gone. */
#ifndef NNC_TESTS_RANDOM_GRAPH_H
#define NNC_TESTS_RANDOM_GRAPH_H

#include "ir/graph.h"

#define RANDOM_MOST 64 /* steps */

typedef struct RandomGraph {
    uint64_t seed;
    uint32_t steps; /* each adds one node or a few */
    DType dtype;    /* of inputs and weights: a float */
    bool control;   /* also loops, branches and parts at run-time positions, nested */
    bool calls;     /* also composites, params with initialisers inside, and updates of states */
    /* For emitted code, whose functions and sums round otherwise: nothing is floored after those; more steps take part
     * (windows, gathers, rows, layouts), and outputs may be inputs, constants, views, or twice the same. */
    bool emitted;
    int64_t channels; /* of images; 0 is 4.  Full vectors of channels make blocked layouts */
    bool left_out[RANDOM_MOST];
} RandomGraph;

/* One output per value that nothing reads, so that no step is dead, and one more for an inner value. */
Graph *random_graph(Module *module, const RandomGraph *options);

/* Elements in [-2, 2] (small integers for integer types), the same for the same seed. */
Tensor *random_tensor(Arena *arena, const Type *type, uint64_t seed);

/* Leaves out as much as possible so that `fails` stays true. */
void random_shrink(RandomGraph *options, bool (*fails)(void *context, const RandomGraph *options), void *context);

#endif
