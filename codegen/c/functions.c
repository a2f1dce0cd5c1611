/* The kernels of NAME.c as functions; those of equal text share one. */
#include <ctype.h>

#include "c/unit.h"
#include "storage/flow.h"

/* Is the place of the one chosen so that it is not the other's? */
static bool avoids(const Entry *entry, const Storage *maker, const Storage *other)
{
    const ValueId *avoided = flow_avoided(&entry->memory, maker->value);
    while (*avoided != NONE && *avoided != other->value)
        avoided++;
    return *avoided != NONE;
}

/* In place: two parameters of one function are the same memory. */
const bool *source_aliased(const Entry *entry, Arena *arena, uint32_t k)
{
    const Kernel *kernel = &entry->memory.kernel[k];
    bool *aliased = ARENA_ARRAY(arena, bool, kernel->buffer_count);
    for (uint32_t a = 0; a < kernel->buffer_count; a++)
        for (uint32_t b = 0; b < a; b++) {
            const Storage *x = entry_storage(entry, kernel->buffer[a].storage),
                          *y = entry_storage(entry, kernel->buffer[b].storage);
            bool passed = x->family != NONE && x->family == y->family && !avoids(entry, x, y) && !avoids(entry, y, x);
            bool arena_place = x->role == STORAGE_ARENA && x->offset == y->offset;
            bool state_place = storage_is_kept(x->role) && x->index == y->index && x->next == y->next;
            if (passed || (x->role == y->role && (arena_place || state_place)))
                aliased[a] = aliased[b] = true;
        }
    return aliased;
}

static Str print_function(Unit *unit, const Entry *entry, uint32_t k, const Deal *deal, const KernelNames *names)
{
    const bool *aliased = source_aliased(entry, unit->arena, k);
    Text body = {0};
    print_kernel(&body, unit->arena, unit->program->options.target, &entry->memory.kernel[k], deal, names, aliased,
                 &unit->needs);
    Str text = str_copy(unit->arena, text_view(&body));
    text_free(&body);
    return text;
}

static Str new_name(Unit *unit, Str stem, const char *suffix)
{
    return names_add(&unit->names, unit->arena, str_format(unit->arena, STR_FMT "%s", STR_ARG(stem), suffix), '_', 0);
}

/* Of scratch that every thread has for itself, how far apart theirs are is not in the text of the kernel. */
static Str key_of(Unit *unit, const Entry *entry, const Step *step)
{
    const Kernel *kernel = &entry->memory.kernel[step->kernel];
    KernelNames names;
    print_role_names(unit->arena, kernel, &names);
    Str key = print_function(unit, entry, step->kernel, step->deal, &names);
    if (!step->deal || !step->deal->part)
        return key;
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const Storage *storage = entry_storage(entry, kernel->buffer[b].storage);
        if (storage->per_thread)
            key = str_format(unit->arena, STR_FMT " %lld", STR_ARG(key), (long long)storage->apart);
    }
    return str_format(unit->arena, STR_FMT " of %lld", STR_ARG(key), (long long)step->deal->part->high + 1);
}

static uint32_t function_for(Unit *unit, const Entry *entry, const Step *step)
{
    Str key = key_of(unit, entry, step);
    uint32_t known = map_get(&unit->by_body, key);
    if (known == MAP_NONE) {
        Function function = {.entry = entry, .kernel = step->kernel, .deal = step->deal};
        known = unit->function_count;
        function.name = new_name(unit, entry->memory.kernel[step->kernel].name, "");
        if (step->deal && step->deal->part) {
            function.call = new_name(unit, function.name, "_call");
            function.part = new_name(unit, function.name, "_part");
        }
        map_put(&unit->by_body, key, known);
        ARENA_PUSH(unit->arena, unit->function, unit->function_count, unit->function_capacity, function);
    }
    unit->function[known].users++;
    return known;
}

/* Recurses over the nesting of loops and branches. */
static void make_functions(Unit *unit, uint32_t e, const StepList *list)
{
    for (uint32_t s = 0; s < list->count; s++) {
        const Step *step = &list->step[s];
        if (step->kind == STEP_LAUNCH)
            unit->of_step[e][step->number] = function_for(unit, &unit->program->entry[e], step);
        for (uint32_t i = 0; i < step->body_count; i++)
            make_functions(unit, e, &step->body[i]);
    }
}

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
    *unit = (Unit){.program = program, .arena = arena, .by_body = {.arena = arena}};
    unit->names.taken.arena = arena;
    unit->of_step = ARENA_ARRAY(arena, uint32_t *, program->entry_count);
    source_take_names(program, arena, &unit->names.taken);
    unit->retypes = retypes(program);
    for (uint32_t e = 0; e < program->entry_count; e++) {
        unit->of_step[e] = ARENA_ARRAY(arena, uint32_t, program->entry[e].steps.launches);
        make_functions(unit, e, &program->entry[e].steps.list);
    }
}

/* A kernel that stands in one place carries the model's names; what has none there keeps its role. */
static void take_model_names(const Entry *entry, Arena *arena, uint32_t k, KernelNames *names)
{
    const Kernel *kernel = &entry->memory.kernel[k];
    const Graph *graph = entry->graph;
    Map taken = {.arena = arena};
    print_role_names(arena, kernel, names);
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const Storage *storage = entry_storage(entry, kernel->buffer[b].storage);
        map_add(&taken, names->buffer[b], b);
        if (storage->role == STORAGE_WEIGHTS) /* kernels on a GPU go by the array's own name */
            map_add(&taken, source_weight_name(entry->program, arena, storage->index), b);
    }
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const KernelBuffer *buffer = &kernel->buffer[b];
        const Storage *storage = entry_storage(entry, buffer->storage);
        ValueId value = buffer->part != NONE ? buffer->part : storage->value;
        bool packed = storage_is_constant(storage->role) && source_array(entry, storage)->packing.rank;
        if (value == NONE || packed || !graph->value[value].name.len)
            continue;
        Str name = source_safe_name(arena, graph->value[value].name, true);
        if (map_add(&taken, name, b))
            names->buffer[b] = name;
    }
}

KernelNames source_function_names(const Entry *entry, Arena *arena, uint32_t k, uint32_t users, Str function)
{
    KernelNames names;
    if (users == 1)
        take_model_names(entry, arena, k, &names);
    else
        print_role_names(arena, &entry->memory.kernel[k], &names);
    names.function = function;
    return names;
}

#define MANY_FUNCTIONS 12 /* that compilers would put into one */

static bool has_many(const Unit *unit)
{
    return unit->function_count > MANY_FUNCTIONS;
}

bool unit_has_apart(const Unit *unit)
{
    return unit->program->options.target->dialect == DIALECT_C99 && (unit->retypes || has_many(unit));
}

void unit_print_functions(Text *out, Unit *unit)
{
    for (uint32_t f = 0; f < unit->function_count; f++) {
        const Function *function = &unit->function[f];
        KernelNames names =
            source_function_names(function->entry, unit->arena, function->kernel, function->users, function->name);
        Str text = print_function(unit, function->entry, function->kernel, function->deal, &names);
        /* side by side with others, only those of one type: see NNC_APART */
        const Kernel *kernel = &function->entry->memory.kernel[function->kernel];
        bool apart = unit_has_apart(unit) && (has_many(unit) || has_other_type(function->entry, kernel, DT_F32));
        text_printf(out, "%s%s" STR_FMT, f ? "\n" : "", apart ? "NNC_APART " : "", STR_ARG(text));
        if (function->part.len)
            unit_print_part(out, unit, function, &names);
    }
}
