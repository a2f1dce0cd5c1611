/* Layers of the library, which declare their own params: `y = conv@conv1(x, 64, 7)`, where the weights are the node's
 * alone. The params take the library's names, conv1.weight, and the elements of the model. */
#include <string.h>

#include "onnx/import.h"

static void count_use(Map *uses, const char *name, uint32_t times)
{
    uint32_t known = name ? map_get(uses, str_from(name)) : 0;
    if (name)
        map_put(uses, str_from(name), known == MAP_NONE ? times : known + times);
}

static bool is_used(const Map *uses, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_output; i++) {
        uint32_t times = node->output[i] ? map_get(uses, str_from(node->output[i])) : MAP_NONE;
        if (times != MAP_NONE && times > 0)
            return true;
    }
    return false;
}

/* Shapes are known, and a value is there 0 times for them. */
static bool reads_shape(const Onnx__NodeProto *node)
{
    return node->op_type && (strcmp(node->op_type, "Shape") == 0 || strcmp(node->op_type, "Size") == 0);
}

/* How often nodes, and those of bodies in them, name each value, from the end, as nodes that nobody reads do not
 * count.  The nesting is bounded. */
static void count_nodes(Map *uses, Onnx__NodeProto *const *list, size_t count)
{
    list = onnx_in_order(uses->arena, list, count);
    for (size_t i = count; i-- > 0;) {
        const Onnx__NodeProto *node = list[i];
        if (!is_used(uses, node))
            continue;
        for (size_t k = 0; k < node->n_input; k++)
            count_use(uses, node->input[k], !reads_shape(node));
        for (size_t a = 0; a < node->n_attribute; a++) {
            const Onnx__GraphProto *body = node->attribute[a]->g;
            for (size_t o = 0; body && o < body->n_output; o++)
                count_use(uses, body->output[o]->name, 2);
            if (body)
                count_nodes(uses, body->node, body->n_node);
        }
    }
}

static Str function_key(Onnx *onnx, const char *domain, const char *name, const char *overload)
{
    return str_format(onnx->arena, "%s\n%s\n%s", domain ? domain : "", name ? name : "", overload ? overload : "");
}

/* An output counts twice: it keeps its own name. */
void onnx_count_uses(Onnx *onnx)
{
    const Onnx__ModelProto *model = onnx->model;
    onnx->uses.arena = onnx->inputs.arena = onnx->outputs.arena = onnx->functions.arena = onnx->arena;
    onnx->function_uses = ARENA_ARRAY(onnx->arena, Map, model->n_functions + 1);
    for (size_t i = 0; i < model->graph->n_input; i++)
        map_put(&onnx->inputs, str_from(model->graph->input[i]->name ? model->graph->input[i]->name : ""), (uint32_t)i);
    for (size_t o = 0; o < model->graph->n_output; o++) {
        count_use(&onnx->uses, model->graph->output[o]->name, 2);
        count_use(&onnx->outputs, model->graph->output[o]->name, 1);
    }
    count_nodes(&onnx->uses, model->graph->node, model->graph->n_node);
    for (size_t f = 0; f < model->n_functions; f++) {
        const Onnx__FunctionProto *function = model->functions[f];
        Map *uses = &onnx->function_uses[f];
        uses->arena = onnx->arena;
        map_add(&onnx->functions, function_key(onnx, function->domain, function->name, function->overload),
                (uint32_t)f);
        for (size_t o = 0; o < function->n_output; o++)
            count_use(uses, function->output[o], 2);
        count_nodes(uses, function->node, function->n_node);
    }
}

static uint32_t find_function(Onnx *onnx, const char *domain, const char *name, const char *overload)
{
    ArenaMark mark = arena_mark(onnx->arena);
    uint32_t at = map_get(&onnx->functions, function_key(onnx, domain, name, overload));
    arena_reset(onnx->arena, mark);
    return at;
}

const Onnx__FunctionProto *onnx_find_function(Onnx *onnx, const char *domain, const char *name, const char *overload)
{
    uint32_t at = onnx->model->n_functions ? find_function(onnx, domain, name, overload) : MAP_NONE;
    return at == MAP_NONE ? NULL : onnx->model->functions[at];
}

const Map *onnx_uses_of(Onnx *onnx, const Onnx__FunctionProto *function)
{
    return &onnx->function_uses[find_function(onnx, function->domain, function->name, function->overload)];
}

/* Does the name stand there once for this value, and in functions what gives it, up to the model's own graph? */
static bool is_named_once(const Onnx *onnx, const OnnxScope *scope, const char *name, const OnnxValue *value)
{
    for (;;) {
        const OnnxValue *found = scope->outer ? NULL : onnx_lookup_here(scope, onnx, name);
        if (!found || found->wish != value->wish || map_get(scope->uses, str_from(name)) != 1)
            return false;
        if (!scope->call)
            return true;
        const Onnx__FunctionProto *function = scope->function;
        size_t i = 0;
        while (i < function->n_input && strcmp(function->input[i], name) != 0)
            i++;
        if (i >= function->n_input || i >= scope->call->proto->n_input)
            return false;
        name = scope->call->proto->input[i];
        scope = scope->call->scope;
    }
}

/* What batch_norm keeps running is a buffer of the file's; all else of a layer is trained. */
static bool may_be(const OnnxParam *param, const OnnxValue *value)
{
    return !value->buffer || strcmp(param->name, "mean") == 0 || strcmp(param->name, "variance") == 0;
}

/* A weight that nothing else reads, and that nothing has declared so far but for nodes that are covered */
static bool is_own(const OnnxNode *node, const OnnxParam *param)
{
    if (!onnx_has(node, param->operand))
        return false;
    const OnnxValue *value = node->in[param->operand];
    return value->stored && may_be(param, value) && (!value->name || node->covers) &&
           dtype_is_float(value->type->dtype) && map_get(&node->onnx->uses, str_from(value->wish)) == 1 &&
           is_named_once(node->onnx, node->scope, node->proto->input[param->operand], value);
}

bool onnx_owns(const OnnxNode *node, const OnnxParam *param, uint32_t count)
{
    bool own = !node->scope->outer && node->onnx->block == node->onnx->root;
    for (uint32_t i = 0; i < count; i++)
        own = own && is_own(node, &param[i]);
    return own;
}

/* Labels */

/* conv1 of conv1.weight and conv1_weight, attention of attention.query.weight where that is query.weight; NULL of
 * conv1.weight.quantised */
static const char *stem_of_weight(const OnnxNode *node, const OnnxParam *param)
{
    const char *name = node->in[param->operand]->wish;
    const char *const tail[] = {param->name, "weight", "w", "scale", "gamma", "gain", "bias", "b", "beta"};
    Str plain = str_from(onnx_identifier(node->onnx, name));
    for (size_t i = 0; i < sizeof tail / sizeof *tail; i++) {
        uint32_t length = (uint32_t)strlen(tail[i]);
        if (plain.len > length + 1 && str_ends(plain, tail[i]) &&
            (plain.ptr[plain.len - length - 1] == '.' || plain.ptr[plain.len - length - 1] == '_'))
            return str_copy(node->onnx->arena, (Str){plain.ptr, plain.len - length - 1}).ptr;
    }
    return NULL;
}

/* layer1.conv1 of /layer1/conv1/Conv_output_0 */
static const char *stem_of_result(const OnnxNode *node)
{
    if (!onnx_wants(node, 0))
        return "layer";
    const char *name = node->proto->output[0], *last = strrchr(name, '/');
    if (*name != '/' || last == name)
        return onnx_identifier(node->onnx, name);
    return onnx_identifier(node->onnx, str_copy(node->onnx->arena, (Str){name, (uint32_t)(last - name)}).ptr);
}

static const char *choose_wish(const OnnxNode *node, const OnnxParam *param, uint32_t count, bool *given)
{
    *given = true;
    for (uint32_t i = 0; i < count; i++) {
        const char *stem = stem_of_weight(node, &param[i]);
        if (stem)
            return stem;
    }
    *given = false;
    return stem_of_result(node);
}

const char *onnx_layer_wish(const OnnxNode *node, const OnnxParam *param, uint32_t count)
{
    bool given;
    return choose_wish(node, param, count, &given);
}

bool onnx_name_is_free(const OnnxNode *node, uint32_t operand)
{
    const char *given = node->in[operand]->wish;
    return strcmp(given, onnx_identifier(node->onnx, given)) != 0 || onnx_is_number(str_from(given));
}

static bool is_free(const OnnxNode *node, const char *label, const OnnxParam *param, uint32_t count)
{
    bool free = map_get(&node->onnx->names, str_from(label)) == MAP_NONE;
    for (uint32_t i = 0; i < count; i++)
        free &= map_get(&node->onnx->names, str_from(onnx_text(node, "%s.%s", label, param[i].name))) == MAP_NONE;
    return free;
}

OnnxLayer *onnx_layer(OnnxNode *node, const OnnxParam *param, uint32_t count)
{
    Onnx *onnx = node->onnx;
    OnnxLayer *layer = ARENA_NEW(onnx->arena, OnnxLayer);
    *layer = (OnnxLayer){.count = count,
                         .name = ARENA_ARRAY(onnx->arena, const char *, count),
                         .wished = ARENA_ARRAY(onnx->arena, const char *, count),
                         .known = ARENA_ARRAY(onnx->arena, const Tensor *, count)};
    layer->wish = layer->label = choose_wish(node, param, count, &layer->given);
    for (uint32_t number = 2; !is_free(node, layer->label, param, count); number++)
        layer->label = onnx_text(node, "%s_%u", layer->wish, number);
    for (uint32_t i = 0; i < count; i++) {
        layer->name[i] = onnx_text(node, "%s.%s", layer->label, param[i].name);
        layer->wished[i] = onnx_text(node, "%s.%s", layer->wish, param[i].name);
        layer->known[i] = node->in[param[i].operand]->known;
        map_put(&onnx->names, str_from(layer->name[i]), 1);
    }
    map_put(&onnx->labels, str_from(layer->label), onnx->layer_count);
    ARENA_PUSH(onnx->arena, onnx->layer, onnx->layer_count, onnx->layer_capacity, layer);
    return layer;
}

/* In the body of a call, and of those in it; behind the label of the call their names are those of the layer's. */
static uint32_t count_params(const Graph *body, Str label, const OnnxLayer *layer)
{
    uint32_t found = 0, own = (uint32_t)strlen(layer->label);
    for (ValueId id = 0; id < body->value_count; id++) {
        const Value *value = graph_value(body, id);
        if (value->role != ROLE_PARAM || value->name.len <= label.len)
            continue;
        Str name = {value->name.ptr + label.len, value->name.len - label.len};
        for (uint32_t i = 0; i < layer->count; i++)
            found += str_is(name, layer->name[i] + own) && value->type == layer->known[i]->type;
    }
    for (NodeId n = 0; n < body->node_count; n++)
        for (uint32_t s = 0; s < graph_node(body, n)->sub_count; s++)
            found += count_params(graph_node(body, n)->sub[s], label, layer);
    return found;
}

bool onnx_layer_fits(OnnxNode *node, const OnnxLayer *layer)
{
    ComposedCall call = nnc_compose_call(node->onnx->composer);
    return (call.body && count_params(call.body, call.label, layer) == layer->count) ||
           onnx_no(node, "its weights are not what a layer of its kind has");
}
