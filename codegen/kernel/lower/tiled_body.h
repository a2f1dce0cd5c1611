/* The parts of a tile: its steps (tiled_body.c), its sums (tiled_sums.c), and what it fetches ahead (tiled_ahead.c). */
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
    const Local *acc;          /* [pixels][vectors] */
    const TileView *view;      /* whose sums are made */
    Index border;              /* the first tap that sees something else than those before it, where the view slides */
    bool partial_sums;         /* rounds > 1: the result's memory, or scratch, holds sums between rounds */
    Index tile_sums;           /* where in the scratch those of the tile's first pixel are */
    int64_t prefetches;        /* of the next block of weights, per block of depth and tap */
    Index next;                /* where they start */
    const TileLoop *next_tile; /* whose image is fetched at each block of the depth; NULL */
    Index next_x;              /* where its first pixel's operand is, as TileAt.x */
    bool fetches_rows;         /* of a product, those of the next block of the depth */
} Body;

Index tiled_sum(Body *body, Index a, Index b);
Index tiled_times(Body *body, const Var *var, int64_t factor);
/* A loop over first ... first + extent - 1, or nothing and the index `first`. */
Block *tiled_small_loop(Body *body, Block *block, const char *name, int64_t first, int64_t extent, Index *index);

/* Before the sums: what is fetched ahead, and where it starts. */
void tiled_plan_ahead(Body *body, Block *block);
/* The share of a tap of a block. */
void tiled_fetch_ahead(Body *body, Block *block, Index at_block, Index kh, Index kw);
/* What the results, which stand already, read from far. */
void tiled_fetch_results(Body *body, Block *block, const Block *results);

void tiled_start(Body *body, Block *inner);
/* After the last round the results, after others the sums so far; `inner` is the block of lanes. */
void tiled_finish(Body *body, Block *block, Block *inner);

#endif
