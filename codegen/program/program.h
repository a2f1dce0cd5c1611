/* A compiled model, and the way there: one function takes a graph through all passes, the kernels and the plan. */
#ifndef NNC_PROGRAM_PROGRAM_H
#define NNC_PROGRAM_PROGRAM_H

#include "ir/graph.h"
#include "ops/meaning.h"
#include "passes/pass.h"
#include "program/step.h"
#include "storage/memory.h"

typedef enum WeightsForm {
    WEIGHTS_C,    /* C arrays in the source: small models */
    WEIGHTS_BLOB, /* NAME.weights pulled in with .incbin by NAME_weights.S */
    WEIGHTS_FILE, /* NAME.weights, mapped by the host and handed to NAME_run; checksummed */
    WEIGHTS_AUTO, /* C up to 64 KiB, else blob */
} WeightsForm;

typedef enum ByteOrder { BYTES_LITTLE, BYTES_BIG } ByteOrder;

typedef struct CompileOptions {
    const Target *target; /* target_find, or target_small of that */
    WeightsForm weights;
    ByteOrder byte_order;      /* of the elements in NAME.weights */
    const char *allocator;     /* plan_place; NULL is best */
    const char *const *passes; /* in front of fuse; ends with NULL, expand must be there.  NULL is pass_pipeline */
    bool apart;                /* every node a kernel of its own */
    bool compare;              /* program_peak_without will be asked */
    bool checked;              /* C makes memory that holds nothing alive unreadable between kernels */
    bool pack;                 /* entries that update no params read them packed, as NAME_pack makes them */
    bool timed;                /* C calls NAME_tick, a pointer that the host sets, after each kernel */
    unsigned without;          /* of Without, added */
    int effort;                /* 1 is normal */
    uint32_t threads;          /* that may share the work of a run; 0: one */
    bool share_all;            /* also of kernels that are done before they have met: for tests */
    bool exact;                /* every sum is of the products that the model says */
    int64_t capacity;          /* bytes that the arena should not exceed; 0: any number */
    int64_t memory_limit;      /* bytes that it must not exceed, for which gradients compute again; 0: none */
    int64_t hopeless;          /* bytes from which on a plan is not wanted (storage/memory.h); 0: none */
    struct Tune *tune;         /* recipes that come before the cost table's; NULL: none (tune.h) */
    Str name;                  /* a C identifier: prefix of all that is emitted */
    Str source;                /* the model's file name, for the head of what is emitted; may be empty */
    /* Prints a node as text, for comments; may be NULL. */
    void (*describe)(void *context, Text *out, const Graph *graph, NodeId node);
    void *describe_context;
    void (*progress)(void *context, const char *step); /* may be NULL */
    void *progress_context;
} CompileOptions;

typedef struct Checksum {
    uint64_t sum;
    bool known;
} Checksum;

/* What is computed again for a limit, or not made faster, and what it comes to: the planned arena, and operations of a
 * run (node_flops). */
typedef struct Fit {
    Remat remat;
    bool integers;                          /* contractions of these are not made those of floats */
    int64_t peak_before, operations_before; /* when nothing is but what the model says */
    int64_t peak, operations;
} Fit;

static inline bool fit_recomputes(const Fit *fit)
{
    return fit->remat.fine || fit->remat.coarse || fit->remat.snapshots || fit->remat.rounds;
}

/* What is kept between calls: in blocks of memory that the caller owns, which entries share. */
typedef enum KeptBlock {
    BLOCK_PARAMS, /* params that an entry updates: one place each, for whoever saves, loads or packs them */
    BLOCK_PACKED, /* what NAME_pack makes of params, for entries that update none */
    BLOCK_STATE,  /* states, and room for the next values of params that cannot be made over these */
    BLOCK_COUNT,
} KeptBlock;

/* One graph of the model: a function of the emitted code. */
typedef struct Entry {
    const struct Program *program;
    Str name;                /* of its function, behind the program's and a `_` */
    Graph *graph;            /* after all passes; node order is the order of execution */
    Fit fit;                 /* zero without a limit */
    Memory memory;           /* kernels, storage, plan */
    const Graph *source;     /* after the passes, before fuse: to plan it otherwise; NULL unless options.compare */
    bool order_gains;        /* another order of execution than the given one has a smaller plan, and was taken */
    bool keeps_order;        /* the plan keeps the order that fuse leaves */
    Steps steps;             /* what it does */
    const Str *statement;    /* per value: tune_statements; NULL without options.tune */
    bool packed;             /* reads the packed block */
    bool keeps[BLOCK_COUNT]; /* its function takes these blocks: a run of some version touches them */
    bool *used;              /* per input, then per output: some kernel touches it */
    uint32_t *slot;          /* per state of memory.state: its slot of what the program keeps */
} Entry;

/* An array of the weights or of the packed block, which entries share: elements of a value as they are, or packed. */
typedef struct Weights {
    Graph *graph;
    ValueId value;
    Packing packing;
    int64_t bytes, offset; /* offset: from the start of them all */
    bool nibbles;          /* two elements to a byte */
    uint32_t slot;         /* of the packed block: of what the program keeps, that it is made of */
    uint32_t versions;     /* those that read it: a bit for each */
} Weights;

/* Where the first value comes from. */
typedef enum StartKind {
    START_STORED, /* an array of the weights */
    START_FILL,   /* one number everywhere */
    START_RAMP,
    START_DRAWN,
} StartKind;

typedef struct KeptSlot {
    Graph *graph;
    ValueId value;
    KeptBlock block;
    int64_t bytes;
    int64_t offset[2]; /* from the start of its block; twice: of a state, where the value and its next one are, in
                          turns; of a param, the second is in the block of states, and copied when a run ends */
    bool twice;        /* some entry makes the next value while it still reads this one */
    uint32_t flag;     /* twice, of a state: the byte of the block that says which holds the value */
    StartKind start;
    uint32_t weights; /* START_STORED: the array */
    const void *fill; /* START_FILL: one element */
    Initial initial;  /* START_RAMP, START_DRAWN */
} KeptSlot;

typedef struct Kept {
    KeptSlot *slot; /* in the order of their offsets in each block */
    uint32_t count, capacity;
    int64_t bytes[BLOCK_COUNT]; /* 0: there is no such block */
    uint32_t flags;             /* bytes at the start of the block of states */
} Kept;

typedef struct Program {
    CompileOptions options;
    Entry *entry;
    uint32_t entry_count;
    int64_t arena_bytes; /* of the entry that takes most: they run one at a time */
    Weights *weights;    /* in the order of their offsets */
    uint32_t weight_count, weight_capacity;
    int64_t weights_bytes;
    Checksum *checksum; /* of the weights */
    Weights *packed;    /* in the order of their offsets in the packed block */
    uint32_t packed_count, packed_capacity;
    Kept kept;
    /* Of one for several targets: what it is for each, the best last, with names, an arena and packed blocks of their
     * own; the entries here are those of the one with the largest arena. */
    struct Program *version;
    uint32_t version_count;      /* 0: it is for one target */
    const struct Program *whole; /* the one that it is a version of, or NULL */
    uint32_t number;             /* among the versions */
} Program;

#define MOST_VERSIONS 16

#define WEIGHTS_ALIGNMENT 64

/* The pipeline: the graphs become the entries of one program.  They are rewritten in place.  `program` stays where it
 * is: its entries point to it.  False after reported errors. */
bool program_compile(Graph *const *graph, uint32_t count, const CompileOptions *options, Program *program);

/* The same for several targets, best last: options[i] for each, which differ in target and tune file.  What is emitted
 * runs the best that the machine has.  Of one it is program_compile; of several the graphs stay as they are. */
bool program_compile_versions(Graph *const *graph, uint32_t count, const CompileOptions *options, uint32_t versions,
                              Program *program);

/* The name that versions have in common, of what they share: weights. */
Str program_common_name(const Program *program);
/* `x86-64-v2, x86-64-v3` */
Str program_target_names(const Program *program, Arena *arena);

/* Do the graphs ask for nothing that the target does not honour, `@mem(sram)`?  program_compile begins with this. False
 * after reported errors. */
bool program_check_supported(Graph *const *graph, uint32_t count, const Target *target);

/* How much of each graph, which stays as it is, a compilation with options->memory_limit computes again.  False after
 * reported errors. */
bool program_fit(Graph *const *graph, uint32_t count, const CompileOptions *options, Fit *fit);

/* The peak of the same entry with `without` left out, too; -1 when it has no plan.  Nothing is lowered.  Needs
 * options.compare. */
int64_t entry_peak_without(const Entry *entry, unsigned without);

/* Kernels that do something: not where loops and branches begin or end, nor copies of what is there already. */
uint32_t entry_kernel_count(const Entry *entry);

/* What the linker is told of the libraries that kernels call: "-lopenblas", or nothing. */
const char *program_libraries(const Program *program);

/* The first of those with the largest arena: what the program needs. */
const Entry *program_largest_entry(const Program *program);

static inline const Storage *entry_storage(const Entry *entry, StorageId id)
{
    return &entry->memory.storage.at[id];
}

/* Does the function of the entry take the block? */
static inline bool entry_keeps(const Entry *entry, KeptBlock block)
{
    return entry->keeps[block];
}

/* How many of the block's tensors a run changes. */
uint32_t entry_updates(const Entry *entry, KeptBlock block);

/* Is it compiled for several threads: do its entries take a team? */
static inline bool program_shares(const Program *program)
{
    return program->options.threads > 1;
}

WeightsForm program_weights_form(const Program *program); /* with AUTO decided */
int64_t program_weights_stored(const Program *program);   /* bytes: in that form, padding between arrays or none */

ByteOrder program_byte_order_here(void); /* of the machine that this runs on */

/* The elements of array w of the weights as they lie in memory (packed), in this machine's byte order; as long as its
 * storage. */
DType program_weights_dtype(const Weights *weights); /* of the array's elements */
void program_weights_fill(const Program *program, uint32_t w, void *bytes);

/* Emission.  Everything goes to Texts, or in pieces to a sink (weights may be large); callers write whole files. */
typedef struct Sink {
    void (*put)(void *context, const void *bytes, size_t size);
    void *context;
} Sink;

void emit_header(const Program *program, Text *out);       /* NAME.h */
void emit_source(const Program *program, Text *out);       /* NAME.c; of several versions what chooses one */
void emit_versions(const Program *program, Text *out);     /* NAME_versions.h: their functions */
void emit_weights(const Program *program, Sink sink);      /* NAME.weights: weights_bytes */
uint64_t program_weights_checksum(const Program *program); /* XXH3, 64 bits, seed 0, of NAME.weights as written */
void emit_incbin(const Program *program, Text *out);       /* NAME_weights.S */
void emit_kernels(const Program *program, Text *out);      /* the kernels alone, for people */
/* Inputs of an entry, and what the reference evaluator makes of them. */
typedef struct Golden {
    const Tensor *const *input;
    const Tensor **expected; /* output i of call c is expected[c * outputs + i] */
} Golden;

/* How often the harness calls the entries, one after another: what a call leaves behind shows in the next. */
static inline uint32_t program_golden_calls(const Program *program)
{
    return program->kept.count ? 3 : 1;
}

/* NAME_test.c, and below NAME_test.cu: runs the model on inputs with expected outputs from the reference evaluator and
 * a canary around the arena.  Its exit status is 0 when all agree. */
void emit_test(const Program *program, const Golden *golden, Text *out);
/* NAME_selftest.c: the same as a function, without malloc, stdio and main. */
void emit_selftest(const Program *program, const Golden *golden, Text *out);
void emit_cuda(const Program *program, Text *source, Text *header); /* NAME.cu, NAME.h */
void emit_cuda_test(const Program *program, const Golden *golden, Text *out);

#endif
