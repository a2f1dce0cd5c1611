/* Lowering: from a kernel and its recipe to loops.  What the providers share: the state of a kernel that is chosen for
 * or lowered, addresses, values at positions, and loops over a result's memory. */
#ifndef NNC_KERNEL_LOWER_H
#define NNC_KERNEL_LOWER_H

#include "kernel/kernel.h"
#include "ops/meaning.h"

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

/* A value computed already in this block. */
typedef struct Memo {
    ValueId value;
    Index position[MAX_RANK];
    const Expr *expr;
} Memo;

/* Weights that a kernel has asked for. */
typedef struct WeightsAsked {
    ValueId value;
    Packing packing;
    int64_t elements;
    StorageId storage;
} WeightsAsked;

typedef struct Strip Strip;     /* strip.h */
typedef struct Repeats Repeats; /* what kernels have become, for others that are alike (repeat.c) */
typedef struct Mixing Mixing;   /* passes/mixing.h */

typedef struct TurnedValue {
    bool filled;
    ValueId value;
    uint32_t buffer;
    Index row; /* where the row begins in it */
} TurnedValue;

struct Lower {
    Graph *graph;
    const Target *target;
    Arena *arena;
    Storages *storage;
    const Users *users;
    const bool *live_out;
    const bool *nibbles; /* per value: its weights lie two to a byte (kernel/storage.h) */
    bool exact;          /* no recipe may sum up other products than those that the model says */
    bool lean;           /* memory is scarce: recipes that take much scratch for their speed are not chosen */
    bool brief;          /* so are texts: there are very many, so recipes of long ones are not chosen */
    Kernel *kernel;      /* that is chosen for, or lowered; below: for lowering */
    WeightTable *weights;
    WeightsAsked *asked; /* by this kernel */
    uint32_t asked_count, asked_capacity;
    Repeats *repeats; /* NULL before the first */
    Mixing *mixing;   /* of the graph; NULL before somebody asks */
    Sight *sight;     /* per value that has memory of its own */
    Block *block;     /* where statements go now */
    Memo *memo;
    uint32_t memo_count, memo_capacity;
    const Expr **bound; /* per value of the graph: a local that holds it in this row or window, or NULL */
    uint32_t *spill;    /* per value: 1 + the scratch buffer that keeps its row, or 0; row_var indexes it */
    bool *spilled;      /* the scratch has been filled */
    Index row_position; /* position in the row of the statement being built */
    TurnedValue turned; /* an operand of rows that is read from scratch (rows_turn.c) */
    uint32_t name_count;
    uint32_t team; /* threads that share out the window being built, which `thread` counts; 0: one does it */
    const Var *thread;
    Band band;
    const Strip *strip; /* the kernel goes by strips, and ... */
    uint8_t part;       /* ... this part of it is being seen or lowered; 0: all */
};

/* lower.c */

/* Fills in buffers, body, flops and bytes.  Returns whether the body is a new one: kernels that are alike share theirs,
 * which nobody may change. */
bool lower_kernel(Lower *lower, Kernel *kernel);
void kernel_sweep(Lower *lower); /* what nothing reads is gone (sweep.c) */

/* repeat.c: as a kernel before this one that is alike, where there is one; else `anew` */

bool recipe_repeated(Lower *lower, bool (*anew)(Lower *lower, Recipe *recipe), Recipe *recipe); /* false: anew failed */
/* How many contractions there are that are not alike. */
uint32_t kernel_count_contractions(Lower *lower, Kernel *kernel, uint32_t count);
bool lower_repeated(Lower *lower, void (*anew)(Lower *lower)); /* false: the kernel's loops are new */

/* state.c: what the kernel makes and has */

/* For choosing, and after lower_start for lowering.  The storage of values must say what lies inside what. */
Lower lower_new(Graph *graph, const Target *target, Storages *storage, const Users *users);
void lower_start(Lower *lower, WeightTable *weights);

/* Is the node of this kernel, or of the part of it that is being lowered? */
static inline bool kernel_has(const Lower *lower, const Node *node)
{
    return node->kernel == lower->kernel->id && (!lower->part || node->part == lower->part);
}

/* Is the value made by this kernel? */
bool kernel_makes(const Lower *lower, ValueId value);
/* Must it be written to memory: an output, or used by another kernel (also through views)? */
bool kernel_stores(const Lower *lower, ValueId value);

uint32_t lower_buffer(Lower *lower, ValueId value, bool written);
uint32_t lower_scratch(Lower *lower, uint32_t piece); /* of the kernel's recipe */
uint32_t lower_shared(Lower *lower, DType dtype, int64_t elements, const char *role);
uint32_t lower_weights(Lower *lower, ValueId value, const Packing *packing, int64_t elements);
StorageId lower_shared_storage(Lower *lower, DType dtype, int64_t elements); /* without a buffer */
StorageId lower_weights_storage(Lower *lower, ValueId value, const Packing *packing, int64_t elements);
const Local *lower_local(Lower *lower, const char *name, DType dtype, bool lanes);
const Local *lower_registers(Lower *lower, const char *name, DType dtype, bool lanes, int64_t rows, int64_t columns);
/* The same for counts of unrolled loops.  The name is that of no other in the kernel. */
const Local *lower_array(Lower *lower, const char *name, DType dtype, int64_t rows, int64_t columns);
/* The expression, or a local with its value where it is not as short as a name. */
const Expr *lower_named(Lower *lower, const Expr *expr);

/* Blocks: what was computed at other positions outside no longer helps inside. */
Block *lower_enter(Lower *lower, Block *block); /* returns the block to go back to */
void lower_leave(Lower *lower, Block *outer);
extern const char *const lower_loop_names[]; /* i0, i1, ... */

/* address.c: where elements are */

ValueId kernel_value_whole(const Lower *lower, ValueId value); /* the outermost value that it lies inside, or itself */
/* Element address of a value that is in memory, from the start of its whole's. */
Index lower_memory_address(const Lower *lower, ValueId value, const Index *position);
/* The same, from where the kernel's parameter points to. */
Index lower_value_address(Lower *lower, ValueId value, const Index *position);
/* What the address will be, about, before it is known what lies inside what: its steps may come to be others. */
Index lower_address_before(const Graph *graph, Arena *scratch, ValueId value, const Index *position);
/* The elements [begin, end) of the memory of its whole, from the first to the last of a value or a view; needs `graph`
 * and `storage` only.  Not for empty ones. */
void kernel_value_range(const Lower *lower, Arena *scratch, ValueId value, int64_t *begin, int64_t *end);
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

/* value.c: values at positions */

/* The value at a position of its logical shape, computed where the kernel produces it, loaded elsewhere. */
const Expr *lower_value(Lower *lower, ValueId value, const Index *position);
/* Here, and in the rest of the block, the value at this position is that. */
void lower_remember(Lower *lower, ValueId value, const Index *position, const Expr *expr);
/* Does the kernel compute the value: make it otherwise than by reading another through views and slices of its own? */
bool kernel_computes(const Lower *lower, ValueId value);
/* lower_memory_address through views, and slices that have joined the kernel: whose memory is read, and where.  False
 * when it is computed: a number, a ramp. */
bool lower_memory_source(Lower *lower, ValueId value, const Index *position, ValueId *source, Index *address);
/* The position that a gather or a scatter finds at this position of its indices, brought into range. */
Index lower_gather_row(Lower *lower, const Node *node, const Index *position);
/* A list of integers that is known, and follows a rule: first + step * i, or first + (i + shift) / repeats. */
typedef struct ListRule {
    int64_t first, step, shift, repeats;
} ListRule;
bool lower_rule_of(const Graph *graph, ValueId list, ListRule *rule); /* else all zeros */
/* The row of a gather where its list of positions is such; `extent` of the table's dimension. */
bool lower_known_row(Lower *lower, ValueId list, Index at, int64_t extent, Index *row);
/* Where the part of a dynamic slice or update begins in a dimension, clamped so that it stays inside. */
Index lower_dynamic_begin(Lower *lower, const Node *node, uint32_t dimension);
/* Where a position of the part is in the whole. */
void lower_dynamic_position(Lower *lower, const Node *node, const Index *position, Index *whole);
/* Where an element of the band's image is in the band. */
Index lower_band_address(Lower *lower, const Index *position);
/* Where an element that the kernel stores goes: into the memory of its value, or the strip. */
void lower_store_at(Lower *lower, ValueId value, const Index *position, const Expr *expr);

/* A term of an elementwise op over the values of the terms before it (word.c). */
const Expr *lower_term(Arena *arena, const ScalarTerm *term, const Expr *const *value);
/* base + scale * number, of the dtype (spread.c). */
const Expr *lower_spread(Lower *lower, const Random *random, DType dtype, const Expr *number);

/* guard.c: what is computed between opening and closing a guard is computed only where every index is in
 * 0 .. limit - 1; elsewhere the value is `outside`. */
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

/* inside.c: positions that are kept inside */

/* `first`, or `last` where that is less: in a local of the block. */
Index lower_last_inside(Lower *lower, const char *name, Index first, int64_t last);
/* Positions of an operand that loops or guards keep inside, but whose range does not tell: addresses that cut them in
 * digits must know it. */
typedef struct Seen {
    const Shape *shape;
    bool cuts;
} Seen;
Seen lower_see_inside(Lower *lower, ValueId value);
Index lower_inside(Lower *lower, const Seen *seen, uint32_t dimension, Index at);

/* store.c: stores every result of the kernel at a position, as memory of type `type`. */
void lower_stores(Lower *lower, const Index *position);

/* vectorize.c */

/* Does it call a function that takes long? */
bool expr_is_expensive(const Expr *expr);
/* May the expression be computed for `lanes` consecutive values of var at once?  Vectors are of f32, and masks. */
bool expr_vectorizes(const Expr *expr, const Var *var);
/* Is the store one of a vector, to addresses a constant step apart: of 1, unless it is said to be any? */
bool stmt_vectorizes(const Stmt *store, const Var *var, bool any_step);
/* Its value, or what a store makes integers of? */
bool stmt_value_vectorizes(const Stmt *stmt, const Var *var);
bool block_vectorizes(const Block *body, const Var *var);        /* straight code, of f32 and bool */
bool block_nested_vectorizes(const Block *body, const Var *var); /* with loops and conditions that are all lanes' */

/* nest.c: loops.  Their bodies are built once; where `vectorizes` says that all of one may run for several positions
 * at once it becomes vectors, and the same one by one for the rest. */
typedef void (*BuildBody)(Lower *lower, void *context, Index at);
typedef bool (*Vectorizes)(const Block *body, const Var *var);
void lower_vector_loop(Lower *lower, const char *name, int64_t extent, LoopKind kind, Vectorizes vectorizes,
                       BuildBody build, void *context);
/* The same for a body that stands already, built for `var`, which goes from 0 to extent - 1. */
void lower_finish_loop(Lower *lower, const Var *var, int64_t extent, LoopKind kind, Vectorizes vectorizes, Block body);
/* What whole vectors leave of a row goes in shorter ones, of so many lanes, less than `lanes`; 0: one by one. */
#define LEAST_LANES 4
int64_t lower_rest_lanes(const Lower *lower, int64_t lanes, int64_t rest);
/* lower_vector_loop, of what may be made twice: the last vector begins inside the one before it, and of few positions
 * vectors are shorter. */
void lower_cover_loop(Lower *lower, const char *name, int64_t extent, LoopKind kind, Vectorizes vectorizes,
                      BuildBody build, void *context);
/* Loops over the memory of a type, `element` at each position; the first by block_vectorizes. */
typedef void LowerElement(Lower *lower, void *context, const Index *position);
void lower_nest_each(Lower *lower, const Type *type, LowerElement *element, void *context);
void lower_nest_each_by(Lower *lower, const Type *type, Vectorizes vectorizes, LowerElement *element, void *context);
/* arg_row.c: does an element win against the best so far, of argmax (WORD_MAX) or argmin?  A NaN wins, the first. */
const Expr *lower_wins(const Lower *lower, Word combine, const Expr *best, const Expr *value);
/* The position of the first that does, at[along] over all of its dimension, in vectors along it; NULL: these would be
 * no neighbours. */
const Expr *lower_arg_row(Lower *lower, const Node *node, const Reduction *reduction, uint32_t along, const Index *at);
/* squares.c: the body is a copy that turns its operand, in these loops: by squares in registers; false: it is not. */
bool lower_copy_squares(Lower *lower, const Var *const *loop, uint32_t loops, const Block *body);
/* Asks for what that needs where an operand that is not turned may lie where the result does. */
void lower_copy_scratch(Lower *lower, const Kernel *kernel, Recipe *recipe);

/* strands.c: accumulators that go on side by side.  How many suit a loop over `extent` that is run `rounds` times in
 * all; a multiple of them is the extent.  Of what the block and the value after it compute: 1 where that takes long. */
#define MOST_ACCUMULATORS 16
typedef struct Strands {
    Word combine;
    DType dtype;
    uint32_t count;
    const Local *acc[MOST_ACCUMULATORS];
} Strands;

uint32_t lower_strand_count(const Lower *lower, int64_t extent, int64_t rounds);
uint32_t lower_strands_of(const Lower *lower, int64_t rounds, const Block *block, const Expr *value);
/* Of floats that have no vectors here, for which C compilers make some of neighbours; the extent may be any. */
uint32_t lower_strands_of_neighbours(const Lower *lower, int64_t extent, const Block *block, const Expr *value);
void lower_strands_begin(Lower *lower, Block *block, Strands *strands); /* fills in the accumulators */
void lower_strand_add(Lower *lower, Block *block, const Strands *strands, uint32_t s, const Expr *value);
const Local *lower_strands_end(Lower *lower, Block *block, const Strands *strands); /* all, in the first */

/* update.c: all of an update's first operand, in the memory of its result. */
void lower_update_begin(Lower *lower, const Node *node);

/* window_value.c: the value at a position of the anchor's result; its accumulator and loops go to the block.
 * Where lower->team is set the team shares out one of the loops, whose extent this is, or 0 where that cannot be. */
const Expr *lower_window_value(Lower *lower, const Node *anchor, const Index *position);
int64_t lower_window_shared_extent(const Lower *lower, const Node *anchor);
/* kw, kh, kd, ...: of the taps of a dimension, counted from the last. */
const char *lower_tap_name(Arena *arena, uint32_t from_last);
/* How many taps in a dimension of the window a mean counts there. */
const Expr *lower_taps_inside(Lower *lower, const Reduction *reduction, uint32_t dimension, Index at);
/* window.c: the part of a window kernel for one row h of image n. */
void lower_window_row(Lower *lower, const Node *anchor, Index n, Index h);

/* pick.c: of the statements and the value that a sum takes for each column, is the value 0 but in one column, which
 * data say?  Then where that is, or any other if there is none such: a variable of lower->block. */
bool lower_pick(Lower *lower, const Block *block, const Expr *value, const Var *column, Index *at);

/* The providers; a row for each in provider.c. */
extern const Provider provider_map, provider_assembly, provider_update, provider_scatter, provider_rows,
    provider_window, provider_pool, provider_columns, provider_runs, provider_running, provider_insertion,
    provider_radix, provider_merging, provider_tiled, provider_winograd, provider_strassen, provider_blocked,
    provider_depthwise, provider_gradient, provider_depthwise_gradient, provider_outer, provider_dots,
    provider_openblas, provider_pairs, provider_amx, provider_axpy, provider_strips, provider_channels;

#endif
