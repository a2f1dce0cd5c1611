/* The preview of training: gradients, and steps of optimisers. */
#include <string.h>

#include "onnx/import.h"

#define TRAINING "ai.onnx.preview.training"

/* Operands after rate and step: as many params, gradients, and states of each kind. */
typedef struct Step {
    OnnxNode *node;
    uint32_t params, kinds; /* kinds of operands for each param */
    const char *rate;
} Step;

static bool start(Step *s, OnnxNode *n, uint32_t kinds)
{
    *s = (Step){.node = n, .kinds = kinds, .params = n->in_count > 2 ? (n->in_count - 2) / kinds : 0};
    return (s->params && n->in_count == 2 + s->params * kinds && n->out_count == s->params * (kinds - 1)) ||
           onnx_no(n, "its operands and results are not as many for each param");
}

static const char *operand(const Step *s, uint32_t kind, uint32_t i)
{
    return onnx_in(s->node, 2 + kind * s->params + i);
}

static const char *result(const Step *s, uint32_t kind, uint32_t i)
{
    return onnx_out(s->node, kind * s->params + i);
}

static const char *number(const Step *s, const char *name, double fallback)
{
    return onnx_number(s->node, onnx_type(s->node, 2)->dtype, onnx_float(s->node, name, fallback));
}

static double value(const Step *s, const char *name, double fallback)
{
    return onnx_float(s->node, name, fallback);
}

static const char *exactly(const Step *s, double x)
{
    return onnx_number(s->node, onnx_type(s->node, 2)->dtype, x);
}

/* The gradient with what draws the param to 0. */
static const char *decayed(const Step *s, uint32_t i)
{
    if (value(s, "norm_coefficient", 0) == 0)
        return operand(s, 1, i);
    const char *sum = onnx_define(s->node, "gradient", "%s * %s + %s", operand(s, 0, i),
                                  number(s, "norm_coefficient", 0), operand(s, 1, i));
    return sum ? sum : operand(s, 1, i);
}

static const char *step_as_float(const Step *s)
{
    return onnx_text(s->node, "cast(%s, to = %s)", onnx_in(s->node, 1), dtype_name(onnx_type(s->node, 2)->dtype));
}

static bool write_adagrad(OnnxNode *n)
{
    Step s;
    if (!start(&s, n, 3))
        return false;
    const char *rate = onnx_temp(n, "rate");
    bool good = onnx_emit(n, "%s = %s / (%s * %s + 1.0)", rate, onnx_in(n, 0), step_as_float(&s),
                          number(&s, "decay_factor", 0));
    for (uint32_t i = 0; good && i < s.params; i++) {
        const char *g = decayed(&s, i), *h = result(&s, 1, i);
        good = onnx_emit(n, "%s = %s + square(%s)", h, operand(&s, 2, i), g) &&
               onnx_emit(n, "%s = %s - %s * %s / (sqrt(%s) + %s)", result(&s, 0, i), operand(&s, 0, i), rate, g, h,
                         number(&s, "epsilon", 0));
    }
    return good;
}

static bool write_momentum(OnnxNode *n)
{
    Step s;
    if (!start(&s, n, 3))
        return false;
    bool ahead = strcmp(onnx_string(n, "mode", "standard"), "nesterov") == 0, good = true;
    const char *alpha = number(&s, "alpha", 0), *beta = onnx_temp(n, "beta");
    good = onnx_emit(n, "%s = select(%s > 0, %s, %s)", beta, onnx_in(n, 1),
                     onnx_scalar(n, onnx_type(n, 2)->dtype, value(&s, "beta", 0)), exactly(&s, 1));
    for (uint32_t i = 0; good && i < s.params; i++) {
        const char *g = decayed(&s, i), *v = result(&s, 1, i);
        const char *way = ahead ? onnx_text(n, "(%s + %s * %s)", g, v, alpha) : v;
        good = onnx_emit(n, "%s = %s * %s + %s * %s", v, operand(&s, 2, i), alpha, beta, g) &&
               onnx_emit(n, "%s = %s - %s * %s", result(&s, 0, i), operand(&s, 0, i), onnx_in(n, 0), way);
    }
    return good;
}

static bool write_adam(OnnxNode *n)
{
    Step s;
    if (!start(&s, n, 4))
        return false;
    double alpha = value(&s, "alpha", (double)0.9f), beta = value(&s, "beta", (double)0.999f);
    const char *rate = onnx_temp(n, "rate"), *t = onnx_temp(n, "t"), *a = exactly(&s, alpha), *b = exactly(&s, beta);
    const char *after = exactly(&s, 1 - value(&s, "norm_coefficient_post", 0));
    bool good = onnx_emit(n, "%s = %s", t, step_as_float(&s)) &&
                onnx_emit(n, "%s = select(%s > 0.0, %s * sqrt(1.0 - %s ** %s) / (1.0 - %s ** %s), %s)", rate, t,
                          onnx_in(n, 0), b, t, a, t, onnx_in(n, 0));
    for (uint32_t i = 0; good && i < s.params; i++) {
        const char *g = decayed(&s, i), *v = result(&s, 1, i), *h = result(&s, 2, i);
        const char *scaled = after[0] == '1' ? "" : onnx_text(n, " * %s", after);
        good = onnx_emit(n, "%s = %s * %s + %s * %s", v, operand(&s, 2, i), a, g, exactly(&s, 1 - alpha)) &&
               onnx_emit(n, "%s = %s * %s + square(%s) * %s", h, operand(&s, 3, i), b, g, exactly(&s, 1 - beta)) &&
               onnx_emit(n, "%s = (%s - %s * %s / (sqrt(%s) + %s))%s", result(&s, 0, i), operand(&s, 0, i), rate, v, h,
                         number(&s, "epsilon", (double)1e-6f), scaled);
    }
    return good;
}

/* Are the operands from the i-th on the values that the attribute names?  Those of which y was computed, then, and not
 * others that it would have to be computed of again. */
static bool are_named(OnnxNode *n, uint32_t i, const Onnx__AttributeProto *names)
{
    for (size_t k = 0; names && k < names->n_strings; k++) {
        Str name = {(const char *)names->strings[k].data, (uint32_t)names->strings[k].len};
        const OnnxValue *value = onnx_lookup(n->scope, n->onnx, str_copy(n->onnx->arena, name).ptr);
        if (!value || value != n->in[i + k])
            return onnx_no(n, "operand %u is not '" STR_FMT "', of which y was computed", (uint32_t)(i + k),
                           STR_ARG(name));
    }
    return true;
}

/* Gradients of y, which the graph has computed before, by the first operands, xs; the others, zs, stay as they are. */
static bool write_gradient(OnnxNode *n)
{
    const OnnxValue *y = onnx_lookup(n->scope, n->onnx, onnx_string(n, "y", ""));
    const Onnx__AttributeProto *xs = onnx_attribute(n, "xs"), *zs = onnx_attribute(n, "zs");
    uint32_t count = xs ? (uint32_t)xs->n_strings : 0;
    Text wrt = {0}, names = {0};
    if (!y || !y->type || y->known || !count || count + (zs ? zs->n_strings : 0) != n->in_count ||
        count != n->out_count)
        return onnx_no(n, "it names no y, or not as many x as it has operands");
    if (!are_named(n, 0, xs) || !are_named(n, count, zs))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        text_printf(&wrt, "%s%s", i ? ", " : "", onnx_in(n, i));
        text_printf(&names, "%s%s", i ? ", " : "", onnx_out(n, i));
    }
    bool one = count == 1;
    bool good = onnx_emit(n, one ? "%s = grad(%s, wrt = %s)" : "(%s) = grad(%s, wrt = [%s])", names.ptr,
                          onnx_name_value(n->onnx, (OnnxValue *)(uintptr_t)y), wrt.ptr);
    text_free(&wrt);
    text_free(&names);
    return good;
}

const OnnxRow onnx_training[] = {
    {"Adagrad", 1, write_adagrad, NULL, TRAINING, false},
    {"Momentum", 1, write_momentum, NULL, TRAINING, false},
    {"Adam", 1, write_adam, NULL, TRAINING, false},
    {"Gradient", 1, write_gradient, NULL, TRAINING, false},
    {0},
};
