/* Conversions of bfloat16, as CUDA's cuda_bf16.h has them. */
#ifndef NNC_TESTS_EMULATE_CUDA_BF16_H
#define NNC_TESTS_EMULATE_CUDA_BF16_H

#include "emulate_odd.h"

struct __nv_bfloat16 {
    uint16_t bits;
};

inline __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits)
{
    return {bits};
}

inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}

inline float __bfloat162float(__nv_bfloat16 x)
{
    const uint32_t bits = (uint32_t)x.bits << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return {0x7fff};
    return {(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline __nv_bfloat16 __double2bfloat16(double x)
{
    return __float2bfloat16_rn(emulate::odd(x));
}

#endif
