/* Products of rows by a constant matrix, among them pointwise convolutions, by Strassen's seven products in place of
 * eight (kernel/strassen.h).
 *
 * Rows are one block, or several where that is asked for, the halves of which are the upper and the lower quarters; the
 * depth is cut in halves; and columns in pairs of panels.  Of a block,
 *
 *     for each row of half of it           the sums of the rows' quarters for all products, into `sums`
 *     for each pair of panels             the products, by weights that were added up when compiling, into `products`
 *                                         the result's quarters, in the first four of these
 *                                         row by row, results, which the rest of the kernel is computed from
 *
 * Layouts, in elements, vectors innermost: sums [product][row of half a block][half the depth],
 * or, of an image in blocks, [product][vector of half the depth][row of half a block]; products
 * [vector of a panel][product or quarter][row of half a block].
 *
 * Errors are as large as the largest rows of a block have them, and what is no number gets into rows half a block away:
 * so blocks are of pixels of one image, or of rows that the network mixes anyway (passes/mixing.h), as attention does
 * those of a sequence; never of samples beside one another. */
#ifndef NNC_KERNEL_LOWER_STRASSEN_H
#define NNC_KERNEL_LOWER_STRASSEN_H

#include "kernel/lower/point_products.h"
#include "kernel/lower/tiled.h"
#include "kernel/strassen.h"

enum { QUARTERS_SUMS, QUARTERS_PRODUCTS, QUARTERS_PIECES }; /* of scratch */

typedef struct Quarters {
    Lower *lower;
    Tiled con;                         /* what the contraction is to tiles: rows are its pixels */
    int64_t lanes, rows, samples;      /* rows of each sample of the batch */
    int64_t half_depth, depth_vectors; /* of half the depth */
    const Var *lane, *sample, *block, *pair;

    /* What the recipe says */
    int64_t half, blocks;   /* rows of half a block; blocks of a sample */
    bool in_blocks;         /* rows of a vector of the depth are neighbours in memory, and of the sums */
    int64_t row, vector;    /* from one row of the sums for a product to the next, from one vector */
    int64_t most_rows;      /* of a register tile */
    int64_t vectors, pairs; /* of a panel; of panels */
    uint32_t weights;       /* buffer, once lowered */
    uint32_t piece[QUARTERS_PIECES];
} Quarters;

/* Elements of the sums for a product. */
static inline int64_t quarters_sums(const Quarters *q)
{
    return q->in_blocks ? q->depth_vectors * q->vector : q->half * q->row;
}

/* strassen_body.c: what stands before and behind the products of a block. */
void quarters_of_rows(const Quarters *q, Block *block);
void quarters_results(const Quarters *q, Block *block);

#endif
