/* Readers of files against good, damaged and hostile bytes: each fault has its message, none crashes. */
#include <stdlib.h>
#include <string.h>

#include "formats/pnm.h"
#include "formats/safetensors.h"

#include "unit.h"

typedef struct Bench { /* a module to read into */
    Arena arena;
    Diag diag;
    Module *module;
} Bench;

static Module *bench_open(Bench *b)
{
    *b = (Bench){0};
    b->diag.arena = &b->arena;
    return b->module = module_new(&b->arena, &b->diag);
}

static bool bench_says(const Bench *b, const char *message)
{
    bool found = b->diag.text.len && strstr(b->diag.text.ptr, message);
    if (!found)
        printf("# expected `%s`, got `%s`\n", message, b->diag.text.len ? b->diag.text.ptr : "");
    return found;
}

static void bench_close(Bench *b)
{
    diag_free(&b->diag);
    arena_free(&b->arena);
}

/* An .npy file of the given version around a header and elements. */
static Text npy_file(int version, const char *header, const void *data, size_t size)
{
    Text file = {0};
    size_t length = strlen(header);
    text_put(&file, "\x93NUMPY", 6);
    text_char(&file, (char)version);
    text_char(&file, 0);
    for (int i = 0; i < (version > 1 ? 4 : 2); i++)
        text_char(&file, (char)(length >> (8 * i)));
    text_put(&file, header, length);
    text_put(&file, data, size);
    return file;
}

static const Tensor *npy_of(Bench *b, Text *file)
{
    /* a copy of the exact size, so that Valgrind and ASan see a read past its end */
    unsigned char *bytes = malloc(file->len + !file->len);
    memcpy(bytes, file->ptr, file->len);
    const Tensor *tensor = npy_parse(b->module, STR("x.npy"), bytes, file->len);
    free(bytes);
    text_free(file);
    return tensor;
}

UNIT(npy_reads_every_order)
{
    static const unsigned char big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
    static const int16_t c_order[] = {1, 2, 3, 4, 5, 6}, fortran[] = {1, 3, 5, 2, 4, 6}; /* of [2, 3]: columns */
    Bench b;
    bench_open(&b);
    for (int version = 1; version <= 3; version++) {
        Text file = npy_file(version, "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }", big, 12);
        const Tensor *t = npy_of(&b, &file);
        EXPECT(t && t->type->dtype == DT_I16 && memcmp(t->data, c_order, 12) == 0);
        file = npy_file(version, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}\n", big, 12);
        t = npy_of(&b, &file);
        EXPECT(t && memcmp(t->data, fortran, 12) == 0);
    }
    Text file = npy_file(1, "{'shape': (), 'fortran_order': False, 'descr': '<f4'}", "\0\0\x80\x3f", 4);
    const Tensor *t = npy_of(&b, &file);
    EXPECT(t && t->type->shape.rank == 0 && tensor_number(t, 0) == 1);
    file = npy_file(1, "{'shape': (0, 9223372036854775807,), 'fortran_order': True, 'descr': '<f4'}", "", 0);
    npy_of(&b, &file); /* either answer is fine */
    bench_close(&b);
}

UNIT(npy_refuses_hostile_files)
{
    static const struct {
        const char *header, *message;
    } bad[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2), }", "the shape overflows"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,), }", "the shape overflows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,), }", "malformed"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "malformed"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "at most 8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "the shape asks for 16 bytes, 4 are there"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (4,), }", "a kind nnc does not have: <c8"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (4,), }", "a kind nnc does not have: |O"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "malformed"},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }", "a bool is 2, neither 0 nor 1"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", "malformed"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", "malformed"},
        {"{'descr': '<f4', 'fortran_order': False, }", "incomplete"},
        {"{'descr': '<f4", "malformed"},
        {"{'descr'", "malformed"},
        {"{", "malformed"},
        {"", "the header is no dictionary"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Bench b;
        bench_open(&b);
        Text file = npy_file(2, bad[i].header, "\2\0\0\0", 4);
        EXPECT(!npy_of(&b, &file));
        EXPECT(bench_says(&b, "x.npy: error: ") && bench_says(&b, bad[i].message));
        bench_close(&b);
    }
}

UNIT(npy_refuses_every_prefix)
{
    Text file = npy_file(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "\0\0\0\0", 4);
    for (size_t length = 0; length < file.len; length++) {
        Bench b;
        bench_open(&b);
        Text part = {0};
        text_put(&part, file.ptr, length);
        EXPECT(!npy_of(&b, &part));
        bench_close(&b);
    }
    text_free(&file);
}

static bool stored_of(Bench *b, uint64_t length, const char *header, size_t data, Safetensors *out)
{
    size_t text = strlen(header), size = 8 + text + data;
    unsigned char *bytes = calloc(1, size); /* of the exact size, for Valgrind */
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(length >> (8 * i));
    memcpy(bytes + 8, header, text);
    bool good = safetensors_parse(&b->arena, &b->diag, STR("w.safetensors"), bytes, size, out);
    free(bytes);
    return good;
}

UNIT(safetensors_reads)
{
    static const char header[] =
        "{\"__metadata__\":{\"by\":\"me\"},\"a.b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
        "\"q\":{\"dtype\":\"F8_E5M2\",\"shape\":[3],\"data_offsets\":[8,11]},"
        "\"none\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[4,4]}}  ";
    Bench b;
    Safetensors file;
    bench_open(&b);
    EXPECT(stored_of(&b, strlen(header), header, 11, &file));
    EXPECT_INT(file.count, 3);
    const StoredTensor *t = &file.tensor[map_get(&file.by_name, STR("a.b"))];
    EXPECT(t->dtype == DT_F32 && t->shape.rank == 2 && t->shape.dim[0] == 2 && t->end - t->begin == 8);
    EXPECT(file.tensor[map_get(&file.by_name, STR("q"))].dtype == DT_COUNT);
    bench_close(&b);
}

#define ENTRY(dtype, shape, offsets) "{\"t\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

UNIT(safetensors_refuses_hostile_files)
{
    static const struct {
        const char *header, *message;
    } bad[] = {
        {ENTRY("\"F32\"", "[2]", "[0,9]"), "tensor t: its bytes 0 to 9 lie outside the file, which has 8"},
        {ENTRY("\"F32\"", "[2]", "[8,0]"), "outside the file"},
        {ENTRY("\"F32\"", "[2]", "[0,18446744073709551615]"), "malformed"},
        {ENTRY("\"F32\"", "[2]", "[0,1e300]"), "malformed"},
        {ENTRY("\"F32\"", "[2]", "[-8,0]"), "malformed"},
        {ENTRY("\"F32\"", "[2]", "[0.5,8]"), "malformed"},
        {ENTRY("\"F32\"", "[2]", "[0,8,16]"), "malformed"},
        {ENTRY("\"F32\"", "[3]", "[0,8]"), "its shape asks for 12 bytes, it has 8"},
        {ENTRY("\"F32\"", "[4503599627370496,4503599627370496]", "[0,8]"), "its shape overflows"},
        {ENTRY("\"F32\"", "[2,\"x\"]", "[0,8]"), "malformed"},
        {ENTRY("7", "[2]", "[0,8]"), "malformed"},
        {"{\"t\":[]}", "malformed"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,6]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
         "\"data_offsets\":[4,8]}}",
         "tensors a and b overlap"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
         "\"data_offsets\":[1,2]}}",
         "tensor a is there twice"},
        {"[1]", "not valid JSON"},
        {"{\"t\":", "not valid JSON"},
        {"", "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Bench b;
        Safetensors file;
        bench_open(&b);
        EXPECT(!stored_of(&b, strlen(bad[i].header), bad[i].header, 8, &file));
        EXPECT(bench_says(&b, "w.safetensors: error: ") && bench_says(&b, bad[i].message));
        bench_close(&b);
    }
}

UNIT(safetensors_refuses_lengths_and_depth)
{
    Bench b;
    Safetensors file;
    Text deep = {0};
    bench_open(&b);
    EXPECT(!stored_of(&b, UINT64_MAX, "{}", 0, &file));
    EXPECT(!stored_of(&b, 3, "{}", 0, &file));
    EXPECT(bench_says(&b, "its header would have 18446744073709551615 bytes"));
    EXPECT(bench_says(&b, "truncated: the header has 3 bytes, the file has 10"));
    EXPECT(!safetensors_parse(&b.arena, &b.diag, STR("w"), (const unsigned char *)"1234567", 7, &file));
    text_fill(&deep, '[', 1000000);
    EXPECT(!stored_of(&b, deep.len, deep.ptr, 0, &file));
    EXPECT(bench_says(&b, "nested deeper than 1000"));
    text_free(&deep);
    bench_close(&b);
}

UNIT(images_scale_to_255)
{
    static const char plain[] = "P2 # a comment\n3 1\n# another\n15\n0 5 15\n", raw[] = "P6\n1 2\n255\n\1\2\3\4\5\6",
                      wide[] = "P5 1 1 65535\n\xff\xff";
    Bench b;
    bench_open(&b);
    const Tensor *t = pnm_parse(b.module, STR("a.pgm"), (const unsigned char *)plain, sizeof plain - 1);
    EXPECT(t && tensor_number(t, 0) == 0 && tensor_number(t, 1) == 85 && tensor_number(t, 2) == 255);
    t = pnm_parse(b.module, STR("a.ppm"), (const unsigned char *)raw, sizeof raw - 1);
    EXPECT(t && t->type->shape.dim[0] == 3 && tensor_number(t, 0) == 1 && tensor_number(t, 1) == 4);
    t = pnm_parse(b.module, STR("a.pgm"), (const unsigned char *)wide, sizeof wide - 1);
    EXPECT(t && tensor_number(t, 0) == 255);
    bench_close(&b);
}

UNIT(images_refuse_hostile_files)
{
    static const struct {
        const char *bytes, *message;
    } bad[] = {
        {"", "not a .pgm or .ppm"},
        {"P4\n1 1\n", "not a .pgm or .ppm"},
        {"P5\n1 1\n", "malformed"},
        {"P5\n0 1\n255\n", "malformed"},
        {"P5\n-1 1\n255\n", "malformed"},
        {"P5\n99999999999999999999 1\n255\n", "malformed"},
        {"P5\n1 1\n65536\n0", "malformed"},
        {"P5\n65536 65536\n255\n0", "truncated"},
        {"P5\n2 2\n255\nabc", "truncated"},
        {"P2\n2 1\n9\n5 10", "larger than maxval"},
        {"P2\n2 1\n9\n5 x     ", "truncated"},
        {"P6\n1 1\n300\nabcde", "truncated"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Bench b;
        bench_open(&b);
        size_t size = strlen(bad[i].bytes);
        unsigned char *bytes = malloc(size + !size);
        memcpy(bytes, bad[i].bytes, size);
        EXPECT(!pnm_parse(b.module, STR("i.pgm"), bytes, size));
        EXPECT(bench_says(&b, "i.pgm: error: ") && bench_says(&b, bad[i].message));
        free(bytes);
        bench_close(&b);
    }
}

int main(void)
{
    static const Test test[] = {
        RUN(npy_reads_every_order), RUN(npy_refuses_hostile_files),         RUN(npy_refuses_every_prefix),
        RUN(safetensors_reads),     RUN(safetensors_refuses_hostile_files), RUN(safetensors_refuses_lengths_and_depth),
        RUN(images_scale_to_255),   RUN(images_refuse_hostile_files),
    };
    return UNIT_MAIN(test);
}
