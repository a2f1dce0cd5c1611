/* Strassen's coefficients: of whole numbers they give the product itself. */
#include "kernel/strassen.h"
#include "unit.h"

#define SIZE 2 /* of a quarter, along each side */

typedef int Quarter[SIZE][SIZE];

static int draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (int)(*state >> 24) - 128;
}

/* Element [row][column] of four quarters. */
static int *element(Quarter *quarters, int row, int column)
{
    return &quarters[2 * (row / SIZE) + column / SIZE][row % SIZE][column % SIZE];
}

static int sum_of(const int8_t *sign, Quarter *quarters, int row, int column)
{
    int sum = 0;
    for (int i = 0; i < STRASSEN_QUARTERS; i++)
        sum += sign[i] * quarters[i][row][column];
    return sum;
}

static bool multiplies(uint32_t seed)
{
    Quarter a[STRASSEN_QUARTERS], b[STRASSEN_QUARTERS], product[STRASSEN_PRODUCTS] = {{{0}}};
    for (int i = 0; i < STRASSEN_QUARTERS * SIZE * SIZE; i++) {
        a[i / 4][i / 2 % 2][i % 2] = draw(&seed);
        b[i / 4][i / 2 % 2][i % 2] = draw(&seed);
    }
    for (int q = 0; q < STRASSEN_PRODUCTS; q++)
        for (int i = 0; i < SIZE; i++)
            for (int j = 0; j < SIZE; j++)
                for (int k = 0; k < SIZE; k++)
                    product[q][i][j] +=
                        sum_of(strassen_form.first[q], a, i, k) * sum_of(strassen_form.second[q], b, k, j);
    bool good = true;
    for (int i = 0; i < 2 * SIZE; i++)
        for (int j = 0; j < 2 * SIZE; j++) {
            int want = 0, sum = 0;
            for (int k = 0; k < 2 * SIZE; k++)
                want += *element(a, i, k) * *element(b, k, j);
            for (int q = 0; q < STRASSEN_PRODUCTS; q++)
                sum += strassen_form.result[2 * (i / SIZE) + j / SIZE][q] * product[q][i % SIZE][j % SIZE];
            good &= sum == want;
        }
    return good;
}

UNIT(seven_products_are_eight)
{
    for (uint32_t seed = 1; seed <= 20; seed++)
        EXPECT(multiplies(seed));
}

UNIT(sums_of_weights_follow_one_another)
{
    const float quarters[] = {1, 2, 10, 20, 100, 200, 1000, 2000};
    const float want[] = {1001, 2002, 1, 2, -990, -1980, 99, 198, 1000, 2000, 11, 22, 1100, 2200};
    float sums[2 * STRASSEN_PRODUCTS];
    strassen_weights(quarters, 2, sums);
    for (int i = 0; i < 2 * STRASSEN_PRODUCTS; i++)
        EXPECT(sums[i] == want[i]);
}

int main(void)
{
    static const Test test[] = {RUN(seven_products_are_eight), RUN(sums_of_weights_follow_one_another)};
    return UNIT_MAIN(test);
}
