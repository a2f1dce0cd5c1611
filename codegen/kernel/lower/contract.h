/* What the recipes of contractions share. */
#ifndef NNC_KERNEL_LOWER_CONTRACT_H
#define NNC_KERNEL_LOWER_CONTRACT_H

#include "kernel/lower/lower.h"
#include "ops/meaning.h"

/* A loop over a dimension, which is entered; none for one round. */
Index lower_open_loop(Lower *lower, const char *name, int64_t rounds, LoopKind kind);
/* One dimension of the window, counted from the last; what it makes of a dimension less: extent 1. */
WindowDimension lower_window_dimension(const Window *window, uint32_t from_last);
/* A loop over the taps of a dimension that lie inside the image for the result's position `out`, cut by its bounds; no
 * loop where there is one tap, always inside.  Returns where the tap's statements go. */
Block *lower_clamped_taps(Lower *lower, Block *block, const char *name, const WindowDimension *d, Index out,
                          Index *tap);

/* The image of a convolution in memory, at base + h * h + w * w; base is of the variables that count images and vectors
 * of channels, and of the lane. */
typedef struct VectorImage {
    ValueId source;
    Index base;
    int64_t h, w;
    bool vectors; /* the channels of each vector follow one another, and fill it */
} VectorImage;

/* Of two dimensions; false when it is computed, or lies unevenly. */
bool lower_see_image(Lower *lower, const Node *node, const Var *n, const Var *channels, const Var *lane,
                     VectorImage *image);
/* Are all operands f32 that the kernel does not make, and the weights [output][channel of its group][h][w], constant,
 * and updated by no entry, so that they are packed when compiling? */
bool lower_has_constant_weights(const Lower *lower, const Node *node, const Convolution *conv);

/* Where in the image the tap of a window is: outside, too. */
Index lower_tap_at(Arena *arena, const WindowDimension *d, Index window, Index tap);

/* An address computed once, in a variable of the block. */
Index lower_named_address(Lower *lower, Block *block, const char *name, Index address);

/* Panels of equal width, in vectors of columns. */
typedef struct PanelSpan {
    int64_t first, count, vectors; /* vectors before them, panels, vectors of each */
    bool partial;                  /* some lanes are past the last column */
} PanelSpan;

#define MOST_SPANS 3

/* Columns in so many panels of balanced widths: 7 vectors in 3 are 3, 2, 2.  The last panel stands alone when its last
 * lanes are past the end.  Returns how many spans that are. */
uint32_t lower_panel_spans(int64_t columns, int64_t lanes, int64_t panels, PanelSpan span[MOST_SPANS]);

/* One step of a tile: each row's sums get the products of its element with all vectors, which are loaded once. */
typedef struct Elements { /* at + what is added */
    uint32_t buffer;
    DType dtype; /* as they lie in memory; converted where they are loaded */
    Index at;
} Elements;

typedef struct OuterProduct {
    uint32_t rows, vectors;
    const Local *sum;    /* [rows][vectors] */
    const Local *vector; /* [steps][vectors], of which this is step number */
    int64_t number;
    const Local *element; /* no lanes */
    uint32_t valid;       /* bit r: row r takes part */
    Elements first;       /* of row r at offset[r] */
    const int64_t *offset;
    const Expr *const *second; /* of vector v, in f32 */
} OuterProduct;

void lower_outer_product(Lower *lower, Block *block, const OuterProduct *step);

/* Can vectors finish the contraction: may all that the kernel computes from its result, and stores, be computed for all
 * values of `lane` at once, at this position of the result?  What follows `stop`, unless NULL, is not asked. */
bool lower_finishes_vectors(Lower *lower, const Node *anchor, const Index *position, const Var *lane, const Node *stop);
/* A pooling has joined the contraction, or another reduction: only for recipes that keep a band of rows between them.
 */
bool lower_has_other_windows(const Lower *lower, const Kernel *kernel);
/* The pooling that fuse has joined to the convolution: its windows do not overlap from row to row.  NULL. */
const Node *lower_pooling(const Lower *lower, const Kernel *kernel);

/* The one stored result, when it has the type of the anchor's: it may hold partial sums.  NONE. */
ValueId lower_result_for_sums(const Lower *lower, const Node *anchor);

/* Where a product's operand 0 is at [row, depth], or operand 1 at [column, depth]: `across` is the row or the column,
 * batch[i] is where dimension i of the batch is. */
void lower_product_position(const Lower *lower, const Node *node, const Product *product, bool right,
                            const Index *batch, Index across, Index depth, Index *position);
/* What an operand is in memory: itself, or narrow elements that the kernel widens. */
ValueId lower_stored_operand(const Lower *lower, ValueId value);

/* Constants that a value at a position is computed of, by f32 words, casts from 8 and 16 bits, and views (leaves.c). */
#define MOST_LEAVES 4

typedef struct Leaf {
    ValueId value; /* in memory */
    Index address;
} Leaf;

typedef struct Leaves {
    Leaf leaf[MOST_LEAVES];
    uint32_t count;
} Leaves;

/* False when anything else is read, or several elements of one constant. */
bool lower_leaves(Lower *lower, ValueId value, const Index *position, Leaves *leaves);
/* The one value of 8 or 16 bits in memory, constant or not, that it is computed of in the same way, beside numbers and
 * tensors of one element; false: there is another. */
bool lower_narrow_leaf(Lower *lower, ValueId value, const Index *position, Leaf *leaf);
/* Is it a product of two operands, behind views, which the kernel computes? */
bool lower_is_scaled(const Lower *lower, ValueId value, const Node **product);

#endif
