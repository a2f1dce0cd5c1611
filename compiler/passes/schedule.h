/* What the parts of the scheduler share.  Orders are arrays of units. */
#ifndef NNC_PASSES_SCHEDULE_H
#define NNC_PASSES_SCHEDULE_H

#include "passes/units.h"

typedef struct Schedule {
    Graph *graph;
    Arena *scratch;
    Units units;
    Lists overwritable; /* of units_overwritable */
    Lists needs, feeds; /* per unit: the units that must come before, and after it */
    uint32_t *order;    /* the best so far */
    int64_t peak;       /* of it, in bytes */
    bool found;
} Schedule;

/* The largest sum of live bytes when units run in this order. */
int64_t schedule_order_peak(const Schedule *schedule, const uint32_t *order);

/* Depth first from the outputs, each unit after what it needs, larger results first (orders.c). */
void schedule_depth_first(const Schedule *schedule, uint32_t *order);
/* Always the ready unit that lowers the live bytes most, or raises them least (orders.c). */
void schedule_by_memory(const Schedule *schedule, uint32_t *order);

/* Gives each node a stream, at most `most` of them (streams.c). */
void schedule_streams(const Schedule *schedule, uint32_t most);

#endif
