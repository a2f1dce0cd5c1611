/* Contractions by blocks of threads (blocked.c): a tile of the result each.
 *
 *     result[row, column] = sum over depth of left[row, depth] * right[depth, column]
 *
 * A matmul is that for each position of its leading dimensions.  A convolution is that for each group of each image:
 * rows are output channels, columns pixels, depth the channels and taps of the window. */
#ifndef NNC_KERNEL_BLOCKED_H
#define NNC_KERNEL_BLOCKED_H

#include "kernel/lower/contract.h"
#include "ops/meaning.h"

#define BLOCKED_STEP 16 /* of the depth that a group of threads sums up between two meetings */

/* Who sums up what.  All are powers of two, but for splits. */
typedef struct BlockedShape {
    int64_t rows, columns;         /* of a block's tile */
    int64_t each_row, each_column; /* of the tile, that a thread sums up: neighbours */
    int64_t groups;                /* of threads in a block, which share out the depth of a step */
    int64_t splits;                /* blocks that share out the depth of a tile */
} BlockedShape;

static inline int64_t blocked_group(const BlockedShape *shape) /* threads of one */
{
    return shape->rows / shape->each_row * (shape->columns / shape->each_column);
}

static inline int64_t blocked_threads(const BlockedShape *shape)
{
    return blocked_group(shape) * shape->groups;
}

static inline int64_t blocked_step(const BlockedShape *shape) /* of the depth, by all groups */
{
    return BLOCKED_STEP * shape->groups;
}

typedef struct Blocked {
    Lower *lower;
    const Node *node;
    bool is_product; /* of matrices; else a convolution */
    Product product;
    Convolution conv;
    DType dtype; /* of sums */
    int64_t rows, columns, depth, batches;
    uint32_t batch_rank; /* of a convolution: images, and groups */
    int64_t batch_extent[MAX_RANK];
    BlockedShape shape;
    Index batch[MAX_RANK];
    const Var *thread;
    Index row, column, start; /* first of the tile, first of the depth */
} Blocked;

/* blocked_see.c */

bool blocked_see(Blocked *b);
/* Left at [row, depth] or right at [depth, column]; 0 outside. */
const Expr *blocked_operand(const Blocked *b, bool right, Index across, Index depth);
/* Where an element of the result is. */
void blocked_position(const Blocked *b, Index row, Index column, Index *position);

/* blocked_shape.c */

/* Room in shared memory for an element across a tile: four more, so that threads that fetch along the depth meet few
 * banks twice, and those that read four neighbours do so at once. */
#define BLOCKED_PAD 4

int64_t blocked_sums(const BlockedShape *shape); /* that groups leave to each other, in shared memory */
/* Is there such a shape?  What is KNOB_FREE of its rows, columns, groups and splits is chosen. */
bool blocked_choose(const Blocked *b, BlockedShape *shape);

#endif
