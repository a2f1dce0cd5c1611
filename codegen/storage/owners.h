/* Whose elements the bytes of the arena hold, as kernels run one after the other. */
#ifndef NNC_STORAGE_OWNERS_H
#define NNC_STORAGE_OWNERS_H

#include "storage/memory.h"

typedef struct Owner { /* bytes [begin, end) hold elements of `of` */
    int64_t begin, end;
    StorageId of;
} Owner;

typedef struct Loss { /* bytes that held elements of a storage, until another one was written there */
    Extent bytes;
    uint32_t next;
} Loss;

typedef struct Owners {
    Arena *arena;
    Owner *at; /* ascending, apart; neighbours of one owner are one */
    uint32_t count, capacity;
    Loss *loss;
    uint32_t loss_count, loss_capacity, *first_loss; /* by storage; NONE */
} Owners;

Owners owners_new(Arena *arena, uint32_t storage_count);  /* nobody's */
uint32_t owners_find(const Owners *owners, int64_t byte); /* the first that ends behind it; or count */
void owners_take(Owners *owners, StorageId id, Extent bytes);
bool owners_lost(const Owners *owners, StorageId id, Extent bytes); /* has anyone taken some of these from it? */

#endif
