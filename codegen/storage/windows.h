/* Windows: what memory the rounds of a loop touch, so that it can be told whether they are apart (deal.h). */
#ifndef NNC_STORAGE_WINDOWS_H
#define NNC_STORAGE_WINDOWS_H

#include "storage/reach.h"

#define NEST_LOOPS 8  /* one inside another, of which one may be dealt */
#define MOST_NESTS 64 /* each is compared with each */

/* Of tiles that go on from chunk to chunk, the last chunk may have fewer: each * chunk + tile < limit. */
typedef struct Chunks {
    const Var *chunk, *tile;
    int64_t each, limit;
} Chunks;

/* A statement at the top of a kernel's body, with the loops around all that it does. */
typedef struct DealNest {
    const Stmt *stmt;
    const Stmt *loop[NEST_LOOPS]; /* outermost first; of constant bounds, with more than one round */
    uint32_t loop_count;
    Reached reached; /* addresses by loops alone: positions that have names are put in */
    bool *stores;    /* per buffer */
    const Chunks *chunks;
    uint32_t chunk_count;
    const Stmt *chosen; /* of `loop`: to be dealt; NULL: none */
} DealNest;

/* The nests of a lowered kernel; NULL where some of what stands between them serves all, or there are too many. */
DealNest *windows_nests(const Kernel *kernel, Arena *arena, uint32_t *count);

/* Can the chosen loops of both be dealt at once, or one nest, without a loop, be run by one thread beside the other? */
bool windows_apart(const Memory *memory, const Kernel *kernel, const DealNest *a, const DealNest *b);

/* Does the nest read of the storage only what it has written itself, by the order of its statements? */
bool windows_own(const Memory *memory, const Kernel *kernel, const DealNest *nest, StorageId storage);

/* Can the chosen loop of the nest be dealt? */
bool windows_deals(const Memory *memory, const Kernel *kernel, const DealNest *nest);

#endif
