/* The gradient of a convolution's weight: sums over the pixels of all images.
 *
 *     result[output, channel, tap] = sum over images and windows of d[output, window] * x[channel, window at the tap]
 *
 * A tile is a few rows (channels at one tap, or taps of one channel) times `vectors` vectors of outputs, whose sums
 * stay in registers while the pixels of a chunk pass by: some lines of an image, or some whole images, so few that both
 * operands stay near while all tiles pass over them.  Between chunks the sums of all tiles lie in scratch,
 *
 *     sums [vector of outputs][row: channel, tap][lane]
 *
 * from where they come, a vector of outputs at a time, into the order of the result.  Groups go one by one. */
#ifndef NNC_KERNEL_GRADIENT_H
#define NNC_KERNEL_GRADIENT_H

#include "base/number.h"
#include "kernel/lower/contract.h"

#define GRADIENT_MOST_ROWS 32

enum { GRADIENT_SUMS, GRADIENT_IMAGE, GRADIENT_PANEL, GRADIENT_TURNED, GRADIENT_PIECES }; /* of scratch */

/* Where the elements of an operand are: at base + channel * .. + h * .. + w * .. */
typedef struct PixelAddress {
    uint32_t buffer;
    ValueId source; /* whose memory it is */
    Index base;     /* of the variables image and block, or image and vector */
    int64_t channel, h, w;
} PixelAddress;

typedef struct Gradient {
    Lower *lower;
    const Node *node;
    Convolution conv; /* of a group: */
    int64_t groups;
    const Var *group;
    WindowDimension h, w;
    int64_t lanes, taps; /* of a vector; of the window */

    /* What the recipe says */
    int64_t rows, vectors; /* of a tile at most */
    bool along_taps;       /* rows are taps of one channel; else channels at one tap */
    int64_t images, lines; /* of a chunk: whole images, or lines of one */

    int64_t block, blocks;          /* channels whose addresses are evenly apart, or taps; how many of these */
    int64_t block_lines;            /* of taps */
    int64_t shares;                 /* of the blocks, which threads may share out: all panels pass over one */
    PanelSpan row_span[MOST_SPANS]; /* how tiles cut the block: tiles of so many rows ("vectors") */
    uint32_t row_spans;
    int64_t output_vectors;
    PanelSpan panel_span[MOST_SPANS]; /* and the outputs */
    uint32_t panel_spans;

    bool d_packed;          /* the outputs of a panel are brought side by side, chunk by chunk */
    bool straight;          /* pixels follow one another from line to line */
    bool turns;             /* sums are turned to the order of the result in scratch, ... */
    int64_t turned;         /* ... so many rows at a time */
    PixelAddress x, d;      /* x along taps, and a packed d: in scratch, of the chunk; d.channel is that of a vector */
    int64_t copy_h, copy_w; /* extents of the chunk's copy of x, padded */
    uint32_t piece[GRADIENT_PIECES]; /* of the recipe's scratch; NONE */
    const Var *chunk, *part;         /* of images, of their lines */
    const Var *image, *line, *vector, *lane;
    const Var *channels, *share; /* the block of channels, or the channel; of which share of these */
} Gradient;

/* Of the sums of an output. */
static inline int64_t gradient_rows(const Gradient *g)
{
    return g->conv.channels * g->taps;
}

/* Elements from turned row to turned row, which do not meet in one set of the first level. */
static inline int64_t gradient_turned_stride(const Gradient *g)
{
    return ceil_div(g->turned, g->lanes) * g->lanes + 16;
}

/* The one that `channel` of the group is among all. */
static inline Index gradient_channel(const Gradient *g, Index channel)
{
    Arena *arena = g->lower->arena;
    return index_add(arena, index_scale(arena, index_var(arena, g->group), g->conv.channels), channel);
}

static inline Index gradient_output(const Gradient *g, Index output)
{
    Arena *arena = g->lower->arena;
    return index_add(arena, index_scale(arena, index_var(arena, g->group), g->conv.outputs), output);
}

/* gradient_body.c: the loops of lower->kernel. */
void gradient_emit(Gradient *g);

#endif
