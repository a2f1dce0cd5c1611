/* Which initialisers are weights, that training moves, and which are constants.
 * Of floats all are weights that have more than one element.  A number is one where it has the name of a module's
 * parameter, `fc.bias` or `gate`, or nodes read it as a weight: other numbers that exporters make initialisers of are
 * constants.  PyTorch's exporter by `torch.export` says which are parameters, and which are buffers; what it has worked
 * out itself is a weight where it is read as one, or is called as one.
 * What is computed of weights is no constant either (onnx_learns). */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "frontends/nnc/lex.h"
#include "onnx/import.h"

enum { PARAMETER, BUFFER }; /* what the file says */

enum {
    AS_WEIGHT = 1,
    AS_NUMBER = 2,
    AS_OTHER = 4,
    AS_QUANTISED = 8,
    AS_EXPONENT = 16
}; /* bits: how nodes read a value */

/* Operands as bits, from the first on */
typedef struct Reader {
    const char *op;
    uint32_t weight, number;
} Reader;

#define FROM(first) (~0u << (first))
#define AT(i)       (1u << (i))

static const Reader reader[] = {
    {"MatMul", AT(1), 0},
    {"Gemm", AT(1) | AT(2), 0},
    {"Conv", AT(1) | AT(2), 0},
    {"ConvTranspose", AT(1) | AT(2), 0},
    {"PRelu", AT(1), 0},
    {"BatchNormalization", AT(1) | AT(2), 0},
    {"LayerNormalization", AT(1) | AT(2), 0},
    {"RMSNormalization", AT(1), 0},
    {"GroupNormalization", AT(1) | AT(2), 0},
    {"RNN", AT(1) | AT(2) | AT(3), 0},
    {"GRU", AT(1) | AT(2) | AT(3), 0},
    {"LSTM", AT(1) | AT(2) | AT(3) | AT(7), 0},
    {"QuantizeLinear", 0, FROM(1)},
    {"DequantizeLinear", 0, FROM(1)},
    {"Clip", 0, FROM(1)},
    {"Dropout", 0, FROM(1)},
    {"OneHot", 0, FROM(1)},
    {"Pad", 0, FROM(1)},
    {"Range", 0, FROM(0)},
    {"Resize", 0, FROM(1)},
    {"Upsample", 0, FROM(1)},
};

/* How nodes read initialisers */

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* Ops of other domains than ONNX's own and the model's take numbers, such as scales. */
static bool is_contributed(const char *domain)
{
    return strncmp(domain, "com.microsoft", 13) == 0 || strncmp(domain, "ai.onnx.", 8) == 0;
}

static uint32_t way_of(const Onnx__NodeProto *node, uint32_t operand)
{
    const char *op = text_of(node->op_type), *domain = text_of(node->domain);
    uint32_t bit = operand < 32 ? AT(operand) : 0;
    if (is_contributed(domain) || strncmp(op, "QLinear", 7) == 0)
        return AS_NUMBER | AS_OTHER;
    uint32_t way = strcmp(op, "DequantizeLinear") == 0 && operand == 0 ? AS_QUANTISED : AS_OTHER;
    if (strcmp(op, "Pow") == 0 && operand == 1)
        way |= AS_EXPONENT;
    for (size_t i = 0; i < sizeof reader / sizeof *reader; i++)
        if (strcmp(reader[i].op, op) == 0)
            way |= (reader[i].weight & bit ? AS_WEIGHT : 0) | (reader[i].number & bit ? AS_NUMBER : 0);
    return way;
}

static void note_readers(Onnx *onnx, Onnx__NodeProto *const *list, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < list[n]->n_input; i++) {
            Str name = str_from(list[n]->input[i]);
            uint32_t ways = map_get(&onnx->read_as, name);
            map_put(&onnx->read_as, name, (ways == MAP_NONE ? 0 : ways) | way_of(list[n], (uint32_t)i));
        }
        for (size_t a = 0; a < list[n]->n_attribute; a++) {
            const Onnx__GraphProto *body = list[n]->attribute[a]->g;
            if (body)
                note_readers(onnx, body->node, body->n_node);
        }
    }
}

static uint32_t ways_of(const Onnx *onnx, const char *name)
{
    uint32_t ways = map_get(&onnx->read_as, str_from(name));
    return ways == MAP_NONE ? 0 : ways;
}

/* What the file says */

static void note_kinds(Onnx *onnx, Onnx__ValueInfoProto *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < list[i]->n_metadata_props; k++) {
            const Onnx__StringStringEntryProto *entry = list[i]->metadata_props[k];
            if (strcmp(text_of(entry->key), "pkg.torch.export.graph_signature.InputSpec.kind") == 0 &&
                strcmp(text_of(entry->value), "USER_INPUT") != 0)
                map_put(&onnx->kinds, str_from(text_of(list[i]->name)),
                        strcmp(text_of(entry->value), "PARAMETER") == 0 ? PARAMETER : BUFFER);
        }
}

void onnx_find_weights(Onnx *onnx)
{
    const Onnx__GraphProto *graph = onnx->model->graph;
    onnx->kinds.arena = onnx->read_as.arena = onnx->arena;
    note_kinds(onnx, graph->value_info, graph->n_value_info);
    note_kinds(onnx, graph->input, graph->n_input);
    note_readers(onnx, graph->node, graph->n_node);
}

/* Names */

/* `f32_0.25`, as export calls numbers */
static bool begins_with_dtype(Str name)
{
    const char *end = memchr(name.ptr, '_', name.len);
    DType dtype;
    return end && dtype_parse((Str){name.ptr, (uint32_t)(end - name.ptr)}, &dtype);
}

/* `fc.bias`, `gate`; not `/fc/Constant_output_0`, `onnx::Mul_12`, `val_13`, `const_fold_opt__12`, `Const__7:0`, `c1` */
static bool is_parameter(Str name)
{
    bool path = memchr(name.ptr, '.', name.len) != NULL;
    if (!lex_is_plain(name) || *name.ptr == '_' || begins_with_dtype(name) ||
        (!path && isdigit((unsigned char)name.ptr[name.len - 1])))
        return false;
    for (const char *part = name.ptr; part; part = strchr(part, '.'), part += part != NULL)
        if (strncasecmp(part, "const", 5) == 0)
            return false;
    return true;
}

static bool is_weight(const Onnx *onnx, const OnnxValue *value)
{
    const char *name = value->wish;
    uint32_t said = map_get(&onnx->kinds, str_from(name)), ways = ways_of(onnx, name);
    bool number = shape_elements(&value->type->shape) == 1;
    if (number && ways & AS_NUMBER)
        return false;
    if (said != MAP_NONE)
        return said == PARAMETER;
    if (ways & AS_WEIGHT)
        return true;
    if (onnx->kinds.count)
        return strchr(name, '.') != NULL;
    if (number && ways & AS_EXPONENT && !strchr(name, '.'))
        return false;
    return !number || is_parameter(str_from(name)) || strstr(name, "ReadVariableOp"); /* which is TensorFlow's */
}

void onnx_mark_initialiser(Onnx *onnx, OnnxValue *value)
{
    bool floats = dtype_is_float(value->type->dtype);
    value->weight = floats && is_weight(onnx, value);
    value->buffer = floats && map_get(&onnx->kinds, str_from(value->wish)) == BUFFER;
}

/* What is computed of them */

static bool is_op(const OnnxNode *node, const char *op)
{
    return strcmp(text_of(node->proto->op_type), op) == 0;
}

/* Scales of integers are no weights of what they scale, and of CastLike the second operand is only a dtype. */
static bool reads_weights(const OnnxNode *node)
{
    bool first = is_op(node, "QuantizeLinear") || is_op(node, "DequantizeLinear") || is_op(node, "CastLike");
    for (uint32_t i = 0; i < node->in_count && (!first || i < 1); i++)
        if (node->in[i] && node->in[i]->weight)
            return true;
    return false;
}

/* Integers that only DequantizeLinear reads are as many steps of a weight. */
static bool is_quantised_weight(const OnnxNode *node)
{
    return is_op(node, "QuantizeLinear") && node->out_count &&
           ways_of(node->onnx, node->proto->output[0]) == AS_QUANTISED;
}

static bool gives_floats(const OnnxNode *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i] && node->out[i]->type && dtype_is_float(node->out[i]->type->dtype))
            return true;
    return is_quantised_weight(node);
}

bool onnx_learns(const OnnxNode *node)
{
    return !onnx_is_moved(node) && reads_weights(node) && gives_floats(node);
}
