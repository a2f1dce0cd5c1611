/* Arithmetic of counts and positions. */
#ifndef NNC_BASE_NUMBER_H
#define NNC_BASE_NUMBER_H

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of what is not negative, rounded up. */
static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
