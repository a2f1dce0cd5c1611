/* NAME_params_init and NAME_state_init: fill the blocks that are kept between calls with their first values.  What an
 * initialiser draws is drawn there, to the same bits as by the compiler: the source holds no data for it. */
#include "c/unit.h"

#include <inttypes.h>
#include <string.h>

/* One function for each way to draw and dtype */

typedef enum Draws { DRAWS_UNIFORM, DRAWS_NORMAL, DRAWS_RAMP, DRAWS_COUNT } Draws;

static const char *const draws_name[DRAWS_COUNT] = {"uniform", "normal", "ramp"};

static Draws draws_of(const Initial *initial)
{
    if (initial->kind == INITIAL_RAMP)
        return DRAWS_RAMP;
    return initial->random.draw == DRAW_UNIT ? DRAWS_UNIFORM : DRAWS_NORMAL;
}

static DType slot_dtype(const KeptSlot *slot)
{
    return value_type(slot->graph, slot->value)->dtype;
}

typedef struct Drawn {
    bool needed[DRAWS_COUNT][DT_COUNT];
} Drawn;

static Drawn find_drawn(const Program *program)
{
    Drawn drawn = {0};
    for (uint32_t i = 0; i < program->kept.count; i++) {
        const KeptSlot *slot = &program->kept.slot[i];
        if (slot->bytes && (slot->start == START_DRAWN || slot->start == START_RAMP))
            drawn.needed[draws_of(&slot->initial)][slot_dtype(slot)] = true;
    }
    return drawn;
}

/* `to_f16_from_f64`, or a cast. */
static const char *conversion(PreludeNeeds *needs, Arena *arena, DType from, DType to)
{
    const char *helper = prelude_need_convert(needs, arena, from, to);
    return helper ? helper : str_format(arena, "(%s)", prelude_c_type(to)).ptr;
}

static void note_need(Draws draws, DType dtype, PreludeNeeds *needs, Arena *arena)
{
    conversion(needs, arena, draws == DRAWS_RAMP ? DT_I64 : DT_F64, dtype);
    if (draws == DRAWS_RAMP)
        return;
    prelude_need(needs, arena, draws == DRAWS_NORMAL ? HELPER_GAUSS : HELPER_UNIT, DT_F32, 1);
    prelude_need(needs, arena, HELPER_FOLD_IN, DT_I64, 1);
}

void source_start_needs(const Program *program, PreludeNeeds *needs, Arena *arena)
{
    Drawn drawn = find_drawn(program);
    for (Draws draws = 0; draws < DRAWS_COUNT; draws++)
        for (DType dtype = 0; dtype < DT_COUNT; dtype++)
            if (drawn.needed[draws][dtype])
                note_need(draws, dtype, needs, arena);
}

static void print_ramp(Text *out, const char *head, const char *each, DType dtype, const char *convert)
{
    text_printf(out,
                "/* Positions along a dimension whose elements lie `inner` apart. */\n"
                "%s nnc_ramp_%s(%s *y, int64_t count, int64_t inner, int64_t extent)\n{\n    %s\n"
                "        y[i] = %s(i / inner %% extent);\n}\n\n",
                head, dtype_name(dtype), prelude_c_type(dtype), each, convert);
}

static void print_draw(Text *out, const char *head, const char *each, Draws draws, DType dtype, const char *convert)
{
    text_printf(out,
                "/* base + scale * numbers of a key, which a seed other than 0 makes another one of. */\n"
                "%s nnc_%s_%s(%s *y, int64_t count, int64_t key, int64_t seed, double base, double scale)\n{\n"
                "    const int64_t of = seed ? fold_in_i64(key, seed) : key;\n"
                "    %s {\n"
                "        volatile double scaled = scale * (double)%s_f32(of, i); /* rounded before base is added */\n"
                "        y[i] = %s(base + scaled);\n    }\n}\n\n",
                head, draws_name[draws], dtype_name(dtype), prelude_c_type(dtype), each,
                draws == DRAWS_NORMAL ? "gauss" : "unit", convert);
}

void source_start_functions(Text *out, const Program *program, PreludeNeeds *needs, Arena *arena)
{
    bool device = program->options.target->dialect == DIALECT_CUDA;
    const char *head = device ? "static __global__ void" : "static void";
    const char *each = device ? "for (int64_t i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll)"
                              : "for (int64_t i = 0; i < count; i++)";
    Drawn drawn = find_drawn(program);
    for (Draws draws = 0; draws < DRAWS_COUNT; draws++)
        for (DType dtype = 0; dtype < DT_COUNT; dtype++) {
            if (!drawn.needed[draws][dtype])
                continue;
            const char *convert = conversion(needs, arena, draws == DRAWS_RAMP ? DT_I64 : DT_F64, dtype);
            if (draws == DRAWS_RAMP)
                print_ramp(out, head, each, dtype, convert);
            else
                print_draw(out, head, each, draws, dtype, convert);
        }
}

Str source_start_function(const KeptSlot *slot, Arena *arena)
{
    return str_format(arena, "nnc_%s_%s", draws_name[draws_of(&slot->initial)], dtype_name(slot_dtype(slot)));
}

Str source_start_arguments(const KeptSlot *slot, Arena *arena)
{
    const Initial *initial = &slot->initial;
    const Shape *shape = value_shape(slot->graph, slot->value);
    Text text = {0};
    text_printf(&text, "%lld, ", (long long)shape_elements(shape));
    if (initial->kind == INITIAL_RAMP) {
        int64_t inner = 1;
        for (uint32_t d = initial->dimension + 1; d < shape->rank; d++)
            inner *= shape->dim[d];
        text_printf(&text, "%lld, %lld", (long long)inner, (long long)shape->dim[initial->dimension]);
    } else {
        source_element(&text, DT_I64, &initial->key, 0);
        text_printf(&text, slot->block == BLOCK_PARAMS ? ", seed, " : ", 0, ");
        source_element(&text, DT_F64, &initial->random.base, 0);
        text_printf(&text, ", ");
        source_element(&text, DT_F64, &initial->random.scale, 0);
    }
    Str copy = str_copy(arena, text_view(&text));
    text_free(&text);
    return copy;
}

/* The functions that fill the blocks */

bool source_start_seeded(const Program *program)
{
    bool seeded = false;
    for (uint32_t i = 0; i < program->kept.count; i++) {
        const KeptSlot *slot = &program->kept.slot[i];
        seeded |= slot->block == BLOCK_PARAMS && slot->start == START_DRAWN && slot->bytes;
    }
    return seeded;
}

bool source_is_zero(const KeptSlot *slot)
{
    static const unsigned char zero[8];
    return memcmp(slot->fill, zero, dtype_bytes(slot_dtype(slot))) == 0;
}

void source_start_comment(Text *out, const KeptSlot *slot, Arena *arena)
{
    Str name = source_comment(arena, value_show(slot->graph, slot->value));
    text_printf(out, "    /* " STR_FMT ": " STR_FMT " */\n", STR_ARG(name),
                STR_ARG(type_show(arena, value_type(slot->graph, slot->value))));
}

uint32_t source_zeros(const Kept *kept, uint32_t slot)
{
    uint32_t end = slot;
    while (end < kept->count && kept->slot[end].block == kept->slot[slot].block && kept->slot[end].bytes &&
           kept->slot[end].start == START_FILL && source_is_zero(&kept->slot[end]))
        end++;
    return end - slot;
}

bool source_next_start(const Kept *kept, KeptBlock block, uint32_t *slot, uint32_t *next)
{
    while (*slot < kept->count && (kept->slot[*slot].block != block || !kept->slot[*slot].bytes))
        ++*slot;
    if (*slot == kept->count)
        return false;
    uint32_t zeros = source_zeros(kept, *slot);
    *next = *slot + (zeros ? zeros : 1);
    return true;
}

int64_t source_zeros_bytes(const Kept *kept, uint32_t slot, uint32_t count)
{
    const KeptSlot *last = &kept->slot[slot + count - 1];
    return last->offset[0] + last->bytes - kept->slot[slot].offset[0];
}

void source_zeros_comment(Text *out, const Kept *kept, uint32_t slot, uint32_t count, Arena *arena)
{
    const KeptSlot *first = &kept->slot[slot], *last = first + count - 1;
    if (count == 1)
        source_start_comment(out, first, arena);
    else
        text_printf(out, "    /* " STR_FMT " to " STR_FMT ": all %u are zeros */\n",
                    STR_ARG(source_comment(arena, value_show(first->graph, first->value))),
                    STR_ARG(source_comment(arena, value_show(last->graph, last->value))), count);
}

/* What is written is where the flags, all zero, say that the value is. */
static void print_slot(Text *out, const Unit *unit, const KeptSlot *slot)
{
    DType dtype = slot_dtype(slot);
    const char *type = prelude_c_type(dtype), *block = source_block_pointer(slot->block);
    long long at = (long long)slot->offset[0], bytes = (long long)slot->bytes;
    source_start_comment(out, slot, unit->arena);
    if (slot->start == START_STORED)
        text_printf(out, "    memcpy(%s + %lld, " STR_FMT ", %lld);\n", block, at,
                    STR_ARG(source_weights_place(unit->program, unit->arena, slot->weights)), bytes);
    else if (slot->start != START_FILL)
        text_printf(out, "    " STR_FMT "((%s *)(void *)(%s + %lld), " STR_FMT ");\n",
                    STR_ARG(source_start_function(slot, unit->arena)), type, block, at,
                    STR_ARG(source_start_arguments(slot, unit->arena)));
    else {
        text_printf(out, "    for (size_t i = 0; i < %lld; i++)\n        ((%s *)(void *)(%s + %lld))[i] = ",
                    bytes / dtype_bytes(dtype), type, block, at);
        source_element(out, dtype, slot->fill, 0);
        text_printf(out, ";\n");
    }
}

static void print_zeros(Text *out, const Unit *unit, uint32_t slot, uint32_t count)
{
    const Kept *kept = &unit->program->kept;
    source_zeros_comment(out, kept, slot, count, unit->arena);
    text_printf(out, "    memset(%s + %lld, 0, %lld);\n", source_block_pointer(kept->slot[slot].block),
                (long long)kept->slot[slot].offset[0], (long long)source_zeros_bytes(kept, slot, count));
}

static bool reads_weights(const Kept *kept, KeptBlock block)
{
    bool reads = false;
    for (uint32_t i = 0; i < kept->count; i++)
        reads |= kept->slot[i].block == block && kept->slot[i].start == START_STORED && kept->slot[i].bytes;
    return reads;
}

static void print_checks(Text *out, const Program *program, KeptBlock block)
{
    const char *name = source_block_name(block), *pointer = source_block_pointer(block);
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    text_printf(out, "    unsigned char *const %s = (unsigned char *)%s;\n", pointer, name);
    if (file && reads_weights(&program->kept, block))
        text_printf(out, "    const unsigned char *const w = (const unsigned char *)weights;\n");
    if (file)
        text_printf(out, "\n    if (!weights || (uintptr_t)weights %% %d != 0)\n        return 2;\n",
                    WEIGHTS_ALIGNMENT);
    text_printf(out, "%s    if (!%s || (uintptr_t)%s %% %d != 0)\n        return %d;\n", file ? "" : "\n", pointer,
                pointer, ARENA_ALIGNMENT, source_block_status(block));
    if (block == BLOCK_PARAMS && !source_start_seeded(program))
        text_printf(out, "    (void)seed;\n");
}

Str source_start_name(const Program *program, KeptBlock block, Arena *arena)
{
    Str name = program->options.name;
    return block == BLOCK_PACKED ? str_format(arena, STR_FMT "_pack", STR_ARG(name))
                                 : str_format(arena, STR_FMT "_%s_init", STR_ARG(name), source_block_name(block));
}

Str source_start_signature(const Program *program, KeptBlock block, Arena *arena)
{
    Str name = source_start_name(program, block, arena);
    if (block == BLOCK_PACKED)
        return str_format(arena, "int " STR_FMT "(const void *params, void *packed", STR_ARG(name));
    return str_format(arena, "int " STR_FMT "(%svoid *%s%s", STR_ARG(name),
                      program_weights_form(program) == WEIGHTS_FILE ? "const void *weights, " : "",
                      source_block_name(block), block == BLOCK_PARAMS ? ", int64_t seed" : "");
}

Str source_start_lent(const Program *program, KeptBlock block, Arena *arena)
{
    if (block == BLOCK_PACKED)
        return STR("params, packed");
    return str_format(arena, "%s%s%s", program_weights_form(program) == WEIGHTS_FILE ? "weights, " : "",
                      source_block_name(block), block == BLOCK_PARAMS ? ", seed" : "");
}

void unit_print_start(Text *out, const Unit *unit, KeptBlock block)
{
    const Program *program = unit->program;
    const Kept *kept = &program->kept;
    if (!kept->bytes[block] || block == BLOCK_PACKED)
        return;
    text_printf(out, STR_FMT ")\n{\n", STR_ARG(source_start_signature(program, block, unit->arena)));
    print_checks(out, program, block);
    for (uint32_t i = 0; block == BLOCK_STATE && i < kept->flags; i++)
        text_printf(out, "    s[%u] = 0;\n", i);
    for (uint32_t i = 0, next; source_next_start(kept, block, &i, &next); i = next) {
        if (source_zeros(kept, i))
            print_zeros(out, unit, i, next - i);
        else
            print_slot(out, unit, &kept->slot[i]);
    }
    text_printf(out, "    return 0;\n}\n\n");
}
