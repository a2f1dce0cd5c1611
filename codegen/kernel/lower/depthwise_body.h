/* Inside the loops of a depthwise convolution (depthwise.h): a tile of its results. */
#ifndef NNC_KERNEL_DEPTHWISE_BODY_H
#define NNC_KERNEL_DEPTHWISE_BODY_H

#include "kernel/lower/depthwise.h"

typedef struct DepthwiseBody {
    const Depthwise *dw;
    Lower *lower;
    Arena *arena;
    const Local *held; /* [kh][kw]: weights; NULL where rows take them from memory */
    const Local *acc;  /* [outputs][pixels]: sums of the pixels that are not vectors along the row */
    Index row;
} DepthwiseBody;

/* Neighbouring pixels of a row, `step` columns apart, for each of the outputs; with `vectors` each is a vector along
 * the row.  Over planes several rows of one output. */
typedef struct DepthwiseTile {
    const Local *acc; /* [outputs, or rows][pixels] */
    int64_t rows;
    Index column; /* of the first */
    int64_t pixels, step;
    bool vectors;
    bool edge;             /* taps kw are cut to the image, too */
    const uint32_t *valid; /* else, per tap kw: bit p when pixel p's is inside; NULL: all are */
} DepthwiseTile;

/* depthwise_tile.c: starts the sums, adds the products of all taps, stores what the kernel makes of them. */
void depthwise_tile(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile);
/* A weight of the output that is `output` behind the block's first one. */
const Expr *depthwise_load_weight(const DepthwiseBody *body, Block *block, int64_t output, Index kh, Index kw);

#endif
