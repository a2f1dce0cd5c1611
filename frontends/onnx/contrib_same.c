/* Ops of the domain com.microsoft that are ops of ONNX, or little more than these: they were there first, or take more
 * types. */
#include <string.h>

#include "onnx/import.h"

#define CONTRIB "com.microsoft"

/* text is ONNX's op, which has the same operands and attributes */
static bool write_as(OnnxNode *n, int64_t opset)
{
    OnnxNode *same = onnx_cover(n, n->row->text, opset, n->in_count);
    for (uint32_t i = 0; i < n->in_count; i++)
        if (onnx_has(n, i))
            onnx_set_operand(same, i, n->in[i]);
    onnx_copy_attributes(same, n);
    return onnx_write_cover(n, same);
}

static bool write_same(OnnxNode *n)
{
    return write_as(n, 21);
}

/* Its modes have the names of two dimensions. */
static bool write_same_sample(OnnxNode *n)
{
    return write_as(n, 16);
}

/* One more dimension, before that which stands at the axis */
static bool write_expand_dims(OnnxNode *n)
{
    double axis;
    uint32_t rank = onnx_rank(n, 0);
    if (!onnx_known(n, 1))
        return false;
    if (!onnx_known_number(n, 1, &axis) || axis < -(double)rank - 1 || axis > rank)
        return onnx_no(n, "its axis is not there");
    return onnx_emit(n, "%s = unsqueeze(%s, %.0f)", onnx_out(n, 0), onnx_in(n, 0), axis < 0 ? axis + rank + 1 : axis);
}

static bool write_inverse(OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    if (rank < 2 || onnx_dim(n, 0, -1) != onnx_dim(n, 0, -2))
        return onnx_no(n, "its operand has no square matrices");
    bool half = dtype_bytes(onnx_type(n, 0)->dtype) == 2;
    return half ? onnx_emit(n, "%s = cast(inverse(cast(%s, to = f32)), to = %s)", onnx_out(n, 0), onnx_in(n, 0),
                            dtype_name(onnx_type(n, 0)->dtype))
                : onnx_emit(n, "%s = inverse(%s)", onnx_out(n, 0), onnx_in(n, 0));
}

/* Distances of all rows of one operand from all of the other */
static bool write_distances(OnnxNode *n)
{
    const char *metric = onnx_string(n, "metric", "sqeuclidean"), *sum;
    bool squared = strcmp(metric, "sqeuclidean") == 0;
    if (onnx_rank(n, 0) != 2 || onnx_rank(n, 1) != 2 || (!squared && strcmp(metric, "euclidean") != 0))
        return onnx_no(n, "it takes the distance %s of rows", metric);
    sum = onnx_text(n, "reduce_sum(square(unsqueeze(%s, 1) - %s), axes = 2)", onnx_in(n, 0), onnx_in(n, 1));
    return onnx_emit(n, squared ? "%s = %s" : "%s = sqrt(%s)", onnx_out(n, 0), sum);
}

/* Windows along an axis, whose elements become a last dimension */
static bool write_unfold(OnnxNode *n)
{
    int64_t axis, size = onnx_int(n, "size", 0), step = onnx_int(n, "step", 1), order[MAX_RANK];
    uint32_t rank = onnx_rank(n, 0);
    if (!onnx_axis(n, "dim", -1, rank, &axis))
        return false;
    int64_t extent = onnx_dim(n, 0, axis);
    if (size < 1 || size > extent || step < 1 || rank + 1 > MAX_RANK)
        return onnx_no(n, "it takes windows of %lld by %lld from %lld elements", (long long)size, (long long)step,
                       (long long)extent);
    int64_t dim[] = {(extent - size) / step + 1, size};
    for (uint32_t d = 0; d < rank; d++) /* the windows' elements stand behind the axis */
        order[d] = d <= axis ? d : d + 1;
    order[rank] = axis + 1;
    const char *shape = onnx_list(n, dim, 2), *at = onnx_temp(n, "places");
    return onnx_emit(n, "%s = iota(axis = 0, shape = %s, dtype = i64) * %lld + iota(axis = 1, shape = %s, dtype = i64)",
                     at, shape, (long long)step, shape) &&
           onnx_emit(n, "%s = transpose(gather(%s, %s, axis = %lld), axes = %s)", onnx_out(n, 0), onnx_in(n, 0), at,
                     (long long)axis, onnx_list(n, order, rank + 1));
}

const OnnxRow onnx_contrib_same[] = {
    {"QuantizeLinear", 1, write_same, "QuantizeLinear", CONTRIB, false},
    {"DequantizeLinear", 1, write_same, "DequantizeLinear", CONTRIB, false},
    {"Pad", 1, write_same, "Pad", CONTRIB, false},
    {"Trilu", 1, write_same, "Trilu", CONTRIB, false},
    {"GatherND", 1, write_same, "GatherND", CONTRIB, false},
    {"GridSample", 1, write_same_sample, "GridSample", CONTRIB, false},
    {"ExpandDims", 1, write_expand_dims, NULL, CONTRIB, false},
    {"Inverse", 1, write_inverse, NULL, CONTRIB, false},
    {"CDist", 1, write_distances, NULL, CONTRIB, false},
    {"UnfoldTensor", 1, write_unfold, NULL, CONTRIB, false},
    {0},
};
