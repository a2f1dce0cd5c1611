/* Params are initialisers, and so are integers, scalars and lists of them once each.  Constants of floats are nodes of
 * the model's own graph, which nobody trains.  In a function, which sees nothing around it, small constants are nodes,
 * and all else is captured. */
#include "onnx/write/export.h"

#include <stdlib.h>
#include <string.h>

#define ATTRIBUTE_TENSOR 4
#define UINT4            21   /* TensorProto.DataType */
#define CONSTANT_NODE    1024 /* bytes, at most */
#define MOST_LISTED      128  /* elements of a list whose name says them */

Onnx__TensorProto *export_tensor_proto(Arena *arena, const Tensor *tensor, const char *name)
{
    Onnx__TensorProto *proto = ARENA_NEW(arena, Onnx__TensorProto);
    const Shape *shape = &tensor->type->shape;
    onnx__tensor_proto__init(proto);
    proto->name = (char *)(uintptr_t)name;
    proto->has_data_type = true;
    proto->data_type = export_dtype(tensor->type->dtype);
    proto->n_dims = shape->rank;
    proto->dims = arena_copy(arena, shape->dim, shape->rank * sizeof *shape->dim);
    proto->has_raw_data = true;
    proto->raw_data.data = tensor->data;
    proto->raw_data.len = (size_t)shape_elements(shape) * dtype_bytes(tensor->type->dtype);
    return proto;
}

static ExportId constant_node(Export *e, const Tensor *tensor, const char *name)
{
    ExportId id = export_id_near(e, name);
    Onnx__NodeProto *node = export_append(e, "Constant", NULL, 0, &id, 1);
    export_attribute(e, node, "value", ATTRIBUTE_TENSOR)->t = export_tensor_proto(e->arena, tensor, NULL);
    return id;
}

/* Before the node that is being written, and all bodies around that. */
static ExportId outermost_node(Export *e, const Tensor *tensor, const char *name)
{
    ExportScope *scope = e->scope;
    while (e->scope->outer)
        e->scope = e->scope->outer;
    ExportId id = constant_node(e, tensor, name);
    e->scope = scope;
    return id;
}

static ExportId initialiser(Export *e, const Tensor *tensor, const char *name)
{
    ExportId id = export_id_near(e, name);
    Onnx__TensorProto *proto = export_tensor_proto(e->arena, tensor, export_name(e, id));
    ARENA_PUSH(e->arena, e->initial, e->initial_count, e->initial_capacity, proto);
    return id;
}

static ExportId place_tensor(Export *e, const Tensor *tensor, const char *name)
{
    bool function = export_function_around(e);
    if (function && (size_t)shape_elements(&tensor->type->shape) * dtype_bytes(tensor->type->dtype) <= CONSTANT_NODE)
        return constant_node(e, tensor, name);
    if (function)
        return export_captured(e, (ExportCapture){.tensor = tensor}, name);
    bool trainable = dtype_is_float(tensor->type->dtype) && tensor->type->shape.rank;
    return trainable ? outermost_node(e, tensor, name) : initialiser(e, tensor, name);
}

ExportId export_tensor(Export *e, const Tensor *tensor, const char *name)
{
    ExportId id = place_tensor(e, tensor, name);
    e->tensor[id].known = tensor;
    return id;
}

ExportId export_nibbles(Export *e, uint8_t *bytes, uint32_t rank, const int64_t *dim, const char *name)
{
    Tensor *tensor = ARENA_NEW(e->arena, Tensor);
    *tensor = (Tensor){.type = module_plain_type(e->graph->module, DT_U8, rank, dim), .data = bytes};
    if (export_function_around(e))
        return export_captured(e, (ExportCapture){.tensor = tensor, .nibbles = true}, name);
    ExportId id = export_id_near(e, name);
    Onnx__TensorProto *proto = export_tensor_proto(e->arena, tensor, export_name(e, id));
    proto->data_type = UINT4;
    proto->raw_data.len = (proto->raw_data.len + 1) / 2;
    ARENA_PUSH(e->arena, e->initial, e->initial_count, e->initial_capacity, proto);
    return id;
}

/* In a function, by a node that can be seen from here: of this body, or of one around it in the function. */
static uint32_t find_node(const Export *e, Str name)
{
    uint32_t id = MAP_NONE;
    for (const ExportScope *scope = e->scope; scope && id == MAP_NONE; scope = scope->function ? NULL : scope->outer)
        id = map_get(&scope->constant, name);
    return id;
}

ExportId export_array(Export *e, const Tensor *tensor, const char *name)
{
    bool function = export_function_around(e);
    uint32_t id = function ? find_node(e, str_from(name)) : map_get(&e->constant, str_from(name));
    if (id == MAP_NONE) {
        id = export_tensor(e, tensor, name);
        map_put(function ? &e->scope->constant : &e->constant, str_from(name), id);
    }
    return id;
}

static Tensor *new_tensor(Export *e, DType dtype, uint32_t rank, const int64_t *dim)
{
    return tensor_new(e->arena, module_plain_type(e->graph->module, dtype, rank, dim));
}

static void set_integer(Tensor *tensor, int64_t i, int64_t number)
{
    if (tensor->type->dtype == DT_I64 || tensor->type->dtype == DT_U64)
        ((int64_t *)tensor->data)[i] = number;
    else
        tensor_set_number(tensor, i, (double)number);
}

ExportId export_scalar(Export *e, DType dtype, const char *number)
{
    Tensor *tensor = new_tensor(e, dtype, 0, NULL);
    if (dtype_is_float(dtype) || dtype == DT_BOOL)
        tensor_set_number(tensor, 0, strtod(number, NULL));
    else
        set_integer(tensor, 0, *number == '-' ? strtoll(number, NULL, 0) : (int64_t)strtoull(number, NULL, 0));
    return export_array(e, tensor, export_text(e, "%s_%s", dtype_name(dtype), number));
}

const char *export_list_name(Export *e, const Tensor *list)
{
    const Type *type = list->type;
    bool wide = type->dtype == DT_I64 || type->dtype == DT_U64;
    if (type->shape.rank != 1 || !dtype_is_int(type->dtype) || type->shape.dim[0] > MOST_LISTED)
        return NULL;
    Text name = {0};
    text_printf(&name, "%s_list", dtype_name(type->dtype));
    for (int64_t i = 0; i < type->shape.dim[0]; i++)
        text_printf(&name, "_%lld",
                    wide ? (long long)((const int64_t *)list->data)[i] : (long long)tensor_number(list, i));
    const char *copy = str_copy(e->arena, text_view(&name)).ptr;
    text_free(&name);
    return copy;
}

ExportId export_list(Export *e, DType dtype, const int64_t *list, uint32_t count)
{
    Tensor *tensor = new_tensor(e, dtype, 1, (int64_t[]){count});
    for (uint32_t i = 0; i < count; i++)
        set_integer(tensor, i, list[i]);
    return export_array(e, tensor, export_list_name(e, tensor));
}

ExportId export_leaf(Export *e, const Value *value)
{
    if (export_function_around(e))
        return export_captured(e, (ExportCapture){.leaf = value}, NULL);
    uint32_t at = map_get(&e->leaf_at, value->name);
    ExportLeaf *leaf = &e->leaf[at];
    if (leaf->id == EXPORT_LEFT_OUT) {
        leaf->id = export_id(e, str_copy(e->arena, leaf->value->name).ptr);
        Onnx__TensorProto *proto = export_tensor_proto(e->arena, leaf->value->data, export_name(e, leaf->id));
        ARENA_PUSH(e->arena, e->initial, e->initial_count, e->initial_capacity, proto);
    }
    return leaf->id;
}
