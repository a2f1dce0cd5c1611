/* The imported graph as statements of text, taken apart into words, so that what nobody reads goes, and names are
 * settled. */
#ifndef NNC_ONNX_SCRIPT_H
#define NNC_ONNX_SCRIPT_H

#include "base/map.h"
#include "onnx/import.h"

typedef enum OnnxTokenKind {
    TOKEN_PLAIN,  /* anything between the others */
    TOKEN_VALUE,  /* the name of a value, param or constant of the graph */
    TOKEN_LABEL,  /* of a call, behind its @ */
    TOKEN_NUMBER, /* without its sign */
} OnnxTokenKind;

typedef struct OnnxToken {
    Str text;
    OnnxTokenKind kind;
    uint32_t id; /* of a value, while blocks are sought; 0: none yet */
} OnnxToken;

typedef enum OnnxStatementKind {
    STATEMENT_PLAIN, /* `y = f(x)`, `(a, b) = f(x)`, in one line */
    STATEMENT_PARAM, /* `param w: f32[3]` */
    STATEMENT_CONST, /* `const c: f32[3] = 1.0` */
    STATEMENT_BODY,  /* goes over several lines: loops and branches */
    STATEMENT_CALL,  /* of a function that was made here */
} OnnxStatementKind;

typedef struct OnnxCall {
    Str function, label; /* label: may be empty */
    OnnxToken *argument;
    Str *result;
    uint32_t arguments, results;
} OnnxCall;

typedef struct OnnxStatement {
    OnnxToken *token;
    uint32_t count;
    uint32_t results; /* the first so many values are what it names */
    OnnxStatementKind kind;
    uint32_t class;       /* what it is but for names and numbers, while blocks are sought; 0: not asked yet */
    bool updates;         /* `s <- y` */
    bool stored;          /* a constant whose elements are beside the text */
    const OnnxCall *call; /* of STATEMENT_CALL */
    uint32_t called;      /* the innermost call of the model's functions that it is written out of, or NONE */
} OnnxStatement;

typedef struct OnnxScript {
    Onnx *onnx;
    Arena *arena;
    OnnxStatement *statement;
    uint32_t count, capacity;
    const Str *result; /* of the graph */
    uint32_t results;
    Map elements; /* of params and constants by their names, to index into element */
    const Tensor **element;
    uint32_t element_count, element_capacity;
    Map ids; /* of names of values, from 1 on */
    uint32_t id_count;
    Map classes;   /* of statements, from 1 on */
    Map functions; /* that were made */
    Map library;   /* names of its functions, once one is asked for */
    uint32_t function_count;
} OnnxScript;

/* The graph's text; names of inputs and results tell values from other words. */
OnnxScript *onnx_script_read(Onnx *onnx, Str text, const Graph *graph, const Str *result);
void onnx_script_drop_unread(OnnxScript *script);
/* What the graph gives is called so where it is computed. */
void onnx_script_drop_copies(OnnxScript *script);
/* Weights take the names that they were to have, where what stood in the way is gone. */
void onnx_script_settle_names(OnnxScript *script);
void onnx_script_put_element(OnnxScript *script, Str name, const Tensor *tensor);
OnnxLayer *onnx_script_layer(const OnnxScript *script, Str label); /* NULL: no layer has it */
void onnx_script_write(const OnnxScript *script, Text *out);
/* Of the statement that begins at `at`: that of its line, or of the braces that are open there. */
uint32_t onnx_statement_end(Str text, uint32_t at, bool *lines);
void onnx_statement_write(const OnnxStatement *statement, Text *out);

/* The next value of a statement, at or behind `*at`, which then is behind it; NULL: there is none. */
OnnxToken *onnx_statement_next(const OnnxStatement *statement, uint32_t *at, OnnxTokenKind kind);

/* repeat.c: functions for blocks that repeat, and loops of their calls.  The functions' texts go to `functions`. */
void onnx_script_fold_blocks(OnnxScript *script, Text *functions);

#endif
