/* NAME_test.c: the model on given inputs against expected outputs, with a canary around the arena. */
#include "c/harness.h"

#include "c/print.h"
#include "c/source.h"
#include "ops/family.h"

Str harness_prefix(const Entry *entry, Arena *arena)
{
    return entry->program->entry_count == 1 ? (Str){0} : str_format(arena, STR_FMT "_", STR_ARG(entry->name));
}

/* Tensors of one type, one behind another. */
static void print_array(Text *out, Str name, const Tensor *const *tensor, uint32_t tensors, uint32_t apart)
{
    int64_t count = shape_elements(&tensor[0]->type->shape), all = count * tensors;
    DType dtype = tensor[0]->type->dtype;
    text_printf(out, "static const %s " STR_FMT "[%lld] = {", prelude_c_type(dtype), STR_ARG(name),
                (long long)(all ? all : 1));
    for (int64_t i = 0; i < all; i++) {
        text_printf(out, i % 8 ? ", " : i ? ",\n    " : "\n    ");
        source_element(out, dtype, tensor[i / count * apart]->data, i % count);
    }
    text_printf(out, "%s\n};\n", all ? "" : "0");
}

void harness_arrays(Text *out, const Entry *entry, const Golden *golden)
{
    const Graph *graph = entry->graph;
    Arena arena = {0};
    Str prefix = harness_prefix(entry, &arena);
    for (uint32_t i = 0; i < graph->input_count; i++)
        print_array(out, str_format(&arena, STR_FMT "input%u", STR_ARG(prefix), i), &golden->input[i], 1, 0);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const Type *type = golden->expected[i]->type;
        int64_t count = shape_elements(&type->shape);
        if (count)
            print_array(out, str_format(&arena, STR_FMT "expected%u", STR_ARG(prefix), i),
                        (const Tensor *const *)&golden->expected[i], program_golden_calls(entry->program),
                        graph->output_count);
        text_printf(out, "static %s " STR_FMT "output%u[%lld];\n\n", prelude_c_type(type->dtype), STR_ARG(prefix), i,
                    (long long)(count ? count : 1));
    }
    arena_free(&arena);
}

/* Comparison */

/* Of floats the largest error is compared with the largest magnitude; all else is to be equal. */
static bool is_exact(DType dtype)
{
    return !dtype_is_float(dtype);
}

static bool is_half(DType dtype)
{
    return dtype == DT_F16 || dtype == DT_BF16;
}

typedef bool DTypeTest(DType dtype);

/* Has some output of the program elements of such a dtype?  An empty one is not compared. */
static bool compares(const Program *program, DTypeTest *such)
{
    for (uint32_t e = 0; e < program->entry_count; e++) {
        const Graph *graph = program->entry[e].graph;
        for (uint32_t i = 0; i < graph->output_count; i++) {
            const Type *type = value_type(graph, graph->output[i].value);
            if (such(type->dtype) && shape_elements(&type->shape))
                return true;
        }
    }
    return false;
}

/* Largest error against the largest expected magnitude: rounding differs between orders of summation. */
static void numbers_function(Text *out, bool prints)
{
    text_printf(
        out,
        "static int differs(const char *name, const double error, const double scale, const double within)\n"
        "{\n"
        "    const int bad = !(error <= within * scale + 1e-6);\n"
        "%s"
        "    return bad;\n"
        "}\n\n",
        prints ? "    printf(\"%s: largest error %.3g of %.3g%s\\n\", name, error, scale, bad ? \"  WRONG\" : \"\");\n"
               : "    (void)name;\n");
}

static void count_function(Text *out, bool prints)
{
    text_printf(
        out,
        "static int unequal(const char *name, const size_t wrong, const size_t count)\n"
        "{\n"
        "%s"
        "    return wrong != 0;\n"
        "}\n\n",
        prints
            ? "    printf(\"%s: %zu of %zu elements differ%s\\n\", name, wrong, count, wrong ? \"  WRONG\" : \"\");\n"
            : "    (void)name, (void)count;\n");
}

static const char halves_text[] =
    "/* What a 16-bit float stands for, so many bits of which are its fraction. */\n"
    "static double half_number(const unsigned x, const int bits)\n"
    "{\n"
    "    const int last = (1 << (15 - bits)) - 1, exponent = (int)(x >> bits) & last;\n"
    "    const int fraction = (int)x & ((1 << bits) - 1);\n"
    "    const double size = exponent == last ? (fraction ? (double)NAN : (double)INFINITY) :\n"
    "        ldexp(exponent ? (1 << bits) + fraction : fraction, (exponent ? exponent : 1) - last / 2 - bits);\n"
    "    return x & 0x8000u ? -size : size;\n"
    "}\n\n";

void harness_functions(Text *out, const Program *program, bool prints)
{
    if (compares(program, dtype_is_float))
        numbers_function(out, prints);
    if (compares(program, is_exact))
        count_function(out, prints);
    if (compares(program, is_half))
        text_printf(out, "%s", halves_text);
}

void harness_locals(Text *out, const Program *program)
{
    if (compares(program, dtype_is_float))
        text_printf(out, "    double error = 0, scale = 0;\n");
    if (compares(program, is_exact))
        text_printf(out, "    size_t wrong = 0;\n");
    text_printf(out, "    int bad = 0;\n");
}

/* By the narrowest dtype on the way; no less than for f32, since functions of f64 are not the evaluator's. */
static double tolerance(const Entry *entry, Arena *arena, uint32_t i)
{
    double *within = ARENA_ARRAY(arena, double, entry->graph->output_count);
    eval_tolerance(entry->graph, arena, NULL, within);
    return within[i] > 1e-4 ? within[i] : 1e-4;
}

static void compare_exactly(Text *out, const char *got, const char *count, const char *want)
{
    text_printf(out,
                "    wrong = 0;\n    for (size_t i = 0; i < %s; i++)\n"
                "        wrong += %s[i] != %s;\n",
                count, got, want);
}

static const char *number_of(Arena *arena, DType dtype, const char *element)
{
    if (!is_half(dtype))
        return str_format(arena, "(double)%s", element).ptr;
    return str_format(arena, "half_number(%s, %d)", element, dtype == DT_F16 ? 10 : 7).ptr;
}

/* An error that is NaN stays the largest. */
static void compare_numbers(Text *out, const char *got, const char *count, const char *want)
{
    text_printf(out,
                "    error = scale = 0;\n"
                "    for (size_t i = 0; i < %s; i++) {\n"
                "        const double x = %s, y = %s;\n"
                "        if (fabs(y) > scale && fabs(y) < 1e300)\n            scale = fabs(y);\n"
                "        if (x == y || (x != x && y != y))\n            continue;\n"
                "        if (error == error && !(fabs(x - y) <= error))\n            error = fabs(x - y);\n"
                "    }\n",
                count, got, want);
}

void harness_compare(Text *out, const Entry *entry, uint32_t i)
{
    const Type *type = value_type(entry->graph, entry->graph->output[i].value);
    bool several = program_golden_calls(entry->program) > 1;
    Arena arena = {0};
    Str prefix = harness_prefix(entry, &arena);
    const char *got = str_format(&arena, STR_FMT "output%u", STR_ARG(prefix), i).ptr;
    const char *count = str_format(&arena, "sizeof %s / sizeof %s[0]", got, got).ptr;
    const char *at = several ? str_format(&arena, "call * (%s) + i", count).ptr : "i";
    const char *want = str_format(&arena, STR_FMT "expected%u[%s]", STR_ARG(prefix), i, at).ptr;
    const char *name = source_string(&arena, entry->graph->output[i].name).ptr;
    bool empty = !shape_elements(&type->shape); /* it has one element for C's sake */
    if (!empty && dtype_is_float(type->dtype)) {
        const char *x = number_of(&arena, type->dtype, str_format(&arena, "%s[i]", got).ptr);
        compare_numbers(out, x, count, number_of(&arena, type->dtype, want));
        text_printf(out, "    bad |= differs(\"%s\", error, scale, %g);\n", name, tolerance(entry, &arena, i));
    } else if (!empty) {
        compare_exactly(out, got, count, want);
        text_printf(out, "    bad |= unequal(\"%s\", wrong, %s);\n", name, count);
    }
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

static void print_memory(Text *out, const Program *program)
{
    Str name = program->options.name;
    text_printf(out,
                "    const size_t canary = %d, bytes = " STR_FMT
                "_model.arena_bytes;\n"
                "    unsigned char *block = (unsigned char *)malloc(bytes + 2 * canary + %d);\n"
                "    unsigned char *arena;\n",
                CANARY, STR_ARG(name), ARENA_ALIGNMENT);
    harness_locals(out, program);
    text_printf(out,
                "\n    if (!block) {\n        fprintf(stderr, \"no memory\\n\");\n        return 2;\n    }\n"
                "    arena = block + canary + (%d - (uintptr_t)(block + canary) %% %d) %% %d;\n"
                "    memset(block, 0xA5, bytes + 2 * canary + %d);\n",
                ARENA_ALIGNMENT, ARENA_ALIGNMENT, ARENA_ALIGNMENT, ARENA_ALIGNMENT);
    if (program_weights_form(program) == WEIGHTS_FILE)
        print_weights(out, name);
}

/* What is kept lies in memory of its own, with a canary behind. */
static void print_block(Text *out, const Program *program, KeptBlock block)
{
    const char *name = source_block_name(block), *size = block == BLOCK_PACKED ? "packed_bytes" : NULL;
    Str model = program->options.name;
    size = size ? size : block == BLOCK_PARAMS ? "params.bytes" : "state.bytes";
    if (program->kept.bytes[block])
        text_printf(out,
                    "    const size_t %s_bytes = " STR_FMT
                    "_model.%s;\n"
                    "    unsigned char *%s_held = (unsigned char *)malloc(%s_bytes + canary + %d);\n"
                    "    unsigned char *%s = %s_held + (%d - (uintptr_t)%s_held %% %d) %% %d;\n"
                    "    if (!%s_held) {\n        fprintf(stderr, \"no memory\\n\");\n        return 2;\n    }\n"
                    "    memset(%s_held, 0xA5, %s_bytes + canary + %d);\n",
                    name, STR_ARG(model), size, name, name, ARENA_ALIGNMENT, name, name, ARENA_ALIGNMENT, name,
                    ARENA_ALIGNMENT, ARENA_ALIGNMENT, name, name, name, ARENA_ALIGNMENT);
    harness_fill(out, program, block);
}

void harness_fill(Text *out, const Program *program, KeptBlock block)
{
    if (program->kept.bytes[block] && block != BLOCK_PACKED)
        text_printf(out, "    bad |= " STR_FMT "_%s_init(%s%s%s);\n", STR_ARG(program->options.name),
                    source_block_name(block), program_weights_form(program) == WEIGHTS_FILE ? "weights, " : "",
                    source_block_name(block), block == BLOCK_PARAMS ? ", 0" : "");
}

static void print_call(Text *out, const Entry *entry)
{
    Arena arena = {0};
    Str prefix = harness_prefix(entry, &arena);
    if (entry->packed) /* what the calls before have learnt */
        text_printf(out, "    bad |= " STR_FMT "_pack(params, packed);\n", STR_ARG(entry->program->options.name));
    text_printf(out, "    bad |= " STR_FMT "(", STR_ARG(source_entry_name(entry, &arena)));
    for (uint32_t i = 0; i < entry->graph->input_count; i++)
        text_printf(out, STR_FMT "input%u, ", STR_ARG(prefix), i);
    for (uint32_t i = 0; i < entry->graph->output_count; i++)
        text_printf(out, STR_FMT "output%u, ", STR_ARG(prefix), i);
    text_printf(out, STR_FMT "arena%s);\n", STR_ARG(source_lent(entry, &arena)),
                program_shares(entry->program) ? ", &team" : "");
    for (uint32_t i = 0; i < entry->graph->output_count; i++)
        harness_compare(out, entry, i);
    arena_free(&arena);
}

void harness_team(Text *out, const Program *program)
{
    if (program_shares(program))
        text_str(out, str_from("/* Parts from the last to the first, as if threads took them in turns. */\n"
                               "static void deal(nnc_team *team, void (*part)(const void *, int32_t, int32_t), "
                               "const void *call,\n"
                               "                 int32_t parts, int32_t threads)\n{\n"
                               "    (void)team;\n"
                               "    for (int32_t i = parts; i-- > 0;)\n"
                               "        part(call, i, i % threads);\n}\n\n"
                               "static nnc_team team = {deal};\n\n"));
}

void harness_calls(Text *out, const Program *program)
{
    if (program_golden_calls(program) > 1)
        text_printf(out, "    for (size_t call = 0; call < %u; call++) {\n", program_golden_calls(program));
    for (uint32_t e = 0; e < program->entry_count; e++)
        print_call(out, &program->entry[e]);
    if (program_golden_calls(program) > 1)
        text_printf(out, "    }\n");
}

/* The canaries: on both sides of the arena, and behind what is kept. */
static void print_canaries(Text *out, const Program *program)
{
    text_printf(out,
                "    for (size_t i = 0; i < canary; i++)\n"
                "        if (arena[-1 - (ptrdiff_t)i] != 0xA5 || arena[bytes + i] != 0xA5");
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (program->kept.bytes[block])
            text_printf(out, " || %s[%s_bytes + i] != 0xA5", source_block_name(block), source_block_name(block));
    text_printf(out,
                ") {\n            printf(\"written beside the arena%s\\n\");\n            bad = 1;\n"
                "            break;\n        }\n",
                program->kept.count ? " or what is kept" : "");
}

static void print_main(Text *out, const Program *program)
{
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    text_printf(out, "int main(%s)\n{\n", file ? "int argc, char **argv" : "void");
    print_memory(out, program);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        print_block(out, program, block);
    harness_calls(out, program);
    print_canaries(out, program);
    text_printf(out, "    free(block);\n");
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (program->kept.bytes[block])
            text_printf(out, "    free(%s_held);\n", source_block_name(block));
    text_printf(out, "%s    return bad;\n}\n", file ? "    free(raw);\n" : "");
}

void emit_test(const Program *program, const Golden *golden, Text *out)
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
    for (uint32_t e = 0; e < program->entry_count; e++)
        harness_arrays(out, &program->entry[e], &golden[e]);
    harness_functions(out, program, true);
    harness_team(out, program);
    print_main(out, program);
}
