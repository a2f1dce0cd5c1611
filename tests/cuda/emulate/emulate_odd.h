/* Rounds to f32 so that rounding again to 16 bits gives what one rounding would: inexact results get an odd last bit.
 */
#ifndef NNC_TESTS_EMULATE_ODD_H
#define NNC_TESTS_EMULATE_ODD_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace emulate
{

inline float odd(double x)
{
    float y = (float)x;
    uint32_t bits;
    if ((double)y == x || y != y || std::isinf(y))
        return y;
    if (fabs((double)y) > fabs(x))
        y = nextafterf(y, 0);
    memcpy(&bits, &y, sizeof bits);
    bits |= 1;
    memcpy(&y, &bits, sizeof y);
    return y;
}

} // namespace emulate

#endif
