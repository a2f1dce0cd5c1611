/* NAME_selftest.c: the harness without malloc, stdio and main, for firmware, which calls it and shows the result. */
#include "c/harness.h"
#include "c/source.h"

static void print_head(Text *out, const Program *program)
{
    Str name = program->options.name;
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    text_printf(out,
                "/* " STR_FMT
                "_selftest.c: runs the model on fixed inputs; expected outputs are the reference\n"
                " * evaluator's. Without malloc, stdio and main: declare it where it is called,\n"
                " *\n"
                " *     int " STR_FMT
                "_selftest(%s);\n"
                " *\n"
                " * Returns 0 when all agree, 1 when an output differs or a call refuses, 2 when something beside the\n"
                " * arena was written. */\n"
                "#include \"" STR_FMT
                ".h\"\n\n"
                "#include <math.h>\n#include <string.h>\n\n",
                STR_ARG(name), STR_ARG(name), file ? "const void *weights" : "void", STR_ARG(name));
}

/* The arena lies between two stretches of a pattern, what is kept in front of one. */
static void print_memory(Text *out, const Program *program, const char *shout, Arena *arena)
{
    text_printf(out, "#define CANARY %d\n", CANARY);
    text_printf(out, "static unsigned char block[%s_ARENA_BYTES + 2 * CANARY + %d];\n", shout, ARENA_ALIGNMENT);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (program->kept.bytes[block])
            text_printf(out, "static unsigned char %s_held[%s + CANARY + %d];\n", source_block_name(block),
                        source_block_bytes(program, block, arena), ARENA_ALIGNMENT);
    text_printf(out,
                "\nstatic int is_intact(const unsigned char *at)\n"
                "{\n"
                "    for (int i = 0; i < CANARY; i++)\n"
                "        if (at[i] != 0xA5)\n"
                "            return 0;\n"
                "    return 1;\n"
                "}\n\n");
}

static void print_locals(Text *out, const Program *program)
{
    const char *align = "(64 - (uintptr_t)";
    text_printf(out, "    unsigned char *const arena = block + CANARY + %s(block + CANARY) %% 64) %% 64;\n", align);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++) {
        const char *name = source_block_name(block);
        if (program->kept.bytes[block])
            text_printf(out, "    unsigned char *const %s = %s_held + %s%s_held %% 64) %% 64;\n", name, name, align,
                        name);
    }
    harness_locals(out, program);
    text_printf(out, "\n    memset(block, 0xA5, sizeof block);\n");
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++) {
        const char *name = source_block_name(block);
        if (program->kept.bytes[block])
            text_printf(out, "    memset(%s_held, 0xA5, sizeof %s_held);\n", name, name);
        harness_fill(out, program, block);
    }
}

static void print_function(Text *out, const Program *program, const char *shout, Arena *arena)
{
    Str name = program->options.name;
    const char *parameter = program_weights_form(program) == WEIGHTS_FILE ? "const void *weights" : "void";

    text_printf(out,
                "#ifdef __cplusplus\nextern \"C\"\n#endif\n"
                "int " STR_FMT
                "_selftest(%s);\n\n"
                "int " STR_FMT "_selftest(%s)\n{\n",
                STR_ARG(name), parameter, STR_ARG(name), parameter);
    print_locals(out, program);
    harness_calls(out, program);
    text_printf(out, "    if (!is_intact(arena - CANARY) || !is_intact(arena + %s_ARENA_BYTES)", shout);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (program->kept.bytes[block])
            text_printf(out, " || !is_intact(%s + %s)", source_block_name(block),
                        source_block_bytes(program, block, arena));
    text_printf(out, ")\n        return 2;\n    return bad != 0;\n}\n");
}

void emit_selftest(const Program *program, const Golden *golden, Text *out)
{
    Arena arena = {0};
    const char *shout = source_upper(&arena, program->options.name);
    print_head(out, program);
    for (uint32_t e = 0; e < program->entry_count; e++)
        harness_arrays(out, &program->entry[e], &golden[e]);
    harness_functions(out, program, false);
    harness_team(out, program);
    print_memory(out, program, shout, &arena);
    print_function(out, program, shout, &arena);
    arena_free(&arena);
}

_Static_assert(ARENA_ALIGNMENT == 64, "as print_locals writes it");
