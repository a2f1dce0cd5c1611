/* Storage: one record for every piece of memory that a program's kernels touch.
 *
 * Storage v < value_count belongs to value v of the graph; behind those stand the scratch of kernels, arrays of weights
 * and arrays that the threads of a block share.  Who decides what: parts.c says what lies inside what, inplace.c what
 * is written over what, state.c where the next value of a state is made, lives.c roles, bytes and lives, the plan
 * offsets. */
#ifndef NNC_KERNEL_STORAGE_H
#define NNC_KERNEL_STORAGE_H

#include "ir/graph.h"

typedef uint32_t StorageId;

typedef enum StorageRole {
    STORAGE_NONE,    /* a value inside a kernel, a view, or a part of another: no bytes of its own */
    STORAGE_ARENA,   /* planned */
    STORAGE_INPUT,   /* the caller's array, read only; index = position among inputs */
    STORAGE_OUTPUT,  /* the caller's array; index = position among outputs */
    STORAGE_PARAMS,  /* in the block of params that entries update; index = which of Memory.state */
    STORAGE_STATE,   /* in the block of all else that is kept between calls; index likewise */
    STORAGE_WEIGHTS, /* constant; index = array of the weights */
    STORAGE_PACKED,  /* made of params by NAME_pack, read only; index = array of the packed block */
    STORAGE_SCRATCH, /* planned, alive in one step; index = that step */
    STORAGE_PASSED,  /* a pointer, to a place of its family or elsewhere (storage/flow.h) */
    STORAGE_TURNS,   /* made at the place of its family that is free then */
    STORAGE_SHARED,  /* of the threads of a block: no memory of ours */
} StorageRole;

/* Which no run changes? */
static inline bool storage_is_constant(StorageRole role)
{
    return role == STORAGE_WEIGHTS || role == STORAGE_PACKED;
}

/* Kept between calls? */
static inline bool storage_is_kept(StorageRole role)
{
    return role == STORAGE_PARAMS || role == STORAGE_STATE;
}

typedef struct Storage {
    StorageRole role;
    DType dtype;
    int64_t bytes;
    ValueId value; /* whose elements it holds; NONE for scratch and shared arrays */
    uint32_t index;
    bool next;       /* params, state: made by this run, for the next one */
    bool carries;    /* scratch: see recipe.h */
    bool nibbles;    /* weights: bytes that have values of 4 bits lie two to a byte, the even one in the low half */
    bool per_thread; /* scratch: every thread that runs rounds of the kernel at once needs its own ... */
    int64_t apart;   /* ... so many bytes behind the one before */

    /* A value that lies inside another one, so that putting them together copies nothing. */
    StorageId inside;                    /* the value that is put together; NONE: memory of its own */
    uint32_t operand;                    /* as which operand of the node that makes it */
    StorageId whole;                     /* the outermost value around it, which has memory; itself */
    bool settled;                        /* begin and stride are known: */
    int64_t begin, stride[MAX_RANK + 1]; /* in elements of the whole; per dimension of the value's nest */
    bool has_parts;                      /* others lie inside it */
    int64_t parts_end;                   /* from this step on nothing reads those; 0: nothing does */

    int64_t first, last;     /* alive in steps [first, last); first < 0: never touched */
    const struct Life *life; /* the same with its holes; NULL in a graph without loops and branches */
    uint32_t family;         /* of Memory.family; NONE */
    bool fixed;              /* the family has one place, and all of it is always there */
    uint32_t buffer;         /* of the plan; the last one where a whole grows with its parts */
    int64_t offset;          /* bytes from the start of the arena, or of the weights */
} Storage;

typedef struct Storages {
    Storage *at;
    uint32_t count, capacity;
} Storages;

#endif
