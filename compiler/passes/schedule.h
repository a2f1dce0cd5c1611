/* What the parts of the scheduler share.  Orders are arrays of units. */
#ifndef NNC_PASSES_SCHEDULE_H
#define NNC_PASSES_SCHEDULE_H

#include "passes/order.h"
#include "passes/units.h"

typedef struct Schedule {
    Graph *graph;
    Arena *scratch;
    Units units;
    OrderProblem problem; /* its values are the graph's that are buffers */
    uint32_t *order;      /* the best so far */
    int64_t peak;         /* of it, in bytes */
    bool found;
} Schedule;

/* Gives each node a stream, at most `most` of them (streams.c). */
void schedule_streams(const Schedule *schedule, uint32_t most);

#endif
