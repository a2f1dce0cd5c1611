#include "formats/npy.h"

#include <string.h>

#include "base/file.h"

typedef struct Header {
    DType dtype;
    bool fortran, swapped;
    Shape shape;
    size_t data; /* where the elements begin */
} Header;

/* The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. */
typedef struct Cursor {
    const char *at, *end;
} Cursor;

static void skip_blanks(Cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

static bool take(Cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(Cursor *c, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length))
        return false;
    c->at += length;
    return true;
}

static bool take_string(Cursor *c, Str *string)
{
    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char quote = *c->at++;
    const char *close = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (!close)
        return false;
    *string = (Str){c->at, (uint32_t)(close - c->at)};
    c->at = close + 1;
    return true;
}

static bool take_number(Cursor *c, int64_t *number)
{
    skip_blanks(c);
    const char *begin = c->at;
    for (*number = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(*number, 10, number) || __builtin_add_overflow(*number, *c->at - '0', number))
            return false;
    if (c->at < c->end && *c->at == 'L') /* Python 2 wrote long integers so */
        c->at++;
    return c->at > begin;
}

static bool take_shape(Cursor *c, Shape *shape)
{
    if (!take(c, '('))
        return false;
    shape->rank = 0;
    while (!take(c, ')')) {
        if (shape->rank == MAX_RANK || !take_number(c, &shape->dim[shape->rank]))
            return false;
        shape->rank++;
        if (!take(c, ',') && (skip_blanks(c), c->at == c->end || *c->at != ')'))
            return false;
    }
    return true;
}

static bool descr_parse(Str descr, Header *header)
{
    static const struct {
        const char *code;
        DType dtype;
    } known[] = {{"f8", DT_F64}, {"f4", DT_F32},  {"f2", DT_F16}, {"i8", DT_I64}, {"i4", DT_I32},
                 {"i2", DT_I16}, {"i1", DT_I8},   {"u1", DT_U8},  {"u8", DT_U64}, {"u4", DT_U32},
                 {"u2", DT_U16}, {"b1", DT_BOOL}, {"V2", DT_BF16}};

    if (descr.len != 3 || !memchr("<>|=", descr.ptr[0], 4))
        return false;
    header->swapped = descr.ptr[0] == '>';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (memcmp(descr.ptr + 1, known[i].code, 2) == 0) {
            header->dtype = known[i].dtype;
            return true;
        }
    return false;
}

static bool parse_dictionary(Diag *diag, Str path, Cursor c, Header *header)
{
    bool descr = false, order = false, shape = false;
    Str key, text;

    if (!take(&c, '{'))
        return diag_file_error(diag, path, "not an .npy file: the header is no dictionary");
    while (!take(&c, '}')) {
        bool good = take_string(&c, &key) && take(&c, ':');
        if (good && str_is(key, "descr")) {
            good = take_string(&c, &text);
            if (good && !descr_parse(text, header))
                return diag_file_error(diag, path, "elements of a kind nnc does not have: " STR_FMT, STR_ARG(text));
            descr = good;
        } else if (good && str_is(key, "fortran_order")) {
            header->fortran = take_word(&c, "True");
            good = order = header->fortran || take_word(&c, "False");
        } else if (good && str_is(key, "shape")) {
            good = shape = take_shape(&c, &header->shape);
        } else {
            good = false;
        }
        if (!good || (!take(&c, ',') && (skip_blanks(&c), c.at == c.end || *c.at != '}')))
            return diag_file_error(diag, path, "the header of the .npy file is malformed (at most %d dimensions)",
                                   MAX_RANK);
    }
    return (descr && order && shape) || diag_file_error(diag, path, "the header of the .npy file is incomplete");
}

static bool parse_header(Diag *diag, Str path, const unsigned char *bytes, size_t size, Header *header)
{
    static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

    if (size < 10 || memcmp(bytes, magic, 6))
        return diag_file_error(diag, path, "not an .npy file");
    if (bytes[6] < 1 || bytes[6] > 3)
        return diag_file_error(diag, path, ".npy version %u is not known (1 to 3 are)", bytes[6]);
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8, begin = 10;
    if (bytes[6] > 1) {
        if (size < 12)
            return diag_file_error(diag, path, "truncated");
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
        begin = 12;
    }
    if (length > size - begin)
        return diag_file_error(diag, path, "truncated: the header says it has %zu bytes, the file has %zu", length,
                               size - begin);
    header->data = begin + length;
    const char *text = (const char *)bytes + begin;
    return parse_dictionary(diag, path, (Cursor){text, text + length}, header);
}

/* Element number i in row-major order lies in the file at the position that column-major order gives its indices. */
static void copy_fortran(char *to, const unsigned char *from, const Shape *shape, int64_t elements, uint32_t width)
{
    int64_t index[MAX_RANK] = {0}, stride[MAX_RANK], at = 0;

    if (!elements) /* other extents may be so large that strides overflow */
        return;
    for (uint32_t d = 0, first = 1; d < shape->rank; d++, first = 0)
        stride[d] = first ? 1 : stride[d - 1] * shape->dim[d - 1];
    for (int64_t i = 0; i < elements; i++) {
        memcpy(to + i * width, from + at * width, width);
        for (uint32_t d = shape->rank; d-- > 0;) {
            at += stride[d];
            if (++index[d] < shape->dim[d])
                break;
            at -= stride[d] * shape->dim[d];
            index[d] = 0;
        }
    }
}

static void swap_bytes(char *data, int64_t elements, uint32_t width)
{
    for (int64_t i = 0; i < elements; i++, data += width)
        for (uint32_t a = 0, b = width - 1; a < b; a++, b--) {
            char byte = data[a];
            data[a] = data[b];
            data[b] = byte;
        }
}

const Tensor *npy_parse(Module *module, Str path, const unsigned char *bytes, size_t size)
{
    Header header = {0};
    int64_t elements, needed;

    if (!parse_header(module->diag, path, bytes, size, &header))
        return NULL;
    uint32_t width = dtype_bytes(header.dtype);
    if (!shape_checked_elements(&header.shape, &elements) || __builtin_mul_overflow(elements, width, &needed)) {
        diag_file_error(module->diag, path, "the shape overflows");
        return NULL;
    }
    if ((uint64_t)needed > size - header.data) {
        diag_file_error(module->diag, path, "truncated: the shape asks for %lld bytes, %zu are there",
                        (long long)needed, size - header.data);
        return NULL;
    }
    const unsigned char *from = bytes + header.data;
    for (int64_t i = 0; header.dtype == DT_BOOL && i < elements; i++)
        if (from[i] > 1) {
            diag_file_error(module->diag, path, "a bool is %u, neither 0 nor 1", from[i]);
            return NULL;
        }
    Tensor *tensor =
        tensor_new(module->arena, module_plain_type(module, header.dtype, header.shape.rank, header.shape.dim));
    if (header.fortran)
        copy_fortran(tensor->data, from, &header.shape, elements, width);
    else if (needed)
        memcpy(tensor->data, from, (size_t)needed);
    if (header.swapped)
        swap_bytes(tensor->data, elements, width);
    return tensor;
}

const Tensor *npy_read(Module *module, Str path)
{
    FileMap map;
    if (!file_map(module->diag, path, &map))
        return NULL;
    const Tensor *tensor = npy_parse(module, path, map.bytes, map.size);
    file_unmap(&map);
    return tensor;
}

void npy_header(Text *out, const Type *type)
{
    static const char *const descr[DT_COUNT] = {
        [DT_F64] = "<f8", [DT_F32] = "<f4", [DT_F16] = "<f2",  [DT_BF16] = "<V2", [DT_I64] = "<i8",
        [DT_I32] = "<i4", [DT_I16] = "<i2", [DT_I8] = "|i1",   [DT_U8] = "|u1",   [DT_U64] = "<u8",
        [DT_U32] = "<u4", [DT_U16] = "<u2", [DT_BOOL] = "|b1",
    };
    Text text = {0};

    text_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr[type->dtype]);
    for (uint32_t d = 0; d < type->shape.rank; d++)
        text_printf(&text, "%s%lld", d ? ", " : "", (long long)type->shape.dim[d]);
    text_printf(&text, "%s), }", type->shape.rank == 1 ? "," : "");
    text_fill(&text, ' ', (64 - (10 + text.len + 1) % 64) % 64);
    text_char(&text, '\n');
    text_put(out, "\x93NUMPY\x01\x00", 8);
    text_char(out, (char)(text.len & 255));
    text_char(out, (char)(text.len >> 8));
    text_put(out, text.ptr, text.len);
    text_free(&text);
}

bool npy_write(Diag *diag, Str path, const Tensor *tensor)
{
    FileWriter writer;
    Text header = {0};

    if (!file_writer_open(&writer, diag, path))
        return false;
    npy_header(&header, tensor->type);
    file_writer_put(&writer, header.ptr, header.len);
    file_writer_put(&writer, tensor->data, (size_t)type_bytes(tensor->type));
    text_free(&header);
    return file_writer_commit(&writer, diag);
}
