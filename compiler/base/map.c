#include "base/map.h"

#include <string.h>

/* Open addressing with linear probing; at most two thirds full.  A free slot has a NULL key. */

static MapSlot *find(const Map *map, Str key, uint32_t hash)
{
    uint32_t mask = map->capacity - 1;
    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        MapSlot *slot = &map->slot[i];
        if (!slot->key.ptr || (slot->hash == hash && str_eq(slot->key, key)))
            return slot;
    }
}

/* By eight bytes at a time: keys of some kilobytes are common. */
static uint32_t spread(Str key)
{
    uint64_t hash = key.len, word;
    for (uint32_t at = 0; at < key.len; at += (uint32_t)sizeof word) {
        uint32_t left = key.len - at;
        word = 0;
        memcpy(&word, key.ptr + at, left < sizeof word ? left : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static void grow(Map *map)
{
    Map larger = {map->arena, NULL, map->count, map->capacity ? map->capacity * 2 : 16};
    larger.slot = ARENA_ARRAY(map->arena, MapSlot, larger.capacity);
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->slot[i].key.ptr)
            *find(&larger, map->slot[i].key, map->slot[i].hash) = map->slot[i];
    *map = larger;
}

uint32_t map_get(const Map *map, Str key)
{
    if (!map->count)
        return MAP_NONE;
    const MapSlot *slot = find(map, key, spread(key));
    return slot->key.ptr ? slot->value : MAP_NONE;
}

static MapSlot *slot_for(Map *map, Str key)
{
    if ((map->count + 1) * 3 > map->capacity * 2)
        grow(map);
    MapSlot *slot = find(map, key, spread(key));
    return slot;
}

static void fill(Map *map, MapSlot *slot, Str key, uint32_t value)
{
    map->count += !slot->key.ptr;
    *slot = (MapSlot){{key.ptr ? key.ptr : "", key.len}, spread(key), value};
}

void map_put(Map *map, Str key, uint32_t value)
{
    fill(map, slot_for(map, key), key, value);
}

bool map_add(Map *map, Str key, uint32_t value)
{
    MapSlot *slot = slot_for(map, key);
    if (slot->key.ptr)
        return false;
    fill(map, slot, key, value);
    return true;
}
