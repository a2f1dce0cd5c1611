/* Strassen's product of matrices cut into halves both ways: seven products of quarters in place of eight,
 *
 *     product q = (sum of the first's quarters by first[q]) * (sum of the second's by second[q])
 *     quarter of the result = sum of the products by result[quarter]
 *
 * Quarters are numbered row by row: 0 and 1 above, 2 and 3 below.
 * Strassen, "Gaussian elimination is not optimal", Numerische Mathematik 13, 1969.  Of the forms with seven products
 * his has the least error (Higham, "Accuracy and stability of numerical algorithms", 2002, section 23.2.2): within a
 * bound that grows with the largest elements of both matrices, not of a row and a column. */
#ifndef NNC_KERNEL_STRASSEN_H
#define NNC_KERNEL_STRASSEN_H

#include <stdint.h>

#define STRASSEN_PRODUCTS 7
#define STRASSEN_QUARTERS 4

typedef struct Strassen { /* 1, -1 or 0 */
    int8_t first[STRASSEN_PRODUCTS][STRASSEN_QUARTERS], second[STRASSEN_PRODUCTS][STRASSEN_QUARTERS],
        result[STRASSEN_QUARTERS][STRASSEN_PRODUCTS];
} Strassen;

extern const Strassen strassen_form;

/* The sums for the second operand of each product, from its quarters of so many elements each, which lie one behind the
 * other, as the sums then do.  Each is rounded once. */
void strassen_weights(const float *quarters, int64_t elements, float *sums);

#endif
