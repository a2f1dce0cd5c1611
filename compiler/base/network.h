/* Flow in a network: Ford and Fulkerson 1956, along shortest paths (Edmonds and Karp 1972). */
#ifndef NNC_BASE_NETWORK_H
#define NNC_BASE_NETWORK_H

#include <stdbool.h>

#include "base/arena.h"

#define NETWORK_ENDLESS (INT64_MAX / 4) /* a capacity that no flow uses up */

typedef struct NetworkEdge { /* edge e ^ 1 is the same one backwards */
    uint32_t to, next;       /* next: 1 + another edge from the same node; 0: none */
    int64_t left;            /* of its capacity */
} NetworkEdge;

typedef struct Network {
    Arena *arena;
    uint32_t *first; /* per node: 1 + an edge; 0: none */
    NetworkEdge *edge;
    uint32_t node_count, edge_count, edge_capacity;
} Network;

/* All memory is the arena's. */
Network network_new(Arena *arena, uint32_t nodes);
void network_add(Network *network, uint32_t from, uint32_t to, int64_t capacity);
/* The most that flows from one node to another, at most NETWORK_ENDLESS; what is left of the capacities stays. */
int64_t network_flow(Network *network, uint32_t from, uint32_t to);
/* Per node: could more flow from it to `to`?  After network_flow, edges from nodes where not to nodes where so are a
 * minimum cut, of all such the one nearest to `to`. */
const bool *network_side(const Network *network, uint32_t to);

#endif
