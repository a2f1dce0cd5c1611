/* Checks of a sliding window, for conv2d and the pools. */
#ifndef NNC_OPS_WINDOW_H
#define NNC_OPS_WINDOW_H

#include "ops/infer.h"

/* stride, pad, dilation and the window's size are in range and the window fits into the padded image. */
bool check_window(Graph *graph, NodeId node);

#endif
