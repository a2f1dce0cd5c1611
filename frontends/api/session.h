/* Shared by the files that nnc_compiler.h is made of. */
#ifndef NNC_API_SESSION_H
#define NNC_API_SESSION_H

#include "api/nnc_compiler.h"
#include "base/file.h"
#include "codegen/program/program.h"
#include "formats/weights.h"

struct nnc_session {
    Arena arena; /* all that the session gives */
    Diag diag;   /* of the last call */
    nnc_diagnostic *diagnostic;
    nnc_module *module; /* newest first */
    FileMap *map;       /* of models of ONNX */
    uint32_t map_count, map_capacity;
    void (*hook)(void *context, size_t bytes);
    void *hook_context;
    bool lost; /* memory ran out: nothing of it can be relied on */
    char last_words[64];
};

struct nnc_module {
    nnc_session *session;
    nnc_module *next;
    Module *module;
    Str path;
    Str weights_path;    /* empty: there is none */
    WeightsFile weights; /* tensors point into its mapping */
    nnc_graph *graph;
    nnc_param *param; /* one for each that WeightsFile.wanted has */
    bool shapes_only;
};

struct nnc_program {
    nnc_session *session;
    Program program;
    bool shapes_only;
};

/* Does the work of a call: its status, also when memory runs out in it.  Forgets the diagnostics of the call before. */
typedef nnc_result SessionWork(nnc_session *session, void *argument);
nnc_result session_call(nnc_session *session, SessionWork *work, void *argument);

/* A wrong use, as a diagnostic. */
nnc_result session_misuse(nnc_session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text as the session's own; frees it. */
const char *session_keep(nnc_session *session, Text *text);

#endif
