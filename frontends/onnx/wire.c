/* A file is first copied to a skeleton: the same messages, without unknown fields, and with the place of raw_data in
 * the file instead of its bytes.  On the way all lengths, the nesting and the number of messages are checked, so that
 * what protobuf-c is given is small and well formed. */
#include "onnx/wire.h"

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

#define LONGEST_VARINT 10
#define LENGTH_BYTES   5 /* of what is filled in later: a varint may be longer than it needs */
#define RAW_DATA       9
#define RAW_AT         1000
#define RAW_BYTES      1001

typedef struct Wire {
    Diag *diag;
    Str path;
    const FileMap *file;
    Text out;
    uint32_t messages, depth;
} Wire;

typedef struct Field {
    uint32_t number, kind;
    size_t begin, at, end; /* its key; its value */
} Field;

static bool complain(const Wire *w, size_t at, const char *what)
{
    return diag_file_error(w->diag, w->path, "no ONNX model, or a damaged one: %s at byte %zu of %zu", what, at,
                           w->file->size);
}

static bool take_varint(const Wire *w, size_t *at, size_t end, uint64_t *value)
{
    *value = 0;
    for (uint32_t i = 0; i < LONGEST_VARINT && *at < end; i++) {
        unsigned char byte = w->file->bytes[(*at)++];
        *value |= (uint64_t)(byte & 127) << 7 * i;
        if (byte < 128)
            return true;
    }
    return complain(w, *at, *at < end ? "a number too long" : "it ends inside a number");
}

/* The next field before `end`; `at` moves behind it. */
static bool take_field(const Wire *w, size_t *at, size_t end, Field *field)
{
    uint64_t key, length = 0;
    field->begin = *at;
    if (!take_varint(w, at, end, &key))
        return false;
    field->number = (uint32_t)(key >> 3);
    field->kind = key & 7;
    field->at = *at;
    if (key >> 3 == 0 || key >> 3 > (1 << 29))
        return complain(w, field->begin, "a field without a number");
    if (field->kind == WIRE_VARINT) {
        if (!take_varint(w, at, end, &length))
            return false;
        length = 0;
    } else if (field->kind == WIRE_BYTES) {
        if (!take_varint(w, at, end, &length))
            return false;
        field->at = *at;
    } else if (field->kind == WIRE_64 || field->kind == WIRE_32) {
        length = field->kind == WIRE_64 ? 8 : 4;
    } else {
        return complain(w, field->begin, "a field of unknown kind");
    }
    if (length > end - *at)
        return complain(w, field->begin, "a field that is longer than what it is in");
    *at += (size_t)length;
    field->end = *at;
    return true;
}

static void put_varint(Text *out, uint64_t value)
{
    for (; value > 127; value >>= 7)
        text_char(out, (char)(value | 128));
    text_char(out, (char)value);
}

static bool put_message(Wire *w, size_t at, size_t end, const ProtobufCMessageDescriptor *kind);

static bool put_sub_message(Wire *w, const Field *field, const ProtobufCMessageDescriptor *kind)
{
    put_varint(&w->out, (uint64_t)field->number << 3 | WIRE_BYTES);
    size_t length = w->out.len;
    text_fill(&w->out, 0, LENGTH_BYTES);
    if (!put_message(w, field->at, field->end, kind))
        return false;
    size_t bytes = w->out.len - length - LENGTH_BYTES;
    if (bytes > INT32_MAX)
        return complain(w, field->begin, "a message of more than 2 GiB without its tensors");
    for (uint32_t i = 0; i < LENGTH_BYTES; i++)
        w->out.ptr[length + i] = (char)((bytes >> 7 * i & 127) | (i + 1 < LENGTH_BYTES ? 128 : 0));
    return true;
}

static bool put_field(Wire *w, const Field *field, const ProtobufCMessageDescriptor *kind)
{
    const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(kind, field->number);
    bool tensor = kind == &onnx__tensor_proto__descriptor;

    if (!known || field->number >= RAW_AT)
        return true;
    if (known->type == PROTOBUF_C_TYPE_MESSAGE && field->kind == WIRE_BYTES)
        return put_sub_message(w, field, known->descriptor);
    if (tensor && field->number == RAW_DATA && field->kind == WIRE_BYTES) {
        put_varint(&w->out, (uint64_t)RAW_AT << 3);
        put_varint(&w->out, field->at);
        put_varint(&w->out, (uint64_t)RAW_BYTES << 3);
        put_varint(&w->out, field->end - field->at);
        return true;
    }
    text_put(&w->out, (const char *)w->file->bytes + field->begin, field->end - field->begin);
    return true;
}

/* Recurses over the nesting, which is bounded. */
static bool put_message(Wire *w, size_t at, size_t end, const ProtobufCMessageDescriptor *kind)
{
    if (w->depth >= WIRE_DEEPEST)
        return complain(w, at, "messages nested deeper than any model's");
    if (++w->messages > WIRE_MESSAGES)
        return complain(w, at, "more messages than any model has");
    w->depth++;
    while (at < end) {
        Field field = {0};
        if (!take_field(w, &at, end, &field) || !put_field(w, &field, kind))
            return false;
    }
    w->depth--;
    return true;
}

static void *from_arena(void *arena, size_t bytes)
{
    return arena_alloc(arena, bytes);
}

static void leave(void *arena, void *bytes)
{
    (void)arena;
    (void)bytes;
}

ProtobufCMessage *wire_decode(Arena *arena, Diag *diag, Str path, const FileMap *file,
                              const ProtobufCMessageDescriptor *kind)
{
    Wire wire = {.diag = diag, .path = path, .file = file};
    ProtobufCAllocator allocator = {from_arena, leave, arena};
    ProtobufCMessage *message = NULL;

    if (put_message(&wire, 0, file->size, kind)) {
        message = protobuf_c_message_unpack(kind, &allocator, wire.out.len, (const uint8_t *)wire.out.ptr);
        if (!message)
            diag_file_error(diag, path, "no ONNX model, or a damaged one: a field is not what it should be");
    }
    text_free(&wire.out);
    return message;
}
