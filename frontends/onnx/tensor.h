/* Tensors of ONNX as ours. */
#ifndef NNC_ONNX_TENSOR_H
#define NNC_ONNX_TENSOR_H

#include "base/file.h"
#include "ir/graph.h"
#include "onnx/onnx.pb-c.h"

enum { /* TensorProto.DataType */
       ONNX_UNDEFINED,
       ONNX_FLOAT,
       ONNX_UINT8,
       ONNX_INT8,
       ONNX_UINT16,
       ONNX_INT16,
       ONNX_INT32,
       ONNX_INT64,
       ONNX_STRING,
       ONNX_BOOL,
       ONNX_FLOAT16,
       ONNX_DOUBLE,
       ONNX_UINT32,
       ONNX_UINT64,
       ONNX_COMPLEX64,
       ONNX_COMPLEX128,
       ONNX_BFLOAT16,
       ONNX_TYPES,
};

typedef struct OnnxFile {
    Str name, path; /* in the model's folder, of the model itself empty; from where we are */
    FileMap map;
} OnnxFile;

/* Where tensors keep their elements: the model's file, then others in its folder, mapped when they are first named. */
typedef struct OnnxFiles {
    Arena *arena;
    Diag *diag;
    Str path; /* of the model */
    OnnxFile *file;
    uint32_t count, capacity;
} OnnxFiles;

bool onnx_dtype(int32_t type, DType *dtype); /* false: we have none such */
const char *onnx_dtype_name(int32_t type);   /* `uint16` */

/* Its elements, in the mapping where they may stay there.  NULL with `*why` set when we have no such type, or when it
 * is malformed: then `*broken` is true. */
const Tensor *onnx_tensor(OnnxFiles *files, Module *module, const Onnx__TensorProto *proto, const char **why,
                          bool *broken);

#endif
