/* A compiled model, and the way there: one function takes a graph through all passes, the plan and the kernels. */
#ifndef NNC_CODEGEN_PROGRAM_H
#define NNC_CODEGEN_PROGRAM_H

#include "ir/graph.h"
#include "plan/problem.h"

typedef struct Target Target;
typedef struct Kernel Kernel;

typedef enum WeightsForm {
    WEIGHTS_C,    /* a C array in the source: small models */
    WEIGHTS_BLOB, /* NAME.weights pulled in with .incbin by NAME_weights.S */
    WEIGHTS_FILE, /* NAME.weights, mapped by the host and handed to NAME_run; checksummed */
    WEIGHTS_AUTO, /* C up to 64 KiB, else blob */
} WeightsForm;

typedef struct CompileOptions {
    const Target *target; /* target_find */
    WeightsForm weights;
    const char *allocator; /* plan_place; NULL is best */
    int effort;
    Str name;                                          /* a C identifier: prefix of all that is emitted */
    void (*progress)(void *context, const char *step); /* may be NULL */
    void *progress_context;
} CompileOptions;

/* Where a value of the scheduled graph lives. */
typedef enum Space {
    SPACE_NONE, /* inside a kernel only, or unused */
    SPACE_ARENA,
    SPACE_INPUT,   /* the caller's array, read only; index = position among inputs */
    SPACE_OUTPUT,  /* the caller's array; index = position among outputs */
    SPACE_WEIGHTS, /* offset into the weights */
    SPACE_STATE,
} Space;

typedef struct Home {
    Space space;
    uint32_t index;
    int64_t offset, bytes; /* bytes from the start of the space */
    ValueId alias_of;      /* a view lives in its owner's memory; NONE for owners */
} Home;

typedef struct Program {
    Graph *graph; /* after all passes; node order is the schedule */
    CompileOptions options;
    Home *home;     /* per value */
    Kernel *kernel; /* in order of execution */
    uint32_t kernel_count;
    PlanProblem problem; /* the arena's buffers ... */
    ValueId *plan_value; /* ... and the value each holds; NONE is a kernel's scratch */
    PlanResult plan;
    int64_t arena_bytes, arena_alignment;
    int64_t weights_bytes;
} Program;

/* The pipeline.  The graph is rewritten in place.  False after reported errors. */
bool program_compile(Graph *graph, const CompileOptions *options, Program *program);

/* Emission.  Everything goes to Texts, or in pieces to a sink (weights may be large), so that callers write whole
 * files. */
typedef struct Sink {
    void (*put)(void *context, const void *bytes, size_t size);
    void *context;
} Sink;

void emit_header(const Program *program, Text *out);  /* NAME.h */
void emit_source(const Program *program, Text *out);  /* NAME.c */
void emit_weights(const Program *program, Sink sink); /* NAME.weights */
void emit_incbin(const Program *program, Text *out);  /* NAME_weights.S */
void emit_kernels(const Program *program, Text *out); /* the loop IR, for people */
/* NAME_test.c: runs the model on inputs with expected outputs from the reference evaluator and a canary around the
 * arena.  Returns 0 when all agree. */
void emit_test(const Program *program, const Tensor *const *input, const Tensor *const *expected, Text *out);
bool emit_cuda(const Program *program, Text *source, Text *header); /* NAME.cu; false after an error */

#endif
