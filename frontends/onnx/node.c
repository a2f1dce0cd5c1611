/* What handlers of ops use: operands, results, attributes, and statements. */
#include <math.h>
#include <string.h>

#include "frontends/nnc/constant.h"
#include "onnx/import.h"

static const char *keep(Onnx *onnx, Text *text)
{
    const char *copy = str_copy(onnx->arena, text_view(text)).ptr;
    text_free(text);
    return copy;
}

bool onnx_no(OnnxNode *node, const char *format, ...)
{
    Text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    if (node->reason)
        text_free(&text);
    else
        node->reason = keep(node->onnx, &text);
    return false;
}

const char *onnx_text(const OnnxNode *node, const char *format, ...)
{
    Text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    return keep(node->onnx, &text);
}

/* `model.onnx: Conv 'conv1'` stands before the line in messages. */
static Str place_of(const OnnxNode *node)
{
    const char *name = node->proto->name ? node->proto->name : "";
    return str_format(node->onnx->arena, STR_FMT ": node %u %s%s%s%s", STR_ARG(node->onnx->path),
                      node->onnx->node_count, node->proto->op_type, *name ? " '" : "", name, *name ? "'" : "");
}

bool onnx_emit(OnnxNode *node, const char *format, ...)
{
    Text text = {0};
    Onnx *onnx = node->onnx;
    DiagMark before = diag_mark(onnx->diag);
    va_list args;
    if (node->reason || onnx->failed)
        return false;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    text_char(&text, '\n');
    Str statements = str_copy(onnx->arena, text_view(&text));
    text_free(&text);
    Str said = node->said ? str_format(onnx->arena, "%s\n", node->said) : statements;
    node->said = NULL;
    if (onnx_write_said(onnx, place_of(node), statements, said))
        return true;
    if (nnc_compose_is_exhausted(onnx->composer))
        return false;
    Str message = diag_take(onnx->diag, before);
    onnx->failed = false;
    return onnx_no(node, STR_FMT, STR_ARG(message));
}

/* Operands and results */

bool onnx_has(const OnnxNode *node, uint32_t i)
{
    return i < node->in_count && node->in[i] && !node->in[i]->absent;
}

/* One that is left out although the op needs it, or is no tensor: the node is refused, and nothing more is written. */
static const OnnxValue *operand(const OnnxNode *node, uint32_t i)
{
    if (onnx_has(node, i) && node->in[i]->type)
        return node->in[i];
    OnnxValue *missing = onnx_value_new(node->onnx);
    missing->type = module_plain_type(node->onnx->module, DT_F32, 0, NULL);
    missing->name = "missing";
    missing->home = node->onnx->block;
    OnnxNode *refused = (OnnxNode *)(uintptr_t)node;
    refused->lacks = true;
    onnx_no(refused, "operand %u is missing", i);
    return missing;
}

const char *onnx_in(OnnxNode *node, uint32_t i)
{
    const OnnxValue *value = operand(node, i);
    return value == (i < node->in_count ? node->in[i] : NULL) ? onnx_name_value(node->onnx, node->in[i]) : value->name;
}

const char *onnx_widened(OnnxNode *node, uint32_t i)
{
    const char *x = onnx_in(node, i);
    return dtype_is_half(onnx_type(node, i)->dtype) ? onnx_text(node, "cast(%s, to = f32)", x) : x;
}

DType onnx_wide_dtype(const OnnxNode *node)
{
    DType dtype = onnx_type(node, 0)->dtype;
    return dtype_is_half(dtype) ? DT_F32 : dtype;
}

bool onnx_put_rounded(OnnxNode *node, uint32_t i, const char *value)
{
    DType dtype = onnx_type(node, 0)->dtype;
    if (!onnx_wants(node, i))
        return true;
    return dtype_is_half(dtype) ? onnx_emit(node, "%s = cast(%s, to = %s)", onnx_out(node, i), value, dtype_name(dtype))
                                : onnx_emit(node, "%s = %s", onnx_out(node, i), value);
}

const Type *onnx_type(const OnnxNode *node, uint32_t i)
{
    return operand(node, i)->type;
}

uint32_t onnx_rank(const OnnxNode *node, uint32_t i)
{
    return operand(node, i)->type->shape.rank;
}

int64_t onnx_dim(const OnnxNode *node, uint32_t i, int64_t axis)
{
    const Shape *shape = &operand(node, i)->type->shape;
    axis += axis < 0 ? shape->rank : 0;
    if (axis >= 0 && axis < shape->rank)
        return shape->dim[axis];
    onnx_no((OnnxNode *)(uintptr_t)node, "operand %u has too few dimensions", i);
    return 1;
}

const Type *onnx_type_of(OnnxNode *node, const char *name)
{
    ValueId id = nnc_compose_find(node->onnx->composer, str_from(name));
    return id == NONE ? NULL : value_type(nnc_compose_graph(node->onnx->composer), id);
}

OnnxValue *onnx_written(OnnxNode *node, const char *name)
{
    OnnxValue *value = onnx_value_new(node->onnx);
    *value = (OnnxValue){.type = onnx_type_of(node, name), .name = name, .home = node->onnx->block};
    return value;
}

bool onnx_wants(const OnnxNode *node, uint32_t i)
{
    return i < node->out_count && node->proto->output[i] && *node->proto->output[i];
}

const char *onnx_temp(OnnxNode *node, const char *word)
{
    Onnx *onnx = node->onnx;
    if (onnx->block->folding)
        return onnx_text(node, "%s%u", word, onnx->block->numbers++);
    const char *base = onnx_wants(node, 0) ? onnx_identifier(onnx, onnx_result_name(node, 0)) : "x";
    const char *name = onnx_unique(onnx, onnx_text(node, "%s.%s", base, word));
    map_put(&onnx->made, str_from(name), 1);
    return name;
}

static const char *define(OnnxNode *node, const char *word, const char *format, va_list args)
{
    Text text = {0};
    text_vprintf(&text, format, args);
    const char *name = onnx_temp(node, word);
    bool good = onnx_emit(node, "%s = " STR_FMT, name, STR_ARG(text_view(&text)));
    text_free(&text);
    return good ? name : NULL;
}

const char *onnx_define(OnnxNode *node, const char *word, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *name = define(node, word, format, args);
    va_end(args);
    return name;
}

OnnxValue *onnx_define_value(OnnxNode *node, const char *word, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *name = define(node, word, format, args);
    va_end(args);
    return name ? onnx_written(node, name) : NULL;
}

const char *onnx_out(OnnxNode *node, uint32_t i)
{
    Onnx *onnx = node->onnx;
    if (!onnx_wants(node, i))
        return onnx_temp(node, "unused");
    if (!node->out_name[i])
        node->out_name[i] =
            onnx->block->folding ? onnx_text(node, "result%u", i) : onnx_unique_result(onnx, onnx_result_name(node, i));
    if (!onnx->block->folding)
        onnx_note_result(node, i, str_from(node->out_name[i]));
    return node->out_name[i];
}

void onnx_set_known(OnnxNode *node, uint32_t i, const Tensor *tensor)
{
    if (onnx_wants(node, i))
        node->out[i] = onnx_known_value(node->onnx, tensor, onnx_result_name(node, i));
}

void onnx_set_value(OnnxNode *node, uint32_t i, OnnxValue *value)
{
    if (onnx_wants(node, i))
        node->out[i] = value;
}

bool onnx_set_ints(OnnxNode *node, uint32_t i, DType dtype, const int64_t *list, uint32_t count, bool scalar)
{
    int64_t extent = count;
    Tensor *tensor = tensor_new(node->onnx->arena, module_plain_type(node->onnx->module, dtype, !scalar, &extent));
    for (uint32_t k = 0; k < count; k++) {
        if (dtype == DT_I64)
            ((int64_t *)tensor->data)[k] = list[k];
        else
            tensor_set_number(tensor, k, (double)list[k]);
    }
    onnx_set_known(node, i, tensor);
    return true;
}

/* Attributes */

static const Onnx__AttributeProto *find(Onnx__AttributeProto *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (list[i]->name && strcmp(list[i]->name, name) == 0)
            return list[i];
    return NULL;
}

static const Onnx__AttributeProto *in_call(const OnnxNode *node, const char *name)
{
    const Onnx__AttributeProto *a = onnx_attribute(node->scope->call, name);
    const Onnx__FunctionProto *f = node->scope->function;
    return a ? a : find(f->attribute_proto, f->n_attribute_proto, name);
}

const Onnx__AttributeProto *onnx_attribute(const OnnxNode *node, const char *name)
{
    const Onnx__AttributeProto *a = find(node->proto->attribute, node->proto->n_attribute, name);
    if (a && a->ref_attr_name && *a->ref_attr_name)
        return node->scope->call ? in_call(node, a->ref_attr_name) : NULL;
    return a;
}

int64_t onnx_int(const OnnxNode *node, const char *name, int64_t fallback)
{
    const Onnx__AttributeProto *a = onnx_attribute(node, name);
    return a && a->has_i ? a->i : fallback;
}

double onnx_float(const OnnxNode *node, const char *name, double fallback)
{
    const Onnx__AttributeProto *a = onnx_attribute(node, name);
    return a && a->has_f ? (double)a->f : fallback;
}

const char *onnx_string(const OnnxNode *node, const char *name, const char *fallback)
{
    const Onnx__AttributeProto *a = onnx_attribute(node, name);
    if (!a || !a->has_s)
        return fallback;
    return str_copy(node->onnx->arena, (Str){(const char *)a->s.data, (uint32_t)a->s.len}).ptr;
}

bool onnx_ints(const OnnxNode *node, const char *name, const int64_t **list, uint32_t *count)
{
    const Onnx__AttributeProto *a = onnx_attribute(node, name);
    *list = a ? a->ints : NULL;
    *count = a ? (uint32_t)a->n_ints : 0;
    return a != NULL;
}

/* What is known */

/* An input of the model that the operand is computed of, and its type; the operand itself where none is found. */
static const char *input_behind(const OnnxNode *node, uint32_t i, const Type **type)
{
    const char *own = node->proto->input[i], *name = own;
    *type = node->in[i]->type;
    for (const OnnxValue *value = node->in[i]; value->maker; value = value->maker->in[i]) {
        const OnnxNode *maker = value->maker;
        for (i = 0; i < maker->in_count && (!maker->in[i] || maker->in[i]->known); i++) {
        }
        if (i == maker->in_count)
            return own;
        name = maker->proto->input[i];
        *type = maker->in[i]->type;
    }
    return map_get(&node->onnx->inputs, str_from(name)) == MAP_NONE ? own : name;
}

static bool is_number(const OnnxValue *value)
{
    return value->type && !value->known && dtype_is_int(value->type->dtype) && shape_elements(&value->type->shape) == 1;
}

/* A number that a list of extents is made of, by nodes that only move and choose; NULL where none is found. */
static const char *number_behind(const OnnxNode *node, uint32_t i)
{
    static const char *const moves[] = {"Concat",  "Where", "Equal",   "Unsqueeze",
                                        "Squeeze", "Cast",  "Reshape", "Identity"};
    const char *name = node->proto->input[i];
    const OnnxValue *value = node->in[i];
    while (!is_number(value)) {
        const OnnxNode *maker = value->maker;
        bool moved = false;
        for (size_t k = 0; maker && k < sizeof moves / sizeof *moves; k++)
            moved |= strcmp(maker->proto->op_type, moves[k]) == 0;
        for (i = 0; moved && i < maker->in_count && (!maker->in[i] || maker->in[i]->known); i++) {
        }
        if (!moved || i == maker->in_count)
            return NULL;
        name = maker->proto->input[i];
        value = maker->in[i];
    }
    return name;
}

#define MOST_GIVEN 64 /* floats that somebody would write: more are an image, say */

static const char *hint_of_known(const OnnxNode *node, uint32_t i)
{
    const Type *type = node->in[i]->type;
    const char *number = number_behind(node, i);
    const char *bound = number ? onnx_text(node, "; --at-most %s=N says how large it can be", number) : "";
    const char *input = input_behind(node, i, &type);
    if (type && dtype_is_float(type->dtype) && shape_elements(&type->shape) > MOST_GIVEN)
        return onnx_text(node, "it is computed of '%s'%s", input, bound);
    return onnx_text(node, "an input becomes a constant with -D %s=[...]%s", input, bound);
}

const Tensor *onnx_known(OnnxNode *node, uint32_t i)
{
    if (!onnx_has(node, i))
        return onnx_no(node, "operand %u is missing", i), NULL;
    if (!onnx_elements(node->in[i])) {
        onnx_no(node, "'%s' is known only when running, and shapes depend on it", node->proto->input[i]);
        node->hint = hint_of_known(node, i);
    }
    return onnx_elements(node->in[i]);
}

/* Of u64 what is beyond i64 is its largest. */
int64_t onnx_int_at(const Tensor *tensor, int64_t k)
{
    if (tensor->type->dtype == DT_I64)
        return ((const int64_t *)tensor->data)[k];
    if (tensor->type->dtype == DT_U64) {
        uint64_t number = ((const uint64_t *)tensor->data)[k];
        return number > INT64_MAX ? INT64_MAX : (int64_t)number;
    }
    double number = tensor_number(tensor, k);
    return number >= -0x1p63 && number < 0x1p63 ? (int64_t)number : 0;
}

bool onnx_known_ints(OnnxNode *node, uint32_t i, const int64_t **list, uint32_t *count)
{
    if (!onnx_known(node, i))
        return false;
    const OnnxValue *value = node->in[i];
    if (!dtype_is_int(value->type->dtype) || value->type->shape.rank > 1 ||
        shape_elements(&value->type->shape) > INT32_MAX)
        return onnx_no(node, "'%s' is no list of integers", node->proto->input[i]);
    uint32_t n = (uint32_t)shape_elements(&value->type->shape);
    int64_t *copy = ARENA_ARRAY(node->onnx->arena, int64_t, n + 1);
    for (uint32_t k = 0; k < n; k++)
        copy[k] = onnx_int_at(onnx_elements(value), k);
    *list = copy;
    *count = n;
    return true;
}

const char *onnx_known_list(OnnxNode *node, const int64_t *list, uint32_t count, const char *word)
{
    Onnx *onnx = node->onnx;
    int64_t extent = count;
    Tensor *tensor = tensor_new(onnx->arena, module_plain_type(onnx->module, DT_I64, 1, &extent));
    if (count)
        memcpy(tensor->data, list, count * sizeof *list);
    const char *base = onnx_wants(node, 0) ? onnx_identifier(onnx, onnx_result_name(node, 0)) : "x";
    return onnx_name_value(onnx, onnx_known_value(onnx, tensor, onnx_text(node, "%s.%s", base, word)));
}

bool onnx_known_number(const OnnxNode *node, uint32_t i, double *number)
{
    const Tensor *known = onnx_has(node, i) ? onnx_elements(node->in[i]) : NULL;
    if (!known || shape_elements(&known->type->shape) != 1)
        return false;
    *number = tensor_number(known, 0);
    return true;
}

bool onnx_is_constant(const OnnxNode *node, uint32_t i, double *number)
{
    return onnx_known_number(node, i, number) && !node->in[i]->weight;
}

bool onnx_axis(OnnxNode *node, const char *name, int64_t fallback, uint32_t rank, int64_t *axis)
{
    int64_t given = onnx_int(node, name, fallback);
    *axis = given < 0 ? given + rank : given;
    return (*axis >= 0 && *axis < rank) || onnx_no(node, "%s is %lld, for %u dimensions", name, (long long)given, rank);
}

bool onnx_axes(OnnxNode *node, int64_t operand_since, uint32_t rank, const int64_t **axes, uint32_t *count)
{
    const int64_t *given = NULL;
    *count = 0;
    if (node->opset < operand_since)
        onnx_ints(node, "axes", &given, count);
    else if (onnx_has(node, 1) && !onnx_known_ints(node, 1, &given, count))
        return false;
    int64_t *copy = ARENA_ARRAY(node->onnx->arena, int64_t, *count + 1);
    for (uint32_t i = 0; i < *count; i++) {
        copy[i] = given[i] < 0 ? given[i] + rank : given[i];
        if (copy[i] < 0 || copy[i] >= rank)
            return onnx_no(node, "an axis is %lld, for %u dimensions", (long long)given[i], rank);
        for (uint32_t k = 0; k < i; k++)
            if (copy[k] == copy[i])
                return onnx_no(node, "axis %lld is named twice", (long long)given[i]);
    }
    *axes = copy;
    return true;
}

Shape onnx_broadcast_shape(const OnnxNode *node)
{
    Shape shape = {0};
    for (uint32_t i = 0; i < node->in_count; i++)
        if (onnx_has(node, i))
            shape_broadcast(&shape, &node->in[i]->type->shape, &shape);
    return shape;
}

/* Text */

bool onnx_is_attribute(const Tensor *tensor)
{
    return dtype_is_float(tensor->type->dtype) || fabs(tensor_number(tensor, 0)) < 0x1p53;
}

const char *onnx_list(const OnnxNode *node, const int64_t *list, uint32_t count)
{
    Text text = {0};
    text_char(&text, '[');
    for (uint32_t i = 0; i < count; i++)
        text_printf(&text, "%s%lld", i ? ", " : "", (long long)list[i]);
    text_char(&text, ']');
    return keep(node->onnx, &text);
}

const char *onnx_number(const OnnxNode *node, DType dtype, double number)
{
    Text text = {0};
    if (!dtype_is_float(dtype))
        text_printf(&text, dtype == DT_BOOL ? (number != 0 ? "true" : "false") : "%.0f", number);
    else
        const_print_number(&text, dtype, number);
    return keep(node->onnx, &text);
}

const char *onnx_scalar(const OnnxNode *node, DType dtype, double number)
{
    return onnx_text(node, "%s(%s)", dtype_name(dtype), onnx_number(node, dtype, number));
}
