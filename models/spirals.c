/* Trains spirals.nnc: the library that nnc wrote of it, and nothing else. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "spirals.h"

enum { BATCH = 64, STEPS = 2000, TESTS = 1000 };

static unsigned char params[SPIRALS_PARAMS_BYTES] __attribute__((aligned(64)));
static unsigned char state[SPIRALS_STATE_BYTES] __attribute__((aligned(64)));
static unsigned char arena[SPIRALS_ARENA_BYTES] __attribute__((aligned(64)));

static float chance(void) /* from 0 to 1 */
{
    static uint32_t seed = 1;
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 16777216.0f;
}

static int64_t draw_point(float point[2])
{
    int64_t spiral = chance() < 0.5f;
    float t = chance(), angle = 9.0f * t + (spiral ? 3.14159265f : 0.0f);
    point[0] = t * cosf(angle) + 0.01f * chance();
    point[1] = t * sinf(angle) + 0.01f * chance();
    return spiral;
}

int main(void)
{
    static float point[2 * BATCH];
    static int64_t label[BATCH];
    float loss, probability[2];
    int right = 0;

    spirals_params_init(params, 0); /* the weights, as the model draws them */
    spirals_state_init(state);      /* the optimiser's moments */
    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i < BATCH; i++)
            label[i] = draw_point(point + 2 * i);
        spirals_step(point, label, &loss, params, state, arena);
        if (step == 1 || step % 500 == 0)
            printf("step %4d: loss %.3f\n", step, (double)loss);
    }
    for (int i = 0; i < TESTS; i++) {
        int64_t spiral = draw_point(point);
        spirals_classify(point, probability, params, arena);
        right += (probability[1] > probability[0]) == (spiral == 1);
    }
    printf("%.1f %% of %d new points\n", 100.0 * right / TESTS, TESTS);
    return right < TESTS * 95 / 100;
}
