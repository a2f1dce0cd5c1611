/* What nobody needs: nodes, initialisers, functions.  And whose ops are left. */
#include "onnx/write/export.h"

#include <string.h>

static bool node_is_used(const Map *used, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_output; i++)
        if (map_get(used, str_from(node->output[i])) != MAP_NONE)
            return true;
    return false;
}

static void sweep_nodes(Map *used, Onnx__NodeProto ***node, size_t *count);

/* Of a body.  Names are unique in the model's graph and in each function, so one set of them serves all bodies in it.
 */
static void sweep_body(Map *used, Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_output; i++)
        map_put(used, str_from(graph->output[i]->name), 0);
    sweep_nodes(used, &graph->node, &graph->n_node);
}

static void use_operands(Map *used, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_input; i++)
        map_put(used, str_from(node->input[i]), 0);
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g)
            sweep_body(used, node->attribute[i]->g);
}

/* From the end; recurses over the nesting. */
static void sweep_nodes(Map *used, Onnx__NodeProto ***node, size_t *count)
{
    size_t kept = *count;
    for (size_t i = *count; i-- > 0;) {
        if (!node_is_used(used, (*node)[i]))
            continue;
        use_operands(used, (*node)[i]);
        (*node)[--kept] = (*node)[i];
    }
    *node += kept;
    *count -= kept;
}

Map export_sweep_function(Export *e, Onnx__FunctionProto *function)
{
    Map used = {.arena = e->arena};
    for (size_t i = 0; i < function->n_output; i++)
        map_put(&used, str_from(function->output[i]), 0);
    sweep_nodes(&used, &function->node, &function->n_node);
    return used;
}

/* Functions */

static Str full_name(Export *e, const char *domain, const char *name)
{
    return str_from(export_text(e, "%s %s", domain, name));
}

/* Those that nodes call, also in bodies.  Recurses over the nesting. */
static void use_functions(Export *e, Map *called, Onnx__NodeProto *const *node, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (node[i]->domain)
            map_put(called, full_name(e, node[i]->domain, node[i]->op_type), 0);
        for (size_t a = 0; a < node[i]->n_attribute; a++)
            if (node[i]->attribute[a]->g)
                use_functions(e, called, node[i]->attribute[a]->g->node, node[i]->attribute[a]->g->n_node);
    }
}

/* From the end, as each stands behind those that it calls. */
static void sweep_functions(Export *e, const Onnx__GraphProto *graph)
{
    Map called = {.arena = e->arena};
    uint32_t kept = e->function_count;
    use_functions(e, &called, graph->node, graph->n_node);
    for (uint32_t i = e->function_count; i-- > 0;) {
        Onnx__FunctionProto *function = e->function[i];
        if (map_get(&called, full_name(e, function->domain, function->name)) == MAP_NONE)
            continue;
        use_functions(e, &called, function->node, function->n_node);
        e->function[--kept] = function;
    }
    e->function += kept;
    e->function_count -= kept;
}

void export_sweep(Export *e, Onnx__GraphProto *graph)
{
    Map used = {.arena = e->arena};
    size_t kept = 0;
    for (size_t i = 0; i < graph->n_input; i++)
        map_put(&used, str_from(graph->input[i]->name), 0);
    sweep_body(&used, graph);
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (map_get(&used, str_from(graph->initializer[i]->name)) != MAP_NONE)
            graph->initializer[kept++] = graph->initializer[i];
    graph->n_initializer = kept;
    sweep_functions(e, graph);
}

/* Domains */

enum { DOMAINS = 3 };
static const struct {
    const char *domain;
    int64_t version;
} domains[DOMAINS] = {{"", EXPORT_OPSET}, {EXPORT_DOMAIN, 1}, {EXPORT_LOCAL, 1}};

/* Recurses over the nesting. */
static void find_domains(Onnx__NodeProto *const *node, size_t count, bool *has)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < DOMAINS; d++)
            has[d] |= strcmp(node[i]->domain ? node[i]->domain : "", domains[d].domain) == 0;
        for (size_t a = 0; a < node[i]->n_attribute; a++)
            if (node[i]->attribute[a]->g)
                find_domains(node[i]->attribute[a]->g->node, node[i]->attribute[a]->g->n_node, has);
    }
}

Onnx__OperatorSetIdProto **export_opsets(Export *e, Onnx__NodeProto *const *node, size_t nodes, bool functions,
                                         size_t *count)
{
    bool has[DOMAINS] = {true};
    Onnx__OperatorSetIdProto **list = ARENA_ARRAY(e->arena, Onnx__OperatorSetIdProto *, DOMAINS);
    find_domains(node, nodes, has);
    for (uint32_t i = 0; functions && i < e->function_count; i++)
        find_domains(e->function[i]->node, e->function[i]->n_node, has);
    *count = 0;
    for (size_t d = 0; d < DOMAINS; d++) {
        if (!has[d])
            continue;
        Onnx__OperatorSetIdProto *set = ARENA_NEW(e->arena, Onnx__OperatorSetIdProto);
        onnx__operator_set_id_proto__init(set);
        set->domain = (char *)(uintptr_t)domains[d].domain;
        set->has_version = true;
        set->version = domains[d].version;
        list[(*count)++] = set;
    }
    return list;
}
