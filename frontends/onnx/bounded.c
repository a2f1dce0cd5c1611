/* Results as large as data say: a static bound, and a count that is a value of its own.
 *
 * What stands behind the count is padding.  An output of the model that is bounded is followed by its count, as a
 * result of its own, `y.count`.  Ops that move whole entries along pass the count on; all others refuse such operands.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

/* The count that the text calls so, of results `i` along an axis */
void onnx_set_count(OnnxNode *n, const char *name, uint32_t i, uint32_t axis)
{
    n->count = n->count ? n->count : onnx_written(n, name);
    n->counted |= 1u << i;
    n->count_axis[i] = axis;
}

void onnx_take_counts(const OnnxNode *n)
{
    for (uint32_t i = 0; n->count && i < n->out_count && i < COUNTED_RESULTS; i++)
        if ((n->counted >> i & 1) && n->out[i]) {
            n->out[i]->count = n->count;
            n->out[i]->count_axis = n->count_axis[i];
        }
}

struct OnnxScaled {
    const OnnxBlock *block;
    const OnnxValue *from;
    OnnxScale scale;
    OnnxValue *count;
};

static bool is_scaled(const struct OnnxScaled *known, const struct OnnxScaled *wanted)
{
    return known->block == wanted->block && known->from == wanted->from && known->scale.times == wanted->scale.times &&
           known->scale.plus == wanted->scale.plus && known->scale.by == wanted->scale.by;
}

OnnxValue *onnx_scaled_count(OnnxNode *n, OnnxValue *count, OnnxScale scale)
{
    Onnx *onnx = n->onnx;
    struct OnnxScaled scaled = {onnx->block, count, scale, NULL};
    if (scale.times == 1 && scale.plus == 0 && scale.by == 1)
        return count;
    for (uint32_t i = 0; i < onnx->scaled_count; i++)
        if (is_scaled(&onnx->scaled[i], &scaled))
            return onnx->scaled[i].count;
    const char *text = onnx_name_value(onnx, count);
    if (scale.times != 1)
        text = onnx_text(n, "%s * %lld", text, (long long)scale.times);
    if (scale.plus)
        text = onnx_text(n, scale.plus < 0 ? "%s - %lld" : "%s + %lld", text, llabs(scale.plus));
    if (scale.plus < 0)
        text = onnx_text(n, "maximum(%s, 0)", text);
    else if (scale.plus && scale.by != 1)
        text = onnx_text(n, "(%s)", text);
    if (scale.by != 1)
        text = onnx_text(n, "%s / %lld", text, (long long)scale.by);
    scaled.count = onnx_define_value(n, "many", "%s", text);
    if (!scaled.count)
        return NULL;
    scaled.count->whole = count->whole;
    ARENA_PUSH(onnx->arena, onnx->scaled, onnx->scaled_count, onnx->scaled_capacity, scaled);
    return scaled.count;
}

/* Ops */

static bool write_non_zero(OnnxNode *n)
{
    if (!onnx_has(n, 0))
        return onnx_no(n, "operand 0 is missing");
    OnnxValue *before = onnx_non_zero_found(n->onnx, n->in[0]);
    if (before) {
        onnx_set_value(n, 0, before);
        return true;
    }
    n->count = onnx_count_found(n->onnx, n->onnx->block, n->in[0]);
    const char *count = onnx_temp(n, "many"), *y = onnx_out(n, 0), *x = onnx_in(n, 0);
    if (onnx_rank(n, 0) == 0)
        x = onnx_text(n, "reshape(%s, shape = [1])", x);
    if (!onnx_emit(n, "(%s, %s) = nonzero(%s)", y, count, x))
        return false;
    onnx_set_count(n, count, 0, 1);
    return true;
}

/* What is known is exact. */
static bool write_known_non_zero(OnnxNode *n)
{
    const Tensor *known = n->in[0]->known;
    const Shape *shape = &known->type->shape;
    int64_t elements = shape_elements(shape), count = 0, next = 0, stride[MAX_RANK] = {1};
    for (int64_t i = 0; i < elements; i++)
        count += tensor_number(known, i) != 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        stride[d] = 1;
        for (uint32_t k = d + 1; k < shape->rank; k++)
            stride[d] *= shape->dim[k];
    }
    int64_t dim[] = {shape->rank, count};
    Tensor *result = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_I64, 2, dim));
    for (int64_t i = 0; i < elements; i++) {
        if (tensor_number(known, i) == 0)
            continue;
        for (uint32_t d = 0; d < shape->rank; d++)
            ((int64_t *)result->data)[d * count + next] = i / stride[d] % shape->dim[d];
        next++;
    }
    onnx_set_known(n, 0, result);
    return true;
}

static bool write_either_non_zero(OnnxNode *n)
{
    return onnx_has(n, 0) && n->in[0]->known ? write_known_non_zero(n) : write_non_zero(n);
}

static const char *flat(OnnxNode *n, const char *x, const Shape *shape)
{
    return shape->rank == 1 ? x : onnx_text(n, "reshape(%s, shape = [%lld])", x, (long long)shape_elements(shape));
}

static bool write_known_compress(OnnxNode *n, bool along, int64_t axis)
{
    const Tensor *chosen = n->in[1]->known;
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t extent = along ? shape->dim[axis] : shape_elements(shape), given = shape_elements(&chosen->type->shape);
    int64_t *list = ARENA_ARRAY(n->onnx->arena, int64_t, least(extent, given) + 1);
    uint32_t count = 0;
    for (int64_t i = 0; i < least(extent, given); i++)
        if (tensor_number(chosen, i) != 0)
            list[count++] = i;
    const char *x = along ? onnx_in(n, 0) : flat(n, onnx_in(n, 0), shape);
    return onnx_emit(n, "%s = gather(%s, %s, axis = %lld)", onnx_out(n, 0), x, onnx_known_list(n, list, count, "kept"),
                     (long long)axis);
}

static bool write_compress(OnnxNode *n)
{
    int64_t axis = 0;
    bool along = onnx_attribute(n, "axis") != NULL;
    if (onnx_rank(n, 1) != 1 || (along && !onnx_axis(n, "axis", 0, onnx_rank(n, 0), &axis)))
        return onnx_no(n, "what it chooses by is no list");
    if (n->in[1]->known)
        return write_known_compress(n, along, axis);
    int64_t extent = along ? onnx_dim(n, 0, axis) : shape_elements(&onnx_type(n, 0)->shape);
    if (onnx_dim(n, 1, 0) <= extent) /* others that they choose have as many */
        n->count = onnx_count_found(n->onnx, n->onnx->block, n->in[1]);
    const char *count = onnx_temp(n, "many"), *y = onnx_out(n, 0);
    const char *where = along ? onnx_text(n, ", axis = %lld", (long long)axis) : "";
    if (!onnx_emit(n, "(%s, %s) = compress(%s, %s%s)", y, count, onnx_in(n, 0), onnx_in(n, 1), where))
        return false;
    onnx_set_count(n, count, 0, (uint32_t)axis);
    return true;
}

/* What is there, and behind it the first entry again and again: no other one is found by that. */
static const char *repeat_first(OnnxNode *n, int64_t axis)
{
    const char *first = onnx_temp(n, "first"), *name = onnx_in(n, 0);
    return onnx_emit(n, "%s = slice(%s, axes = [%lld], begin = [0], end = [1])", first, name, (long long)axis) &&
                   onnx_mask_operand(n, 0, first)
               ? onnx_in(n, 0)
               : NULL;
}

/* Of `value`, whose first entry was repeated: how often each is there, and how many there are. */
static bool count_without_repeats(OnnxNode *n, const OnnxValue *value, const char *which, const char *repeated,
                                  const char *found, const char *many)
{
    const char *there = onnx_name_value(n->onnx, value->count), *own = onnx_temp(n, "own");
    long long extent = value->type->shape.dim[value->count_axis];
    OnnxValue *place = onnx_written(n, which); /* one for each entry that is there */
    place->count = value->count;
    place->count_axis = 0;
    place->maker = n;
    onnx_set_value(n, 2, place);
    return onnx_emit(n, "%s = iota(axis = 0, shape = [%lld], dtype = i64) == gather(%s, 0, axis = 0)", own, extent,
                     which) &&
           onnx_emit(n, "%s = %s - select(%s, %lld - %s, 0)", onnx_out(n, 3), repeated, own, extent, there) &&
           onnx_emit(n, "%s = select(%s == 0, 0, %s)", many, there, found);
}

/* Along an axis, or of all elements: the different ones, where each stands first, which each is, how often it is there.
 */
static bool write_unique(OnnxNode *n)
{
    const OnnxValue *value = onnx_has(n, 0) ? n->in[0] : NULL;
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t axis = 0;
    bool counted = value && value->count, along = onnx_attribute(n, "axis") != NULL,
         sorted = onnx_int(n, "sorted", 1) != 0;
    if (along && !onnx_axis(n, "axis", 0, shape->rank, &axis))
        return false;
    if (!shape_elements(shape))
        return onnx_no(n, "it has no elements");
    const char *x = counted ? repeat_first(n, axis) : along ? onnx_in(n, 0) : flat(n, onnx_in(n, 0), shape);
    const char *count = onnx_temp(n, "many"), *found = counted ? onnx_temp(n, "found") : count;
    const char *y = onnx_out(n, 0), *first = onnx_out(n, 1), *which = onnx_out(n, 2);
    const char *times = counted ? onnx_temp(n, "times") : onnx_out(n, 3);
    if (!x || !onnx_emit(n, "(%s, %s, %s, %s, %s) = unique(%s, axis = %lld%s)", y, first, which, times, found, x,
                         (long long)axis, sorted ? "" : ", sorted = false"))
        return false;
    if (counted && !count_without_repeats(n, value, which, times, found, count))
        return false;
    onnx_set_count(n, count, 0, (uint32_t)axis);
    onnx_set_count(n, count, 1, 0);
    onnx_set_count(n, count, 3, 0);
    return true;
}

/* A number that is known: an operand, or what stands for one that is left out */
static bool take_number(OnnxNode *n, uint32_t i, double *number)
{
    return !onnx_has(n, i) ||
           (onnx_known(n, i) && (onnx_known_number(n, i, number) || onnx_no(n, "operand %u is no number", i)));
}

/* No rows: without a number of boxes for each class, none is asked for. */
static bool select_nothing(OnnxNode *n)
{
    int64_t dim[] = {0, 3};
    onnx_set_known(n, 0, tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_I64, 2, dim)));
    return true;
}

/* Rows of batch, class and box */
static bool write_non_max_suppression(OnnxNode *n)
{
    double most_boxes = 0, overlap = 0, least_score = 0;
    if (onnx_rank(n, 0) != 3 || onnx_rank(n, 1) != 3 || onnx_dim(n, 0, 0) != onnx_dim(n, 1, 0) ||
        onnx_dim(n, 0, 1) != onnx_dim(n, 1, 2) || onnx_dim(n, 0, 2) != 4)
        return onnx_no(n, "its boxes do not fit its scores");
    if (!take_number(n, 2, &most_boxes) || !take_number(n, 3, &overlap) || !take_number(n, 4, &least_score))
        return false;
    long long batch = onnx_dim(n, 0, 0), boxes = onnx_dim(n, 0, 1), classes = onnx_dim(n, 1, 1);
    long long rows = batch * classes;
    long long each = most_boxes >= (double)boxes ? boxes : most_boxes < 0 ? 0 : (long long)most_boxes;
    if (rows * each < 1)
        return select_nothing(n);
    const char *wide = onnx_in(n, 0), *at = onnx_temp(n, "at"), *found = onnx_temp(n, "found");
    const char *all = onnx_temp(n, "rows"), *count = onnx_temp(n, "many"), *y = onnx_out(n, 0);
    if (classes > 1)
        wide = onnx_text(n, "repeat(%s, %lld, 0)", wide, classes);
    const char *threshold = onnx_has(n, 4) ? onnx_text(n, ", least = %s", onnx_number(n, DT_F32, least_score)) : "";
    const char *ramps[] = {
        onnx_text(n, "iota(axis = 0, shape = [%lld, %lld], dtype = i64) // %lld", rows, each, classes),
        onnx_text(n, "iota(axis = 0, shape = [%lld, %lld], dtype = i64) %% %lld", rows, each, classes)};
    if (!onnx_emit(n, "(%s, %s) = non_max_suppression(%s, reshape(%s, shape = [%lld, %lld]), %lld, overlap = %s%s%s)",
                   at, found, wide, onnx_in(n, 1), rows, boxes, each, onnx_number(n, DT_F32, overlap), threshold,
                   onnx_int(n, "center_point_box", 0) ? ", middles = true" : "") ||
        !onnx_emit(n, "%s = reshape(stack(%s, %s, %s, axis = 2), shape = [%lld, 3])", all, ramps[0], ramps[1], at,
                   rows * each) ||
        !onnx_emit(n, "(%s, %s) = compress(%s, %s[:, 2] >= 0, axis = 0)", y, count, all, all))
        return false;
    onnx_set_count(n, count, 0, 0);
    return true;
}

/* The k largest or smallest, where k is known only when running: all of them, in their order */
bool onnx_write_bounded_top_k(OnnxNode *n)
{
    int64_t axis;
    if (!onnx_axis(n, "axis", -1, onnx_rank(n, 0), &axis))
        return false;
    long long extent = onnx_dim(n, 0, axis);
    const char *least_first = onnx_int(n, "largest", 1) ? "" : ", largest = false", *count = onnx_temp(n, "many");
    if (!onnx_emit(n, "(%s, %s) = top_k(%s, %lld, axis = %lld%s)", onnx_out(n, 0), onnx_out(n, 1), onnx_in(n, 0),
                   extent, (long long)axis, least_first) ||
        !onnx_emit(n, "%s = minimum(cast(reshape(%s, shape = []), to = i64), %lld)", count, onnx_in(n, 1), extent))
        return false;
    onnx_set_count(n, count, 0, (uint32_t)axis);
    onnx_set_count(n, count, 1, (uint32_t)axis);
    return true;
}

const OnnxRow onnx_bounded[] = {
    {"Compress", 9, write_compress, NULL, NULL, false},
    {"NonZero", 9, write_either_non_zero, NULL, NULL, false},
    {"Unique", 11, write_unique, NULL, NULL, false},
    {"NonMaxSuppression", 10, write_non_max_suppression, NULL, NULL, false},
    {0},
};
