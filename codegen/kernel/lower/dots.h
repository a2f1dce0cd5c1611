/* Products by dot products: each result is the sum of what two rows have in common, a vector of the depth at a time.
 *
 *     result[row, column] = sum over depth of left[row, depth] * right[column, depth]
 *
 * Scales of blocks of a right row multiply the sums of these blocks. */
#ifndef NNC_KERNEL_DOTS_H
#define NNC_KERNEL_DOTS_H

#include "kernel/lower/contract.h"

#define MOST_SUMS 4 /* vectors of sums at once, which do not wait for one another */

typedef struct Dots {
    Lower *lower;
    const Node *node;
    Product product;
    const Var *loop[MAX_RANK + 2]; /* over the batch, rows, columns of a stream */
    Index batch[MAX_RANK];
    int64_t first;      /* column of those that are gone through now: all in streams, or those left over */
    int64_t streams;    /* into which these are cut, read side by side: memory brings several faster than one */
    int64_t sums, kept; /* vectors of the depth in a round, of each stream; those that have sums of their own */
    Index column;
    const Node *scaled; /* the product of right rows and their scales; NULL without */
    uint32_t scale;     /* the operand of it that has one element for `block` steps of the depth */
    int64_t block;
    bool nibbles;   /* right rows lie two elements to a byte: steps of the depth are even */
    bool packed;    /* right rows are constants that lie otherwise, and are packed as rows when compiling */
    ValueId source; /* of these */
    uint32_t weights;
} Dots;

/* dots_see.c: the node's operands; false when they are not in memory along the depth. */
bool dots_see(Dots *d);
/* Then the columns that are left over; false when there are none. */
bool dots_rest(Dots *d);
/* How right rows are packed: [column][depth]. */
bool dots_packing(const Dots *d, ValueId *source, Packing *packing);
/* The first column of a stream, and those behind it. */
Index dots_column(const Dots *d, int64_t stream);
/* What an operand has at a step of the depth, of the row or d->column, without its scale. */
const Expr *dots_element(const Dots *d, bool right, Index depth);
/* The scale of the block there. */
const Expr *dots_scale(const Dots *d, Index depth);

/* One row times weights from beyond the second level: several streams of their rows come faster than one of panels, and
 * need no packed copy where they lie so, which would be a second one where rows are picked of them, too (a table of
 * tokens that makes the logits).  Narrow ones are widened from beyond the first level in no more time than parts of
 * words are; those of 4 bits are taken apart, which panels do faster.  And one row times a few long columns, whose
 * sums would be fewer than multiply-adds are under way, or rows by fewer, which panels fill up with zeros. */
bool dots_suits_constant(const Lower *lower, const Node *node);
/* Rows times one column, of which tiles would fill a vector with zeros. */
bool dots_suits_column(const Lower *lower, const Node *node);

#endif
