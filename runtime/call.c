/* Tensors checked against what a model asks for, and the call. */
#define _POSIX_C_SOURCE 200809L
#include "nnc.h"

#include <stdlib.h>
#include <string.h>

#define MOST_TENSORS 64 /* of inputs, and of outputs, that nnc_call takes */

const char *nnc_status_text(nnc_status status)
{
    switch (status) {
    case NNC_OK:
        return "fine";
    case NNC_E_ABI:
        return "the model was written for another version of the runtime";
    case NNC_E_OPEN:
        return "the weights file cannot be opened";
    case NNC_E_SIZE:
        return "the weights file does not have the model's size";
    case NNC_E_CHECKSUM:
        return "the weights file does not have the model's checksum";
    case NNC_E_MEMORY:
        return "no memory for the arena";
    case NNC_E_COUNT:
        return "wrong number of tensors";
    case NNC_E_DTYPE:
        return "a tensor has another dtype than the model's";
    case NNC_E_SHAPE:
        return "a tensor has another shape than the model's";
    case NNC_E_STRIDES:
        return "a tensor is not row-major without gaps";
    case NNC_E_DEVICE:
        return "a tensor does not lie in memory of the CPU";
    case NNC_E_ARENA:
        return "the arena is missing or not aligned";
    case NNC_E_RUN:
        return "the model's function failed";
    case NNC_E_ENTRY:
        return "the model has no such entry";
    case NNC_E_STATE:
        return "the state is missing or not aligned";
    case NNC_E_PARAMS:
        return "the params are missing or not aligned";
    }
    return "unknown status";
}

nnc_dtype nnc_dtype_of(const char *name)
{
    static const struct {
        const char *name;
        nnc_dtype dtype;
    } known[] = {
        {"f64", {2, 64, 1}}, {"f32", {2, 32, 1}}, {"f16", {2, 16, 1}}, {"bf16", {4, 16, 1}}, {"i64", {0, 64, 1}},
        {"i32", {0, 32, 1}}, {"i16", {0, 16, 1}}, {"i8", {0, 8, 1}},   {"u8", {1, 8, 1}},    {"u64", {1, 64, 1}},
        {"u32", {1, 32, 1}}, {"u16", {1, 16, 1}}, {"bool", {6, 8, 1}},
    };
    nnc_dtype none = {0, 0, 0};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].dtype;
    return none;
}

nnc_tensor nnc_tensor_of(const nnc_tensor_info *info, void *data)
{
    nnc_tensor tensor;
    tensor.data = data;
    tensor.device.type = 1;
    tensor.device.id = 0;
    tensor.ndim = info->rank;
    tensor.dtype = nnc_dtype_of(info->dtype);
    tensor.shape = (int64_t *)(uintptr_t)info->shape; /* DLPack's pointer is not const; nothing writes through it */
    tensor.strides = NULL;
    tensor.byte_offset = 0;
    return tensor;
}

nnc_status nnc_tensor_check(const nnc_tensor_info *info, const nnc_tensor *tensor)
{
    nnc_dtype want = nnc_dtype_of(info->dtype);
    int64_t step = 1;

    if (tensor->device.type != 1)
        return NNC_E_DEVICE;
    if (tensor->dtype.code != want.code || tensor->dtype.bits != want.bits || tensor->dtype.lanes != 1)
        return NNC_E_DTYPE;
    if (tensor->ndim != info->rank)
        return NNC_E_SHAPE;
    for (int32_t d = info->rank; d-- > 0;) {
        if (tensor->shape[d] != info->shape[d])
            return NNC_E_SHAPE;
        if (tensor->strides && tensor->strides[d] != step && info->shape[d] > 1)
            return NNC_E_STRIDES;
        step *= info->shape[d];
    }
    return NNC_OK;
}

static void *lend(const nnc_model *model, size_t bytes)
{
    void *memory = NULL;
    size_t alignment = model->arena_alignment < sizeof(void *) ? sizeof(void *) : model->arena_alignment;
    return posix_memalign(&memory, alignment, bytes ? bytes : 1) ? NULL : memory;
}

void *nnc_arena_new(const nnc_model *model)
{
    return lend(model, model->arena_bytes);
}

void nnc_arena_free(void *arena)
{
    free(arena);
}

void *nnc_params_new(const nnc_model *model, int64_t seed, const nnc_weights *weights)
{
    void *params = lend(model, model->params.bytes);
    if (params && model->params_init && model->params_init(params, seed, weights ? weights->data : NULL)) {
        free(params);
        return NULL;
    }
    return params;
}

void nnc_params_free(void *params)
{
    free(params);
}

void *nnc_state_new(const nnc_model *model, const nnc_weights *weights)
{
    void *state = lend(model, model->state.bytes);
    if (state && model->state_init && model->state_init(state, weights ? weights->data : NULL)) {
        free(state);
        return NULL;
    }
    return state;
}

void nnc_state_free(void *state)
{
    free(state);
}

void *nnc_packed_new(const nnc_model *model, const void *params)
{
    void *packed = lend(model, model->packed_bytes);
    if (packed && model->pack && model->pack(params, packed)) {
        free(packed);
        return NULL;
    }
    return packed;
}

void nnc_packed_free(void *packed)
{
    free(packed);
}

const nnc_slot *nnc_slot_find(const nnc_block *block, const char *name)
{
    for (uint32_t i = 0; i < block->count; i++)
        if (strcmp(block->slot[i].tensor.name, name) == 0)
            return &block->slot[i];
    return NULL;
}

void *nnc_slot_data(const nnc_slot *slot, void *memory)
{
    unsigned char *begin = memory;
    return begin + slot->offset[slot->flag >= 0 && begin[slot->flag]];
}

int32_t nnc_entry_find(const nnc_model *model, const char *name)
{
    for (uint32_t i = 0; i < model->entry_count; i++)
        if (strcmp(model->entry[i].name, name) == 0)
            return (int32_t)i;
    return -1;
}

static nnc_status gather(const nnc_tensor_info *info, const nnc_tensor *tensor, uint32_t count, void **data)
{
    for (uint32_t i = 0; i < count; i++) {
        nnc_status status = nnc_tensor_check(&info[i], &tensor[i]);
        if (status != NNC_OK)
            return status;
        data[i] = (char *)tensor[i].data + tensor[i].byte_offset;
    }
    return NNC_OK;
}

static int is_lent(const nnc_model *model, size_t bytes, const void *memory)
{
    return !bytes || (memory && (uintptr_t)memory % (model->arena_alignment ? model->arena_alignment : 1) == 0);
}

static nnc_status check_lent(const nnc_model *model, const nnc_entry *entry, const void *arena, const void *params,
                             const void *state, const nnc_weights *weights)
{
    if (!is_lent(model, model->arena_bytes, arena))
        return NNC_E_ARENA;
    if (!is_lent(model, entry->packed ? model->packed_bytes : model->params.bytes, params))
        return NNC_E_PARAMS;
    if (!is_lent(model, model->state.bytes, state))
        return NNC_E_STATE;
    return model->weights_bytes && (!weights || weights->bytes != model->weights_bytes) ? NNC_E_SIZE : NNC_OK;
}

nnc_status nnc_call(const nnc_model *model, uint32_t entry, const nnc_tensor *input, uint32_t input_count,
                    nnc_tensor *output, uint32_t output_count, void *arena, void *params, void *state,
                    const nnc_weights *weights, nnc_team *team)
{
    void *in[MOST_TENSORS], *out[MOST_TENSORS];
    const nnc_entry *e;
    nnc_status status;

    if (model->abi != NNC_MODEL_ABI)
        return NNC_E_ABI;
    if (entry >= model->entry_count)
        return NNC_E_ENTRY;
    e = &model->entry[entry];
    if (input_count != e->input_count || output_count != e->output_count || input_count > MOST_TENSORS ||
        output_count > MOST_TENSORS)
        return NNC_E_COUNT;
    status = check_lent(model, e, arena, params, state, weights);
    if (status == NNC_OK)
        status = gather(e->input, input, input_count, in);
    if (status == NNC_OK)
        status = gather(e->output, output, output_count, out);
    if (status != NNC_OK)
        return status;
    if (e->run((const void *const *)in, out, arena, weights ? weights->data : NULL, params, state, team))
        return NNC_E_RUN;
    return NNC_OK;
}
