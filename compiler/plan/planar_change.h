/* What can happen where some leaves of a PQ-tree end and others begin, for planar.c. */
#ifndef NNC_PLAN_PLANAR_CHANGE_H
#define NNC_PLAN_PLANAR_CHANGE_H

#include "plan/pq_tree.h"

#define PLANAR_MASK 64 /* leaves of a side of which any may be in a group; all others are in the last */

typedef struct PlanarGroup { /* leaves that stand together, and those that take their place, of the same sum */
    uint64_t gone, put;      /* by their numbers within the change */
} PlanarGroup;

/* One way to change: groups, and one more of all that is in none of them, unless that is nothing. */
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

typedef struct PlanarChange PlanarChange;

/* size is of all leaves; as much ends as begins. */
PlanarChange *plan_planar_change(Arena *arena, const int64_t *size, const uint32_t *gone, uint32_t gone_count,
                                 const uint32_t *put, uint32_t put_count);

/* Appends ways to change a tree of `leaf_count` numbers of leaves; trees and lists live in the arena. */
void plan_planar_ways(Arena *arena, PlanarChange *change, const PqTree *tree, uint32_t leaf_count, PlanarWays *ways);

/* The leaves of a group, or, of number group_count, of the last; returns how many end, and of how many in *put_count.
 * Of the last both may be 0. */
uint32_t plan_planar_group(const PlanarChange *change, const PlanarWay *way, uint32_t group, uint32_t *gone,
                           uint32_t *put, uint32_t *put_count);

/* The only groups that there can be; 0: there may be others, or too many to say. */
uint32_t plan_planar_certain(const PlanarChange *change, const PlanarGroup **group);

#endif
