/* NAME_model: what generic hosts are told (runtime/nnc_model.h). */
#include "c/unit.h"

static void print_shapes(Text *out, const Graph *graph, bool outputs, const char *side)
{
    uint32_t count = outputs ? graph->output_count : graph->input_count;
    for (uint32_t i = 0; i < count; i++) {
        const Shape *shape = value_shape(graph, outputs ? graph->output[i].value : graph->input[i]);
        text_printf(out, "static const int64_t %s%u_shape[%u] = {", side, i, shape->rank ? shape->rank : 1);
        for (uint32_t d = 0; d < shape->rank; d++)
            text_printf(out, "%s%lld", d ? ", " : "", (long long)shape->dim[d]);
        text_printf(out, "%s};\n", shape->rank ? "" : "1");
    }
}

/* The arrays `inputs` and `outputs`, with the suffix of the entry. */
static void print_infos(Text *out, const Entry *entry, Arena *arena, bool outputs)
{
    const Graph *graph = entry->graph;
    Str suffix = source_entry_suffix(entry, arena);
    uint32_t count = outputs ? graph->output_count : graph->input_count;
    const char *side = str_format(arena, "%s%s" STR_FMT "%s", outputs ? "output" : "input", suffix.len ? "_of" : "",
                                  STR_ARG(suffix), suffix.len ? "_" : "")
                           .ptr;
    print_shapes(out, graph, outputs, side);
    text_printf(out, "static const nnc_tensor_info %ss" STR_FMT "[%u] = {\n", outputs ? "output" : "input",
                STR_ARG(suffix), count ? count : 1);
    for (uint32_t i = 0; i < count; i++) {
        const Type *type = value_type(graph, outputs ? graph->output[i].value : graph->input[i]);
        Str name = outputs ? graph->output[i].name : graph->value[graph->input[i]].name;
        text_printf(out, "    {\"" STR_FMT "\", \"%s\", %u, %s%u_shape, %lld},\n", STR_ARG(source_string(arena, name)),
                    dtype_name(type->dtype), type->shape.rank, side, i, (long long)type_bytes(type));
    }
    text_printf(out, "%s};\n", count ? "" : "    {0, 0, 0, 0, 0},\n");
}

/* The entry's function as hosts call it. */
static void print_wrapper(Text *out, const Entry *entry, Arena *arena)
{
    const Graph *graph = entry->graph;
    bool file = program_weights_form(entry->program) == WEIGHTS_FILE, state = entry->memory.state_count;
    text_printf(out,
                "\nstatic int run" STR_FMT
                "(const void *const *input, void *const *output, void *arena, "
                "const void *weights, void *state)\n{\n",
                STR_ARG(source_entry_suffix(entry, arena)));
    text_printf(out, "%s%s%s%s", file ? "" : "    (void)weights;\n", state ? "" : "    (void)state;\n",
                graph->input_count ? "" : "    (void)input;\n", graph->output_count ? "" : "    (void)output;\n");
    text_printf(out, "    return " STR_FMT "(", STR_ARG(source_entry_name(entry, arena)));
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(out, "(const %s *)input[%u], ", prelude_c_type(value_type(graph, graph->input[i])->dtype), i);
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "(%s *)output[%u], ", prelude_c_type(value_type(graph, graph->output[i].value)->dtype), i);
    text_printf(out, "%s%sarena);\n}\n\n", file ? "weights, " : "", state ? "state, " : "");
}

static void print_entries(Text *out, const Program *program, Arena *arena)
{
    text_printf(out, "static const nnc_entry entries[%u] = {\n", program->entry_count);
    for (uint32_t e = 0; e < program->entry_count; e++) {
        const Entry *entry = &program->entry[e];
        Str suffix = source_entry_suffix(entry, arena);
        text_printf(out, "    {\"" STR_FMT "\", %u, %u, inputs" STR_FMT ", outputs" STR_FMT ", run" STR_FMT "},\n",
                    STR_ARG(entry->name), entry->graph->input_count, entry->graph->output_count, STR_ARG(suffix),
                    STR_ARG(suffix), STR_ARG(suffix));
    }
    text_printf(out, "};\n\n");
}

/* Hosts hand over the weights whether or not they are a file. */
static void print_state_wrapper(Text *out, const Program *program)
{
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    if (program->state.count)
        text_printf(out,
                    "static int state_init(void *state, const void *weights)\n{\n%s"
                    "    return " STR_FMT "_state_init(%sstate);\n}\n\n",
                    file ? "" : "    (void)weights;\n", STR_ARG(program->options.name), file ? "weights, " : "");
}

void unit_print_descriptor(Text *out, const Unit *unit)
{
    const Program *program = unit->program;
    Str name = program->options.name;
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    for (uint32_t e = 0; e < program->entry_count; e++) {
        print_infos(out, &program->entry[e], unit->arena, false);
        print_infos(out, &program->entry[e], unit->arena, true);
        print_wrapper(out, &program->entry[e], unit->arena);
    }
    print_state_wrapper(out, program);
    print_entries(out, program, unit->arena);
    text_printf(out,
                "const nnc_model " STR_FMT "_model = {\n    NNC_MODEL_ABI, \"" STR_FMT
                "\", %u, entries,\n"
                "    %s_ARENA_BYTES, %d, %lld, UINT64_C(0x%016llx), %lld, %s,\n};\n",
                STR_ARG(name), STR_ARG(name), program->entry_count, source_upper(unit->arena, name), ARENA_ALIGNMENT,
                (long long)(file ? program->weights_bytes : 0),
                (unsigned long long)(file ? program_weights_checksum(program) : 0), (long long)program->state.bytes,
                program->state.count ? "state_init" : "0");
}
