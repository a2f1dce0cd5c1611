/* NAME_test.c: the model on given inputs against expected outputs, with a canary around the arena. */
#include "c/harness.h"

#include "c/print.h"
#include "c/source.h"
#include "ops/family.h"

static void print_array(Text *out, const char *side, uint32_t index, const Tensor *tensor)
{
    int64_t count = shape_elements(&tensor->type->shape);
    DType dtype = tensor->type->dtype;
    text_printf(out, "static const %s %s%u[%lld] = {", prelude_c_type(dtype), side, index,
                (long long)(count ? count : 1));
    for (int64_t i = 0; i < count; i++) {
        text_printf(out, i % 8 ? ", " : i ? ",\n    " : "\n    ");
        source_element(out, dtype, tensor->data, i);
    }
    text_printf(out, "%s\n};\n", count ? "" : "0");
}

/* Largest error against the largest expected magnitude: rounding differs between orders of summation. */
const char harness_compare_text[] =
    "static int differs(const char *name, const double error, const double scale, const double within)\n"
    "{\n"
    "    const int bad = !(error <= within * scale + 1e-6);\n"
    "    printf(\"%s: largest error %.3g of %.3g%s\\n\", name, error, scale, bad ? \"  WRONG\" : \"\");\n"
    "    return bad;\n"
    "}\n\n";

void harness_arrays(Text *out, const Program *program, const Tensor *const *input, const Tensor *const *expected)
{
    const Graph *graph = program->graph;
    for (uint32_t i = 0; i < graph->input_count; i++)
        print_array(out, "input", i, input[i]);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        int64_t count = shape_elements(&expected[i]->type->shape);
        if (count)
            print_array(out, "expected", i, expected[i]);
        text_printf(out, "static %s output%u[%lld];\n\n", prelude_c_type(expected[i]->type->dtype), i,
                    (long long)(count ? count : 1));
    }
}

/* Integers must be the same; of 16-bit floats the bits are at most two units apart. */
static bool compared_as_bits(DType dtype)
{
    return dtype != DT_F32 && dtype != DT_F64;
}

bool harness_has_numbers(const Program *program)
{
    const Graph *graph = program->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const Type *type = value_type(graph, graph->output[i].value);
        if (!compared_as_bits(type->dtype) && shape_elements(&type->shape))
            return true;
    }
    return false;
}

/* By the narrowest dtype on the way; no less than for f32, since functions of f64 are not the evaluator's. */
static double tolerance(const Program *program, Arena *arena, uint32_t i)
{
    double *within = ARENA_ARRAY(arena, double, program->graph->output_count);
    eval_tolerance(program->graph, arena, NULL, within);
    return within[i] > 1e-4 ? within[i] : 1e-4;
}

void harness_compare(Text *out, const Program *program, uint32_t i, const Tensor *expected)
{
    DType dtype = expected->type->dtype;
    Str name = program->graph->output[i].name;
    Arena arena = {0};
    if (shape_elements(&expected->type->shape) == 0) /* its array has one element for C's sake */
        return;
    if (compared_as_bits(dtype) && !dtype_is_float(dtype)) {
        text_printf(out,
                    "    for (size_t i = 0; i < sizeof output%u / sizeof output%u[0]; i++)\n"
                    "        bad |= output%u[i] != expected%u[i];\n",
                    i, i, i, i);
        return;
    }
    if (compared_as_bits(dtype)) {
        text_printf(out,
                    "    for (size_t i = 0; i < sizeof output%u / sizeof output%u[0]; i++)\n"
                    "        bad |= abs((int)output%u[i] - (int)expected%u[i]) > 2;\n",
                    i, i, i, i);
        return;
    }
    text_printf(out,
                "    error = scale = 0;\n"
                "    for (size_t i = 0; i < sizeof output%u / sizeof output%u[0]; i++) {\n"
                "        const double x = (double)output%u[i], y = (double)expected%u[i];\n"
                "        if (x == y || (x != x && y != y))\n            continue;\n"
                "        if (!(fabs(x - y) <= error))\n            error = fabs(x - y);\n"
                "    }\n"
                "    for (size_t i = 0; i < sizeof output%u / sizeof output%u[0]; i++)\n"
                "        if (fabs((double)expected%u[i]) > scale && fabs((double)expected%u[i]) < 1e300)\n"
                "            scale = fabs((double)expected%u[i]);\n"
                "    bad |= differs(\"" STR_FMT "\", error, scale, %g);\n",
                i, i, i, i, i, i, i, i, i, STR_ARG(source_string(&arena, name)), tolerance(program, &arena, i));
    arena_free(&arena);
}

/* The weights come from the file that the program is given, or beside it. */
static void print_weights(Text *out, Str name)
{
    text_printf(out,
                "    const char *const path = argc > 1 ? argv[1] : \"" STR_FMT
                ".weights\";\n"
                "    FILE *stream = fopen(path, \"rb\");\n"
                "    unsigned char *raw = (unsigned char *)malloc(" STR_FMT
                "_model.weights_bytes + 64);\n"
                "    unsigned char *weights = raw + (64 - (uintptr_t)raw %% 64) %% 64;\n"
                "    if (!stream || !raw || fread(weights, 1, " STR_FMT "_model.weights_bytes, stream) != " STR_FMT
                "_model.weights_bytes) {\n"
                "        fprintf(stderr, \"%%s: %%s\\n\", path, !stream ? \"the weights file cannot be opened\" :\n"
                "                !raw ? \"no memory\" : \"the weights file is too short\");\n"
                "        return 2;\n    }\n    fclose(stream);\n",
                STR_ARG(name), STR_ARG(name), STR_ARG(name), STR_ARG(name));
}

static void print_main(Text *out, const Program *program, const Tensor *const *expected)
{
    const Graph *graph = program->graph;
    Str name = program->options.name;
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    text_printf(out,
                "int main(%s)\n{\n"
                "    const size_t canary = %d, bytes = " STR_FMT
                "_model.arena_bytes;\n"
                "    unsigned char *block = (unsigned char *)malloc(bytes + 2 * canary + %d);\n"
                "    unsigned char *arena;\n%s    int bad = 0;\n\n"
                "    if (!block) {\n        fprintf(stderr, \"no memory\\n\");\n        return 2;\n    }\n"
                "    arena = block + canary + (%d - (uintptr_t)(block + canary) %% %d) %% %d;\n"
                "    memset(block, 0xA5, bytes + 2 * canary + %d);\n",
                file ? "int argc, char **argv" : "void", CANARY, STR_ARG(name), ARENA_ALIGNMENT,
                harness_has_numbers(program) ? "    double error = 0, scale = 0;\n" : "", ARENA_ALIGNMENT,
                ARENA_ALIGNMENT, ARENA_ALIGNMENT, ARENA_ALIGNMENT);
    if (file)
        print_weights(out, name);
    text_printf(out, "    bad |= " STR_FMT "_run(", STR_ARG(name));
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(out, "input%u, ", i);
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "output%u, ", i);
    text_printf(out, "%sarena);\n", file ? "weights, " : "");
    for (uint32_t i = 0; i < graph->output_count; i++)
        harness_compare(out, program, i, expected[i]);
    text_printf(out,
                "    for (size_t i = 0; i < canary; i++)\n"
                "        if (arena[-1 - (ptrdiff_t)i] != 0xA5 || arena[bytes + i] != 0xA5) {\n"
                "            printf(\"written beside the arena\\n\");\n            bad = 1;\n            break;\n"
                "        }\n"
                "    free(block);\n%s    return bad;\n}\n",
                file ? "    free(raw);\n" : "");
}

void emit_test(const Program *program, const Tensor *const *input, const Tensor *const *expected, Text *out)
{
    Str name = program->options.name;
    text_printf(out,
                "/* " STR_FMT
                "_test.c: runs the model on fixed inputs; expected outputs are the reference\n"
                " * evaluator's. Exit status 0: all agree, and nothing beside the arena was written. */\n"
                "#include \"" STR_FMT
                ".h\"\n\n"
                "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n",
                STR_ARG(name), STR_ARG(name));
    harness_arrays(out, program, input, expected);
    text_printf(out, "%s", harness_has_numbers(program) ? harness_compare_text : "");
    print_main(out, program, expected);
}
