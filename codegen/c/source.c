/* NAME.c: weights, kernels as functions, a function for each entry that runs them in order. */
#include "c/unit.h"

static const char apart_text[] =
    "/* A kernel that stays a function of its own: dozens of them in one take compilers minutes.  And where memory "
    "holds\n"
    " * one type after another, which C allows, clang takes it that doubles never lie where integers are; if it sees "
    "the\n"
    " * code of both, it may read the one after it has written the other. */\n"
    "#if defined(__GNUC__)\n"
    "#define NNC_APART __attribute__((noinline))\n"
    "#elif defined(_MSC_VER)\n"
    "#define NNC_APART __declspec(noinline)\n"
    "#else\n"
    "#define NNC_APART\n"
    "#endif\n\n";

/* How the source is compiled, on its second line. */
static void put_command(const Program *program, Text *out)
{
    const Target *target = program->options.target;
    const char *libraries = program_libraries(program), *link = *libraries ? "; link with: " : "";
    text_printf(out, "/* Compile with: %s", target_cc_level(target));
    if (target->cc_flags[0])
        text_printf(out, " %s%s%s */\n", target->cc_flags, link, libraries);
    else
        text_printf(out, "; any C99 compiler will do, and -Os and -O3 are about as fast%s%s. */\n", link, libraries);
}

void emit_source(const Program *program, Text *out)
{
    Arena arena = {0};
    if (program->version_count) {
        unit_print_dispatch(out, &(Unit){.program = program, .arena = &arena});
        arena_free(&arena);
        return;
    }
    Unit unit;
    unit_make(&unit, program, &arena);

    source_head(out, program, ".c", "kernels and the order they run in");
    put_command(program, out);
    text_printf(out,
                "#include \"" STR_FMT
                "%s.h\"\n\n"
                "#ifdef __cplusplus\n#define NNC_RESTRICT\n#else\n#define NNC_RESTRICT restrict\n#endif\n\n",
                STR_ARG(program_common_name(program)), program->whole ? "_versions" : "");
    if (unit_has_apart(&unit) || unit.needs.held)
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
    unit_print_weights(out, &unit);
    unit_print_deal(out, &unit);
    unit_print_functions(out, &unit);
    text_char(out, '\n');
    for (uint32_t e = 0; e < program->entry_count; e++)
        unit_print_run(out, &unit, e);
    source_start_functions(out, program, &unit.needs, &arena);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        unit_print_start(out, &unit, block);
    unit_print_pack(out, &unit);
    if (!program->whole)
        unit_print_descriptor(out, &unit);
    arena_free(&arena);
}
