/* Index maps of the evaluator: for each position of a result, in row-major order, the element of an operand that it
 * reads, as an offset and a stride per dimension (0 repeats).  Walked in runs of constant stride along the innermost
 * dimension. */
#ifndef NNC_OPS_STRIDED_H
#define NNC_OPS_STRIDED_H

#include "ir/type.h"

typedef struct Strided {
    uint32_t rank;
    int64_t dim[MAX_RANK], stride[MAX_RANK]; /* strides and offset in elements */
    int64_t offset;
} Strided;

/* The identity: row-major. */
Strided strided_plain(const Shape *shape);
/* An operand of shape `from`, repeated to `to` by NumPy's rule. */
Strided strided_broadcast(const Shape *from, const Shape *to);
/* Joins neighbouring dimensions that one stride steps through, so that runs get long. */
void strided_coalesce(Strided *map);

typedef struct Run {
    int64_t offset, stride, count;
} Run;

typedef struct Walk {
    const Strided *map;
    int64_t index[MAX_RANK], offset, left;
} Walk;

/* Starts at position `start`, for `count` positions, which must exist. */
Walk strided_walk(const Strided *map, int64_t start, int64_t count);
bool strided_next(Walk *walk, Run *run); /* false at the end */

/* out[i] = in[map(i)] over all positions, for elements of 1, 2, 4 or 8 bytes. */
void strided_read(void *out, const void *in, const Strided *map, uint32_t bytes);
/* out[map(i)] = in[i]. */
void strided_write(void *out, const void *in, const Strided *map, uint32_t bytes);

#endif
