/* A set of addresses, kept as runs: disjoint, in order, merged where they touch.  Runs lie in blocks of a dozen, and
 * of each block the widest gap between two of its runs is known, so that a search for room passes whole blocks. */
#ifndef NNC_PLAN_RUNS_H
#define NNC_PLAN_RUNS_H

#include <stdbool.h>

#include "base/arena.h"

typedef struct PlanRun {
    int64_t begin, end;
} PlanRun;

typedef struct RunBlock {
    int64_t begin, end; /* of its first and its last run */
    int64_t room;       /* the widest gap between two of its runs */
    PlanRun *run;
    uint32_t count; /* never 0 */
} RunBlock;

typedef struct Runs { /* zeroed: the empty set */
    RunBlock *block;
    uint32_t count, capacity;
} Runs;

typedef struct RunStore { /* where sets get their blocks from */
    Arena *arena;
    PlanRun **spare;
    uint32_t spare_count, spare_capacity;
    uint64_t looks; /* the work so far: at blocks and at runs */
} RunStore;

/* Adds [begin, end), of which some may be in the set already. */
void runs_add(RunStore *store, Runs *runs, int64_t begin, int64_t end);

typedef struct RunPlace { /* how far a series of searches has come; zeroed: nowhere yet */
    uint32_t next;        /* the first block not reached */
    uint32_t run;         /* the first run, in the one before it, that matters */
} RunPlace;

/* The first gap of `size` bytes at or after `from`: the part of it from there on, up to the next run or INT64_MAX.
 * In a series the set stays as it is, and no search begins below the gap that the one before has found. */
PlanRun runs_gap(RunStore *store, const Runs *runs, RunPlace *place, int64_t from, int64_t size);

#endif
