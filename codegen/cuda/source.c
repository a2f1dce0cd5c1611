/* NAME.cu and NAME.h: kernels as __global__ functions and NAME_run, which launches them in order on a stream. */
#include "c/source.h"
#include "cuda/prelude.h"
#include "cuda/section.h"

#include <string.h>

typedef struct Function { /* sections of equal text and launch share one */
    Str name;
    uint32_t kernel; /* of the first of its users */
    const Section *section;
    uint32_t users;
} Function;

typedef struct Unit {
    const Program *program;
    Arena *arena;
    const Str *port; /* source_port_names */
    PreludeNeeds needs;
    MeetNeeds meets;
    Function *function;
    uint32_t function_count, function_capacity;
    uint32_t *of_step; /* per step: its function */
    Map by_text, taken;
} Unit;

/* Functions */

static bool weights_in_source(const Program *program)
{
    return program_weights_form(program) == WEIGHTS_C;
}

/* Weights that are device arrays go by the array's own name: the host has no address of them to hand to a kernel. */
static void name_weights(const Unit *unit, const Kernel *kernel, KernelNames *names, bool *global)
{
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const Storage *storage = program_storage(unit->program, kernel->buffer[b].storage);
        global[b] = storage->role == STORAGE_WEIGHTS && weights_in_source(unit->program);
        if (global[b])
            names->buffer[b] = source_weight_name(unit->program, unit->arena, storage->index);
    }
}

static Str section_text(Unit *unit, uint32_t k, const Section *section, KernelNames *names)
{
    const Kernel *kernel = &unit->program->memory.kernel[k];
    const bool *aliased = source_aliased(unit->program, unit->arena, k);
    bool *global = ARENA_ARRAY(unit->arena, bool, kernel->buffer_count);
    Text text = {0};
    name_weights(unit, kernel, names, global);
    Printer printer = {.out = &text,
                       .arena = unit->arena,
                       .target = unit->program->options.target,
                       .kernel = kernel,
                       .names = names,
                       .needs = &unit->needs};
    cuda_print_section(&printer, section, aliased, global);
    Str copy = str_copy(unit->arena, text_view(&text));
    text_free(&text);
    return copy;
}

static void note_meets(Unit *unit, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->kind == STMT_MEET)
            cuda_need_meet(&unit->meets, &unit->needs, unit->arena, stmt->word, stmt->local->dtype);
        note_meets(unit, &stmt->body);
        note_meets(unit, &stmt->other);
    }
}

static uint32_t function_for(Unit *unit, uint32_t k, const Section *section)
{
    const Kernel *kernel = &unit->program->memory.kernel[k];
    KernelNames names;
    print_role_names(unit->arena, kernel, &names);
    Str text = section_text(unit, k, section, &names);
    Str key = str_format(unit->arena, "%lld " STR_FMT, (long long)section->blocks, STR_ARG(text));
    uint32_t known = map_get(&unit->by_text, key);
    if (known == MAP_NONE) {
        known = unit->function_count;
        map_put(&unit->by_text, key, known);
        Str name = kernel->name;
        for (int n = 2; !map_add(&unit->taken, name, 0); n++)
            name = str_format(unit->arena, STR_FMT "_%d", STR_ARG(kernel->name), n);
        ARENA_PUSH(unit->arena, unit->function, unit->function_count, unit->function_capacity,
                   ((Function){name, k, section, 0}));
    }
    unit->function[known].users++;
    return known;
}

static void print_functions(Text *out, Unit *unit)
{
    for (uint32_t f = 0; f < unit->function_count; f++) {
        const Function *function = &unit->function[f];
        KernelNames names =
            source_function_names(unit->program, unit->arena, function->kernel, function->users, function->name);
        text_printf(out, STR_FMT "\n", STR_ARG(section_text(unit, function->kernel, function->section, &names)));
    }
}

static void make_unit(Unit *unit, const Program *program, Arena *arena)
{
    *unit = (Unit){.program = program, .arena = arena, .by_text = {.arena = arena}, .taken = {.arena = arena}};
    unit->port = source_port_names(program, arena);
    unit->of_step = ARENA_ARRAY(arena, uint32_t, program->step_count);
    source_take_names(program, arena, &unit->taken);
    for (uint32_t k = 0; k < program->memory.kernel_count; k++)
        note_meets(unit, &program->memory.kernel[k].body);
    for (uint32_t s = 0; s < program->step_count; s++)
        unit->of_step[s] = function_for(unit, program->step[s].kernel, program->step[s].section);
}

/* NAME_run */

static void print_launch(Text *out, const Unit *unit, uint32_t s)
{
    const Program *program = unit->program;
    const Step *step = &program->step[s];
    const Kernel *kernel = &program->memory.kernel[step->kernel];
    text_printf(out, "    NNC_LAUNCH(" STR_FMT ", %lld, %u, stream", STR_ARG(unit->function[unit->of_step[s]].name),
                (long long)step->section->blocks, step->section->threads);
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        StorageRole role = program_storage(program, kernel->buffer[b].storage)->role;
        if (step->section->used[b] && role != STORAGE_SHARED &&
            !(role == STORAGE_WEIGHTS && weights_in_source(program)))
            text_printf(out, ", " STR_FMT, STR_ARG(source_argument(program, unit->port, unit->arena, step->kernel, b)));
    }
    text_printf(out, ");\n");
}

static void print_signature(Text *out, const Program *program, Arena *arena)
{
    text_printf(out, "int " STR_FMT "_run(", STR_ARG(program->options.name));
    source_parameters(out, program, arena);
    text_printf(out, ", cudaStream_t stream)");
}

/* Inputs that no kernel reads, outputs of no elements, and a stream without launches. */
static void print_unused(Text *out, const Unit *unit)
{
    const Graph *graph = unit->program->graph;
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        if (!unit->program->used[i])
            text_printf(out, "    (void)" STR_FMT ";\n", STR_ARG(unit->port[i]));
    if (!unit->program->step_count)
        text_printf(out, "    (void)stream;\n");
}

static void print_run(Text *out, const Unit *unit)
{
    const Program *program = unit->program;
    print_signature(out, program, unit->arena);
    text_printf(out, "\n{\n    unsigned char *const a = (unsigned char *)arena;\n");
    if (!weights_in_source(program))
        text_printf(out, "    const unsigned char *const w = (const unsigned char *)weights;\n");
    text_printf(out, "\n    if (%s(uintptr_t)a %% %d != 0)\n        return (int)cudaErrorInvalidValue;\n",
                program->arena_bytes ? "!a || " : "", ARENA_ALIGNMENT);
    if (!weights_in_source(program))
        text_printf(out, "    if (!w || (uintptr_t)w %% %d != 0)\n        return (int)cudaErrorInvalidValue;\n",
                    WEIGHTS_ALIGNMENT);
    uint32_t shown = NONE;
    for (uint32_t s = 0; s < program->step_count; s++) {
        uint32_t k = program->step[s].kernel;
        if (k != shown) {
            text_char(out, '\n');
            source_describe(out, program, &program->memory.kernel[k]);
            shown = k;
        }
        print_launch(out, unit, s);
    }
    print_unused(out, unit);
    text_printf(out, "\n    return 0;\n}\n");
}

static const char launch_text[] =
    "/* Launches a kernel; an error ends the function around, as its result.  A test may define it otherwise. */\n"
    "#ifndef NNC_LAUNCH\n"
    "#define NNC_LAUNCH(kernel, blocks, threads, stream, ...)                  \\\n"
    "    do {                                                                  \\\n"
    "        kernel<<<(blocks), (threads), 0, (stream)>>>(__VA_ARGS__);        \\\n"
    "        const cudaError_t launch_status = cudaGetLastError();             \\\n"
    "        if (launch_status != cudaSuccess)                                 \\\n"
    "            return (int)launch_status;                                    \\\n"
    "    } while (0)\n"
    "#endif\n\n";

static void print_source(Text *out, Unit *unit)
{
    const Program *program = unit->program;
    source_head(out, program, ".cu", "kernels and the order they are launched in");
    text_printf(out,
                "/* Compile with: nvcc -O3 %s */\n#include \"" STR_FMT
                ".h\"\n\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n\n%s",
                program->options.target->cc_flags, STR_ARG(program->options.name), launch_text);
    cuda_print_prelude(out, unit->arena, &unit->needs, &unit->meets);
    for (uint32_t w = 0; weights_in_source(program) && w < program->weights.count; w++)
        source_weight_array(out, program, unit->arena, w, "static __device__ const");
    print_functions(out, unit);
    print_run(out, unit);
}

/* The header */

static void print_header(Text *out, const Program *program, Arena *arena)
{
    Str name = program->options.name;
    const char *shout = source_upper(arena, name);
    bool handed = !weights_in_source(program);
    source_head(out, program, ".h", "a neural network as one function, on a GPU");
    text_printf(out,
                "#ifndef %s_H\n#define %s_H\n\n#include <cuda_runtime_api.h>\n#include <stdint.h>\n\n"
                "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
                shout, shout);
    text_printf(out, "#define %s_ARENA_BYTES %lld /* of device memory; alignment %d; nothing else is written */\n",
                shout, (long long)program->arena_bytes, ARENA_ALIGNMENT);
    if (handed)
        text_printf(out,
                    "#define %s_WEIGHTS_BYTES %lld /* of " STR_FMT ".weights, to copy to the device; alignment %d */\n",
                    shout, (long long)program->weights_bytes, STR_ARG(name), WEIGHTS_ALIGNMENT);
    text_char(out, '\n');
    source_interface(out, program, arena);
    text_printf(
        out,
        " * All pointers are to device memory, and arrays do not overlap. Work is put on the stream and not waited "
        "for.\n"
        " * Returns 0, the first error of a launch, or cudaErrorInvalidValue when the arena%s %snot aligned. */\n",
        handed ? " or weights are" : " is", program->arena_bytes || handed ? "missing or " : "");
    print_signature(out, program, arena);
    text_printf(out, ";\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

void emit_cuda(const Program *program, Text *source, Text *header)
{
    Arena arena = {0};
    Unit unit;
    make_unit(&unit, program, &arena);
    print_source(source, &unit);
    print_header(header, program, &arena);
    arena_free(&arena);
}
