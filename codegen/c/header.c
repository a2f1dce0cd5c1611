/* NAME.h: what the functions take and return, sizes, layouts. */
#include "c/source.h"

#include "runtime_nnc_model.h" /* runtime/nnc_model.h as a C string: model_descriptor_text */

void source_head(Text *out, const Program *program, const char *suffix, const char *what)
{
    Arena arena = {0};
    Str name = program->options.name, source = source_comment(&arena, program->options.source);
    text_printf(out, "/* " STR_FMT "%s: %s", STR_ARG(name), suffix, what);
    if (source.len)
        text_printf(out, ", written by nnc from " STR_FMT " for " STR_FMT, STR_ARG(source),
                    STR_ARG(program_target_names(program, &arena)));
    text_printf(out, ". */\n");
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
    text_printf(out, "%s is %snot aligned%s. */\n", shown > 1 ? "," : "", missing ? "missing or " : "",
                program->version_count ? "; 6 where the machine has none of the targets" : "");
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
    source_signature(out, entry, arena);
    text_printf(out, ";\n\n");
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

static void print_cpu_prototype(Text *out, const Program *program)
{
    text_printf(
        out,
        "/* The target that runs here: the last of those named above that the machine has, or the one that the "
        "variable\n"
        " * NNC_CPU of the environment names, if it is among them and the machine has it.  Found when any function is "
        "first\n"
        " * called, and the same from then on.  NULL: the machine has none. */\n"
        "const char *" STR_FMT "_cpu(void);\n\n",
        STR_ARG(program->options.name));
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
    if (program->version_count)
        print_cpu_prototype(out, program);
    text_printf(out,
                "/* Names, shapes, sizes and the entry point%s, for generic hosts. */\n"
                "extern const nnc_model " STR_FMT "_model;\n\n",
                one ? "" : "s", STR_ARG(name));
    text_printf(out, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    arena_free(&arena);
}
