/* Contractions by blocks of threads (blocked.c): a tile of the result each.
 *
 *     result[row, column] = sum over depth of left[row, depth] * right[depth, column]
 *
 * A matmul is that for each position of its leading dimensions.  A convolution is that for each group of each image:
 * rows are output channels, columns pixels, depth the channels and taps of the window.  Weights that are known are
 * packed when compiling, [depth][output], so that neighbours in memory go to neighbours among threads. */
#ifndef NNC_KERNEL_BLOCKED_H
#define NNC_KERNEL_BLOCKED_H

#include "kernel/lower/contract.h"
#include "ops/meaning.h"

#define BLOCKED_STEP 16 /* of the depth that a group of threads sums up between two meetings */

/* Who sums up what.  All are powers of two, but for splits. */
typedef struct BlockedShape {
    int64_t rows, columns;         /* of a block's tile */
    int64_t sums;                  /* of a thread, at most: */
    int64_t each_row, each_column; /* of the tile; four are neighbours, and the next four half a tile away */
    int64_t groups;                /* of threads in a block, which share out the depth of a step */
    int64_t splits;                /* blocks that share out the depth of a tile */
    bool by_tap;                   /* a step is of one tap's channels; else of the depth as weights are declared */
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
    int64_t taps; /* of the window, for each channel of the depth; 1: none */
    bool packed;  /* left is constant weights, in this order: */
    uint32_t weights;
    uint32_t batch_rank; /* of a convolution: images, and groups */
    int64_t batch_extent[MAX_RANK];
    BlockedShape shape;
    Index batch[MAX_RANK];
    const Var *thread;
    Index row, column, start; /* first of the tile, first of the depth or of the tap's channels */
    Index tap;                /* number of the step's, where it is of one */
} Blocked;

/* blocked_see.c */

bool blocked_see(Blocked *b);
/* Do the left elements of neighbouring rows, or the right ones of neighbouring columns, lie beside each other? */
bool blocked_lies_across(const Blocked *b, bool right);
void blocked_pack(Blocked *b);
/* Left at [row, depth] or right at [depth, column], where depth is that of the tap if there is one; 0 outside. */
const Expr *blocked_operand(const Blocked *b, bool right, Index across, Index depth);
/* Where an element of the result is. */
void blocked_position(const Blocked *b, Index row, Index column, Index *position);

/* blocked_shape.c */

/* Room in shared memory for an element across a tile: four more, so that threads that fetch along the depth meet few
 * banks twice, and those that read four neighbours do so at once. */
#define BLOCKED_PAD 4

int64_t blocked_rounds(const Blocked *b, const BlockedShape *shape); /* steps of a tile, of all splits */
int64_t blocked_sums(const BlockedShape *shape); /* that groups leave to each other, in shared memory */
/* Is there such a shape?  What is KNOB_FREE of its rows, columns, sums, groups and splits is chosen. */
bool blocked_choose(const Blocked *b, BlockedShape *shape);

#endif
