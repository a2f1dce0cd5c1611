/* Winograd's minimal filtering, F(m x m, 3 x 3): m x m results of a 3x3 convolution from (m + 2) x (m + 2) elements d
 * and the taps g, by as many products as there are elements:
 *
 *     y = A^T ((G g G^T) * (B^T d B)) A          (* by element)
 *
 * Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015.  The matrices interpolate polynomials at
 * 0, pairs of points +-p and infinity: +-1 for m = 2, +-3/4 and +-3/2 for m = 4.  With these all entries of A and B are
 * exact in f32, and errors are half to a fifth of those by the usual +-1 and +-2 (cf. Barabasz, Anderson, Soodhalter
 * and Gregg, "Error analysis and improving the accuracy of Winograd convolution for deep neural networks", 2020). */
#ifndef NNC_KERNEL_WINOGRAD_H
#define NNC_KERNEL_WINOGRAD_H

#include "base/text.h"

#define WINOGRAD_TAPS         3
#define WINOGRAD_MOST_RESULTS 4
#define WINOGRAD_MOST_SIZE    6
#define WINOGRAD_MOST_PAIRS   2

typedef struct Winograd {
    uint32_t results, size; /* m, m + 2 */
    uint32_t pairs;
    double point[WINOGRAD_MOST_PAIRS];                          /* positive; rows 1 + 2j and 2 + 2j are of +-point[j] */
    double forward[WINOGRAD_MOST_SIZE][WINOGRAD_MOST_SIZE];     /* B^T: rows are points, 0 first, infinity last */
    double weights[WINOGRAD_MOST_SIZE][WINOGRAD_TAPS];          /* G */
    double backward[WINOGRAD_MOST_RESULTS][WINOGRAD_MOST_SIZE]; /* A^T */
} Winograd;

/* Of m = 2 or 4. */
Winograd winograd_of(uint32_t results);

/* The taps of so many pairs of channels, [pairs][3][3], transformed: [size * size][pairs].  Computed in f64, rounded
 * once. */
void winograd_weights(const Winograd *w, const float *taps, int64_t pairs, float *transformed);

#endif
