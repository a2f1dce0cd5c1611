/* Results of the model: sequences are one for each of their tensors, counts of what is bounded stand behind. */
#include <string.h>

#include "onnx/import.h"

static const char *text_of(const char *text)
{
    return text ? text : "";
}

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

/* Is it called that, or what had to be made of it, as another value is? */
static bool is_named(Onnx *onnx, const char *value, const char *name)
{
    const char *plain = onnx_identifier(onnx, name);
    size_t length = strlen(plain);
    bool begins = strncmp(value, plain, length) == 0;
    bool made = begins && value[length] == '_' && map_get(&onnx->made, str_from(value)) != MAP_NONE;
    return begins && (!value[length] || (made && !onnx_can_be_named(onnx, name)));
}

/* Under the model's name, where the value has not that already; one name cannot be two results. */
static bool import_tensor(Onnx *onnx, OnnxResults *results, OnnxValue *value, const char *name)
{
    const char *text = onnx_name_value(onnx, value); /* a constant has a name now */
    bool kept = value->name && is_named(onnx, value->name, name);
    if (kept && !is_taken(results, str_from(value->name))) {
        onnx_note_renamed(onnx, name, str_from(value->name));
        push(onnx, results, str_from(value->name));
        return true;
    }
    Str result = str_from(onnx_unique(onnx, kept ? value->name : name));
    onnx_note_renamed(onnx, name, result);
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
    bool updated = false;
    if (value->type && !onnx_update_carried(onnx, value, name, &updated))
        return false;
    if (updated)
        return true;
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

/* Does the model say that as many are there as may be? */
static bool has_extent(const Onnx__ValueInfoProto *output, const OnnxValue *value)
{
    const Onnx__TypeProto *type = output->type;
    const Onnx__TensorShapeProto *shape = type && type->tensor_type ? type->tensor_type->shape : NULL;
    if (!shape || shape->n_dim != value->type->shape.rank)
        return false;
    uint32_t axis = value->count_axis;
    return shape->dim[axis]->has_dim_value && shape->dim[axis]->dim_value == value->type->shape.dim[axis];
}

/* Counts of what is as large as data say stand behind all others: y.count. */
static bool add_counts(Onnx *onnx, const OnnxScope *scope, OnnxResults *results)
{
    const Onnx__GraphProto *graph = onnx->model->graph;
    for (size_t i = 0; i < graph->n_output; i++) {
        OnnxValue *value = onnx_lookup_here(scope, onnx, text_of(graph->output[i]->name));
        if (!value->count || (value->count->whole && has_extent(graph->output[i], value)))
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
    return results->count || onnx->carried.count ? add_counts(onnx, scope, results)
                                                 : onnx_fail(onnx, "it has no outputs");
}
