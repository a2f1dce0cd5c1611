/* The parts of a tile: its steps (tiled_body.c), and its sums (tiled_sums.c). */
#ifndef NNC_KERNEL_TILED_BODY_H
#define NNC_KERNEL_TILED_BODY_H

#include "kernel/lower/tiled.h"

typedef struct Body {
    Tiled *con;
    Lower *lower;
    Arena *arena;
    const TileAt *at;
    uint32_t pixels, vectors;
    DType x_dtype; /* as it lies in memory; converted where it is loaded */
    const Var *lanes;
    Index lane;
    const Local *acc;   /* [pixels][vectors] */
    bool partial_sums;  /* rounds > 1: the result's memory holds sums between rounds */
    int64_t prefetches; /* of the next block of weights, per block of depth and tap */
    Index next;         /* where they start */
} Body;

Index tiled_sum(Body *body, Index a, Index b);
Index tiled_times(Body *body, const Var *var, int64_t factor);
/* A loop over first ... first + extent - 1, or nothing and the index `first`. */
Block *tiled_small_loop(Body *body, Block *block, const char *name, int64_t first, int64_t extent, Index *index);

void tiled_start(Body *body, Block *inner);
/* After the last round the results, after others the sums so far; `inner` is the block of lanes. */
void tiled_finish(Body *body, Block *block, Block *inner);

#endif
