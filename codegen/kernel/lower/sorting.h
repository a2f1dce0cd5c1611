/* Positions in order along a dimension: what the ways to find them share.  Elements are compared by keys, unsigned
 * numbers that order as the elements do: of floats the bits, those of negative ones turned round (Knuth, volume 3,
 * 5.2.5), with one key for all NaN and one for both zeros; descending, their complements. */
#ifndef NNC_KERNEL_LOWER_SORTING_H
#define NNC_KERNEL_LOWER_SORTING_H

#include "kernel/lower/lower.h"

typedef struct Sort {
    const Node *node;
    Sorting sorting;
    int64_t extent, count;     /* of a row, and of the positions that are asked for; neither is 0 */
    DType key;                 /* u32 or u64 */
    uint32_t low_bit, end_bit; /* which bits of keys differ at all */
    Index position[MAX_RANK];  /* of the row, by dimension, where loops have come to it */
} Sort;

/* Of the kernel's anchor.  False: there is nothing to do. */
bool sorting_begin(const Lower *lower, const Kernel *kernel, Sort *sort);
int64_t sorting_rows(const Lower *lower, const Sort *sort);
/* Opens a loop over each of the other dimensions; their rounds may run at once. */
void sorting_open_rows(Lower *lower, Sort *sort);
/* The key of the element at this place of the row, in a local. */
const Expr *sorting_key(Lower *lower, Sort *sort, Index at);
/* The element that comes at `rank` in the order of the row is at `at`. */
void sorting_store(Lower *lower, Sort *sort, Index rank, const Expr *at);

/* What the loops are made of */

const Expr *sorting_less(Lower *lower, const Expr *a, const Expr *b);
const Local *sorting_name(Lower *lower, const char *name, const Expr *value); /* a local that has the value */
void sorting_set(Lower *lower, const Local *local, const Expr *value);
Index sorting_at(Lower *lower, const Local *local, int64_t high); /* a local of i64, from 0 to `high`, as a position */
/* A serial loop from 0 to `end`, which is `most` at most; returns its variable, and the block to go back to. */
Index sorting_loop(Lower *lower, const char *name, Index end, int64_t most, Block **outer);
Block *sorting_if(Lower *lower, const Expr *truth); /* what holds only if the truth does; the block to go back to */
const Expr *sorting_number(Lower *lower, double number); /* i64 */

#endif
