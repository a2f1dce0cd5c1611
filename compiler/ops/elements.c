#include "ops/elements.h"

#include <math.h>
#include <string.h>

Compute elements_compute(DType dtype)
{
    return dtype == DT_F64         ? COMPUTE_F64
           : dtype_is_float(dtype) ? COMPUTE_F32
           : dtype == DT_U64       ? COMPUTE_U64
                                   : COMPUTE_I64;
}

Compute elements_compute_exact(DType dtype)
{
    return dtype_is_float(dtype) ? COMPUTE_F64 : dtype == DT_U64 ? COMPUTE_U64 : COMPUTE_I64;
}

/* To a 16-bit format through f32 without rounding twice: the step to f32 rounds to odd (Boldo and Melquiond 2008). */
static float round_to_odd(double x)
{
    float near = (float)x;
    uint32_t bits;
    if ((double)near == x || isnan(x) || isinf(near))
        return near;
    memcpy(&bits, &near, sizeof bits);
    if (fabs((double)near) > fabs(x)) /* back to the neighbour towards zero, then set the last bit */
        bits--;
    bits |= 1;
    memcpy(&near, &bits, sizeof near);
    return near;
}

/* Out of range integers take the nearest end, NaN is 0, so that no conversion is undefined. */
static inline int64_t clamped(double x, int64_t low, int64_t high)
{
    if (isnan(x))
        return 0;
    return x <= (double)low ? low : x >= (double)high ? high : (int64_t)x;
}

static inline uint64_t clamped_u64(double x)
{
    return x >= 0x1p64 ? UINT64_MAX : x > 0 ? (uint64_t)x : 0;
}

#define LOAD_RUN(T, EXPRESSION)                                                                                        \
    do {                                                                                                               \
        const T *from = (const T *)in + offset;                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            T e = from[i * stride];                                                                                    \
            out[i] = EXPRESSION;                                                                                       \
        }                                                                                                              \
    } while (0);                                                                                                       \
    break

/* One run of elements into numbers of type C; FROM_FLOAT converts a floating-point number, FROM_U64 a u64. */
#define DEFINE_LOAD(NAME, C, FROM_FLOAT, FROM_U64)                                                                     \
    static void NAME(DType dtype, const void *in, int64_t offset, int64_t stride, int64_t count, C *out)               \
    {                                                                                                                  \
        switch (dtype) {                                                                                               \
        case DT_F64:                                                                                                   \
            LOAD_RUN(double, FROM_FLOAT(e));                                                                           \
        case DT_F32:                                                                                                   \
            LOAD_RUN(float, FROM_FLOAT(e));                                                                            \
        case DT_F16:                                                                                                   \
            LOAD_RUN(uint16_t, FROM_FLOAT(dtype_f16_to_f32(e)));                                                       \
        case DT_BF16:                                                                                                  \
            LOAD_RUN(uint16_t, FROM_FLOAT(dtype_bf16_to_f32(e)));                                                      \
        case DT_I64:                                                                                                   \
            LOAD_RUN(int64_t, (C)e);                                                                                   \
        case DT_I32:                                                                                                   \
            LOAD_RUN(int32_t, (C)e);                                                                                   \
        case DT_I16:                                                                                                   \
            LOAD_RUN(int16_t, e);                                                                                      \
        case DT_I8:                                                                                                    \
            LOAD_RUN(int8_t, e);                                                                                       \
        case DT_U64:                                                                                                   \
            LOAD_RUN(uint64_t, FROM_U64(e));                                                                           \
        case DT_U32:                                                                                                   \
            LOAD_RUN(uint32_t, (C)e);                                                                                  \
        case DT_U16:                                                                                                   \
            LOAD_RUN(uint16_t, e);                                                                                     \
        case DT_U8:                                                                                                    \
        case DT_BOOL:                                                                                                  \
            LOAD_RUN(uint8_t, e);                                                                                      \
        case DT_COUNT:                                                                                                 \
            break;                                                                                                     \
        }                                                                                                              \
    }

#define AS_FLOAT(x)  (float)(x)
#define AS_DOUBLE(x) (double)(x)
#define AS_INT(x)    clamped((double)(x), INT64_MIN, INT64_MAX)
#define FITTING(x)   ((x) > INT64_MAX ? INT64_MAX : (int64_t)(x))
#define SAME(x)      (x)
DEFINE_LOAD(load_f32, float, AS_FLOAT, AS_FLOAT)
DEFINE_LOAD(load_f64, double, AS_DOUBLE, AS_DOUBLE)
DEFINE_LOAD(load_i64, int64_t, AS_INT, FITTING)
DEFINE_LOAD(load_u64, uint64_t, clamped_u64, SAME)

static size_t number_bytes(Compute compute)
{
    return compute == COMPUTE_F32 ? sizeof(float) : sizeof(double);
}

void elements_load_run(const Tensor *tensor, Run run, Compute to, void *numbers)
{
    DType dtype = tensor->type->dtype;
    if (to == COMPUTE_F32)
        load_f32(dtype, tensor->data, run.offset, run.stride, run.count, numbers);
    else if (to == COMPUTE_F64)
        load_f64(dtype, tensor->data, run.offset, run.stride, run.count, numbers);
    else if (to == COMPUTE_U64)
        load_u64(dtype, tensor->data, run.offset, run.stride, run.count, numbers);
    else
        load_i64(dtype, tensor->data, run.offset, run.stride, run.count, numbers);
}

void elements_load(const Tensor *tensor, const Strided *map, int64_t start, int64_t count, Compute to, void *numbers)
{
    Walk walk = strided_walk(map, start, count);
    int64_t at = 0;
    Run run;
    while (strided_next(&walk, &run)) {
        elements_load_run(tensor, run, to, (char *)numbers + (size_t)at * number_bytes(to));
        at += run.count;
    }
}

void elements_load_plain(const Tensor *tensor, int64_t start, int64_t count, Compute to, void *numbers)
{
    elements_load_run(tensor, (Run){start, 1, count}, to, numbers);
}

#define STORE_RUN(T, EXPRESSION)                                                                                       \
    do {                                                                                                               \
        T *out = (T *)tensor->data + start;                                                                            \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = EXPRESSION;                                                                                       \
    } while (0);                                                                                                       \
    break

#define DEFINE_STORE(NAME, C, TO_FLOAT, TO_INT, TO_U64)                                                                \
    static void NAME(Tensor *tensor, int64_t start, int64_t count, const C *in)                                        \
    {                                                                                                                  \
        switch (tensor->type->dtype) {                                                                                 \
        case DT_F64:                                                                                                   \
            STORE_RUN(double, (double)in[i]);                                                                          \
        case DT_F32:                                                                                                   \
            STORE_RUN(float, (float)in[i]);                                                                            \
        case DT_F16:                                                                                                   \
            STORE_RUN(uint16_t, dtype_f32_to_f16(TO_FLOAT(in[i])));                                                    \
        case DT_BF16:                                                                                                  \
            STORE_RUN(uint16_t, dtype_f32_to_bf16(TO_FLOAT(in[i])));                                                   \
        case DT_I64:                                                                                                   \
            STORE_RUN(int64_t, TO_INT(in[i], INT64_MIN, INT64_MAX));                                                   \
        case DT_I32:                                                                                                   \
            STORE_RUN(int32_t, (int32_t)TO_INT(in[i], INT32_MIN, INT32_MAX));                                          \
        case DT_I16:                                                                                                   \
            STORE_RUN(int16_t, (int16_t)TO_INT(in[i], INT16_MIN, INT16_MAX));                                          \
        case DT_I8:                                                                                                    \
            STORE_RUN(int8_t, (int8_t)TO_INT(in[i], INT8_MIN, INT8_MAX));                                              \
        case DT_U64:                                                                                                   \
            STORE_RUN(uint64_t, TO_U64(in[i]));                                                                        \
        case DT_U32:                                                                                                   \
            STORE_RUN(uint32_t, (uint32_t)TO_INT(in[i], 0, UINT32_MAX));                                               \
        case DT_U16:                                                                                                   \
            STORE_RUN(uint16_t, (uint16_t)TO_INT(in[i], 0, UINT16_MAX));                                               \
        case DT_U8:                                                                                                    \
            STORE_RUN(uint8_t, (uint8_t)TO_INT(in[i], 0, UINT8_MAX));                                                  \
        case DT_BOOL:                                                                                                  \
            STORE_RUN(uint8_t, in[i] != 0);                                                                            \
        case DT_COUNT:                                                                                                 \
            break;                                                                                                     \
        }                                                                                                              \
    }

#define EXACT(x)         (x)
#define THROUGH_F64(x)   round_to_odd((double)(x))
#define WRAP(x, low, hi) (x)
#define BITS(x)          ((uint64_t)(x))
DEFINE_STORE(store_f32, float, EXACT, clamped, clamped_u64)
DEFINE_STORE(store_f64, double, round_to_odd, clamped, clamped_u64)
DEFINE_STORE(store_i64, int64_t, THROUGH_F64, WRAP, BITS)
DEFINE_STORE(store_u64, uint64_t, THROUGH_F64, WRAP, BITS)

void elements_store(Tensor *tensor, int64_t start, int64_t count, Compute from, const void *numbers)
{
    if (from == COMPUTE_F32)
        store_f32(tensor, start, count, numbers);
    else if (from == COMPUTE_F64)
        store_f64(tensor, start, count, numbers);
    else if (from == COMPUTE_U64)
        store_u64(tensor, start, count, numbers);
    else
        store_i64(tensor, start, count, numbers);
}

#define CHUNK 1024

void elements_fill(Tensor *tensor, double number)
{
    int64_t elements = shape_elements(&tensor->type->shape);
    double numbers[CHUNK];
    for (int i = 0; i < CHUNK; i++)
        numbers[i] = number;
    for (int64_t start = 0; start < elements; start += CHUNK)
        elements_store(tensor, start, elements - start < CHUNK ? elements - start : CHUNK, COMPUTE_F64, numbers);
}
