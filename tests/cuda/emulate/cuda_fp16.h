/* Conversions of half precision, as CUDA's cuda_fp16.h has them. */
#ifndef NNC_TESTS_EMULATE_CUDA_FP16_H
#define NNC_TESTS_EMULATE_CUDA_FP16_H

#include "emulate_odd.h"

struct __half {
    uint16_t bits;
};

inline __half __ushort_as_half(uint16_t bits)
{
    return {bits};
}

inline uint16_t __half_as_ushort(__half x)
{
    return x.bits;
}

inline float __half2float(__half x)
{
    const int exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent     ? ldexpf((float)(fraction + 1024), exponent - 25)
                                      : ldexpf((float)fraction, -24);
    return x.bits & 0x8000 ? -size : size;
}

inline __half __float2half_rn(float x)
{
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const float size = fabsf(x);
    int exponent;
    if (x != x)
        return {0x7fff};
    if (size >= 65520.0f)
        return {(uint16_t)(sign | 0x7c00)};
    frexpf(size, &exponent);         /* size < 2^exponent */
    if (size == 0 || exponent < -13) /* subnormal: units of 2^-24 */
        return {(uint16_t)(sign | (uint16_t)rintf(ldexpf(size, 24)))};
    const int units = (int)rintf(ldexpf(size, 11 - exponent)); /* 1024 ... 2048, which carries into the exponent */
    return {(uint16_t)(sign | (units - 1024 + ((exponent + 14) << 10)))};
}

inline __half __double2half(double x)
{
    return __float2half_rn(emulate::odd(x));
}

#endif
