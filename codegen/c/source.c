/* NAME.c, NAME.h and NAME_weights.S: kernels as functions, one function that runs them in order, the descriptor. */
#include "c/unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "runtime_nnc_model.h" /* runtime/nnc_model.h as a C string: model_descriptor_text */

/* Weights */

void source_element(Text *out, DType dtype, const void *bytes, int64_t i)
{
    switch (dtype) {
    case DT_F64: {
        double x = ((const double *)bytes)[i];
        text_printf(out, x != x ? "NAN" : x - x != 0 ? (x > 0 ? "INFINITY" : "-INFINITY") : "%.17g", x);
        break;
    }
    case DT_F32: {
        float x = ((const float *)bytes)[i];
        char digits[32];
        snprintf(digits, sizeof digits, "%.9g", (double)x);
        if (x != x || x - x != 0)
            text_printf(out, x != x ? "NAN" : x > 0 ? "INFINITY" : "-INFINITY");
        else
            text_printf(out, "%s%sf", digits, strpbrk(digits, ".e") ? "" : ".0");
        break;
    }
    case DT_F16:
    case DT_BF16:
        text_printf(out, "0x%04x", ((const uint16_t *)bytes)[i]);
        break;
    case DT_I64: {
        int64_t x = ((const int64_t *)bytes)[i];
        if (x == INT64_MIN)
            text_printf(out, "INT64_MIN");
        else
            text_printf(out, "INT64_C(%lld)", (long long)x);
        break;
    }
    case DT_I32: {
        int32_t x = ((const int32_t *)bytes)[i];
        text_printf(out, x == INT32_MIN ? "INT32_MIN" : "%d", x);
        break;
    }
    case DT_I16:
        text_printf(out, "%d", ((const int16_t *)bytes)[i]);
        break;
    case DT_I8:
        text_printf(out, "%d", ((const int8_t *)bytes)[i]);
        break;
    default:
        text_printf(out, "%u", ((const uint8_t *)bytes)[i]);
    }
}

void source_weight_array(Text *out, const Program *program, Arena *arena, uint32_t w, const char *qualifier)
{
    const WeightArray *array = &program->weights.array[w];
    const Storage *storage = program_weight(program, w);
    const Value *value = &program->graph->value[storage->value];
    DType dtype = value->type->dtype;
    int64_t count = storage->bytes / dtype_bytes(dtype);
    void *bytes = arena_alloc(arena, (size_t)storage->bytes);
    program_weights_fill(program, w, bytes);

    Str shown = value_show(program->graph, storage->value), type = type_show(arena, value->type);
    text_printf(out, "/* " STR_FMT ": " STR_FMT "%s */\n", STR_ARG(source_comment(arena, shown)), STR_ARG(type),
                array->packing.rank ? ", packed for its kernel" : "");
    text_printf(out, "%s %s " STR_FMT "[%lld]%s = {", qualifier, prelude_c_type(dtype),
                STR_ARG(source_weight_name(program, arena, w)), (long long)(count ? count : 1),
                program->options.target->dialect == DIALECT_VECTOR ? " __attribute__((aligned(64)))" : "");
    for (int64_t i = 0; i < count; i++) {
        text_printf(out, i % 8 ? ", " : i ? ",\n    " : "\n    ");
        source_element(out, dtype, bytes, i);
    }
    text_printf(out, "%s\n};\n\n", count ? "" : "0");
}

static const char hidden_text[] =
    "/* What a compiler cannot see it cannot fold: gcc 12 copies some constant arrays wrongly (PR 108599). */\n"
    "static inline const void *nnc_hidden(const void *p)\n"
    "{\n"
    "#ifdef __GNUC__\n"
    "    __asm__(\"\" : \"+r\"(p));\n"
    "#endif\n"
    "    return p;\n"
    "}\n\n";

/* Weights in the other byte order would be read as other numbers, in silence. */
static void print_byte_order(Text *out, const Program *program)
{
    bool big = program->options.byte_order == BYTES_BIG;
    text_printf(out,
                "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_%s_ENDIAN__\n"
                "#error \"" STR_FMT
                ".weights is %s-endian, this machine is not: compile the model with --byte-order %s\"\n"
                "#endif\n\n",
                big ? "BIG" : "LITTLE", STR_ARG(program->options.name), big ? "big" : "little", big ? "little" : "big");
}

static void print_weights(Text *out, Unit *unit)
{
    const Program *program = unit->program;
    if (!program->weights.count)
        return;
    if (program_weights_form(program) != WEIGHTS_C)
        print_byte_order(out, program);
    switch (program_weights_form(program)) {
    case WEIGHTS_C:
        text_str(out, str_from(hidden_text));
        for (uint32_t w = 0; w < program->weights.count; w++)
            source_weight_array(out, program, unit->arena, w, "static const");
        break;
    case WEIGHTS_BLOB:
        text_printf(out, "extern const unsigned char " STR_FMT "_weights[%lld]; /* " STR_FMT "_weights.S */\n\n",
                    STR_ARG(program->options.name), (long long)program->weights_bytes, STR_ARG(program->options.name));
        break;
    default:
        break;
    }
}

/* The descriptor */

static void print_infos(Text *out, const Unit *unit, bool outputs)
{
    const Graph *graph = unit->program->graph;
    const char *side = outputs ? "output" : "input";
    uint32_t count = outputs ? graph->output_count : graph->input_count;
    for (uint32_t i = 0; i < count; i++) {
        const Shape *shape = value_shape(graph, outputs ? graph->output[i].value : graph->input[i]);
        text_printf(out, "static const int64_t %s%u_shape[%u] = {", side, i, shape->rank ? shape->rank : 1);
        for (uint32_t d = 0; d < shape->rank; d++)
            text_printf(out, "%s%lld", d ? ", " : "", (long long)shape->dim[d]);
        text_printf(out, "%s};\n", shape->rank ? "" : "1");
    }
    text_printf(out, "static const nnc_tensor_info %ss[%u] = {\n", side, count ? count : 1);
    for (uint32_t i = 0; i < count; i++) {
        const Type *type = value_type(graph, outputs ? graph->output[i].value : graph->input[i]);
        Str name = outputs ? graph->output[i].name : graph->value[graph->input[i]].name;
        text_printf(out, "    {\"" STR_FMT "\", \"%s\", %u, %s%u_shape, %lld},\n",
                    STR_ARG(source_string(unit->arena, name)), dtype_name(type->dtype), type->shape.rank, side, i,
                    (long long)type_bytes(type));
    }
    text_printf(out, "%s};\n", count ? "" : "    {0, 0, 0, 0, 0},\n");
}

static void print_descriptor(Text *out, const Unit *unit)
{
    const Program *program = unit->program;
    const Graph *graph = program->graph;
    Str name = program->options.name;
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    print_infos(out, unit, false);
    print_infos(out, unit, true);
    text_printf(out,
                "\nstatic int run(const void *const *input, void *const *output, void *arena, const void *weights)\n"
                "{\n");
    if (!file)
        text_printf(out, "    (void)weights;\n");
    if (!graph->input_count)
        text_printf(out, "    (void)input;\n");
    text_printf(out, "    return " STR_FMT "_run(", STR_ARG(name));
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(out, "(const %s *)input[%u], ", prelude_c_type(value_type(graph, graph->input[i])->dtype), i);
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "(%s *)output[%u], ", prelude_c_type(value_type(graph, graph->output[i].value)->dtype), i);
    text_printf(out, "%sarena);\n}\n\n", file ? "weights, " : "");
    text_printf(out,
                "const nnc_model " STR_FMT
                "_model = {\n"
                "    NNC_MODEL_ABI, \"" STR_FMT
                "\", %u, %u, inputs, outputs,\n"
                "    %s_ARENA_BYTES, %d, %lld, UINT64_C(0x%016llx), run,\n};\n",
                STR_ARG(name), STR_ARG(name), graph->input_count, graph->output_count, source_upper(unit->arena, name),
                ARENA_ALIGNMENT, (long long)(file ? program->weights_bytes : 0),
                (unsigned long long)(file ? program_weights_checksum(program) : 0));
}

void source_head(Text *out, const Program *program, const char *suffix, const char *what)
{
    Arena arena = {0};
    Str name = program->options.name, source = source_comment(&arena, program->options.source);
    text_printf(out, "/* " STR_FMT "%s: %s", STR_ARG(name), suffix, what);
    if (source.len)
        text_printf(out, "\n * Written by nnc from " STR_FMT " for %s", STR_ARG(source), program->options.target->name);
    text_printf(out, ". */\n");
    arena_free(&arena);
}

void emit_source(const Program *program, Text *out)
{
    Arena arena = {0};
    Unit unit;
    unit_make(&unit, program, &arena);

    source_head(out, program, ".c", "kernels and the order they run in");
    if (program->options.target->cc_flags[0])
        text_printf(out, "/* Compile with: -O3 %s */\n", program->options.target->cc_flags);
    text_printf(out,
                "#include \"" STR_FMT
                ".h\"\n\n"
                "#ifdef __cplusplus\n#define NNC_RESTRICT\n#else\n#define NNC_RESTRICT restrict\n#endif\n\n",
                STR_ARG(program->options.name));
    prelude_print(out, program->options.target, &unit.needs);
    if (program->options.checked)
        source_checked_macros(out);
    print_weights(out, &unit);
    unit_print_functions(out, &unit);
    text_char(out, '\n');
    unit_print_run(out, &unit);
    print_descriptor(out, &unit);
    arena_free(&arena);
}

void emit_kernels(const Program *program, Text *out)
{
    Arena arena = {0};
    Unit unit;
    unit_make(&unit, program, &arena);
    unit_print_functions(out, &unit);
    arena_free(&arena);
}

void source_interface(Text *out, const Program *program, Arena *arena)
{
    const Graph *graph = program->graph;
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++) {
        bool output = i >= graph->input_count;
        ValueId value = output ? graph->output[i - graph->input_count].value : graph->input[i];
        Str shown = output ? graph->output[i - graph->input_count].name : graph->value[value].name;
        text_printf(out, "%s%-6s " STR_FMT ": " STR_FMT "\n", i ? " * " : "/* ", output ? "output" : "input",
                    STR_ARG(source_comment(arena, shown)), STR_ARG(type_show(arena, value_type(graph, value))));
    }
}

void emit_header(const Program *program, Text *out)
{
    Arena arena = {0};
    Str name = program->options.name;
    const char *shout = source_upper(&arena, name);
    bool file = program_weights_form(program) == WEIGHTS_FILE;

    source_head(out, program, ".h", "a neural network as one function");
    text_printf(out, "#ifndef %s_H\n#define %s_H\n\n%s\n", shout, shout, model_descriptor_text);
    text_printf(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    text_printf(out, "#define %s_ARENA_BYTES %lld /* alignment %d; nothing else is written */\n", shout,
                (long long)program->arena_bytes, ARENA_ALIGNMENT);
    if (program_weights_form(program) == WEIGHTS_FILE)
        text_printf(out, "#define %s_WEIGHTS_BYTES %lld /* of " STR_FMT ".weights; alignment %d, %s-endian */\n", shout,
                    (long long)program->weights_bytes, STR_ARG(name), WEIGHTS_ALIGNMENT,
                    program->options.byte_order == BYTES_BIG ? "big" : "little");
    text_char(out, '\n');
    source_interface(out, program, &arena);
    text_printf(out, " * Arrays do not overlap.%s Returns 0; 1 when the arena%s is %snot aligned. */\n",
                program->arena_bytes ? "" : " The arena may be NULL.", file ? ", 2 when the weights," : "",
                program->arena_bytes || file ? "missing or " : "");
    text_printf(out, "int " STR_FMT "_run(", STR_ARG(name));
    source_parameters(out, program, &arena);
    text_printf(out,
                ");\n\n/* Names, shapes, sizes and the entry point, for generic hosts. */\n"
                "extern const nnc_model " STR_FMT "_model;\n\n",
                STR_ARG(name));
    text_printf(out, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    arena_free(&arena);
}

void emit_incbin(const Program *program, Text *out)
{
    Str name = program->options.name;
    text_printf(out,
                "/* The weights of " STR_FMT
                " as they lie in memory; assemble with -I of this folder. */\n"
                "    .section .rodata\n    .balign %d\n    .globl " STR_FMT "_weights\n" STR_FMT
                "_weights:\n"
                "    .incbin \"" STR_FMT
                ".weights\"\n"
                "#if defined(__linux__) && defined(__ELF__)\n    .section .note.GNU-stack,\"\",%%progbits\n#endif\n",
                STR_ARG(name), WEIGHTS_ALIGNMENT, STR_ARG(name), STR_ARG(name), STR_ARG(name));
}
