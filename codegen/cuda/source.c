/* NAME.cu and NAME.h: kernels as __global__ functions and NAME_run, which launches them in order on a stream. */
#include "base/number.h"
#include "c/source.h"
#include "cuda/unit.h"

#include <string.h>

/* Functions */

/* Weights that are device arrays go by the array's own name: the host has no address of them to hand to a kernel. */
static void name_weights(const CudaUnit *unit, const Entry *entry, const Kernel *kernel, KernelNames *names,
                         bool *global)
{
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const Storage *storage = entry_storage(entry, kernel->buffer[b].storage);
        global[b] = storage->role == STORAGE_WEIGHTS && cuda_weights_in_source(unit->program);
        if (global[b])
            names->buffer[b] = source_weight_name(unit->program, unit->arena, storage->index);
    }
}

static Str section_text(CudaUnit *unit, const Entry *entry, uint32_t k, const Section *section, KernelNames *names)
{
    const Kernel *kernel = &entry->memory.kernel[k];
    const bool *aliased = source_aliased(entry, unit->arena, k);
    bool *global = ARENA_ARRAY(unit->arena, bool, kernel->buffer_count);
    Text text = {0};
    name_weights(unit, entry, kernel, names, global);
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

static void note_meets(CudaUnit *unit, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->kind == STMT_MEET)
            cuda_need_meet(&unit->meets, &unit->needs, unit->arena, stmt->word, stmt->local->dtype);
        note_meets(unit, &stmt->body);
        note_meets(unit, &stmt->other);
    }
}

static uint32_t function_for(CudaUnit *unit, const Entry *entry, const Step *step)
{
    const Section *section = step->section;
    const Kernel *kernel = &entry->memory.kernel[step->kernel];
    KernelNames names;
    print_role_names(unit->arena, kernel, print_itself(unit->arena, kernel), &names);
    Str text = section_text(unit, entry, step->kernel, section, &names);
    Str key = str_format(unit->arena, "%lld " STR_FMT, (long long)section->blocks, STR_ARG(text));
    uint32_t known = map_get(&unit->by_text, key);
    if (known == MAP_NONE) {
        known = unit->function_count;
        map_put(&unit->by_text, key, known);
        Str name = names_add(&unit->names, unit->arena, source_identifier(unit->arena, kernel->name), '_', 0);
        ARENA_PUSH(unit->arena, unit->function, unit->function_count, unit->function_capacity,
                   ((CudaFunction){name, entry, step->kernel, section, 0}));
    }
    unit->function[known].users++;
    return known;
}

static void print_functions(Text *out, CudaUnit *unit)
{
    for (uint32_t f = 0; f < unit->function_count; f++) {
        const CudaFunction *function = &unit->function[f];
        const Kernel *kernel = &function->entry->memory.kernel[function->kernel];
        KernelNames names = source_function_names(function->entry, unit->arena, function->kernel, function->users,
                                                  function->name, print_itself(unit->arena, kernel));
        Str text = section_text(unit, function->entry, function->kernel, function->section, &names);
        text_printf(out, STR_FMT "\n", STR_ARG(text));
    }
}

/* Recurses over the nesting of loops and branches. */
static void make_launches(CudaUnit *unit, uint32_t e, const StepList *list)
{
    for (uint32_t s = 0; s < list->count; s++) {
        const Step *step = &list->step[s];
        if (step->kind == STEP_LAUNCH)
            unit->of_step[e][step->number] = function_for(unit, &unit->program->entry[e], step);
        for (uint32_t i = 0; i < step->body_count; i++)
            make_launches(unit, e, &step->body[i]);
    }
}

static void make_entry(CudaUnit *unit, uint32_t e)
{
    const Entry *entry = &unit->program->entry[e];
    unit->of_step[e] = ARENA_ARRAY(unit->arena, uint32_t, entry->steps.launches);
    for (uint32_t k = 0; k < entry->memory.kernel_count; k++)
        note_meets(unit, &entry->memory.kernel[k].body);
    make_launches(unit, e, &entry->steps.list);
}

static void make_unit(CudaUnit *unit, const Program *program, Arena *arena)
{
    *unit = (CudaUnit){.program = program, .arena = arena, .by_text = {.arena = arena}};
    unit->names.taken.arena = arena;
    unit->of_step = ARENA_ARRAY(arena, uint32_t *, program->entry_count);
    source_take_names(program, arena, &unit->names.taken);
    for (uint32_t e = 0; e < program->entry_count; e++)
        make_entry(unit, e);
}

/* What only states and conditions need. */
static const char call_text[] =
    "#define NNC_CALL(call)                                                    \\\n"
    "    do {                                                                  \\\n"
    "        const cudaError_t call_status = (call);                           \\\n"
    "        if (call_status != cudaSuccess)                                   \\\n"
    "            return (int)call_status;                                      \\\n"
    "    } while (0)\n\n";

static bool has_flow(const Program *program)
{
    bool has = false;
    for (uint32_t e = 0; e < program->entry_count; e++)
        has |= program->entry[e].memory.regions != NULL;
    return has;
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

static void print_source(Text *out, CudaUnit *unit)
{
    const Program *program = unit->program;
    source_head(out, program, ".cu", "kernels and the order they are launched in");
    text_printf(out,
                "/* Compile with: nvcc -O3 %s */\n#include \"" STR_FMT
                ".h\"\n\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n\n%s",
                program->options.target->cc_flags, STR_ARG(program->options.name), launch_text);
    source_start_needs(program, &unit->needs, unit->arena);
    cuda_print_prelude(out, unit->arena, &unit->needs, &unit->meets);
    for (uint32_t w = 0; cuda_weights_in_source(program) && w < program->weight_count; w++)
        source_weight_array(out, program, unit->arena, w, "static __device__ const");
    if (program->kept.count || has_flow(program))
        text_str(out, str_from(call_text));
    cuda_print_start_functions(out, unit);
    print_functions(out, unit);
    for (uint32_t e = 0; e < program->entry_count; e++) {
        text_printf(out, "%s", e ? "\n" : "");
        cuda_print_run(out, unit, e);
    }
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        cuda_print_start(out, unit, block);
}

/* The header */

static void print_sizes(Text *out, const Program *program, const char *shout)
{
    text_printf(out, "#define %s_ARENA_BYTES %lld /* of device memory; alignment %d; nothing else is written */\n",
                shout, (long long)program->arena_bytes, ARENA_ALIGNMENT);
    source_kept_sizes(out, program, "of device memory; ");
    if (!cuda_weights_in_source(program))
        text_printf(out,
                    "#define %s_WEIGHTS_BYTES %lld /* of " STR_FMT ".weights, to copy to the device; alignment %d */\n",
                    shout, (long long)program->weights_bytes, STR_ARG(program->options.name), WEIGHTS_ALIGNMENT);
    text_char(out, '\n');
}

static void print_prototype(Text *out, const Entry *entry, Arena *arena)
{
    bool handed = !cuda_weights_in_source(entry->program), params = entry_keeps(entry, BLOCK_PARAMS),
         state = entry_keeps(entry, BLOCK_STATE);
    source_interface(out, entry, arena);
    text_printf(
        out,
        " * All pointers are to device memory, and arrays do not overlap. Work is put on the stream and not waited "
        "for.\n"
        " * Returns 0, the first error of a launch, or cudaErrorInvalidValue when the arena%s%s%s %s %snot aligned. "
        "*/\n",
        handed ? " or weights" : "", params ? " or params" : "", state ? " or state" : "",
        handed || params ? "are" : "is", entry->program->arena_bytes || handed || params || state ? "missing or " : "");
    cuda_print_signature(out, entry, arena);
    text_printf(out, ";\n\n");
}

static void print_header(Text *out, const Program *program, Arena *arena)
{
    Str name = program->options.name;
    const char *shout = source_upper(arena, name);
    source_head(out, program, ".h", "a neural network as one function, on a GPU");
    text_printf(out,
                "#ifndef %s_H\n#define %s_H\n\n#include <cuda_runtime_api.h>\n#include <stdint.h>\n\n"
                "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
                shout, shout);
    print_sizes(out, program, shout);
    for (uint32_t e = 0; e < program->entry_count; e++)
        print_prototype(out, &program->entry[e], arena);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++) {
        if (!program->kept.bytes[block])
            continue;
        text_printf(out, "/* Fills the %s with first values: once, before the first call.%s */\n",
                    source_block_name(block), block == BLOCK_PARAMS ? " Seed 0 draws as the model says." : "");
        text_printf(out, STR_FMT ", cudaStream_t stream);\n\n", STR_ARG(source_start_signature(program, block, arena)));
    }
    text_printf(out, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

void emit_cuda(const Program *program, Text *source, Text *header)
{
    Arena arena = {0};
    CudaUnit unit;
    make_unit(&unit, program, &arena);
    print_source(source, &unit);
    print_header(header, program, &arena);
    arena_free(&arena);
}
