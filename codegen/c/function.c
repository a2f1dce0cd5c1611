/* The text of one kernel's function. */
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

Str unit_function_text(Unit *unit, const Entry *entry, uint32_t k, const Deal *deal, const KernelNames *names,
                       Constants *constants)
{
    const bool *aliased = source_aliased(entry, unit->arena, k);
    Text body = {0};
    print_kernel(&body, unit->arena, unit->program->options.target, &entry->memory.kernel[k], deal, names, aliased,
                 constants, &unit->needs);
    Str text = str_copy(unit->arena, text_view(&body));
    text_free(&body);
    return text;
}
