/* A program as files in a folder, and as libraries through a C compiler. */
#ifndef NNC_CLI_EMIT_H
#define NNC_CLI_EMIT_H

#include "cli/folder.h"
#include "cli/program.h"

typedef enum EmitPart {
    EMIT_C = 1,          /* NAME.c, NAME.h, and the weights in their form */
    EMIT_LIB = 2,        /* libNAME.a and libNAME.so, from C sources that are kept when EMIT_C is asked too */
    EMIT_TEST = 4,       /* NAME_test.c */
    EMIT_IR = 8,         /* NAME.ir.nnc: the graph after all passes */
    EMIT_KERNELS = 16,   /* NAME.kernels: the loop IR */
    EMIT_CUDA = 32,      /* NAME.cu, NAME.h */
    EMIT_STATIC = 64,    /* libNAME.a alone, for machines that have no shared libraries */
    EMIT_SELFTEST = 128, /* NAME_selftest.c */
    EMIT_SHARED = 256,   /* libNAME.so alone; with EMIT_STATIC as EMIT_LIB */
} EmitPart;

#define EMIT_LIBRARIES (EMIT_LIB | EMIT_STATIC | EMIT_SHARED)

/* Writes the sources, C or CUDA.  False after an error in the diag. */
bool emit_sources(Cli *cli, const Program *program, const Folder *folder);
bool emit_ir(Cli *cli, const Program *program, const Folder *folder); /* with the elements its text leaves out */
bool emit_ir_keeps_weights(Cli *cli, const Model *model, const Program *program, Str where); /* model_keeps_weights */
void emit_ir_warn(Cli *cli, const Program *program, Str where); /* as model_warn_of_older, in that folder */
bool emit_kernel_listing(Cli *cli, const Program *program, const Folder *folder);

/* Compiles the folder's sources with the flag cc, which the verb must have.  Returns the exit status. */
int emit_shared(Cli *cli, const Program *program, const Folder *folder);
/* Any C source of the folder as a shared library, with the same flags. */
int emit_compile_shared(Cli *cli, const Target *target, const Folder *folder, const char *source, const char *library);
/* libNAME.a, by the `ar` of cc, and libNAME.so, as far as parts ask for them; no objects are left. */
int emit_libraries(Cli *cli, const Program *program, const Folder *folder, unsigned parts);
/* The flags that NAME.c recommends on its second line, as far as cc leaves them open: its level wins.  Each after a
 * blank. */
Str emit_recommended(Cli *cli, const Program *program);
/* NAME.c alone, by cc with these and more flags, as the file NAME and `object`. */
int emit_object(Cli *cli, const Program *program, const Folder *folder, const char *flags, const char *object);
bool emit_accepts(Cli *cli, const Folder *folder, const char *flags); /* does cc take them? */
/* Runs the tool that comes with cc; `arguments` ends with NULL, what it prints comes back.  Returns the exit status. */
int emit_tool(Cli *cli, const Folder *folder, const char *tool, const char *const *arguments, Text *output);

#endif
