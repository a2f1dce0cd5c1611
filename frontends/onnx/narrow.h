/* Types of ONNX that the language has not: floats of 8 and 4 bits, integers of 4 and 2.  Their values are kept in the
 * smallest type of the language that has all of them, the carrier; conversions round and wrap as theirs do. */
#ifndef NNC_ONNX_NARROW_H
#define NNC_ONNX_NARROW_H

#include "onnx/import.h"

typedef struct OnnxNarrow {
    int32_t type; /* of ONNX */
    DType carrier;
    uint32_t bits;      /* of an element; those of 4 and 2 are packed, the lowest first */
    uint32_t mantissa;  /* of floats, behind the point */
    int32_t bias;       /* of their exponents; 0: it is an integer */
    double largest;     /* of floats, finite; 0: powers of two from 2^-127 on */
    bool infinite;      /* it has infinities */
    bool unsigned_zero; /* it has no -0: those bits are NaN */
} OnnxNarrow;

const OnnxNarrow *onnx_narrow(int32_t type); /* NULL: the language has the type itself */
uint64_t onnx_narrow_bytes(const OnnxNarrow *narrow, int64_t elements);
void onnx_narrow_unpack(const OnnxNarrow *narrow, const unsigned char *bytes, Tensor *tensor);
bool onnx_write_narrow(OnnxNode *node, const OnnxNarrow *narrow); /* converts operand 0 */
/* `x` as text rounded to values of the type, in its carrier. */
const char *onnx_narrow_text(OnnxNode *node, const OnnxNarrow *narrow, const char *x, bool saturates);

#endif
