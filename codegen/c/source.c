/* NAME.c, NAME.h and NAME_weights.S: kernels as functions, a function for each entry that runs them in order, weights.
 */
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
    const Weights *array = &program->weights[w];
    const Value *value = &array->graph->value[array->value];
    DType dtype = value->type->dtype;
    int64_t count = array->bytes / dtype_bytes(dtype);
    void *bytes = arena_alloc(arena, (size_t)array->bytes);
    program_weights_fill(program, w, bytes);

    Str shown = value_show(array->graph, array->value), type = type_show(arena, value->type);
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

const Weights *source_array(const Entry *entry, const Storage *storage)
{
    const Program *program = entry->program;
    return storage->role == STORAGE_PACKED ? &program->packed[storage->index] : &program->weights[storage->index];
}

Str source_weights_place(const Program *program, Arena *arena, uint32_t w)
{
    long long offset = (long long)program->weights[w].offset;
    switch (program_weights_form(program)) {
    case WEIGHTS_C:
        return str_format(arena, "nnc_hidden(" STR_FMT ")", STR_ARG(source_weight_name(program, arena, w)));
    case WEIGHTS_FILE:
        return str_format(arena, "w + %lld", offset);
    default:
        return str_format(arena, STR_FMT "_weights + %lld", STR_ARG(program->options.name), offset);
    }
}

static const char apart_text[] =
    "/* Memory holds one type after another here, which C allows; but clang takes it that doubles never lie where "
    "integers\n"
    " * are, and where it sees the code of both, it may read the one after it has written the other. */\n"
    "#if defined(__GNUC__)\n"
    "#define NNC_APART __attribute__((noinline))\n"
    "#elif defined(_MSC_VER)\n"
    "#define NNC_APART __declspec(noinline)\n"
    "#else\n"
    "#define NNC_APART\n"
    "#endif\n\n";

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
    if (!program->weight_count)
        return;
    if (program_weights_form(program) != WEIGHTS_C)
        print_byte_order(out, program);
    switch (program_weights_form(program)) {
    case WEIGHTS_C:
        text_str(out, str_from(hidden_text));
        for (uint32_t w = 0; w < program->weight_count; w++)
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
    if (unit.retypes && program->options.target->dialect == DIALECT_C99)
        text_str(out, str_from(apart_text));
    source_start_needs(program, &unit.needs, &arena);
    prelude_print(out, program->options.target, &unit.needs);
    if (program->options.checked)
        source_checked_macros(out);
    if (program->options.timed)
        text_printf(out,
                    "/* Timed: told the number of each kernel that has ended, and -1 at the start. */\n"
                    "extern void (*" STR_FMT
                    "_tick)(long kernel);\n"
                    "void (*" STR_FMT "_tick)(long kernel);\n\n",
                    STR_ARG(program->options.name), STR_ARG(program->options.name));
    print_weights(out, &unit);
    unit_print_functions(out, &unit);
    text_char(out, '\n');
    for (uint32_t e = 0; e < program->entry_count; e++)
        unit_print_run(out, &unit, e);
    source_start_functions(out, program, &unit.needs, &arena);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        unit_print_start(out, &unit, block);
    unit_print_pack(out, &unit);
    unit_print_descriptor(out, &unit);
    arena_free(&arena);
}

static void print_port(Text *out, const char *open, const char *kind, Str name, const Type *type, Arena *arena)
{
    text_printf(out, "%s %-6s " STR_FMT ": " STR_FMT "\n", open, kind, STR_ARG(source_comment(arena, name)),
                STR_ARG(type_show(arena, type)));
}

void source_interface(Text *out, const Entry *entry, Arena *arena)
{
    const Graph *graph = entry->graph;
    const char *open = "/*";
    for (uint32_t i = 0; i < graph->input_count; i++, open = " *")
        print_port(out, open, "input", graph->value[graph->input[i]].name, value_type(graph, graph->input[i]), arena);
    for (uint32_t i = 0; i < graph->output_count; i++, open = " *")
        print_port(out, open, "output", graph->output[i].name, value_type(graph, graph->output[i].value), arena);
    for (uint32_t i = 0; i < entry->memory.state_count; i++, open = " *") {
        const StateValue *state = &entry->memory.state[i];
        const char *kind = state->next == NONE                                               ? "reads"
                           : entry->program->kept.slot[entry->slot[i]].block == BLOCK_PARAMS ? "param"
                                                                                             : "state";
        print_port(out, open, kind, value_show(graph, state->value), value_type(graph, state->value), arena);
    }
}

/* `Returns 0; 1 when the arena, 2 when the weights, is missing or not aligned.` */
static void print_results(Text *out, const Program *program, bool arena, const bool kept[BLOCK_COUNT])
{
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    bool missing = (arena && program->arena_bytes) || file;
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        missing |= kept[block];
    const char *separate[] = {arena ? "1 when the arena" : NULL, file ? "2 when the weights" : NULL,
                              kept[BLOCK_STATE] ? "3 when the state" : NULL,
                              kept[BLOCK_PARAMS] ? "4 when params" : NULL, kept[BLOCK_PACKED] ? "5 when packed" : NULL};
    int shown = 0;
    text_printf(out, " Returns 0; ");
    for (size_t i = 0; i < sizeof separate / sizeof *separate; i++)
        if (separate[i])
            text_printf(out, "%s%s", shown++ ? ", " : "", separate[i]);
    text_printf(out, "%s is %snot aligned. */\n", shown > 1 ? "," : "", missing ? "missing or " : "");
}

/* The function of an entry, under its inputs, outputs and states. */
static void print_prototype(Text *out, const Entry *entry, Arena *arena)
{
    source_interface(out, entry, arena);
    text_printf(out, " * Arrays do not overlap.%s", entry->program->arena_bytes ? "" : " The arena may be NULL.");
    print_results(out, entry->program, true,
                  (bool[BLOCK_COUNT]){[BLOCK_PARAMS] = entry_keeps(entry, BLOCK_PARAMS),
                                      [BLOCK_PACKED] = entry_keeps(entry, BLOCK_PACKED),
                                      [BLOCK_STATE] = entry_keeps(entry, BLOCK_STATE)});
    text_printf(out, "int " STR_FMT "(", STR_ARG(source_entry_name(entry, arena)));
    source_parameters(out, entry, arena);
    text_printf(out, ");\n\n");
}

static void print_start_prototype(Text *out, const Program *program, KeptBlock block, Arena *arena)
{
    if (!program->kept.bytes[block])
        return;
    if (block == BLOCK_PARAMS)
        text_printf(out,
                    "/* Fills the params with their first values: what the model's weights store is copied, others "
                    "are\n * drawn by their initialisers, as the model has them for seed 0, otherwise for any "
                    "other.\n *");
    else if (block == BLOCK_PACKED)
        text_printf(out, "/* Makes of the params what entries that update none read: again after each change.\n *");
    else
        text_printf(out, "/* Fills the state with its first values: once, before the first call.");
    print_results(out, program, false,
                  (bool[BLOCK_COUNT]){[BLOCK_PARAMS] = block != BLOCK_STATE,
                                      [BLOCK_PACKED] = block == BLOCK_PACKED,
                                      [BLOCK_STATE] = block == BLOCK_STATE});
    text_printf(out, STR_FMT ");\n\n", STR_ARG(source_start_signature(program, block, arena)));
}

/* ` *      256  net.first.bias: f32[32]`: the offset in bytes. */
static void print_place(Text *out, const KeptSlot *slot, Arena *arena)
{
    if (slot->block == BLOCK_PARAMS)
        text_printf(out, "/* %8lld  " STR_FMT ": " STR_FMT " */\n", (long long)slot->offset[0],
                    STR_ARG(source_comment(arena, value_show(slot->graph, slot->value))),
                    STR_ARG(type_show(arena, value_type(slot->graph, slot->value))));
}

void source_kept_sizes(Text *out, const Program *program, const char *of)
{
    static const char *const what[BLOCK_COUNT] = {[BLOCK_PARAMS] = "the weights that entries update",
                                                  [BLOCK_PACKED] = "the same as other entries read them",
                                                  [BLOCK_STATE] = "kept from call to call"};
    const Kept *kept = &program->kept;
    Arena arena = {0};
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++) {
        if (kept->bytes[block])
            text_printf(out, "#define %s %lld /* %salignment %d; %s */\n", source_block_bytes(program, block, &arena),
                        (long long)kept->bytes[block], of, ARENA_ALIGNMENT, what[block]);
        for (uint32_t i = 0; block == BLOCK_PARAMS && kept->bytes[block] && i < kept->count; i++)
            print_place(out, &kept->slot[i], &arena);
    }
    arena_free(&arena);
}

/* The sizes of what the caller lends. */
static void print_sizes(Text *out, const Program *program, const char *shout)
{
    text_printf(out, "#define %s_ARENA_BYTES %lld /* alignment %d; nothing else is written */\n", shout,
                (long long)program->arena_bytes, ARENA_ALIGNMENT);
    source_kept_sizes(out, program, "");
    if (program_weights_form(program) == WEIGHTS_FILE)
        text_printf(out, "#define %s_WEIGHTS_BYTES %lld /* of " STR_FMT ".weights; alignment %d, %s-endian */\n", shout,
                    (long long)program->weights_bytes, STR_ARG(program->options.name), WEIGHTS_ALIGNMENT,
                    program->options.byte_order == BYTES_BIG ? "big" : "little");
}

void emit_header(const Program *program, Text *out)
{
    Arena arena = {0};
    Str name = program->options.name;
    const char *shout = source_upper(&arena, name);
    bool one = program->entry_count == 1;

    source_head(out, program, ".h", one ? "a neural network as one function" : "a neural network as functions");
    text_printf(out, "#ifndef %s_H\n#define %s_H\n\n%s\n", shout, shout, model_descriptor_text);
    text_printf(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    print_sizes(out, program, shout);
    text_char(out, '\n');
    for (uint32_t e = 0; e < program->entry_count; e++)
        print_prototype(out, &program->entry[e], &arena);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        print_start_prototype(out, program, block, &arena);
    text_printf(out,
                "/* Names, shapes, sizes and the entry point%s, for generic hosts. */\n"
                "extern const nnc_model " STR_FMT "_model;\n\n",
                one ? "" : "s", STR_ARG(name));
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
