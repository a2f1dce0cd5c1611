/* Nodes, attributes and graphs as messages. */
#include "onnx/write/export.h"

#include <string.h>

enum { ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3, ATTRIBUTE_GRAPH = 5 };

int32_t export_dtype(DType dtype)
{
    DType ours;
    int32_t type = ONNX_UNDEFINED;
    while (!onnx_dtype(type, &ours) || ours != dtype)
        type++;
    return type;
}

static char *own(const char *name)
{
    return (char *)(uintptr_t)name; /* protobuf-c has no const; nobody writes to it */
}

static char **names_of(Export *e, const ExportId *id, uint32_t count)
{
    char **name = ARENA_ARRAY(e->arena, char *, count + 1);
    for (uint32_t i = 0; i < count; i++)
        name[i] = own(export_name(e, id[i]));
    return name;
}

Onnx__NodeProto *export_append(Export *e, const char *op, const ExportId *in, uint32_t in_count, const ExportId *out,
                               uint32_t out_count)
{
    ExportScope *scope = e->scope;
    Onnx__NodeProto *node = ARENA_NEW(e->arena, Onnx__NodeProto);
    onnx__node_proto__init(node);
    while (in_count && in[in_count - 1] == EXPORT_LEFT_OUT)
        in_count--;
    node->input = names_of(e, in, in_count);
    node->n_input = in_count;
    node->output = names_of(e, out, out_count);
    node->n_output = out_count;
    node->name = node->output[0];
    node->op_type = own(*op == '@' ? op + 1 : op);
    node->domain = *op == '@' ? EXPORT_DOMAIN : NULL;
    for (uint32_t i = 0; i < out_count; i++)
        e->tensor[out[i]].home = scope;
    ARENA_PUSH(e->arena, scope->node, scope->count, scope->capacity, node);
    return node;
}

void export_rename_last(Export *e, ExportId id, const char *wish)
{
    const ExportScope *scope = e->scope;
    Onnx__NodeProto *node = scope->count ? scope->node[scope->count - 1] : NULL;
    const char *name = export_name(e, id);
    if (!node || node->n_output != 1 || node->output[0] != name || strncmp(name, wish, strlen(wish)) != 0 ||
        name[strlen(wish)] != '.')
        return;
    e->tensor[id].name = export_name(e, export_id_near(e, wish));
    node->output[0] = node->name = own(e->tensor[id].name);
}

static void rename_all(char **list, size_t count, const char *old, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], old) == 0)
            list[i] = own(name);
}

void export_rename(Onnx__NodeProto *const *node, size_t count, const char *old, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        rename_all(node[i]->input, node[i]->n_input, old, name);
        rename_all(node[i]->output, node[i]->n_output, old, name);
        rename_all(&node[i]->name, 1, old, name);
        for (size_t a = 0; a < node[i]->n_attribute; a++)
            if (node[i]->attribute[a]->g)
                export_rename(node[i]->attribute[a]->g->node, node[i]->attribute[a]->g->n_node, old, name);
    }
}

Onnx__AttributeProto *export_attribute(Export *e, Onnx__NodeProto *node, const char *name, int32_t type)
{
    Onnx__AttributeProto *attribute = ARENA_NEW(e->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(attribute);
    attribute->name = own(name);
    attribute->has_type = true;
    attribute->type = type;
    Onnx__AttributeProto **list = ARENA_ARRAY(e->arena, Onnx__AttributeProto *, node->n_attribute + 1);
    if (node->n_attribute)
        memcpy(list, node->attribute, node->n_attribute * sizeof *list);
    list[node->n_attribute++] = attribute;
    node->attribute = list;
    return attribute;
}

void export_attribute_int(Export *e, Onnx__NodeProto *node, const char *name, int64_t number)
{
    Onnx__AttributeProto *attribute = export_attribute(e, node, name, ATTRIBUTE_INT);
    attribute->has_i = true;
    attribute->i = number;
}

void export_attribute_text(Export *e, Onnx__NodeProto *node, const char *name, Str text)
{
    Onnx__AttributeProto *attribute = export_attribute(e, node, name, ATTRIBUTE_STRING);
    attribute->has_s = true;
    attribute->s.len = text.len;
    attribute->s.data = arena_copy(e->arena, text.ptr, text.len + 1);
}

void export_attribute_graph(Export *e, Onnx__NodeProto *node, const char *name, Onnx__GraphProto *graph)
{
    export_attribute(e, node, name, ATTRIBUTE_GRAPH)->g = graph;
}

static Onnx__TensorShapeProto *shape_proto(Arena *arena, const Shape *shape)
{
    Onnx__TensorShapeProto *proto = ARENA_NEW(arena, Onnx__TensorShapeProto);
    onnx__tensor_shape_proto__init(proto);
    proto->n_dim = shape->rank;
    proto->dim = ARENA_ARRAY(arena, Onnx__TensorShapeProto__Dimension *, shape->rank + 1);
    for (uint32_t d = 0; d < shape->rank; d++) {
        proto->dim[d] = ARENA_NEW(arena, Onnx__TensorShapeProto__Dimension);
        onnx__tensor_shape_proto__dimension__init(proto->dim[d]);
        proto->dim[d]->has_dim_value = true;
        proto->dim[d]->dim_value = shape->dim[d];
    }
    return proto;
}

Onnx__ValueInfoProto *export_value_info(Arena *arena, const char *name, const Type *type)
{
    Onnx__ValueInfoProto *info = ARENA_NEW(arena, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(info);
    info->name = own(name);
    info->type = ARENA_NEW(arena, Onnx__TypeProto);
    onnx__type_proto__init(info->type);
    info->type->tensor_type = ARENA_NEW(arena, Onnx__TypeProto__TensorType);
    onnx__type_proto__tensor_type__init(info->type->tensor_type);
    info->type->tensor_type->has_elem_type = true;
    info->type->tensor_type->elem_type = export_dtype(type->dtype);
    info->type->tensor_type->shape = shape_proto(arena, &type->shape);
    return info;
}

/* Scopes */

void export_scope_open(Export *e, ExportScope *scope)
{
    *scope = (ExportScope){.outer = e->scope, .constant = {.arena = e->arena}};
    scope->depth = e->scope ? e->scope->depth + 1 : 0;
    e->scope = scope;
}

Onnx__NodeProto **export_scope_close(Export *e, size_t *count)
{
    ExportScope *scope = e->scope;
    e->scope = scope->outer;
    *count = scope->count;
    return scope->node;
}
