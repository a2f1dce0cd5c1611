#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MADV_HUGEPAGE */
#include "base/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fatal.h"

#define FIRST_CHUNK   ((size_t)64 << 10) /* bytes with the chunk's head */
#define LARGEST_CHUNK ((size_t)8 << 20)  /* chunks double up to here; a larger request gets a chunk of its own */

#define LARGE_PAGE ((size_t)2 << 20)

#define LARGE_ELEMENT 64 /* bytes: of such there are mostly one or two: nodes in the body of a call */

struct ArenaChunk {
    ArenaChunk *older;
    size_t used, size;
    size_t dirty;  /* what lies behind was never used and is zero */
    size_t mapped; /* bytes from the system; 0: from malloc */
    _Alignas(16) unsigned char bytes[];
};

/* In large pages where the kernel lends them: a fault for every 4 kB would take a fifth of all the time. */
static ArenaChunk *map_chunk(size_t bytes)
{
    size_t whole = (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE, asked = whole + LARGE_PAGE;
    unsigned char *from = mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED)
        return NULL;
    size_t front = -(uintptr_t)from % LARGE_PAGE;
    if (front)
        munmap(from, front);
    munmap(from + front + whole, LARGE_PAGE - front);
#ifdef MADV_HUGEPAGE
    madvise(from + front, whole, MADV_HUGEPAGE); /* refused, all works as well */
#endif
    ArenaChunk *chunk = (ArenaChunk *)(from + front);
    *chunk = (ArenaChunk){.size = whole - sizeof *chunk, .mapped = whole};
    return chunk;
}

static ArenaChunk *make_chunk(size_t bytes)
{
    ArenaChunk *chunk = bytes >= LARGE_PAGE ? map_chunk(bytes) : malloc(bytes);
    if (!chunk)
        fatal_memory(bytes);
    if (bytes < LARGE_PAGE)
        *chunk = (ArenaChunk){.size = bytes - sizeof *chunk, .dirty = bytes - sizeof *chunk};
    return chunk;
}

static void free_chunk(ArenaChunk *chunk)
{
    if (chunk && chunk->mapped)
        munmap(chunk, chunk->mapped);
    else
        free(chunk);
}

static ArenaChunk *new_chunk(Arena *arena, size_t least)
{
    ArenaChunk *older = arena->chunk, *chunk = arena->spare;
    if (chunk && chunk->size >= least) {
        arena->spare = NULL;
        chunk->older = older;
        chunk->used = 0;
        return chunk;
    }
    if (least > SIZE_MAX / 2)
        fatal_memory(least);
    size_t bytes = older ? (sizeof *older + older->size) * 2 : FIRST_CHUNK;
    if (bytes > LARGEST_CHUNK)
        bytes = LARGEST_CHUNK;
    if (bytes < sizeof *chunk + least)
        bytes = sizeof *chunk + least;

    chunk = make_chunk(bytes);
    chunk->older = older;
    return chunk;
}

/* Zeroed, or only what fills it up to 16 bytes */
static void *take(Arena *arena, size_t asked, bool zeroed)
{
    if (asked > SIZE_MAX - 15)
        fatal_memory(asked);
    size_t bytes = (asked + 15) & ~(size_t)15;

    ArenaChunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < bytes)
        chunk = arena->chunk = new_chunk(arena, bytes);
    size_t from = chunk->used, to = from + bytes, keep = zeroed ? from : from + asked;
    if (keep < chunk->dirty)
        memset(chunk->bytes + keep, 0, (to < chunk->dirty ? to : chunk->dirty) - keep);
    if (chunk->dirty < to)
        chunk->dirty = to;
    chunk->used = to;
    return chunk->bytes + from;
}

void *arena_alloc(Arena *arena, size_t bytes)
{
    return take(arena, bytes, true);
}

void *arena_copy(Arena *arena, const void *from, size_t bytes)
{
    void *to = take(arena, bytes, false);
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
    unsigned char *larger = take(arena, *capacity * element_bytes, false);
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
        free_chunk(unused);
        arena->chunk = older;
    }
    if (mark.chunk)
        mark.chunk->used = mark.used;
}

void arena_free(Arena *arena)
{
    arena_reset(arena, (ArenaMark){NULL, 0});
    free_chunk(arena->spare);
    arena->spare = NULL;
}
