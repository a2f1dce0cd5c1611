#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"

#define FIRST_CHUNK   ((size_t)64 << 10)
#define LARGEST_CHUNK ((size_t)8 << 20) /* chunks double up to here; a larger request gets a chunk of its own */

struct ArenaChunk {
    ArenaChunk *older;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

static ArenaChunk *new_chunk(ArenaChunk *older, size_t least)
{
    size_t size = older ? older->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    if (size < least)
        size = least;

    ArenaChunk *chunk = size <= SIZE_MAX - sizeof *chunk ? malloc(sizeof *chunk + size) : NULL;
    if (!chunk)
        fatal_memory(size);
    chunk->older = older;
    chunk->used = 0;
    chunk->size = size;
    return chunk;
}

void *arena_alloc(Arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX - 15)
        fatal_memory(bytes);
    bytes = (bytes + 15) & ~(size_t)15;

    ArenaChunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < bytes)
        chunk = arena->chunk = new_chunk(chunk, bytes);
    void *memory = chunk->bytes + chunk->used;
    chunk->used += bytes;
    return memset(memory, 0, bytes);
}

void *arena_copy(Arena *arena, const void *from, size_t bytes)
{
    void *to = arena_alloc(arena, bytes);
    if (bytes)
        memcpy(to, from, bytes);
    return to;
}

void *arena_grow(Arena *arena, void *array, uint32_t count, uint32_t *capacity, size_t element_bytes)
{
    uint32_t room = *capacity ? *capacity : 8;
    if (room > UINT32_MAX / 2)
        fatal_memory((size_t)room * element_bytes);
    *capacity = *capacity ? room * 2 : room;

    void *larger = arena_alloc(arena, *capacity * element_bytes);
    if (count)
        memcpy(larger, array, count * element_bytes);
    return larger;
}

ArenaMark arena_mark(const Arena *arena)
{
    return (ArenaMark){arena->chunk, arena->chunk ? arena->chunk->used : 0};
}

void arena_reset(Arena *arena, ArenaMark mark)
{
    while (arena->chunk != mark.chunk) {
        ArenaChunk *older = arena->chunk->older;
        free(arena->chunk);
        arena->chunk = older;
    }
    if (mark.chunk)
        mark.chunk->used = mark.used;
}

void arena_free(Arena *arena)
{
    arena_reset(arena, (ArenaMark){NULL, 0});
}
