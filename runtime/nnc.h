/* The runtime of nnc: helpers for programs that run emitted models.
 *
 * None of it is needed: an emitted model stands alone, and its header tells how to call it.  This library is for hosts
 * that take any model: it maps and verifies weights, lends an arena, checks tensors of DLPack's layout against what
 * the model wants, lends threads, and calls it.  No function prints, exits, or keeps anything in globals; each returns
 * a status. C99 and C++. */
#ifndef NNC_RUNTIME_H
#define NNC_RUNTIME_H

#include "nnc_model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nnc_status {
    NNC_OK = 0,
    NNC_E_ABI,      /* the model was written for another version of nnc_model.h */
    NNC_E_OPEN,     /* the weights file cannot be opened or mapped; errno tells why */
    NNC_E_SIZE,     /* the weights file does not have weights_bytes bytes */
    NNC_E_CHECKSUM, /* the weights file does not have the model's checksum */
    NNC_E_MEMORY,   /* no memory for the arena */
    NNC_E_COUNT,    /* wrong number of tensors */
    NNC_E_DTYPE,    /* a tensor has another dtype than the model's */
    NNC_E_SHAPE,    /* a tensor has another shape than the model's */
    NNC_E_STRIDES,  /* a tensor is not row-major without gaps */
    NNC_E_DEVICE,   /* a tensor does not lie in memory of the CPU */
    NNC_E_ARENA,    /* the arena is NULL or not aligned */
    NNC_E_RUN,      /* the model's own function failed */
    NNC_E_ENTRY,    /* the model has no such entry */
    NNC_E_STATE,    /* the state is NULL or not aligned */
    NNC_E_PARAMS    /* the params are NULL or not aligned */
} nnc_status;

const char *nnc_status_text(nnc_status status);

/* A tensor with DLPack's layout (DLTensor of dlpack.h, version 0.8 and 1.0), so that arrays of NumPy, PyTorch or CuPy
 * pass through without conversion. */
typedef struct nnc_device {
    int32_t type; /* kDLCPU is 1, kDLCUDA is 2 */
    int32_t id;
} nnc_device;

typedef struct nnc_dtype {
    uint8_t code; /* kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLBool 6 */
    uint8_t bits;
    uint16_t lanes; /* 1 */
} nnc_dtype;

typedef struct nnc_tensor {
    void *data;
    nnc_device device;
    int32_t ndim;
    nnc_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major without gaps */
    uint64_t byte_offset;
} nnc_tensor;

/* The DLPack type of a dtype's name, `f32`; bits 0 for an unknown one. */
nnc_dtype nnc_dtype_of(const char *name);
/* A tensor of the info's type over the caller's memory; it points to the info's shape. */
nnc_tensor nnc_tensor_of(const nnc_tensor_info *info, void *data);
/* NNC_OK when the tensor is what the info asks for; strides of extents 1 do not matter. */
nnc_status nnc_tensor_check(const nnc_tensor_info *info, const nnc_tensor *tensor);

/* Weights as a read-only mapping, verified once.  `data` is what a run wants; NULL for models without a file. */
typedef struct nnc_weights {
    const void *data;
    size_t bytes;
} nnc_weights;

/* Maps the file and verifies size and checksum.  A model whose code holds its weights needs no file: path may be NULL.
 */
nnc_status nnc_weights_open(nnc_weights *weights, const nnc_model *model, const char *path);
void nnc_weights_close(nnc_weights *weights);

/* Memory for one run at a time, aligned as the model asks; NULL when there is none.  Give it back with nnc_arena_free.
 */
void *nnc_arena_new(const nnc_model *model);
void nnc_arena_free(void *arena);

/* What a model keeps from run to run, filled with its first values; NULL when there is no memory, or the weights that
 * they come from are missing.  `weights` may be NULL where the code holds them; seed 0 draws params as the model has
 * them, any other otherwise.  Of a model without such a block it is a byte that nothing touches.  Give them back with
 * nnc_params_free and nnc_state_free. */
void *nnc_params_new(const nnc_model *model, int64_t seed, const nnc_weights *weights);
void nnc_params_free(void *params);
void *nnc_state_new(const nnc_model *model, const nnc_weights *weights);
void nnc_state_free(void *state);

/* What model->pack makes of params, for entries whose `packed` is 1: they are called with it in place of params.  NULL
 * when there is no memory, or the params are missing.  model->pack(params, packed) makes it anew after params have
 * changed.  Give it back with nnc_packed_free. */
void *nnc_packed_new(const nnc_model *model, const void *params);
void nnc_packed_free(void *packed);

/* The tensor of that name in model->params or model->state; NULL when there is none. */
const nnc_slot *nnc_slot_find(const nnc_block *block, const char *name);
/* Where it lies in the memory of the block, until the next run: slot->tensor says what it is. */
void *nnc_slot_data(const nnc_slot *slot, void *memory);

/* Threads for runs of models compiled for several (`nnc compile --threads N`): the caller's and `threads` - 1 more,
 * which spin for some 200 microseconds when there is nothing to do, then sleep.  A run takes no lock, allocates
 * nothing, and gives the same bits with any pool or none.  A pool serves one run at a time; a run that finds it busy is
 * done by its caller alone.  NULL when there is no memory or no thread to have, or threads is not in 1 ...
 * NNC_MOST_THREADS. Give it back with nnc_pool_free, after the last run, in the process that made it. */
#define NNC_MOST_THREADS 1024
typedef struct nnc_pool nnc_pool;
nnc_pool *nnc_pool_new(uint32_t threads);
nnc_team *nnc_pool_team(nnc_pool *pool); /* what entries take; of NULL it is NULL: the caller does all */
void nnc_pool_free(nnc_pool *pool);

/* The entry's number by its name; -1 when there is none. */
int32_t nnc_entry_find(const nnc_model *model, const char *name);

/* Checks everything, then runs entry number `entry`, 0 where there is one.  `input` and `output` are in its order.
 * `params` and `state` may be NULL where the model has none; of an entry whose `packed` is 1, `params` is what
 * nnc_packed_new gave.  `team`, such as nnc_pool_team gives, may be NULL. */
nnc_status nnc_call(const nnc_model *model, uint32_t entry, const nnc_tensor *input, uint32_t input_count,
                    nnc_tensor *output, uint32_t output_count, void *arena, void *params, void *state,
                    const nnc_weights *weights, nnc_team *team);

#ifdef __cplusplus
}
#endif

#endif
