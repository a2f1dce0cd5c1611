/* The compiler as a library, seen from outside: only nnc_compiler.h, and the shared library. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nnc_compiler.h"

#include "unit.h"

static const char model[] =
    "nnc 1\n"
    "use \"nn\"\n"
    "const N = 2\n"
    "graph small(x: f32[N, 4]) -> (y: f32[N, 3], z: i64[N]) {\n"
    "    h = relu(dense(x * 2.0, 8))\n"
    "    y = dense@last(h, 3)\n"
    "    z = argmax(y, axis = 1)\n"
    "}\n"
    "graph twice(x: f32[5]) -> (y: f32[5]) {\n"
    "    y = x + x\n"
    "}\n";

typedef struct Bytes { /* files as they come, name after name */
    char *at;
    size_t size;
    int files;
} Bytes;

static void add(Bytes *b, const void *bytes, size_t size)
{
    b->at = realloc(b->at, b->size + size + 1);
    memcpy(b->at + b->size, bytes, size);
    b->size += size;
    b->at[b->size] = 0;
}

static int take(void *context, const char *name, const void *bytes, size_t size)
{
    Bytes *b = context;
    b->files++;
    add(b, name, strlen(name));
    add(b, bytes, size);
    return 0;
}

static int refuse(void *context, const char *name, const void *bytes, size_t size)
{
    (void)context, (void)name, (void)bytes, (void)size;
    return 1;
}

static nnc_result parse(nnc_session *session, const char *text, nnc_module **module)
{
    nnc_source source = {.path = "small.nnc", .text = text, .bytes = strlen(text)};
    return nnc_module_parse(session, &source, module);
}

/* Everything that a session gives of the model, for a target. */
static void *compile_all(void *context)
{
    Bytes *b = context;
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_program *program;
    nnc_options options = {.target = "x86-64-v3"};
    const char *text;

    for (int round = 0; round < 3; round++) {
        if (parse(session, model, &module) || nnc_graph_compile(module, 0, &options, &program) ||
            nnc_program_emit(program, take, b))
            break;
        for (int kind = NNC_TEXT_PLAN; kind <= NNC_TEXT_KERNELS; kind++)
            if (nnc_program_text(program, (nnc_text_kind)kind, &text) == NNC_RESULT_OK)
                add(b, text, strlen(text));
    }
    nnc_session_free(session);
    return NULL;
}

UNIT(two_threads_make_the_same_bytes)
{
    pthread_t thread[2];
    Bytes bytes[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++)
        EXPECT_INT(pthread_create(&thread[i], NULL, compile_all, &bytes[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    EXPECT_INT(bytes[0].files, 6); /* a source and a header, three times */
    EXPECT(bytes[0].size == bytes[1].size && bytes[0].size && memcmp(bytes[0].at, bytes[1].at, bytes[0].size) == 0);
    EXPECT(bytes[0].size % 3 == 0 && memcmp(bytes[0].at, bytes[0].at + bytes[0].size / 3, bytes[0].size / 3) == 0);
    for (int i = 0; i < 2; i++)
        free(bytes[i].at);
}

UNIT(a_graph_compiles_again_and_for_another_target)
{
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_program *program;
    Bytes first = {0}, second = {0};
    const char *before, *after;

    EXPECT_INT(parse(session, model, &module), NNC_RESULT_OK);
    EXPECT_INT(nnc_graph_text(module, 0, &before), NNC_RESULT_OK);
    EXPECT_INT(nnc_graph_compile(module, 0, NULL, &program), NNC_RESULT_OK);
    EXPECT_INT(nnc_program_emit(program, take, &first), NNC_RESULT_OK);
    EXPECT_INT(nnc_graph_compile(module, 0, &(nnc_options){.target = "cuda:sm_90"}, &program), NNC_RESULT_OK);
    EXPECT(nnc_program_arena_bytes(program) > 0);
    EXPECT_INT(nnc_graph_compile(module, 0, NULL, &program), NNC_RESULT_OK);
    EXPECT_INT(nnc_program_emit(program, take, &second), NNC_RESULT_OK);
    EXPECT(first.size == second.size && memcmp(first.at, second.at, first.size) == 0);
    EXPECT_INT(nnc_graph_text(module, 0, &after), NNC_RESULT_OK);
    EXPECT(strcmp(before, after) == 0);
    EXPECT_INT(nnc_program_emit(program, refuse, NULL), NNC_RESULT_STOPPED);
    nnc_session_free(session);
    free(first.at);
    free(second.at);
}

UNIT(a_module_tells_its_graphs)
{
    nnc_session *session = nnc_session_new();
    nnc_define define = {"N", "7"};
    nnc_source source = {.text = model, .bytes = sizeof model - 1, .define = &define, .define_count = 1};
    nnc_module *module;
    EXPECT_INT(nnc_module_parse(session, &source, &module), NNC_RESULT_OK);
    const nnc_graph *graph = nnc_module_graph(module, 0);
    EXPECT(strcmp(graph->name, "small") == 0 && graph->input_count == 1 && graph->output_count == 2);
    EXPECT(strcmp(graph->input->name, "x") == 0 && strcmp(graph->output[1].dtype, "i64") == 0);
    EXPECT_INT(graph->input->shape[0], 7);
    EXPECT_INT(graph->output[1].bytes, 56);
    EXPECT(strcmp(nnc_module_graph(module, 1)->name, "twice") == 0 && !nnc_module_graph(module, 2));
    nnc_session_free(session);
}

UNIT(a_graph_is_evaluated)
{
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    float x[5] = {1, 2, 3, 4, 5}, y[5] = {0};
    EXPECT_INT(parse(session, model, &module), NNC_RESULT_OK);
    EXPECT_INT(nnc_graph_evaluate(module, 1, (const void *[]){x}, (void *[]){y}), NNC_RESULT_OK);
    EXPECT(y[0] == 2 && y[4] == 10);
    nnc_session_free(session);
}

UNIT(an_error_has_its_place)
{
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    EXPECT_INT(parse(session, "nnc 1\ngraph g(x: f32[2]) -> (y: f32[2]) {\n    y = x + nothing\n}\n", &module),
               NNC_RESULT_INPUT);
    EXPECT(!module);
    const nnc_diagnostic *error = nnc_session_diagnostic(session, 0);
    EXPECT(error && error->is_error && strcmp(error->file, "small.nnc") == 0 && strstr(error->message, "nothing"));
    EXPECT_INT(error->line, 3);
    EXPECT_INT(error->column, 13);
    EXPECT(!nnc_session_diagnostic(session, 1));
    EXPECT(strstr(nnc_session_text(session), "small.nnc:3:13: error: ") != NULL);

    EXPECT_INT(parse(session, "nnc 1\ngraph g(x: f32[2]) -> (y: f32[2]) {\n    y = x + x\n}\n", &module),
               NNC_RESULT_OK); /* the session goes on */
    EXPECT(!*nnc_session_text(session) && !nnc_session_diagnostic(session, 0));
    nnc_session_free(session);
}

static int find_team(void *found, const char *name, const void *bytes, size_t size)
{
    static const char word[] = "nnc_team *team)";
    for (size_t i = 0; strcmp(name, "g.c") == 0 && i + sizeof word <= size; i++)
        *(bool *)found |= memcmp((const char *)bytes + i, word, sizeof word - 1) == 0;
    return 0;
}

UNIT(threads_share_a_run)
{
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_program *program;
    bool team = false;
    nnc_options options = {.threads = 4};
    EXPECT_INT(parse(session, "nnc 1\ngraph g(x: f32[2]) -> (y: f32[2]) {\n    y = x + x\n}\n", &module),
               NNC_RESULT_OK);
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_OK);
    EXPECT_INT(nnc_program_emit(program, find_team, &team), NNC_RESULT_OK);
    EXPECT(team);
    options.threads = 5000;
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_USE);
    options = (nnc_options){.threads = 2, .target = "cuda:sm_90"};
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_USE);
    nnc_session_free(session);
}

static int count_source(void *bytes, const char *name, const void *text, size_t size)
{
    (void)text;
    *(size_t *)bytes += strcmp(name, "g.c") == 0 ? size : 0;
    return 0;
}

UNIT(the_least_code_is_less)
{
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_program *program;
    size_t bytes[2] = {0};
    EXPECT_INT(parse(session,
                     "nnc 1\ngraph g(x: f32[1, 8, 9, 9], w: f32[8, 8, 3, 3]) -> (y: f32[1, 8, 9, 9]) {\n"
                     "    y = conv2d(x, w, pad = 1)\n}\n",
                     &module),
               NNC_RESULT_OK);
    for (int size = 0; size < 2; size++) {
        nnc_options options = {.size = size};
        EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_OK);
        EXPECT_INT(nnc_program_emit(program, count_source, &bytes[size]), NNC_RESULT_OK);
    }
    EXPECT(bytes[1] && bytes[1] < bytes[0]);
    nnc_options options = {.size = 1, .target = "x86-64-v3"};
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_USE);
    nnc_session_free(session);
}

/* Notes names of files, each behind a blank. */
static int note_name(void *context, const char *name, const void *bytes, size_t size)
{
    char *names = context;
    (void)bytes, (void)size;
    strcat(strcat(names, " "), name);
    return 0;
}

UNIT(several_targets_become_one_program)
{
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_program *program;
    const char *text = "";
    char names[256] = "";
    uint64_t alone[2];
    static const char *const target[] = {"x86-64-v2", "x86-64-v4"};

    EXPECT_INT(parse(session, model, &module), NNC_RESULT_OK);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(nnc_graph_compile(module, 0, &(nnc_options){.target = target[i]}, &program), NNC_RESULT_OK);
        alone[i] = nnc_program_arena_bytes(program);
    }
    nnc_options options = {.target = "x86-64-v4,x86-64-v2"};
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_OK);
    EXPECT(nnc_program_arena_bytes(program) == (alone[0] > alone[1] ? alone[0] : alone[1]));
    EXPECT_INT(nnc_program_emit(program, note_name, names), NNC_RESULT_OK);
    EXPECT(strcmp(names, " small.h small.c small_versions.h small_x86_64_v2.c small_x86_64_v4.c") == 0);
    for (int kind = NNC_TEXT_GRAPH; kind <= NNC_TEXT_KERNELS; kind++) {
        EXPECT_INT(nnc_program_text(program, (nnc_text_kind)kind, &text), NNC_RESULT_OK);
        EXPECT(strstr(text, "# x86-64-v2") != NULL && strstr(text, "# x86-64-v4") != NULL);
    }
    static const char *const wrong[] = {"x86-64-v2,cuda:sm_90", "x86-64-v3,x86-64-v3", "x86-64-v2,",
                                        "cortex-m,generic"};
    for (int i = 0; i < 4; i++) {
        EXPECT_INT(nnc_graph_compile(module, 0, &(nnc_options){.target = wrong[i]}, &program), NNC_RESULT_USE);
        EXPECT(nnc_session_text(session)[0]);
    }
    options.tune = "some.tune";
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_USE);
    nnc_session_free(session);
}

UNIT(recipes_of_a_tune_file_are_followed)
{
    static const char one[] =
        "nnc 1\ngraph g(x: f32[8, 8], w: f32[8, 16]) -> (y: f32[8, 16]) {\n    y = matmul(x, w)\n}\n";
    static const char recipe[] =
        "target x86-64-v3\ngraph g {\n"
        "    y: f32[8, 16] = matmul(x, w) @kernel(0, tiled, pixels = 3, vectors = 1)\n}\n";
    char path[] = "/tmp/nnc-tune-XXXXXX";
    int file = mkstemp(path);
    nnc_session *session = nnc_session_new();
    nnc_options options = {.target = "x86-64-v3", .tune = path};
    nnc_module *module;
    nnc_program *program;
    const char *text = "";
    EXPECT(file >= 0 && write(file, recipe, sizeof recipe - 1) == (ssize_t)(sizeof recipe - 1));
    EXPECT_INT(parse(session, one, &module), NNC_RESULT_OK);
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_OK);
    EXPECT_INT(nnc_program_text(program, NNC_TEXT_KERNELS, &text), NNC_RESULT_OK);
    EXPECT(strstr(text, "pixels = 3, vectors = 1") != NULL);
    options.target = "generic";
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_INPUT);
    EXPECT(strstr(nnc_session_text(session), "timed for x86-64-v3") != NULL);
    options.tune = "/nowhere/at all.tune";
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_INPUT);
    nnc_session_free(session);
    close(file);
    unlink(path);
}

UNIT(a_wrong_use_is_told)
{
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_program *program;
    EXPECT_INT(nnc_module_parse(session, &(nnc_source){0}, &module), NNC_RESULT_USE);
    EXPECT_INT(nnc_module_parse(session, &(nnc_source){.path = "/nowhere/at all.nnc"}, &module), NNC_RESULT_INPUT);
    EXPECT(strcmp(nnc_session_diagnostic(session, 0)->file, "/nowhere/at all.nnc") == 0);
    EXPECT_INT(parse(session, model, &module), NNC_RESULT_OK);
    EXPECT_INT(nnc_graph_compile(module, 2, NULL, &program), NNC_RESULT_USE);
    EXPECT_INT(nnc_graph_compile(module, 0, &(nnc_options){.target = "abacus"}, &program), NNC_RESULT_USE);
    EXPECT(strstr(nnc_session_text(session), "abacus") != NULL);
    EXPECT_INT(nnc_graph_compile(module, 0, &(nnc_options){.allocator = "none"}, &program), NNC_RESULT_USE);
    EXPECT_INT(nnc_graph_compile(module, 0, &(nnc_options){.precision = "low"}, &program), NNC_RESULT_USE);
    EXPECT_INT(nnc_graph_compile(module, 0, &(nnc_options){.precision = "high", .exact = 1}, &program), NNC_RESULT_USE);
    EXPECT_INT(nnc_graph_compile(module, 0, &(nnc_options){.allocator = nnc_allocator_name(0)}, &program),
               NNC_RESULT_OK);
    EXPECT_INT(nnc_program_write(program, "/dev/null/x"), NNC_RESULT_SYSTEM);
    nnc_session_free(session);
}

/* Stored weights */

/* A file of one tensor `w` of the dtype, two elements, in the folder of the test. */
static const char *store(const char *dtype, const void *elements, size_t bytes)
{
    static char path[] = "library_test.safetensors";
    char header[200] = {0};
    size_t length = (size_t)snprintf(header + 8, sizeof header - 8,
                                     "{\"w\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%zu]}}", dtype, bytes);
    header[0] = (char)length;
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(header, 1, length + 8, file) != length + 8 || fwrite(elements, 1, bytes, file) != bytes)
        abort();
    fclose(file);
    return path;
}

static const char weighted[] =
    "nnc 1\n"
    "graph g(x: f32[2]) -> (y: f32[2]) {\n"
    "    param w: f32[2] = 3.0\n"
    "    param v: f32[2] = 1.0\n"
    "    y = x * w * v\n"
    "}\n";

UNIT(what_the_weights_file_lacks_is_an_error_or_drawn)
{
    const float stored[] = {5, 7}, x[] = {1, 1};
    float y[2] = {0};
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_source source = {
        .text = weighted, .bytes = sizeof weighted - 1, .weights = store("F32", stored, sizeof stored)};

    EXPECT_INT(nnc_module_parse(session, &source, &module), NNC_RESULT_INPUT);
    EXPECT(!module);
    const nnc_diagnostic *error = nnc_session_diagnostic(session, 0), *note = nnc_session_diagnostic(session, 1);
    EXPECT(error && error->is_error && strcmp(error->file, source.weights) == 0 &&
           strstr(error->message, "it lacks 1 of 2 params of the model"));
    EXPECT(note && !note->is_error && strstr(note->message, "v: f32[2]; no tensor of the file is left for it"));
    EXPECT(!nnc_session_diagnostic(session, 2));

    EXPECT_INT(nnc_module_parse(session, &(nnc_source){.text = weighted, .bytes = sizeof weighted - 1, .weights = ""},
                                &module),
               NNC_RESULT_USE);
    source.init_missing = 1;
    EXPECT_INT(nnc_module_parse(session, &source, &module), NNC_RESULT_OK);
    EXPECT(strstr(nnc_session_text(session), "note: 1 of 2 params is drawn from its initialiser") != NULL);
    EXPECT_INT(nnc_graph_evaluate(module, 0, (const void *[]){x}, (void *[]){y}), NNC_RESULT_OK);
    EXPECT(y[0] == 5 && y[1] == 7);
    source = (nnc_source){.text = weighted, .bytes = sizeof weighted - 1};
    EXPECT_INT(nnc_module_parse(session, &source, &module), NNC_RESULT_OK);
    EXPECT(strstr(nnc_session_text(session), "no weights file: all 2 params are drawn from their initialisers") !=
           NULL);
    source.shapes_only = 1;
    EXPECT_INT(nnc_module_parse(session, &source, &module), NNC_RESULT_OK);
    EXPECT(!*nnc_session_text(session));
    nnc_session_free(session);
}

UNIT(stored_floats_convert_on_request)
{
    const double stored[] = {5, 7};
    const float x[] = {1, 1};
    float y[2] = {0};
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_source source = {.text = weighted,
                         .bytes = sizeof weighted - 1,
                         .weights = store("F64", stored, sizeof stored),
                         .init_missing = 1};

    EXPECT_INT(nnc_module_parse(session, &source, &module), NNC_RESULT_INPUT);
    source.convert_weights = 1;
    EXPECT_INT(nnc_module_parse(session, &source, &module), NNC_RESULT_OK);
    EXPECT_INT(nnc_graph_evaluate(module, 0, (const void *[]){x}, (void *[]){y}), NNC_RESULT_OK);
    EXPECT(y[0] == 5 && y[1] == 7);

    const nnc_param *w = nnc_module_param(module, 0), *v = nnc_module_param(module, 1);
    EXPECT(w && strcmp(w->tensor.name, "w") == 0 && strcmp(w->initialiser, "3.0") == 0 && w->stored);
    EXPECT(v && strcmp(v->role, "param") == 0 && v->tensor.bytes == 8 && !v->stored);
    EXPECT(!nnc_module_param(module, 2));
    EXPECT(strcmp(nnc_module_file(module, 0), source.weights) == 0 && !nnc_module_file(module, 1));
    remove(source.weights);
    nnc_session_free(session);
}

/* y = x + w, x: f32[n, 2], w = [1, 2], as tests/onnx/write.py writes it */
static const unsigned char onnx[] = {
    8,  8,  58, 75, 10,  18, 10,  1,  120, 10, 1,  119, 18, 1,   121, 26, 0, 34, 3,   65,  100, 100,
    58, 0,  18, 1,  103, 42, 17,  8,  2,   16, 1,  66,  1,  119, 74,  8,  0, 0,  128, 63,  0,   0,
    0,  64, 90, 20, 10,  1,  120, 18, 15,  10, 13, 8,   1,  18,  9,   10, 3, 18, 1,   110, 10,  2,
    8,  2,  98, 9,  10,  1,  121, 18, 4,   10, 2,  8,   1,  66,  4,   10, 0, 16, 17,
};

UNIT(a_model_of_onnx_brings_its_weights)
{
    static const char path[] = "library_test.onnx";
    const float x[] = {10, 20, 30, 40};
    float y[4] = {0};
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_source source = {.path = path};
    FILE *file = fopen(path, "wb");

    EXPECT(file && fwrite(onnx, 1, sizeof onnx, file) == sizeof onnx && fclose(file) == 0);
    EXPECT_INT(nnc_module_parse(session, &source, &module), NNC_RESULT_INPUT);
    if (!strstr(nnc_session_text(session), "built without")) {
        EXPECT(strstr(nnc_session_text(session), "its extent 0 is called n; give it with -D n=N") != NULL);
        source.define = (const nnc_define[]){{"n", "2"}};
        source.define_count = 1;
        EXPECT_INT(nnc_module_parse(session, &source, &module), NNC_RESULT_OK);
        EXPECT(!*nnc_session_text(session) && strcmp(nnc_module_file(module, 0), path) == 0);
        EXPECT_INT(nnc_graph_evaluate(module, 0, (const void *[]){x}, (void *[]){y}), NNC_RESULT_OK);
        EXPECT(y[0] == 11 && y[1] == 22 && y[2] == 31 && y[3] == 42);
    }
    remove(path);
    nnc_session_free(session);
}

/* Sanitizers reserve more address space than the test leaves. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static void note_bytes(void *context, size_t bytes)
{
    *(size_t *)context = bytes;
}

UNIT(without_memory_a_call_returns)
{
    static const char large[] =
        "nnc 1\n"
        "graph g(x: f32[1]) -> (y: f32[16, 16777216]) {\n"
        "    y = broadcast(x, shape = [16, 16777216])\n"
        "}\n";
    struct rlimit limit;
    size_t asked = 0;
    float x = 1, y;

    if (SANITIZED)
        return;
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    EXPECT_INT(parse(session, large, &module), NNC_RESULT_OK);
    nnc_session_on_memory(session, note_bytes, &asked);
    getrlimit(RLIMIT_AS, &limit);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 900u << 20;
    setrlimit(RLIMIT_AS, &limit);
    nnc_result result = nnc_graph_evaluate(module, 0, (const void *[]){&x}, (void *[]){&y});
    limit.rlim_cur = before;
    setrlimit(RLIMIT_AS, &limit);
    EXPECT_INT(result, NNC_RESULT_MEMORY);
    EXPECT(asked >= (size_t)1 << 30);
    EXPECT(strstr(nnc_session_text(session), "out of memory") != NULL);
    EXPECT_INT(parse(session, model, &module), NNC_RESULT_MEMORY);
    nnc_session_free(session);
}

UNIT(a_limit_is_kept_or_refused)
{
    static const char text[] =
        "nnc 1\n"
        "use \"nn\"\n"
        "graph step(x: f32[16, 16]) -> (loss: f32[]) {\n"
        "    h = x\n"
        "    for i in 0..8 carry h { h = gelu(dense@layer{i}(h, 16)) }\n"
        "    loss = mean(square(h))\n"
        "    minimize(loss, with = sgd(rate = 0.01))\n"
        "}\n";
    nnc_session *session = nnc_session_new();
    nnc_module *module;
    nnc_program *program;
    const char *plan;
    nnc_options options = {0};
    EXPECT_INT(parse(session, text, &module), NNC_RESULT_OK);
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_OK);
    uint64_t free = nnc_program_arena_bytes(program);
    options.memory_limit = free / 3;
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_OK);
    EXPECT(nnc_program_arena_bytes(program) <= free / 3);
    EXPECT_INT(nnc_program_text(program, NNC_TEXT_JSON, &plan), NNC_RESULT_OK);
    EXPECT(strstr(plan, "\"recomputed\": {\"peak_before\": ") != NULL);
    options.memory_limit = 1;
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_INPUT);
    EXPECT(strstr(nnc_session_text(session), "more than the limit") != NULL);
    options.memory_limit = UINT64_MAX;
    EXPECT_INT(nnc_graph_compile(module, 0, &options, &program), NNC_RESULT_USE);
    nnc_session_free(session);
}

int main(void)
{
    static const Test test[] = {
        RUN(two_threads_make_the_same_bytes),
        RUN(threads_share_a_run),
        RUN(the_least_code_is_less),
        RUN(a_graph_compiles_again_and_for_another_target),
        RUN(a_module_tells_its_graphs),
        RUN(a_graph_is_evaluated),
        RUN(an_error_has_its_place),
        RUN(several_targets_become_one_program),
        RUN(recipes_of_a_tune_file_are_followed),
        RUN(a_wrong_use_is_told),
        RUN(what_the_weights_file_lacks_is_an_error_or_drawn),
        RUN(stored_floats_convert_on_request),
        RUN(a_model_of_onnx_brings_its_weights),
        RUN(a_limit_is_kept_or_refused),
        RUN(without_memory_a_call_returns),
    };
    return UNIT_MAIN(test);
}
