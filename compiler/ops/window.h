/* Sliding windows, for convolutions and pools of any number of dimensions. */
#ifndef NNC_OPS_WINDOW_H
#define NNC_OPS_WINDOW_H

#include "ops/infer.h"
#include "ops/meaning.h"

/* stride, pad, dilation and the window's size are in range and the window fits into the padded image.  `weight` is
 * [o, c / groups, ...], or NULL for a pool, whose window is an attribute. */
bool window_check(Graph *graph, NodeId node, const Shape *image, const Shape *weight);

/* The spatial extents of the image, where windows over it give those of `result`, as a transposed convolution makes it:
 * those of the attribute `size`, or the least where that is empty.  Checks the attributes that it reads. */
bool window_image(Graph *graph, NodeId node, const Shape *result, const Shape *weight, Shape *image);

/* The window over an image [n, channels, ...]. */
Window window_of(const Node *node, const Shape *image, const Shape *weight);

/* A plane is all that one channel of one image has, in row-major order. */

typedef struct Box {                         /* the taps of a window that lie inside the image */
    int64_t begin[MAX_RANK], taps[MAX_RANK]; /* the position of the first, and how many there are */
    int64_t rows;                            /* of taps along the last dimension */
    int64_t counted;                         /* all taps, or those in the padding too */
} Box;
/* Of the window that result number `number` of the plane looks through. */
Box window_box(const Window *window, int64_t number, bool count_pad);
/* Where row number `row` of the box begins in the plane. */
int64_t window_row(const Window *window, const Box *box, int64_t row);

#endif
