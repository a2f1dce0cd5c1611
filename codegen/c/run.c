/* NAME_run: a pointer for each buffer of the arena, each part of one and each array of the weights, by the model's
 * names, declared where a kernel first uses it; then the calls. */
#include "c/unit.h"

typedef struct Run {
    const Unit *unit;
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
    const Graph *graph = program->graph;
    Arena *arena = run->unit->arena;
    static const char *const own[] = {"a", "w", "arena", "weights", "run"};
    run->port = source_port_names(program, arena);
    run->taken.arena = arena;
    run->storage = ARENA_ARRAY(arena, Str, program->memory.storage.count);
    run->part = ARENA_ARRAY(arena, Str, graph->value_count);
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        map_add(&run->taken, str_from(own[i]), 0);
    source_take_weights(program, arena, &run->taken);
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        map_add(&run->taken, run->port[i], 0);
    for (uint32_t f = 0; f < run->unit->function_count; f++)
        map_add(&run->taken, run->unit->function[f].name, 0);
}

/* What a pointer to memory is called: a value by its name in the model, others by what they are for. */
static Str pointer_name(Run *run, const KernelBuffer *buffer, ValueId value)
{
    const Graph *graph = run->unit->program->graph;
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
static Str declare_pointer(Run *run, const KernelBuffer *buffer, ValueId value, Str base, int64_t offset, Str what)
{
    bool constant = program_storage(run->unit->program, buffer->storage)->role == STORAGE_WEIGHTS;
    const char *type = prelude_c_type(buffer->dtype), *fixed = constant ? "const " : "";
    Str name = pointer_name(run, buffer, value);
    bool whole = constant && program_weights_form(run->unit->program) == WEIGHTS_C; /* not a place in a blob */
    Str at =
        whole ? base
              : str_format(run->unit->arena, "(%svoid *)(" STR_FMT " + %lld)", fixed, STR_ARG(base), (long long)offset);
    text_printf(run->out, "    %s%s *const " STR_FMT " = (%s%s *)" STR_FMT "; /* " STR_FMT " */\n", fixed, type,
                STR_ARG(name), fixed, type, STR_ARG(at), STR_ARG(what));
    return name;
}

/* Where an array of the weights starts. */
static Str weights_base(const Run *run, const Storage *storage, int64_t *offset)
{
    const Program *program = run->unit->program;
    Arena *arena = run->unit->arena;
    *offset = program_weights_form(program) == WEIGHTS_C ? 0 : storage->offset;
    switch (program_weights_form(program)) {
    case WEIGHTS_C:
        return str_format(arena, "nnc_hidden(" STR_FMT ")",
                          STR_ARG(source_weight_name(program, arena, storage->index)));
    case WEIGHTS_FILE:
        return STR("w");
    default:
        return str_format(arena, STR_FMT "_weights", STR_ARG(program->options.name));
    }
}

static Str weights_argument(Run *run, const KernelBuffer *buffer)
{
    const Program *program = run->unit->program;
    Arena *arena = run->unit->arena;
    const Storage *storage = program_storage(program, buffer->storage);
    Str *known = &run->storage[buffer->storage];
    bool packed = program->weights.array[storage->index].packing.rank;
    Str what = str_format(arena, STR_FMT "%s", STR_ARG(type_show(arena, value_type(program->graph, storage->value))),
                          packed ? ", packed" : "");
    int64_t offset;
    Str base = weights_base(run, storage, &offset);
    if (!known->len)
        *known = declare_pointer(run, buffer, storage->value, base, offset, what);
    return *known;
}

/* Kernels that see a part or a view alone take a pointer to it; those that see several, one into the whole. */
static Str arena_argument(Run *run, const KernelBuffer *buffer)
{
    const Program *program = run->unit->program;
    const Graph *graph = program->graph;
    Arena *arena = run->unit->arena;
    const Storage *storage = program_storage(program, buffer->storage);
    int64_t begin = buffer->begin * dtype_bytes(buffer->dtype);
    if (buffer->part != NONE) {
        Str *known = &run->part[buffer->part];
        Str what = str_format(arena, STR_FMT " in " STR_FMT, STR_ARG(type_show(arena, value_type(graph, buffer->part))),
                              STR_ARG(source_comment(arena, value_show(graph, storage->value))));
        if (!known->len)
            *known = declare_pointer(run, buffer, buffer->part, STR("a"), storage->offset + begin, what);
        return *known;
    }
    Str *known = &run->storage[buffer->storage];
    Str what = storage->value == NONE ? STR("scratch") : type_show(arena, value_type(graph, storage->value));
    if (!known->len)
        *known = declare_pointer(run, buffer, storage->value, STR("a"), storage->offset, what);
    return buffer->begin ? str_format(arena, STR_FMT " + %lld", STR_ARG(*known), (long long)buffer->begin) : *known;
}

/* Declares the pointer of a kernel's buffer at its first use; arrays of the caller have names already. */
static Str run_argument(Run *run, uint32_t k, uint32_t b)
{
    const Program *program = run->unit->program;
    const KernelBuffer *buffer = &program->memory.kernel[k].buffer[b];
    StorageRole role = program_storage(program, buffer->storage)->role;
    if (role == STORAGE_WEIGHTS)
        return weights_argument(run, buffer);
    if (role == STORAGE_ARENA || role == STORAGE_SCRATCH)
        return arena_argument(run, buffer);
    return source_argument(program, run->port, run->unit->arena, k, b);
}

static void print_call(Run *run, uint32_t k)
{
    const Unit *unit = run->unit;
    const Kernel *kernel = &unit->program->memory.kernel[k];
    Str *argument = ARENA_ARRAY(unit->arena, Str, kernel->buffer_count);
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        argument[b] = run_argument(run, k, b);
    source_describe(run->out, unit->program, kernel);
    text_printf(run->out, "    " STR_FMT "(", STR_ARG(unit->function[unit->of_kernel[k]].name));
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        text_printf(run->out, "%s" STR_FMT, b ? ", " : "", STR_ARG(argument[b]));
    text_printf(run->out, ");\n");
}

void unit_print_run(Text *out, const Unit *unit)
{
    const Program *program = unit->program;
    const Graph *graph = program->graph;
    Str name = program->options.name;
    Run run = {.unit = unit, .out = out};
    start_names(&run);
    text_printf(out, "int " STR_FMT "_run(", STR_ARG(name));
    source_parameters(out, program, unit->arena);
    text_printf(out, ")\n{\n    unsigned char *const a = (unsigned char *)arena;\n");
    if (program_weights_form(program) == WEIGHTS_FILE)
        text_printf(out, "    const unsigned char *const w = (const unsigned char *)weights;\n");
    text_printf(out, "\n    if (%s(uintptr_t)a %% %d != 0)\n        return 1;\n", program->arena_bytes ? "!a || " : "",
                ARENA_ALIGNMENT);
    if (program_weights_form(program) == WEIGHTS_FILE)
        text_printf(out, "    if (!w || (uintptr_t)w %% %d != 0)\n        return 2;\n", WEIGHTS_ALIGNMENT);
    for (uint32_t s = 0; s < program->step_count; s++) {
        text_char(out, '\n');
        if (program->options.checked)
            source_checked_step(out, program, program->step[s].kernel);
        print_call(&run, program->step[s].kernel);
    }
    if (program->options.checked)
        source_checked_step(out, program, program->memory.kernel_count);
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        if (!program->used[i])
            text_printf(out, "    (void)" STR_FMT ";\n", STR_ARG(run.port[i]));
    text_printf(out, "\n    return 0;\n}\n\n");
}
