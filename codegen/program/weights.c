/* The weights as they lie in memory: plain arrays, or packed for the contraction that reads them.  Their elements have
 * this machine's byte order, and the target's when they are written. */
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fatal.h"
#include "kernel/strassen.h"
#include "kernel/winograd.h"
#include "ops/family.h"

DType program_weights_dtype(const Weights *weights)
{
    return packing_dtype(&weights->packing, value_type(weights->graph, weights->value)->dtype);
}

/* On a GPU weights are in the source or handed in: nothing is pulled in by .incbin there. */
WeightsForm program_weights_form(const Program *program)
{
    WeightsForm form = program->options.weights;
    if (!program->weights_bytes)
        return WEIGHTS_C; /* none: nothing to link or to map */
    if (form == WEIGHTS_AUTO)
        form = program->weights_bytes <= 64 << 10 ? WEIGHTS_C : WEIGHTS_BLOB;
    return form == WEIGHTS_BLOB && program->options.target->dialect == DIALECT_CUDA ? WEIGHTS_FILE : form;
}

int64_t program_weights_stored(const Program *program)
{
    int64_t bytes = 0;
    if (program_weights_form(program) != WEIGHTS_C)
        return program->weights_bytes;
    for (uint32_t w = 0; w < program->weight_count; w++)
        bytes += program->weights[w].bytes;
    return bytes;
}

typedef struct Packer {
    const Packing *packing;
    const unsigned char *from;
    unsigned char *to;
    uint32_t element;
    bool bounded[2]; /* some factor of the bound is not zero */
} Packer;

static void pack_run(Packer *packer, int64_t count, int64_t stride, int64_t at)
{
    size_t element = packer->element;
    if (stride == 1) {
        memcpy(packer->to, packer->from + (size_t)at * element, (size_t)count * element);
    } else if (element == 4) {
        const uint32_t *from = (const void *)packer->from;
        uint32_t *to = (void *)packer->to;
        for (int64_t i = 0; i < count; i++)
            to[i] = from[at + i * stride];
    } else
        for (int64_t i = 0; i < count; i++)
            memcpy(packer->to + (size_t)i * element, packer->from + (size_t)(at + i * stride) * element, element);
    packer->to += (size_t)count * element;
}

/* How many of the innermost run's elements stay below one bound. */
static int64_t inside_bound(const Packer *packer, uint32_t b, uint32_t d, int64_t sum)
{
    const Packing *p = packer->packing;
    int64_t factor = p->bound[b].factor[d], room = p->bound[b].most - sum;
    if (!packer->bounded[b])
        return p->extent[d];
    if (!factor)
        return room > 0 ? p->extent[d] : 0;
    int64_t inside = (room + factor - 1) / factor;
    return inside < 0 ? 0 : inside > p->extent[d] ? p->extent[d] : inside;
}

static void pack(Packer *packer, uint32_t d, int64_t at, const int64_t sum[2])
{
    const Packing *p = packer->packing;
    if (d + 1 < p->rank) {
        for (int64_t i = 0; i < p->extent[d]; i++)
            pack(packer, d + 1, at + i * p->stride[d],
                 (int64_t[]){sum[0] + i * p->bound[0].factor[d], sum[1] + i * p->bound[1].factor[d]});
        return;
    }
    int64_t a = inside_bound(packer, 0, d, sum[0]), b = inside_bound(packer, 1, d, sum[1]), inside = a < b ? a : b;
    pack_run(packer, inside, p->stride[d], at);
    size_t rest = (size_t)(p->extent[d] - inside) * packer->element;
    memset(packer->to, 0, rest);
    packer->to += rest;
}

static void pack_all(const Packing *packing, DType dtype, const void *from, void *to)
{
    Packer packer = {packing, from, to, dtype_bytes(dtype), {false, false}};
    for (uint32_t i = 0; i < packing->rank; i++)
        for (uint32_t b = 0; b < 2; b++)
            packer.bounded[b] |= packing->bound[b].factor[i] != 0;
    pack(&packer, 0, packing->start, (int64_t[]){0, 0});
}

/* Of taps that are transformed, in between they are in f32 like the source and the packed array. */
static void pack_transformed(const Packing *packing, const Tensor *data, void *bytes)
{
    Winograd winograd = winograd_of(packing->winograd);
    int64_t pairs = shape_elements(&data->type->shape) / (WINOGRAD_TAPS * WINOGRAD_TAPS);
    size_t size = (size_t)pairs * winograd.size * winograd.size * sizeof(float);
    float *transformed = malloc(size + 1);
    if (!transformed)
        fatal_memory(size);
    winograd_weights(&winograd, data->data, pairs, transformed);
    pack_all(packing, DT_F32, transformed, bytes);
    free(transformed);
}

/* Of f32: sums of the quarters, four of which lie one behind the other. */
static void pack_sums(const Weights *weights, const Tensor *data, float *to)
{
    int64_t quarter = weights->packing.quarter, all = STRASSEN_PRODUCTS * quarter;
    int64_t groups = weights->bytes / (int64_t)sizeof *to / all;
    size_t size = (size_t)(groups * STRASSEN_QUARTERS * quarter) * sizeof *to;
    float *plain = malloc(size + 1);
    if (!plain)
        fatal_memory(size);
    pack_all(&weights->packing, DT_F32, data->data, plain);
    for (int64_t i = 0; i < groups; i++)
        strassen_weights(plain + i * STRASSEN_QUARTERS * quarter, quarter, to + i * all);
    free(plain);
}

/* Of f32, as bf16: the nearest, and of what is then left the nearest, so many elements behind. */
static void pack_parts(const Weights *weights, const Tensor *data, uint16_t *to)
{
    size_t count = (size_t)weights->bytes / sizeof *to;
    float *wide = malloc(count * sizeof *wide + 1);
    if (!wide)
        fatal_memory(count * sizeof *wide);
    pack_all(&weights->packing, DT_F32, data->data, wide);
    size_t rest = (size_t)weights->packing.rest, parts = (size_t)weights->packing.parts;
    for (size_t first = 0; first < count; first += parts * rest)
        for (size_t i = first; i < first + rest; i++) {
            float left = wide[i];
            for (size_t part = 0; part < parts; part++) {
                to[i + part * rest] = dtype_f32_to_bf16(left);
                left -= dtype_bf16_to_f32(to[i + part * rest]);
            }
        }
    free(wide);
}

/* Two elements to a byte, the even one in the low half. */
static void pack_nibbles(const Weights *weights, const Tensor *data, unsigned char *to)
{
    size_t bytes = (size_t)weights->bytes;
    unsigned char *wide = calloc(bytes + 1, 2); /* an odd last element has a neighbour of 0 */
    if (!wide)
        fatal_memory(2 * bytes);
    if (weights->packing.rank)
        pack_all(&weights->packing, data->type->dtype, data->data, wide);
    else
        memcpy(wide, data->data, (size_t)type_bytes(data->type));
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)((wide[2 * i] & 15) | wide[2 * i + 1] << 4);
    free(wide);
}

void program_weights_fill(const Program *program, uint32_t w, void *bytes)
{
    const Weights *weights = &program->weights[w];
    const Packing *packing = &weights->packing;
    const Value *value = &weights->graph->value[weights->value];
    if (!value->data && value->initial == NONE) { /* of a plan, for which a shape is enough */
        memset(bytes, 0, (size_t)weights->bytes);
        return;
    }
    const Tensor *data = eval_data(weights->graph, weights->value);
    if (weights->nibbles)
        pack_nibbles(weights, data, bytes);
    else if (!packing->rank)
        memcpy(bytes, data->data, (size_t)weights->bytes);
    else if (packing->winograd)
        pack_transformed(packing, data, bytes);
    else if (packing->quarter)
        pack_sums(weights, data, bytes);
    else if (packing->parts)
        pack_parts(weights, data, bytes);
    else
        pack_all(packing, data->type->dtype, data->data, bytes);
}

ByteOrder program_byte_order_here(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one ? BYTES_LITTLE : BYTES_BIG;
}

static void swap_elements(unsigned char *bytes, size_t size, uint32_t element)
{
    for (size_t at = 0; at + element <= size; at += element)
        for (uint32_t i = 0; i < element / 2; i++) {
            unsigned char byte = bytes[at + i];
            bytes[at + i] = bytes[at + element - 1 - i];
            bytes[at + element - 1 - i] = byte;
        }
}

typedef struct Hashed { /* a sink that also hashes */
    Sink sink;
    XXH3_state_t *state;
} Hashed;

static void put_hashed(const Hashed *hashed, const void *bytes, size_t size)
{
    XXH3_64bits_update(hashed->state, bytes, size);
    hashed->sink.put(hashed->sink.context, bytes, size);
}

static void put_weights(const Program *program, const Hashed *hashed)
{
    static const unsigned char zero[WEIGHTS_ALIGNMENT];
    int64_t at = 0;
    for (uint32_t w = 0; w < program->weight_count; w++) {
        const Weights *weights = &program->weights[w];
        put_hashed(hashed, zero, (size_t)(weights->offset - at));
        unsigned char *bytes = malloc((size_t)weights->bytes + 1);
        if (!bytes)
            fatal_memory((size_t)weights->bytes);
        program_weights_fill(program, w, bytes);
        if (program->options.byte_order != program_byte_order_here())
            swap_elements(bytes, (size_t)weights->bytes, dtype_bytes(program_weights_dtype(weights)));
        put_hashed(hashed, bytes, (size_t)weights->bytes);
        free(bytes);
        at = weights->offset + weights->bytes;
    }
}

/* Once written, the weights need not be made again to be summed up. */
void emit_weights(const Program *program, Sink sink)
{
    Hashed hashed = {sink, XXH3_createState()};
    if (!hashed.state)
        fatal_memory(1);
    XXH3_64bits_reset(hashed.state);
    put_weights(program, &hashed);
    program->checksum->sum = XXH3_64bits_digest(hashed.state);
    program->checksum->known = true;
    XXH3_freeState(hashed.state);
}

static void put_nowhere(void *context, const void *bytes, size_t size)
{
    (void)context, (void)bytes, (void)size;
}

uint64_t program_weights_checksum(const Program *program)
{
    if (!program->checksum->known)
        emit_weights(program, (Sink){put_nowhere, NULL});
    return program->checksum->sum;
}
