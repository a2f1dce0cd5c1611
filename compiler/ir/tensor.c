/* Elements of a tensor as numbers, whatever its dtype. */
#include "ir/graph.h"

#include <math.h>
#include <string.h>

Tensor *tensor_new(Arena *arena, const Type *type)
{
    Tensor *tensor = ARENA_NEW(arena, Tensor);
    tensor->type = type;
    tensor->data = arena_alloc(arena, (size_t)shape_elements(&type->shape) * dtype_bytes(type->dtype));
    return tensor;
}

double tensor_number(const Tensor *tensor, int64_t index)
{
    switch (tensor->type->dtype) {
    case DT_F64:
        return ((const double *)tensor->data)[index];
    case DT_F32:
        return ((const float *)tensor->data)[index];
    case DT_F16:
        return dtype_f16_to_f32(((const uint16_t *)tensor->data)[index]);
    case DT_BF16:
        return dtype_bf16_to_f32(((const uint16_t *)tensor->data)[index]);
    case DT_I64:
        return (double)((const int64_t *)tensor->data)[index];
    case DT_I32:
        return ((const int32_t *)tensor->data)[index];
    case DT_I16:
        return ((const int16_t *)tensor->data)[index];
    case DT_I8:
        return ((const int8_t *)tensor->data)[index];
    case DT_U64:
        return (double)((const uint64_t *)tensor->data)[index];
    case DT_U32:
        return ((const uint32_t *)tensor->data)[index];
    case DT_U16:
        return ((const uint16_t *)tensor->data)[index];
    case DT_U8:
    case DT_BOOL:
        return ((const uint8_t *)tensor->data)[index];
    case DT_COUNT:
        break;
    }
    return 0;
}

/* Out of range integers take the nearest end, NaN is 0, so that no conversion is undefined. */
static int64_t to_int(double number, int64_t low, int64_t high)
{
    if (isnan(number))
        return 0;
    return number <= (double)low ? low : number >= (double)high ? high : (int64_t)number;
}

static uint64_t to_u64(double number)
{
    return number >= 0x1p64 ? UINT64_MAX : number > 0 ? (uint64_t)number : 0;
}

void tensor_set_number(Tensor *tensor, int64_t index, double number)
{
    switch (tensor->type->dtype) {
    case DT_F64:
        ((double *)tensor->data)[index] = number;
        break;
    case DT_F32:
        ((float *)tensor->data)[index] = (float)number;
        break;
    case DT_F16:
        ((uint16_t *)tensor->data)[index] = dtype_f32_to_f16((float)number);
        break;
    case DT_BF16:
        ((uint16_t *)tensor->data)[index] = dtype_f32_to_bf16((float)number);
        break;
    case DT_I64:
        ((int64_t *)tensor->data)[index] = to_int(number, INT64_MIN, INT64_MAX);
        break;
    case DT_I32:
        ((int32_t *)tensor->data)[index] = (int32_t)to_int(number, INT32_MIN, INT32_MAX);
        break;
    case DT_I16:
        ((int16_t *)tensor->data)[index] = (int16_t)to_int(number, INT16_MIN, INT16_MAX);
        break;
    case DT_I8:
        ((int8_t *)tensor->data)[index] = (int8_t)to_int(number, INT8_MIN, INT8_MAX);
        break;
    case DT_U64:
        ((uint64_t *)tensor->data)[index] = to_u64(number);
        break;
    case DT_U32:
        ((uint32_t *)tensor->data)[index] = (uint32_t)to_int(number, 0, UINT32_MAX);
        break;
    case DT_U16:
        ((uint16_t *)tensor->data)[index] = (uint16_t)to_int(number, 0, UINT16_MAX);
        break;
    case DT_U8:
        ((uint8_t *)tensor->data)[index] = (uint8_t)to_int(number, 0, UINT8_MAX);
        break;
    case DT_BOOL:
        ((uint8_t *)tensor->data)[index] = number != 0;
        break;
    case DT_COUNT:
        break;
    }
}

static uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

float dtype_bf16_to_f32(uint16_t bits)
{
    return bits_float((uint32_t)bits << 16);
}

uint16_t dtype_f32_to_bf16(float x)
{
    uint32_t bits = float_bits(x);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40); /* stays a NaN when the low half is cut */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float dtype_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31)
        return bits_float(sign | 0x7f800000 | fraction << 13);
    if (exponent)
        return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
    float small = (float)fraction * 0x1p-24f; /* zero and subnormals */
    return sign ? -small : small;
}

uint16_t dtype_f32_to_f16(float x)
{
    uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x477ff000) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) /* below 2^-14: subnormal, or zero; the addition rounds half to even */
        return (uint16_t)(sign | (float_bits(bits_float(magnitude) + 0.5f) - float_bits(0.5f)));
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded >> 13) - (112u << 10)));
}

bool tensor_fits_nibbles(const Tensor *tensor)
{
    int64_t count = shape_elements(&tensor->type->shape), i = 0;
    const int8_t *x = tensor->data;
    const uint8_t *u = tensor->data;
    if (tensor->type->dtype == DT_I8)
        while (i < count && x[i] >= -8 && x[i] <= 7)
            i++;
    else if (tensor->type->dtype == DT_U8)
        while (i < count && u[i] <= 15)
            i++;
    return i == count;
}
