/* The files that a program is emitted as. */
#ifndef NNC_API_FILES_H
#define NNC_API_FILES_H

#include "codegen/program/program.h"

/* Takes each file; false stops.  NAME.weights, which may be large, is left to `weights` to make, with emit_weights. */
typedef struct FileSink {
    bool (*text)(void *context, Str name, const Text *text);
    bool (*weights)(void *context, Str name, const Program *program);
    void *context;
} FileSink;

/* NAME.c or NAME.cu, NAME.h, and the weights in their form; for several targets also NAME_versions.h and a source for
 * each, NAME_x86_64_v3.c.  False when the sink has stopped. */
bool files_emit(const Program *program, FileSink sink);

#endif
