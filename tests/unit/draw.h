/* Numbers drawn from a seed, for damage at random: a linear congruential generator (Knuth's MMIX), its upper bits. */
#ifndef NNC_TESTS_DRAW_H
#define NNC_TESTS_DRAW_H

#include <stdint.h>

/* Below `below`, which is not zero. */
static inline uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

#endif
