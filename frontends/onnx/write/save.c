/* The file, written as it goes: elements are never copied. */
#include "onnx/write/export.h"

#include <inttypes.h>
#include <string.h>

#define ALIGNED   4096 /* in the file of elements, so that they can be mapped */
#define KEPT      1024 /* bytes: what is smaller stays in the model */
#define LARGEST   INT32_MAX
#define IN_A_FILE 1 /* TensorProto.data_location */

typedef struct Stream {
    ProtobufCBuffer base; /* first, as protobuf-c wants it */
    FileWriter *writer;
} Stream;

static void append(ProtobufCBuffer *buffer, size_t length, const uint8_t *bytes)
{
    file_writer_put(((Stream *)buffer)->writer, bytes, length);
}

static void add_entry(Arena *arena, Onnx__TensorProto *tensor, const char *key, Str value)
{
    Onnx__StringStringEntryProto *entry = ARENA_NEW(arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(entry);
    entry->key = (char *)(uintptr_t)key;
    entry->value = (char *)(uintptr_t)value.ptr;
    tensor->external_data[tensor->n_external_data++] = entry;
}

static void put_zeros(FileWriter *writer, size_t count)
{
    static const char zeros[ALIGNED];
    file_writer_put(writer, zeros, count);
}

static void move_out(Export *e, Onnx__TensorProto *tensor, Str file, FileWriter *writer, uint64_t *at)
{
    put_zeros(writer, (ALIGNED - *at % ALIGNED) % ALIGNED);
    *at += (ALIGNED - *at % ALIGNED) % ALIGNED;
    file_writer_put(writer, tensor->raw_data.data, tensor->raw_data.len);
    tensor->external_data = ARENA_ARRAY(e->arena, Onnx__StringStringEntryProto *, 3);
    add_entry(e->arena, tensor, "location", file);
    add_entry(e->arena, tensor, "offset", str_format(e->arena, "%" PRIu64, *at));
    add_entry(e->arena, tensor, "length", str_format(e->arena, "%zu", tensor->raw_data.len));
    *at += tensor->raw_data.len;
    tensor->has_raw_data = false;
    tensor->has_data_location = true;
    tensor->data_location = IN_A_FILE;
}

static Str without_folder(Str path)
{
    while (memchr(path.ptr, '/', path.len)) {
        path.ptr++;
        path.len--;
    }
    return path;
}

/* The elements of a node that is a constant; NULL: it is none. */
static Onnx__TensorProto *constant_of(const Onnx__NodeProto *node)
{
    return strcmp(node->op_type, "Constant") == 0 ? node->attribute[0]->t : NULL;
}

/* Large initialisers and constants, one after another, into the file beside the model. */
static bool save_elements(Export *e, const Onnx__GraphProto *graph, Str path, FileWriter *writer)
{
    Str file = str_copy(e->arena, without_folder(path));
    uint64_t at = 0;
    if (!file_writer_open(writer, e->diag, path))
        return false;
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (graph->initializer[i]->raw_data.len >= KEPT)
            move_out(e, graph->initializer[i], file, writer, &at);
    for (size_t i = 0; i < graph->n_node; i++) {
        Onnx__TensorProto *constant = constant_of(graph->node[i]);
        if (constant && constant->raw_data.len >= KEPT)
            move_out(e, constant, file, writer, &at);
    }
    return true;
}

static bool save_model(Export *e, const Onnx__ModelProto *model, Str path)
{
    FileWriter writer;
    Stream stream = {{append}, &writer};
    if (!file_writer_open(&writer, e->diag, path))
        return false;
    onnx__model_proto__pack_to_buffer(model, &stream.base);
    return file_writer_commit(&writer, e->diag);
}

/* `model.onnx` -> `model.bin` */
static Str elements_path(Arena *arena, Str path)
{
    uint32_t length = str_ends(path, ".onnx") ? path.len - 5 : path.len;
    return str_format(arena, "%.*s.bin", (int)length, path.ptr);
}

/* The elements first: a model is there only once they are. */
OnnxExported export_save(Export *e, Onnx__ModelProto *model, const OnnxExport *options)
{
    FileWriter elements;
    bool large = onnx__model_proto__get_packed_size(model) > LARGEST, apart = options->external || large;
    Str path = elements_path(e->arena, options->path);
    for (uint32_t i = 0; apart && i < options->kept_count; i++)
        if (file_same(path, options->kept[i]))
            return diag_file_error(e->diag, path, "this file belongs to what is exported: give -o another name"),
                   ONNX_REFUSED;
    if (large && !options->external)
        diag_note(e->diag, (Place){0}, "more than 2 GiB, which is all that protobuf takes: elements go to " STR_FMT,
                  STR_ARG(path));
    if (apart && (!save_elements(e, model->graph, path, &elements) || !file_writer_commit(&elements, e->diag)))
        return ONNX_UNWRITTEN;
    return save_model(e, model, options->path) ? ONNX_WRITTEN : ONNX_UNWRITTEN;
}
