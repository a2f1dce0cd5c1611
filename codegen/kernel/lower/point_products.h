/* Matrix products of equal size in scratch, one for each point at which a contraction is looked at: elements of a tile
 * of minimal filtering (winograd.h), sums of quarters of matrices (strassen.h).  Rows of `depth` elements, `rows` at
 * each point, by a panel of weights, sums in registers.
 *
 * Layouts, in elements, vectors innermost: weights [panel][point][depth]
 * [vector], to [vector of the panel][point][row]. */
#ifndef NNC_KERNEL_LOWER_POINT_PRODUCTS_H
#define NNC_KERNEL_LOWER_POINT_PRODUCTS_H

#include "base/number.h"
#include "kernel/lower/contract.h"

#define POINT_MOST_ROWS 32 /* of a register tile */

typedef struct PointProducts {
    Lower *lower;
    const Var *lane; /* of the target's vectors */
    int64_t points, depth, rows;
    int64_t row, vector;     /* from one row to the next in `from`, from one vector of the depth to the next, */
    int64_t point;           /* and from one point */
    int64_t most_rows;       /* whose sums stay in registers */
    uint32_t from, to;       /* scratch */
    const Var *panel;        /* the one that is taken */
    int64_t panels, vectors; /* of its group; of each */
    uint32_t weights;        /* buffer */
} PointProducts;

void lower_point_products(const PointProducts *products, Block *block);
/* Do the sums of a register tile, a vector of weights and an element fit in the registers? */
bool lower_points_fit_registers(const Target *target, int64_t rows, int64_t vectors);
/* A loop over begin .. end - 1, or none for one round. */
Index lower_point_loop(Lower *lower, Block **block, const char *name, int64_t begin, int64_t end, LoopKind kind);

#endif
