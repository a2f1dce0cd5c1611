#define _XOPEN_SOURCE 700 /* realpath */

#include "onnx/tensor.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/narrow.h"

static const struct {
    const char *name;
    DType dtype; /* DT_COUNT: none of ours */
} type_table[] = {
    [ONNX_UNDEFINED] = {"undefined", DT_COUNT},
    [ONNX_FLOAT] = {"float", DT_F32},
    [ONNX_UINT8] = {"uint8", DT_U8},
    [ONNX_INT8] = {"int8", DT_I8},
    [ONNX_UINT16] = {"uint16", DT_U16},
    [ONNX_INT16] = {"int16", DT_I16},
    [ONNX_INT32] = {"int32", DT_I32},
    [ONNX_INT64] = {"int64", DT_I64},
    [ONNX_STRING] = {"string", DT_COUNT},
    [ONNX_BOOL] = {"bool", DT_BOOL},
    [ONNX_FLOAT16] = {"float16", DT_F16},
    [ONNX_DOUBLE] = {"double", DT_F64},
    [ONNX_UINT32] = {"uint32", DT_U32},
    [ONNX_UINT64] = {"uint64", DT_U64},
    [ONNX_COMPLEX64] = {"complex64", DT_COUNT},
    [ONNX_COMPLEX128] = {"complex128", DT_COUNT},
    [ONNX_BFLOAT16] = {"bfloat16", DT_BF16},
    {"float8e4m3fn", DT_COUNT}, /* these and those after: in their carriers (narrow.h) */
    {"float8e4m3fnuz", DT_COUNT},
    {"float8e5m2", DT_COUNT},
    {"float8e5m2fnuz", DT_COUNT},
    {"uint4", DT_COUNT},
    {"int4", DT_COUNT},
    {"float4e2m1", DT_COUNT},
    {"float8e8m0", DT_COUNT},
    {"uint2", DT_COUNT},
    {"int2", DT_COUNT},
};

static bool is_type(int32_t type)
{
    return type >= 0 && (size_t)type < sizeof type_table / sizeof *type_table;
}

bool onnx_dtype(int32_t type, DType *dtype)
{
    const OnnxNarrow *narrow = onnx_narrow(type);
    *dtype = narrow ? narrow->carrier : is_type(type) ? type_table[type].dtype : DT_COUNT;
    return *dtype != DT_COUNT;
}

const char *onnx_dtype_name(int32_t type)
{
    return is_type(type) ? type_table[type].name : "of unknown type";
}

typedef struct Taking { /* of one tensor */
    OnnxFiles *files;
    const Onnx__TensorProto *proto;
    const char *why;
    bool broken;
} Taking;

static bool fail(Taking *t, const char *why)
{
    t->why = why;
    t->broken = true;
    return false;
}

/* Elements in another file */

/* Part for part it never goes above the folder: `sub/../w.bin` is in it. */
static bool is_inside(Str location)
{
    int32_t depth = 0;
    if (!location.len || location.ptr[0] == '/' || memchr(location.ptr, '\\', location.len) ||
        memchr(location.ptr, 0, location.len))
        return false;
    for (const char *at = location.ptr, *end = at + location.len; at < end && depth >= 0; at++) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        Str part = {at, (uint32_t)((slash ? slash : end) - at)};
        at += part.len;
        if (part.len && !str_is(part, "."))
            depth += str_is(part, "..") ? -1 : 1;
    }
    return depth >= 0;
}

static Str folder_of(Str path)
{
    while (path.len && path.ptr[path.len - 1] != '/')
        path.len--;
    return path;
}

/* Links may lead about in the folder, or to where the model's own link leads: stores of downloaded models do that. */
static bool stays_inside(Arena *arena, Str model, Str path)
{
    char file[PATH_MAX], folder[PATH_MAX], real[PATH_MAX];
    Str beside = folder_of(model);
    if (!realpath(path.ptr, file) || !realpath(beside.len ? str_copy(arena, beside).ptr : ".", folder) ||
        !realpath(str_copy(arena, model).ptr, real))
        return false;
    Str next = folder_of(str_from(real));
    size_t length = strlen(folder);
    bool here = strncmp(file, folder, length) == 0 && (file[length] == '/' || length == 1);
    return here || (next.len && strncmp(file, next.ptr, next.len) == 0);
}

static const FileMap *other_file(Taking *t, Str location)
{
    OnnxFiles *files = t->files;
    for (uint32_t i = 1; i < files->count; i++)
        if (str_eq(files->file[i].name, location))
            return &files->file[i].map;
    OnnxFile file = {.name = location};
    Str folder = folder_of(files->path);
    Str path = str_format(files->arena, STR_FMT STR_FMT, STR_ARG(folder), STR_ARG(location));
    if (!is_inside(location) || (file_exists(path) && !stays_inside(files->arena, files->path, path)))
        return fail(t, "its elements would be in a file outside of the model's folder"), NULL;
    file.path = path;
    if (!file_map(files->diag, path, &file.map))
        return fail(t, "the file of its elements cannot be read"), NULL;
    ARENA_PUSH(files->arena, files->file, files->count, files->capacity, file);
    return &files->file[files->count - 1].map;
}

static bool take_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !errno && *text >= '0' && *text <= '9' && !*end;
}

static const unsigned char *external_bytes(Taking *t, uint64_t wanted)
{
    Str location = {0};
    uint64_t offset = 0, length = wanted;

    for (size_t i = 0; i < t->proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = t->proto->external_data[i];
        const char *value = entry->value ? entry->value : "";
        if (!entry->key)
            continue;
        if (strcmp(entry->key, "location") == 0)
            location = str_from(value);
        else if ((strcmp(entry->key, "offset") == 0 && !take_number(value, &offset)) ||
                 (strcmp(entry->key, "length") == 0 && !take_number(value, &length)))
            return fail(t, "offset and length of its elements are no numbers"), NULL;
    }
    const FileMap *map = other_file(t, location);
    if (!map)
        return NULL;
    if (length != wanted || offset > map->size || length > map->size - offset)
        return fail(t, "its elements lie outside the file that should have them"), NULL;
    return map->bytes + offset;
}

/* Elements in lists of numbers */

static size_t listed(const Onnx__TensorProto *p, DType dtype)
{
    switch (dtype) {
    case DT_F32:
        return p->n_float_data;
    case DT_F64:
        return p->n_double_data;
    case DT_I64:
        return p->n_int64_data;
    case DT_U64:
    case DT_U32:
        return p->n_uint64_data;
    default:
        return p->n_int32_data;
    }
}

static void take_listed(const Onnx__TensorProto *p, Tensor *tensor, size_t i)
{
    switch (tensor->type->dtype) {
    case DT_F32:
        ((float *)tensor->data)[i] = p->float_data[i];
        break;
    case DT_F64:
        ((double *)tensor->data)[i] = p->double_data[i];
        break;
    case DT_I64:
        ((int64_t *)tensor->data)[i] = p->int64_data[i];
        break;
    case DT_U64:
        ((uint64_t *)tensor->data)[i] = p->uint64_data[i];
        break;
    case DT_U32:
        ((uint32_t *)tensor->data)[i] = (uint32_t)p->uint64_data[i];
        break;
    case DT_F16: /* as their bits */
    case DT_BF16:
    case DT_U16:
        ((uint16_t *)tensor->data)[i] = (uint16_t)p->int32_data[i];
        break;
    case DT_BOOL:
        ((uint8_t *)tensor->data)[i] = p->int32_data[i] != 0;
        break;
    case DT_I32:
        ((int32_t *)tensor->data)[i] = p->int32_data[i];
        break;
    case DT_I16:
        ((int16_t *)tensor->data)[i] = (int16_t)p->int32_data[i];
        break;
    default:
        ((uint8_t *)tensor->data)[i] = (uint8_t)p->int32_data[i];
    }
}

static bool take_list(Taking *t, Tensor *tensor, size_t count)
{
    if (listed(t->proto, tensor->type->dtype) != count)
        return fail(t, "it has not as many elements as its shape asks for");
    tensor->data = arena_alloc(t->files->arena, (size_t)type_bytes(tensor->type) + 1);
    for (size_t i = 0; i < count; i++)
        take_listed(t->proto, tensor, i);
    return true;
}

/* Bytes of the file, where they lie if they may stay there. */
static void take_bytes(Taking *t, Tensor *tensor, const unsigned char *bytes, size_t size)
{
    bool copied = (uintptr_t)bytes % dtype_bytes(tensor->type->dtype) != 0 || size == 0;
    for (size_t i = 0; tensor->type->dtype == DT_BOOL && i < size; i++)
        copied |= bytes[i] > 1;
    tensor->data = copied ? arena_alloc(t->files->arena, size + 1) : (void *)(uintptr_t)bytes;
    if (copied && size)
        memcpy(tensor->data, bytes, size);
    for (size_t i = 0; copied && tensor->type->dtype == DT_BOOL && i < size; i++)
        ((uint8_t *)tensor->data)[i] = bytes[i] != 0;
}

/* Those of narrow types are one or several in each number of the list. */
static void take_narrow_list(Taking *t, Tensor *tensor, const OnnxNarrow *narrow)
{
    size_t size = t->proto->n_int32_data;
    unsigned char *bytes = arena_alloc(t->files->arena, size + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)t->proto->int32_data[i];
    onnx_narrow_unpack(narrow, bytes, tensor);
}

static bool take_narrow(Taking *t, Tensor *tensor, const OnnxNarrow *narrow)
{
    uint64_t size = onnx_narrow_bytes(narrow, shape_elements(&tensor->type->shape));
    bool outside = t->proto->data_location == 1;
    if (!outside && t->proto->has_raw_at && t->proto->raw_bytes != size)
        return fail(t, "it has not as many elements as its shape asks for");
    if (!outside && !t->proto->has_raw_at && t->proto->n_int32_data != size)
        return fail(t, "it has not as many elements as its shape asks for");
    const unsigned char *bytes = outside                ? external_bytes(t, size)
                                 : t->proto->has_raw_at ? t->files->file[0].map.bytes + t->proto->raw_at
                                                        : NULL;
    if (outside && !bytes)
        return false;
    tensor->data = arena_alloc(t->files->arena, (size_t)type_bytes(tensor->type) + 1);
    if (bytes)
        onnx_narrow_unpack(narrow, bytes, tensor);
    else
        take_narrow_list(t, tensor, narrow);
    return true;
}

static bool take_elements(Taking *t, Tensor *tensor)
{
    uint64_t size = (uint64_t)type_bytes(tensor->type);
    const unsigned char *bytes = NULL;

    if (onnx_narrow(t->proto->data_type))
        return take_narrow(t, tensor, onnx_narrow(t->proto->data_type));

    if (t->proto->data_location == 1)
        bytes = external_bytes(t, size);
    else if (!t->proto->has_raw_at)
        return take_list(t, tensor, (size_t)shape_elements(&tensor->type->shape));
    else if (t->proto->raw_bytes != size)
        return fail(t, "it has not as many elements as its shape asks for");
    else
        bytes = t->files->file[0].map.bytes + t->proto->raw_at;
    if (!bytes)
        return false;
    take_bytes(t, tensor, bytes, (size_t)size);
    return true;
}

static bool take_shape(Taking *t, DType dtype, Shape *shape)
{
    int64_t elements, bytes;
    if (t->proto->n_dims > MAX_RANK) {
        t->why = "a tensor has more than 8 dimensions";
        return false;
    }
    *shape = shape_of((uint32_t)t->proto->n_dims, t->proto->dims);
    if (!shape_checked_elements(shape, &elements) || __builtin_mul_overflow(elements, dtype_bytes(dtype), &bytes))
        return fail(t, "its shape is no shape");
    return true;
}

const Tensor *onnx_tensor(OnnxFiles *files, Module *module, const Onnx__TensorProto *proto, const char **why,
                          bool *broken)
{
    Taking t = {files, proto, NULL, false};
    Tensor *tensor = ARENA_NEW(files->arena, Tensor);
    DType dtype;
    Shape shape;

    if (!onnx_dtype(proto->data_type, &dtype))
        t.why = str_format(files->arena, "a tensor is %s", onnx_dtype_name(proto->data_type)).ptr;
    else if (take_shape(&t, dtype, &shape)) {
        tensor->type = module_type(module, dtype, &shape, (Layout){0});
        if (take_elements(&t, tensor))
            return tensor;
    }
    *why = t.why;
    *broken = t.broken;
    return NULL;
}
