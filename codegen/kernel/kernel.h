/* Kernels: fused groups of nodes as loop nests.  lower_kernel picks the schedule for the group's anchor. */
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
    int64_t start, extent[MAX_RANK], stride[MAX_RANK];
    struct {
        int64_t factor[MAX_RANK], most; /* all factors zero: no bound */
    } bound[2];
} Packing;

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
    KernelBuffer *buffer;
    uint32_t buffer_count, buffer_capacity;
    Block body;
    int64_t flops, bytes; /* multiply and add count as two; bytes read and written at least once */
};

/* Lays bodies out in line (flatten.c); graphs without any stay as they are. */
void kernel_flatten(Graph *graph, Arena *scratch);

/* The kernels of a graph in the order of their nodes, with what partition says of them; returns how many (group.c). */
uint32_t kernel_collect(const Graph *graph, Arena *arena, Kernel **kernel);
/* Per Node.kernel: the position of that kernel in the list, or NONE. */
uint32_t *kernel_by_number(const Graph *graph, Arena *arena, const Kernel *kernel, uint32_t count);
void kernel_name_all(const Graph *graph, Arena *arena, Kernel *kernel, uint32_t count); /* name.c; they may be equal */

/* Rows of an image that one kernel makes and reads again: a convolution writes those of one pooled row into scratch,
 * [row][column][channel], the pooling reads them. */
typedef struct Band {
    ValueId value; /* the image; NONE when the kernel has no band */
    uint32_t buffer;
    Index first; /* the image's row at the top of the band */
    bool filled; /* loads come from it; before, lower_stores writes the image to it and nothing else */
} Band;

/* What a kernel sees of a value in memory: kernels that do the same to other parts are then the same. */
typedef struct Sight {
    int64_t begin; /* element */
    ValueId part;  /* KernelBuffer.part */
    bool seen;
} Sight;

struct Lower {
    Graph *graph;
    const Target *target;
    Arena *arena;
    Storages *storage;
    const Users *users;
    const bool *live_out;
    Kernel *kernel; /* that is chosen for, or lowered; below: for lowering */
    WeightTable *weights;
    Sight *sight;      /* per value that has memory of its own */
    Block *block;      /* where statements go now */
    struct Memo *memo; /* values computed already in this block */
    uint32_t memo_count, memo_capacity;
    const Expr **bound; /* per value of the graph: a local that holds it in this row or window, or NULL */
    uint32_t *spill;    /* per value: 1 + the scratch buffer that keeps its row, or 0; row_var indexes it */
    bool *spilled;      /* the scratch has been filled */
    Index row_position; /* position in the row of the statement being built */
    uint32_t name_count;
    uint32_t team; /* threads that share out the window being built, which `thread` counts; 0: one does it */
    const Var *thread;
    Band band;
};

/* For choosing, and after lower_start for lowering.  The storage of values must say what lies inside what. */
Lower lower_new(Graph *graph, const Target *target, Storages *storage, const Users *users);
void lower_start(Lower *lower, WeightTable *weights);

void lower_kernel(Lower *lower, Kernel *kernel); /* fills in buffers, body, flops and bytes */
void kernel_sweep(Lower *lower);                 /* what nothing reads is gone (sweep.c) */

/* The value at a position of its logical shape, computed where the kernel produces it, loaded elsewhere. */
const Expr *lower_value(Lower *lower, ValueId value, const Index *position);
/* What is computed between opening and closing a guard is computed only where every index is in 0 .. limit - 1;
 * elsewhere the value is `outside`. */
typedef struct Guard {
    Index index;
    int64_t limit;
} Guard;
typedef struct Guarded { /* the statements inside, and what to come back to */
    Block inside, *outer;
    uint32_t memo_count;
} Guarded;
void lower_guard_open(Lower *lower, Guarded *guarded);
const Expr *lower_guard_close(Lower *lower, Guarded *guarded, const Expr *inside, const Guard *guard, uint32_t count,
                              const Expr *outside);
/* Element address of a value that is in memory, from the start of its whole's. */
Index lower_memory_address(const Lower *lower, ValueId value, const Index *position);
/* The same through views, and slices that have joined the kernel: whose memory is read, and where.  False when it is
 * computed: a number, a ramp. */
bool lower_memory_source(Lower *lower, ValueId value, const Index *position, ValueId *source, Index *address);
/* The same as lower_memory_address, from where the kernel's parameter points to. */
Index lower_value_address(Lower *lower, ValueId value, const Index *position);
/* The elements [begin, end) of the memory of its whole, from the first to the last of a value or a view; needs `graph`
 * and `storage` only.  Not for empty ones. */
void kernel_value_range(const Lower *lower, Arena *scratch, ValueId value, int64_t *begin, int64_t *end);
ValueId kernel_value_whole(const Lower *lower, ValueId value); /* the outermost value that it lies inside, or itself */
uint32_t lower_buffer(Lower *lower, ValueId value, bool written);
uint32_t lower_scratch(Lower *lower, uint32_t piece); /* of the kernel's recipe */
uint32_t lower_shared(Lower *lower, DType dtype, int64_t elements, const char *role);
uint32_t lower_weights(Lower *lower, ValueId value, const Packing *packing, int64_t elements);
const Local *lower_local(Lower *lower, const char *name, DType dtype, bool lanes);
const Local *lower_registers(Lower *lower, const char *name, DType dtype, bool lanes, int64_t rows, int64_t columns);
/* Is the value in memory outside this kernel, or produced by an earlier kernel? */
bool kernel_value_is_inline(const Graph *graph, ValueId value); /* views and ramps: an index map, never memory */
bool kernel_value_is_view(const Graph *graph, ValueId value);
ValueId kernel_view_owner(const Graph *graph,
                          ValueId value); /* the value that a view of a view ... looks at, or itself */
bool kernel_makes(const Lower *lower, ValueId value);
/* Is the node one that joins a kernel to be read through, and never a value that it keeps (join.h)? */
bool kernel_only_reads(const Graph *graph, const Node *node);
/* Does the kernel compute the value: make it otherwise than by reading another through views and slices of its own? */
bool kernel_computes(const Lower *lower, ValueId value);
/* Are all results of a position known before one of them is stored? */
static inline bool kernel_stores_together(const Kernel *kernel)
{
    return kernel->form == FORM_MAP || kernel->form == FORM_CONTRACTION || kernel->form == FORM_WINDOW;
}
/* Must it be written to memory: an output, or used by another kernel (also through views)? */
bool kernel_stores(const Lower *lower, ValueId value);

typedef struct Memo {
    ValueId value;
    Index position[MAX_RANK];
    const Expr *expr;
} Memo;

/* Maps a position of a view's result to one of its operand. */
void kernel_view_position(Arena *arena, const Graph *graph, const Node *node, uint32_t result, const Index *position,
                          Index *operand);
/* Is a kernel made of this node alone put together from operands that may lie in it already? */
bool kernel_assembles(const Graph *graph, const Node *node);
/* The value whose elements, all of them and each once, a value is, by reshapes and transpositions that belong to no
 * kernel: what may lie inside an owner instead of it. */
ValueId lower_rearranged_value(const Graph *graph, ValueId value);
/* The operand at a broadcast position. */
void lower_broadcast_position(const Shape *shape, const Shape *result, const Index *position, Index *operand);

/* The loops over a value's memory, outermost first: extents, and the logical position they give. */
typedef struct Nest {
    uint32_t rank;
    int64_t extent[MAX_RANK + 1];
    const Type *type;
} Nest;
Nest lower_nest(const Type *type);
void lower_nest_position(Arena *arena, const Nest *nest, const Index *loop, Index *position);

/* May the expression be computed for `lanes` consecutive values of var at once?  Vectors are of f32, and masks. */
bool expr_vectorizes(const Expr *expr, const Var *var);
/* Is the store one of a vector, to addresses a constant step apart: of 1, unless it is said to be any? */
bool stmt_vectorizes(const Stmt *store, const Var *var, bool any_step);
/* Stores every result of the kernel at a position, as memory of type `type`. */
void lower_stores(Lower *lower, const Index *position);

/* update.c: where the part of a dynamic slice or update begins in a dimension, clamped so that it stays inside. */
Index lower_dynamic_begin(Lower *lower, const Node *node, uint32_t dimension);
/* All of an update's first operand, in the memory of its result. */
void lower_update_begin(Lower *lower, const Node *node);
/* value.c: the position that a gather or a scatter finds at this position of its indices, brought into range. */
Index lower_gather_row(Lower *lower, const Node *node, const Index *position);
/* Where a position of the part is in the whole. */
void lower_dynamic_position(Lower *lower, const Node *node, const Index *position, Index *whole);
/* map.c: loops over the memory of a type, `element` at each position; vectors where `vectorizes` says so of the body.
 */
typedef void LowerElement(Lower *lower, void *context, const Index *position);
void lower_nest_each(Lower *lower, const Type *type, LowerElement *element, void *context);

/* Blocks: what was computed at other positions outside no longer helps inside. */
Block *lower_enter(Lower *lower, Block *block); /* returns the block to go back to */
void lower_leave(Lower *lower, Block *outer);
extern const char *const lower_loop_names[]; /* i0, i1, ... */

/* A loop over `extent` positions.  Its body is built once; where `vectorizes` says that all of it may run for several
 * positions at once it becomes vectors, and the same one by one for the rest. */
typedef void (*BuildBody)(Lower *lower, void *context, Index at);
typedef bool (*Vectorizes)(const Block *body, const Var *var);
void lower_vector_loop(Lower *lower, const char *name, int64_t extent, LoopKind kind, Vectorizes vectorizes,
                       BuildBody build, void *context);
/* The same for a body that stands already, built for `var`, which goes from 0 to extent - 1. */
void lower_finish_loop(Lower *lower, const Var *var, int64_t extent, LoopKind kind, Vectorizes vectorizes, Block body);
void lower_nest_each_by(Lower *lower, const Type *type, Vectorizes vectorizes, LowerElement *element, void *context);
bool block_vectorizes(const Block *body, const Var *var);        /* straight code, of f32 and bool */
bool block_nested_vectorizes(const Block *body, const Var *var); /* with loops and conditions that are all lanes' */

/* May so many threads of a block share work and meet?  Any power of two from 32 on, and 0: none do. */
static inline bool team_fits(const Target *target, int64_t team)
{
    return team == 0 || (team >= 32 && team <= target->team && (team & (team - 1)) == 0);
}

/* The providers; a row for each in provider.c. */
extern const Provider provider_map, provider_assembly, provider_update, provider_scatter, provider_rows,
    provider_window, provider_running, provider_tiled, provider_blocked, provider_depthwise, provider_gradient,
    provider_outer;

/* window_value.c: the value at a position of the anchor's result; its accumulator and loops go to the block.
 * Where lower->team is set the team shares out one of the loops, whose extent this is, or 0 where that cannot be. */
const Expr *lower_window_value(Lower *lower, const Node *anchor, const Index *position);
int64_t lower_window_shared_extent(const Lower *lower, const Node *anchor);
/* The part of a window kernel for one row h of image n. */
void lower_window_row(Lower *lower, const Node *anchor, Index n, Index h);

/* What fuse asks: could tiles of this contraction take in the pooling of its result, or the map that makes its image,
 * so that what is between them never exists as a whole?  (tiled.c) */
bool tiled_takes_pool(const Graph *graph, const Target *target, const Node *contraction, const Node *pool);
bool tiled_takes_map(const Graph *graph, const Target *target, const Node *contraction);

#endif
