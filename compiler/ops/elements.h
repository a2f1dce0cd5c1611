/* Elements on their way between a tensor's dtype and the number the evaluator computes with. */
#ifndef NNC_OPS_ELEMENTS_H
#define NNC_OPS_ELEMENTS_H

#include "ir/graph.h"
#include "ops/strided.h"

typedef enum Compute {
    COMPUTE_F32, /* float: f32, f16 and bf16 in elementwise ops */
    COMPUTE_F64, /* double: f64; and whatever floats a reduction or contraction sums */
    COMPUTE_I64, /* int64_t: integers and bool */
    COMPUTE_U64, /* uint64_t: u64, whose bits Number.i holds */
} Compute;

typedef union Number { /* of COMPUTE_F64, COMPUTE_I64 or COMPUTE_U64 */
    double f;
    int64_t i;
    uint64_t u;
} Number;

Compute elements_compute(DType dtype);       /* F32, F64, I64 or U64 */
Compute elements_compute_exact(DType dtype); /* F64, I64 or U64: holds every value of the dtype */

/* `count` elements at positions start ... of the map, as numbers. Floats to I64 truncate, clamped; NaN is 0; u64
 * beyond I64 are clamped. */
void elements_load(const Tensor *tensor, const Strided *map, int64_t start, int64_t count, Compute to, void *numbers);
/* The same from elements that are evenly apart. */
void elements_load_run(const Tensor *tensor, Run run, Compute to, void *numbers);
/* The same from consecutive elements. */
void elements_load_plain(const Tensor *tensor, int64_t start, int64_t count, Compute to, void *numbers);
/* Rounds (once, to nearest even) or converts, as cast does. */
void elements_store(Tensor *tensor, int64_t start, int64_t count, Compute from, const void *numbers);
void elements_fill(Tensor *tensor, double number);

#endif
