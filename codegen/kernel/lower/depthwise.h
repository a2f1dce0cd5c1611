/* Depthwise convolutions, and those of few channels a group: each result is made of few, so that there is no depth to
 * go along.
 *
 * What fills a vector is what lies next to each other in memory: channels of a block, or neighbours along the width.  A
 * tile is a few pixels, or a few vectors of them, whose sums stay in registers over all taps; where the taps are few
 * their weights stay in registers too, while the tiles pass over all rows that the whole window fits in. */
#ifndef NNC_KERNEL_DEPTHWISE_H
#define NNC_KERNEL_DEPTHWISE_H

#include "kernel/lower/contract.h"

#define MOST_TAPS    7  /* of a row, that stand one by one in the text */
#define MOST_APART   15 /* ... where they lie in several phases of a plane, which no loop goes over */
#define MOST_OUTPUTS 32

typedef enum Along {
    ALONG_CHANNELS,
    ALONG_WIDTH,
    ALONG_NOTHING, /* no vectors */
} Along;

typedef struct Depthwise {
    Lower *lower;
    const Node *node;
    const Node *reader;               /* of the line; or NULL */
    ConvolutionPhase part;            /* of a transposed one: those results that see the same taps; else all */
    Convolution conv;                 /* of the part */
    WindowDimension image_h, image_w; /* of the image ... */
    WindowDimension h, w;             /* ... and of what the tiles pass over, it or its plane */
    int64_t group_channels, group_outputs;
    int64_t rows_begin, rows_end, columns_begin, columns_end; /* of the result: the whole window is inside the image */

    /* What the recipe says */
    Along along;
    int64_t lanes;         /* of a vector; 1 along nothing */
    int64_t pixels;        /* of a tile; along the width vectors of them */
    int64_t outputs;       /* of a group, that a tile makes of the same elements */
    bool held;             /* the weights of all taps stay in registers */
    bool framed;           /* a channel at a time is brought into scratch, zeros around it (depthwise_plane.c): */
    int64_t phases, phase; /* columns phases * j + i lie in phase i of so many elements */
    int64_t reach;         /* elements of the plane that vectors go to, where these are more; else 0 */
    ValueId line;          /* not all rows, but one after the other of what is made of it, into scratch; NONE */
    uint32_t line_x;       /* [block][column][lane] */
    int64_t together;      /* rows of the result that a tile has: 1, or more over a plane */
    bool edges; /* columns before columns_begin and from columns_end on are a loop; else they stand in the text */

    /* Operands: an element of x is at x_base + h * x_h + w * x_w; x_base is of the variables here */
    const Var *image, *block, *lane, *channel; /* block: lanes or outputs of the result; channel: of the group */
    Index x_base;
    int64_t x_h, x_w;
    ValueId x_source;
    uint32_t x;
    int64_t image_x_h, image_x_w; /* framed: of the image, which comes from image_x, at x_base */
    uint32_t image_x;
    bool widened; /* x is of 8 or 16 bits, and made f32 where it is read */
    bool x_whole; /* what lies between its elements is its own, too */
    bool packed;  /* along channels: weights are packed at compile time, [block][kh][kw][lane] */
    uint32_t weights;
    ValueId source; /* of these */
} Depthwise;

/* depthwise_see.c: is all that it reads of f32, and in memory but for image and weights, which it may widen? */
bool depthwise_in_memory(const Lower *lower, const Node *node);
/* Of `conv`. */
void depthwise_see_window(Depthwise *dw);
bool depthwise_see_image(Depthwise *dw); /* false: no address of it goes evenly along rows and columns */
/* Everything but the tile: false when vectors cannot be of that. */
bool depthwise_see_along(Depthwise *dw, Along along);
/* How the weights of lanes along channels are packed at compile time; false when they are not. */
bool depthwise_packing(const Depthwise *dw, ValueId *source, Packing *packing);
/* The output that is `number` behind the block's first one, in all lanes. */
Index depthwise_output(const Depthwise *dw, int64_t number);
void depthwise_position(const Depthwise *dw, Index output, Index row, Index column, Index *position);
/* Where a result of the part is, and a tap of it in the weights. */
void depthwise_result(const Depthwise *dw, Index output, Index row, Index column, Index *position);
void depthwise_weight(const Depthwise *dw, Index output, Index channel, Index kh, Index kw, Index *position);
/* depthwise_plane.c: lets the tiles of vectors along the width pass over planes in scratch; false: it gains nothing, or
 * cannot be.  After depthwise_see_window. */
bool depthwise_see_plane(Depthwise *dw);
bool depthwise_plane_is_near(const Depthwise *dw); /* in the first level, beside what comes and goes */
int64_t depthwise_plane_elements(const Depthwise *dw);
int64_t depthwise_planes_together(const Depthwise *dw); /* channels whose planes have their zeros once */
void depthwise_clear(const Lower *lower, Block *block, uint32_t scratch, int64_t elements); /* whole vectors */
void depthwise_bring_plane(const Depthwise *dw, Block *block); /* the image of the block's channel */
typedef struct PlaneRow {
    DType dtype; /* of the elements in memory, which are f32 in scratch */
    uint32_t source, scratch;
    Index from, to;
    int64_t step, count; /* from an element in memory to the next; how many */
    bool whole;          /* what lies between is its own, too */
} PlaneRow;
void depthwise_copy_row(const Depthwise *dw, Block *block, const PlaneRow *row);
/* From the element of the first tap of a row to that of kw. */
int64_t depthwise_tap(const Depthwise *dw, int64_t kw);
/* depthwise_body.c: the loops of lower->kernel. */
void depthwise_emit(Depthwise *dw);
/* Of one that is no anchor, but makes the image of `reader`, which is: rows of that, vectors of channels of a block.
 * False when it cannot.  `image` is the variable of the reader's images. */
bool depthwise_see_line(Lower *lower, Depthwise *dw, const Node *node, const Node *reader, const Var *image);
void depthwise_line(Lower *lower, Depthwise *dw, Block *block, Index row, uint32_t scratch);
void depthwise_emit_row(Depthwise *dw, Block *block, Index row);

#endif
