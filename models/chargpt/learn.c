/* Learns the text of a file, and shows what it writes meanwhile: by the library that nnc wrote of chargpt.nnc, and
 * nothing else.
 *
 *     learn FILE [STEPS [EVERY]]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chargpt.h"

#ifndef WINDOWS
#define WINDOWS 4 /* N of the model */
#endif
#ifndef CONTEXT
#define CONTEXT 256
#endif

static unsigned char params[CHARGPT_PARAMS_BYTES] __attribute__((aligned(64)));
static unsigned char state[CHARGPT_STATE_BYTES] __attribute__((aligned(64)));
static unsigned char arena[CHARGPT_ARENA_BYTES] __attribute__((aligned(64)));
static uint8_t text[1 << 20], window[WINDOWS * (CONTEXT + 1)], prompt[CONTEXT], written[CONTEXT];

static size_t chance(size_t below)
{
    static uint64_t seed = 1;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((seed >> 33) % below);
}

static void show(int64_t seed)
{
    const int32_t length = 1;
    const float temperature = 0.7f;
    prompt[0] = '\n';
    chargpt_write(prompt, &length, &seed, &temperature, written, params, arena);
    printf("%.*s\n", CONTEXT, (const char *)written);
}

int main(int argc, char **argv)
{
    const long steps = argc > 2 ? atol(argv[2]) : 2000, every = argc > 3 ? atol(argv[3]) : 250;
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    const size_t size = file ? fread(text, 1, sizeof text, file) : 0;
    float loss;

    if (size < CONTEXT + 1 || every < 1) {
        fprintf(stderr, "usage: learn FILE [STEPS [EVERY]], of a text of at least %d characters\n", CONTEXT + 1);
        return 2;
    }
    fclose(file);
    for (size_t i = 0; i < size; i++)
        text[i] = text[i] < 128 ? text[i] : '?';
    chargpt_params_init(params, 0);
    chargpt_state_init(state);
    for (long step = 1; step <= steps; step++) {
        for (size_t i = 0; i < WINDOWS; i++)
            memcpy(window + i * (CONTEXT + 1), text + chance(size - CONTEXT), CONTEXT + 1);
        chargpt_step(window, &loss, params, state, arena);
        if (step == 1 || step % every == 0) {
            printf("---- step %ld: loss %.3f\n", step, (double)loss);
            show(step);
        }
    }
    return 0;
}
