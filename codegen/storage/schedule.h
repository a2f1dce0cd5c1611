/* What the parts of the scheduler share.  Orders are arrays of units. */
#ifndef NNC_STORAGE_SCHEDULE_H
#define NNC_STORAGE_SCHEDULE_H

#include "storage/order.h"
#include "storage/units.h"

typedef struct Schedule {
    Graph *graph;
    Arena *scratch;
    Units units;
    OrderProblem problem; /* its values are the graph's that are buffers */
    uint32_t *order;      /* the best so far */
    int64_t peak;         /* of it, in bytes */
    bool found;
} Schedule;

/* The largest sum of live bytes over the graph's order: what no placement can go below.  Counts results of nodes only
 * (not inputs, params, constants, and not what leaves the graph), views with their owner, and values inside a kernel
 * not at all. */
int64_t schedule_peak(const Graph *graph, Arena *scratch);

/* Gives each node a stream, at most `most` of them (streams.c). */
void schedule_streams(const Schedule *schedule, uint32_t most);

#endif
