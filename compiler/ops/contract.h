/* What inference, forms and evaluation of contractions share. */
#ifndef NNC_OPS_CONTRACT_H
#define NNC_OPS_CONTRACT_H

#include "ops/meaning.h"

/* The product that a matmul of these shapes is, and the leading dimensions of its result; false when the shapes, which
 * have a dimension at least, do not fit.  Then `depth` is that of the first operand all the same. */
bool product_of_matmul(const Node *matmul, const Shape *x, const Shape *y, Product *product, Shape *batch);
/* The convolution of an image [n, channels, ...] with a weight [outputs, channels / groups, ...]. */
Convolution convolution_with(const Node *node, const Shape *image, const Shape *weight);

/* Of image, weight and result, conv2d takes the first two, conv2d_transpose result and weight, and
 * conv2d_weight_gradient image and result: the convolution that relates all three. */
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
