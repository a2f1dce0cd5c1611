/* Sparse tensors: elements and where they are, which become the whole tensor, 0 elsewhere. */
#include <string.h>

#include "onnx/import.h"

#define MOST_BYTES (256 << 20) /* of a whole tensor: a file of a few bytes may ask for any number */

/* Positions are numbers in row-major order, or lists of one for each dimension. */
static int64_t position(const Tensor *indices, const Shape *shape, int64_t i)
{
    const int64_t *list = indices->data;
    int64_t at = 0;
    if (indices->type->shape.rank == 1)
        return list[i];
    for (uint32_t d = 0; d < shape->rank; d++) {
        int64_t own = list[i * shape->rank + d];
        if (own < 0 || own >= shape->dim[d])
            return -1;
        at = at * shape->dim[d] + own;
    }
    return at;
}

static bool fits(const Tensor *values, const Tensor *indices, const Shape *shape)
{
    const Shape *own = &indices->type->shape;
    return values->type->shape.rank == 1 && indices->type->dtype == DT_I64 && (own->rank == 1 || own->rank == 2) &&
           own->dim[0] == values->type->shape.dim[0] && (own->rank == 1 || own->dim[1] == shape->rank);
}

static const char *place(const Tensor *values, const Tensor *indices, Tensor *whole)
{
    const Shape *shape = &whole->type->shape;
    size_t bytes = dtype_bytes(whole->type->dtype);
    int64_t elements = shape_elements(shape), count = values->type->shape.dim[0], before = -1;
    memset(whole->data, 0, (size_t)elements * bytes);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = position(indices, shape, i);
        if (at <= before || at >= elements)
            return "its positions do not ascend inside its shape";
        memcpy((char *)whole->data + (size_t)at * bytes, (const char *)values->data + (size_t)i * bytes, bytes);
        before = at;
    }
    return NULL;
}

const Tensor *onnx_sparse_tensor(Onnx *onnx, const Onnx__SparseTensorProto *sparse, const char **why)
{
    bool broken;
    int64_t elements;
    Shape shape;
    *why = "it lacks values or positions";
    if (!sparse->values || !sparse->indices)
        return NULL;
    const Tensor *values = onnx_tensor(&onnx->files, onnx->module, sparse->values, why, &broken);
    const Tensor *indices = values ? onnx_tensor(&onnx->files, onnx->module, sparse->indices, why, &broken) : NULL;
    if (!indices)
        return NULL;
    *why = "its shape is no shape";
    if (!sparse->n_dims || sparse->n_dims > MAX_RANK)
        return NULL;
    shape = shape_of((uint32_t)sparse->n_dims, sparse->dims);
    if (!shape_checked_elements(&shape, &elements))
        return NULL;
    *why = "its positions do not fit its values";
    if (!fits(values, indices, &shape))
        return NULL;
    *why = "it is larger than 256 MiB";
    if (elements > MOST_BYTES / (int64_t)dtype_bytes(values->type->dtype))
        return NULL;
    Tensor *whole = tensor_new(onnx->arena, module_type(onnx->module, values->type->dtype, &shape, (Layout){0}));
    *why = place(values, indices, whole);
    return *why ? NULL : whole;
}
