/* Outer products (outer.c): what its files share.  Convolutions are products, too, whose columns come into scratch:
 *
 *     of a convolution, the weights of a group by what its windows see (outer_windows.c); of a transposed one, the
 *     same for each phase;
 *     of a weight's gradient, the gradient of the result by what each tap sees, chunk by chunk (outer_taps.c) */
#ifndef NNC_KERNEL_OUTER_H
#define NNC_KERNEL_OUTER_H

#include "base/number.h"
#include "kernel/lower/contract.h"

#define OUTER_ROWS       4
#define OUTER_COLUMNS    8
#define OUTER_FEW_ROWS   2    /* of convolutions: one output is left to windows, but where strides leave phases */
#define OUTER_MOST_DEPTH 4096 /* steps of columns in scratch, as many as caches hold */

typedef enum OuterKind { OUTER_PRODUCT, OUTER_CONVOLUTION, OUTER_WEIGHT } OuterKind;

typedef struct Outer {
    Lower *lower;
    const Node *node;
    OuterKind kind;
    Product product; /* of convolutions that of a group, of a phase or a chunk */
    DType dtype;     /* of sums */
    Index batch[MAX_RANK];
    Index first[2];  /* row and column of the tile */
    int64_t size[2]; /* rows and columns of it, ... */
    int64_t full[2]; /* which are so many but for the last ones */
    bool rest[2];    /* is it what is left of them? */
    bool brings;     /* columns of a tile are [depth][OUTER_COLUMNS] in ... */
    uint32_t panel;  /* this buffer, for ... */
    Index block;     /* rows from there on, ... */
    int64_t rows;    /* so many: all where nothing is brought */
    bool stages;     /* sums are stored side by side in scratch, before what is done with them */
    uint32_t sums;   /* [rows of a tile][OUTER_COLUMNS] */

    /* Of convolutions */
    ConvolutionPhase phase;
    uint32_t phases;
    Index tap[MAX_RANK], channel; /* of the step of the depth; of a transposed one */

    /* Of a weight's gradient: a chunk is pixels that follow each other, of an image or of several whole ones */
    int64_t images, extent[MAX_RANK]; /* of it */
    Index image, pixel[MAX_RANK];     /* where it begins; ... */
    uint32_t totals;                  /* sums of the chunks so far, [rows][OUTER_COLUMNS] */
    Index counted, step;              /* ... the image of the step in it, and the pixel of that */
} Outer;

/* outer_loops.c */

Index outer_open_small(Outer *o, bool columns, LoopKind kind); /* over the tile's rows or columns, or none for one */
void outer_clear(Outer *o, uint32_t buffer, int64_t elements);
Index outer_named(Lower *lower, const char *name, Index at, int64_t extent); /* a quotient, for several uses */

/* outer_windows.c */

bool outer_see_phase(Outer *o, uint32_t number);
const Expr *outer_weight(const Outer *o, Index depth, Index row);
void outer_bring_windows(Outer *o);
Index outer_open_taps(Outer *o); /* the loops of the depth of a transposed convolution */
void outer_pixel(const Outer *o, Index row, Index column, Index *position);

/* outer_taps.c */

bool outer_see_weight(Outer *o);
const Expr *outer_pixel_of_result(const Outer *o, Index row);
void outer_tap(const Outer *o, Index row, Index column, Index *position);
void outer_open_chunks(Outer *o);  /* the loops over all chunks, ... */
void outer_bring_taps(Outer *o);   /* what the columns of a tile see of one, ... */
Index outer_open_pixels(Outer *o); /* the loops over it, ... */
void outer_add_sum(const Outer *o, Index row, Index j, const Expr *sum); /* a sum of its pixels, to the total ... */
Index outer_total(const Outer *o, Index row, Index j);                   /* which is there */

#endif
