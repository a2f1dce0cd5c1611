/* The matrices of minimal filtering: what they make of a line is its convolution, and those of the image and of the
 * result are exact in f32. */
#include <math.h>

#include "kernel/winograd.h"
#include "unit.h"

static double draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state / 2147483648.0 - 1;
}

/* A^T ((G g) * (B^T d)) against the sums over the taps. */
static bool filters_a_line(const Winograd *w, uint32_t seed)
{
    double d[WINOGRAD_MOST_SIZE], g[WINOGRAD_TAPS], product[WINOGRAD_MOST_SIZE];
    for (uint32_t i = 0; i < w->size; i++)
        d[i] = draw(&seed);
    for (uint32_t i = 0; i < WINOGRAD_TAPS; i++)
        g[i] = draw(&seed);
    for (uint32_t i = 0; i < w->size; i++) {
        double image = 0, weight = 0;
        for (uint32_t k = 0; k < w->size; k++)
            image += w->forward[i][k] * d[k];
        for (uint32_t k = 0; k < WINOGRAD_TAPS; k++)
            weight += w->weights[i][k] * g[k];
        product[i] = image * weight;
    }
    bool good = true;
    for (uint32_t i = 0; i < w->results; i++) {
        double y = 0, want = d[i] * g[0] + d[i + 1] * g[1] + d[i + 2] * g[2];
        for (uint32_t k = 0; k < w->size; k++)
            y += w->backward[i][k] * product[k];
        good &= fabs(y - want) < 1e-13;
    }
    return good;
}

UNIT(filters_convolve_lines)
{
    for (uint32_t results = 2; results <= WINOGRAD_MOST_RESULTS; results += 2) {
        Winograd w = winograd_of(results);
        EXPECT_INT(w.size, results + 2);
        for (uint32_t seed = 1; seed <= 20; seed++)
            EXPECT(filters_a_line(&w, seed));
    }
}

UNIT(image_and_result_are_not_rounded)
{
    for (uint32_t results = 2; results <= WINOGRAD_MOST_RESULTS; results += 2) {
        Winograd w = winograd_of(results);
        for (uint32_t i = 0; i < w.size; i++)
            for (uint32_t k = 0; k < w.size; k++) {
                EXPECT((float)w.forward[i][k] == w.forward[i][k]);
                EXPECT(i >= results || (float)w.backward[i][k] == w.backward[i][k]);
            }
    }
}

/* Taps of two pairs of channels, against G g G^T. */
UNIT(taps_are_transformed)
{
    Winograd w = winograd_of(4);
    float taps[2 * 9], to[36 * 2];
    uint32_t seed = 7;
    for (uint32_t i = 0; i < 18; i++)
        taps[i] = (float)draw(&seed);
    winograd_weights(&w, taps, 2, to);
    for (uint32_t pair = 0; pair < 2; pair++)
        for (uint32_t i = 0; i < 36; i++) {
            double want = 0;
            for (uint32_t k = 0; k < 9; k++)
                want += w.weights[i / 6][k / 3] * (double)taps[pair * 9 + k] * w.weights[i % 6][k % 3];
            EXPECT(fabs(want - (double)to[i * 2 + pair]) < 1e-7);
        }
}

int main(void)
{
    static const Test test[] = {RUN(filters_convolve_lines), RUN(image_and_result_are_not_rounded),
                                RUN(taps_are_transformed)};
    return UNIT_MAIN(test);
}
