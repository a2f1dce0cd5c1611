/* What inference, forms and evaluation of contractions share. */
#ifndef NNC_OPS_CONTRACT_H
#define NNC_OPS_CONTRACT_H

#include "ops/meaning.h"

/* The product that a matmul of these shapes is, and the leading dimensions of its result; false when the shapes, which
 * have a dimension at least, do not fit.  Then `depth` is that of the first operand all the same. */
bool product_of_matmul(const Node *matmul, const Shape *x, const Shape *y, Product *product, Shape *batch);
/* The convolution of an image [n, channels, ...] with a weight [outputs, channels / groups, ...]. */
Convolution convolution_with(const Node *node, const Shape *image, const Shape *weight);

/* Of image, weight and result an op gives one and takes the others: a convolution image and weight, a transposed one
 * result and weight, the gradient of a weight image and result.  There is an op of each kind for 1, 2 and 3 spatial
 * dimensions. */
typedef enum ConvolutionKind {
    CONVOLVES_NOT,
    CONVOLVES_TO_RESULT,
    CONVOLVES_TO_IMAGE,
    CONVOLVES_TO_WEIGHT
} ConvolutionKind;

ConvolutionKind convolution_kind(const Node *node);
uint32_t convolution_rank(const Node *node); /* spatial dimensions */
OpCode convolution_op(ConvolutionKind kind, uint32_t rank);
/* The convolution that relates all three. */
Convolution convolution_relating(const Graph *graph, const Node *node);

/* The axes and accesses of a convolution, without bias and dtypes: what gives the result, the image or the weight. */
Contraction convolution_contraction(const Convolution *convolution);
Contraction convolution_to_image(const Convolution *convolution);
Contraction convolution_to_weight(const Convolution *convolution);
/* Notes which dimensions of a tensor are read outside of it, or between its elements. */
void contraction_guard(Access *access, const Axis *axis, uint32_t axis_count, const Shape *shape);

/* in[2] is the bias, when there is one. */
void contraction_eval(const Contraction *contraction, const Tensor *const *in, Tensor *out);

#endif
