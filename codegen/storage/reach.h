/* What the loops of a lowered kernel load and store: every access, with the range of its addresses. */
#ifndef NNC_STORAGE_REACH_H
#define NNC_STORAGE_REACH_H

#include "storage/memory.h"

typedef struct Spot { /* of a statement: its block, and how far into it */
    uint32_t block, at;
} Spot;

typedef struct ReachRound { /* a loop around: what its variable takes here, which may be less than it could */
    const Var *var;
    int64_t low, high;
} ReachRound;

typedef struct Reach { /* one load or store */
    uint32_t buffer;
    Index index;
    int64_t low, high; /* elements, both inclusive, from where the buffer points to */
    int64_t *rounds;   /* per term of the index: how many values its atom takes */
    const Var *again;  /* of a store, a parallel loop around, all of whose rounds store there; NULL */
    bool store;
    bool guarded;   /* the loop's bounds vary, or it stands under a condition: the range is what it could be at most */
    int64_t square; /* of a square that is transposed: how far its last element is behind that at the index; else 0 */
    const ReachRound *round; /* of loops around whose bounds are constants, or end at one; outermost first */
    uint32_t round_count;
    Spot spot;
    Extent bytes; /* for the judge: in its storage, once they are known to be inside */
} Reach;

typedef struct Reached {
    Reach *at;
    uint32_t count, capacity;
    Spot *outer; /* per block: the statement that it is of; its block is NONE for the outermost */
    uint32_t block_count, block_capacity;
} Reached;

/* In the order of the statements.  All memory is the arena's. */
Reached reach_collect(const Kernel *kernel, Arena *arena);

/* The least or the largest value that a variable takes where the access stands. */
int64_t reach_end(const Reach *reach, const Atom *atom, bool high);

/* Is it a condition that only one value of a variable meets?  As in the last round, or for the single channel of a
 * block that is filled up with zeros; low is that value. */
bool reach_holds_for_one(const Stmt *stmt);

/* Does the store come at or after the load, in its block or one around it? */
bool reach_stands_with(const Reached *reached, const Reach *load, const Reach *store);

/* Is what the store writes never read behind it: does the load stand before it, and reach in other rounds of the loops
 * around both, in whatever order they run, no element that it writes in this one?  Rows that are summed up before they
 * are written, say. */
bool reach_goes_ahead(const Reached *reached, const Reach *load, const Reach *store);

/* Runs: an access as rows of bytes that lie apart, as in a whole that is made in parts. */

#define REACH_DIMENSIONS (MAX_RANK + 4)
#define REACH_MOST_RUNS  256

typedef struct ReachRuns {
    int64_t stride[REACH_DIMENSIONS], count[REACH_DIMENSIONS]; /* ascending strides, bytes */
    uint32_t rank;
    int64_t all, bytes; /* how many; of one */
} ReachRuns;

/* False where the address is not a sum over loops, or there are too many. */
bool reach_find_runs(const Reach *reach, int64_t element_bytes, ReachRuns *runs);
Extent reach_run(const ReachRuns *runs, const Reach *reach, int64_t number); /* its bytes in the storage */

#endif
