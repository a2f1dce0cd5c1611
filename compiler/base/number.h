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

/* Of what is not negative: what is too much stays the most there is. */
static inline int64_t number_times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t number_plus(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* The greatest common divisor of what is not negative; of a number and 0 it is the number. */
static inline int64_t number_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The largest divisor of a positive number that is at most `limit`, or 1. */
static inline int64_t number_largest_divisor(int64_t of, int64_t limit)
{
    limit = most(1, least(of, limit));
    while (of % limit)
        limit--;
    return limit;
}

/* Of what is not negative, rounded up. */
static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
