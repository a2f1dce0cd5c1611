/* Calls of the library that ONNX has an op for.  All others are walked through (graph.c).
 *
 * In a row's text stands <weight> for the param of that name, <eps:1e-5> for a constant argument or its default, <low:>
 * for one that must be a constant, and [<axes:...>] for a list of axes.  Where one of these is missing, or the
 * operand's dtype is not taken, the call has no op. */
#include "onnx/write/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SET_F32     (DTYPE_IN(DT_F32) | DTYPE_IN(DT_F16))
#define SET_CLIPPED (SET_WIDE | DTYPE_IN(DT_U64) | DTYPE_IN(DT_U32) | DTYPE_IN(DT_I8) | DTYPE_IN(DT_U8))
#define SET_TRIU    (SET_F32 | DTYPE_IN(DT_F64) | SET_WIDE | SET_BOOL)

struct ExportLayer {
    const char *name;
    DTypeSet takes;
    uint32_t least, most; /* rank of the operand; most 0: any */
    const char *only;     /* `keep = true`: an argument that must be so; `keep = false`: or be left out; NULL: none */
    const char *text;
};

#define TAKES_AXES(name, op)                                                                                           \
    {name, SET_F32 | DTYPE_IN(DT_F64), 0, 0, "axes", op "(x, <[axes]>){keepdims=<keep:0>}"},                           \
    {                                                                                                                  \
        name, SET_F32 | DTYPE_IN(DT_F64), 0, 0, NULL, op "(x){keepdims=<keep:0>}"                                      \
    }

static const ExportLayer layers[] = {
    {"dense", SET_F32 | DTYPE_IN(DT_F64), 2, 2, "transposed = true", "Gemm(x, <weight>, <bias>){transB=1}"},
    {"dense", SET_FLOAT, 1, 0, "transposed = true", "Add(MatMul(x, Transpose(<weight>){perm=[1, 0]}), <bias>)"},
    {"dense", SET_F32 | DTYPE_IN(DT_F64), 2, 2, "with_bias = true", "Gemm(x, <weight>, <bias>)"},
    {"dense", SET_FLOAT, 1, 0, "with_bias = true", "Add(MatMul(x, <weight>), <bias>)"},
    {"batch_norm", SET_F32 | DTYPE_IN(DT_F64), 2, 0, "training = false",
     "BatchNormalization(x, <scale>, <bias>, <mean>, <variance>){epsilon=<eps:1.0e-5>}"},
    {"layer_norm", SET_FLOAT, 1, 0, NULL, "LayerNormalization(x, <scale>, <bias>){axis=-1, epsilon=<eps:1.0e-5>}"},
    {"group_norm", SET_F32, 3, 0, NULL,
     "GroupNormalization(x, <scale>, <bias>){num_groups=<groups:>, epsilon=<eps:1.0e-5>}"},
    {"softmax", SET_F32 | DTYPE_IN(DT_F64), 1, 0, NULL, "Softmax(x){axis=<axis:-1>}"},
    {"log_softmax", SET_F32 | DTYPE_IN(DT_F64), 1, 0, NULL, "LogSoftmax(x){axis=<axis:-1>}"},
    {"gelu", SET_F32, 0, 0, NULL, "Gelu(x)"},
    {"gelu_tanh", SET_F32, 0, 0, NULL, "Gelu(x){approximate='tanh'}"},
    {"prelu", SET_F32 | DTYPE_IN(DT_F64), 2, 2, NULL, "PRelu(x, <slope>)"},
    {"prelu", SET_F32 | DTYPE_IN(DT_F64), 3, 3, NULL, "PRelu(x, Unsqueeze(<slope>, [1]))"},
    {"prelu", SET_F32 | DTYPE_IN(DT_F64), 4, 4, NULL, "PRelu(x, Unsqueeze(<slope>, [1, 2]))"},
    {"leaky_relu", SET_F32, 0, 0, NULL, "LeakyRelu(x){alpha=<slope:0.01>}"},
    {"elu", SET_F32, 0, 0, NULL, "Elu(x){alpha=<alpha:1.0>}"},
    {"selu", SET_F32, 0, 0, NULL, "Selu(x)"},
    {"softplus", SET_F32, 0, 0, NULL, "Softplus(x)"},
    {"softsign", SET_F32, 0, 0, NULL, "Softsign(x)"},
    {"mish", SET_F32, 0, 0, NULL, "Mish(x)"},
    {"hard_sigmoid", SET_F32, 0, 0, NULL, "HardSigmoid(x){alpha=0.16666666666666666, beta=0.5}"},
    {"hard_swish", SET_F32, 0, 0, NULL, "HardSwish(x)"},
    {"hard_tanh", SET_FLOAT, 0, 0, NULL, "Clip(x, -1, 1)"},
    {"relu6", SET_FLOAT, 0, 0, NULL, "Clip(x, 0, 6)"},
    {"clip", SET_FLOAT | SET_CLIPPED, 0, 0, NULL, "Clip(x, <low:>, <high:>)"},
    {"global_avg_pool", SET_F32, 3, 0, "keep = true", "GlobalAveragePool(x)"},
    {"global_avg_pool", SET_F32, 3, 0, "keep = false", "Flatten(GlobalAveragePool(x))"},
    {"global_max_pool", SET_F32, 3, 0, "keep = true", "GlobalMaxPool(x)"},
    {"global_max_pool", SET_F32, 3, 0, "keep = false", "Flatten(GlobalMaxPool(x))"},
    TAKES_AXES("mean", "ReduceMean"),
    TAKES_AXES("l1_norm", "ReduceL1"),
    TAKES_AXES("l2_norm", "ReduceL2"),
    TAKES_AXES("sum_square", "ReduceSumSquare"),
    TAKES_AXES("log_sum", "ReduceLogSum"),
    TAKES_AXES("logsumexp", "ReduceLogSumExp"),
    {"triu", SET_TRIU, 2, 0, NULL, "Trilu(x, i64:<k:0>){upper=1}"},
    {"tril", SET_TRIU, 2, 0, NULL, "Trilu(x, i64:<k:0>){upper=0}"},
};

Str export_argument(const Call *call, const char *name)
{
    const char *at = call->rest.ptr, *end = at + call->rest.len;
    size_t length = strlen(name);
    while (at < end) {
        int depth = 0;
        const char *begin = at;
        for (; at < end && (depth || *at != ',' || at == begin); at++)
            depth += (*at == '[' || *at == '(') - (depth > 0 && (*at == ']' || *at == ')')); /* one may end operands */
        while (begin < at && (*begin == ',' || *begin == ' '))
            begin++;
        if ((size_t)(at - begin) > length + 3 && memcmp(begin, name, length) == 0 &&
            memcmp(begin + length, " = ", 3) == 0)
            return (Str){begin + length + 3, (uint32_t)(at - begin - length - 3)};
    }
    return (Str){0};
}

int64_t export_argument_int(const Call *call, const char *name, int64_t otherwise)
{
    Str value = export_argument(call, name);
    return value.len ? strtoll(value.ptr, NULL, 10) : otherwise;
}

Str export_argument_word(const Call *call, const char *name, const char *otherwise)
{
    Str word = export_argument(call, name);
    return word.len > 2 ? (Str){word.ptr + 1, word.len - 2} : str_from(otherwise);
}

bool export_takes(const ExportNode *n, DTypeSet set)
{
    for (uint32_t i = 0; i < n->node->in_count; i++)
        if (!(set & DTYPE_IN(value_type(n->graph, n->node->in[i])->dtype)))
            return false;
    return n->node->in_count > 0 && shape_elements(value_shape(n->graph, n->node->in[0])) > 0;
}

/* `keep = true`, `keep = false` or `axes`, which must be there. */
static bool holds(const Call *call, const char *only)
{
    const char *equals = only ? strstr(only, " = ") : NULL;
    if (!only)
        return true;
    if (!equals)
        return export_argument(call, only).len > 0;
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(equals - only), only);
    Str value = export_argument(call, name);
    bool by_default = strcmp(only, "with_bias = true") == 0 || strcmp(equals + 3, "false") == 0;
    return value.len ? str_is(value, equals + 3) : by_default;
}

/* The call's own param of this name, `label.weight`. */
static const Value *find_param(const Node *node, Str name)
{
    const Graph *body = node->sub[0];
    for (ValueId v = 0; v < body->value_count; v++) {
        const Value *value = &body->value[v];
        bool leaf = value->role == ROLE_PARAM || value->role == ROLE_STATE;
        if (leaf && value->name.len > name.len && value->name.ptr[value->name.len - name.len - 1] == '.' &&
            str_eq((Str){value->name.ptr + value->name.len - name.len, name.len}, name))
            return value;
    }
    return NULL;
}

/* A number as its default is: with a point, when it is to be a float. */
static bool put_number(Text *out, Str value, Str fallback)
{
    bool is_float = memchr(fallback.ptr, '.', fallback.len), has_point = false;
    value = value.len ? value : fallback;
    if (str_is(value, "true") || str_is(value, "false"))
        text_printf(out, "%d", str_is(value, "true"));
    else
        text_str(out, value);
    for (uint32_t i = 0; i < value.len; i++)
        has_point |= value.ptr[i] == '.' || value.ptr[i] == 'e';
    if (is_float && !has_point)
        text_printf(out, ".0");
    return value.len > 0;
}

/* What stands in the angles, in the words of an expression. */
static bool put_hole(Text *out, ExportNode *n, Str hole)
{
    const Call *call = n->node->call;
    const char *colon = memchr(hole.ptr, ':', hole.len);
    Str name = {hole.ptr, colon ? (uint32_t)(colon - hole.ptr) : hole.len};
    if (*hole.ptr == '[') {
        Str list = export_argument(call, str_copy(n->e->arena, (Str){hole.ptr + 1, hole.len - 2}).ptr);
        text_printf(out, *list.ptr == '[' ? STR_FMT : "[" STR_FMT "]", STR_ARG(list));
        return list.len > 0;
    }
    if (colon) {
        Str value = export_argument(call, str_copy(n->e->arena, name).ptr);
        return put_number(out, value, (Str){colon + 1, hole.len - name.len - 1});
    }
    const Value *param = find_param(n->node, name);
    if (param)
        text_printf(out, "$%u", export_leaf(n->e, param));
    return param != NULL;
}

static const char *fill(ExportNode *n, const char *text)
{
    Text out = {0};
    bool good = true;
    while (good && *text) {
        const char *open = strchr(text, '<'), *close = open ? strchr(open, '>') : NULL;
        text_put(&out, text, open ? (size_t)(open - text) : strlen(text));
        if (!open)
            break;
        good = put_hole(&out, n, (Str){open + 1, (uint32_t)(close - open - 1)});
        text = close + 1;
    }
    const char *copy = good ? str_copy(n->e->arena, text_view(&out)).ptr : NULL;
    text_free(&out);
    return copy;
}

const ExportLayer *export_find_layer(const ExportNode *n)
{
    const Call *call = n->node->call;
    if (!call->library || !n->node->in_count)
        return NULL;
    const Type *type = value_type(n->graph, n->node->in[0]);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const ExportLayer *row = &layers[i];
        if (str_is(call->name, row->name) && row->takes & DTYPE_IN(type->dtype) && type->shape.rank >= row->least &&
            (!row->most || type->shape.rank <= row->most) && shape_elements(&type->shape) && holds(call, row->only))
            return row;
    }
    return NULL;
}

bool export_layer(ExportNode *n, const ExportLayer *layer)
{
    const char *text = fill(n, layer->text);
    return text && export_result(n, 0, "%s", text);
}
