/* Kernels: groups of nodes that run as one, how each is computed (recipe.h), and the loops that it becomes
 * (lower/lower.h). */
#ifndef NNC_KERNEL_KERNEL_H
#define NNC_KERNEL_KERNEL_H

#include "kernel/loop/loop.h"
#include "kernel/recipe.h"
#include "target.h"

/* One array of the weights: a constant as it is, or packed for a contraction by an affine reading order.
 * Element e of the packed array, with e's mixed-radix digits over `extent`, is the source's element
 * start + sum(digit * stride), or zero where sum(digit * factor) >= most of one of the bounds. */
typedef struct Packing {
    uint32_t rank; /* 0: as it is */
    uint32_t
        winograd;    /* results along each side of a tile: the source is transformed first (winograd.h); 0: it is not */
    int64_t quarter; /* of four blocks of so many elements come seven, sums of them (strassen.h); 0: there are none */
    int64_t parts;   /* the source is f32, the array bf16, so many for each element: the nearest to it ... */
    int64_t rest; /* ... and, each time so many elements behind, the nearest to what is left; 0: it is as the source */
    int64_t start, extent[MAX_RANK], stride[MAX_RANK];
    struct {
        int64_t factor[MAX_RANK], most; /* all factors zero: no bound */
    } bound[2];
} Packing;

/* Of the array's elements, where the source is of this dtype. */
static inline DType packing_dtype(const Packing *packing, DType source)
{
    return packing->parts ? DT_BF16 : source;
}

typedef struct WeightArray {
    Packing packing;
    StorageId storage; /* which says whose elements these are, and where */
    uint32_t next;     /* array of the same value; NONE */
} WeightArray;

typedef struct WeightTable {
    WeightArray *array;
    uint32_t count, capacity;
    uint32_t *first; /* per value: its first array; NONE */
} WeightTable;

/* What threads do at once: some of the statements at the top of a kernel's body (storage/deal.h). */
typedef struct Deal {
    Block body;
    const Var
        *part; /* which bounds in the body go by: parts run in any order, and at once; NULL: one thread does all */
} Deal;

struct Kernel {
    Str name;    /* of its function, before sharing */
    uint32_t id; /* Node.kernel */
    Form form;
    NodeId anchor; /* the node that decides how it is computed; NONE for a map */
    NodeId *node;
    uint32_t node_count;
    bool there; /* nothing is done: a copy to where its source lies anyway, or of what nobody reads (storage/flow.h) */
    bool asks;  /* a copy, which is made unless its source lies there */
    Recipe recipe;
    uint32_t threads, parts; /* that may share its work, in about so many parts; 0 or 1: one thread does it */
    Deal *deal;              /* one after another, all that the body says ... */
    uint32_t deal_count;     /* ... of a kernel that is shared; 0: it is not */
    KernelBuffer *buffer;
    uint32_t buffer_count, buffer_capacity;
    Block body;
    bool repeated;        /* others have the same body, and how it reaches their buffers is the same (lower/repeat.c) */
    int64_t flops, bytes; /* multiply and add count as two; bytes read and written at least once */
    int64_t work;         /* as flops, but functions count as the operations of their texts (node_work) */
};

/* Per value of a body, what it has become in the graph; NONE. */
typedef struct FlatBody {
    const Graph *body;
    const ValueId *flat;
    uint32_t count; /* of its values */
} FlatBody;

typedef struct FlatBodies {
    FlatBody *at;
    uint32_t count, capacity;
} FlatBodies;

/* Lays bodies out in line (flatten.c).  `bodies`, unless NULL, is filled in for all that are laid out, the graph itself
 * among them. */
void kernel_flatten(Graph *graph, Arena *scratch, FlatBodies *bodies);

/* The kernels of a graph in the order of their nodes, with what partition says of them; returns how many (group.c). */
uint32_t kernel_collect(const Graph *graph, Arena *arena, Kernel **kernel);
/* Per Node.kernel: the position of that kernel in the list, or NONE. */
uint32_t *kernel_by_number(const Graph *graph, Arena *arena, const Kernel *kernel, uint32_t count);
void kernel_name_all(const Graph *graph, Arena *arena, Kernel *kernel, uint32_t count); /* name.c; they may be equal */

/* Values as kernels see them */

/* Does a row lie as the shape says, or is there one alone, of all elements of full blocks, in whatever order? */
bool kernel_rows_lie(const Type *type, uint32_t row_rank);

bool kernel_value_is_inline(const Graph *graph, ValueId value); /* views and ramps: an index map, never memory */
bool kernel_value_is_view(const Graph *graph, ValueId value);
/* The value that a view of a view ... looks at, or itself. */
ValueId kernel_view_owner(const Graph *graph, ValueId value);
/* Maps a position of a view's result to one of its operand. */
void kernel_view_position(Arena *arena, const Graph *graph, const Node *node, uint32_t result, const Index *position,
                          Index *operand);
/* Is the node one that joins a kernel to be read through, and never a value that it keeps (join.h)? */
bool kernel_only_reads(const Graph *graph, const Node *node);
/* Is a kernel made of this node alone put together from operands that may lie in it already? */
bool kernel_assembles(const Graph *graph, const Node *node);

/* Bytes of what a buffer of the kernel is, and those of them that the lowered kernel reads, and those that it writes,
 * each once: all, but where data say which these are, as the round of a loop a slice of its tape (touched.c). */
int64_t kernel_buffer_bytes(const Graph *graph, const Storage *storage, const KernelBuffer *buffer);
int64_t kernel_touched(const Graph *graph, const Storage *storage, const Kernel *kernel, uint32_t buffer);

/* Are all results of a position known before one of them is stored? */
static inline bool kernel_stores_together(const Kernel *kernel)
{
    return kernel->form == FORM_MAP || kernel->form == FORM_CONTRACTION || kernel->form == FORM_STRIPS ||
           kernel->form == FORM_WINDOW || kernel->form == FORM_CUMULATION;
}

/* May so many threads of a block share work and meet?  Any power of two from 32 on, and 0: none do. */
static inline bool team_fits(const Target *target, int64_t team)
{
    return team == 0 || (team >= 32 && team <= target->team && (team & (team - 1)) == 0);
}

/* What fuse asks: could tiles of this contraction take in the pooling of its result, or the map that makes its image,
 * so that what is between them never exists as a whole?  (tiled_ask.c) */
bool tiled_takes_pool(const Graph *graph, const Target *target, const Node *contraction, const Node *pool);
bool tiled_takes_map(const Graph *graph, const Target *target, const Node *contraction);
/* Or the depthwise convolution that makes its image, row by row, so that less is in memory? */
bool tiled_takes_depthwise(const Graph *graph, const Target *target, const Node *depthwise, const Node *pointwise);
/* Would they compute its image from inputs, as much as a row of the result reads at a time? */
bool tiled_takes_image(const Graph *graph, const Target *target, const Node *contraction);
/* Would they pack its second operand, of what its kernel computes cheaply from inputs, a weight that comes as f16? */
bool tiled_takes_weights(const Graph *graph, const Target *target, const Node *contraction);
/* Would a reduction that is not of rows compute what it reduces, each element once and whole vectors of them? */
bool lower_columns_take(const Graph *graph, const Target *target, const Node *reduction);
bool lower_runs_take(const Graph *graph, const Target *target, const Node *reduction);
/* Would a contraction compute this operand, narrow integers as f32, by itself: as it brings it into scratch for pairs
 * (lower/pairs.h), or where depthwise convolutions load it? */
bool pairs_takes_operand(const Graph *graph, const Target *target, const Node *contraction, ValueId operand);
/* What they and Winograd's algorithm ask of a contraction's operands that its kernel alone does not tell: how large
 * integers are, whether sums of them are exact in f32, and what is bf16. */
typedef struct PairsAsked {
    double low[2], high[2], most[2];
    bool exact, brains[2];
} PairsAsked;
PairsAsked pairs_asked(const Graph *graph, const Node *contraction);
bool pairs_widens(const Graph *graph, ValueId operand); /* integers in memory, and nothing else? */
/* Where the two products of a kernel that goes by strips would stand: does the first one make, but for what its kernel
 * and that of the rows between do to them, the rows that the second one takes, and is it worth its while to keep a
 * strip of these?  (lower/strip_ask.c) */
bool strip_takes(const Graph *graph, Arena *scratch, const Target *target, const Node *first, const Node *second);
/* Is its image a view that no tile can walk, channels shuffled for one, so that a copy of it is worth its time? */
bool tiled_wants_copy(const Graph *graph, const Target *target, Arena *scratch, const Node *contraction);
/* Is it a pointwise convolution with strides, many of whose panels pass over an image that caches do not hold, so that
 * a copy of the pixels that it sees is worth its time? */
bool tiled_wants_pixels(const Graph *graph, const Target *target, const Node *node);

#endif
