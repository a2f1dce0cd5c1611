/* ONNX: a model as a module, and as .nnc text. */
#ifndef NNC_ONNX_ONNX_H
#define NNC_ONNX_ONNX_H

#include "base/file.h"
#include "frontends/nnc/text.h"

#define ONNX_PARAM "param" /* says the doc_string of an input that is one, and that the run updates */

typedef struct OnnxOptions {
    /* -D: a symbolic dimension, `batch=1`, or a position of an input, `image.0=1` */
    const Define *define;
    uint32_t define_count;
    const Str *shape; /* --shape: `image=1x3x224x224` */
    uint32_t shape_count;
    const Str *bound; /* --at-most: `length=400`, a number that shapes depend on, input or computed, and its largest */
    uint32_t bound_count;
} OnnxOptions;

/* An input or a result whose name is no name of the language, or is taken. */
typedef struct OnnxRenamed {
    Str file_name, name;
} OnnxRenamed;

typedef struct OnnxModel {
    Module *module; /* its params have their elements */
    Text text;      /* the same as a person would read it, without the elements of params; the caller frees it */
    FileMap *map;   /* the elements lie in these files: they must outlive the module */
    uint32_t map_count;
    OnnxRenamed *renamed;
    uint32_t renamed_count;
} OnnxModel;

bool onnx_is_path(Str path); /* does it end in .onnx? */

/* Reads a model with the elements that it has in other files of its folder.  Errors name the node; all nodes that are
 * not supported are listed in one.  False after errors. */
bool onnx_import(Arena *arena, Diag *diag, Str path, const OnnxOptions *options, OnnxModel *model);

typedef struct OnnxExport {
    Str path;        /* of the .onnx file */
    Str model;       /* of what is exported, for errors */
    bool external;   /* elements go to a file beside it, `model.bin`; what has more than 2 GiB does so anyway */
    bool flat;       /* calls are written out, not as functions of the file */
    const Str *kept; /* files that are not written over */
    uint32_t kept_count;
} OnnxExport;

typedef enum OnnxExported {
    ONNX_WRITTEN,
    ONNX_REFUSED,   /* errors in the model, or files that are kept */
    ONNX_UNWRITTEN, /* a file could not be written */
} OnnxExported;

/* Writes the graph, whose params have elements or initialisers, as a model of opset 21.  States, and params that it
 * updates, are inputs with their first values as defaults, and outputs NAME_next.  Errors list all nodes that ONNX has
 * no way to say.  The file appears when it is complete. */
OnnxExported onnx_export(Arena *arena, Diag *diag, const Graph *graph, const OnnxExport *options);

#endif
