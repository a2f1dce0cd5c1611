/* NAME_test.cu: copies given inputs to the device, runs the model, compares with expected outputs, and checks a canary
 * around the arena. */
#include "c/harness.h"

#include "c/print.h"
#include "c/source.h"

static const char device_text[] =
    "/* The test cannot go on without a device: status 2. */\n"
    "static void check(cudaError_t status, const char *what)\n"
    "{\n"
    "    if (status == cudaSuccess)\n        return;\n"
    "    fprintf(stderr, \"%s: %s\\n\", what, cudaGetErrorString(status));\n"
    "    exit(2);\n"
    "}\n\n"
    "/* Device memory, filled from the host's when that is given. */\n"
    "static void *device(const void *host, size_t bytes)\n"
    "{\n"
    "    void *memory;\n"
    "    check(cudaMalloc(&memory, bytes ? bytes : 1), \"cudaMalloc\");\n"
    "    if (host)\n        check(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice), \"copy to the device\");\n"
    "    return memory;\n"
    "}\n\n"
    "static void fetch(void *host, const void *memory, size_t bytes)\n"
    "{\n"
    "    check(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost), \"copy from the device\");\n"
    "}\n\n";

static void print_weights(Text *out, const Program *program)
{
    Str name = program->options.name;
    const char *bytes = "WEIGHTS_BYTES";
    Arena arena = {0};
    const char *shout = source_upper(&arena, name);
    text_printf(out,
                "    const char *const path = argc > 1 ? argv[1] : \"" STR_FMT
                ".weights\";\n"
                "    FILE *file = fopen(path, \"rb\");\n"
                "    unsigned char *raw = (unsigned char *)malloc(%s_%s + 1);\n"
                "    if (!file || !raw || fread(raw, 1, %s_%s, file) != %s_%s) {\n"
                "        fprintf(stderr, \"%%s: %%s\\n\", path, !file ? \"the weights file cannot be opened\" :\n"
                "                !raw ? \"no memory\" : \"the weights file is too short\");\n"
                "        return 2;\n    }\n"
                "    fclose(file);\n"
                "    void *weights = device(raw, %s_%s);\n    free(raw);\n",
                STR_ARG(name), shout, bytes, shout, bytes, shout, bytes, shout, bytes);
    arena_free(&arena);
}

static void print_block(Text *out, const Program *program, KeptBlock block)
{
    Arena arena = {0};
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    const char *name = source_block_name(block);
    if (program->kept.bytes[block])
        text_printf(out,
                    "    void *%s = device(NULL, %s);\n"
                    "    check((cudaError_t)" STR_FMT "_%s_init(%s%s%s, 0), \"%s\");\n",
                    name, source_block_bytes(program, block, &arena), STR_ARG(program->options.name), name,
                    file ? "weights, " : "", name, block == BLOCK_PARAMS ? ", 0" : "", name);
    arena_free(&arena);
}

static void print_arrays(Text *out, const Entry *entry)
{
    Arena arena = {0};
    Str prefix = harness_prefix(entry, &arena);
    for (uint32_t i = 0; i < entry->graph->input_count; i++)
        text_printf(out,
                    "    void *" STR_FMT "device_input%u = device(" STR_FMT "input%u, sizeof " STR_FMT "input%u);\n",
                    STR_ARG(prefix), i, STR_ARG(prefix), i, STR_ARG(prefix), i);
    for (uint32_t i = 0; i < entry->graph->output_count; i++)
        text_printf(out, "    void *" STR_FMT "device_output%u = device(NULL, sizeof " STR_FMT "output%u);\n",
                    STR_ARG(prefix), i, STR_ARG(prefix), i);
    arena_free(&arena);
}

static void print_call(Text *out, const Entry *entry)
{
    const Graph *graph = entry->graph;
    Arena arena = {0};
    Str prefix = harness_prefix(entry, &arena);
    text_printf(out, "    check((cudaError_t)" STR_FMT "(", STR_ARG(source_entry_name(entry, &arena)));
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(out, "(const %s *)" STR_FMT "device_input%u, ",
                    prelude_c_type(value_type(graph, graph->input[i])->dtype), STR_ARG(prefix), i);
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "(%s *)" STR_FMT "device_output%u, ",
                    prelude_c_type(value_type(graph, graph->output[i].value)->dtype), STR_ARG(prefix), i);
    text_printf(out,
                STR_FMT
                "block + canary, 0), \"launch\");\n"
                "    check(cudaDeviceSynchronize(), \"run\");\n",
                STR_ARG(source_lent(entry, &arena)));
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "    fetch(" STR_FMT "output%u, " STR_FMT "device_output%u, sizeof " STR_FMT "output%u);\n",
                    STR_ARG(prefix), i, STR_ARG(prefix), i, STR_ARG(prefix), i);
    for (uint32_t i = 0; i < graph->output_count; i++)
        harness_compare(out, entry, i);
    arena_free(&arena);
}

static void print_free(Text *out, const Entry *entry)
{
    const Graph *graph = entry->graph;
    Arena arena = {0};
    Str prefix = harness_prefix(entry, &arena);
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        text_printf(out, "    cudaFree(" STR_FMT "device_%s%u);\n", STR_ARG(prefix),
                    i < graph->input_count ? "input" : "output", i < graph->input_count ? i : i - graph->input_count);
    arena_free(&arena);
}

static void print_main(Text *out, const Program *program)
{
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    uint32_t calls = program_golden_calls(program);
    Arena arena = {0};
    text_printf(out,
                "int main(%s)\n{\n    const size_t canary = %d, bytes = %s_ARENA_BYTES;\n"
                "    unsigned char *const block = (unsigned char *)device(NULL, bytes + 2 * canary);\n"
                "    static unsigned char edge[2 * %d];\n",
                file ? "int argc, char **argv" : "void", 4 * CANARY, source_upper(&arena, program->options.name),
                4 * CANARY);
    harness_locals(out, program);
    text_printf(out, "\n    check(cudaMemset(block, 0xA5, bytes + 2 * canary), \"cudaMemset\");\n");
    arena_free(&arena);
    if (file)
        print_weights(out, program);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        print_block(out, program, block);
    for (uint32_t e = 0; e < program->entry_count; e++)
        print_arrays(out, &program->entry[e]);
    if (calls > 1)
        text_printf(out, "    for (size_t call = 0; call < %u; call++) {\n", calls);
    for (uint32_t e = 0; e < program->entry_count; e++)
        print_call(out, &program->entry[e]);
    text_printf(out,
                "%s    fetch(edge, block, canary);\n    fetch(edge + canary, block + canary + bytes, canary);\n"
                "    for (size_t i = 0; i < sizeof edge; i++)\n"
                "        if (edge[i] != 0xA5) {\n"
                "            printf(\"written beside the arena\\n\");\n            bad = 1;\n            break;\n"
                "        }\n",
                calls > 1 ? "    }\n" : "");
    for (uint32_t e = 0; e < program->entry_count; e++)
        print_free(out, &program->entry[e]);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (program->kept.bytes[block])
            text_printf(out, "    cudaFree(%s);\n", source_block_name(block));
    text_printf(out, "%s    cudaFree(block);\n    return bad;\n}\n", file ? "    cudaFree(weights);\n" : "");
}

void emit_cuda_test(const Program *program, const Golden *golden, Text *out)
{
    Str name = program->options.name;
    text_printf(out,
                "/* " STR_FMT
                "_test.cu: runs the model on the device with fixed inputs; expected outputs are the\n"
                " * reference evaluator's. Exit status 0: all agree, and nothing beside the arena was written.\n"
                " * Build with: nvcc -O3 %s " STR_FMT ".cu " STR_FMT
                "_test.cu */\n"
                "#include \"" STR_FMT
                ".h\"\n\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n",
                STR_ARG(name), program->options.target->cc_flags, STR_ARG(name), STR_ARG(name), STR_ARG(name));
    for (uint32_t e = 0; e < program->entry_count; e++)
        harness_arrays(out, &program->entry[e], &golden[e]);
    harness_functions(out, program, true);
    text_printf(out, "%s", device_text);
    print_main(out, program);
}
