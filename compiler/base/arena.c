#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"

#define FIRST_CHUNK   ((size_t)64 << 10)
#define LARGEST_CHUNK ((size_t)8 << 20) /* chunks double up to here; a larger request gets a chunk of its own */

#define LARGE_ELEMENT 64 /* bytes: of such there are mostly one or two: nodes in the body of a call */

struct ArenaChunk {
    ArenaChunk *older;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

static ArenaChunk *new_chunk(Arena *arena, size_t least)
{
    ArenaChunk *older = arena->chunk, *chunk = arena->spare;
    if (chunk && chunk->size >= least) {
        arena->spare = NULL;
        *chunk = (ArenaChunk){.older = older, .size = chunk->size};
        return chunk;
    }
    size_t size = older ? older->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    if (size < least)
        size = least;

    chunk = size <= SIZE_MAX - sizeof *chunk ? malloc(sizeof *chunk + size) : NULL;
    if (!chunk)
        fatal_memory(size);
    chunk->older = older;
    chunk->used = 0;
    chunk->size = size;
    return chunk;
}

/* Not zeroed, but for what fills it up to 16 bytes */
static void *take(Arena *arena, size_t asked)
{
    if (asked > SIZE_MAX - 15)
        fatal_memory(asked);
    size_t bytes = (asked + 15) & ~(size_t)15;

    ArenaChunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < bytes)
        chunk = arena->chunk = new_chunk(arena, bytes);
    unsigned char *memory = chunk->bytes + chunk->used;
    chunk->used += bytes;
    memset(memory + asked, 0, bytes - asked);
    return memory;
}

void *arena_alloc(Arena *arena, size_t bytes)
{
    return memset(take(arena, bytes), 0, bytes);
}

void *arena_copy(Arena *arena, const void *from, size_t bytes)
{
    void *to = take(arena, bytes);
    if (bytes)
        memcpy(to, from, bytes);
    return to;
}

void *arena_grow(Arena *arena, void *array, uint32_t count, uint32_t *capacity, size_t element_bytes)
{
    uint32_t room = *capacity ? *capacity : element_bytes > LARGE_ELEMENT ? 2 : 8;
    if (room > UINT32_MAX / 2)
        fatal_memory((size_t)room * element_bytes);
    *capacity = *capacity ? room * 2 : room;

    size_t filled = count * element_bytes;
    unsigned char *larger = take(arena, *capacity * element_bytes);
    if (count)
        memcpy(larger, array, filled);
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
        ArenaChunk *unused = arena->chunk;
        if (unused->size <= LARGEST_CHUNK) { /* what is larger is not kept for what may never come */
            unused = arena->spare;
            arena->spare = arena->chunk;
        }
        free(unused);
        arena->chunk = older;
    }
    if (mark.chunk)
        mark.chunk->used = mark.used;
}

void arena_free(Arena *arena)
{
    arena_reset(arena, (ArenaMark){NULL, 0});
    free(arena->spare);
    arena->spare = NULL;
}
