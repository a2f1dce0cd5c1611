/* The ways in which a PQ-tree can go on where some of its leaves end and others begin; see planar.c. */
#ifndef NNC_PLAN_PLANAR_SEARCH_H
#define NNC_PLAN_PLANAR_SEARCH_H

#include "plan/planar_change.h"
#include "plan/pq_tree.h"

/* Groups, and one more of all that is in none of them, unless that is nothing. */
typedef struct PlanarWay {
    PqTree tree; /* after it */
    PlanarGroup *group;
    uint32_t group_count;
} PlanarWay;

typedef struct PlanarWays {
    PlanarWay *way;
    uint32_t count, capacity;
    uint64_t looks; /* nodes of trees that have been looked at */
} PlanarWays;

/* Appends ways to change a tree of `leaf_count` numbers of leaves; trees and lists live in the arena. */
void plan_planar_ways(Arena *arena, PlanarChange *change, const PqTree *tree, uint32_t leaf_count, PlanarWays *ways);

/* The leaves of a group, or, of number group_count, of the last; returns how many end, and of how many begin in
 * *put_count.  Of the last both may be 0. */
uint32_t plan_planar_group(const PlanarChange *change, const PlanarWay *way, uint32_t group, uint32_t *gone,
                           uint32_t *put, uint32_t *put_count);

#endif
