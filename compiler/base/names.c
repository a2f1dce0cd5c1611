#include "base/names.h"

Str names_add(Names *names, Arena *arena, Str name, char between, uint32_t value)
{
    names->taken.arena = names->last.arena = arena;
    if (map_add(&names->taken, name, value))
        return name;
    uint32_t n = map_get(&names->last, name);
    Str numbered;
    n = n == MAP_NONE ? 1 : n;
    do
        numbered = str_format(arena, STR_FMT "%c%u", STR_ARG(name), between, ++n);
    while (!map_add(&names->taken, numbered, value));
    map_put(&names->last, name, n);
    return numbered;
}
