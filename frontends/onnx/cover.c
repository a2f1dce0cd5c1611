/* Nodes that the model has not: one that stands for several, or one op as another that says the same. */
#include <string.h>

#include "onnx/import.h"

OnnxNode *onnx_cover_of(const OnnxNode *root, const char *domain, const char *op, int64_t opset, uint32_t operands)
{
    Arena *arena = root->onnx->arena;
    OnnxNode *node = arena_copy(arena, root, sizeof *node);
    Onnx__NodeProto *proto = ARENA_NEW(arena, Onnx__NodeProto);
    onnx__node_proto__init(proto);
    proto->op_type = (char *)(uintptr_t)op;
    proto->name = root->proto->name;
    proto->output = root->proto->output;
    proto->n_output = root->proto->n_output;
    proto->n_input = node->in_count = operands;
    proto->input = ARENA_ARRAY(arena, char *, operands + 1);
    node->in = ARENA_ARRAY(arena, OnnxValue *, operands + 1);
    for (uint32_t i = 0; i < operands; i++) {
        node->in[i] = NULL;
        proto->input[i] = (char *)(uintptr_t) "";
    }
    node->proto = proto;
    node->opset = opset;
    node->row = onnx_find_row(node->onnx, domain, op, opset, &node->reason);
    return node;
}

OnnxNode *onnx_cover(const OnnxNode *root, const char *op, int64_t opset, uint32_t operands)
{
    return onnx_cover_of(root, "", op, opset, operands);
}

void onnx_set_operand(OnnxNode *node, uint32_t i, OnnxValue *value)
{
    node->in[i] = value;
    node->proto->input[i] = (char *)(uintptr_t) "x";
}

void onnx_name_results(OnnxNode *node, const char *const *name, uint32_t count)
{
    Arena *arena = node->onnx->arena;
    Onnx__NodeProto *proto = (Onnx__NodeProto *)(uintptr_t)node->proto;
    proto->n_output = node->out_count = count;
    proto->output = ARENA_ARRAY(arena, char *, count);
    node->out_name = ARENA_ARRAY(arena, const char *, count);
    node->out = ARENA_ARRAY(arena, OnnxValue *, count);
    for (uint32_t i = 0; i < count; i++) {
        proto->output[i] = (char *)(uintptr_t)(name[i] ? name[i] : "");
        node->out_name[i] = name[i];
        node->out[i] = NULL;
    }
}

void onnx_copy_attributes(OnnxNode *node, const OnnxNode *root)
{
    Onnx__NodeProto *proto = (Onnx__NodeProto *)(uintptr_t)node->proto;
    proto->attribute = root->proto->attribute;
    proto->n_attribute = root->proto->n_attribute;
}

bool onnx_write_cover(OnnxNode *root, OnnxNode *node)
{
    bool good = node->row && node->row->write(node);
    root->reason = root->reason ? root->reason : node->reason;
    root->hint = root->hint ? root->hint : node->hint;
    return good;
}

static Onnx__AttributeProto *add_attribute(OnnxNode *node, const char *name)
{
    Arena *arena = node->onnx->arena;
    Onnx__NodeProto *proto = (Onnx__NodeProto *)(uintptr_t)node->proto;
    Onnx__AttributeProto *a = ARENA_NEW(arena, Onnx__AttributeProto), **list;
    onnx__attribute_proto__init(a);
    a->name = (char *)(uintptr_t)name;
    list = ARENA_ARRAY(arena, Onnx__AttributeProto *, proto->n_attribute + 1);
    for (size_t i = 0; i < proto->n_attribute; i++) /* they may be the root's own */
        list[i] = proto->attribute[i];
    list[proto->n_attribute++] = a;
    proto->attribute = list;
    return a;
}

void onnx_add_int(OnnxNode *node, const char *name, int64_t number)
{
    Onnx__AttributeProto *a = add_attribute(node, name);
    a->has_i = true;
    a->i = number;
}

void onnx_add_float(OnnxNode *node, const char *name, double number)
{
    Onnx__AttributeProto *a = add_attribute(node, name);
    a->has_f = true;
    a->f = (float)number;
}

void onnx_add_ints(OnnxNode *node, const char *name, const int64_t *list, uint32_t count)
{
    Onnx__AttributeProto *a = add_attribute(node, name);
    a->n_ints = count;
    a->ints = (int64_t *)(uintptr_t)list;
}

void onnx_add_string(OnnxNode *node, const char *name, const char *text)
{
    Onnx__AttributeProto *a = add_attribute(node, name);
    a->has_s = true;
    a->s.len = strlen(text);
    a->s.data = (uint8_t *)(uintptr_t)text;
}
