/* Kernels numbered as the steps of the plan, for texts and pictures: passes run on each body of a loop or branch by
 * itself and number its kernels from 0, the plan has one time for all, and may prefer another order than schedule. */
#ifndef NNC_PROGRAM_NUMBER_H
#define NNC_PROGRAM_NUMBER_H

#include "kernel/kernel.h"
#include "program/program.h"

typedef struct Numbering {
    Graph *graph, *plan;   /* what is numbered; as it was in front of fuse, laid out and planned */
    FlatBodies flat;       /* of the plan */
    struct BodyPair *body; /* the graph and its bodies, each with its copy */
    uint32_t count, capacity;
    uint32_t steps;   /* of the plan; 0: there is none */
    bool keeps_order; /* it keeps the order that fuse leaves */
} Numbering;

/* In front of fuse; plans a copy. */
void program_number_begin(Numbering *numbering, Graph *graph, const CompileOptions *options);
/* Behind the stages: Node.kernel of what the plan has is its step; of what is none, concats whose parts are in place
 * already and copies in bodies, NONE.  Nothing is changed where there is no plan. */
void program_number_finish(Numbering *numbering);

#endif
