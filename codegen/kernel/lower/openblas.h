/* Contractions as products of matrices that OpenBLAS carries out.
 *
 *     result[row, column] = sum over depth of first[row, depth] * second[depth, column]
 *
 * Each side is some axes of the contraction's normal form (ops/meaning.h), read as the digits of one number: pixels are
 * rows, channels and taps of a window are depth.  What lies in memory as a matrix is read there; of anything else
 * (images that windows slide over, other dtypes, what the kernel computes) a copy is made first, a few lines of the
 * result at a time, as those of the usual lowering of convolutions to matrices (Chellapilla, Puri, Simard 2006). */
#ifndef NNC_KERNEL_LOWER_OPENBLAS_H
#define NNC_KERNEL_LOWER_OPENBLAS_H

#include "kernel/lower/contract.h"

typedef enum BlasSide { SIDE_ROWS, SIDE_COLUMNS, SIDE_DEPTH, SIDE_COUNT } BlasSide;

typedef struct BlasAxes {
    uint32_t axis[MOST_AXES], count; /* outermost first */
    int64_t extent;                  /* of all of them, in one product */
} BlasAxes;

typedef struct BlasMatrix {
    ValueId value; /* NONE: of a result, it lies in scratch */
    const Access *access;
    BlasSide major, minor; /* its rows and columns */
    bool direct;           /* lies in memory as a matrix; else in scratch */
    bool transposed;       /* columns of it are `stride` apart, and their elements follow one another; else rows */
    int64_t stride;
    uint32_t piece; /* of the scratch, where it is not direct */
} BlasMatrix;

typedef struct Blas {
    Lower *lower;
    const Node *node;
    Contraction con;
    DType dtype; /* f32 or f64: of the matrices */
    BlasAxes side[SIDE_COUNT];
    uint32_t batch[MOST_AXES], batch_count; /* axes around all */
    int64_t lines;                          /* of the outermost axis of rows, in one product */
    const Var *chunk;                       /* counts these */
    Index at[MOST_AXES];                    /* per axis: where the loops around are */
    BlasMatrix first, second, result;
    ValueId stored; /* where the result is direct: the value in whose memory it is made */
} Blas;

/* openblas_see.c */

bool blas_see(Lower *lower, Blas *b); /* all but the lines; false where a library has nothing to do */
/* Where an operand or the result is, for the position of each axis. */
void blas_position(const Blas *b, const Access *access, const Index *axis, Index *position);
/* Is it the outermost axis of rows, of which a product has some lines? */
bool blas_cuts(const Blas *b, uint32_t axis);
/* A position of that, from one in the chunk. */
Index blas_line(const Blas *b, Index in_chunk);

void blas_emit(Blas *b); /* openblas_body.c */

#endif
