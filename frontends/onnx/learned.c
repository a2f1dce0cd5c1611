/* The domain ai.onnx.ml but for trees and support vectors: linear models, encoders, scalers. */
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

#define LEARNED "ai.onnx.ml"

const char *onnx_floats(OnnxNode *n, const char *name, uint32_t rank, const int64_t *dim)
{
    const Onnx__AttributeProto *a = onnx_attribute(n, name);
    Shape shape = shape_of(rank, dim);
    if (!a || !a->n_floats || shape_elements(&shape) != (int64_t)a->n_floats)
        return NULL;
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_F32, rank, dim));
    memcpy(tensor->data, a->floats, a->n_floats * sizeof(float));
    const char *wish = onnx_text(n, "%s.%s", onnx_identifier(n->onnx, n->proto->output[0]), name);
    return onnx_name_value(n->onnx, onnx_known_value(n->onnx, tensor, wish));
}

const Tensor *onnx_tensor_of(OnnxNode *n, const char *name)
{
    const Onnx__AttributeProto *a = onnx_attribute(n, name);
    const char *why;
    bool broken;
    return a && a->t ? onnx_tensor(&n->onnx->files, n->onnx->module, a->t, &why, &broken) : NULL;
}

static uint32_t count_of(const OnnxNode *n, const char *name)
{
    const Onnx__AttributeProto *a = onnx_attribute(n, name);
    return a ? (uint32_t)(a->n_floats ? a->n_floats : a->n_ints) : 0;
}

/* A list of one number for all features, or of one for each */
static const char *features(OnnxNode *n, const char *name)
{
    int64_t count = count_of(n, name), width = onnx_rank(n, 0) ? onnx_dim(n, 0, -1) : 1;
    if (count != 1 && count != width)
        return onnx_no(n, "'%s' has %lld numbers, for %lld features", name, (long long)count, (long long)width), NULL;
    return onnx_floats(n, name, 1, &count);
}

const char *onnx_as_float(OnnxNode *n, uint32_t i)
{
    return onnx_type(n, i)->dtype == DT_F32 ? onnx_in(n, i) : onnx_text(n, "cast(%s, to = f32)", onnx_in(n, i));
}

static bool write_binarizer(OnnxNode *n)
{
    DType dtype = onnx_type(n, 0)->dtype;
    return onnx_emit(n, "%s = cast(%s > %s, to = %s)", onnx_out(n, 0), onnx_in(n, 0),
                     onnx_scalar(n, dtype, onnx_float(n, "threshold", 0)), dtype_name(dtype));
}

static bool write_feature_extractor(OnnxNode *n)
{
    int64_t count = shape_elements(&onnx_type(n, 1)->shape), row[] = {1, count};
    const char *at = onnx_text(n, "reshape(%s, shape = [%lld])", onnx_in(n, 1), (long long)count);
    const char *y = onnx_text(n, "gather(%s, %s, axis = -1)", onnx_in(n, 0), at);
    if (onnx_rank(n, 0) == 0)
        return onnx_no(n, "it has no features");
    return onnx_emit(n, "%s = %s", onnx_out(n, 0),
                     onnx_rank(n, 0) > 1 ? y : onnx_text(n, "reshape(%s, shape = %s)", y, onnx_list(n, row, 2)));
}

static bool write_scaler(OnnxNode *n)
{
    const char *x = onnx_as_float(n, 0), *offset = onnx_attribute(n, "offset") ? features(n, "offset") : "",
               *scale = onnx_attribute(n, "scale") ? features(n, "scale") : "";
    if (!offset || !scale)
        return false;
    x = *offset ? onnx_text(n, "(%s - %s)", x, offset) : x;
    return onnx_emit(n, *scale ? "%s = %s * %s" : "%s = %s%s", onnx_out(n, 0), x, scale);
}

/* Rows over their largest, the sum of what is absolute, or their length; rows of 0 stay. */
static bool write_normalizer(OnnxNode *n)
{
    const char *norm = onnx_string(n, "norm", "MAX"), *x = onnx_as_float(n, 0), *size = onnx_temp(n, "size");
    const char *text = strcmp(norm, "L1") == 0    ? "l1_norm(%s, -1, true)"
                       : strcmp(norm, "L2") == 0  ? "l2_norm(%s, -1, true)"
                       : strcmp(norm, "MAX") == 0 ? "reduce_max(%s, axes = -1, keep = true)"
                                                  : NULL;
    if (!text || !onnx_rank(n, 0))
        return onnx_no(n, "its norm is %s", norm);
    Text measure = {0};
    for (const char *at = text; *at; at++)
        if (*at == '%')
            text_printf(&measure, "%s", x), at++;
        else
            text_char(&measure, *at);
    bool good = onnx_emit(n, "%s = %s", size, measure.ptr) &&
                onnx_emit(n, "%s = select(%s == 0.0, %s, %s / %s)", onnx_out(n, 0), size, x, x, size);
    text_free(&measure);
    return good;
}

static bool write_imputer(OnnxNode *n)
{
    DType dtype = onnx_type(n, 0)->dtype;
    const char *x = onnx_in(n, 0), *fill;
    if (dtype_is_float(dtype)) {
        double missing = onnx_float(n, "replaced_value_float", 0);
        fill = features(n, "imputed_value_floats");
        return fill &&
               onnx_emit(n, missing != missing ? "%s = select(%s != %s, %s, %s)" : "%s = select(%s == %s, %s, %s)",
                         onnx_out(n, 0), x, missing != missing ? x : onnx_number(n, dtype, missing), fill, x);
    }
    const int64_t *list;
    uint32_t count;
    if (!onnx_ints(n, "imputed_value_int64s", &list, &count) || dtype != DT_I64 ||
        (count != 1 && count != onnx_dim(n, 0, -1)))
        return onnx_no(n, "what it fills in does not fit its features");
    return onnx_emit(n, "%s = select(%s == %lld, %s, %s)", onnx_out(n, 0), x,
                     (long long)onnx_int(n, "replaced_value_int64", 0), onnx_known_list(n, list, count, "fill"), x);
}

static bool write_one_hot(OnnxNode *n)
{
    const int64_t *list;
    uint32_t count;
    if (!onnx_ints(n, "cats_int64s", &list, &count) || !count)
        return onnx_no(n, "its categories are texts");
    return onnx_emit(n, "%s = cast(unsqueeze(cast(%s, to = i64), -1) == %s, to = f32)", onnx_out(n, 0), onnx_in(n, 0),
                     onnx_known_list(n, list, count, "categories"));
}

static bool write_vectorizer(OnnxNode *n)
{
    Text parts = {0};
    for (uint32_t i = 0; i < n->in_count; i++)
        text_printf(&parts, "%s, ", onnx_as_float(n, i));
    bool good = onnx_emit(n, "%s = concat(%saxis = 1)", onnx_out(n, 0), parts.ptr ? parts.ptr : "");
    text_free(&parts);
    return good;
}

/* Keys or values of an encoder, as numbers in the text */
static const char *encoded(OnnxNode *n, const char *side, int64_t *count, DType *dtype)
{
    const int64_t *whole;
    uint32_t ints;
    const char *fractions = onnx_text(n, "%s_floats", side);
    const Tensor *tensor = onnx_tensor_of(n, onnx_text(n, "%s_tensor", side));
    if (onnx_ints(n, onnx_text(n, "%s_int64s", side), &whole, &ints) && ints) {
        *count = ints;
        *dtype = DT_I64;
        return onnx_known_list(n, whole, ints, side);
    }
    if (tensor && tensor->type->shape.rank == 1) {
        *count = tensor->type->shape.dim[0];
        *dtype = tensor->type->dtype;
        const char *wish = onnx_text(n, "%s.%s", onnx_identifier(n->onnx, n->proto->output[0]), side);
        return onnx_name_value(n->onnx, onnx_known_value(n->onnx, tensor, wish));
    }
    *count = count_of(n, fractions);
    *dtype = DT_F32;
    const char *list = *count ? onnx_floats(n, fractions, 1, count) : NULL;
    return list ? list : (onnx_no(n, "its %s are texts", side), NULL);
}

/* What becomes of an operand that is no key */
static const char *missing_value(OnnxNode *n, DType dtype)
{
    const Tensor *given = onnx_tensor_of(n, "default_tensor");
    if (given && shape_elements(&given->type->shape) == 1)
        return onnx_number(n, dtype, tensor_number(given, 0));
    if (dtype_is_int(dtype))
        return onnx_text(n, "%lld", (long long)onnx_int(n, "default_int64", -1));
    return onnx_number(n, dtype, onnx_float(n, "default_float", -0.0));
}

static bool has_nan(OnnxNode *n)
{
    const Onnx__AttributeProto *a = onnx_attribute(n, "keys_floats");
    const Tensor *tensor = onnx_tensor_of(n, "keys_tensor");
    bool found = false;
    for (size_t i = 0; a && i < a->n_floats; i++)
        found |= a->floats[i] != a->floats[i];
    for (int64_t i = 0; tensor && i < shape_elements(&tensor->type->shape); i++)
        found |= tensor_number(tensor, i) != tensor_number(tensor, i);
    return found;
}

/* A key that is NaN stands for any that is. */
static bool write_label_encoder(OnnxNode *n)
{
    int64_t keys, values;
    DType from, to;
    const char *key = encoded(n, "keys", &keys, &from), *value = key ? encoded(n, "values", &values, &to) : NULL;
    if (!value)
        return false;
    if (keys != values || from != onnx_type(n, 0)->dtype)
        return onnx_no(n, "its keys do not fit its values or its operand");
    const char *same = onnx_temp(n, "same");
    const char *missing = missing_value(n, to);
    const char *x = onnx_text(n, "unsqueeze(%s, -1)", onnx_in(n, 0));
    const char *alike = dtype_is_float(from) && has_nan(n)
                            ? onnx_text(n, "(%s == %s) or (isnan(%s) and isnan(%s))", x, key, x, key)
                            : onnx_text(n, "%s == %s", x, key);
    return onnx_emit(n, "%s = %s", same, alike) &&
           onnx_emit(n, "%s = select(any(%s, axes = -1), gather(%s, argmax(cast(%s, to = i32), axis = -1)), %s)",
                     onnx_out(n, 0), same, value, same, missing);
}

/* Scores, and what becomes of them */

/* A softmax in which scores that are 0 stay so: they are multiplied by what others are raised to. */
static const char *softmax_zero(OnnxNode *n, const char *scores)
{
    const char *x = onnx_temp(n, "raw"), *top = onnx_temp(n, "top"), *e = onnx_temp(n, "raised");
    return onnx_emit(n, "%s = %s", x, scores) && onnx_emit(n, "%s = reduce_max(%s, axes = -1, keep = true)", top, x) &&
                   onnx_emit(n, "%s = select(abs(%s) > 1e-07, exp(%s - %s), %s * exp(-%s))", e, x, x, top, x, top)
               ? onnx_text(n, "%s / reduce_sum(%s, axes = -1, keep = true)", e, e)
               : NULL;
}

/* The quantile of the normal distribution, by the formula for the inverse of erf that ONNX Runtime has, too (Winitzki
 * 2008): its error is up to 0.002 of the result. */
static const char *probit(OnnxNode *n, const char *scores)
{
    const char *x = onnx_temp(n, "raw"), *l = onnx_temp(n, "tail"), *v = onnx_temp(n, "half");
    return onnx_emit(n, "%s = 2.0 * (%s) - 1.0", x, scores) &&
                   onnx_emit(n, "%s = log((1.0 - %s) * (1.0 + %s))", l, x, x) &&
                   onnx_emit(n, "%s = %s / 2.0 + 4.3307467508", v, l) /* 2 / (pi * 0.147) */
               ? onnx_text(n, "1.4142135624 * sign(%s) * sqrt(sqrt(%s * %s - %s / 0.147) - %s)", x, v, v, l, v)
               : NULL;
}

const char *onnx_transform(OnnxNode *n, const char *transform, const char *scores)
{
    if (strcmp(transform, "NONE") == 0)
        return scores;
    if (strcmp(transform, "LOGISTIC") == 0)
        return onnx_text(n, "sigmoid(%s)", scores);
    if (strcmp(transform, "SOFTMAX") == 0)
        return onnx_text(n, "softmax(%s)", scores);
    if (strcmp(transform, "SOFTMAX_ZERO") == 0)
        return softmax_zero(n, scores);
    if (strcmp(transform, "PROBIT") == 0)
        return probit(n, scores);
    return onnx_no(n, "what becomes of its scores is %s", transform), NULL;
}

const char *onnx_post_transform(OnnxNode *n, const char *scores)
{
    return onnx_transform(n, onnx_string(n, "post_transform", "NONE"), scores);
}

/* x @ W' + b: W is [rows, features] */
static const char *linear_scores(OnnxNode *n, int64_t rows)
{
    int64_t width = onnx_rank(n, 0) == 2 ? onnx_dim(n, 0, 1) : 0, dim[] = {rows, width};
    const char *w = rows > 0 && width > 0 ? onnx_floats(n, "coefficients", 2, dim) : NULL;
    const char *b = onnx_attribute(n, "intercepts") ? onnx_floats(n, "intercepts", 1, &rows) : "";
    if (!w || !b)
        return onnx_no(n, "its coefficients do not fit its features"), NULL;
    return onnx_text(n, *b ? "matmul(%s, %s, transpose_y = true) + %s" : "matmul(%s, %s, transpose_y = true)%s",
                     onnx_as_float(n, 0), w, b);
}

static bool write_linear_regressor(OnnxNode *n)
{
    const char *scores = linear_scores(n, onnx_int(n, "targets", 1)),
               *y = scores ? onnx_post_transform(n, scores) : NULL;
    return y && onnx_emit(n, "%s = %s", onnx_out(n, 0), y);
}

/* The class of the largest score, and all scores */
bool onnx_write_classes(OnnxNode *n, const char *scores, int64_t count)
{
    const int64_t *label;
    uint32_t labels;
    bool whole =
        onnx_ints(n, "classlabels_ints", &label, &labels) || onnx_ints(n, "classlabels_int64s", &label, &labels);
    if (onnx_wants(n, 0) && (!whole || !labels))
        return onnx_no(n, "its labels are texts; only its scores can be asked for");
    if (whole && labels && labels != count)
        return onnx_no(n, "it has %u labels for %lld scores", labels, (long long)count);
    const char *raw = onnx_temp(n, "scores"), *y;
    if (!onnx_emit(n, "%s = %s", raw, scores) || !(y = onnx_post_transform(n, raw)))
        return false;
    return (!onnx_wants(n, 0) || onnx_emit(n, "%s = gather(%s, argmax(%s, axis = 1))", onnx_out(n, 0),
                                           onnx_known_list(n, label, labels, "labels"), raw)) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = %s", onnx_out(n, 1), y));
}

bool onnx_write_two_classes(OnnxNode *n, const char *score, bool shares, const char *above)
{
    const int64_t *label;
    uint32_t labels;
    bool whole =
        onnx_ints(n, "classlabels_ints", &label, &labels) || onnx_ints(n, "classlabels_int64s", &label, &labels);
    if (onnx_wants(n, 0) && (!whole || labels != 2))
        return onnx_no(n, "its labels are texts; only its scores can be asked for");
    const char *raw = onnx_temp(n, "score"), *list = onnx_wants(n, 0) ? onnx_known_list(n, label, 2, "labels") : NULL;
    const char *transform = onnx_string(n, "post_transform", "NONE");
    bool logistic = strcmp(transform, "LOGISTIC") == 0;
    if (!logistic && strcmp(transform, "NONE") != 0)
        return onnx_no(n, "what becomes of its score is %s", transform);
    const char *both = logistic ? onnx_text(n, "sigmoid(concat(-%s, %s, axis = 1))", raw, raw)
                       : shares ? onnx_text(n, "concat(1.0 - %s, %s, axis = 1)", raw, raw)
                                : onnx_text(n, "concat(-%s, %s, axis = 1)", raw, raw);
    return onnx_emit(n, "%s = %s", raw, score) &&
           (!list ||
            onnx_emit(n, "%s = gather(%s, cast(%s[:, 0] > %s, to = i32))", onnx_out(n, 0), list, raw, above)) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = %s", onnx_out(n, 1), both));
}

static bool write_linear_classifier(OnnxNode *n)
{
    int64_t count = count_of(n, "intercepts"), width = onnx_rank(n, 0) == 2 ? onnx_dim(n, 0, 1) : 0;
    if (!count && width > 0)
        count = count_of(n, "coefficients") / width;
    const char *scores = count > 0 ? linear_scores(n, count) : NULL;
    if (!scores)
        return false;
    return count > 1 ? onnx_write_classes(n, scores, count) : onnx_write_two_classes(n, scores, true, "0.0");
}

/* Maps are no tensors: of classes to scores there stay the scores, a column for each class in the model's order. */
static bool write_scores_of_maps(OnnxNode *n)
{
    onnx_set_value(n, 0, n->in[0]);
    return onnx_has(n, 0);
}

const OnnxRow onnx_learned[] = {
    {"ArrayFeatureExtractor", 1, write_feature_extractor, NULL, LEARNED, false},
    {"Binarizer", 1, write_binarizer, NULL, LEARNED, false},
    {"FeatureVectorizer", 1, write_vectorizer, NULL, LEARNED, false},
    {"Imputer", 1, write_imputer, NULL, LEARNED, false},
    {"LabelEncoder", 2, write_label_encoder, NULL, LEARNED, false},
    {"LinearClassifier", 1, write_linear_classifier, NULL, LEARNED, false},
    {"LinearRegressor", 1, write_linear_regressor, NULL, LEARNED, false},
    {"Normalizer", 1, write_normalizer, NULL, LEARNED, false},
    {"OneHotEncoder", 1, write_one_hot, NULL, LEARNED, false},
    {"Scaler", 1, write_scaler, NULL, LEARNED, false},
    {"ZipMap", 1, write_scores_of_maps, NULL, LEARNED, false},
    {0},
};
