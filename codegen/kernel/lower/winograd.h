/* 3x3 convolutions by Winograd's minimal filtering (kernel/winograd.h): half to a quarter of the products, for
 * transforms of the image and of the result.
 *
 * The result is cut into tiles of m x m, and rows of tiles into blocks small enough for the second level.  Of a block,
 *
 *     for each vector of channels           a row of tiles of the image is transformed downwards, column by column,
 *                                           into `line`, and across from there into `tiles`
 *     for each panel of vectors of outputs  a matrix product per element of a tile, `tiles` by the weights of a panel,
 *                                           makes `products`, its sums in registers
 *                                           these are transformed downwards into `strip`, and across from there, row by
 *                                           row, into results, which the rest of the kernel is computed from
 *     where fuse has joined a pooling       the results went into `band` instead, and are pooled from there, row by row
 *
 * Layouts, in elements, vectors innermost: line [size][columns], tiles [size * size][vector of channels][tile],
 * products [vector of the panel][size * size][tile], strip [row of the block][column of tiles][size];
 * of the band those of lower.h. */
#ifndef NNC_KERNEL_LOWER_WINOGRAD_H
#define NNC_KERNEL_LOWER_WINOGRAD_H

#include "kernel/lower/point_products.h"
#include "kernel/winograd.h"

enum {
    FILTER_LINE,
    FILTER_TILES,
    FILTER_PRODUCTS,
    FILTER_STRIP,
    FILTER_SUMS,
    FILTER_BAND,
    FILTER_PIECES
}; /* of scratch */

/* Panels of equal width, and their weights: [panel][size * size][channel][vector, lane]. */
typedef struct FilterPanels {
    int64_t first, count; /* vectors before them, panels */
    int64_t vectors;
    bool partial; /* some lanes of the last vector are past the last output */
    const Var *panel;
    uint32_t weights; /* buffer, once lowered */
} FilterPanels;

typedef struct Filter {
    Lower *lower;
    const Node *node;
    Winograd form;
    Convolution conv;
    WindowDimension h, w;
    int64_t lanes, channel_vectors, output_vectors;
    int64_t tile_rows, tile_columns; /* of the result; the last ones may stick out */
    const Node *pool;                /* of the result, or NULL */
    int64_t pool_stride;             /* rows of the result for a row of it */

    /* What the recipe says */
    int64_t rows, blocks;    /* rows of tiles of a block; blocks of an image */
    int64_t tiles;           /* of a block: rows * tile_columns */
    int64_t pixels, vectors; /* tiles and vectors of outputs whose sums stay in registers */

    /* The image is at x_base + h * x_h + w * x_w; x_base is of the variables image, channels, and lane or channel */
    const Var *image, *block, *channels, *lane;
    Index x_base;
    int64_t x_h, x_w;
    ValueId x_source;
    uint32_t x;     /* buffer, once lowered */
    bool x_vectors; /* the channels of a vector follow each other in memory */

    bool one_by_one; /* no vectors of results can be stored */
    FilterPanels panels[MOST_SPANS];
    uint32_t panels_count;
    uint32_t piece[FILTER_PIECES]; /* NONE: not needed */
} Filter;

/* winograd_see.c: the convolution and its operands; false when filters do not take the kernel. */
bool filter_see(Lower *lower, const Kernel *kernel, Filter *filter);
/* Sets the form and what follows from it and the recipe; nothing is checked. */
void filter_set_form(Filter *filter, uint32_t results);
void filter_set_block(Filter *filter, int64_t rows);
void filter_set_panels(Filter *filter, int64_t pixels, int64_t vectors);
/* About how many cycles it takes (winograd_cost.c). */
double filter_cost(const Filter *filter);

/* Where the columns of the image begin and end, of the columns of `line`. */
int64_t filter_first_column(const Filter *filter);
int64_t filter_last_column(const Filter *filter); /* exclusive */
int64_t filter_columns(const Filter *filter);
int64_t filter_weight_elements(const Filter *filter, const FilterPanels *panels);
Packing filter_packing(const Filter *filter, const FilterPanels *panels);
void filter_position(const Filter *filter, Index output, Index row, Index column, Index *position);

/* winograd_transform.c: vectors or numbers at size, or results, points of a line. */
void filter_forward(const Filter *filter, Block *block, const Local *from, const Expr **to); /* B^T: size of both */
/* A^T: to the first `count` results; the last element is read for the last result alone. */
void filter_backward(const Filter *filter, Block *block, const Local *from, int64_t count, const Expr **to);
/* A line of so many locals that are declared in the block. */
const Local *filter_line(const Filter *filter, Block *block, bool lanes, int64_t count);
Index filter_at(const Filter *filter, const Index *digit, const int64_t *extent, uint32_t count);

/* What stands before and behind the products of a block. */
void filter_image(Filter *filter, Block *block);
void filter_results(Filter *filter, Block *block, const FilterPanels *panels);
/* Elements of the band that these write for the pooling, and that. */
int64_t filter_band_elements(const Filter *filter);
void filter_pool(Filter *filter, Block *block);

#endif
