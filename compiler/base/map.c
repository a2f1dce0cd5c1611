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

static uint64_t load8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Fewer than eight bytes; copies of a known length are loads, others calls. */
static uint64_t load_few(const char *at, uint32_t count)
{
    uint32_t first = 0, last = 0;
    if (count < sizeof first) {
        for (uint32_t i = 0; i < count; i++)
            first = first << 8 | (unsigned char)at[i];
        return first;
    }
    memcpy(&first, at, sizeof first);
    memcpy(&last, at + count - sizeof last, sizeof last);
    return (uint64_t)first << 32 | last;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* Multiplied once more: the last bytes of a word, where the digits of `layer.1234` stand, reach high bits alone. */
static uint32_t finish(uint64_t hash)
{
    return (uint32_t)(hash * UINT64_C(0xd6e8feb86659fd93) >> 32);
}

/* By eight bytes at a time, the last eight once more where they end within a word: keys of some kilobytes are common.
 */
static uint32_t spread(Str key)
{
    if (key.len < 8)
        return finish(mix(key.len, load_few(key.ptr, key.len)));
    uint64_t hash = key.len;
    uint32_t at = 0;
    for (; at + 8 < key.len; at += 8)
        hash = mix(hash, load8(key.ptr + at));
    return finish(mix(hash, load8(key.ptr + key.len - 8)));
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

static MapSlot *slot_for(Map *map, Str key, uint32_t hash)
{
    if ((map->count + 1) * 3 > map->capacity * 2)
        grow(map);
    return find(map, key, hash);
}

static void fill(Map *map, MapSlot *slot, MapSlot content)
{
    map->count += !slot->key.ptr;
    content.key.ptr = content.key.ptr ? content.key.ptr : "";
    *slot = content;
}

void map_put(Map *map, Str key, uint32_t value)
{
    uint32_t hash = spread(key);
    fill(map, slot_for(map, key, hash), (MapSlot){key, hash, value});
}

bool map_add(Map *map, Str key, uint32_t value)
{
    uint32_t hash = spread(key);
    MapSlot *slot = slot_for(map, key, hash);
    if (slot->key.ptr)
        return false;
    fill(map, slot, (MapSlot){key, hash, value});
    return true;
}
