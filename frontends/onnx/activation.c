/* What ONNX Runtime fuses with the activation behind it: convolutions and products of matrices (com.microsoft). */
#include <string.h>

#include "onnx/import.h"

#define CONTRIB "com.microsoft"

/* The op that comes first, with all attributes and the first operands, as a value of its own; NULL after onnx_no. */
static OnnxValue *write_first(OnnxNode *n, const char *op, uint32_t operands)
{
    OnnxNode *node = onnx_cover(n, op, 13, operands);
    const char *name = onnx_temp(n, "linear");
    onnx_copy_attributes(node, n);
    for (uint32_t i = 0; i < operands; i++)
        if (onnx_has(n, i)) {
            node->in[i] = n->in[i];
            node->proto->input[i] = n->proto->input[i]; /* by which a layer knows its params */
        }
    onnx_name_results(node, &name, 1);
    return onnx_write_cover(n, node) ? onnx_written(n, name) : NULL;
}

typedef struct Activation {
    const char *op, *number[2]; /* attributes that it has; NULL: no more */
} Activation;

static const Activation *find_activation(const char *op)
{
    static const Activation known[] = {
        {"Relu", {0}},
        {"Tanh", {0}},
        {"Sigmoid", {0}},
        {"Softplus", {0}},
        {"Softsign", {0}},
        {"LeakyRelu", {"alpha", NULL}},
        {"Elu", {"alpha", NULL}},
        {"ThresholdedRelu", {"alpha", NULL}},
        {"HardSigmoid", {"alpha", "beta"}},
        {"Selu", {"alpha", "gamma"}},
        {"Clip", {"min", "max"}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].op, op) == 0)
            return &known[i];
    return NULL;
}

/* Adds number k of an activation: one of a list behind convolutions, an attribute of its own behind products. */
static bool add_number(OnnxNode *n, OnnxNode *node, const Activation *a, uint32_t k)
{
    const Onnx__AttributeProto *list = onnx_attribute(n, "activation_params"),
                               *own = onnx_attribute(n, onnx_text(n, "activation_%s", a->number[k]));
    if (!own && (!list || list->n_floats <= k))
        return onnx_no(n, "its activation %s has no %s", a->op, a->number[k]);
    onnx_add_float(node, a->number[k], (double)(own ? own->f : list->floats[k]));
    return true;
}

static bool write_activation(OnnxNode *n, OnnxValue *x)
{
    const char *op = onnx_string(n, "activation", "");
    const Activation *a = find_activation(op);
    if (!*op)
        return onnx_emit(n, "%s = %s", onnx_out(n, 0), onnx_name_value(n->onnx, x));
    if (!a)
        return onnx_no(n, "its activation is %s", op);
    OnnxNode *node = onnx_cover(n, op, 6, 1);
    onnx_set_operand(node, 0, x);
    for (uint32_t k = 0; k < 2 && a->number[k]; k++)
        if (!add_number(n, node, a, k))
            return false;
    return onnx_write_cover(n, node);
}

/* An image that is added comes before the activation. */
static bool write_fused_conv(OnnxNode *n)
{
    OnnxValue *y = write_first(n, "Conv", 3);
    const char *sum = onnx_has(n, 3) ? onnx_temp(n, "sum") : NULL;
    if (y && sum)
        y = onnx_emit(n, "%s = %s + %s", sum, onnx_name_value(n->onnx, y), onnx_in(n, 3)) ? onnx_written(n, sum) : NULL;
    return y && write_activation(n, y);
}

static bool write_fused_gemm(OnnxNode *n)
{
    OnnxValue *y = write_first(n, "Gemm", 3);
    return y && write_activation(n, y);
}

const OnnxRow onnx_activation[] = {
    {"FusedConv", 1, write_fused_conv, NULL, CONTRIB, false},
    {"FusedGemm", 1, write_fused_gemm, NULL, CONTRIB, false},
    {0},
};
