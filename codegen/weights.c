/* The weights as they lie in memory: plain arrays, or packed for the contraction that reads them. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fatal.h"
#include "ops/family.h"

WeightsForm program_weights_form(const Program *program)
{
    if (program->options.weights != WEIGHTS_AUTO)
        return program->options.weights;
    return program->weights_bytes <= 64 << 10 ? WEIGHTS_C : WEIGHTS_BLOB;
}

typedef struct Packer {
    const Packing *packing;
    const unsigned char *from;
    unsigned char *to;
    uint32_t element;
} Packer;

static void pack_run(Packer *packer, int64_t count, int64_t stride, int64_t at)
{
    if (packer->element == 4 && stride == 1) {
        memcpy(packer->to, packer->from + at * 4, (size_t)count * 4);
        packer->to += count * 4;
        return;
    }
    for (int64_t i = 0; i < count; i++, at += stride) {
        memcpy(packer->to, packer->from + at * packer->element, packer->element);
        packer->to += packer->element;
    }
}

static void pack(Packer *packer, uint32_t d, int64_t at, int64_t limited)
{
    const Packing *p = packer->packing;
    if (d + 1 < p->rank) {
        for (int64_t i = 0; i < p->extent[d]; i++)
            pack(packer, d + 1, at + i * p->stride[d], limited + i * p->bound_factor[d]);
        return;
    }
    /* The innermost run: what lies beyond the bound is zero. */
    int64_t inside = p->extent[d];
    if (p->bound && p->bound_factor[d])
        inside = (p->bound - limited + p->bound_factor[d] - 1) / p->bound_factor[d];
    else if (p->bound && limited >= p->bound)
        inside = 0;
    inside = inside < 0 ? 0 : inside > p->extent[d] ? p->extent[d] : inside;
    pack_run(packer, inside, p->stride[d], at);
    size_t rest = (size_t)(p->extent[d] - inside) * packer->element;
    memset(packer->to, 0, rest);
    packer->to += rest;
}

void weights_fill(const Program *program, const WeightArray *array, void *bytes)
{
    const Tensor *data = eval_data(program->graph, array->value);
    if (!array->packing.rank) {
        memcpy(bytes, data->data, (size_t)array->bytes);
        return;
    }
    Packer packer = {&array->packing, data->data, bytes, dtype_bytes(data->type->dtype)};
    pack(&packer, 0, 0, 0);
}

void emit_weights(const Program *program, Sink sink)
{
    static const unsigned char zero[WEIGHTS_ALIGNMENT];
    int64_t at = 0;
    for (uint32_t i = 0; i < program->weights.count; i++) {
        const WeightArray *array = &program->weights.array[i];
        sink.put(sink.context, zero, (size_t)(array->offset - at));
        unsigned char *bytes = malloc((size_t)array->bytes + 1);
        if (!bytes)
            fatal_memory((size_t)array->bytes);
        weights_fill(program, array, bytes);
        sink.put(sink.context, bytes, (size_t)array->bytes);
        free(bytes);
        at = array->offset + array->bytes;
    }
}

static void hash_put(void *context, const void *bytes, size_t size)
{
    XXH3_64bits_update(context, bytes, size);
}

uint64_t weights_checksum(const Program *program)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        fatal_memory(sizeof *state);
    XXH3_64bits_reset(state);
    emit_weights(program, (Sink){hash_put, state});
    uint64_t sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum;
}
