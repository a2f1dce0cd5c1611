/* Runs a model's CUDA code on this machine's CPU, in the words of `nnc run`; or writes it out for a compiler.
 *
 *     cuda_run run MODEL --input NAME=FILE.npy ... --output NAME=FILE.npy ... --cxx COMMAND
 *     cuda_run emit MODEL FOLDER [--weights c|file]      NAME.cu NAME.h NAME_test.cu NAME.weights, random inputs
 *     cuda_run ops
 *
 * COMMAND compiles C++ with the headers of tests/cuda/emulate.  `emit` computes what NAME_test.cu expects with the
 * reference evaluator, before any pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/program/program.h"

#include "c/prelude.h"
#include "formats/npy.h"
#include "nnc/text.h"
#include "ops/doc.h"
#include "ops/family.h"

typedef struct Words {
    int count;
    char **word;
} Words;

typedef struct Job {
    Arena *arena;
    Diag *diag;
    Words words;
    Graph *graph;
    Program program;
    char folder[256];
} Job;

/* Arguments */

static const char *option(const Words *words, const char *flag)
{
    for (int i = 3; i + 1 < words->count; i++)
        if (strcmp(words->word[i], flag) == 0)
            return words->word[i + 1];
    return NULL;
}

/* The file that --input or --output gives for a name. */
static Str file_for(const Words *words, const char *flag, Str name)
{
    for (int i = 3; i + 1 < words->count; i++) {
        const char *word = words->word[i + 1];
        size_t length = strcspn(word, "=");
        if (strcmp(words->word[i], flag) == 0 && str_eq((Str){word, (uint32_t)length}, name))
            return str_from(word + length + (word[length] != 0));
    }
    return (Str){0};
}

/* Files */

static FILE *open_file(const Job *job, const char *name, const char *mode)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", job->folder, name);
    FILE *file = fopen(path, mode);
    if (!file) {
        perror(path);
        exit(3);
    }
    return file;
}

static void write_file(const Job *job, const char *name, const void *bytes, size_t size)
{
    FILE *file = open_file(job, name, "wb");
    fwrite(bytes, 1, size, file);
    fclose(file);
}

static void put(void *context, const void *bytes, size_t size)
{
    fwrite(bytes, 1, size, context);
}

static size_t tensor_bytes(const Type *type)
{
    return (size_t)(shape_elements(&type->shape) * dtype_bytes(type->dtype));
}

/* Emission */

static bool compile(Job *job, const char *weights)
{
    CompileOptions options = {.target = target_find(STR("cuda:sm_90"), job->diag), .name = STR("model"), .effort = 1};
    options.weights = !weights ? WEIGHTS_AUTO : strcmp(weights, "file") == 0 ? WEIGHTS_FILE : WEIGHTS_C;
    Text source = {0}, header = {0};
    bool good = program_compile(&job->graph, 1, &options, &job->program);
    if (good) {
        emit_cuda(&job->program, &source, &header);
        write_file(job, "model.cu", source.ptr, source.len);
        write_file(job, "model.h", header.ptr, header.len);
        FILE *file = open_file(job, "model.weights", "wb");
        emit_weights(&job->program, (Sink){put, file});
        fclose(file);
    }
    text_free(&source);
    text_free(&header);
    return good;
}

/* emit */

static Tensor *random_input(Arena *arena, const Type *type, uint64_t seed)
{
    Tensor *tensor = tensor_new(arena, type);
    uint64_t state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < shape_elements(&type->shape); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double number = (double)(state >> 40) / (double)(1 << 24); /* [0, 1) */
        tensor_set_number(tensor, i, dtype_is_float(type->dtype) ? number * 2 - 1 : (double)(int)(number * 10));
    }
    return tensor;
}

static bool emit(Job *job)
{
    Graph *graph = job->graph;
    const Tensor **in = ARENA_ARRAY(job->arena, const Tensor *, graph->input_count);
    const Tensor **out = ARENA_ARRAY(job->arena, const Tensor *, graph->output_count);
    for (uint32_t i = 0; i < graph->input_count; i++)
        in[i] = random_input(job->arena, value_type(graph, graph->input[i]), i + 1);
    eval_graph(graph, job->arena, in, out, NULL);
    if (!compile(job, option(&job->words, "--weights")))
        return false;
    Text test = {0};
    emit_cuda_test(&job->program, &(Golden){in, out}, &test);
    write_file(job, "model_test.cu", test.ptr, test.len);
    text_free(&test);
    return true;
}

/* run */

static bool write_inputs(Job *job)
{
    Graph *graph = job->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const Tensor *tensor =
            npy_read(graph->module, file_for(&job->words, "--input", value_show(graph, graph->input[i])));
        char name[32];
        if (!tensor)
            return false;
        snprintf(name, sizeof name, "input%u", i);
        write_file(job, name, tensor->data, tensor_bytes(tensor->type));
    }
    return true;
}

/* A main that hands files to model_run and writes files. */
static void write_main(const Job *job)
{
    const Graph *graph = job->graph;
    Text text = {0};
    text_printf(&text,
                "#include \"model.cu\"\n#include <vector>\n"
                "static void *move(const char *name, size_t bytes, bool in, void *memory)\n{\n"
                "    FILE *file = fopen(name, in ? \"rb\" : \"wb\");\n"
                "    if (!memory) {\n        cudaMalloc(&memory, bytes);\n        memset(memory, 0xA5, bytes);\n    }\n"
                "    const size_t moved = in ? fread(memory, 1, bytes, file) : fwrite(memory, 1, bytes, file);\n"
                "    if (moved != bytes)\n        abort();\n    fclose(file);\n    return memory;\n}\n"
                "int main()\n{\n    void *arena, *memory[%u];\n    cudaMalloc(&arena, MODEL_ARENA_BYTES + 1);\n"
                "    memset(arena, 0xA5, MODEL_ARENA_BYTES);\n",
                graph->input_count + graph->output_count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(&text, "    memory[%u] = move(\"input%u\", %zu, true, nullptr);\n", count++, i,
                    tensor_bytes(value_type(graph, graph->input[i])));
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(&text, "    memory[%u] = move(\"output%u\", %zu, false, nullptr);\n", count++, i,
                    tensor_bytes(value_type(graph, graph->output[i].value)));
    text_printf(&text, "    const int status = model_run(");
    for (uint32_t i = 0; i < count; i++) {
        bool output = i >= graph->input_count;
        ValueId value = output ? graph->output[i - graph->input_count].value : graph->input[i];
        text_printf(&text, "(%s%s *)memory[%u], ", output ? "" : "const ",
                    prelude_c_type(value_type(graph, value)->dtype), i);
    }
    if (program_weights_form(&job->program) != WEIGHTS_C)
        text_printf(&text, "move(\"model.weights\", MODEL_WEIGHTS_BYTES, true, nullptr), ");
    text_printf(&text, "arena, nullptr);\n");
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(&text, "    move(\"output%u\", %zu, false, memory[%u]);\n", i,
                    tensor_bytes(value_type(graph, graph->output[i].value)), graph->input_count + i);
    text_printf(&text, "    return status;\n}\n");
    write_file(job, "main.cu", text.ptr, text.len);
    text_free(&text);
}

static bool read_outputs(Job *job)
{
    Graph *graph = job->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        Tensor *tensor = tensor_new(job->arena, value_type(graph, graph->output[i].value));
        size_t bytes = tensor_bytes(tensor->type);
        char name[32];
        snprintf(name, sizeof name, "output%u", i);
        FILE *file = open_file(job, name, "rb");
        bool whole = fread(tensor->data, 1, bytes, file) == bytes;
        fclose(file);
        if (!whole || !npy_write(job->diag, file_for(&job->words, "--output", graph->output[i].name), tensor))
            return false;
    }
    return true;
}

static bool run(Job *job)
{
    const char *compiler = option(&job->words, "--cxx");
    char *command = NULL;
    size_t size = 0;
    strcpy(job->folder, "/tmp/nnc-cuda-XXXXXX");
    if (!compiler || !mkdtemp(job->folder))
        return false;
    bool good = write_inputs(job) && compile(job, "c");
    if (good) {
        write_main(job);
        FILE *text = open_memstream(&command, &size);
        fprintf(text, "cd %s && %s main.cu -o main -lm && ./main", job->folder, compiler);
        fclose(text);
        good = system(command) == 0 && read_outputs(job);
        free(command);
    }
    char clean[300];
    snprintf(clean, sizeof clean, "rm -r %s", job->folder);
    return system(clean) == 0 && good;
}

int main(int count, char **word)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Job job = {.arena = &arena, .diag = &diag, .words = {count, word}};
    Text table = {0};
    bool good = true;

    if (count > 2) {
        Module *module = nnc_parse_file(&arena, &diag, str_from(word[2]), NULL, 0);
        job.graph = module ? module->graph[0] : NULL;
        if (strcmp(word[1], "emit") == 0 && count > 3)
            snprintf(job.folder, sizeof job.folder, "%s", word[3]);
        good = job.graph && (job.folder[0] ? emit(&job) : run(&job));
        if (diag.text.len)
            fputs(diag.text.ptr, stderr);
    } else {
        ops_print_table(&table, 100);
        fputs(table.ptr, stdout);
    }
    text_free(&table);
    diag_free(&diag);
    arena_free(&arena);
    return good ? 0 : 1;
}
