/* A compiled model, and the way there: one function takes a graph through all passes, the kernels and the plan. */
#ifndef NNC_CODEGEN_PROGRAM_H
#define NNC_CODEGEN_PROGRAM_H

#include "ir/graph.h"
#include "kernel/kernel.h"
#include "plan/problem.h"
#include "target.h"

typedef enum WeightsForm {
    WEIGHTS_C,    /* C arrays in the source: small models */
    WEIGHTS_BLOB, /* NAME.weights pulled in with .incbin by NAME_weights.S */
    WEIGHTS_FILE, /* NAME.weights, mapped by the host and handed to NAME_run; checksummed */
    WEIGHTS_AUTO, /* C up to 64 KiB, else blob */
} WeightsForm;

/* What lowers the peak before placement, each of which can be left out, to see what it saves. */
typedef enum Without {
    WITHOUT_INPLACE = 1, /* no result is written over its operand */
    WITHOUT_VIEWS = 2,   /* every view of a result is a copy, made by a kernel of its own */
    WITHOUT_ORDER = 4,   /* kernels run in the order in which fusion left them */
    WITHOUT_PARTS = 8,   /* every concat and pad copies its operands */
} Without;

typedef struct CompileOptions {
    const Target *target; /* target_find */
    WeightsForm weights;
    const char *allocator;     /* plan_place; NULL is best */
    const char *const *passes; /* ends with NULL; expand and fuse must be there.  NULL is pass_pipeline */
    bool apart;                /* every node a kernel of its own */
    bool checked;              /* C makes memory that holds nothing alive unreadable between kernels */
    unsigned without;          /* of Without, added */
    int effort;                /* 1 is normal */
    Str name;                  /* a C identifier: prefix of all that is emitted */
    Str source;                /* the model's file name, for the head of what is emitted; may be empty */
    /* Prints a node as text, for comments; may be NULL. */
    void (*describe)(void *context, Text *out, const Graph *graph, NodeId node);
    void *describe_context;
    void (*progress)(void *context, const char *step); /* may be NULL */
    void *progress_context;
} CompileOptions;

/* Where a value of the scheduled graph lives. */
typedef enum Space {
    SPACE_NONE,   /* inside a kernel, or a view: it has no memory of its own */
    SPACE_ARENA,  /* index = buffer of the plan, the last one where it grows */
    SPACE_INPUT,  /* the caller's array, read only; index = position among inputs */
    SPACE_OUTPUT, /* the caller's array; index = position among outputs */
} Space;

typedef struct Home {
    Space space;
    uint32_t index;
    int64_t first, last; /* kernels [first, last) between which its bytes must stay; first < 0: never touched */
} Home;

typedef struct Program {
    Graph *graph; /* after all passes; node order is the schedule */
    CompileOptions options;
    Home *home;           /* per value */
    Placement *placement; /* per value: inside which other one it lies */
    bool *has_parts;      /* per value: others lie inside it */
    bool *early;          /* per value: made before others that lie in front of it or between; has_holes: some are */
    bool has_holes;
    const bool *copied; /* per value: it is not to be a part; may be NULL */
    int64_t *parts_end; /* per value: from this step on no kernel reads others that lie inside it; 0: none do */
    Kernel *kernel;     /* in order of execution: the steps of the plan */
    uint32_t kernel_count;
    uint32_t *kernel_of; /* per Node.kernel: its step; NONE when all it makes is empty or dead */
    PlanProblem problem; /* the arena's buffers ... */
    ValueId *plan_value; /* ... the value each holds, NONE for a kernel's scratch; a value with parts may have several,
                            each larger and later than the one before, of one group ... */
    uint32_t **scratch;  /* ... and, per kernel and kernel buffer that is scratch, the buffer of the plan */
    PlanResult plan;
    bool order_gains; /* another order of execution than the given one has a smaller plan, and was taken */
    int64_t arena_bytes;
    WeightTable weights; /* in the order of their offsets */
    int64_t weights_bytes;
} Program;

#define ARENA_ALIGNMENT   64 /* of the arena, and of every buffer in it */
#define WEIGHTS_ALIGNMENT 64

/* The pipeline.  The graph is rewritten in place.  False after reported errors. */
bool program_compile(Graph *graph, const CompileOptions *options, Program *program);

/* Are all lives in the plan's problem as long as the final schedule needs?  They are found anew from the nodes
 * (lives.c). False, with a message, names the first that is not.  Every compilation asks. */
bool program_check_lives(const Program *program, Str *message);

/* homes.c: where values live, and the plan's problem.  Fills in home, problem, plan_value, scratch, early, has_holes.
 */
void find_homes(Program *program);

/* place.c: which operands of concats and pads lie inside the results, and when such parts are read. */
void place_parts(Program *program, Lower *lower);
void note_part_readers(Program *program);
ValueId whole_of(const Program *program, ValueId value); /* the outermost value that it lies inside, or itself */
/* The bytes [begin, end) from the first to the last of a part or a view, which may leave out some between, inside the
 * memory of the whole.  The value must not be empty. */
typedef struct Extent {
    int64_t begin, end;
} Extent;
Extent value_extent(const Program *program, ValueId value);

WeightsForm program_weights_form(const Program *program); /* with AUTO decided */

/* The elements of one array of the weights as they lie in memory (packed); array->bytes long. */
void weights_fill(const Program *program, const WeightArray *array, void *bytes);

/* Emission.  Everything goes to Texts, or in pieces to a sink (weights may be large); callers write whole files. */
typedef struct Sink {
    void (*put)(void *context, const void *bytes, size_t size);
    void *context;
} Sink;

void emit_header(const Program *program, Text *out);  /* NAME.h */
void emit_source(const Program *program, Text *out);  /* NAME.c */
void emit_weights(const Program *program, Sink sink); /* NAME.weights: weights_bytes */
uint64_t weights_checksum(const Program *program);    /* XXH3, 64 bits, seed 0, of NAME.weights */
void emit_incbin(const Program *program, Text *out);  /* NAME_weights.S */
void emit_kernels(const Program *program, Text *out); /* the kernels alone, for people */
/* NAME_test.c, and below NAME_test.cu: runs the model on inputs with expected outputs from the reference evaluator and
 * a canary around the arena.  Its exit status is 0 when all agree. */
void emit_test(const Program *program, const Tensor *const *input, const Tensor *const *expected, Text *out);
bool emit_cuda(const Program *program, Text *source, Text *header); /* NAME.cu, NAME.h; false after an error */
void emit_cuda_test(const Program *program, const Tensor *const *input, const Tensor *const *expected, Text *out);

#endif
