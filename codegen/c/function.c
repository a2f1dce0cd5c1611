/* The text of one kernel's function. */
#include "c/unit.h"
#include "storage/flow.h"

#include <string.h>

/* Is the place of the one chosen so that it is not the other's? */
static bool avoids(const Entry *entry, const Storage *maker, const Storage *other)
{
    const ValueId *avoided = flow_avoided(&entry->memory, maker->value);
    while (*avoided != NONE && *avoided != other->value)
        avoided++;
    return *avoided != NONE;
}

/* Do they begin at one place, always? */
static bool is_one_place(const Storage *x, const Storage *y)
{
    bool arena_place = x->role == STORAGE_ARENA && x->offset == y->offset;
    bool state_place = storage_is_kept(x->role) && x->index == y->index && x->next == y->next;
    return x->role == y->role && (arena_place || state_place);
}

/* In place: two parameters of one function are the same memory. */
static bool are_aliased(const Entry *entry, const KernelBuffer *a, const KernelBuffer *b)
{
    const Storage *x = entry_storage(entry, a->storage), *y = entry_storage(entry, b->storage);
    bool passed = x->family != NONE && x->family == y->family && !avoids(entry, x, y) && !avoids(entry, y, x);
    return passed || is_one_place(x, y);
}

/* Whatever overlaps a buffer overlaps the one that serves it. */
static const bool *find_aliased(const Entry *entry, Arena *arena, uint32_t k, const uint32_t *inplace)
{
    const Kernel *kernel = &entry->memory.kernel[k];
    bool *aliased = ARENA_ARRAY(arena, bool, kernel->buffer_count);
    for (uint32_t a = 0; a < kernel->buffer_count; a++)
        for (uint32_t b = 0; b < a; b++)
            if (inplace[a] != inplace[b] && are_aliased(entry, &kernel->buffer[a], &kernel->buffer[b]))
                aliased[inplace[a]] = aliased[inplace[b]] = true;
    return aliased;
}

const bool *source_aliased(const Entry *entry, Arena *arena, uint32_t k)
{
    return find_aliased(entry, arena, k, print_itself(arena, &entry->memory.kernel[k]));
}

/* What is read of a tensor and what is written of it, the same elements under one type. */
static bool is_served(const Entry *entry, const KernelBuffer *read, const KernelBuffer *written)
{
    return !read->written && written->written && read->begin == written->begin && read->dtype == written->dtype &&
           strcmp(print_buffer_type(read), print_buffer_type(written)) == 0 &&
           is_one_place(entry_storage(entry, read->storage), entry_storage(entry, written->storage));
}

const uint32_t *unit_inplace(const Entry *entry, Arena *arena, uint32_t k)
{
    const Kernel *kernel = &entry->memory.kernel[k];
    uint32_t *inplace = print_itself(arena, kernel);
    for (uint32_t b = 0; b < kernel->buffer_count; b++) /* few are written, thousands may be read */
        for (uint32_t a = 0; kernel->buffer[b].written && a < kernel->buffer_count; a++)
            if (inplace[a] == a && is_served(entry, &kernel->buffer[a], &kernel->buffer[b]))
                inplace[a] = b;
    return inplace;
}

KernelMemory unit_kernel_memory(const Entry *entry, Arena *arena, uint32_t k)
{
    const uint32_t *inplace = unit_inplace(entry, arena, k);
    return (KernelMemory){find_aliased(entry, arena, k, inplace), inplace};
}

const bool *unit_parameters(const Entry *entry, Arena *arena, uint32_t k, const Deal *deal)
{
    return print_used(arena, &entry->memory.kernel[k], deal, unit_inplace(entry, arena, k));
}

Str unit_function_text(Unit *unit, const Entry *entry, uint32_t k, const Deal *deal, const KernelNames *names,
                       Constants *constants)
{
    Text body = {0};
    print_kernel(&body, unit->arena, unit->program->options.target, &entry->memory.kernel[k], deal, names,
                 unit_kernel_memory(entry, unit->arena, k), constants, &unit->needs);
    Str text = str_copy(unit->arena, text_view(&body));
    text_free(&body);
    return text;
}
