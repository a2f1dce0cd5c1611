/* The compiler as a library (libnnc): models in .nnc become C or CUDA source, memory plans, and results of the
 * reference evaluator.  `nnc` the command does the same from a shell; programs that only run emitted models want
 * neither.
 *
 *     nnc_session *session = nnc_session_new();
 *     nnc_module *module;
 *     nnc_program *program;
 *     nnc_source source = {.path = "digits.nnc"};
 *     nnc_options options = {.target = "x86-64-v3"};
 *     if (nnc_module_parse(session, &source, &module) || nnc_graph_compile(module, 0, &options, &program) ||
 *         nnc_program_write(program, "out"))
 *         fputs(nnc_session_text(session), stderr);
 *     nnc_session_free(session);
 *
 * Ownership: whatever a session gives (modules, programs, texts, diagnostics) belongs to it and is good until
 * nnc_session_free, diagnostics until its next call.  What it is given is copied.
 *
 * Threads: a session is used by one thread at a time.  Sessions know nothing of each other: any number may be at work
 * at once.
 *
 * Errors: every call returns a status; none prints or exits.  When memory runs out inside a call, the call is left at
 * once, returns NNC_RESULT_MEMORY, and the session can only be freed: every later call returns the same.  What the call
 * held outside of the session's own memory (temporary lists and texts, a file being written) is not given back.  On
 * systems that overcommit memory, such as Linux as it comes, the system may end the process before.
 *
 * C99 and C++. */
#ifndef NNC_COMPILER_H
#define NNC_COMPILER_H

#include "nnc_model.h"

#ifndef NNC_API
#if defined(__GNUC__)
#define NNC_API __attribute__((visibility("default")))
#else
#define NNC_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nnc_result {
    NNC_RESULT_OK = 0,
    NNC_RESULT_INPUT,   /* the model, its weights or a value given to it are wrong; the diagnostics say where */
    NNC_RESULT_USE,     /* an unknown target, allocator or graph, or a missing argument */
    NNC_RESULT_SYSTEM,  /* a file could not be written */
    NNC_RESULT_STOPPED, /* a callback asked for it */
    NNC_RESULT_MEMORY   /* no memory; the session can only be freed */
} nnc_result;

/* Session */

typedef struct nnc_session nnc_session;
typedef struct nnc_module nnc_module;   /* a parsed model: its graphs */
typedef struct nnc_program nnc_program; /* a graph compiled for a target */

NNC_API const char *nnc_compiler_version(void); /* "0.1.0" */

NNC_API nnc_session *nnc_session_new(void); /* NULL when there is no memory */
NNC_API void nnc_session_free(nnc_session *session);

/* Is called when memory runs out, before the call that needed it returns NNC_RESULT_MEMORY.  It must not call the
 * session; it may leave by longjmp, or end the process. */
NNC_API void nnc_session_on_memory(nnc_session *session, void (*hook)(void *context, size_t bytes), void *context);

/* What the last call had to say, as text: errors and notes with their lines and carets; "" when there is
 * nothing to say. */
NNC_API const char *nnc_session_text(const nnc_session *session);

typedef struct nnc_diagnostic {
    int is_error;          /* else a note on the error before it */
    const char *file;      /* "" when it is about no file */
    uint32_t line, column; /* from 1; columns count bytes; 0: the file as a whole */
    const char *message;   /* without line break */
} nnc_diagnostic;

/* The same as a list: number `index`, NULL behind the last. */
NNC_API const nnc_diagnostic *nnc_session_diagnostic(const nnc_session *session, uint32_t index);

/* Models */

typedef struct nnc_define { /* as -D of the command: a top-level constant, or an open extent such as `image.0` */
    const char *name, *value;
} nnc_define;

/* A model of ONNX, a file whose name ends in .onnx, brings its weights; `define` gives extents that it leaves open. */
typedef struct nnc_source {
    const char
        *path; /* of the .nnc or .onnx file; with `text` its name in messages, and where `use "..."` looks from */
    const char *text;    /* the model itself; NULL: it is read from `path` */
    size_t bytes;        /* of text */
    const char *weights; /* a .safetensors file; NULL: the one beside a model that is read from a file, if there is;
                            without any, params are drawn from their initialisers, and a note says so */
    const nnc_define *define;
    uint32_t define_count;
    int init_missing; /* params that the weights file lacks are drawn from their initialisers; else they are errors */
    int convert_weights; /* stored floats of another width than the param's are converted; else they are errors */
    int shapes_only;     /* params need no elements: enough for plans, not for files that hold weights or evaluation */
} nnc_source;

NNC_API nnc_result nnc_module_parse(nnc_session *session, const nnc_source *source, nnc_module **module);

typedef struct nnc_graph {
    const char *name;
    uint32_t input_count, output_count;
    const nnc_tensor_info *input, *output; /* names, types and sizes, as the emitted model's descriptor has them */
} nnc_graph;

/* Graph `index` of the file, NULL behind the last. */
NNC_API const nnc_graph *nnc_module_graph(const nnc_module *module, uint32_t index);

typedef struct nnc_param { /* what the weights file may hold: a param, a state, a constant that has no elements in the
                              text */
    nnc_tensor_info tensor;
    const char *role;        /* "param", "state" or "const" */
    const char *initialiser; /* as the text has it, `he_normal(seed = 1)`; NULL when it has none */
    int stored;              /* its elements come from the weights file */
} nnc_param;

/* Param `index` of all graphs, each name once; NULL behind the last. */
NNC_API const nnc_param *nnc_module_param(const nnc_module *module, uint32_t index);

/* The files that the module was read from: the model, what it imports, its weights; NULL behind the last.  For build
 * systems, which compile again when one changes. */
NNC_API const char *nnc_module_file(const nnc_module *module, uint32_t index);

/* A graph as .nnc text, as it was parsed. */
NNC_API nnc_result nnc_graph_text(nnc_module *module, uint32_t graph, const char **text);

/* Runs a graph with the reference evaluator, slow and exact.  Arrays of `bytes` bytes each, row-major, in the order and
 * of the types of nnc_graph; f16 and bf16 as their bits, bool as bytes 0 and 1. */
NNC_API nnc_result nnc_graph_evaluate(nnc_module *module, uint32_t graph, const void *const *input,
                                      void *const *output);

/* Compilation */

/* Names of targets ("generic", "x86-64-v3", "cuda:sm_90", ...) and allocators, by number; NULL behind the last. */
NNC_API const char *nnc_target_name(uint32_t index);
NNC_API const char *nnc_allocator_name(uint32_t index);

typedef enum nnc_weights_form {
    NNC_WEIGHTS_AUTO, /* C up to 64 KiB, else blob */
    NNC_WEIGHTS_C,    /* arrays in the source */
    NNC_WEIGHTS_BLOB, /* NAME.weights, pulled in by NAME_weights.S */
    NNC_WEIGHTS_FILE  /* NAME.weights, which the program maps and hands over */
} nnc_weights_form;

typedef struct nnc_options { /* zero is fine everywhere */
    const char *target; /* NULL: "generic"; "host" is this machine; of several, "x86-64-v2,x86-64-v3", what is emitted
                           takes the best that the machine has which runs it */
    const char *name;   /* prefix of all that is emitted; what is no C identifier in it becomes _; NULL: the graph's, or
                           the file's where there are several */
    const char *allocator; /* NULL: the best of all */
    nnc_weights_form weights;
    uint32_t effort;       /* scales the work limit of the planner; 0 and 1 are normal */
    uint64_t memory_limit; /* the most bytes that the arena may take, for which gradients compute again; more is an
                              error; 0: none */
    int pack;              /* graphs that update no params read those of others packed, by NAME_pack; C only */
    int size;              /* the least code, at half the speed or less; strict C99 ("generic", "cortex-m") only */
    int checked;           /* C that makes arena memory unreadable while it holds nothing alive */
    const char *tune;      /* a file that `nnc tune` has written for the target; NULL: the cost table decides */
    uint32_t threads;    /* that may share a run of C, whose entries then take a team (nnc_model.h); 0 and 1: none do */
    const char *backend; /* who carries out products of matrices: NULL or "generated", "openblas", "auto" */
    int exact; /* sums are of the products that the model says: none by Winograd's or Strassen's algorithm, none of f32
                  in parts */
    const char *precision; /* of contractions of f32: NULL or "highest", as f32 is; "high", 16 bits where faster */
} nnc_options;

#define NNC_ALL_GRAPHS UINT32_MAX /* they become the entries of one program, NAME_GRAPH */

/* `graph` alone, as NAME_run, or NNC_ALL_GRAPHS.  May be called as often as wanted, also for one graph.  `options`
 * NULL: all of them zero. */
NNC_API nnc_result nnc_graph_compile(nnc_module *module, uint32_t graph, const nnc_options *options,
                                     nnc_program **program);

NNC_API uint64_t nnc_program_arena_bytes(const nnc_program *program);
NNC_API uint64_t nnc_program_weights_bytes(const nnc_program *program);
NNC_API uint64_t nnc_program_params_bytes(const nnc_program *program); /* weights that entries update; 0: none */
NNC_API uint64_t nnc_program_state_bytes(const nnc_program *program);  /* kept between runs; 0: none */

/* Every file that the program is emitted as: NAME.h, NAME.c or NAME.cu, weights in their form; for several targets also
 * NAME_versions.h and a source for each, NAME_x86_64_v3.c.  `bytes` is good during
 * the callback, which returns 0 to go on. */
typedef int nnc_take_file(void *context, const char *name, const void *bytes, size_t size);
NNC_API nnc_result nnc_program_emit(nnc_program *program, nnc_take_file *take, void *context);

/* The same into a folder, which is made when it is not there.  Each file is written aside and renamed. */
NNC_API nnc_result nnc_program_write(nnc_program *program, const char *folder);

typedef enum nnc_text_kind {
    NNC_TEXT_PLAN,   /* the memory plan as a table; these five are of the entry that takes most, on the target
                       that takes most */
    NNC_TEXT_CHART,  /* as a picture of characters */
    NNC_TEXT_JSON,   /* for programs: docs/planning.md has the schema */
    NNC_TEXT_SVG,    /* a drawing */
    NNC_TEXT_HTML,   /* a page */
    NNC_TEXT_GRAPH,  /* the graph after all passes, as .nnc */
    NNC_TEXT_KERNELS /* the loops of the kernels, as C */
} nnc_text_kind;

NNC_API nnc_result nnc_program_text(nnc_program *program, nnc_text_kind kind, const char **text);

#ifdef __cplusplus
}
#endif

#endif
