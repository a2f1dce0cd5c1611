/* Layers of the library, which declare their own params: `y = conv@conv1(x, 64, 7)`, where the weights are the node's
 * alone. The params take the library's names, conv1.weight, and the elements of the model. */
#include <string.h>

#include "onnx/import.h"

/* Counts how often nodes of the graph, and of bodies in it, name each initialiser.  The nesting is bounded. */
static void count_uses(Onnx *onnx, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        for (size_t k = 0; k < node->n_input; k++) {
            Str name = str_from(node->input[k]);
            uint32_t known = map_get(&onnx->uses, name);
            map_put(&onnx->uses, name, known == MAP_NONE ? 1 : known + 1);
        }
        for (size_t a = 0; a < node->n_attribute; a++)
            if (node->attribute[a]->g)
                count_uses(onnx, node->attribute[a]->g);
    }
}

void onnx_count_uses(Onnx *onnx)
{
    onnx->uses.arena = onnx->arena;
    count_uses(onnx, onnx->model->graph);
    for (size_t i = 0; i < onnx->model->graph->n_output; i++) /* a weight that is an output keeps its own name */
        if (onnx->model->graph->output[i]->name)
            map_put(&onnx->uses, str_from(onnx->model->graph->output[i]->name), 2);
}

/* A weight that nothing else reads, and that nothing has declared so far */
static bool is_own(const OnnxNode *node, const OnnxParam *param)
{
    if (!onnx_has(node, param->operand))
        return false;
    const OnnxValue *value = node->in[param->operand];
    return value->stored && !value->name && dtype_is_float(value->type->dtype) &&
           map_get(&node->onnx->uses, str_from(node->proto->input[param->operand])) == 1;
}

bool onnx_owns(const OnnxNode *node, const OnnxParam *param, uint32_t count)
{
    bool own = !node->scope->outer && !node->scope->call && node->onnx->block == node->onnx->root;
    for (uint32_t i = 0; i < count; i++)
        own = own && is_own(node, &param[i]);
    return own;
}

/* conv1 of conv1.weight, conv1_weight, and of conv1.weight.quantised nothing */
static const char *stem_of(const OnnxNode *node, const OnnxParam *param)
{
    Str name = str_from(onnx_identifier(node->onnx, node->proto->input[param->operand]));
    static const char *const tail[] = {"weight", "w", "scale", "gamma", "gain"};
    for (size_t i = 0; i < sizeof tail / sizeof *tail; i++) {
        uint32_t length = (uint32_t)strlen(tail[i]);
        if (name.len > length + 1 && str_ends(name, tail[i]) &&
            (name.ptr[name.len - length - 1] == '.' || name.ptr[name.len - length - 1] == '_'))
            return str_copy(node->onnx->arena, (Str){name.ptr, name.len - length - 1}).ptr;
    }
    return onnx_wants(node, 0) ? node->proto->output[0] : "layer";
}

static bool is_free(const OnnxNode *node, const char *label, const OnnxParam *param, uint32_t count)
{
    bool free = map_get(&node->onnx->names, str_from(label)) == MAP_NONE;
    for (uint32_t i = 0; i < count; i++)
        free &= map_get(&node->onnx->names, str_from(onnx_text(node, "%s.%s", label, param[i].name))) == MAP_NONE;
    return free;
}

const char *onnx_label(OnnxNode *node, const OnnxParam *param, uint32_t count)
{
    const char *stem = onnx_identifier(node->onnx, stem_of(node, param)), *label = stem;
    for (uint32_t number = 2; !is_free(node, label, param, count); number++)
        label = onnx_text(node, "%s_%u", stem, number);
    for (uint32_t i = 0; i < count; i++) {
        const char *full = onnx_text(node, "%s.%s", label, param[i].name);
        map_put(&node->onnx->names, str_from(full), 1);
    }
    return label;
}

/* In the graph, where values stand for params of calls, and in the body of the call. */
static uint32_t fill(const OnnxNode *node, Graph *graph, const char *label, const OnnxParam *param, uint32_t count)
{
    uint32_t filled = 0;
    for (ValueId id = graph->value_count; id-- > 0 && filled < count;)
        for (uint32_t i = 0; i < count; i++) {
            Value *value = graph_value(graph, id);
            const OnnxValue *weight = node->in[param[i].operand];
            if (value->role != ROLE_PARAM || value->data || value->type != weight->type ||
                !str_is(value->name, onnx_text(node, "%s.%s", label, param[i].name)))
                continue;
            value->data = weight->known;
            filled++;
        }
    return filled;
}

bool onnx_fill_params(OnnxNode *node, const char *label, const OnnxParam *param, uint32_t count)
{
    Graph *graph = nnc_compose_graph(node->onnx->composer);
    const Node *call = graph->node_count ? graph_node(graph, graph->node_count - 1) : NULL;
    uint32_t filled = call && call->sub_count ? fill(node, call->sub[0], label, param, count) : 0;
    return filled == count || onnx_no(node, "its weights are not what a layer of its kind has");
}
