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

static void print_call(Text *out, const Program *program, bool file)
{
    const Graph *graph = program->graph;
    text_printf(out, "    const int status = " STR_FMT "_run(", STR_ARG(program->options.name));
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(out, "(const %s *)device_input%u, ", prelude_c_type(value_type(graph, graph->input[i])->dtype), i);
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "(%s *)device_output%u, ", prelude_c_type(value_type(graph, graph->output[i].value)->dtype),
                    i);
    text_printf(out,
                "%sblock + canary, 0);\n"
                "    check((cudaError_t)status, \"launch\");\n"
                "    check(cudaDeviceSynchronize(), \"run\");\n",
                file ? "weights, " : "");
}

static void print_main(Text *out, const Program *program, const Tensor *const *expected)
{
    const Graph *graph = program->graph;
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    Arena arena = {0};
    text_printf(out,
                "int main(%s)\n{\n    const size_t canary = %d, bytes = %s_ARENA_BYTES;\n"
                "    unsigned char *const block = (unsigned char *)device(NULL, bytes + 2 * canary);\n"
                "    static unsigned char edge[2 * %d];\n%s    int bad = 0;\n\n"
                "    check(cudaMemset(block, 0xA5, bytes + 2 * canary), \"cudaMemset\");\n",
                file ? "int argc, char **argv" : "void", 4 * CANARY, source_upper(&arena, program->options.name),
                4 * CANARY, harness_has_numbers(program) ? "    double error = 0, scale = 0;\n" : "");
    arena_free(&arena);
    if (file)
        print_weights(out, program);
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(out, "    void *device_input%u = device(input%u, sizeof input%u);\n", i, i, i);
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "    void *device_output%u = device(NULL, sizeof output%u);\n", i, i);
    print_call(out, program, file);
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "    fetch(output%u, device_output%u, sizeof output%u);\n", i, i, i);
    for (uint32_t i = 0; i < graph->output_count; i++)
        harness_compare(out, program, i, expected[i]);
    text_printf(out,
                "    fetch(edge, block, canary);\n    fetch(edge + canary, block + canary + bytes, canary);\n"
                "    for (size_t i = 0; i < sizeof edge; i++)\n"
                "        if (edge[i] != 0xA5) {\n"
                "            printf(\"written beside the arena\\n\");\n            bad = 1;\n            break;\n"
                "        }\n");
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        text_printf(out, "    cudaFree(device_%s%u);\n", i < graph->input_count ? "input" : "output",
                    i < graph->input_count ? i : i - graph->input_count);
    text_printf(out, "%s    cudaFree(block);\n    return bad;\n}\n", file ? "    cudaFree(weights);\n" : "");
}

void emit_cuda_test(const Program *program, const Tensor *const *input, const Tensor *const *expected, Text *out)
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
    harness_arrays(out, program, input, expected);
    text_printf(out, "%s%s", harness_has_numbers(program) ? harness_compare_text : "", device_text);
    print_main(out, program, expected);
}
