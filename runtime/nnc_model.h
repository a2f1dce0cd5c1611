/* What an emitted model says of itself, for hosts that do not know it when they are built.
 *
 * Every emitted header carries this text, so that it stands alone; whichever comes first counts.  C99 and C++. */
#include <stddef.h>
#include <stdint.h>

#ifndef NNC_MODEL_ABI
#define NNC_MODEL_ABI 5 /* a change of these types gets a new number */

typedef struct nnc_tensor_info {
    const char *name;
    const char *dtype; /* "f64" "f32" "f16" "bf16" "i64" "i32" "i16" "i8" "u64" "u32" "u16" "u8" "bool" */
    int32_t rank;
    const int64_t *shape; /* rank extents; the array is row-major and without gaps */
    size_t bytes;
} nnc_tensor_info;

/* Threads that a caller lends for a run: the pool of nnc.h, or what a host has. */
typedef struct nnc_team {
    /* Calls part(call, i, thread) once for each i of 0 ... parts - 1, in any order or at once, and waits for them;
     * `thread` is below `threads` and differs for those at once. */
    void (*deal)(struct nnc_team *team, void (*part)(const void *call, int32_t part, int32_t thread), const void *call,
                 int32_t parts, int32_t threads);
} nnc_team;

typedef struct nnc_entry { /* one graph of the model: a function */
    const char *name;      /* "run" where there is one, else the graph's */
    uint32_t input_count, output_count;
    const nnc_tensor_info *input, *output;
    uint32_t updated_params, updated_states; /* how many of them a run changes: a training step has some of the first */
    int32_t packed;                          /* 1: its `params` is what the model's `pack` makes of them */
    /* Arrays in the order of `input` and `output`.  `weights` is the mapped file, or NULL where the code holds them;
     * `params` and `state` the model's blocks, or NULL where it has none.  Re-entrant: calls with different arenas and
     * states may run at the same time, over the same params when they update none.  `team` may be NULL.  Returns 0. */
    int (*run)(const void *const *input, void *const *output, void *arena, const void *weights, void *params,
               void *state, nnc_team *team);
} nnc_entry;

typedef struct nnc_slot { /* a tensor in a block */
    nnc_tensor_info tensor;
    size_t offset[2]; /* bytes from the block's start: the second while the byte `flag` of the block is 1 */
    int32_t flag;     /* -1: always the first, as of all params */
} nnc_slot;

typedef struct nnc_block { /* memory, aligned as the arena, that the caller keeps from run to run */
    size_t bytes;          /* 0: the model has none */
    uint32_t count;
    const nnc_slot *slot; /* all that lasts in it; what else there is are zeros, or means nothing between runs */
} nnc_block;

typedef struct nnc_model {
    uint32_t abi; /* NNC_MODEL_ABI of the compiler that wrote it */
    const char *name;
    uint32_t entry_count;
    const nnc_entry *entry;
    size_t arena_bytes, arena_alignment; /* scratch memory that the caller lends for a run of any entry */
    size_t weights_bytes;                /* of the weights file to map; 0: the code holds them */
    uint64_t weights_checksum;           /* of that file: XXH3, 64 bits, seed 0 */
    nnc_block params;                    /* weights that some entry updates: all entries read them there */
    nnc_block state;                     /* what else lasts: moments of optimisers, memories of streams */
    size_t packed_bytes;                 /* of params that were packed for entries that update none; 0: none are */
    /* These fill the blocks before the first run; NULL where there is none.  Seed 0 draws params as the model has them,
     * any other otherwise. */
    int (*params_init)(void *params, int64_t seed, const void *weights);
    int (*state_init)(void *state, const void *weights);
    int (*pack)(const void *params, void *packed); /* aligned as the arena; again after each change of the params */
    uint32_t threads;                              /* that a run can use, the caller's among them */
} nnc_model;

#endif
