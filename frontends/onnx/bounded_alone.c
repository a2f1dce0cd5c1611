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

static bool pass_conv(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    return pass_images(n, operand, axis) || onnx_pass_convolved(n, operand, axis);
}

static bool pass_conv_transpose(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    return pass_images(n, operand, axis) || onnx_pass_transposed(n, operand, axis);
}

static bool pass_average_pool(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    return pass_images(n, operand, axis) || onnx_pass_averages(n, operand, axis);
}

/* Positions that it gives as well are those in the whole batch: of the images that are there, the same. */
static bool pass_max_pool(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    n->counted = n->out_count > 1 ? 3 : 1;
    n->count_axis[1] = 0;
    return pass_images(n, operand, axis) || onnx_pass_largest(n, operand, axis);
}

/* Each pixel by itself, or with those of other channels */
static bool pass_pixels(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    (void)n;
    return operand == 0 && axis != 1;
}

static bool pass_resized(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    uint32_t at = n->opset >= 11 ? 2 : 1;
    const Tensor *scales = onnx_has(n, at) ? n->in[at]->known : NULL;
    bool batch = operand == 0 && axis == 0 && !onnx_attribute(n, "axes") && scales &&
                 shape_elements(&scales->type->shape) && tensor_number(scales, 0) == 1;
    return batch || onnx_pass_repeated(n, operand, axis);
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

static bool is_summed(const OnnxNode *n, uint32_t operand, uint32_t axis)
{
    uint32_t rank = onnx_rank(n, operand);
    return rank == 1 || axis + (operand ? 2 : 1) == rank;
}

/* Along that axis both are counted alike, and see zeros behind what is there. */
static bool mask_product(OnnxNode *n, uint32_t operand)
{
    const OnnxValue *value = n->in[operand], *other = n->in[!operand];
    n->counted = 0;
    n->count = NULL;
    return other->count == value->count && is_summed(n, !operand, other->count_axis) && onnx_mask_operand(n, 0, "0") &&
           onnx_mask_operand(n, 1, "0");
}

/* May the other operand of a product have what it has at `behind`, counted from the right?  Of a batch it has as many,
 * one for all, or none; rows and columns are one operand's alone. */
static bool goes_with(const OnnxValue *value, const OnnxValue *other, uint32_t behind)
{
    uint32_t rank = other->type->shape.rank;
    if (other->count)
        return behind >= 2 && other->count == value->count && other->count_axis + behind + 1 == rank;
    return behind < 2 || behind >= rank || other->type->shape.dim[rank - 1 - behind] == 1;
}

/* Along an axis that the product keeps, or along that which it sums over */
static bool pass_product(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    if (!onnx_has(n, !operand))
        return onnx_no(n, "operand %d is missing", !operand);
    const OnnxValue *value = n->in[operand], *other = n->in[!operand];
    uint32_t rank = onnx_rank(n, operand), across = onnx_rank(n, !operand), behind = rank - 1 - axis;
    if (is_summed(n, operand, axis))
        return mask_product(n, operand);
    if (across > 1)
        n->count_axis[0] = (rank > across ? rank : across) - 1 - behind;
    else /* by a vector: the dimension that is summed over goes, which of operand 1 stands before the columns */
        n->count_axis[0] = operand && behind == 0 ? axis - 1 : axis;
    return goes_with(value, other, behind);
}

/* Along its own axis who writes the op looks at the count. */
static bool pass_tiled(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    const Tensor *times = onnx_has(n, 1) ? n->in[1]->known : NULL;
    if (operand != 0 || n->opset < 6 || !times || axis >= shape_elements(&times->type->shape))
        return false;
    int64_t by = onnx_int_at(times, axis);
    if (by == 1)
        return true;
    if (by < 1 || by > INT32_MAX || onnx_dim(n, 0, axis) < 1)
        return false;
    n->count = onnx_scaled_count(n, n->count, (OnnxScale){by, 0, 1});
    return n->count != NULL;
}

/* Along other axes, or along its own with a number: there it stands behind what is there, too. */
static bool pass_padded(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    const Tensor *pads = onnx_has(n, 1) ? n->in[1]->known : NULL;
    uint32_t rank = onnx_rank(n, 0);
    if (operand != 0 || n->opset < 11 || onnx_has(n, 3) || !pads ||
        shape_elements(&pads->type->shape) != 2 * (int64_t)rank)
        return false;
    int64_t before = onnx_int_at(pads, axis), after = onnx_int_at(pads, axis + rank);
    if (!before && !after)
        return true;
    const char *number = onnx_has(n, 2) ? onnx_in(n, 2) : "0";
    if (before < 0 || after < 0 || strcmp(onnx_string(n, "mode", "constant"), "constant") != 0 ||
        !onnx_mask_operand(n, 0, number))
        return false;
    n->count = onnx_scaled_count(n, n->count, (OnnxScale){1, before + after, 1});
    return n->count != NULL;
}

/* As many elements as there are positions; those from the end are of what is there. */
static bool pass_elements_at(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    int64_t along;
    if (operand == 1)
        return true;
    if (!onnx_has(n, 1) || !onnx_axis(n, "axis", 0, onnx_rank(n, 0), &along))
        return false;
    n->counted = 0;
    return along != axis || onnx_positions_of_counted(n);
}

/* Which triangle an element is in hangs on where it is from the begin. */
static bool pass_by_place(OnnxNode *n, uint32_t operand, uint32_t axis)
{
    (void)n;
    (void)axis;
    return operand == 0;
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
    {"Conv", pass_conv},
    {"ConvTranspose", pass_conv_transpose},
    {"BatchNormalization", pass_pixels},
    {"InstanceNormalization", pass_images},
    {"GroupNormalization", pass_images},
    {"LRN", pass_pixels},
    {"AveragePool", pass_average_pool},
    {"LpPool", pass_images},
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
    {"GatherElements", pass_elements_at},
    {"Trilu", pass_by_place},
    {"EyeLike", pass_by_place},
    {"RandomNormalLike", pass_by_place},
    {"RandomUniformLike", pass_by_place},
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
