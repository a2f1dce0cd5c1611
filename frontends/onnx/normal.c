/* Normalisation, softmax and the losses that are made of it. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

/* [c] as [c, 1, 1], for channels of operand 0 */
static const char *per_channel(OnnxNode *n, const char *x)
{
    int64_t dim[MAX_RANK];
    uint32_t rank = onnx_rank(n, 0);
    if (rank <= 2)
        return x;
    for (uint32_t d = 0; d + 1 < rank; d++)
        dim[d] = d ? 1 : onnx_dim(n, 0, 1);
    return onnx_text(n, "reshape(%s, shape = %s)", x, onnx_list(n, dim, rank - 1));
}

static const char *epsilon(const OnnxNode *n)
{
    return onnx_number(n, onnx_type(n, 0)->dtype, onnx_float(n, "epsilon", (double)1e-5f));
}

/* axes from `first` on */
static const char *axes_from(const OnnxNode *n, uint32_t first)
{
    int64_t axes[MAX_RANK];
    uint32_t rank = onnx_rank(n, 0);
    for (uint32_t d = first; d < rank; d++)
        axes[d - first] = d;
    return onnx_list(n, axes, rank - first);
}

static bool infer_batch_norm(OnnxNode *n, const char *mean, const char *variance)
{
    const char *gain = onnx_temp(n, "gain"), *shift = onnx_temp(n, "shift");
    return onnx_emit(n, "%s = %s * rsqrt(%s + %s)", gain, onnx_in(n, 1), variance, epsilon(n)) &&
           onnx_emit(n, "%s = %s - %s * %s", shift, onnx_in(n, 2), mean, gain) &&
           onnx_emit(n, "%s = %s * %s + %s", onnx_out(n, 0), onnx_in(n, 0), per_channel(n, gain),
                     per_channel(n, shift));
}

/* `, eps = 0.001`, where it is not what the library has */
static const char *epsilon_text(const OnnxNode *n, double usual)
{
    double eps = onnx_float(n, "epsilon", (double)1e-5f);
    return (float)eps == (float)usual ? "" : onnx_text(n, ", eps = %s", epsilon(n));
}

/* As a layer of the library with params of its own, where these have an extent of `width`. */
static bool is_layer(const OnnxNode *n, const OnnxParam *param, uint32_t count, int64_t width)
{
    bool fits = onnx_owns(n, param, count);
    for (uint32_t i = 0; fits && i < count; i++)
        fits = onnx_rank(n, param[i].operand) == 1 && onnx_dim(n, param[i].operand, 0) == width &&
               onnx_type(n, param[i].operand)->dtype == onnx_type(n, 0)->dtype;
    return fits;
}

static bool write_layer_of(OnnxNode *n, const char *function, const OnnxParam *param, uint32_t count, const char *more)
{
    const OnnxLayer *layer = onnx_layer(n, param, count);
    return onnx_emit(n, "%s = %s@%s(%s%s)", onnx_out(n, 0), function, layer->label, onnx_in(n, 0), more) &&
           onnx_layer_fits(n, layer);
}

static bool write_layer(OnnxNode *n, const char *function, const OnnxParam *param, uint32_t count, double usual)
{
    return write_layer_of(n, function, param, count, epsilon_text(n, usual));
}

/* An attribute says so, from opset 7 on and before opset 14 that more results are asked for than y. */
static bool trains(const OnnxNode *n)
{
    bool more = false;
    for (uint32_t i = 1; i < n->out_count; i++)
        more |= onnx_wants(n, i);
    return n->opset >= 14 ? onnx_int(n, "training_mode", 0) != 0 : more || (n->opset < 7 && !onnx_int(n, "is_test", 0));
}

/* Result i, where it is asked for: what keeps running of operand `operand`. */
static bool put_running(OnnxNode *n, uint32_t i, uint32_t operand, const char *now)
{
    double momentum = onnx_float(n, "momentum", (double)0.9f);
    DType dtype = onnx_type(n, 3)->dtype;
    const char *keep = onnx_number(n, dtype, momentum), *rest = onnx_number(n, dtype, (double)(1.0f - (float)momentum));
    return !onnx_wants(n, i) ||
           onnx_emit(n, "%s = %s * %s + %s * %s", onnx_out(n, i), onnx_in(n, operand), keep, now, rest);
}

/* With the batch's own mean and variance, which also move the running ones; results 3 and 4 of old opsets are they. */
static bool train_batch_norm(OnnxNode *n)
{
    const char *axes = onnx_rank(n, 0) > 2 ? onnx_text(n, "[0, %s", axes_from(n, 2) + 1) : "[0]";
    const char *mean = onnx_wants(n, 3) ? onnx_out(n, 3) : onnx_temp(n, "mean");
    const char *variance = onnx_wants(n, 4) ? onnx_out(n, 4) : onnx_temp(n, "variance"), *x = onnx_in(n, 0);
    return onnx_emit(n, "%s = mean(%s, %s)", mean, x, axes) &&
           onnx_emit(n, "%s = variance(%s, %s)", variance, x, axes) && infer_batch_norm(n, mean, variance) &&
           put_running(n, 1, 3, mean) && put_running(n, 2, 4, variance);
}

static bool reads_more(const OnnxNode *n)
{
    bool read = false;
    for (uint32_t i = 1; i < n->out_count; i++)
        read |= onnx_wants(n, i) && map_get(n->scope->uses, str_from(n->proto->output[i])) != MAP_NONE;
    return read;
}

/* `, momentum = 0.01`, where it is not what the library has: the share of the batch, of which ONNX has the rest. */
static const char *momentum_text(const OnnxNode *n)
{
    double kept = onnx_float(n, "momentum", (double)0.9f), share = 1 - kept;
    for (double unit = 10; unit < 1e9; unit *= 10)
        if ((float)(1 - round(share * unit) / unit) == (float)kept) {
            share = round(share * unit) / unit;
            break;
        }
    return share == 0.1 ? "" : onnx_text(n, ", momentum = %s", onnx_number(n, DT_F32, (double)(float)share));
}

static bool write_batch_norm(OnnxNode *n)
{
    if (onnx_rank(n, 0) < 2)
        return onnx_no(n, "its operand has no channels");
    if (n->opset < 9 && !onnx_int(n, "spatial", 1))
        return onnx_no(n, "it normalises each position by itself");
    static const OnnxParam param[] = {{1, "scale"}, {2, "bias"}, {3, "mean"}, {4, "variance"}};
    bool training = trains(n);
    if (!training && (onnx_wants(n, 1) || onnx_wants(n, 2)))
        return onnx_no(n, "its running mean or variance is asked for, and it does not train");
    if (!reads_more(n) && is_layer(n, param, 4, onnx_dim(n, 0, 1))) {
        for (uint32_t i = 1; i < n->out_count; i++) /* which nobody reads: the layer's own move */
            onnx_set_value(n, i, n->in[i % 2 ? 3 : 4]);
        return write_layer_of(
            n, "batch_norm", param, 4,
            onnx_text(n, "%s%s%s", epsilon_text(n, 1e-5), training ? ", training = true" : "", momentum_text(n)));
    }
    if (training)
        return train_batch_norm(n);
    return infer_batch_norm(n, onnx_in(n, 3), onnx_in(n, 4));
}

static bool write_instance_norm(OnnxNode *n)
{
    if (onnx_rank(n, 0) < 3)
        return onnx_no(n, "its operand has no positions");
    static const OnnxParam param[] = {{1, "norm.scale"}, {2, "norm.bias"}};
    if (is_layer(n, param, 2, onnx_dim(n, 0, 1)))
        return write_layer(n, "instance_norm", param, 2, 1e-5);
    return onnx_emit(n, "%s = standardize(%s, axes = %s, eps = %s) * %s + %s", onnx_out(n, 0), onnx_in(n, 0),
                     axes_from(n, 2), epsilon(n), per_channel(n, onnx_in(n, 1)), per_channel(n, onnx_in(n, 2)));
}

/* Half floats are normalised as f32. */
static const char *widened(OnnxNode *n, const char *x, bool *narrow)
{
    *narrow = dtype_bytes(onnx_type(n, 0)->dtype) == 2;
    return *narrow ? onnx_text(n, "cast(%s, to = f32)", x) : x;
}

/* Means and deviations are results of a type of their own, f32 unless the node says another. */
static bool write_statistic(OnnxNode *n, uint32_t i, const char *value, DType dtype)
{
    DType kept;
    if (!onnx_wants(n, i))
        return true;
    if (!onnx_dtype((int32_t)onnx_int(n, "stash_type", 1), &kept) || !dtype_is_float(kept))
        return onnx_no(n, "its stash_type is no type of floats");
    return kept == dtype ? onnx_emit(n, "%s = %s", onnx_out(n, i), value)
                         : onnx_emit(n, "%s = cast(%s, to = %s)", onnx_out(n, i), value, dtype_name(kept));
}

static bool write_layer_norm(OnnxNode *n)
{
    int64_t axis;
    bool narrow;
    if (!onnx_axis(n, "axis", -1, onnx_rank(n, 0), &axis))
        return false;
    static const OnnxParam param[] = {{1, "scale"}, {2, "bias"}};
    bool last = axis + 1 == onnx_rank(n, 0) && !onnx_wants(n, 1) && !onnx_wants(n, 2);
    if (last && dtype_bytes(onnx_type(n, 0)->dtype) > 2 && is_layer(n, param, 2, onnx_dim(n, 0, -1)))
        return write_layer(n, "layer_norm", param, 2, 1e-5);
    const char *axes = axes_from(n, (uint32_t)axis), *x = widened(n, onnx_in(n, 0), &narrow);
    DType dtype = onnx_type(n, 0)->dtype, wide = narrow ? DT_F32 : dtype;
    const char *eps = onnx_number(n, wide, onnx_float(n, "epsilon", (double)1e-5f));
    const char *y = onnx_text(n, "standardize(%s, axes = %s, eps = %s)", x, axes, eps);
    if (narrow)
        y = onnx_text(n, "cast(%s, to = %s)", y, dtype_name(dtype));
    y = onnx_text(n, "%s * %s", y, onnx_in(n, 1));
    if (onnx_has(n, 2)) { /* two lines, where they are too long for one */
        y = onnx_define(n, "mul", "%s", y);
        y = y ? onnx_text(n, "%s + %s", y, onnx_in(n, 2)) : NULL;
    }
    return y && onnx_emit(n, "%s = %s", onnx_out(n, 0), y) &&
           write_statistic(n, 1, onnx_text(n, "mean(%s, %s, true)", x, axes), wide) &&
           write_statistic(n, 2, onnx_text(n, "rsqrt(variance(%s, %s, true) + %s)", x, axes, eps), wide);
}

static bool write_rms_norm(OnnxNode *n)
{
    int64_t axis;
    bool narrow;
    if (!onnx_axis(n, "axis", -1, onnx_rank(n, 0), &axis))
        return false;
    static const OnnxParam param[] = {{1, "scale"}};
    bool last = axis + 1 == onnx_rank(n, 0) && dtype_bytes(onnx_type(n, 0)->dtype) > 2;
    if (last && is_layer(n, param, 1, onnx_dim(n, 0, -1)))
        return write_layer(n, "rms_norm", param, 1, 1e-6);
    DType dtype = onnx_type(n, 0)->dtype;
    const char *x = widened(n, onnx_in(n, 0), &narrow), *axes = axes_from(n, (uint32_t)axis);
    const char *eps = onnx_number(n, narrow ? DT_F32 : dtype, onnx_float(n, "epsilon", (double)1e-5f));
    const char *y = onnx_text(n, "%s * rsqrt(mean(square(%s), %s, true) + %s)", x, x, axes, eps);
    if (narrow)
        y = onnx_text(n, "cast(%s, to = %s)", y, dtype_name(dtype));
    return onnx_emit(n, "%s = %s * %s", onnx_out(n, 0), y, onnx_in(n, 1));
}

static bool write_group_norm(OnnxNode *n)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t groups = onnx_int(n, "num_groups", 0);
    if (shape->rank < 2 || groups < 1 || shape->dim[1] % groups || !shape_elements(shape))
        return onnx_no(n, "its channels cannot be made groups");
    static const OnnxParam param[] = {{1, "scale"}, {2, "bias"}};
    if (n->opset >= 21 && is_layer(n, param, 2, shape->dim[1]))
        return write_layer_of(n, "group_norm", param, 2,
                              onnx_text(n, ", %lld%s", (long long)groups, epsilon_text(n, 1e-5)));
    int64_t rows[] = {shape->dim[0], groups, shape_elements(shape) / shape->dim[0] / groups};
    const char *y = onnx_text(n, "standardize(reshape(%s, shape = %s), axes = -1, eps = %s)", onnx_in(n, 0),
                              onnx_list(n, rows, 3), epsilon(n));
    const char *list = onnx_list(n, shape->dim, shape->rank);
    if (n->opset >= 21)
        return onnx_emit(n, "%s = reshape(%s, shape = %s) * %s + %s", onnx_out(n, 0), y, list,
                         per_channel(n, onnx_in(n, 1)), per_channel(n, onnx_in(n, 2)));
    int64_t column[] = {groups, 1}; /* scale and bias of each group */
    const char *unit = onnx_list(n, column, 2);
    return onnx_emit(n, "%s = reshape(%s * reshape(%s, shape = %s) + reshape(%s, shape = %s), shape = %s)",
                     onnx_out(n, 0), y, onnx_in(n, 1), unit, onnx_in(n, 2), unit, list);
}

/* Each channel by the squares of its neighbours */
static bool write_lrn(OnnxNode *n)
{
    int64_t size = onnx_int(n, "size", 1), before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    uint32_t rank = onnx_rank(n, 0);
    DType dtype = onnx_wide_dtype(n);
    if (rank < 2 || size < 1 || size > 1000)
        return onnx_no(n, "its size is impossible");
    before[1] = (size - 1) / 2;
    after[1] = size - 1 - before[1];
    const char *padded = onnx_temp(n, "squares"), *sum = onnx_temp(n, "sum"), *x = onnx_widened(n, 0);
    Text parts = {0};
    for (int64_t i = 0; i < size; i++)
        text_printf(&parts, "%sslice(%s, axes = 1, begin = %lld, end = %lld)", i ? " + " : "", padded, (long long)i,
                    (long long)(i + onnx_dim(n, 0, 1)));
    const char *alpha = onnx_number(n, dtype, onnx_float(n, "alpha", (double)0.0001f) / (double)size);
    const char *bias = onnx_number(n, dtype, onnx_float(n, "bias", 1));
    const char *beta = onnx_number(n, dtype, onnx_float(n, "beta", 0.75));
    bool good = onnx_emit(n, "%s = pad(square(%s), before = %s, after = %s)", padded, x, onnx_list(n, before, rank),
                          onnx_list(n, after, rank)) &&
                onnx_emit(n, "%s = %s", sum, parts.ptr) &&
                onnx_put_rounded(n, 0, onnx_text(n, "%s / (%s * %s + %s) ** %s", x, sum, alpha, bias, beta));
    text_free(&parts);
    return good;
}

static bool write_lp_norm(OnnxNode *n)
{
    int64_t axis, p = onnx_int(n, "p", 2);
    if (!onnx_axis(n, "axis", -1, onnx_rank(n, 0), &axis))
        return false;
    const char *x = onnx_widened(n, 0), *length = onnx_temp(n, "length");
    return onnx_emit(n, p == 1 ? "%s = reduce_sum(abs(%s), axes = %lld, keep = true)" : "%s = l2_norm(%s, %lld, true)",
                     length, x, (long long)axis) &&
           onnx_put_rounded(n, 0, onnx_text(n, "select(%s == 0.0, 0.0, %s / %s)", length, x, length));
}

static bool write_mean_variance(OnnxNode *n)
{
    const int64_t *axes, fallback[] = {0, 2, 3};
    uint32_t count;
    if (!onnx_ints(n, "axes", &axes, &count) || !count) {
        axes = fallback;
        count = 3;
    }
    const char *d = onnx_temp(n, "distance"), *x = onnx_in(n, 0), *list = onnx_list(n, axes, count);
    return onnx_emit(n, "%s = %s - mean(%s, %s, true)", d, x, x, list) &&
           onnx_emit(n, "%s = %s / (sqrt(mean(square(%s), %s, true)) + 1e-09)", onnx_out(n, 0), d, d, list);
}

/* Before opset 13 all axes from `axis` on were one. */
static bool write_softmax(OnnxNode *n)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t axis, dim[2] = {1, 1};
    bool joins = n->opset < 13;
    if (!onnx_axis(n, "axis", joins ? 1 : -1, shape->rank, &axis))
        return false;
    for (uint32_t d = 0; d < shape->rank; d++)
        dim[d >= axis] *= shape->dim[d];
    const char *x = onnx_in(n, 0), *out = onnx_out(n, 0);
    bool plain = !joins || dim[1] == shape->dim[axis];
    if (dim[1] == 0) /* an axis of none has no largest element, but nor has the result an element */
        return onnx_emit(n, "%s = %s", out, x);
    if (plain && axis + 1 == shape->rank)
        return onnx_emit(n, "%s = %s(%s)", out, n->row->text, x);
    if (plain)
        return onnx_emit(n, "%s = %s(%s, axis = %lld)", out, n->row->text, x, (long long)axis);
    return onnx_emit(n, "%s = reshape(%s(reshape(%s, shape = %s)), shape = %s)", out, n->row->text, x,
                     onnx_list(n, dim, 2), onnx_list(n, shape->dim, shape->rank));
}

/* 1 for the first of the largest */
static bool write_hardmax(OnnxNode *n)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t axis, dim[MAX_RANK] = {1, 1};
    bool joins = n->opset < 13;
    uint32_t rank = joins ? 2 : shape->rank;
    if (!onnx_axis(n, "axis", joins ? 1 : -1, shape->rank, &axis))
        return false;
    if (!shape_elements(shape)) /* as of softmax */
        return onnx_emit(n, "%s = %s", onnx_out(n, 0), onnx_in(n, 0));
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (joins)
            dim[d >= axis] *= shape->dim[d];
        else
            dim[d] = shape->dim[d];
    }
    axis = joins ? 1 : axis;
    const char *list = onnx_list(n, dim, rank),
               *x = joins ? onnx_text(n, "reshape(%s, shape = %s)", onnx_in(n, 0), list) : onnx_in(n, 0);
    const char *hard =
        onnx_text(n, "cast(iota(axis = %lld, shape = %s) == argmax(%s, axis = %lld, keep = true), to = %s)",
                  (long long)axis, list, x, (long long)axis, dtype_name(onnx_type(n, 0)->dtype));
    return onnx_emit(n, "%s = reshape(%s, shape = %s)", onnx_out(n, 0), hard, onnx_list(n, shape->dim, shape->rank));
}

/* Losses: -logp at the label, times the weight of its class */

static bool write_likelihood(OnnxNode *n, const char *logp)
{
    const Shape *shape = &onnx_type(n, 0)->shape, *labels = &onnx_type(n, 1)->shape;
    const char *reduction = onnx_string(n, "reduction", "mean"), *label = onnx_temp(n, "label");
    DType dtype = onnx_type(n, 0)->dtype;
    const Onnx__AttributeProto *ignore = onnx_attribute(n, "ignore_index");
    int64_t unit[MAX_RANK];
    if (shape->rank < 2 || labels->rank + 1 != shape->rank)
        return onnx_no(n, "its labels do not fit its scores");
    for (uint32_t d = 0; d < shape->rank; d++)
        unit[d] = d == 1 ? 1 : shape->dim[d];
    const char *each = onnx_temp(n, "each"), *weight = NULL, *out = onnx_out(n, 0);
    bool good =
        onnx_emit(n, "%s = cast(%s, to = i64)", label, onnx_in(n, 1)) &&
        onnx_emit(n,
                  "%s = -reduce_sum(select(iota(axis = 1, shape = %s) == reshape(%s, shape = %s), %s, 0.0), axes = 1)",
                  each, onnx_list(n, shape->dim, shape->rank), label, onnx_list(n, unit, shape->rank), logp);
    if (good && (onnx_has(n, 2) || ignore)) {
        weight = onnx_temp(n, "weight");
        const char *given =
            onnx_has(n, 2)
                ? onnx_text(n, "gather(%s, clip(%s, 0, %lld))", onnx_in(n, 2), label, (long long)shape->dim[1] - 1)
                : onnx_text(n, "ones(%s, %s)", onnx_list(n, labels->dim, labels->rank), dtype_name(dtype));
        good = ignore ? onnx_emit(n, "%s = select(%s == %lld, 0.0, %s)", weight, label, (long long)ignore->i, given)
                      : onnx_emit(n, "%s = %s", weight, given);
        const char *weighted = onnx_temp(n, "weighted");
        good = good && (ignore ? onnx_emit(n, "%s = select(%s == %lld, 0.0, %s * %s)", weighted, label,
                                           (long long)ignore->i, each, weight)
                               : onnx_emit(n, "%s = %s * %s", weighted, each, weight));
        each = weighted;
    }
    if (!good)
        return false;
    if (strcmp(reduction, "none") == 0)
        return onnx_emit(n, "%s = %s", out, each);
    if (strcmp(reduction, "sum") == 0)
        return onnx_emit(n, "%s = reduce_sum(%s)", out, each);
    return weight ? onnx_emit(n, "%s = reduce_sum(%s) / reduce_sum(%s)", out, each, weight)
                  : onnx_emit(n, "%s = mean(%s)", out, each);
}

static bool write_nll(OnnxNode *n)
{
    return write_likelihood(n, onnx_in(n, 0));
}

static bool write_cross_entropy(OnnxNode *n)
{
    const char *logp = onnx_wants(n, 1) ? onnx_out(n, 1) : onnx_temp(n, "logp");
    return onnx_emit(n, "%s = log_softmax(%s, axis = 1)", logp, onnx_in(n, 0)) && write_likelihood(n, logp);
}

const OnnxRow onnx_normal[] = {
    {"BatchNormalization", 1, write_batch_norm, NULL, NULL, false},
    {"InstanceNormalization", 1, write_instance_norm, NULL, NULL, false},
    {"LayerNormalization", 1, write_layer_norm, NULL, NULL, false}, /* ONNX Runtime writes it below 17, too */
    {"RMSNormalization", 23, write_rms_norm, NULL, NULL, false},
    {"GroupNormalization", 18, write_group_norm, NULL, NULL, false},
    {"LRN", 1, write_lrn, NULL, NULL, false},
    {"LpNormalization", 1, write_lp_norm, NULL, NULL, false},
    {"MeanVarianceNormalization", 9, write_mean_variance, NULL, NULL, false},
    {"Softmax", 1, write_softmax, "softmax", NULL, false},
    {"LogSoftmax", 1, write_softmax, "log_softmax", NULL, false},
    {"Hardmax", 1, write_hardmax, NULL, NULL, false},
    {"NegativeLogLikelihoodLoss", 12, write_nll, NULL, NULL, false},
    {"SoftmaxCrossEntropyLoss", 12, write_cross_entropy, NULL, NULL, false},
    {0},
};
