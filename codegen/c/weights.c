/* Weights in the source: arrays, or where they are in NAME.weights. */
#include "c/unit.h"

#include <stdio.h>
#include <string.h>

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
    case DT_U64:
        text_printf(out, "UINT64_C(%llu)", (unsigned long long)((const uint64_t *)bytes)[i]);
        break;
    case DT_U32:
        text_printf(out, "%uu", ((const uint32_t *)bytes)[i]);
        break;
    case DT_U16:
        text_printf(out, "%u", ((const uint16_t *)bytes)[i]);
        break;
    default:
        text_printf(out, "%u", ((const uint8_t *)bytes)[i]);
    }
}

void source_weight_array(Text *out, const Program *program, Arena *arena, uint32_t w, const char *qualifier)
{
    const Weights *array = &program->weights[w];
    const Value *value = &array->graph->value[array->value];
    DType dtype = array->nibbles ? DT_U8 : program_weights_dtype(array);
    int64_t count = array->bytes / dtype_bytes(dtype);
    void *bytes = arena_alloc(arena, (size_t)array->bytes);
    program_weights_fill(program, w, bytes);

    Str shown = value_show(array->graph, array->value), type = type_show(arena, value->type);
    text_printf(out, "/* " STR_FMT ": " STR_FMT "%s */\n", STR_ARG(source_comment(arena, shown)), STR_ARG(type),
                array->packing.rank && array->nibbles ? ", packed for its kernel, two to a byte"
                : array->nibbles                      ? ", two to a byte"
                : array->packing.parts                ? ", in parts of bf16, packed for its kernel"
                : array->packing.rank                 ? ", packed for its kernel"
                                                      : "");
    text_printf(out, "%s %s " STR_FMT "[%lld]%s = {", qualifier, prelude_c_type(dtype),
                STR_ARG(source_weight_name(program, arena, w)), (long long)(count ? count : 1),
                program->options.target->dialect == DIALECT_VECTOR ? " __attribute__((aligned(64)))" : "");
    for (int64_t i = 0; i < count; i++) {
        text_printf(out, i % 8 ? ", " : i ? ",\n    " : "\n    ");
        source_element(out, dtype, bytes, i);
    }
    text_printf(out, "%s\n};\n\n", count ? "" : "0");
}

const Weights *source_array(const Entry *entry, const Storage *storage)
{
    const Program *program = entry->program;
    return storage->role == STORAGE_PACKED ? &program->packed[storage->index] : &program->weights[storage->index];
}

Str source_weights_block(const Program *program, Arena *arena)
{
    return program_weights_form(program) == WEIGHTS_FILE
               ? STR("w")
               : str_format(arena, STR_FMT "_weights", STR_ARG(program_common_name(program)));
}

Str source_weights_place(const Program *program, Arena *arena, uint32_t w)
{
    if (program_weights_form(program) == WEIGHTS_C)
        return str_format(arena, "nnc_hidden(" STR_FMT ")", STR_ARG(source_weight_name(program, arena, w)));
    long long offset = (long long)program->weights[w].offset;
    Str block = source_weights_block(program, arena);
    return offset ? str_format(arena, STR_FMT " + %lld", STR_ARG(block), offset) : block;
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
                big ? "BIG" : "LITTLE", STR_ARG(program_common_name(program)), big ? "big" : "little",
                big ? "little" : "big");
}

static bool reads_weights(const Program *program)
{
    for (uint32_t w = 0; w < program->weight_count; w++)
        if (program->weights[w].versions >> program->number & 1)
            return true;
    return false;
}

void unit_print_weights(Text *out, Unit *unit)
{
    const Program *program = unit->program;
    Str name = program_common_name(program);
    if (!program->weight_count)
        return;
    if (program_weights_form(program) != WEIGHTS_C)
        print_byte_order(out, program);
    switch (program_weights_form(program)) {
    case WEIGHTS_C:
        if (reads_weights(program))
            text_str(out, str_from(hidden_text));
        for (uint32_t w = 0; w < program->weight_count; w++)
            if (program->weights[w].versions >> program->number & 1)
                source_weight_array(out, program, unit->arena, w, "static const");
        break;
    case WEIGHTS_BLOB:
        text_printf(out, "extern const unsigned char " STR_FMT "_weights[%lld]; /* " STR_FMT "_weights.S */\n\n",
                    STR_ARG(name), (long long)program->weights_bytes, STR_ARG(name));
        break;
    default:
        break;
    }
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
