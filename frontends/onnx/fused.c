/* Formulas that exporters spell out, as the op or layer that they mean.  Each is written as the node of that op: layers
 * and half floats are treated as they are there. */
#include <math.h>
#include <string.h>

#include "onnx/pattern.h"

typedef struct OnnxFormula {
    const char *root; /* ops that it may end with, between blanks */
    const char *pattern;
    bool (*write)(OnnxMatch *match, const char *text);
    const char *text; /* for `write` */
} OnnxFormula;

/* A node in place of those that match */

static OnnxNode *cover(const OnnxMatch *m, const char *op, int64_t opset, const char *operands)
{
    Arena *arena = m->root->onnx->arena;
    OnnxNode *node = onnx_cover(m->root, op, opset, (uint32_t)strlen(operands));
    for (uint32_t i = 0; i < node->in_count; i++) {
        const OnnxOperand *bound = onnx_bound(m, str_copy(arena, (Str){operands + i, 1}).ptr);
        node->in[i] = bound->value;
        node->proto->input[i] = bound->node->proto->input[bound->index];
    }
    node->covers = true;
    return node;
}

/* Shapes */

static const Shape *extents_of(const OnnxMatch *m, const char *name)
{
    return &onnx_bound(m, name)->value->type->shape;
}

/* Numbers beside x do not give the result more dimensions than x has. */
static bool keeps_shape(const OnnxMatch *m)
{
    const OnnxValue *x = onnx_bound(m, "x")->value;
    return m->most_rank <= x->type->shape.rank && dtype_is_float(x->type->dtype);
}

/* Is it a vector as long as the last dimension of x? */
static bool is_row(const OnnxMatch *m, const char *name)
{
    const Shape *x = extents_of(m, "x"), *row = extents_of(m, name);
    return row->rank == 1 && x->rank && row->dim[0] == x->dim[x->rank - 1];
}

/* The first of the axes that a reduction goes over, where these are the last ones; -1: they are not. */
static int64_t first_axis(const OnnxMatch *m)
{
    uint32_t rank = extents_of(m, "x")->rank, first = 0;
    while (first < rank && !(m->axes >> first & 1))
        first++;
    return first < rank && m->axes == ((1u << rank) - 1) - ((1u << first) - 1) ? (int64_t)first : -1;
}

/* Functions of x: text is a call with $ for it. */
static bool write_unary(OnnxMatch *m, const char *text)
{
    return keeps_shape(m) && onnx_emit(m->root, "%s = %s(%s)", onnx_out(m->root, 0), text,
                                       onnx_name_value(m->root->onnx, onnx_bound(m, "x")->value));
}

static bool write_swish(OnnxMatch *m, const char *text)
{
    DType dtype = onnx_bound(m, "x")->value->type->dtype;
    return keeps_shape(m) && onnx_emit(m->root, "%s = %s(%s, %s)", onnx_out(m->root, 0), text,
                                       onnx_name_value(m->root->onnx, onnx_bound(m, "x")->value),
                                       onnx_number(m->root, dtype, onnx_bound_number(m, "'b")));
}

/* text is the op */
static bool write_softmax(OnnxMatch *m, const char *text)
{
    uint32_t rank = extents_of(m, "x")->rank, bit = 0;
    while (bit < rank && !(m->axes >> bit & 1))
        bit++;
    if (!keeps_shape(m) || m->axes != 1u << bit)
        return false;
    OnnxNode *node = cover(m, text, 13, "x");
    onnx_add_int(node, "axis", bit);
    return node->row->write(node);
}

/* text: its operands */
static bool write_layer_norm(OnnxMatch *m, const char *text)
{
    int64_t axis = first_axis(m);
    if (!keeps_shape(m) || axis != (int64_t)extents_of(m, "x")->rank - 1 || !is_row(m, "g") ||
        (strlen(text) > 2 && !is_row(m, "b")))
        return false;
    OnnxNode *node = cover(m, "LayerNormalization", 17, text);
    onnx_add_int(node, "axis", -1);
    onnx_add_float(node, "epsilon", onnx_bound_number(m, "'e"));
    return node->row->write(node);
}

static bool write_rms_norm(OnnxMatch *m, const char *text)
{
    int64_t axis = first_axis(m);
    if (!keeps_shape(m) || axis != (int64_t)extents_of(m, "x")->rank - 1 || !is_row(m, "g"))
        return false;
    OnnxNode *node = cover(m, text, 23, "xg");
    onnx_add_int(node, "axis", -1);
    onnx_add_float(node, "epsilon", onnx_bound_number(m, "'e"));
    return node->row->write(node);
}

static bool write_standardize(OnnxMatch *m, const char *text)
{
    const OnnxValue *x = onnx_bound(m, "x")->value;
    int64_t axis[MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = 0; d < x->type->shape.rank; d++)
        if (m->axes >> d & 1)
            axis[count++] = d;
    return keeps_shape(m) &&
           onnx_emit(m->root, "%s = %s(%s, axes = %s, eps = %s)", onnx_out(m->root, 0), text,
                     onnx_name_value(m->root->onnx, onnx_bound(m, "x")->value), onnx_list(m->root, axis, count),
                     onnx_number(m->root, x->type->dtype, onnx_bound_number(m, "'e")));
}

/* A name of the model that dense would change keeps it from being one. */
static bool keeps_name(const OnnxNode *node, uint32_t operand, const char *label, const char *param)
{
    return onnx_name_is_free(node, operand) ||
           strcmp(node->in[operand]->wish, onnx_text(node, "%s.%s", label, param)) == 0;
}

static bool write_dense(OnnxMatch *m, const char *text)
{
    static const OnnxParam param[] = {{1, "weight"}, {2, "bias"}};
    const Shape *x = extents_of(m, "x"), *w = extents_of(m, "w"), *b = extents_of(m, "b");
    OnnxNode *node = cover(m, text, 13, "xwb");
    if (x->rank < 2 || w->rank != 2 || b->rank != 1 || w->dim[0] != x->dim[x->rank - 1] || b->dim[0] != w->dim[1] ||
        node->in[0]->type->dtype != node->in[1]->type->dtype || !onnx_owns(node, param, 2))
        return false;
    const char *label = onnx_layer_wish(node, param, 2);
    if (!keeps_name(node, 1, label, "weight") || !keeps_name(node, 2, label, "bias"))
        return false;
    const OnnxLayer *layer = onnx_layer(node, param, 2);
    return onnx_emit(node, "%s = dense@%s(%s, %lld)", onnx_out(node, 0), layer->label, onnx_in(node, 0),
                     (long long)w->dim[1]) &&
           onnx_layer_fits(node, layer);
}

/* What [c, 1, 1] is made of, where that is a weight [c]: the node reads it itself. */
static bool read_flat(OnnxNode *node, uint32_t i, int64_t channels)
{
    const OnnxNode *maker = node->in[i]->maker;
    bool moved = node->in[i]->folded && maker->scope == node->scope &&
                 (onnx_maker(node->in[i], "Unsqueeze") || onnx_maker(node->in[i], "Reshape")) &&
                 map_get(node->scope->uses, str_from(node->proto->input[i])) == 1;
    const Shape *flat = moved ? &maker->in[0]->type->shape : NULL;
    if (!moved || flat->rank != 1 || flat->dim[0] != channels)
        return false;
    node->in[i] = maker->in[0];
    node->proto->input[i] = maker->proto->input[0];
    return true;
}

/* [c, 1, 1] as [c] */
static bool flatten_weight(OnnxNode *node, uint32_t i, int64_t channels)
{
    if (read_flat(node, i, channels))
        return true;
    OnnxValue *value = arena_copy(node->onnx->arena, node->in[i], sizeof *value);
    Onnx *onnx = node->onnx;
    if (!value->known || shape_elements(&value->type->shape) != channels ||
        value->type->shape.dim[0] * value->type->shape.rank == 0)
        return false;
    Tensor *tensor = arena_copy(onnx->arena, value->known, sizeof *tensor);
    tensor->type = value->type = module_plain_type(onnx->module, value->type->dtype, 1, &channels);
    value->known = tensor;
    value->name = NULL;
    node->in[i] = value;
    return true;
}

static bool is_filled(const OnnxMatch *m, const char *name, double number)
{
    const Tensor *known = onnx_bound(m, name)->value->known;
    if (!known)
        return false;
    for (int64_t i = 0; i < shape_elements(&known->type->shape); i++)
        if (tensor_number(known, i) != number)
            return false;
    return true;
}

/* PyTorch writes groups as channels of one row each. */
static bool write_group_norm(OnnxMatch *m, const char *text)
{
    const Shape *x = extents_of(m, "x"), *rows = extents_of(m, "r");
    int64_t channels = x->rank > 2 ? x->dim[1] : 0;
    if (!channels || rows->rank != 3 || rows->dim[0] != x->dim[0] || !rows->dim[1] || channels % rows->dim[1] ||
        !is_filled(m, "o", 1) || !is_filled(m, "z", 0))
        return false;
    OnnxNode *node = cover(m, text, 21, "xgb");
    bool column = extents_of(m, "g")->dim[0] == channels && extents_of(m, "g")->rank + 1 == x->rank &&
                  extents_of(m, "b")->dim[0] == channels && extents_of(m, "b")->rank + 1 == x->rank;
    if (!column || !flatten_weight(node, 1, channels) || !flatten_weight(node, 2, channels))
        return false;
    const OnnxNode *instance = onnx_bound(m, "n")->value->maker;
    onnx_add_int(node, "num_groups", rows->dim[1]);
    onnx_add_float(node, "epsilon", onnx_float(instance, "epsilon", (double)1e-5f));
    return node->row->write(node);
}

/* Larger ones come first. */
#define PRODUCT " Mul Div "
#define SUM     " Add Sub "
#define SPREAD  "(^ (+ (mean (^ d 2)) 'e) -0.5)"

static const OnnxFormula formula[] = {
    {PRODUCT, "(* 0.5 (+ 1 (Erf (* 0.7071067811865476 x))) x)", write_unary, "gelu"},
    {PRODUCT, "(* (+ 0.5 (* 0.5 (Erf (* 0.7071067811865476 x)))) x)", write_unary, "gelu"},
    {PRODUCT, "(* 0.5 (+ 1 (Tanh (* 0.7978845608028654 (+ (* 0.044715 (^ x 3)) x)))) x)", write_unary, "gelu_tanh"},
    {PRODUCT, "(* 0.5 (+ 1 (Tanh (* 0.7978845608028654 (+ 1 (* 0.044715 (^ x 2))) x))) x)", write_unary, "gelu_tanh"},
    {PRODUCT, "(* (+ 0.5 (* 0.5 (Tanh (* 0.7978845608028654 (+ (* 0.044715 (^ x 3)) x))))) x)", write_unary,
     "gelu_tanh"},
    {PRODUCT, "(* (Sigmoid x) x)", write_unary, "silu"},
    {PRODUCT, "(* (Sigmoid (* 'b x)) x)", write_swish, "swish"},
    {PRODUCT, "(* (Tanh (Softplus x)) x)", write_unary, "mish"},
    {PRODUCT, "(* (Tanh (Log (+ 1 (Exp x)))) x)", write_unary, "mish"},
    {PRODUCT, "(* 0.16666666666666666 (Clip (+ 3 x) 0 6) x)", write_unary, "hard_swish"},
    {PRODUCT, "(* 0.16666666666666666 (Clip (+ 3 x) 0 6))", write_unary, "hard_sigmoid"},
    {PRODUCT, "(* e:(Exp (+ (- (max x)) x)) (^ (sum e) -1))", write_softmax, "Softmax"},
    {PRODUCT, "(* e:(Exp x) (^ (sum e) -1))", write_softmax, "Softmax"},
    {PRODUCT, "(* (^ (+ (mean (^ x 2)) 'e) -0.5) x g)", write_rms_norm, "RMSNormalization"},
    {PRODUCT, "(* d:(+ (- (mean x)) x) " SPREAD " g)", write_layer_norm, "xg"},
    {PRODUCT, "(* d:(+ (- (mean x)) x) " SPREAD ")", write_standardize, "standardize"},
    {SUM, "(+ (* d:(+ (- (mean x)) x) " SPREAD " g) b)", write_layer_norm, "xgb"},
    {SUM, "(+ d:(+ (- (max x)) x) (- (Log (sum (Exp d)))))", write_softmax, "LogSoftmax"},
    {SUM, "(+ (* (Reshape n:(InstanceNormalization r:(Reshape x) o z)) g) b)", write_group_norm, "GroupNormalization"},
    {SUM, "(+ (* n:(InstanceNormalization r:x o z) g) b)", write_group_norm, "GroupNormalization"},
    {SUM, "(+ (MatMul x w) b)", write_dense, "Gemm"},
    {" Log ", "(Log (+ 1 (Exp x)))", write_unary, "softplus"},
};

bool onnx_write_pattern(OnnxNode *node)
{
    const char *domain = node->proto->domain;
    bool own = (!domain || !*domain) && node->opset >= 7 && node->onnx->block == node->onnx->root;
    Str word = str_format(node->onnx->arena, " %s ", node->proto->op_type);
    OnnxMatch match;
    bool ends = false; /* such a node ends what the formula says, as it does those before of the same roots */
    for (size_t i = 0; own && i < sizeof formula / sizeof *formula; i++) {
        if (!i || formula[i].root != formula[i - 1].root)
            ends = strstr(formula[i].root, word.ptr) != NULL;
        if (ends && onnx_match(node, formula[i].pattern, &match) && formula[i].write(&match, formula[i].text))
            return true;
    }
    return own && onnx_write_heads(node);
}
