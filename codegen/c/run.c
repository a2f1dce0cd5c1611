/* NAME_run: a pointer for each buffer of the arena, each part of one and each array of the weights, by the model's
 * names, declared where a kernel first uses it; then the calls. */
#include "c/unit.h"

typedef struct Run {
    const Unit *unit;
    Text *out;
    const Str *port; /* source_port_names */
    Map taken;
    Str *buffer, *part,
        *weights; /* names: per buffer of the plan, value, array of the weights; empty before the first use */
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
    run->buffer = ARENA_ARRAY(arena, Str, program->problem.count);
    run->part = ARENA_ARRAY(arena, Str, graph->value_count);
    run->weights = ARENA_ARRAY(arena, Str, program->weights.count);
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
    bool constant = buffer->weights != NONE;
    const char *type = c_type(buffer->dtype), *fixed = constant ? "const " : "";
    Str name = pointer_name(run, buffer, value);
    text_printf(run->out, "    %s%s *const " STR_FMT " = (%s%s *)(%svoid *)(" STR_FMT " + %lld); /* " STR_FMT " */\n",
                fixed, type, STR_ARG(name), fixed, type, fixed, STR_ARG(base), (long long)offset, STR_ARG(what));
    return name;
}

static Str weights_argument(Run *run, const KernelBuffer *buffer)
{
    const Program *program = run->unit->program;
    Arena *arena = run->unit->arena;
    const WeightArray *array = &program->weights.array[buffer->weights];
    Str *known = &run->weights[buffer->weights];
    Str base = program_weights_form(program) == WEIGHTS_FILE
                   ? STR("w")
                   : str_format(arena, STR_FMT "_weights", STR_ARG(program->options.name));
    Str what = str_format(arena, STR_FMT "%s", STR_ARG(type_show(arena, value_type(program->graph, array->value))),
                          array->packing.rank ? ", packed" : "");
    if (!known->len)
        *known = declare_pointer(run, buffer, buffer->value, base, array->offset, what);
    return *known;
}

/* Kernels that see a part or a view alone take a pointer to it; those that see several, one into the whole. */
static Str arena_argument(Run *run, uint32_t k, uint32_t b)
{
    const Program *program = run->unit->program;
    const Graph *graph = program->graph;
    Arena *arena = run->unit->arena;
    const KernelBuffer *buffer = &program->kernel[k].buffer[b];
    ValueId value = buffer->value;
    uint32_t index = value == NONE ? program->scratch[k][b] : program->home[value].index;
    int64_t offset = program->plan.offset[index];
    if (value != NONE && buffer->part != NONE) {
        Str *known = &run->part[buffer->part];
        Str what = str_format(arena, STR_FMT " in " STR_FMT, STR_ARG(type_show(arena, value_type(graph, buffer->part))),
                              STR_ARG(value_show(graph, value)));
        if (!known->len)
            *known = declare_pointer(run, buffer, buffer->part, STR("a"),
                                     offset + buffer->begin * dtype_bytes(buffer->dtype), what);
        return *known;
    }
    Str *known = &run->buffer[index];
    Str what = value == NONE ? STR("scratch") : type_show(arena, value_type(graph, value));
    if (!known->len)
        *known = declare_pointer(run, buffer, value, STR("a"), offset, what);
    return buffer->begin ? str_format(arena, STR_FMT " + %lld", STR_ARG(*known), (long long)buffer->begin) : *known;
}

/* Declares the pointer of a kernel's buffer at its first use; arrays of the caller have names already. */
static Str run_argument(Run *run, uint32_t k, uint32_t b)
{
    const Program *program = run->unit->program;
    const KernelBuffer *buffer = &program->kernel[k].buffer[b];
    if (buffer->weights != NONE && program_weights_form(program) != WEIGHTS_C)
        return weights_argument(run, buffer);
    if (buffer->weights == NONE && (buffer->value == NONE || program->home[buffer->value].space == SPACE_ARENA))
        return arena_argument(run, k, b);
    return source_argument(program, run->port, run->unit->arena, k, b);
}

static void print_call(Run *run, uint32_t k)
{
    const Unit *unit = run->unit;
    const Kernel *kernel = &unit->program->kernel[k];
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
    text_printf(out, "\n    if ((uintptr_t)a %% %d != 0)\n        return 1;\n", ARENA_ALIGNMENT);
    if (program_weights_form(program) == WEIGHTS_FILE)
        text_printf(out, "    if (!w || (uintptr_t)w %% %d != 0)\n        return 2;\n", WEIGHTS_ALIGNMENT);
    for (uint32_t k = 0; k < program->kernel_count; k++) {
        text_char(out, '\n');
        if (program->options.checked)
            checked_step(out, program, k);
        print_call(&run, k);
    }
    if (program->options.checked)
        checked_step(out, program, program->kernel_count);
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (program->home[graph->input[i]].first < 0)
            text_printf(out, "    (void)" STR_FMT ";\n", STR_ARG(run.port[i]));
    for (uint32_t i = 0; i < graph->output_count; i++) /* of no elements */
        if (program->home[graph->output[i].value].first < 0)
            text_printf(out, "    (void)" STR_FMT ";\n", STR_ARG(run.port[graph->input_count + i]));
    text_printf(out, "\n    return 0;\n}\n\n");
}
