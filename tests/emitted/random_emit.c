/* Emits random graphs for a target, with the inputs and the outputs that the reference evaluator has for them:
 *
 *     random_emit FOLDER TARGET GRAPH...        GRAPH is SEED or SEED:STEPS or SEED:STEPS:LEFT,OUT,...
 *                                               cSEED and so on also has loops and branches
 *
 * Everything else about a graph follows from its seed: dtype, channels, allocator, passes.  Writes rSEED.c, rSEED.h and
 * rSEED.nnc (the graph before all passes), `inputs` as host.c reads it, and `expected`.  For CUDA it writes rSEED.cu
 * and rSEED.sizes, the bytes of its arrays.  On stdout stands a line for each output: the graph, the output's
 * name, its dtype, the dtype that most of the graph is computed in, and the number of elements; and one that tells how
 * the graph is compiled.  Exit status 1 when a graph does not compile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "c/prelude.h"
#include "nnc/text.h"
#include "ops/family.h"
#include "passes/pass.h"
#include "program/program.h"
#include "unit/random_graph.h"

typedef struct Variant { /* a way to compile */
    const char *name;
    const char *pass[16];
    bool apart;
    unsigned without;
} Variant;

static const Variant variants[] = {
    {.name = "all passes"},
    {.name = "all passes"},
    {.name = "no simplify", .pass = {"expand", "cse", "dce", "layout"}},
    {.name = "every node apart", .pass = {"expand", "layout"}, .apart = true},
    {.name = "no layout", .pass = {"expand", "simplify", "fold", "dce"}},
    {.name = "fuse only", .pass = {"expand"}, .without = WITHOUT_ORDER | WITHOUT_INPLACE},
    {.name = "no views", .without = WITHOUT_VIEWS},
    {.name = "no inplace", .pass = {"expand", "simplify", "fold", "cse", "dce", "layout"}, .without = WITHOUT_INPLACE},
};
static const char *const allocators[] = {NULL, "greedy", "nnc", "best", NULL};
/* f32 most of all: it alone has vectors. */
static const DType dtypes[] = {DT_F32, DT_F32, DT_F64, DT_F32, DT_F32, DT_F16, DT_F32, DT_BF16};

#define PICK(table, number) (&(table)[(number) % (sizeof(table) / sizeof *(table))])

typedef struct Job {
    const char *folder;
    const Target *target;
    bool cuda;
    FILE *inputs, *expected;
} Job;

static uint64_t scramble(uint64_t x)
{
    x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 29;
}

static RandomGraph read_graph(const char *word)
{
    char *end;
    bool control = *word == 'c';
    RandomGraph options = {.seed = strtoull(word + control, &end, 10), .control = control, .emitted = true};
    uint64_t bits = scramble(options.seed);
    static const int64_t channels[] = {4, 16, 16, 8, 32};
    options.dtype = *PICK(dtypes, bits >> 8);
    options.channels = *PICK(channels, bits >> 16);
    options.steps = 3 + (uint32_t)(bits >> 24) % (options.dtype == DT_F16 || options.dtype == DT_BF16 ? 6 : 20);
    if (*end == ':')
        options.steps = (uint32_t)strtoul(end + 1, &end, 10);
    while (*end == ':' || *end == ',') {
        uint32_t step = (uint32_t)strtoul(end + 1, &end, 10);
        options.left_out[step % RANDOM_MOST] = true;
    }
    return options;
}

static void write_file(const Job *job, Diag *diag, Str name, const char *suffix, const Text *text)
{
    Arena arena = {0};
    Str path = str_format(&arena, "%s/" STR_FMT "%s", job->folder, STR_ARG(name), suffix);
    if (!file_write(diag, path, text->ptr, text->len)) {
        fputs(diag->text.ptr, stderr);
        exit(2);
    }
    arena_free(&arena);
}

static void put(FILE *stream, const Tensor *tensor)
{
    fwrite(tensor->data, 1, (size_t)type_bytes(tensor->type), stream);
}

static void write_data(const Job *job, Graph *graph, Arena *arena, Str name, DType main)
{
    const Tensor **in = ARENA_ARRAY(arena, const Tensor *, graph->input_count);
    const Tensor **out = ARENA_ARRAY(arena, const Tensor *, graph->output_count);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        in[i] = random_tensor(arena, value_type(graph, graph->input[i]), i + 1);
        put(job->inputs, in[i]);
    }
    eval_graph(graph, arena, in, out, NULL);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        put(job->expected, out[i]);
        printf(STR_FMT " " STR_FMT " %s %s %lld\n", STR_ARG(name), STR_ARG(graph->output[i].name),
               dtype_name(out[i]->type->dtype), dtype_name(main), (long long)shape_elements(&out[i]->type->shape));
    }
}

/* Sources */

static void emit_c(const Job *job, Diag *diag, const Program *program)
{
    Text text = {0};
    emit_header(program, &text);
    write_file(job, diag, program->options.name, ".h", &text);
    text.len = 0;
    emit_source(program, &text);
    write_file(job, diag, program->options.name, ".c", &text);
    text_free(&text);
}

/* The descriptor that C sources have and CUDA's have not, in words for build.py: bytes of inputs, and of outputs. */
static void write_sizes(const Job *job, Diag *diag, const Program *program)
{
    const Graph *graph = program->entry->graph;
    Text text = {0};
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(&text, "%lld ", (long long)type_bytes(value_type(graph, graph->input[i])));
    text_char(&text, '\n');
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(&text, "%lld ", (long long)type_bytes(value_type(graph, graph->output[i].value)));
    text_char(&text, '\n');
    write_file(job, diag, program->options.name, ".sizes", &text);
    text_free(&text);
}

static void emit_device(const Job *job, Diag *diag, const Program *program)
{
    Text source = {0}, header = {0};
    emit_cuda(program, &source, &header);
    write_file(job, diag, program->options.name, ".cu", &source);
    write_file(job, diag, program->options.name, ".h", &header);
    write_sizes(job, diag, program);
    text_free(&source);
    text_free(&header);
}

static bool emit(const Job *job, const char *word)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    RandomGraph random = read_graph(word);
    Module *module = module_new(&arena, &diag);
    Graph *graph = random_graph(module, &random), *reference = random_graph(module_new(&arena, &diag), &random);
    uint64_t bits = scramble(random.seed ^ 0x5bd1e995);
    const Variant *variant = PICK(variants, bits >> 8);
    CompileOptions options = {.target = job->target,
                              .weights = WEIGHTS_C,
                              .allocator = *PICK(allocators, bits >> 16),
                              .passes = variant->pass[0] ? variant->pass : NULL,
                              .apart = variant->apart,
                              .without = variant->without,
                              .checked = !job->cuda && bits >> 24 & 1,
                              .effort = 1,
                              .threads = !job->cuda && bits >> 25 & 1 ? 3 : 1,
                              .share_all = true,
                              .name = str_format(&arena, "r%llu", (unsigned long long)random.seed)};
    Program program;
    Text text = {0};

    printf(STR_FMT " : %u steps, %s, %s%s%s\n", STR_ARG(options.name), random.steps, variant->name,
           options.allocator ? options.allocator : "best", options.checked ? ", checked" : "",
           options.threads > 1 ? ", for three threads" : "");
    nnc_print_graph(&text, reference);
    write_file(job, &diag, options.name, ".nnc", &text);
    bool good = program_compile(&graph, 1, &options, &program);
    if (good && !job->cuda)
        emit_c(job, &diag, &program);
    if (good && job->cuda)
        emit_device(job, &diag, &program);
    if (good)
        write_data(job, reference, &arena, options.name, random.dtype);
    else
        fprintf(stderr, STR_FMT ": %s", STR_ARG(options.name), diag.text.ptr ? diag.text.ptr : "failed\n");
    text_free(&text);
    diag_free(&diag);
    arena_free(&arena);
    return good;
}

static FILE *create(const char *folder, const char *name)
{
    Arena arena = {0};
    FILE *stream = fopen(str_format(&arena, "%s/%s", folder, name).ptr, "wb");
    arena_free(&arena);
    return stream;
}

int main(int count, char **word)
{
    Diag diag = {0};
    bool good = count > 3;
    if (!good)
        return 2;
    Arena arena = {0};
    const char *library = strchr(word[2], '+'); /* x86-64-v3+openblas */
    Str target = {word[2], library ? (uint32_t)(library - word[2]) : (uint32_t)strlen(word[2])};
    Job job = {.folder = word[1], .target = target_find(target, &diag)};
    if (library && job.target)
        job.target = target_with_backend(&arena, job.target, BACKEND_OPENBLAS);
    job.cuda = strncmp(word[2], "cuda", 4) == 0;
    job.inputs = create(job.folder, "inputs");
    job.expected = create(job.folder, "expected");
    if (!job.target || !job.inputs || !job.expected)
        return 2;
    for (int i = 3; good && i < count; i++)
        good = emit(&job, word[i]);
    fclose(job.inputs);
    fclose(job.expected);
    arena_free(&arena);
    return good ? 0 : 1;
}
