/* NAME_model: what generic hosts are told (runtime/nnc_model.h). */
#include "c/unit.h"

static void print_shape(Text *out, const Shape *shape, const char *name, uint32_t number)
{
    text_printf(out, "static const int64_t %s%u_shape[%u] = {", name, number, shape->rank ? shape->rank : 1);
    for (uint32_t d = 0; d < shape->rank; d++)
        text_printf(out, "%s%lld", d ? ", " : "", (long long)shape->dim[d]);
    text_printf(out, "%s};\n", shape->rank ? "" : "1");
}

/* `{"image", "f32", 4, input0_shape, 3136}` */
static void print_info(Text *out, Arena *arena, Str tensor, const Type *type, const char *name, uint32_t number)
{
    text_printf(out, "{\"" STR_FMT "\", \"%s\", %u, %s%u_shape, %lld}", STR_ARG(source_string(arena, tensor)),
                dtype_name(type->dtype), type->shape.rank, name, number, (long long)type_bytes(type));
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
    for (uint32_t i = 0; i < count; i++)
        print_shape(out, value_shape(graph, outputs ? graph->output[i].value : graph->input[i]), side, i);
    text_printf(out, "static const nnc_tensor_info %ss" STR_FMT "[%u] = {\n", outputs ? "output" : "input",
                STR_ARG(suffix), count ? count : 1);
    for (uint32_t i = 0; i < count; i++) {
        text_printf(out, "    ");
        print_info(out, arena, outputs ? graph->output[i].name : graph->value[graph->input[i]].name,
                   value_type(graph, outputs ? graph->output[i].value : graph->input[i]), side, i);
        text_printf(out, ",\n");
    }
    text_printf(out, "%s};\n", count ? "" : "    {0, 0, 0, 0, 0},\n");
}

/* Of the slots of a block, numbered as they come, each one's first of its shape, whose array they share */
static uint32_t *first_of_shape(const Kept *kept, KeptBlock block, Arena *arena)
{
    uint32_t *first = ARENA_ARRAY(arena, uint32_t, kept->count), count = 0;
    Map shapes = {.arena = arena};
    for (uint32_t i = 0; i < kept->count; i++) {
        if (kept->slot[i].block != block)
            continue;
        const Shape *shape = value_shape(kept->slot[i].graph, kept->slot[i].value);
        Str key = map_key(shape->dim, shape->rank * sizeof *shape->dim);
        if (map_add(&shapes, key, count))
            first[count] = count;
        else
            first[count] = map_get(&shapes, key);
        count++;
    }
    return first;
}

/* `params_slots`, which says what lies where in the block. */
static void print_slots(Text *out, const Kept *kept, KeptBlock block, Arena *arena)
{
    const char *name = source_block_name(block);
    const uint32_t *shape = first_of_shape(kept, block, arena);
    uint32_t count = 0;
    for (uint32_t i = 0; i < kept->count; i++)
        if (kept->slot[i].block == block) {
            if (shape[count] == count)
                print_shape(out, value_shape(kept->slot[i].graph, kept->slot[i].value), name, count);
            count++;
        }
    if (!count)
        return;
    text_printf(out, "static const nnc_slot %s_slots[%u] = {\n", name, count);
    count = 0;
    for (uint32_t i = 0; i < kept->count; i++) {
        const KeptSlot *slot = &kept->slot[i];
        bool turns = slot->twice && block == BLOCK_STATE;
        if (slot->block != block)
            continue;
        text_printf(out, "    {");
        print_info(out, arena, slot->graph->value[slot->value].name, value_type(slot->graph, slot->value), name,
                   shape[count++]);
        text_printf(out, ", {%lld, %lld}, %lld},\n", (long long)slot->offset[0], (long long)slot->offset[turns],
                    turns ? (long long)slot->flag : -1LL);
    }
    text_printf(out, "};\n");
}

static uint32_t count_slots(const Kept *kept, KeptBlock block)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < kept->count; i++)
        count += kept->slot[i].block == block;
    return count;
}

/* The entry's function as hosts call it. */
static void print_wrapper(Text *out, const Entry *entry, Arena *arena)
{
    const Graph *graph = entry->graph;
    bool file = program_weights_form(entry->program) == WEIGHTS_FILE;
    text_printf(out,
                "\nstatic int run" STR_FMT
                "(const void *const *input, void *const *output, void *arena, "
                "const void *weights, void *params, void *state, nnc_team *team)",
                STR_ARG(source_entry_suffix(entry, arena)));
    source_break_list(out);
    text_str(out, STR("\n{\n"));
    text_printf(out, "%s%s%s%s%s%s", file ? "" : "    (void)weights;\n",
                entry_keeps(entry, BLOCK_PARAMS) ? ""
                : entry->packed                  ? "    const void *const packed = params;\n"
                                                 : "    (void)params;\n",
                entry_keeps(entry, BLOCK_STATE) ? "" : "    (void)state;\n",
                graph->input_count ? "" : "    (void)input;\n", graph->output_count ? "" : "    (void)output;\n",
                program_shares(entry->program) ? "" : "    (void)team;\n");
    text_printf(out, "    return " STR_FMT "(", STR_ARG(source_entry_name(entry, arena)));
    for (uint32_t i = 0; i < graph->input_count; i++)
        text_printf(out, "(const %s *)input[%u], ", prelude_c_type(value_type(graph, graph->input[i])->dtype), i);
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "(%s *)output[%u], ", prelude_c_type(value_type(graph, graph->output[i].value)->dtype), i);
    text_printf(out, STR_FMT "arena%s);\n}\n\n", STR_ARG(source_lent(entry, arena)),
                program_shares(entry->program) ? ", team" : "");
}

static void print_entries(Text *out, const Program *program, Arena *arena)
{
    text_printf(out, "static const nnc_entry entries[%u] = {\n", program->entry_count);
    for (uint32_t e = 0; e < program->entry_count; e++) {
        const Entry *entry = &program->entry[e];
        Str suffix = source_entry_suffix(entry, arena);
        text_printf(
            out, "    {\"" STR_FMT "\", %u, %u, inputs" STR_FMT ", outputs" STR_FMT ", %u, %u, %d, run" STR_FMT "},\n",
            STR_ARG(entry->name), entry->graph->input_count, entry->graph->output_count, STR_ARG(suffix),
            STR_ARG(suffix), entry_updates(entry, BLOCK_PARAMS), entry_updates(entry, BLOCK_STATE), entry->packed,
            STR_ARG(suffix));
    }
    text_printf(out, "};\n\n");
}

/* Hosts hand over the weights whether or not they are a file. */
static void print_start_wrapper(Text *out, const Program *program, KeptBlock block)
{
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    const char *name = source_block_name(block);
    text_printf(out,
                "static int %s_init(void *%s, %sconst void *weights)\n{\n%s"
                "    return " STR_FMT "_%s_init(%s%s%s);\n}\n\n",
                name, name, block == BLOCK_PARAMS ? "int64_t seed, " : "", file ? "" : "    (void)weights;\n",
                STR_ARG(program->options.name), name, file ? "weights, " : "", name,
                block == BLOCK_PARAMS ? ", seed" : "");
}

/* `{4864, 6, params_slots}` */
static Str block_text(const Kept *kept, KeptBlock block, Arena *arena)
{
    uint32_t count = count_slots(kept, block);
    return str_format(arena, "{%lld, %u, %s%s}", (long long)kept->bytes[block], count,
                      count ? source_block_name(block) : "0", count ? "_slots" : "");
}

static void print_model(Text *out, const Program *program, Arena *arena)
{
    const Kept *kept = &program->kept;
    Str name = program->options.name;
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    text_printf(out,
                "const nnc_model " STR_FMT "_model = {\n    NNC_MODEL_ABI, \"" STR_FMT
                "\", %u, entries,\n"
                "    %s_ARENA_BYTES, %d, %lld, UINT64_C(0x%016llx),\n    " STR_FMT ", " STR_FMT
                ", %lld, %s, %s, %s, %u,\n};\n",
                STR_ARG(name), STR_ARG(name), program->entry_count, source_upper(arena, name), ARENA_ALIGNMENT,
                (long long)(file ? program->weights_bytes : 0),
                (unsigned long long)(file ? program_weights_checksum(program) : 0),
                STR_ARG(block_text(kept, BLOCK_PARAMS, arena)), STR_ARG(block_text(kept, BLOCK_STATE, arena)),
                (long long)kept->bytes[BLOCK_PACKED], kept->bytes[BLOCK_PARAMS] ? "params_init" : "0",
                kept->bytes[BLOCK_STATE] ? "state_init" : "0",
                kept->bytes[BLOCK_PACKED] ? str_format(arena, STR_FMT "_pack", STR_ARG(name)).ptr : "0",
                program_shares(program) ? program->options.threads : 1);
}

void unit_print_descriptor(Text *out, const Unit *unit)
{
    const Program *program = unit->program;
    for (uint32_t e = 0; e < program->entry_count; e++) {
        print_infos(out, &program->entry[e], unit->arena, false);
        print_infos(out, &program->entry[e], unit->arena, true);
        print_wrapper(out, &program->entry[e], unit->arena);
    }
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++) {
        if (program->kept.bytes[block] && block != BLOCK_PACKED)
            print_start_wrapper(out, program, block);
        print_slots(out, &program->kept, block, unit->arena);
    }
    print_entries(out, program, unit->arena);
    print_model(out, program, unit->arena);
}
