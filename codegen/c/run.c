/* NAME_run, or the function of another entry: a pointer for each buffer of the arena, each part of one and each array
 * of the weights, by the model's names, declared where a kernel first uses it; then the calls. */
#include "c/unit.h"

typedef struct Run {
    const Unit *unit;
    const Entry *entry;
    uint32_t number; /* of the entry */
    Text *out;
    const Str *port; /* source_port_names */
    Map taken;
    Str *storage, *part; /* names: per storage, per value that is a part or a view; empty before the first use */
} Run;

static Str free_name(Run *run, Str wanted)
{
    Str name = wanted;
    for (int n = 2; !map_add(&run->taken, name, 0); n++)
        name = str_format(run->unit->arena, STR_FMT "_%d", STR_ARG(wanted), n);
    return name;
}

static void start_names(Run *run)
{
    const Program *program = run->unit->program;
    const Graph *graph = run->entry->graph;
    Arena *arena = run->unit->arena;
    static const char *const own[] = {"a", "w", "arena", "weights", "run"};
    run->port = source_port_names(run->entry, arena);
    run->taken.arena = arena;
    run->storage = ARENA_ARRAY(arena, Str, run->entry->memory.storage.count);
    run->part = ARENA_ARRAY(arena, Str, graph->value_count);
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        map_add(&run->taken, str_from(own[i]), 0);
    source_take_weights(program, arena, &run->taken);
    source_take_state(program, &run->taken);
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        map_add(&run->taken, run->port[i], 0);
    for (uint32_t f = 0; f < run->unit->function_count; f++)
        map_add(&run->taken, run->unit->function[f].name, 0);
}

/* What a pointer to memory is called: a value by its name in the model, others by what they are for. */
static Str pointer_name(Run *run, const KernelBuffer *buffer, ValueId value)
{
    const Graph *graph = run->entry->graph;
    if (value == NONE)
        return free_name(run, str_from(buffer->role));
    Str title = value_title(graph, value);
    if (graph->value[value].name.len) {
        title = source_safe_name(run->unit->arena, title, false);
    } else { /* stage1.block0.%12 */
        Str scope = {title.ptr, title.len - value_show(graph, value).len};
        title = str_format(run->unit->arena, STR_FMT "t%u", STR_ARG(scope), value);
        title = source_identifier(run->unit->arena, title);
    }
    return free_name(run, title);
}

/* The declaration, with what it points to as a comment; returns the name. */
static Str declare_pointer(Run *run, const KernelBuffer *buffer, ValueId value, Str at, Str what)
{
    bool constant = entry_storage(run->entry, buffer->storage)->role == STORAGE_WEIGHTS;
    const char *type = prelude_c_type(buffer->dtype), *fixed = constant ? "const " : "";
    Str name = pointer_name(run, buffer, value);
    text_printf(run->out, "    %s%s *const " STR_FMT " = (%s%s *)" STR_FMT "; /* " STR_FMT " */\n", fixed, type,
                STR_ARG(name), fixed, type, STR_ARG(at), STR_ARG(what));
    return name;
}

/* `(void *)(a + 64)`: a place of an aligned block as one of any type. */
static Str arena_place(const Run *run, int64_t offset)
{
    return str_format(run->unit->arena, "(void *)(a + %lld)", (long long)offset);
}

static Str weights_argument(Run *run, const KernelBuffer *buffer)
{
    const Program *program = run->unit->program;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    Str *known = &run->storage[buffer->storage];
    bool packed = program->weights[storage->index].packing.rank;
    Str what = str_format(arena, STR_FMT "%s", STR_ARG(type_show(arena, value_type(run->entry->graph, storage->value))),
                          packed ? ", packed" : "");
    Str at = source_weights_place(program, arena, storage->index);
    if (program_weights_form(program) != WEIGHTS_C)
        at = str_format(arena, "(const void *)(" STR_FMT ")", STR_ARG(at));
    if (!known->len)
        *known = declare_pointer(run, buffer, storage->value, at, what);
    return *known;
}

/* Kernels that see a part or a view alone take a pointer to it; those that see several, one into the whole. */
static Str arena_argument(Run *run, const KernelBuffer *buffer)
{
    const Graph *graph = run->entry->graph;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    int64_t begin = buffer->begin * dtype_bytes(buffer->dtype);
    if (buffer->part != NONE) {
        Str *known = &run->part[buffer->part];
        Str what = str_format(arena, STR_FMT " in " STR_FMT, STR_ARG(type_show(arena, value_type(graph, buffer->part))),
                              STR_ARG(source_comment(arena, value_show(graph, storage->value))));
        if (!known->len)
            *known = declare_pointer(run, buffer, buffer->part, arena_place(run, storage->offset + begin), what);
        return *known;
    }
    Str *known = &run->storage[buffer->storage];
    Str what = storage->value == NONE ? STR("scratch") : type_show(arena, value_type(graph, storage->value));
    if (!known->len)
        *known = declare_pointer(run, buffer, storage->value, arena_place(run, storage->offset), what);
    return buffer->begin ? str_format(arena, STR_FMT " + %lld", STR_ARG(*known), (long long)buffer->begin) : *known;
}

/* A state's value, or its next one where that is elsewhere. */
static Str state_argument(Run *run, const KernelBuffer *buffer)
{
    const Entry *entry = run->entry;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(entry, buffer->storage);
    const StateValue *state = &entry->memory.state[storage->index];
    ValueId value = storage->next ? storage->value : state->value;
    Str *known = &run->storage[storage->next ? state->next : state->value];
    if (!known->len) {
        Str type = type_show(arena, value_type(entry->graph, value));
        Str what = storage->next ? str_format(arena, STR_FMT ", the next " STR_FMT, STR_ARG(type),
                                              STR_ARG(source_comment(arena, value_show(entry->graph, state->value))))
                                 : str_format(arena, STR_FMT ", state", STR_ARG(type));
        Str at = str_format(arena, "(void *)(" STR_FMT ")", STR_ARG(source_state_place(entry, arena, storage)));
        *known = declare_pointer(run, buffer, value, at, what);
    }
    return buffer->begin ? str_format(arena, STR_FMT " + %lld", STR_ARG(*known), (long long)buffer->begin) : *known;
}

/* Declares the pointer of a kernel's buffer at its first use; arrays of the caller have names already. */
static Str run_argument(Run *run, uint32_t k, uint32_t b)
{
    const KernelBuffer *buffer = &run->entry->memory.kernel[k].buffer[b];
    StorageRole role = entry_storage(run->entry, buffer->storage)->role;
    if (role == STORAGE_WEIGHTS)
        return weights_argument(run, buffer);
    if (role == STORAGE_ARENA || role == STORAGE_SCRATCH)
        return arena_argument(run, buffer);
    if (role == STORAGE_STATE)
        return state_argument(run, buffer);
    return source_argument(run->entry, run->port, run->unit->arena, k, b);
}

static void print_call(Run *run, uint32_t k)
{
    const Unit *unit = run->unit;
    const Kernel *kernel = &run->entry->memory.kernel[k];
    Str *argument = ARENA_ARRAY(unit->arena, Str, kernel->buffer_count);
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        argument[b] = run_argument(run, k, b);
    source_describe(run->out, run->entry, kernel);
    text_printf(run->out, "    " STR_FMT "(", STR_ARG(unit->function[unit->of_kernel[run->number][k]].name));
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        text_printf(run->out, "%s" STR_FMT, b ? ", " : "", STR_ARG(argument[b]));
    text_printf(run->out, ");\n");
}

static void print_steps(Run *run)
{
    const Entry *entry = run->entry;
    bool checked = run->unit->program->options.checked;
    for (uint32_t s = 0; s < entry->step_count; s++) {
        text_char(run->out, '\n');
        if (checked)
            source_checked_step(run->out, entry, entry->step[s].kernel);
        print_call(run, entry->step[s].kernel);
    }
    if (checked)
        source_checked_step(run->out, entry, entry->memory.kernel_count);
}

/* What is borrowed must be there, and aligned. */
static void print_checks(Text *out, const Entry *entry)
{
    const Program *program = entry->program;
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    text_printf(out, "    unsigned char *const a = (unsigned char *)arena;\n");
    if (file)
        text_printf(out, "    const unsigned char *const w = (const unsigned char *)weights;\n");
    if (entry->memory.state_count)
        text_printf(out, "    unsigned char *const s = (unsigned char *)state;\n");
    text_printf(out, "\n    if (%s(uintptr_t)a %% %d != 0)\n        return 1;\n", program->arena_bytes ? "!a || " : "",
                ARENA_ALIGNMENT);
    if (file)
        text_printf(out, "    if (!w || (uintptr_t)w %% %d != 0)\n        return 2;\n", WEIGHTS_ALIGNMENT);
    if (entry->memory.state_count)
        text_printf(out, "    if (!s || (uintptr_t)s %% %d != 0)\n        return 3;\n", ARENA_ALIGNMENT);
}

/* States that have memory twice: what was made is their value from now on. */
static void print_turns(Text *out, const Entry *entry, Arena *arena)
{
    for (uint32_t i = 0; i < entry->memory.state_count; i++) {
        const StateValue *state = &entry->memory.state[i];
        if (state->twice)
            text_printf(out, "    s[%u] ^= 1; /* " STR_FMT " */\n", entry->program->state.slot[entry->slot[i]].flag,
                        STR_ARG(source_comment(arena, value_show(entry->graph, state->value))));
    }
}

void unit_print_run(Text *out, const Unit *unit, uint32_t number)
{
    const Entry *entry = &unit->program->entry[number];
    const Graph *graph = entry->graph;
    Run run = {.unit = unit, .entry = entry, .number = number, .out = out};
    start_names(&run);
    text_printf(out, "int " STR_FMT "(", STR_ARG(source_entry_name(entry, unit->arena)));
    source_parameters(out, entry, unit->arena);
    text_printf(out, ")\n{\n");
    print_checks(out, entry);
    print_steps(&run);
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        if (!entry->used[i])
            text_printf(out, "    (void)" STR_FMT ";\n", STR_ARG(run.port[i]));
    text_char(out, '\n');
    print_turns(out, entry, unit->arena);
    text_printf(out, "    return 0;\n}\n\n");
}
