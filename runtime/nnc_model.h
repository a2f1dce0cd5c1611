/* What an emitted model says of itself, for hosts that do not know it when they are built.
 *
 * Every emitted header carries this text, so that it stands alone; whichever comes first counts.  C99 and C++. */
#include <stddef.h>
#include <stdint.h>

#ifndef NNC_MODEL_ABI
#define NNC_MODEL_ABI 2 /* a change of these types gets a new number */

typedef struct nnc_tensor_info {
    const char *name;
    const char *dtype; /* "f64" "f32" "f16" "bf16" "i64" "i32" "i16" "i8" "u8" "bool" */
    int32_t rank;
    const int64_t *shape; /* rank extents; the array is row-major and without gaps */
    size_t bytes;
} nnc_tensor_info;

typedef struct nnc_entry { /* one graph of the model: a function */
    const char *name;      /* "run" where there is one, else the graph's */
    uint32_t input_count, output_count;
    const nnc_tensor_info *input, *output;
    /* Arrays in the order of `input` and `output`.  `weights` is the mapped file, or NULL where the code holds them;
     * `state` the model's block of states, or NULL where it has none.  Re-entrant: calls with different arenas and
     * states may run at the same time.  Returns 0. */
    int (*run)(const void *const *input, void *const *output, void *arena, const void *weights, void *state);
} nnc_entry;

typedef struct nnc_model {
    uint32_t abi; /* NNC_MODEL_ABI of the compiler that wrote it */
    const char *name;
    uint32_t entry_count;
    const nnc_entry *entry;
    size_t arena_bytes, arena_alignment; /* scratch memory that the caller lends for a run of any entry */
    size_t weights_bytes;                /* of the weights file to map; 0: the code holds them */
    uint64_t weights_checksum;           /* of that file: XXH3, 64 bits, seed 0 */
    size_t state_bytes;                  /* memory, aligned as the arena, that is kept from run to run; 0: none */
    int (*state_init)(void *state, const void *weights); /* fills it before the first run; NULL where there is none */
} nnc_model;

#endif
