/* Philox 4x32-10: random words as a pure function of a key and a position (Salmon, Moraes, Dror, Shaw: "Parallel
 * random numbers: as easy as 1, 2, 3", SC11).
 *
 * Element i of a tensor takes word i % 4 of the block with counter (i / 4, 0) and key = seed, each 64 bits low word
 * first.  So any element can be drawn by itself, in any order, on any target, with the same bits.  Emitted code has
 * these functions too (codegen/c/random.c). */
#ifndef NNC_OPS_RANDOM_H
#define NNC_OPS_RANDOM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    uint64_t p0 = (uint64_t)0xD2511F53 * c[0], p1 = (uint64_t)0xCD9E8D57 * c[2];
    uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c[3] = (uint32_t)p0;
}

/* Block `counter` of one of the streams of a key: 0 is for numbers, 1 for keys made of it. */
static inline void philox_of(uint64_t key, uint64_t counter, uint32_t stream, uint32_t word[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    word[0] = (uint32_t)counter;
    word[1] = (uint32_t)(counter >> 32);
    word[2] = stream;
    word[3] = 0;
    for (int round = 0; round < 10; round++) {
        philox_round(word, k0, k1);
        k0 += 0x9E3779B9; /* golden ratio */
        k1 += 0xBB67AE85; /* sqrt(3) - 1 */
    }
}

static inline void philox(uint64_t key, uint64_t counter, uint32_t word[4])
{
    philox_of(key, counter, 0, word);
}

/* A key made of a key and a number: the first half of block `number` of stream 1. */
static inline int64_t random_fold_in(int64_t key, int64_t number)
{
    uint32_t word[4];
    philox_of((uint64_t)key, (uint64_t)number, 1, word);
    return (int64_t)((uint64_t)word[1] << 32 | word[0]);
}

/* A word as a number in [0, 1) with 24 bits: exact in float. */
static inline double random_unit(uint32_t word)
{
    return (double)(word >> 8) * 0x1p-24;
}

/* Two independent Gaussian numbers (Box and Muller 1958): r = sqrt(-2 log(1 - unit(a))), t = 2 pi unit(b), then r cos t
 * and r sin t.  The logarithm, sine and cosine are the polynomials of Cephes in float, built from + - * and sqrt alone,
 * which IEEE 754 rounds exactly: the same bits with any libm, provided that nothing is contracted to a fused
 * multiply-add (-ffp-contract=off). */

/* The natural logarithm of (2^24 - w) / 2^24, for w below 2^24. */
static inline float random_log(uint32_t w)
{
    float u = (float)(int32_t)(0x1000000 - w) * 0x1p-24f;
    int32_t bits;
    memcpy(&bits, &u, sizeof bits);
    int32_t exponent = (bits - 0x3f3504f3) >> 23; /* u = m 2^exponent with m from sqrt(1/2) to sqrt(2) */
    bits -= exponent * (1 << 23);
    float m, e = (float)exponent;
    memcpy(&m, &bits, sizeof m);

    float x = m - 1, z = x * x, p = 7.0376836292e-2f;
    p = p * x - 1.1514610310e-1f;
    p = p * x + 1.1676998740e-1f;
    p = p * x - 1.2420140846e-1f;
    p = p * x + 1.4249322787e-1f;
    p = p * x - 1.6668057665e-1f;
    p = p * x + 2.0000714765e-1f;
    p = p * x - 2.4999993993e-1f;
    p = p * x + 3.3333331174e-1f;
    return e * 0.693359375f + (x + (p * x * z - e * 2.12194440e-4f - 0.5f * z));
}

static inline void random_normal_pair(uint32_t a, uint32_t b, float *first, float *second)
{
    float r = sqrtf(-2 * random_log(a >> 8));
    uint32_t turn = (b >> 8) + (1u << 21), quadrant = turn >> 22 & 3; /* t is quadrant * pi / 2 + x, |x| <= pi / 4 */
    float x = (float)((int32_t)(turn & 0x3fffff) - (1 << 21)) * (6.2831853f * 0x1p-24f), z = x * x;
    float sine = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
    float cosine = ((2.4433157118e-5f * z - 1.3887316255e-3f) * z + 4.1666645683e-2f) * z * z - 0.5f * z + 1;
    float c = quadrant & 1 ? sine : cosine, s = quadrant & 1 ? cosine : sine;
    *first = (quadrant + 1) & 2 ? -(r * c) : r * c;
    *second = quadrant & 2 ? -(r * s) : r * s;
}

/* Elements start ... start + count of a tensor, start being a multiple of 4; the arrays have room for count rounded up
 * to one.  Words; low + scale * unit(word); mean + std * a Gaussian number: even elements take the first, odd ones the
 * second of the pair.  The last two in double. */
void random_words(uint64_t key, int64_t start, int64_t count, int64_t *words);
void random_uniform(uint64_t key, int64_t start, int64_t count, double low, double scale, double *numbers);
void random_normal(uint64_t key, int64_t start, int64_t count, double mean, double std, double *numbers);

#endif
