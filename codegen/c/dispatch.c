/* NAME.c of a program for several targets: asks once which of them the machine has, and calls the functions of that
 * version, which NAME_versions.h lists. */
#include "nnc_cpu.h"

#include "c/unit.h"

#include "runtime_nnc_cpu.h" /* runtime/nnc_cpu.h, with what it includes, as a C string: cpu_text */

/* NAME_versions.h */

static void print_prototypes(Text *out, const Program *version, Arena *arena)
{
    for (uint32_t e = 0; e < version->entry_count; e++) {
        source_signature(out, &version->entry[e], arena);
        text_str(out, STR(";\n"));
    }
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (version->kept.bytes[block])
            text_printf(out, STR_FMT ");\n", STR_ARG(source_start_signature(version, block, arena)));
    text_char(out, '\n');
}

void emit_versions(const Program *program, Text *out)
{
    Arena arena = {0};
    const char *shout = source_upper(&arena, program->options.name);
    source_head(out, program, "_versions.h", "its functions, for each of the targets");
    text_printf(out,
                "#ifndef %s_VERSIONS_H\n#define %s_VERSIONS_H\n\n#include \"" STR_FMT
                ".h\"\n\n"
                "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
                "#ifdef __ELF__\n#pragma GCC visibility push(hidden)\n#endif\n\n",
                shout, shout, STR_ARG(program->options.name));
    for (uint32_t v = 0; v < program->version_count; v++)
        print_prototypes(out, &program->version[v], &arena);
    text_str(out, STR("#ifdef __ELF__\n#pragma GCC visibility pop\n#endif\n"
                      "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"));
    arena_free(&arena);
}

/* NAME.c */

static void print_head(Text *out, const Program *program)
{
    source_head(out, program, ".c", "takes the version that the machine has");
    text_str(out, STR("/* Compile with: -O2; and as their second lines say:"));
    for (uint32_t v = 0; v < program->version_count; v++)
        text_printf(out, "%s " STR_FMT ".c", v ? "," : "", STR_ARG(program->version[v].options.name));
    text_printf(out, " */\n#include \"" STR_FMT "_versions.h\"\n\n#include <stdlib.h>\n#include <string.h>\n\n",
                STR_ARG(program->options.name));
}

/* What each target needs: a fallback nothing. */
static void print_targets(Text *out, const Program *program)
{
    text_printf(out, "static const char *const nnc_target[%u] = {", program->version_count);
    for (uint32_t v = 0; v < program->version_count; v++)
        text_printf(out, "%s\"%s\"", v ? ", " : "", program->version[v].options.target->name);
    text_printf(out, "};\nstatic const nnc_cpu nnc_needs[%u] = {\n", program->version_count);
    for (uint32_t v = 0; v < program->version_count; v++) {
        const Target *target = program->version[v].options.target;
        const nnc_cpu needs = target->cpu ? *target->cpu : (nnc_cpu){0};
        text_printf(out, "    {0x%08xu, 0x%08xu, 0x%08xu, 0x%08xu, 0x%08xu, 0x%08xu, 0x%08xu}, /* %s */\n", needs.ecx1,
                    needs.ebx7, needs.ecx7, needs.eax7_1, needs.ecx81, needs.xcr0, needs.edx7, target->name);
    }
    text_str(out, STR("};\n\n"));
}

static const char choose_text[] =
    "/* The number of the version that runs here, from 1; -1: the machine has none. */\n"
    "static int nnc_find(void)\n"
    "{\n"
    "    const nnc_cpu here = nnc_cpu_here();\n"
    "    const char *const wanted = getenv(\"NNC_CPU\");\n"
    "    int found = -1;\n"
    "    for (int i = 0; i < (int)(sizeof nnc_target / sizeof *nnc_target); i++) {\n"
    "        if (!nnc_cpu_has(&here, &nnc_needs[i]))\n"
    "            continue;\n"
    "        found = i + 1;\n"
    "        if (wanted && strcmp(wanted, nnc_target[i]) == 0)\n"
    "            break;\n"
    "    }\n"
    "    return found;\n"
    "}\n\n"
    "/* Found once, or by several threads that ask at the same time: they find the same. */\n"
    "static int nnc_version(void)\n"
    "{\n"
    "    static int known;\n"
    "    int found = __atomic_load_n(&known, __ATOMIC_RELAXED);\n"
    "    if (!found) {\n"
    "        found = nnc_find();\n"
    "        __atomic_store_n(&known, found, __ATOMIC_RELAXED);\n"
    "    }\n"
    "    return found;\n"
    "}\n\n";

/* The end of a function whose head has been printed: it calls that of the version. */
static void print_switch(Text *out, uint32_t versions, const Str *callee, Str arguments)
{
    text_str(out, STR("\n{\n    switch (nnc_version()) {\n"));
    for (uint32_t v = 0; v < versions; v++)
        text_printf(out, "    case %u:\n        return " STR_FMT "(" STR_FMT ");\n", v + 1, STR_ARG(callee[v]),
                    STR_ARG(arguments));
    text_str(out, STR("    default:\n        return 6;\n    }\n}\n\n"));
}

/* `image, probability, weights, arena, team` */
static Str entry_arguments(const Entry *entry, Arena *arena)
{
    const Str *port = source_port_names(entry, arena);
    Text list = {0};
    for (uint32_t i = 0; i < entry->graph->input_count + entry->graph->output_count; i++)
        text_printf(&list, STR_FMT ", ", STR_ARG(port[i]));
    text_printf(&list, STR_FMT "arena%s", STR_ARG(source_lent(entry, arena)),
                program_shares(entry->program) ? ", team" : "");
    Str copy = str_copy(arena, text_view(&list));
    text_free(&list);
    return copy;
}

static void print_entry(Text *out, const Program *program, uint32_t e, Arena *arena)
{
    const Entry *entry = &program->entry[e];
    Str callee[MOST_VERSIONS];
    for (uint32_t v = 0; v < program->version_count; v++)
        callee[v] = source_entry_name(&program->version[v].entry[e], arena);
    source_signature(out, entry, arena);
    print_switch(out, program->version_count, callee, entry_arguments(entry, arena));
}

/* NAME_params_init, NAME_state_init, NAME_pack */
static void print_start(Text *out, const Program *program, KeptBlock block, Arena *arena)
{
    Str callee[MOST_VERSIONS];
    if (!program->kept.bytes[block])
        return;
    for (uint32_t v = 0; v < program->version_count; v++)
        callee[v] = source_start_name(&program->version[v], block, arena);
    text_printf(out, STR_FMT ")", STR_ARG(source_start_signature(program, block, arena)));
    print_switch(out, program->version_count, callee, source_start_lent(program, block, arena));
}

void unit_print_dispatch(Text *out, const Unit *unit)
{
    const Program *program = unit->program;
    print_head(out, program);
    text_printf(out, "%s\n", cpu_text);
    print_targets(out, program);
    text_str(out, str_from(choose_text));
    text_printf(out,
                "const char *" STR_FMT
                "_cpu(void)\n{\n    const int version = nnc_version();\n"
                "    return version > 0 ? nnc_target[version - 1] : NULL;\n}\n\n",
                STR_ARG(program->options.name));
    for (uint32_t e = 0; e < program->entry_count; e++)
        print_entry(out, program, e, unit->arena);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        print_start(out, program, block, unit->arena);
    unit_print_descriptor(out, unit);
}
