/* Bump allocation.  Results of a compilation live in one arena, temporaries in a scratch arena with mark and reset;
 * nothing is freed on its own.  Memory comes back zeroed and aligned to 16 bytes.  When the machine has no more, the
 * one fatal path of the tool (base/fatal.h) is taken, so no caller checks for NULL. */
#ifndef NNC_BASE_ARENA_H
#define NNC_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct ArenaChunk ArenaChunk;

typedef struct Arena {
    ArenaChunk *chunk; /* newest first */
    ArenaChunk *spare; /* given back last: marks near the end of a chunk are many */
} Arena;

typedef struct ArenaMark {
    ArenaChunk *chunk;
    size_t used;
} ArenaMark;

void *arena_alloc(Arena *arena, size_t bytes);
void *arena_copy(Arena *arena, const void *from, size_t bytes);
ArenaMark arena_mark(const Arena *arena);
void arena_reset(Arena *arena, ArenaMark mark); /* gives back all that was allocated since the mark */
void arena_free(Arena *arena);

/* Moves an array of `count` elements to a place with room for at least one more, which is not zeroed: much of it is
 * never used.  Returns the new array. */
void *arena_grow(Arena *arena, void *array, uint32_t count, uint32_t *capacity, size_t element_bytes);

#define ARENA_NEW(arena, T)          ((T *)arena_alloc((arena), sizeof(T)))
#define ARENA_ARRAY(arena, T, count) ((T *)arena_alloc((arena), sizeof(T) * (size_t)(count)))

/* Appends to a growable array held as three variables or members: array, count, capacity. */
#define ARENA_PUSH(arena, array, count, capacity, value)                                                               \
    do {                                                                                                               \
        if ((count) == (capacity))                                                                                     \
            (array) = arena_grow((arena), (array), (count), &(capacity), sizeof *(array));                             \
        (array)[(count)++] = (value);                                                                                  \
    } while (0)

#endif
