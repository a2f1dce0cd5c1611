/* Runs of random numbers, block by block. */
#include "ops/random.h"

void random_words(uint64_t key, int64_t start, int64_t count, int64_t *words)
{
    for (int64_t i = 0; i < count; i += 4) {
        uint32_t word[4];
        philox(key, (uint64_t)(start + i) / 4, word);
        for (int k = 0; k < 4; k++)
            words[i + k] = word[k];
    }
}

void random_uniform(uint64_t key, int64_t start, int64_t count, double low, double scale, double *numbers)
{
    for (int64_t i = 0; i < count; i += 4) {
        uint32_t word[4];
        philox(key, (uint64_t)(start + i) / 4, word);
        for (int k = 0; k < 4; k++)
            numbers[i + k] = low + scale * random_unit(word[k]);
    }
}

#define CHUNK 1024 /* a multiple of four */

static void normal_chunk(const uint32_t *word, int64_t count, double mean, double std, double *numbers)
{
    for (int64_t i = 0; i < count; i += 2) {
        float first, second;
        random_normal_pair(word[i], word[i + 1], &first, &second);
        numbers[i] = mean + std * (double)first;
        numbers[i + 1] = mean + std * (double)second;
    }
}

/* Words first: the second loop runs in vectors. */
void random_normal(uint64_t key, int64_t start, int64_t count, double mean, double std, double *numbers)
{
    uint32_t word[CHUNK];
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t part = count - at < CHUNK ? count - at : CHUNK;
        for (int64_t i = 0; i < part; i += 4)
            philox(key, (uint64_t)(start + at + i) / 4, &word[i]);
        normal_chunk(word, part, mean, std, numbers + at);
    }
}
