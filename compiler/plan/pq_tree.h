/* A PQ-tree: all orders of a set of leaves in which certain sets of them stand together (Booth and Lueker, "Testing for
 * the consecutive ones property, interval graphs, and graph planarity using PQ-tree algorithms", Journal of Computer
 * and System Sciences 1976).  The children of a P node may stand in any order, those of a Q node in theirs or the
 * reverse.
 *
 * Trees are small and copied often, so they are arrays of nodes in preorder, and an operation writes a new one. */
#ifndef NNC_PLAN_PQ_TREE_H
#define NNC_PLAN_PQ_TREE_H

#include <stdbool.h>

#include "base/arena.h"

#define PQ_P UINT32_MAX       /* a node of three children or more, or of two */
#define PQ_Q (UINT32_MAX - 1) /* of three or more */

typedef struct PqNode {
    uint32_t span; /* of its subtree, itself included, in nodes */
    uint32_t leaf; /* its number, or PQ_P or PQ_Q */
} PqNode;

typedef struct PqTree {
    PqNode *node; /* [count]; the first is the root */
    uint32_t count;
} PqTree;

/* The tree of all orders of some leaves, at least one. */
PqTree plan_pq_free(Arena *arena, const uint32_t *leaf, uint32_t count);

/* Those orders of a tree in which the marked leaves stand together.  False, and no tree, when there is none.  At least
 * one leaf is marked. */
bool plan_pq_reduce(Arena *arena, const PqTree *tree, const uint8_t *marked, PqTree *result);

/* Those orders of a tree in which the marked leaves stand together, with others in their place, in any order.  False,
 * and no tree, when there is none.  At least one leaf is marked, and at least one put. */
bool plan_pq_replace(Arena *arena, const PqTree *tree, const uint8_t *marked, const uint32_t *put, uint32_t put_count,
                     PqTree *result);

/* Can the marked leaves stand together? */
bool plan_pq_together(Arena *scratch, const PqTree *tree, const uint8_t *marked);

/* The logarithm of the number of orders, in 65,536ths of a bit. */
uint64_t plan_pq_freedom(const PqTree *tree);

/* The order of a tree in which ranks do not fall, which there must be; any leaves of one rank are taken for equal. */
void plan_pq_order(Arena *scratch, const PqTree *tree, const int64_t *rank, uint32_t *order);

#endif
