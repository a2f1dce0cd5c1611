/* Names that are all different: where one is taken, a number is put behind it. */
#ifndef NNC_BASE_NAMES_H
#define NNC_BASE_NAMES_H

#include "base/map.h"

typedef struct Names { /* zero is none */
    Map taken;         /* may be filled by map_add, once its arena is set */
    Map last;          /* per name: the last number that was put behind it */
} Names;

/* The name, or the name with `between` and the first number from 2 on that gives one that is free; it is taken then.
 * Many of one name take no longer than others. */
Str names_add(Names *names, Arena *arena, Str name, char between, uint32_t value);

#endif
