/* The register-tiled contraction: matmul and conv2d as one loop nest around one micro-kernel.
 *
 * Both are seen as pixels x columns: rows of a matmul are the pixels of a 1 x M image, its columns the channels.  A
 * tile is a few pixels times `vectors` vectors of columns, whose sums stay in registers while the reduction runs over
 * blocks of the depth (input channels, k) and the window's taps. */
#ifndef NNC_KERNEL_TILED_H
#define NNC_KERNEL_TILED_H

#include "base/number.h"
#include "kernel/lower/contract.h"

#define MOST_PIXELS  32
#define MOST_WEIGHTS (512 << 10) /* bytes that stay in the second level while rows or chunks pass over them */

/* Rounds of a loop that see the same of the image. */
typedef struct TileView {
    const uint32_t *valid; /* per tap (kh, kw): bit p when pixel p's operand is inside the image */
    int64_t end;           /* the first round behind them */
    int64_t slide;         /* of one row of taps: all but the first see this many taps earlier from round to round */
} TileView;

#define MOST_VIEWS 8

/* How many of the first taps see the same. */
static inline int64_t tiled_equal_taps(const uint32_t *valid, int64_t count)
{
    int64_t equal = 1;
    while (equal < count && valid[equal] == valid[0])
        equal++;
    return equal;
}

/* Where a tile is, or from one round to the next. */
typedef struct TilePlace {
    int64_t pixel; /* the first of the result: flat, or the column where tiles stay in a row */
    int64_t x;     /* address of that pixel's operand at tap 0, 0 */
    int64_t tile;  /* number of the tile, in order */
} TilePlace;

/* Tiles that differ only in where they start, by a constant step, and in what lies outside the image: one loop. */
typedef struct TileLoop {
    uint32_t pixels;
    int64_t offset[MOST_PIXELS]; /* of each pixel's operand from the first pixel's */
    TileView view[MOST_VIEWS];   /* round by round */
    uint32_t views;
    int64_t count;
    TilePlace first, step;
} TileLoop;

typedef struct Tiling {
    bool rows;     /* tiles lie in one row, which is a loop, and the taps' range kh is clamped at run time */
    int64_t tiles; /* in a row or in the image */
    TileLoop *loop;
    uint32_t count;
} Tiling;

/* A constant of the second operand, start + bundle * .. + block * .. + depth * .. + kh * .. + kw * .. + column * ..,
 * depth that within a block.  Where a bundle has several groups: start + bundle * .. + group * .. + .., depth and
 * column those within the group. */
typedef struct ConstantSource {
    ValueId value;
    int64_t start, bundle, group, block, depth, tap_h, tap_w, column;
} ConstantSource;

/* An array as it lies in panels. */
typedef struct Packed {
    uint32_t buffer;
    Index at;                          /* of a panel's first vector, of the variables panel, block, bundle and outer */
    int64_t tap_h, tap_w, depth, lane; /* its strides */
} Packed;

/* Panels of equal width, and where their weights are. */
typedef struct PanelGroup {
    int64_t first, count; /* vectors before it, panels */
    uint32_t vectors;
    bool partial;             /* some lanes are past the last column */
    const Var *panel;         /* its loop */
    Packed weight;            /* or what is widened to it ... */
    Packed side[MOST_LEAVES]; /* ... with these, in the order of Tiled.source */
    int64_t elements;         /* of weights of all panels, when they are packed */
} PanelGroup;

typedef enum Order {
    ORDER_CHUNKS, /* a few tiles x all panels, whole depth: the weights stay in the second level */
    ORDER_PANELS, /* a panel x a block of its depth x all tiles: the block stays in the first level */
} Order;

/* What a recipe asks for, or KNOB_FREE. */
typedef struct TiledKnobs {
    int64_t pixels, vectors, chunk, rounds, rows, transposes;
} TiledKnobs;

enum { PIECE_LINE, PIECE_ROWS, PIECE_BAND, PIECE_PANELS, PIECE_PARTIAL, PIECE_SUMS, PIECES }; /* of scratch */

typedef struct Tiled {
    Lower *lower;
    const Node *node;
    ValueId second;  /* the operand whose elements are vectors: what follows calls it weights */
    bool is_product; /* of matrices; else a convolution: */
    bool by_pixels;  /* a product that a pointwise convolution is: its outputs are the rows, its pixels the columns */
    Product product;
    uint32_t phase, phases;            /* of a transposed convolution, which are tiled one after the other */
    bool transposed;                   /* the weight is [channels, outputs] */
    bool empty;                        /* no tap of the phase meets the image: its sums are zeros */
    int64_t tap_begin[2], tap_step[2]; /* along h and w: tap j reads the weight's begin + step * j */
    uint32_t lanes;

    /* Result */
    const Var *outer[MAX_RANK]; /* loops around everything: batches, bundles */
    uint32_t outer_count;
    int64_t out_h, out_w, columns; /* columns of a bundle */
    const Var *pixel, *column;     /* of: */
    Index position[MAX_RANK];      /* the position in the result */
    ValueId stored; /* the one stored result with the anchor's type, which may hold partial sums, or NONE */

    /* Groups: neighbouring ones that fill a vector of columns together are a bundle, whose weights are zero between
     * an output and the channels of another group.  One bundle of one group where there are no groups. */
    int64_t bundles, joined;               /* groups of a bundle */
    int64_t group_channels, group_outputs; /* of a group */
    const Var *bundle;

    /* Reduction */
    int64_t depth, block_depth; /* channels of a bundle, or k; of one block */
    int64_t in_h, in_w, taps_h, taps_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    const Var *block;

    /* First operand: x_base + c * x_depth + h * x_h + w * x_w; x_base depends on block and outer */
    ValueId x_value;  /* the operand, or what the kernel casts to it */
    ValueId x_source; /* whose memory it is in; x: the kernel's buffer, once it is lowered */
    uint32_t x;
    Index x_base;
    int64_t x_depth, x_h, x_w;
    bool takes_strip; /* it is a strip of rows (strip.h) */
    bool computed;  /* here, what a row of the result reads of the image at a time, into the scratch x (tiled_line.c) */
    int64_t line_h; /* from a tap's row to the next one's in that scratch */

    /* Schedule */
    uint32_t pixels, vectors; /* of a tile at most */
    Order order;
    bool clamped;      /* one text for all pixels of a row, the taps' range kw clamped at run time, too */
    bool few_channels; /* an image of few channels: kw, channel, kh instead of block, kh, kw, channel */
    bool packed;       /* the weights are packed at compile time, from: */
    ConstantSource source[MOST_LEAVES]; /* the first has them all; the others scale them */
    uint32_t source_count;
    uint32_t weight_bytes;       /* of an element as it is read */
    bool widened;                /* they are computed of these */
    uint32_t parts;              /* so many steps of the depth share a word of 32 bits, when widened */
    const Node *scaled;          /* a product, one operand of which is the same throughout a block of the depth, ... */
    uint32_t scale;              /* ... which one; NULL: none */
    bool in_place;               /* they are read where they are */
    int64_t chunk;               /* tiles */
    int64_t block_count, blocks; /* whole blocks of the depth; of one round when the sums are partial */
    int64_t rounds; /* partial sums lie in the result, or in scratch where the weights come packed by round */
    Tiling tiling;
    PanelGroup group[MOST_SPANS];
    uint32_t group_count;
    const Var *round;
    bool transposes;     /* the first operand is brought into scratch by rounds, from: */
    Index plain_base;    /* its x_base ... */
    int64_t plain_depth; /* ... and x_depth; what stands there is of the scratch */
    int64_t together;    /* panels that take a round one after the other, their sums in scratch between, or of which
                            all pass over a tile's rows where there is one round; 0: each all */
    Index first_panel;   /* of these */
    const Node *pool;    /* pooling of the result, row by row through a band; NULL */
    int64_t pool_window, pool_stride;
    bool rolled;     /* what is done with sums is too long to be written out for each: a loop does it, from scratch */
    bool one_by_one; /* no vector can store the results, nor those of a last panel that is partial: they go through
                        scratch */
    TiledKnobs asked;
    uint32_t piece[PIECES]; /* of the recipe's scratch; NONE */
} Tiled;

/* tiled_see.c: fills in result, reduction and first operand of a phase of lower->kernel; false when tiles do not take
 * it. */
bool tiled_see(Lower *lower, Tiled *con, uint32_t phase);
/* Lanes that all have a column, of a product of few columns that whole vectors do not divide: what is past the last
 * column would be computed for nothing, and stored on a way through scratch. */
int64_t tiled_lanes(const Target *target, const Product *product);
/* Of a convolution, the anchor of the kernel. */
int64_t tiled_window_lanes(const Lower *lower, const Convolution *conv);
/* Steps of a block of the depth that go beyond its last one in no block, where whole vectors would; 0: too few. */
int64_t tiled_divided_depth(int64_t depth, int64_t lanes);
/* tiled_pixels.c: pixels and vectors of a tile, as they are asked for. */
void tiled_choose_pixels(Tiled *con);
/* Do the pixels of the image follow one another from row to row as along them? */
bool tiled_goes_straight(const Tiled *con);
/* Do tiles of phases stay in their rows? */
bool tiled_keeps_rows(const Tiled *con);
/* tiled_tile.c: chooses the tile and cuts the image, as it is asked to; false when that cannot be. */
bool tiled_choose(Tiled *con);
/* tiled_cut.c: the image into tiles. */
void tiled_cut(Tiled *con);
/* Scalar operations that the kernel does beside its sums, and results that it stores */
int64_t tiled_words_beside(const Lower *lower);
/* tiled_constant.c: constants of which the second operand is made, or is computed here. */
bool tiled_see_constant(Tiled *con); /* false: there is something else in it */
/* The depth of blocks throughout which scales are the same; `otherwise` where they are not cut. */
int64_t tiled_scale_block(const Tiled *con, int64_t otherwise);
void tiled_pack_constant(Tiled *con, PanelGroup *group);
/* A vector of weights at `at` of the panel's array, or what is widened to it; without the scale when it is that of
 * blocks.  kh, kw and the step within the block are for the sides. */
typedef struct WeightAt {
    Index at, block, kh, kw, depth;
} WeightAt;
const Expr *tiled_weight(Tiled *con, const PanelGroup *group, const WeightAt *at, uint32_t vector, const Var *lane);
const Expr *tiled_block_scale(Tiled *con, const PanelGroup *group, Index block, uint32_t vector, const Var *lane);

/* tiled_pack.c: the panels of the second operand: packed at compile time, read where they are, or packed into
 * scratch by loops appended to lower->block (inside the loops over the batch). */
bool tiled_could_read_in_place(const Tiled *con);
bool tiled_lies_in_panels(const Tiled *con);      /* then it is read in place */
int64_t tiled_packed_elements(const Tiled *con);  /* that loops pack into scratch; 0: none */
int64_t tiled_partial_elements(const Tiled *con); /* sums that scratch holds between rounds */
void tiled_weights(Tiled *con);
/* tiled_panels.c: their widths, ... */
void tiled_panels(Tiled *con);
/* ... and in memory: columns of a panel as it is packed, and where in it a vector begins.  Where flash counts, a panel
 * is not padded: its last vector begins before the one ahead of it ends, and what they share is computed twice. */
int64_t tiled_panel_width(const Tiled *con, const PanelGroup *group);
int64_t tiled_panel_vector(const Tiled *con, const PanelGroup *group, uint32_t vector);
bool tiled_packs_once(const Tiled *con);      /* in a run, for all images that the tiles then pass over */
bool tiled_packs_panels(const Tiled *con);    /* one at a time, or together, which the tiles then pass over */
bool tiled_goes_along_rows(const Tiled *con); /* panels together, of which each tile's rows take all */
/* ... where an element is in the second operand, ... */
void tiled_weights_position(const Tiled *con, Index depth, Index kh, Index kw, Index column, Index *position);

/* ... and the packed order: which digit stands where, and each digit's extent and step in the packed array. */
enum {
    DIGIT_BUNDLE,
    DIGIT_PANEL,
    DIGIT_BLOCK,
    DIGIT_TAP_H,
    DIGIT_TAP_W,
    DIGIT_DEPTH,
    DIGIT_COLUMN,
    DIGIT_PART,
    DIGITS
};

typedef struct PackedOrder {
    uint32_t place[DIGITS];
    int64_t extent[DIGITS], step[DIGITS], elements;
} PackedOrder;

/* Blocks of the depth that the array has room for, and the one that a round begins with. */
int64_t tiled_packed_blocks(const Tiled *con, const PanelGroup *group);
Index tiled_first_block(const Tiled *con, const PanelGroup *group);
PackedOrder tiled_packed_order(const Tiled *con, const PanelGroup *group);
void tiled_set_packed(Tiled *con, PanelGroup *group, uint32_t buffer, int64_t start);
void tiled_pack_panel(Tiled *con, const PanelGroup *group); /* the one of this round, if they go one at a time */
/* tiled_transpose.c: transposed operands, brought into scratch.  False when that is asked for and cannot be. */
bool tiled_choose_transpose(Tiled *con);
void tiled_choose_together(Tiled *con);
int64_t tiled_transposed_elements(const Tiled *con);
void tiled_transpose(Tiled *con); /* what a round takes, appended to lower->block */
/* The first operand of the value's maker that the kernel makes, too; NONE: there is none, or it makes not even the
 * value. */
ValueId tiled_made_operand(const Lower *lower, ValueId value);
/* tiled_line.c: images that the kernel computes, as much as a row of the result reads, in scratch. */
bool tiled_see_line(Tiled *con); /* after the window; x_base, x_depth, x_w and line_h; false when it cannot be */
int64_t tiled_line_elements(const Tiled *con);
void tiled_line(Tiled *con, Block *block, const Var *row); /* fills it in */
/* tiled_body.c: one tile.  `pixel` is its first pixel, `x` the address of that pixel's operand at tap 0, 0 without
 * x_base, `tile` its number, `row` the row's variable or NULL. */
typedef struct TileAt {
    const TileLoop *loop;
    Index round; /* of the loop */
    const PanelGroup *group;
    Index pixel, x, tile;
    Index column; /* of the first pixel in its row, where tiles stay in rows */
    const Var *row;
} TileAt;
void tiled_tile(Tiled *con, Block *block, const TileAt *at);
/* A loop over the taps kh whose row lies inside the image, for a row of the result. */
Block *tiled_clamped_taps(const Tiled *con, Block *block, const Var *row, Index *kh);
void tiled_position(const Tiled *con, Index pixel, Index column, Index *position);

#endif
