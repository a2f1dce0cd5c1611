/* What `nnc reduce` can take away inside loops and branches, one thing at a time. */
#ifndef NNC_CLI_REDUCE_BODIES_H
#define NNC_CLI_REDUCE_BODIES_H

#include "ir/graph.h"

/* How many things there are. */
uint32_t reduce_bodies_count(const Graph *graph);

/* A clone without one of them, `which` below that count: a loop gives its first values, or runs once; what a node of a
 * body made becomes an earlier value of that type there, or zeros. */
Graph *reduce_bodies_without(const Graph *graph, uint32_t which);

/* Nodes, with those of bodies. */
uint32_t reduce_bodies_nodes(const Graph *graph);

#endif
