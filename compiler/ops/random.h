/* Philox 4x32-10: random words as a pure function of a key and a position (Salmon, Moraes, Dror, Shaw: "Parallel
 * random numbers: as easy as 1, 2, 3", SC11).
 *
 * Element i of a tensor takes word i % 4 of the block with counter (i / 4, 0) and key = seed, each 64 bits low word
 * first.  So any element can be drawn by itself, in any order, on any target, with the same bits. */
#ifndef NNC_OPS_RANDOM_H
#define NNC_OPS_RANDOM_H

#include <stdint.h>

static inline void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    uint64_t p0 = (uint64_t)0xD2511F53 * c[0], p1 = (uint64_t)0xCD9E8D57 * c[2];
    uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c[3] = (uint32_t)p0;
}

static inline void philox(uint64_t key, uint64_t counter, uint32_t word[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    word[0] = (uint32_t)counter;
    word[1] = (uint32_t)(counter >> 32);
    word[2] = word[3] = 0;
    for (int round = 0; round < 10; round++) {
        philox_round(word, k0, k1);
        k0 += 0x9E3779B9; /* golden ratio */
        k1 += 0xBB67AE85; /* sqrt(3) - 1 */
    }
}

/* A word as a number in [0, 1) with 24 bits: exact in float. */
static inline double random_unit(uint32_t word)
{
    return (double)(word >> 8) * 0x1p-24;
}

#endif
