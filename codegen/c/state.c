/* NAME_state_init: fills the block of states with their first values. */
#include "c/unit.h"

/* `i` counts elements; what is written is where the flags, all zero, say that the value is. */
static void print_slot(Text *out, const Unit *unit, const StateSlot *slot)
{
    const Program *program = unit->program;
    DType dtype = value_type(slot->graph, slot->value)->dtype;
    const char *type = prelude_c_type(dtype);
    Str name = source_comment(unit->arena, value_show(slot->graph, slot->value));
    long long count = (long long)(slot->bytes / dtype_bytes(dtype)), at = (long long)slot->offset[0];
    text_printf(out, "    /* " STR_FMT ": " STR_FMT " */\n", STR_ARG(name),
                STR_ARG(type_show(unit->arena, value_type(slot->graph, slot->value))));
    if (slot->weights != NONE) {
        text_printf(out, "    memcpy(s + %lld, " STR_FMT ", %lld);\n", at,
                    STR_ARG(source_weights_place(program, unit->arena, slot->weights)), (long long)slot->bytes);
        return;
    }
    text_printf(out, "    for (size_t i = 0; i < %lld; i++)\n        ((%s *)(void *)(s + %lld))[i] = ", count, type,
                at);
    source_element(out, dtype, slot->fill, 0);
    text_printf(out, ";\n");
}

static bool reads_weights(const State *state)
{
    bool reads = false;
    for (uint32_t i = 0; i < state->count; i++)
        reads |= state->slot[i].weights != NONE && state->slot[i].bytes;
    return reads;
}

void unit_print_state(Text *out, const Unit *unit)
{
    const Program *program = unit->program;
    const State *state = &program->state;
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    if (!state->count)
        return;
    text_printf(out,
                "int " STR_FMT "_state_init(%svoid *state)\n{\n    unsigned char *const s = (unsigned char *)state;\n",
                STR_ARG(program->options.name), file ? "const void *weights, " : "");
    if (file && reads_weights(state))
        text_printf(out, "    const unsigned char *const w = (const unsigned char *)weights;\n");
    if (file)
        text_printf(out, "\n    if (!weights || (uintptr_t)weights %% %d != 0)\n        return 2;\n",
                    WEIGHTS_ALIGNMENT);
    text_printf(out, "%s    if (!s || (uintptr_t)s %% %d != 0)\n        return 3;\n", file ? "" : "\n",
                ARENA_ALIGNMENT);
    for (uint32_t i = 0; i < state->flags; i++)
        text_printf(out, "    s[%u] = 0;\n", i);
    for (uint32_t i = 0; i < state->count; i++)
        if (state->slot[i].bytes)
            print_slot(out, unit, &state->slot[i]);
    text_printf(out, "    return 0;\n}\n\n");
}
