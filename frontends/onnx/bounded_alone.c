/* More ops that compute each slice of what is as large as data say (bounded.c) by itself: images of a batch, rows that
 * are normalised, products.  What they make of the padding is padding; where they sum over it, it is 0. */
#include <string.h>

#include "onnx/import.h"

/* Images are counted along the batch, of which nothing else has as many. */
static bool pass_images(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    (void)n;
    return operand == 0 && axis == 0;
}

/* Positions that it gives as well are those in the whole batch: of the images that are there, the same. */
static bool pass_max_pool(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    n->counted = n->out_count > 1 ? 3 : 1;
    n->count_axis[1] = 0;
    return operand == 0 && axis == 0;
}

static bool pass_resized(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    uint32_t at = n->opset >= 11 ? 2 : 1;
    const Tensor *scales = onnx_has(n, at) ? n->in[at]->known : NULL;
    return operand == 0 && axis == 0 && !onnx_attribute(n, "axes") && scales && shape_elements(&scales->type->shape) &&
           tensor_number(scales, 0) == 1;
}

/* Each image by its own grid */
static bool pass_sampled(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    return axis == 0 && onnx_has(n, 0) && onnx_has(n, 1) && n->in[!operand]->count == n->in[operand]->count &&
           n->in[!operand]->count_axis == 0;
}

/* Slices before the axis from which on they are normalised; all three results */
static bool pass_normalised(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    int64_t from;
    if (operand != 0 || !onnx_axis(n, "axis", -1, onnx_rank(n, 0), &from) || axis >= from)
        return false;
    n->counted = (1u << (n->out_count < 3 ? n->out_count : 3)) - 1;
    n->count_axis[1] = n->count_axis[2] = axis;
    return true;
}

static bool pass_along_others(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    int64_t along;
    return operand == 0 && n->opset >= 13 && onnx_axis(n, "axis", -1, onnx_rank(n, 0), &along) && along != axis;
}

/* Sums from the begin on see nothing of the padding; those from the end see zeros. */
static bool pass_sums(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    double given;
    uint32_t rank = onnx_rank(n, 0);
    if (operand != 0 || !onnx_has(n, 1) || !onnx_known_number(n, 1, &given))
        return false;
    bool along = given == axis || given + rank == axis;
    return !along || !onnx_int(n, "reverse", 0) || onnx_mask_operand(n, 0, "0");
}

/* Positions become vectors along an axis that is put between those of their own. */
static bool pass_one_hot(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    int64_t put;
    if (operand != 0 || !onnx_axis(n, "axis", -1, onnx_rank(n, 0) + 1, &put))
        return false;
    n->count_axis[0] = axis + (put <= axis);
    return true;
}

/* As many truths as there are entries: those behind are false.  The op has a count of its own. */
static bool mask_truths(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    int64_t along = 0;
    const OnnxValue *x = n->in[0], *chosen = n->in_count > 1 ? n->in[1] : NULL;
    bool given = onnx_attribute(n, "axis") != NULL;
    if (!chosen || (given && !onnx_axis(n, "axis", 0, onnx_rank(n, 0), &along)))
        return false;
    n->count = NULL;
    n->counted = 0;
    if (operand == 0) /* what it is counted by is masked with the other operand */
        return along == axis && (given || onnx_rank(n, 0) == 1) && chosen->count == x->count;
    return onnx_mask_operand(n, 1, "0");
}

/* Along an axis that the product keeps, or along that which it sums over */
static bool pass_product(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    uint32_t rank = onnx_rank(n, operand), other = onnx_rank(n, !operand);
    bool summed = rank == 1 || axis + (operand ? 2 : 1) == rank;
    if (rank > 2 || other > 2 || !onnx_has(n, !operand))
        return false;
    if (!summed) {
        n->count_axis[0] = operand && other == 2 ? 1 : 0;
        return n->in[!operand]->count == NULL;
    }
    n->counted = 0;
    n->count = NULL;
    OnnxValue *across = n->in[!operand];
    uint32_t across_axis = other == 1 ? 0 : operand ? 1 : 0;
    bool same = across->count == n->in[operand]->count && across->count_axis == across_axis;
    return same && onnx_mask_operand(n, operand, "0") && onnx_mask_operand(n, !operand, "0");
}

static bool pass_tiled(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    const Tensor *times = onnx_has(n, 1) ? n->in[1]->known : NULL;
    return operand == 0 && n->opset >= 6 && times && axis < shape_elements(&times->type->shape) &&
           onnx_int_at(times, axis) == 1;
}

/* Along other axes */
static bool pass_padded(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    const Tensor *pads = onnx_has(n, 1) ? n->in[1]->known : NULL;
    uint32_t rank = onnx_rank(n, 0);
    return operand == 0 && n->opset >= 11 && !onnx_has(n, 3) && pads &&
           shape_elements(&pads->type->shape) == 2 * (int64_t)rank && onnx_int_at(pads, axis) == 0 &&
           onnx_int_at(pads, axis + rank) == 0;
}

/* By one scale for all */
static bool pass_quantised(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    (void)axis;
    return operand == 0 && onnx_has(n, 1) && shape_elements(&onnx_type(n, 1)->shape) == 1;
}

static const struct {
    const char *op;
    bool (*passes)(OnnxNode *n, uint32_t operand, uint32_t axis);
} alone[] = {
    {"Conv", pass_images},
    {"ConvTranspose", pass_images},
    {"BatchNormalization", pass_images},
    {"InstanceNormalization", pass_images},
    {"GroupNormalization", pass_images},
    {"LRN", pass_images},
    {"AveragePool", pass_images},
    {"LpPool", pass_images},
    {"GlobalAveragePool", pass_images},
    {"GlobalMaxPool", pass_images},
    {"GlobalLpPool", pass_images},
    {"DepthToSpace", pass_images},
    {"SpaceToDepth", pass_images},
    {"MaxPool", pass_max_pool},
    {"Resize", pass_resized},
    {"GridSample", pass_sampled},
    {"LayerNormalization", pass_normalised},
    {"RMSNormalization", pass_normalised},
    {"Hardmax", pass_along_others},
    {"LpNormalization", pass_along_others},
    {"CumSum", pass_sums},
    {"OneHot", pass_one_hot},
    {"Compress", mask_truths},
    {"MatMul", pass_product},
    {"Tile", pass_tiled},
    {"Pad", pass_padded},
    {"QuantizeLinear", pass_quantised},
    {"DequantizeLinear", pass_quantised},
};

bool onnx_pass_alone(OnnxNode *n, uint32_t operand)
{
    const OnnxValue *value = n->in[operand];
    n->count = value->count;
    n->counted = 1;
    n->count_axis[0] = value->count_axis;
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (strcmp(n->proto->op_type, alone[i].op) == 0)
            return alone[i].passes(n, operand, value->count_axis);
    return false;
}
