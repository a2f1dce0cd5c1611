/* Images read at positions that are computed: grids, regions, boxes. */
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

static const char *corners(const OnnxNode *n)
{
    return onnx_int(n, "align_corners", 0) ? ", corners = true" : "";
}

/* Modes had names of two dimensions at first. */
static bool write_grid_sample(OnnxNode *n)
{
    const char *mode = onnx_string(n, "mode", "linear"), *padding = onnx_string(n, "padding_mode", "zeros");
    const Shape *x = &onnx_type(n, 0)->shape, *grid = &onnx_type(n, 1)->shape;
    mode += strncmp(mode, "bi", 2) == 0 ? 2 : 0;
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "nearest") != 0 && strcmp(mode, "cubic") != 0)
        return onnx_no(n, "its mode is %s", mode);
    if (strcmp(padding, "zeros") != 0 && strcmp(padding, "border") != 0 && strcmp(padding, "reflection") != 0)
        return onnx_no(n, "its padding_mode is %s", padding);
    if (!dtype_is_float(onnx_type(n, 0)->dtype) || onnx_type(n, 0)->dtype != onnx_type(n, 1)->dtype)
        return onnx_no(n, "its image and its grid are not of one type of floats");
    if (x->rank < 3 || grid->rank != x->rank || grid->dim[0] != x->dim[0] || grid->dim[grid->rank - 1] != x->rank - 2)
        return onnx_no(n, "its grid does not fit its image");
    return onnx_emit(n, "%s = grid_sample(%s, %s%s%s%s)", onnx_out(n, 0), onnx_in(n, 0), onnx_in(n, 1),
                     strcmp(mode, "linear") == 0 ? "" : onnx_text(n, ", mode = \"%s\"", mode),
                     strcmp(padding, "zeros") == 0 ? "" : onnx_text(n, ", padding = \"%s\"", padding), corners(n));
}

static bool write_affine_grid(OnnxNode *n)
{
    const int64_t *size;
    uint32_t count;
    if (!onnx_known_ints(n, 1, &size, &count))
        return false;
    if (onnx_rank(n, 0) != 3 || count < 3 || count > MAX_RANK - 1 || onnx_dim(n, 0, 0) != size[0] ||
        onnx_dim(n, 0, 1) != count - 2 || onnx_dim(n, 0, 2) != count - 1)
        return onnx_no(n, "its matrices do not fit its size");
    for (uint32_t d = 2; d < count; d++)
        if (size[d] < 1 || size[d] > INT32_MAX || (size[d] == 1 && onnx_int(n, "align_corners", 0)))
            return onnx_no(n, "its size is impossible");
    return onnx_emit(n, "%s = affine_grid(%s, %s%s)", onnx_out(n, 0), onnx_in(n, 0), onnx_list(n, size + 2, count - 2),
                     corners(n));
}

/* Coordinates were those of corners before opset 16. */
static bool write_roi_align(OnnxNode *n)
{
    const char *mode = onnx_string(n, "mode", "avg"), *edges = n->opset < 16 ? "output_half_pixel" : "half_pixel";
    edges = onnx_string(n, "coordinate_transformation_mode", edges);
    int64_t height = onnx_int(n, "output_height", 1), width = onnx_int(n, "output_width", 1);
    int64_t samples = onnx_int(n, "sampling_ratio", 0);
    bool half = strcmp(edges, "half_pixel") == 0;
    if (least(height, width) < 1 || samples < 0 || most(most(height, width), samples) > INT16_MAX)
        return onnx_no(n, "its extents or its sampling_ratio are impossible");
    if ((strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0) || (!half && strcmp(edges, "output_half_pixel") != 0))
        return onnx_no(n, "its mode is %s, with coordinates by %s", mode, edges);
    if (onnx_rank(n, 0) != 4 || onnx_rank(n, 1) != 2 || onnx_dim(n, 1, 1) != 4 || onnx_rank(n, 2) != 1 ||
        onnx_dim(n, 2, 0) != onnx_dim(n, 1, 0) || onnx_type(n, 0)->dtype != onnx_type(n, 1)->dtype)
        return onnx_no(n, "its regions do not fit its images");
    double scale = onnx_float(n, "spatial_scale", 1);
    const char *scaled = scale == 1 ? "" : onnx_text(n, ", scale = %s", onnx_number(n, onnx_type(n, 0)->dtype, scale));
    const char *how = samples ? onnx_text(n, ", %lld%s", (long long)samples, scaled) : scaled;
    return onnx_emit(n, "%s = %s(%s, %s, %s, %lld, %lld%s%s%s)", onnx_out(n, 0),
                     samples ? "roi_align" : "roi_align_adaptive", onnx_in(n, 0), onnx_in(n, 1), onnx_in(n, 2),
                     (long long)height, (long long)width, how, strcmp(mode, "max") == 0 ? ", mode = \"max\"" : "",
                     half ? "" : ", half_pixel = false");
}

static bool write_max_roi_pool(OnnxNode *n)
{
    const int64_t *size;
    uint32_t count;
    if (!onnx_ints(n, "pooled_shape", &size, &count) || count != 2 || least(size[0], size[1]) < 1 ||
        most(size[0], size[1]) > INT16_MAX)
        return onnx_no(n, "its pooled_shape is impossible");
    if (onnx_rank(n, 0) != 4 || onnx_rank(n, 1) != 2 || onnx_dim(n, 1, 1) != 5 ||
        onnx_type(n, 0)->dtype != onnx_type(n, 1)->dtype || !shape_elements(&onnx_type(n, 0)->shape))
        return onnx_no(n, "its regions do not fit its images");
    double scale = onnx_float(n, "spatial_scale", 1);
    const char *scaled = scale == 1 ? "" : onnx_text(n, ", scale = %s", onnx_number(n, onnx_type(n, 0)->dtype, scale));
    return onnx_emit(n, "%s = max_roi_pool(%s, %s, %lld, %lld%s)", onnx_out(n, 0), onnx_in(n, 0), onnx_in(n, 1),
                     (long long)size[0], (long long)size[1], scaled);
}

const OnnxRow onnx_image[] = {
    {"GridSample", 16, write_grid_sample, NULL, NULL, false},
    {"AffineGrid", 20, write_affine_grid, NULL, NULL, false},
    {"MaxRoiPool", 1, write_max_roi_pool, NULL, NULL, false},
    {"RoiAlign", 10, write_roi_align, NULL, NULL, false},
    {0},
};
