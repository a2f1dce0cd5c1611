/* The matrices of minimal filtering (winograd.h), by the Toom-Cook construction. */
#include "kernel/winograd.h"

#include <string.h>

/* The product of x^2 - p^2 over the pairs but `without`, as coefficients of 1, x^2, x^4. */
static void even_product(const Winograd *w, uint32_t without, double *coefficient)
{
    uint32_t degree = 0;
    memset(coefficient, 0, (WINOGRAD_MOST_PAIRS + 1) * sizeof *coefficient);
    coefficient[0] = 1;
    for (uint32_t j = 0; j < w->pairs; j++) {
        if (j == without)
            continue;
        degree++;
        for (uint32_t k = degree + 1; k-- > 0;)
            coefficient[k] = (k ? coefficient[k - 1] : 0) - w->point[j] * w->point[j] * coefficient[k];
    }
}

/* What vanishes at all points but one, which is 0 or infinity. */
static void set_ends(Winograd *w)
{
    double even[WINOGRAD_MOST_PAIRS + 1];
    even_product(w, UINT32_MAX, even);
    for (uint32_t k = 0; k <= w->pairs; k++) {
        w->forward[0][2 * k] = even[k];
        w->forward[w->size - 1][2 * k + 1] = even[k];
    }
    w->weights[0][0] = 1 / even[0];
    w->weights[w->size - 1][WINOGRAD_TAPS - 1] = 1;
    w->backward[0][0] = 1;
    w->backward[w->results - 1][w->size - 1] = 1;
}

static void set_point(Winograd *w, uint32_t pair, double sign)
{
    double even[WINOGRAD_MOST_PAIRS + 1], p = sign * w->point[pair], at = 2 * p * p, power = 1;
    uint32_t row = 1 + 2 * pair + (sign < 0);
    even_product(w, pair, even);
    for (uint32_t k = 0; k < w->pairs; k++) { /* x (x + p) times that */
        w->forward[row][2 * k + 2] = even[k];
        w->forward[row][2 * k + 1] = p * even[k];
    }
    for (uint32_t j = 0; j < w->pairs; j++)
        at *= j == pair ? 1 : p * p - w->point[j] * w->point[j];
    for (uint32_t i = 0; i < w->size; i++, power *= p) {
        if (i < WINOGRAD_TAPS)
            w->weights[row][i] = power / at;
        if (i < w->results)
            w->backward[i][row] = power;
    }
}

Winograd winograd_of(uint32_t results)
{
    Winograd w = {.results = results, .size = results + WINOGRAD_TAPS - 1, .pairs = results / 2};
    w.point[0] = results == 2 ? 1 : 0.75;
    w.point[1] = 1.5;
    set_ends(&w);
    for (uint32_t pair = 0; pair < w.pairs; pair++) {
        set_point(&w, pair, 1);
        set_point(&w, pair, -1);
    }
    return w;
}

void winograd_weights(const Winograd *w, const float *taps, int64_t pairs, float *transformed)
{
    for (int64_t pair = 0; pair < pairs; pair++, taps += WINOGRAD_TAPS * WINOGRAD_TAPS) {
        double down[WINOGRAD_MOST_SIZE][WINOGRAD_TAPS] = {{0}};
        for (uint32_t i = 0; i < w->size; i++)
            for (uint32_t h = 0; h < WINOGRAD_TAPS; h++)
                for (uint32_t j = 0; j < WINOGRAD_TAPS; j++)
                    down[i][j] += w->weights[i][h] * (double)taps[h * WINOGRAD_TAPS + j];
        for (uint32_t i = 0; i < w->size; i++)
            for (uint32_t j = 0; j < w->size; j++) {
                double sum = 0;
                for (uint32_t k = 0; k < WINOGRAD_TAPS; k++)
                    sum += down[i][k] * w->weights[j][k];
                transformed[(i * w->size + j) * pairs + pair] = (float)sum;
            }
    }
}
