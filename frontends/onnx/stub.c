/* In place of the import where libprotobuf-c is not there. */
#include "onnx/onnx.h"

bool onnx_is_path(Str path)
{
    return str_ends(path, ".onnx");
}

bool onnx_import(Arena *arena, Diag *diag, Str path, const OnnxOptions *options, OnnxModel *model)
{
    (void)arena;
    (void)options;
    *model = (OnnxModel){0};
    return diag_file_error(diag, path, "this nnc was built without libprotobuf-c, and reads no ONNX");
}

bool onnx_export(Arena *arena, Diag *diag, const Graph *graph, const OnnxExport *options)
{
    (void)arena;
    (void)graph;
    return diag_file_error(diag, options->path, "this nnc was built without libprotobuf-c, and writes no ONNX");
}
