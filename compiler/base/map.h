/* A hash map from text, or from any key the caller hashes and compares, to a 32-bit number (usually an index).
 * Iteration order is never exposed, so that no result can depend on it. */
#ifndef NNC_BASE_MAP_H
#define NNC_BASE_MAP_H

#include "base/text.h"

#define MAP_NONE UINT32_MAX

typedef struct MapSlot {
    Str key;
    uint32_t hash, value;
} MapSlot;

typedef struct Map { /* zero is an empty map; keys must outlive it */
    Arena *arena;    /* where the table lives; set before the first map_put */
    MapSlot *slot;
    uint32_t count, capacity;
} Map;

uint32_t map_get(const Map *map, Str key);       /* MAP_NONE when absent */
void map_put(Map *map, Str key, uint32_t value); /* replaces an earlier value */
bool map_add(Map *map, Str key, uint32_t value); /* false, and no change, when the key is there already */

/* Bytes as a key: for numbers and small structs without padding. */
static inline Str map_key(const void *bytes, size_t count)
{
    return (Str){(const char *)bytes, (uint32_t)count};
}

#endif
