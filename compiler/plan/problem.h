/* The placement problem: where in an arena does each buffer live?  Nothing here knows of graphs.
 *
 * A buffer is `size` bytes that must stay untouched in the schedule steps [first, last).  Buffers that share a step
 * must not share a byte, unless they are of one group: a group is one address with several uses (an in-place result
 * and its operand, the carried value of a loop before and after a round).  Steps are any numbers in order of
 * execution; the branches of a `case` take disjoint steps, so that they share memory.
 *
 * Offline placement of this kind is dynamic storage allocation: NP-complete (Garey and Johnson, problem SR2), the
 * largest sum of live bytes is a lower bound, and a placement within a constant factor of it always exists
 * (Buchsbaum et al., "OPT versus LOAD in dynamic storage allocation", STOC 2003). */
#ifndef NNC_PLAN_PROBLEM_H
#define NNC_PLAN_PROBLEM_H

#include "base/arena.h"
#include "base/text.h"

#define PLAN_FREE        INT64_C(-1)        /* PlanBuffer.pinned of a buffer that may lie anywhere */
#define PLAN_LARGEST     (INT64_C(1) << 60) /* no sum of all sizes and alignments of a region may exceed this, in bytes */
#define PLAN_MOST_REGION 256

typedef struct PlanBuffer {
    int64_t size;        /* bytes, >= 0 */
    int64_t alignment;   /* bytes, >= 1, any number; of the offset inside the arena */
    int64_t first, last; /* live in [first, last), first < last */
    int64_t pinned;      /* the offset it must have, or PLAN_FREE */
    uint32_t region;     /* each region is an arena of its own, numbered from 0 */
    uint32_t group;      /* buffers of one group (not 0) and region get one offset and may overlap each other */
} PlanBuffer;

typedef struct PlanPair { /* of buffers */
    uint32_t a, b;
} PlanPair;

typedef struct PlanProblem {
    const PlanBuffer *buffer;
    uint32_t count;
    /* Pairs that must not share a byte although no step has both, unless they are of one group: work on several streams
     * is not an interval.  With any, every allocator is greedy by these and the intervals together. */
    const PlanPair *conflict;
    uint32_t conflict_count;
    int64_t capacity; /* bytes of every region without an entry below; 0 = unlimited.  The search has it as a target */
    const int64_t *region_capacity; /* [region_count], 0 = unlimited; may be NULL */
    uint32_t region_count;
} PlanProblem;

typedef struct PlanResult {
    int64_t *offset;      /* [count] */
    int64_t *region_peak; /* [region_count]: bytes the arena of a region needs */
    int64_t *region_bound;
    uint32_t region_count; /* 1 + the highest region in use, at least 1 */
    int64_t peak;          /* sum over the regions */
    int64_t lower_bound;   /* no placement can have a lower peak */
    bool proven;           /* no placement has a lower peak: either it equals the bound or all others were ruled out */
    uint64_t nodes;        /* search nodes that `exact` visited */
    const char *allocator; /* who found the placement of the largest region */
    Str message;           /* why plan_place returned false */
} PlanResult;

typedef struct PlanAllocator {
    const char *name, *doc;
} PlanAllocator;

/* For the command line's help; the list ends with a NULL name.  The first is the default. */
const PlanAllocator *plan_allocators(void);

/* Fills the result; offsets live in the arena.  `allocator` NULL means "best".  `effort` (>= 0, 1 is normal) scales the
 * work limit of the search; the outcome depends on nothing but the arguments.  False, with a message, when the
 * problem is malformed or its pins contradict each other (offset is then NULL), or when the plan found exceeds a
 * capacity (everything is filled in, so that the plan can still be shown; the message says whether a plan that fits is
 * ruled out). */
bool plan_place(Arena *arena, const PlanProblem *problem, const char *allocator, int effort, PlanResult *result);

/* The largest number of bytes that must be in memory at one step, summed over regions.  The problem must be valid. */
int64_t plan_lower_bound(const PlanProblem *problem);

/* Is the problem well formed?  False, with a message in the arena, names the first fault. */
bool plan_valid(Arena *arena, const PlanProblem *problem, Str *message);

/* The independent judge of placements: it trusts no field of the result and shares no code with the allocators.
 * True when no two buffers that are live at one step overlap (groups apart), every offset is non-negative, aligned,
 * pinned where asked and ends inside its region's peak, and peaks keep the capacities.  `message` names the first
 * fault.  O(n log n). */
bool plan_check(Arena *arena, const PlanProblem *problem, const PlanResult *result, Str *message);

#endif
