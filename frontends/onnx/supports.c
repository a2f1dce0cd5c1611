/* Support vectors (ai.onnx.ml): one function of them for a number, and one for each pair of classes. */
#include <string.h>

#include "onnx/import.h"

#define LEARNED      "ai.onnx.ml"
#define MOST_CLASSES 64

/* x against all support vectors */
static const char *kernel_of(OnnxNode *n, const char *vectors)
{
    const Onnx__AttributeProto *a = onnx_attribute(n, "kernel_params");
    const char *kernel = onnx_string(n, "kernel_type", "LINEAR"), *x = onnx_as_float(n, 0);
    const char *product = onnx_text(n, "matmul(%s, %s, transpose_y = true)", x, vectors);
    bool numbers = a && a->n_floats == 3;
    const char *gamma = onnx_number(n, DT_F32, numbers ? (double)a->floats[0] : 1),
               *shift = onnx_number(n, DT_F32, numbers ? (double)a->floats[1] : 0),
               *degree = onnx_number(n, DT_F32, numbers ? (double)a->floats[2] : 1);
    if (strcmp(kernel, "LINEAR") == 0)
        return product;
    if (strcmp(kernel, "POLY") == 0)
        return onnx_text(n, "(%s * %s + %s) ** %s", product, gamma, shift, degree);
    if (strcmp(kernel, "SIGMOID") == 0)
        return onnx_text(n, "tanh(%s * %s + %s)", product, gamma, shift);
    return onnx_text(n, "exp(reduce_sum(square(unsqueeze(%s, 1) - %s), axes = 2) * -%s)", x, vectors, gamma);
}

static bool write_svm_regressor(OnnxNode *n)
{
    int64_t supports = onnx_int(n, "n_supports", 0), width = onnx_rank(n, 0) == 2 ? onnx_dim(n, 0, 1) : 0, one = 1;
    int64_t dim[] = {supports, width}, column[] = {supports ? supports : width, 1};
    const char *vectors = supports ? onnx_floats(n, "support_vectors", 2, dim) : "";
    const char *weights = onnx_floats(n, "coefficients", 2, column), *rho = onnx_floats(n, "rho", 1, &one);
    if (!vectors || !weights || !rho || width < 1)
        return onnx_no(n, "its support vectors do not fit its features");
    const char *k = supports ? kernel_of(n, vectors) : onnx_as_float(n, 0);
    const char *y = onnx_text(n, "(%s) @ %s + %s", k, weights, rho);
    if (onnx_int(n, "one_class", 0))
        y = onnx_text(n, "select(%s > 0.0, 1.0, -1.0)", y);
    else
        y = onnx_post_transform(n, y);
    return y && onnx_emit(n, "%s = %s", onnx_out(n, 0), y);
}

/* Classes */

typedef struct Pairs { /* of classes, each of which one function tells apart */
    OnnxNode *node;
    int64_t classes, count, vectors;
    const int64_t *of_class; /* vectors of each class */
    const char *scores;      /* [rows, count]: above 0 for the first of the two */
} Pairs;

static const char *known_floats(Pairs *p, int64_t rows, int64_t columns, const float *number, const char *word)
{
    OnnxNode *n = p->node;
    int64_t dim[] = {rows, columns};
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_F32, 2, dim));
    memcpy(tensor->data, number, (size_t)(rows * columns) * sizeof(float));
    const char *wish = onnx_text(n, "%s.%s", onnx_identifier(n->onnx, n->proto->output[0]), word);
    return onnx_name_value(n->onnx, onnx_known_value(n->onnx, tensor, wish));
}

static bool start(Pairs *p, OnnxNode *n)
{
    const int64_t *label;
    uint32_t labels, classes;
    int64_t width = onnx_rank(n, 0) == 2 ? onnx_dim(n, 0, 1) : 0;
    *p = (Pairs){.node = n};
    const Onnx__AttributeProto *vectors = onnx_attribute(n, "support_vectors"), *rho = onnx_attribute(n, "rho"),
                               *weights = onnx_attribute(n, "coefficients");
    if (!onnx_ints(n, "vectors_per_class", &p->of_class, &classes) || classes < 2 || classes > MOST_CLASSES)
        return onnx_no(n, "it has no support vectors for 2 classes and more");
    p->classes = classes;
    p->count = p->classes * (p->classes - 1) / 2;
    for (uint32_t i = 0; i < classes; i++) {
        if (p->of_class[i] < 0 || p->of_class[i] > INT32_MAX)
            return onnx_no(n, "a class has an impossible number of vectors");
        p->vectors += p->of_class[i];
    }
    if (width < 1 || p->vectors < 1 || !vectors || (int64_t)vectors->n_floats != p->vectors * width || !weights ||
        (int64_t)weights->n_floats != (p->classes - 1) * p->vectors || !rho || (int64_t)rho->n_floats < p->count)
        return onnx_no(n, "its support vectors do not fit its features");
    if (onnx_wants(n, 0) && (!onnx_ints(n, "classlabels_ints", &label, &labels) || labels != classes))
        return onnx_no(n, "its labels are texts; only its scores can be asked for");
    return true;
}

/* For a pair the vectors of both count: those of the one by their coefficients against the other. */
static bool put_scores(Pairs *p)
{
    OnnxNode *n = p->node;
    const float *given = onnx_attribute(n, "coefficients")->floats, *rho = onnx_attribute(n, "rho")->floats;
    float *weight = ARENA_ARRAY(n->onnx->arena, float, p->vectors * p->count);
    int64_t dim[] = {p->vectors, onnx_dim(n, 0, 1)}, pair = 0, first[MOST_CLASSES] = {0};
    for (int64_t i = 1; i < p->classes; i++)
        first[i] = first[i - 1] + p->of_class[i - 1];
    for (int64_t i = 0; i < p->classes; i++)
        for (int64_t j = i + 1; j < p->classes; j++, pair++) {
            for (int64_t v = first[i]; v < first[i] + p->of_class[i]; v++)
                weight[v * p->count + pair] = given[(j - 1) * p->vectors + v];
            for (int64_t v = first[j]; v < first[j] + p->of_class[j]; v++)
                weight[v * p->count + pair] = given[i * p->vectors + v];
        }
    const char *kernel = kernel_of(n, onnx_floats(n, "support_vectors", 2, dim));
    p->scores = onnx_temp(n, "pairs");
    return onnx_emit(n, "%s = %s @ %s + %s", p->scores, kernel,
                     known_floats(p, p->vectors, p->count, weight, "coefficients"),
                     known_floats(p, 1, p->count, rho, "rho"));
}

/* The class that wins most pairs */
static bool put_label(Pairs *p)
{
    OnnxNode *n = p->node;
    const int64_t *label;
    uint32_t labels;
    float *wins = ARENA_ARRAY(n->onnx->arena, float, p->count * p->classes),
          *loses = ARENA_ARRAY(n->onnx->arena, float, p->count * p->classes);
    int64_t pair = 0;
    if (!onnx_wants(n, 0))
        return true;
    for (int64_t i = 0; i < p->classes; i++)
        for (int64_t j = i + 1; j < p->classes; j++, pair++)
            wins[pair * p->classes + i] = loses[pair * p->classes + j] = 1;
    onnx_ints(n, "classlabels_ints", &label, &labels);
    const char *votes = onnx_temp(n, "votes"), *list = onnx_known_list(n, label, labels, "labels");
    return onnx_emit(n, "%s = cast(%s > 0.0, to = f32) @ %s + cast(%s <= 0.0, to = f32) @ %s", votes, p->scores,
                     known_floats(p, p->count, p->classes, wins, "wins"), p->scores,
                     known_floats(p, p->count, p->classes, loses, "losses")) &&
           onnx_emit(n, "%s = gather(%s, argmax(%s, axis = 1))", onnx_out(n, 0), list, votes);
}

/* Probabilities of the classes from those within pairs (Platt 1999; Wu, Lin and Weng 2004) */
static bool put_probabilities(Pairs *p)
{
    OnnxNode *n = p->node;
    int64_t row[] = {1, p->count}, square = p->classes * p->classes, pair = 0;
    int64_t *place = ARENA_ARRAY(n->onnx->arena, int64_t, square), dim[] = {onnx_dim(n, 0, 0), p->classes, p->classes};
    const char *a = onnx_floats(n, "prob_a", 2, row), *b = onnx_floats(n, "prob_b", 2, row);
    if (!a || !b)
        return onnx_no(n, "its probabilities do not fit its pairs");
    for (int64_t i = 0; i < p->classes; i++) {
        place[i * p->classes + i] = 2 * p->count; /* 0 */
        for (int64_t j = i + 1; j < p->classes; j++, pair++) {
            place[i * p->classes + j] = pair;
            place[j * p->classes + i] = p->count + pair;
        }
    }
    const char *r = onnx_temp(n, "shares");
    const char *all = onnx_text(n, "concat(%s, 1.0 - %s, zeros([%lld, 1], f32), axis = 1)", r, r, (long long)dim[0]);
    return onnx_emit(n, "%s = clip(sigmoid(-(%s * %s + %s)), 1e-7, 0.9999999)", r, p->scores, a, b) &&
           onnx_emit(n, "%s = pairwise_coupling(reshape(gather(%s, %s, axis = 1), shape = %s))", onnx_out(n, 1), all,
                     onnx_known_list(n, place, (uint32_t)square, "pairs"), onnx_list(n, dim, 3));
}

static bool write_svm_classifier(OnnxNode *n)
{
    Pairs p;
    if (strcmp(onnx_string(n, "post_transform", "NONE"), "NONE") != 0)
        return onnx_no(n, "what becomes of its scores is %s", onnx_string(n, "post_transform", "NONE"));
    if (!start(&p, n) || !put_scores(&p) || !put_label(&p))
        return false;
    if (!onnx_wants(n, 1))
        return true;
    if (onnx_attribute(n, "prob_a") && onnx_attribute(n, "prob_a")->n_floats)
        return put_probabilities(&p);
    return p.classes > 2 ? onnx_emit(n, "%s = %s", onnx_out(n, 1), p.scores)
                         : onnx_emit(n, "%s = concat(-%s, %s, axis = 1)", onnx_out(n, 1), p.scores, p.scores);
}

const OnnxRow onnx_supports[] = {
    {"SVMClassifier", 1, write_svm_classifier, NULL, LEARNED, false},
    {"SVMRegressor", 1, write_svm_regressor, NULL, LEARNED, false},
    {0},
};
