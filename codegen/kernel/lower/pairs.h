/* Contractions of narrow numbers by bundles of the depth: an instruction adds up their products.  Pairs of i16 for
 * integers, as i32; where the target has such an instruction, quads of bytes for those that fit, and pairs of bf16, as
 * f32.
 *
 * The first operand, less its zero point, is brought into scratch as i16, some rows of the result at a time, with zeros
 * where a window stands on padding: [row of the image][column][channel].  So a tile walks it without asking what is
 * inside, and in one stretch along the taps of a row and the channels.  Constant weights stay 8 bits wide, packed in
 * pairs of the depth, [panel][kh][kw][pair of channels][column of the panel][2], and are widened in registers.
 *
 * Of quads the image is kept as u8 and weights are i8.  Where the image has negative numbers, `shift` is added to all
 * of it, and to the padding around it: what the sums have too much by that is the same for all pixels, the sum of a
 * column's weights times the shift, which stands in scratch while a panel's tiles start with it.  A zero point of the
 * image that is known only at run time, as what is quantised there has, stays in it likewise.
 *
 * The recipe `amx` is the same with sums in tile registers, which go through scratch to what finishes them.  Where the
 * target says so it takes f32, too, in parts: every operand is the sum of two bf16, the nearest and what is nearest to
 * the rest (each within 2^-8), and of their four products the one of both rests, 2^-16 of the whole at most, is left
 * out.  In scratch the rests of the image stand behind it, in the weights those of a panel behind the panel.
 *
 * Sums of integers are exact, whatever they are; the rest of the kernel goes on with them in f32.  Those of bf16 are
 * made of the text's products in another order (BUNDLE_BF16), and subnormal numbers count as 0. */
#ifndef NNC_KERNEL_PAIRS_H
#define NNC_KERNEL_PAIRS_H

#include "base/number.h"
#include "kernel/lower/contract.h"

#define PAIRS_MOST_PIXELS  16
#define PAIRS_TILE_PIXELS  32 /* of the recipe `amx`, whose sums are in tile registers; 2 vectors at most */
#define PAIRS_MOST_VECTORS 4
#define PAIRS_MOST_PARTS   2
#define PAIRS_APART        32  /* elements, a line of the cache, that keep what is in parts from falling ... */
#define PAIRS_ALIKE        256 /* ... into the same few sets, as pixels of so many elements would */

/* Tiles of a row of the result that are alike. */
typedef struct PairsTiles {
    int64_t first, count; /* column of the first, tiles */
    uint32_t pixels;
} PairsTiles;

/* Rows of the result that are alike: all of a convolution's; where tiles are flat, these are the rows, of two kinds. */
typedef struct PairsPart {
    int64_t first; /* of those that are flat: what it begins with */
    int64_t rows, width;
    int64_t chunk, chunks; /* rows that go together */
    WindowDimension h, w;
    int64_t in_rows, in_width; /* of scratch */
    PairsTiles tiles[2];
    uint32_t tile_kinds;
} PairsPart;

typedef struct PairsPanels {
    PanelSpan span;
    const Var *panel;
    uint32_t buffer; /* weights */
    int64_t rest;    /* elements from a part of a panel to the next */
    Index at;        /* of the panel's first */
} PairsPanels;

enum { PAIRS_IMAGE, PAIRS_SUMS, PAIRS_STARTS, PAIRS_PIECES }; /* of scratch */

typedef struct Pairs {
    Lower *lower;
    const Node *node;
    bool is_product;
    bool flat; /* tiles are of rows of a matrix or, of registers of 16 rows, of pixels that no window joins, over the
                  ends of the image's rows */
    Product product;
    Convolution conv;
    int64_t lanes, columns, depth; /* of a group; the depth as it is */
    int64_t room;                  /* the depth of scratch and weights: whole bundles */
    int64_t pitch;                 /* of scratch, from pixel to pixel: the room, or some more */
    Bundle bundle;
    bool tiles;     /* tile registers: the recipe is `amx` ... */
    int64_t words;  /* ... and a step of the depth is so many bundles, of which a tap's run has several times as many */
    uint32_t parts; /* operands are f32, as so many of bf16 each; 1: they are what they are */
    int64_t image_rest; /* elements from a part of the image to the next, in scratch */
    double shift;       /* what is added to the image */
    ValueId bytes;      /* the image as u8 from which ... */
    ValueId zero_point; /* ... this zero point would be taken away, and is not; NONE: the operand */
    const Var *image, *group;
    const Var *column, *channel; /* of a group */
    const Var *kh, *kw;
    ValueId weights;    /* the constant */
    double zero;        /* that is taken away from it */
    Index weights_from; /* where its elements are, by group, column, channel, kh and kw */
    uint32_t pixels, vectors;
    PairsPart part[PAIRS_MOST_PARTS];
    uint32_t part_count;
    PairsPanels panels[MOST_SPANS];
    uint32_t panel_kinds;
    bool one_by_one; /* no vector can store the results */
    uint32_t piece[PAIRS_PIECES];
} Pairs;

/* pairs_see.c: what the kernel's contraction is; false when pairs do not take it. */
bool pairs_see(Lower *lower, const Kernel *kernel, Pairs *pairs);
/* Elements that follow one another in scratch and in weights: of a tap, or of all taps of a row. */
int64_t pairs_run(const Pairs *pairs, const PairsPart *part);
/* Where an element of the result is: a row and a column of the part, and a column of the group. */
void pairs_position(const Pairs *pairs, const PairsPart *part, Index row, Index w, Index column, Index *position);
/* Of an image that is flat: from the second dimension on. */
void pairs_flat_position(const Pairs *pairs, const PairsPart *part, Index row, Index w, Index *position);

/* Rows of a matrix, or pixels, where they are flat. */
int64_t pairs_flat_rows(const Pairs *pairs);

/* pairs_fill.c: whether elements are brought over one by one: of an image, or of groups that end within blocks. */
bool pairs_fills_singly(const Pairs *pairs);
/* What the rows from `first` on read of the first operand, into scratch. */
void pairs_fill(Pairs *pairs, const PairsPart *part, Index first, Block *block);

/* pairs_body.c: packs the weights, and one tile: `row` of the result, `line` of scratch, at column w. */
void pairs_pack(Pairs *pairs);
/* `zero_point`, in f32. */
const Expr *pairs_zero_point(const Pairs *pairs);
/* What a panel's tiles start from, into scratch. */
void pairs_start(Pairs *pairs, const PairsPanels *panels, Block *block);
typedef struct PairsAt {
    const PairsPart *part;
    const PairsPanels *panels;
    uint32_t pixels;
    Index row, line, w;
} PairsAt;
void pairs_tile(Pairs *pairs, Block *block, const PairsAt *at);
/* What the tile registers are shaped for. */
MatrixProduct pairs_tile_shape(const Pairs *pairs, const PairsPart *part, const PairsPanels *panels, uint32_t pixels);

/* Have tiles something to start from? */
static inline bool pairs_starts(const Pairs *pairs)
{
    return pairs->shift != 0 || pairs->zero_point != NONE;
}

/* Of the image in scratch, and of the sums */
static inline DType pairs_dtype(const Pairs *pairs)
{
    return pairs->bundle == BUNDLE_I16 ? DT_I16 : pairs->bundle == BUNDLE_BYTES ? DT_U8 : DT_BF16;
}

static inline DType pairs_sum_dtype(const Pairs *pairs)
{
    return pairs->bundle == BUNDLE_BF16 ? DT_F32 : DT_I32;
}

/* How many rows or columns of the image there are from one of the result to the next, and from tap to tap, as scratch
 * has them: it leaves out what no tap reads. */
static inline int64_t pairs_step(const WindowDimension *d)
{
    return d->size == 1 ? 1 : d->stride;
}

/* And in the image, from one of scratch to the next. */
static inline int64_t pairs_source_step(const WindowDimension *d)
{
    return d->size == 1 ? d->stride : 1;
}

#endif
