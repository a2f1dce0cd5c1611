/* The allocation graph of the NNC algorithm (nnc.c): which bytes pass from which tensor to which.
 *
 * Nodes are pieces (tensors, or single uses of a group), a source that holds all memory before and a sink that holds it
 * after.  An edge from y to x is a run of bytes that x takes over from y; its weight is their number.  In between, from
 * the death of y to the birth of x, they are free: the edges are all the free room there is, cut up by who had it and
 * who gets it.  The graph is acyclic, for bytes only pass on in time, and what flows into a piece flows out of it. */
#ifndef NNC_PLAN_NNC_GRAPH_H
#define NNC_PLAN_NNC_GRAPH_H

#include "plan/items.h"

typedef struct NncEdge {
    uint32_t from, to;      /* pieces, or NNC_SOURCE and NNC_SINK */
    uint32_t after, before; /* free in the sections [after, before) */
    int64_t offset, bytes;
} NncEdge;

#define NNC_SOURCE UINT32_MAX
#define NNC_SINK   (UINT32_MAX - 1)

typedef struct NncNeed { /* pieces that follow each other in time, to lie at one offset */
    uint32_t *piece;     /* by time */
    uint32_t count;
    uint32_t first, last; /* sections [first, last), from the first birth to the last death */
    int64_t size;         /* of the largest */
    int64_t alignment;
} NncNeed;

typedef struct NncPlace {
    uint32_t edge;
    int64_t offset;
} NncPlace;

typedef struct NncGraph NncGraph;

NncGraph *nnc_graph_new(Arena *arena, const PlanItems *items);

/* The edge with room for the need that leaves the least time unused before and after it; false when there is none.  A
 * source or a sink counts as farther away than any piece. */
bool nnc_graph_find(NncGraph *graph, const NncNeed *need, NncPlace *place);

/* Inserts the pieces into one edge: the bytes flow through them, see split in nnc_graph.c. */
void nnc_graph_insert(NncGraph *graph, const NncNeed *need, NncPlace place);

/* Inserts the pieces where bytes of several edges that are neighbours in address meet: into the tightest such run, or
 * on the topmost one with as many new bytes from the source as are missing.  Returns the offset. */
int64_t nnc_graph_insert_across(NncGraph *graph, const NncNeed *need);

/* Inserts pieces of one group, between which others may already lie, at the lowest offset that all can have. */
int64_t nnc_graph_insert_apart(NncGraph *graph, const NncNeed *need);

/* Inserts the pieces at an offset where nothing else lies in their time, with new bytes from the source up to there. */
void nnc_graph_insert_at(NncGraph *graph, const NncNeed *need, int64_t offset);

/* How often new bytes have flowed out of the source.  In between room only gets narrower: what found none will not. */
uint32_t nnc_graph_flows(const NncGraph *graph);

/* The work of all nnc_graph_find so far. */
uint64_t nnc_graph_steps(const NncGraph *graph);

/* The edges, in no order. */
const NncEdge *nnc_graph_edges(const NncGraph *graph, uint32_t *count);

#endif
