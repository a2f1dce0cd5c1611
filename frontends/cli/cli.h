/* The `nnc` command: verbs, their flags, and what they share.
 *
 * A verb is one file.  Its row (name, operands, flags, words) feeds the argument parser, `nnc help`, the man page and
 * docs/cli.md, so a flag is written once.  Exit status: 0 fine, 1 bad input, 2 usage, 3 the environment failed. */
#ifndef NNC_CLI_H
#define NNC_CLI_H

#include "base/diag.h"

enum { STATUS_OK, STATUS_INPUT, STATUS_USAGE, STATUS_ENVIRONMENT };

typedef struct Cli Cli;

typedef struct Flag {
    const char *name;  /* `target` for --target; a single letter for -o; NULL ends a list */
    const char *value; /* what help calls its value; NULL: a switch */
    const char *doc;
} Flag;

typedef struct Example {
    const char *command, *doc; /* command NULL ends a list */
} Example;

typedef struct Verb {
    const char *name;
    const char *operands; /* as help writes them, `MODEL`; `[...]` may be left out; "" takes none */
    const char *summary;  /* one line */
    const char *text;     /* paragraphs, wrapped by help; a line that begins with a blank is kept as it is */
    const Flag *flag;
    const Example *example;
    int (*run)(Cli *cli); /* returns the exit status; reports through cli->diag or cli_usage */
} Verb;

extern const Verb *const verb_table[]; /* ends with NULL */
const Verb *verb_find(Str name);

typedef struct Argument {
    const Flag *flag; /* NULL: an operand */
    Str value;
} Argument;

struct Cli {
    Arena arena;
    Diag diag; /* printed to stderr when the verb returns */
    const Verb *verb;
    Argument *argument;
    uint32_t argument_count, argument_capacity;
};

/* Takes the words after the verb.  False after a usage error. */
bool args_parse(Cli *cli, int count, char **word);
/* As if the words had it: a value for a flag that the verb has. */
void args_add(Cli *cli, const char *flag, Str value);
/* The last value of the flag, or an empty Str whose ptr is NULL.  The verb must have the flag. */
Str args_value(const Cli *cli, const char *flag);
bool args_takes(const Cli *cli, const char *flag); /* does the verb know it? */
bool args_has(const Cli *cli, const char *flag);
/* The next value of a flag that may be repeated; *at begins as 0. */
bool args_next(const Cli *cli, const char *flag, uint32_t *at, Str *value);
/* Operand number i, or an empty Str whose ptr is NULL. */
Str args_operand(const Cli *cli, uint32_t i);
/* A usage error where one of the flags is given, as nobody would heed it together with --`with`; NULL ends the list. */
bool args_exclude(Cli *cli, const char *with, const char *const *flags);
/* The value as a whole number within bounds; usage error otherwise.  Absent leaves *number. */
bool args_number(Cli *cli, const char *flag, int64_t least, int64_t most, int64_t *number);
/* The value as a decimal number, 0.2 for one, from 0 to `most`. */
bool args_decimal(Cli *cli, const char *flag, double most, double *number);
/* A whole number as 65536, 64K, 2M or 1G bytes. */
bool args_bytes(Cli *cli, const char *flag, int64_t *bytes);

/* A usage error: printed at once, with where to find help.  Returns STATUS_USAGE. */
int cli_usage(Cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The environment failed (a program is missing, a disk is full): printed at once.  Returns STATUS_ENVIRONMENT. */
int cli_environment(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The position of a word in a list that ends with NULL; on an unknown one a usage error, and false. */
bool cli_choose(Cli *cli, const char *flag, Str word, const char *const *list, uint32_t *chosen);
/* The known word nearest to a mistyped one, or NULL when none is near. */
const char *cli_nearest(Str word, const char *const *list, uint32_t count);

/* Shows a step on one line of the terminal that the next step replaces; cli_step(cli, NULL) clears it. */
void cli_step(Cli *cli, const char *step);

/* Writes text for people to stdout: the rest of the tool never prints. */
void cli_put(const Text *text);
/* Brings it out.  False when that or any write before has failed, with the errno of the first. */
bool cli_flush(void);
/* The same for rows that may be wider than a terminal. */
void cli_put_rows(const Text *text);

/* Rows that several verbs share. */
#define FLAG_DEFINE                                                                                                    \
    {"D", "X=V", "Set the constant X of the model, or an input's open extent, to V"}, FLAG_SHAPE, FLAG_AT_MOST
#define FLAG_SHAPE                                                                                                     \
    {                                                                                                                  \
        "shape", "INPUT=1x3x224x224", "The extents of an input of an ONNX model that leaves them open"                 \
    }
#define FLAG_AT_MOST                                                                                                   \
    {                                                                                                                  \
        "at-most", "NAME=N",                                                                                           \
            "The most that a number of an ONNX model can be, by whose value it makes shapes when it runs"              \
    }
#define FLAG_WEIGHTS_FROM                                                                                              \
    {                                                                                                                  \
        "weights-from", "FILE",                                                                                        \
            "Read the stored weights from this .safetensors file instead of the one beside the model"                  \
    }
#define FLAG_INIT_MISSING                                                                                              \
    {                                                                                                                  \
        "init-missing", NULL, "Draw params that the weights file lacks from their initialisers"                        \
    }
#define FLAG_CONVERT_WEIGHTS                                                                                           \
    {                                                                                                                  \
        "convert-weights", NULL, "Convert stored floats of another width (f64, f32, f16, bf16)"                        \
    }
#define FLAGS_WEIGHTS FLAG_WEIGHTS_FROM, FLAG_INIT_MISSING, FLAG_CONVERT_WEIGHTS
#define FLAG_TARGET                                                                                                    \
    {                                                                                                                  \
        "target", "T",                                                                                                 \
            "The machine to compile for: generic, cortex-m, host, x86-64-v2, x86-64-v3, x86-64-v4, "                   \
            "x86-64-v4-vnni, x86-64-v4-amx, aarch64, riscv64-v, cuda:sm_90"                                            \
    }
#define FLAG_CC                                                                                                        \
    {                                                                                                                  \
        "cc", "CC", "The C compiler for libraries (default: clang), with -O3 unless it says otherwise"                 \
    }
#define FLAG_ALLOCATOR                                                                                                 \
    {                                                                                                                  \
        "allocator", "NAME", "How the plan places tensors (default: the best of all)"                                  \
    }
#define FLAG_TUNE                                                                                                      \
    {                                                                                                                  \
        "tune", "FILE|none",                                                                                           \
            "Compute kernels as this file of `nnc tune` says (default: MODEL.TARGET.tune beside the model, if any)"    \
    }
#define FLAG_MEMORY_LIMIT                                                                                              \
    {                                                                                                                  \
        "memory-limit", "BYTES",                                                                                       \
            "The most that the arena may take: gradients compute again what they need, and quantised networks stay "   \
            "slower, as much as this asks for; K, M and G are understood"                                              \
    }
#define FLAG_EXACT                                                                                                     \
    {                                                                                                                  \
        "exact", NULL,                                                                                                 \
            "Sum up the products that the model says: none by Winograd's or Strassen's algorithm, none of f32 in "     \
            "parts"                                                                                                    \
    }
#define FLAG_PRECISION                                                                                                 \
    {                                                                                                                  \
        "precision", "P",                                                                                              \
            "How exact contractions of f32 are: highest, as f32 is (the default), or high, 16 bits of each operand "   \
            "where that is faster, which is on x86-64-v4-amx"                                                          \
    }
#define FLAG_BACKEND                                                                                                   \
    {                                                                                                                  \
        "backend", "WHO",                                                                                              \
            "Who carries out products of matrices, and contractions as such: generated code (the default), openblas "  \
            "where it can, auto: whoever takes less time"                                                              \
    }
#define FLAG_THREADS                                                                                                   \
    {                                                                                                                  \
        "threads", "N", "So many threads may share the work of a run (default: 1); results are the same bits"          \
    }
#define FLAG_SIZE                                                                                                      \
    {                                                                                                                  \
        "size", NULL,                                                                                                  \
            "The least code, at half the speed or so: nothing is unrolled; of strict C99 (generic, cortex-m)"          \
    }
/* How a model becomes code */
#define FLAGS_BUILD                                                                                                    \
    FLAG_ALLOCATOR, FLAG_MEMORY_LIMIT, FLAG_EXACT, FLAG_PRECISION, FLAG_BACKEND, FLAG_THREADS, FLAG_SIZE, FLAG_TUNE
#define FLAG_GRAPH                                                                                                     \
    {                                                                                                                  \
        "graph", "NAME", "The graph to take, where the file has several (default: the first)"                          \
    }
#define FLAG_END                                                                                                       \
    {                                                                                                                  \
        NULL, NULL, NULL                                                                                               \
    }

#endif
