/* Ops that draw random numbers: keyed Philox, the same bits on every target.
 *
 * Each draw has a key of its own, which is made of the op's seed and of how often the model has run: a state counts the
 * runs.  An op without a seed takes its number among the nodes; its results are other ones in each run, and the same in
 * the same run of each process. */
#include <math.h>
#include <string.h>

#include "onnx/import.h"

bool onnx_draws(const Onnx__NodeProto *node)
{
    static const char *const op[] = {"RandomNormal",      "RandomNormalLike", "RandomUniform",
                                     "RandomUniformLike", "Bernoulli",        "Multinomial"};
    const char *own = node->op_type ? node->op_type : "";
    for (size_t i = 0; i < sizeof op / sizeof *op; i++)
        if (strcmp(own, op[i]) == 0)
            return true;
    return strcmp(own, "Dropout") == 0 && node->n_input > 2; /* it may train */
}

static bool bodies_draw(const Onnx__NodeProto *node)
{
    for (size_t a = 0; a < node->n_attribute; a++)
        if (node->attribute[a]->g && onnx_body_draws(node->attribute[a]->g))
            return true;
    return false;
}

/* Recurses over bodies, which the reader has found to be nested no deeper than it allows. */
bool onnx_body_draws(const Onnx__GraphProto *body)
{
    for (size_t i = 0; i < body->n_node; i++)
        if (onnx_draws(body->node[i]) || bodies_draw(body->node[i]))
            return true;
    return false;
}

/* The state that counts */
static bool declare_runs(Onnx *onnx)
{
    const char *name = onnx_unique(onnx, "runs");
    onnx->runs = onnx_value_new(onnx);
    *onnx->runs =
        (OnnxValue){.type = module_plain_type(onnx->module, DT_I64, 0, NULL), .name = name, .home = onnx->root};
    Str text = str_format(onnx->arena, "state %s: i64[] = 0\n%s <- %s + 1\n", name, name, name);
    return onnx_write(onnx, STR("what draws"), text);
}

bool onnx_count_runs(Onnx *onnx)
{
    const Onnx__ModelProto *model = onnx->model;
    bool draws = false;
    for (size_t i = 0; i < model->graph->n_node; i++)
        draws |= bodies_draw(model->graph->node[i]);
    for (size_t f = 0; f < model->n_functions; f++) /* which may be called in bodies */
        for (size_t i = 0; i < model->functions[f]->n_node; i++)
            draws |= onnx_draws(model->functions[f]->node[i]) || bodies_draw(model->functions[f]->node[i]);
    return !draws || declare_runs(onnx);
}

/* A key that all rounds of the loops around have for their own */
static const char *key_in_bodies(OnnxNode *n, const char *key)
{
    for (const OnnxBlock *block = n->onnx->block; block; block = block->outer)
        if (block->round)
            key = onnx_text(n, "fold_in(%s, %s)", key, onnx_name_value(n->onnx, block->round));
    return n->onnx->round ? onnx_text(n, "fold_in(%s, %lld)", key, (long long)n->onnx->round) : key;
}

static const char *key_of(OnnxNode *n)
{
    const Onnx__AttributeProto *seed = onnx_attribute(n, "seed");
    double number = seed ? seed->has_i ? (double)seed->i : (double)seed->f : (double)n->onnx->node_count;
    if (n->onnx->block->folding || (!n->onnx->runs && n->onnx->block != n->onnx->root))
        return onnx_no(n, "it draws random numbers where none are expected"), NULL;
    if (!n->onnx->runs && !declare_runs(n->onnx))
        return NULL;
    if (!(fabs(number) < 0x1p53))
        return onnx_no(n, "its seed is no number"), NULL;
    if (number != floor(number)) { /* 0.5 and 0.25 are different seeds */
        int exponent;
        number = ldexp(frexp(number, &exponent), 40) + exponent;
    }
    return key_in_bodies(n, onnx_text(n, "fold_in(fold_in(%s, %.0f), %d)", onnx_name_value(n->onnx, n->onnx->runs),
                                      floor(number), seed != NULL));
}

/* The dtype that an attribute asks for, or the operand's */
static bool take_dtype(OnnxNode *n, DType fallback, DType *dtype)
{
    int32_t type = (int32_t)onnx_int(n, "dtype", 0);
    *dtype = fallback;
    return !type || onnx_dtype(type, dtype) || onnx_no(n, "its result is %s", onnx_dtype_name(type));
}

/* text: normal or uniform.  Its extents are an attribute, or those of the operand. */
static bool write_draw(OnnxNode *n)
{
    const int64_t *dim;
    uint32_t rank;
    DType dtype;
    bool like = onnx_has(n, 0), normal = strcmp(n->row->text, "normal") == 0;
    if (!like && (!onnx_ints(n, "shape", &dim, &rank) || rank > MAX_RANK))
        return onnx_no(n, "it has no shape");
    if (like) {
        dim = onnx_type(n, 0)->shape.dim;
        rank = onnx_rank(n, 0);
    }
    if (!take_dtype(n, like ? onnx_type(n, 0)->dtype : DT_F32, &dtype) || !dtype_is_float(dtype))
        return onnx_no(n, "its result is no float");
    const char *key = key_of(n), *list = onnx_list(n, dim, rank);
    const char *first = onnx_number(n, DT_F32, onnx_float(n, normal ? "mean" : "low", 0));
    const char *second = onnx_number(n, DT_F32, onnx_float(n, normal ? "scale" : "high", 1));
    return key &&
           onnx_emit(n, "%s = cast(random_%s(%s, shape = %s, %s = %s, %s = %s), to = %s)", onnx_out(n, 0), n->row->text,
                     key, list, normal ? "mean" : "low", first, normal ? "std" : "high", second, dtype_name(dtype));
}

static bool write_bernoulli(OnnxNode *n)
{
    DType dtype;
    const char *key = take_dtype(n, onnx_type(n, 0)->dtype, &dtype) ? key_of(n) : NULL;
    return key &&
           onnx_emit(n, "%s = cast(bernoulli(%s, %s), to = %s)", onnx_out(n, 0), key, onnx_in(n, 0), dtype_name(dtype));
}

static bool write_multinomial(OnnxNode *n)
{
    DType dtype;
    int64_t samples = onnx_int(n, "sample_size", 1);
    if (onnx_rank(n, 0) != 2 || samples < 1 || samples > INT32_MAX)
        return onnx_no(n, "its samples are impossible");
    const char *key = take_dtype(n, DT_I32, &dtype) ? key_of(n) : NULL;
    return key && onnx_emit(n, "%s = cast(categorical(%s, %s, samples = %lld), to = %s)", onnx_out(n, 0), key,
                            onnx_in(n, 0), (long long)samples, dtype_name(dtype));
}

/* Dropout while training: each element with this probability is 0, the others are scaled; the mask says which stay. */
bool onnx_write_training_dropout(OnnxNode *n, double ratio)
{
    const char *key = key_of(n), *x = onnx_in(n, 0), *mask = onnx_wants(n, 1) ? onnx_out(n, 1) : onnx_temp(n, "kept");
    const Shape *shape = &onnx_type(n, 0)->shape;
    if (!(ratio >= 0 && ratio < 1))
        return onnx_no(n, "its ratio is not below 1");
    return key &&
           onnx_emit(n, "%s = random_uniform(%s, shape = %s) >= %s", mask, key, onnx_list(n, shape->dim, shape->rank),
                     onnx_number(n, DT_F32, ratio)) &&
           onnx_emit(n, "%s = select(%s, %s * %s, 0.0)", onnx_out(n, 0), mask, x,
                     onnx_number(n, onnx_type(n, 0)->dtype, 1 / (1 - ratio)));
}

const OnnxRow onnx_random[] = {
    {"RandomNormal", 1, write_draw, "normal", NULL, false},
    {"RandomNormalLike", 1, write_draw, "normal", NULL, false},
    {"RandomUniform", 1, write_draw, "uniform", NULL, false},
    {"RandomUniformLike", 1, write_draw, "uniform", NULL, false},
    {"Bernoulli", 15, write_bernoulli, NULL, NULL, false},
    {"Multinomial", 7, write_multinomial, NULL, NULL, false},
    {0},
};
