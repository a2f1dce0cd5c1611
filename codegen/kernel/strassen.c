/* The coefficients of Strassen's seven products (strassen.h). */
#include "kernel/strassen.h"

const Strassen strassen_form = {
    .first = {{1, 0, 0, 1}, {0, 0, 1, 1}, {1, 0, 0, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 1, 0, -1}},
    .second = {{1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, -1}, {-1, 0, 1, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}, {0, 0, 1, 1}},
    .result = {{1, 0, 0, 1, -1, 0, 1}, {0, 0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0, 0}, {1, -1, 1, 0, 0, 1, 0}},
};

void strassen_weights(const float *quarters, int64_t elements, float *sums)
{
    for (int q = 0; q < STRASSEN_PRODUCTS; q++, sums += elements)
        for (int64_t i = 0; i < elements; i++) {
            double sum = 0;
            for (int k = 0; k < STRASSEN_QUARTERS; k++)
                sum += strassen_form.second[q][k] ? strassen_form.second[q][k] * (double)quarters[k * elements + i] : 0;
            sums[i] = (float)sum;
        }
}
