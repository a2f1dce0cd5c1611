/* Windows of convolutions and pools over the dimensions after the second. */
#ifndef NNC_ONNX_WINDOW_H
#define NNC_ONNX_WINDOW_H

#include "onnx/import.h"

typedef struct OnnxWindow {
    uint32_t rank; /* of the image */
    int64_t size[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], before[MAX_RANK], after[MAX_RANK];
    bool ceil;
} OnnxWindow;

/* From the attributes, for operand 0; `size` is that of the weight, or NULL: kernel_shape says it.  Automatic padding
 * is worked out.  False after onnx_no. */
bool onnx_window(OnnxNode *node, const int64_t *size, OnnxWindow *window);
/* `stride = [2, 2], pad = [0, 0, 1, 1], dilation = [1, 1]`, each with a comma before it, where it is not the default.
 */
const char *onnx_window_text(const OnnxNode *node, const OnnxWindow *window, int64_t default_stride);
/* `pool(x, window = 2, stride = 2)` and what else the window says; `rest` comes last. */
const char *onnx_pool_text(OnnxNode *node, const OnnxWindow *window, const char *x, const char *pool, const char *rest);

#endif
