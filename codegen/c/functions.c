/* The kernels of NAME.c as functions; those of equal text share one. */
#include <string.h>

#include "c/unit.h"

/* In memory that several share, under a type by which a compiler tells them apart: not bytes, which may be anything. */
static bool is_plain_type(const Entry *entry, const KernelBuffer *buffer)
{
    StorageRole role = entry_storage(entry, buffer->storage)->role;
    return dtype_bytes(buffer->dtype) > 1 && !storage_is_constant(role) && role != STORAGE_INPUT;
}

static bool has_other_type(const Entry *entry, const Kernel *kernel, DType dtype)
{
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        if (is_plain_type(entry, &kernel->buffer[b]) && kernel->buffer[b].dtype != dtype)
            return true;
    return false;
}

/* Of several types, so that memory may hold one after the other. */
static bool retypes(const Program *program)
{
    bool seen[DT_COUNT] = {false};
    uint32_t types = 0;
    for (uint32_t e = 0; e < program->entry_count; e++)
        for (uint32_t k = 0; k < program->entry[e].memory.kernel_count; k++) {
            const Kernel *kernel = &program->entry[e].memory.kernel[k];
            for (uint32_t b = 0; b < kernel->buffer_count; b++) {
                DType dtype = kernel->buffer[b].dtype;
                types += is_plain_type(&program->entry[e], &kernel->buffer[b]) && !seen[dtype];
                seen[dtype] |= is_plain_type(&program->entry[e], &kernel->buffer[b]);
            }
        }
    return types > 1;
}

void unit_make(Unit *unit, const Program *program, Arena *arena)
{
    *unit = (Unit){.program = program, .arena = arena, .names.taken.arena = arena};
    source_take_names(program, arena, &unit->names.taken);
    unit->retypes = retypes(program);
    unit_share(unit);
}

/* False where the value has no name, or another buffer has it. */
static bool take_value_name(const Graph *graph, Arena *arena, Map *taken, ValueId value, uint32_t b, Str *name)
{
    if (value == NONE || !graph->value[value].name.len)
        return false;
    Str wanted = source_safe_name(arena, graph->value[value].name, true);
    if (!map_add(taken, wanted, b))
        return false;
    *name = wanted;
    return true;
}

/* A kernel that stands in one place carries the model's names; what has none there keeps its role. */
static void take_model_names(const Entry *entry, Arena *arena, uint32_t k, const uint32_t *inplace, KernelNames *names)
{
    const Kernel *kernel = &entry->memory.kernel[k];
    const Graph *graph = entry->graph;
    Map taken = {.arena = arena};
    print_role_names(arena, kernel, inplace, names);
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const Storage *storage = entry_storage(entry, kernel->buffer[b].storage);
        map_add(&taken, names->buffer[b], b);
        if (storage->role == STORAGE_WEIGHTS) /* kernels on a GPU go by the array's own name */
            map_add(&taken, source_weight_name(entry->program, arena, storage->index), b);
    }
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const KernelBuffer *buffer = &kernel->buffer[b];
        const Storage *storage = entry_storage(entry, buffer->storage);
        bool packed = storage_is_constant(storage->role) && source_array(entry, storage)->packing.rank;
        if (packed || inplace[b] != b)
            continue;
        /* the next value of a state, in its place, is called like the state, as NAME_run calls it */
        bool kept = storage_is_kept(storage->role) && !storage->next;
        ValueId state = kept ? entry->memory.state[storage->index].value : NONE;
        ValueId value = buffer->part != NONE ? buffer->part : storage->value;
        if (!take_value_name(graph, arena, &taken, state, b, &names->buffer[b]))
            take_value_name(graph, arena, &taken, value, b, &names->buffer[b]);
    }
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        names->buffer[b] = names->buffer[inplace[b]];
}

KernelNames source_function_names(const Entry *entry, Arena *arena, uint32_t k, uint32_t users, Str function,
                                  const uint32_t *inplace)
{
    KernelNames names;
    if (users == 1)
        take_model_names(entry, arena, k, inplace, &names);
    else
        print_role_names(arena, &entry->memory.kernel[k], inplace, &names);
    names.function = function;
    return names;
}

KernelNames unit_function_names(Unit *unit, const Function *function)
{
    const Sharing *sharing = &function->sharing;
    KernelNames names =
        source_function_names(function->entry, unit->arena, function->kernel, function->users, function->name,
                              unit_inplace(function->entry, unit->arena, function->kernel));
    names.parameter = ARENA_ARRAY(unit->arena, Str, sharing->count);
    names.type = ARENA_ARRAY(unit->arena, const char *, sharing->count);
    for (uint32_t p = 0; p < sharing->count; p++)
        if (sharing->parameter[p].constant < function->printed) {
            names.type[names.parameters] = sharing->parameter[p].type;
            names.parameter[names.parameters++] = sharing->parameter[p].name;
        }
    return names;
}

#define MANY_FUNCTIONS  12 /* that compilers would put into one */
#define MANY_STATEMENTS 1000

static bool has_many(const Unit *unit)
{
    uint64_t statements = 0;
    for (uint32_t f = 0; f < unit->function_count && unit->function_count <= MANY_FUNCTIONS; f++)
        statements += block_count(&unit->function[f].entry->memory.kernel[unit->function[f].kernel].body);
    return unit->function_count > MANY_FUNCTIONS || (unit->function_count > 1 && statements > MANY_STATEMENTS);
}

bool unit_has_apart(const Unit *unit)
{
    return unit->program->options.target->dialect == DIALECT_C99 && (unit->retypes || has_many(unit));
}

void unit_print_functions(Text *out, Unit *unit)
{
    for (uint32_t f = 0; f < unit->function_count; f++) {
        const Function *function = &unit->function[f];
        KernelNames names = unit_function_names(unit, function);
        Constants constants = {.written = function->sharing.written};
        Str text = unit_function_text(unit, function->entry, function->kernel, function->deal, &names,
                                      constants.written ? &constants : NULL);
        /* side by side with others, only those of one type: see NNC_APART */
        const Kernel *kernel = &function->entry->memory.kernel[function->kernel];
        bool apart = unit_has_apart(unit) && (has_many(unit) || has_other_type(function->entry, kernel, DT_F32));
        bool said = !strncmp(text.ptr, "NNC_APART", strlen("NNC_APART")); /* of held addresses */
        text_printf(out, "%s%s" STR_FMT, f ? "\n" : "", apart && !said ? "NNC_APART\n" : "", STR_ARG(text));
        if (function->part.len)
            unit_print_part(out, unit, function, &names);
    }
}
