/* Windows over an image that is as wide as data say (bounded.c): a sound, of which what stands behind the end is
 * silence.  The op sees what its padding would be there, and what it makes has a count of its own. */
#include <string.h>

#include "onnx/window.h"

/* How many windows there are: (count + plus) / by + 1 */
static bool count_windows(OnnxNode *n, int64_t plus, int64_t by)
{
    n->count = onnx_scaled_count(n, n->count, (OnnxScale){1, plus + by, by});
    return n->count != NULL;
}

/* The window along the axis of operand 0; false where its padding hangs on how wide the image is. */
static bool find_window(OnnxNode *n, uint32_t axis, const int64_t *size, OnnxWindow *w)
{
    bool same = strncmp(onnx_string(n, "auto_pad", "NOTSET"), "SAME", 4) == 0;
    return axis >= 2 && onnx_window(n, size, w) && !w->ceil && (!same || w->stride[axis - 2] == 1);
}

static bool pass_windows(OnnxNode *n, const OnnxWindow *w, uint32_t axis, const char *behind)
{
    uint32_t d = axis - 2;
    int64_t span = (w->size[d] - 1) * w->dilation[d] + 1;
    return onnx_mask_operand(n, 0, behind) && count_windows(n, w->before[d] + w->after[d] - span, w->stride[d]);
}

static bool has_weight(const OnnxNode *n)
{
    return onnx_has(n, 1) && onnx_rank(n, 1) == onnx_rank(n, 0);
}

bool onnx_pass_convolved(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    OnnxWindow w;
    return operand == 0 && has_weight(n) && find_window(n, axis, onnx_type(n, 1)->shape.dim + 2, &w) &&
           pass_windows(n, &w, axis, "0");
}

/* Each pixel adds to a window of the result: behind the last one's there is nothing. */
bool onnx_pass_transposed(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    OnnxWindow w;
    const int64_t *more;
    uint32_t extras, d = axis - 2;
    bool same = strncmp(onnx_string(n, "auto_pad", "NOTSET"), "SAME", 4) == 0;
    if (operand != 0 || axis < 2 || !has_weight(n) || onnx_attribute(n, "output_shape") ||
        !onnx_window(n, onnx_type(n, 1)->shape.dim + 2, &w) || !onnx_mask_operand(n, 0, "0"))
        return false;
    int64_t extra = onnx_ints(n, "output_padding", &more, &extras) && d < extras ? more[d] : 0;
    if (extra < 0 || extra > INT32_MAX)
        return false;
    int64_t plus = (w.size[d] - 1) * w.dilation[d] + 1 - w.stride[d] - w.before[d] - w.after[d] + extra;
    OnnxScale scale = {w.stride[d], same ? 0 : plus, 1};
    n->count = onnx_scaled_count(n, n->count, scale);
    return n->count != NULL;
}

/* Positions that it gives as well are those in an image of the bound's width. */
bool onnx_pass_largest(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    OnnxWindow w;
    const char *least = onnx_farthest(n, onnx_type(n, 0)->dtype, true);
    return operand == 0 && n->out_count == 1 && least && find_window(n, axis, NULL, &w) &&
           pass_windows(n, &w, axis, least);
}

/* A mean that leaves out the padding would leave out what stands behind the end, too. */
bool onnx_pass_averages(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    OnnxWindow w;
    return operand == 0 && find_window(n, axis, NULL, &w) &&
           (onnx_int(n, "count_include_pad", 0) || (!w.before[axis - 2] && !w.after[axis - 2])) &&
           pass_windows(n, &w, axis, "0");
}

/* Pixels that come several times, each so often */
bool onnx_pass_repeated(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    const Tensor *scales = n->opset >= 11 && onnx_has(n, 2) ? n->in[2]->known : NULL;
    const char *place = onnx_string(n, "coordinate_transformation_mode", "half_pixel");
    const char *nearest = onnx_string(n, "nearest_mode", "round_prefer_floor");
    bool halves = strcmp(place, "half_pixel") == 0 || strcmp(place, "pytorch_half_pixel") == 0;
    bool floors = strcmp(place, "asymmetric") == 0 && strcmp(nearest, "floor") == 0;
    if (operand != 0 || onnx_attribute(n, "axes") || !scales || axis >= shape_elements(&scales->type->shape))
        return false;
    double by = tensor_number(scales, axis);
    if (by == 1)
        return true;
    if (!(by >= 1 && by <= INT16_MAX) || by != (double)(int64_t)by ||
        strcmp(onnx_string(n, "mode", "nearest"), "nearest") != 0 ||
        !(floors || (halves && strncmp(nearest, "round", 5) == 0)))
        return false;
    n->count = onnx_scaled_count(n, n->count, (OnnxScale){(int64_t)by, 0, 1});
    return n->count != NULL;
}
