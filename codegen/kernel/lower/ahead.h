/* The pages of the rows that come next (ahead.c).
 *
 * Hardware follows a stream within a page, and begins anew, late, at the next one, whose address it may not even know.
 * A line of each page is fetched some hundreds of pages ahead, all at once: addresses are at hand then. */
#ifndef NNC_KERNEL_LOWER_AHEAD_H
#define NNC_KERNEL_LOWER_AHEAD_H

#include "kernel/lower/lower.h"

/* Rows that are gone through in streams, one behind the other: each round of a loop takes the next row of each. */
typedef struct Ahead {
    const Var *round;
    int64_t streams, length; /* elements of a row */
    /* The element of a row of all, as an expression of loads; rows lie equally far apart. */
    const Expr *(*element)(void *context, Index row, Index along);
    void *context;
} Ahead;

/* Fetches at the begin of a round what the next ones read, where that is many pages. */
void lower_fetch_ahead(Lower *lower, const Ahead *ahead);

#endif
