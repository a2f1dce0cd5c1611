#include "formats/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/fatal.h"
#include "base/file.h"

#define LARGEST_HEADER ((uint64_t)16 << 20) /* real ones have some hundred KiB */
#define METADATA       "__metadata__"
#define LARGEST_EXACT  9007199254740992.0 /* 2 to the 53: JSON numbers above are not exact */

static const char *const dtype_code[DT_COUNT] = {
    [DT_F64] = "F64", [DT_F32] = "F32", [DT_F16] = "F16",   [DT_BF16] = "BF16", [DT_I64] = "I64",
    [DT_I32] = "I32", [DT_I16] = "I16", [DT_I8] = "I8",     [DT_U8] = "U8",     [DT_U64] = "U64",
    [DT_U32] = "U32", [DT_U16] = "U16", [DT_BOOL] = "BOOL",
};

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    Str path;
    uint64_t data, size; /* where elements begin, and the file's end */
} Reader;

static bool whole_number(const cJSON *json, uint64_t *number)
{
    if (!cJSON_IsNumber(json) || !(json->valuedouble >= 0 && json->valuedouble <= LARGEST_EXACT))
        return false;
    *number = (uint64_t)json->valuedouble;
    return (double)*number == json->valuedouble;
}

static bool parse_shape(const cJSON *json, Shape *shape)
{
    const cJSON *item;

    if (!cJSON_IsArray(json))
        return false;
    shape->rank = 0;
    cJSON_ArrayForEach(item, json)
    {
        uint64_t dim;
        if (!whole_number(item, &dim))
            return false;
        if (shape->rank <= MAX_RANK && ++shape->rank <= MAX_RANK)
            shape->dim[shape->rank - 1] = (int64_t)dim;
    }
    return true;
}

static bool parse_offsets(const cJSON *json, uint64_t *begin, uint64_t *end)
{
    return cJSON_IsArray(json) && cJSON_GetArraySize(json) == 2 && whole_number(json->child, begin) &&
           whole_number(json->child->next, end);
}

static DType dtype_of_code(Str code)
{
    int dtype = 0;
    while (dtype < DT_COUNT && !str_is(code, dtype_code[dtype]))
        dtype++;
    return (DType)dtype;
}

/* Offsets inside the file, and as many bytes as the shape asks for. */
static bool check_extent(const Reader *r, StoredTensor *t)
{
    int64_t elements, bytes;

    if (t->begin > t->end || t->end > r->size - r->data)
        return diag_file_error(r->diag, r->path,
                               "tensor " STR_FMT ": its bytes %llu to %llu lie outside the file, which has %llu",
                               STR_ARG(t->name), (unsigned long long)t->begin, (unsigned long long)t->end,
                               (unsigned long long)(r->size - r->data));
    if (t->dtype != DT_COUNT && t->shape.rank <= MAX_RANK) {
        if (!shape_checked_elements(&t->shape, &elements) ||
            __builtin_mul_overflow(elements, dtype_bytes(t->dtype), &bytes))
            return diag_file_error(r->diag, r->path, "tensor " STR_FMT ": its shape overflows", STR_ARG(t->name));
        if ((uint64_t)bytes != t->end - t->begin)
            return diag_file_error(r->diag, r->path, "tensor " STR_FMT ": its shape asks for %lld bytes, it has %llu",
                                   STR_ARG(t->name), (long long)bytes, (unsigned long long)(t->end - t->begin));
    }
    t->begin += r->data;
    t->end += r->data;
    return true;
}

static bool parse_tensor(const Reader *r, const cJSON *json, StoredTensor *t)
{
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(json, "dtype");

    t->name = str_copy(r->arena, str_from(json->string));
    if (!cJSON_IsObject(json) || !cJSON_IsString(dtype) ||
        !parse_shape(cJSON_GetObjectItemCaseSensitive(json, "shape"), &t->shape) ||
        !parse_offsets(cJSON_GetObjectItemCaseSensitive(json, "data_offsets"), &t->begin, &t->end))
        return diag_file_error(r->diag, r->path, "tensor " STR_FMT ": dtype, shape or data_offsets are malformed",
                               STR_ARG(t->name));
    t->dtype_name = str_copy(r->arena, str_from(dtype->valuestring));
    t->dtype = dtype_of_code(t->dtype_name);
    return check_extent(r, t);
}

/* What is no text is passed over: the format knows nothing else there. */
static void parse_metadata(const Reader *r, const cJSON *json, Safetensors *out)
{
    const cJSON *item;
    uint32_t capacity = out->text_count;

    cJSON_ArrayForEach(item, json)
    {
        StoredText text = {str_copy(r->arena, str_from(item->string ? item->string : "")), {0}};
        if (!cJSON_IsString(item))
            continue;
        text.text = str_copy(r->arena, str_from(item->valuestring));
        ARENA_PUSH(r->arena, out->text, out->text_count, capacity, text);
    }
}

Str safetensors_text(const Safetensors *file, const char *key)
{
    for (uint32_t i = 0; i < file->text_count; i++)
        if (str_is(file->text[i].key, key))
            return file->text[i].text;
    return (Str){0};
}

static int by_begin(const void *a, const void *b)
{
    const StoredTensor *x = *(StoredTensor *const *)a, *y = *(StoredTensor *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static bool check_overlaps(const Reader *r, const Safetensors *file)
{
    StoredTensor **sorted = ARENA_ARRAY(r->arena, StoredTensor *, file->count + 1);
    for (uint32_t i = 0; i < file->count; i++)
        sorted[i] = &file->tensor[i];
    qsort(sorted, file->count, sizeof *sorted, by_begin);
    for (uint32_t i = 1; i < file->count; i++)
        if (sorted[i]->begin < sorted[i - 1]->end && sorted[i]->begin < sorted[i]->end)
            return diag_file_error(r->diag, r->path, "tensors " STR_FMT " and " STR_FMT " overlap",
                                   STR_ARG(sorted[i - 1]->name), STR_ARG(sorted[i]->name));
    return true;
}

static bool parse_tensors(const Reader *r, const cJSON *header, Safetensors *out)
{
    const cJSON *item;
    uint32_t capacity = 0, errors = r->diag->error_count;

    cJSON_ArrayForEach(item, header)
    {
        StoredTensor tensor = {0};
        if (diag_full(r->diag))
            break;
        if (strcmp(item->string, METADATA) == 0) {
            parse_metadata(r, item, out);
            continue;
        }
        if (!parse_tensor(r, item, &tensor))
            continue;
        if (!map_add(&out->by_name, tensor.name, out->count))
            diag_file_error(r->diag, r->path, "tensor " STR_FMT " is there twice", STR_ARG(tensor.name));
        else
            ARENA_PUSH(r->arena, out->tensor, out->count, capacity, tensor);
    }
    return errors == r->diag->error_count && check_overlaps(r, out);
}

bool safetensors_parse(Arena *arena, Diag *diag, Str path, const unsigned char *bytes, size_t size, Safetensors *out)
{
    uint64_t length = 0;

    *out = (Safetensors){.bytes = bytes, .by_name = {.arena = arena}};
    if (size < 8)
        return diag_file_error(diag, path, "not a .safetensors file: it has %zu bytes", size);
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)bytes[i] << (8 * i);
    if (length > LARGEST_HEADER)
        return diag_file_error(diag, path, "not a .safetensors file: its header would have %llu bytes",
                               (unsigned long long)length);
    if (length > size - 8)
        return diag_file_error(diag, path, "truncated: the header has %llu bytes, the file has %zu",
                               (unsigned long long)length, size);
    cJSON *header = cJSON_ParseWithLength((const char *)bytes + 8, length);
    if (!cJSON_IsObject(header)) {
        cJSON_Delete(header);
        return diag_file_error(diag, path, "the header is not valid JSON, or nested deeper than %d",
                               CJSON_NESTING_LIMIT);
    }
    const Reader reader = {arena, diag, path, 8 + length, size};
    bool good = parse_tensors(&reader, header, out);
    cJSON_Delete(header);
    return good;
}

static char *terminated(Str s)
{
    char *copy = strndup(s.len ? s.ptr : "", s.len);
    if (!copy)
        fatal_memory(s.len);
    return copy;
}

static void print_metadata(cJSON *root, const StoredText *text, uint32_t count)
{
    cJSON *object = count ? cJSON_AddObjectToObject(root, METADATA) : NULL;
    for (uint32_t i = 0; i < count; i++) {
        char *key = terminated(text[i].key), *value = terminated(text[i].text);
        cJSON_AddStringToObject(object, key, value);
        free(key);
        free(value);
    }
}

/* The header, padded with blanks so that elements begin at a multiple of 64. */
static bool print_header(Text *out, const NamedTensor *tensor, uint32_t count, const StoredText *text_list,
                         uint32_t text_count)
{
    cJSON *root = cJSON_CreateObject();
    double at = 0;

    print_metadata(root, text_list, text_count);
    for (uint32_t i = 0; i < count; i++) {
        const Type *type = tensor[i].tensor->type;
        double offsets[2] = {at, at + (double)type_bytes(type)}, dim[MAX_RANK];
        for (uint32_t d = 0; d < type->shape.rank; d++)
            dim[d] = (double)type->shape.dim[d];
        char *name = terminated(tensor[i].name);
        cJSON *entry = cJSON_AddObjectToObject(root, name);
        free(name);
        cJSON_AddStringToObject(entry, "dtype", dtype_code[type->dtype]);
        cJSON_AddItemToObject(entry, "shape", cJSON_CreateDoubleArray(dim, (int)type->shape.rank));
        cJSON_AddItemToObject(entry, "data_offsets", cJSON_CreateDoubleArray(offsets, 2));
        at = offsets[1];
    }
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    if (!text)
        return false;
    text_put(out, text, strlen(text));
    cJSON_free(text);
    text_fill(out, ' ', (64 - (8 + out->len) % 64) % 64);
    return true;
}

bool safetensors_write(Diag *diag, Str path, const NamedTensor *tensor, uint32_t count, const StoredText *text,
                       uint32_t text_count)
{
    FileWriter writer;
    Text header = {0};
    unsigned char length[8];

    if (!print_header(&header, tensor, count, text, text_count))
        return diag_file_error(diag, path, "cannot print the header");
    bool open = file_writer_open(&writer, diag, path);
    if (open) {
        for (int i = 0; i < 8; i++)
            length[i] = (unsigned char)(header.len >> (8 * i));
        file_writer_put(&writer, length, 8);
        file_writer_put(&writer, header.ptr, header.len);
        for (uint32_t i = 0; i < count; i++)
            file_writer_put(&writer, tensor[i].tensor->data, (size_t)type_bytes(tensor[i].tensor->type));
        open = file_writer_commit(&writer, diag);
    }
    text_free(&header);
    return open;
}
