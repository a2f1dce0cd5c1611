/* Results of the model; inputs and results that are sequences and optionals: a sequence is as many tensors, x.0, x.1,
 * and whether an optional has a value is known. */
#include <string.h>

#include "onnx/narrow.h"

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* Inputs */

/* One tensor of a sequence: its extents stand in the flag. */
static OnnxValue *import_item(Onnx *onnx, const char *name, const Onnx__TypeProto__TensorType *stated, Str extents)
{
    Shape shape;
    DType dtype;
    int64_t elements;
    if (!stated || !onnx_dtype(stated->elem_type, &dtype))
        return onnx_fail(onnx, "input '%s': its items are %s, which is not supported", name,
                         stated ? onnx_dtype_name(stated->elem_type) : "no tensors"),
               NULL;
    if (str_is(extents, "scalar"))
        shape = (Shape){0};
    else if (!onnx_parse_shape(onnx, extents, &shape))
        return NULL;
    if (!shape_checked_elements(&shape, &elements) || elements > INT64_MAX / 8)
        return onnx_fail(onnx, "input '%s': its shape is no shape", name), NULL;
    return onnx_add_input(onnx, name, module_type(onnx->module, dtype, &shape, (Layout){0}), stated->elem_type);
}

/* `[2x3,4,scalar]`: a tensor for each entry */
static bool import_sequence(Onnx *onnx, OnnxScope *scope, const char *name, const Onnx__TypeProto *items, Str flag)
{
    OnnxValue *value = onnx_value_new(onnx), **item = NULL;
    uint32_t count = 0, capacity = 0;
    if (flag.len < 2 || *flag.ptr != '[' || flag.ptr[flag.len - 1] != ']')
        return onnx_fail(onnx,
                         "input '%s' is a sequence; give the extents of its tensors, or [] for none, with --shape "
                         "%s=[2x3,4]",
                         name, name);
    for (uint32_t at = 1; flag.len > 2 && at < flag.len; at++) {
        uint32_t begin = at;
        while (flag.ptr[at] != ',' && at + 1 < flag.len)
            at++;
        const char *label = str_format(onnx->arena, "%s.%u", name, count).ptr;
        OnnxValue *one =
            import_item(onnx, label, items ? items->tensor_type : NULL, (Str){flag.ptr + begin, at - begin});
        if (!one)
            return false;
        ARENA_PUSH(onnx->arena, item, count, capacity, one);
    }
    *value = (OnnxValue){.sequence = true, .item = item, .item_count = count};
    onnx_bind(scope, onnx, name, value);
    return true;
}

/* An optional has a value, unless the flag says `none`. */
static bool import_optional(Onnx *onnx, OnnxScope *scope, const char *name, const Onnx__TypeProto *type, Str flag)
{
    OnnxValue *value = onnx_value_new(onnx);
    if (str_is(flag, "none")) {
        *value = (OnnxValue){.absent = true};
        onnx_bind(scope, onnx, name, value);
        return true;
    }
    Onnx__ValueInfoProto input = ONNX__VALUE_INFO_PROTO__INIT;
    input.name = (char *)(uintptr_t)name;
    input.type = (Onnx__TypeProto *)(uintptr_t)type;
    return type ? onnx_import_input(onnx, scope, &input)
                : onnx_fail(onnx, "input '%s' is an optional of nothing; say --shape %s=none", name, name);
}

bool onnx_import_list(Onnx *onnx, OnnxScope *scope, const char *name, const Onnx__TypeProto *type)
{
    Str flag = onnx_shape_flag(onnx, name);
    if (type->sequence_type)
        return import_sequence(onnx, scope, name, type->sequence_type->elem_type, flag);
    return import_optional(onnx, scope, name, type->optional_type->elem_type, flag);
}

/* Results */

static void push(Onnx *onnx, OnnxResults *results, Str name)
{
    ARENA_PUSH(onnx->arena, results->name, results->count, results->capacity, name);
}

static bool write_copy(Onnx *onnx, Str name, const char *from)
{
    return onnx_write(onnx, onnx->path, str_format(onnx->arena, STR_FMT " = %s\n", STR_ARG(name), from));
}

static bool is_taken(const OnnxResults *results, Str name)
{
    for (uint32_t i = 0; i < results->count; i++)
        if (str_eq(results->name[i], name))
            return true;
    return false;
}

/* Under the model's name, where the value has not that already; one name cannot be two results. */
static bool import_tensor(Onnx *onnx, OnnxResults *results, OnnxValue *value, const char *name)
{
    const char *plain = onnx_identifier(onnx, name);
    bool kept = value->name && strncmp(value->name, plain, strlen(plain)) == 0;
    if (kept && !is_taken(results, str_from(value->name))) {
        push(onnx, results, str_from(value->name));
        return true;
    }
    const char *text = onnx_name_value(onnx, value);
    Str result = str_from(onnx_unique(onnx, kept ? value->name : name));
    push(onnx, results, result);
    return write_copy(onnx, result, text);
}

static bool import_output(Onnx *onnx, const OnnxScope *scope, const char *name, OnnxResults *results)
{
    OnnxValue *value = onnx_lookup_here(scope, onnx, name);
    if (!value)
        return onnx_fail(onnx, "output '%s': no node gives it", name);
    if (value->bad)
        return false;
    if (!value->sequence)
        return value->type ? import_tensor(onnx, results, value, name)
                           : onnx_fail(onnx, "output '%s' is an optional without a value", name);
    for (uint32_t i = 0; i < value->item_count; i++) {
        if (!value->item[i]->type)
            return onnx_fail(onnx, "output '%s' is a sequence of other than tensors", name);
        const char *label = str_format(onnx->arena, "%s.%u", onnx_identifier(onnx, name), i).ptr;
        if (!import_tensor(onnx, results, value->item[i], label))
            return false;
    }
    return true;
}

/* Counts of what is as large as data say stand behind all others: y.count. */
static bool add_counts(Onnx *onnx, const OnnxScope *scope, OnnxResults *results)
{
    const Onnx__GraphProto *graph = onnx->model->graph;
    for (size_t i = 0; i < graph->n_output; i++) {
        OnnxValue *value = onnx_lookup_here(scope, onnx, text_of(graph->output[i]->name));
        if (!value->count)
            continue;
        const char *plain = onnx_identifier(onnx, graph->output[i]->name);
        Str name = str_from(onnx_unique(onnx, str_format(onnx->arena, "%s.count", plain).ptr));
        if (!write_copy(onnx, name, onnx_name_value(onnx, value->count)))
            return false;
        push(onnx, results, name);
    }
    return true;
}

bool onnx_import_outputs(Onnx *onnx, const OnnxScope *scope, OnnxResults *results)
{
    const Onnx__GraphProto *graph = onnx->model->graph;
    for (size_t i = 0; i < graph->n_output; i++)
        if (!import_output(onnx, scope, text_of(graph->output[i]->name), results))
            return false;
    return results->count ? add_counts(onnx, scope, results) : onnx_fail(onnx, "it has no outputs");
}
