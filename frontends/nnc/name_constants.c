/* What stored constants are called in the file that has their elements: there a name stands once, whereas values of
 * several graphs, or what passes have made of one param, may share one. */
#include "frontends/nnc/text.h"

#include <string.h>

#include "ir/graph.h"

typedef struct Named {
    const Graph *graph;
    const Tensor *tensor;
} Named;

typedef struct Namer {
    Module *module;
    Arena scratch;
    Map params; /* of all graphs: their names */
    Map owner;  /* per name in the file: the index of its constant */
    Map number; /* per name in the graphs: the last number behind it; none: 1 */
    Named *constant;
    uint32_t count, capacity;
    const Graph *graph; /* at hand */
    Map others;         /* names of its values that are no such constants */
} Namer;

static bool is_stored(const Graph *graph, ValueId id)
{
    return nnc_const_is_stored(&graph->value[id]) && graph->value[id].data->data;
}

static bool same_elements(const Tensor *a, const Tensor *b)
{
    return a == b || (a->type == b->type && memcmp(a->data, b->data, (size_t)type_bytes(a->type)) == 0);
}

/* Does another value leave the graph by this name? */
static bool is_of_output(const Graph *graph, Str name, ValueId id)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (str_eq(graph->output[i].name, name) && graph->output[i].value != id)
            return true;
    return false;
}

/* Constants of several graphs that are the same have one name. */
static bool is_free(const Namer *n, ValueId id, Str name)
{
    uint32_t owner = map_get(&n->owner, name);
    return map_get(&n->params, name) == MAP_NONE && map_get(&n->others, name) == MAP_NONE &&
           !is_of_output(n->graph, name, id) &&
           (owner == MAP_NONE || (n->constant[owner].graph != n->graph &&
                                  same_elements(n->constant[owner].tensor, n->graph->value[id].data)));
}

static void name_constant(Namer *n, Value *value, ValueId id)
{
    Str base = value->name.len ? value->name : STR("constant");
    Str name = value_show(n->graph, id);
    uint32_t number = map_get(&n->number, base);
    for (number = number == MAP_NONE ? 1 : number; !is_free(n, id, name);) {
        value->name = name = str_format(n->module->arena, STR_FMT "_%u", STR_ARG(base), ++number);
        map_put(&n->number, base, number);
    }
    map_put(&n->owner, name, n->count);
    ARENA_PUSH(&n->scratch, n->constant, n->count, n->capacity, ((Named){n->graph, value->data}));
}

static void name_in_graph(Namer *n, Graph *graph)
{
    n->graph = graph;
    n->others = (Map){.arena = &n->scratch};
    for (ValueId id = 0; id < graph->value_count; id++)
        if (graph->value[id].name.len && !is_stored(graph, id))
            map_put(&n->others, graph->value[id].name, id);
    for (ValueId id = 0; id < graph->value_count; id++)
        if (is_stored(graph, id))
            name_constant(n, &graph->value[id], id);
}

void nnc_name_constants(Module *module)
{
    Namer n = {.module = module};
    n.params = n.owner = n.number = (Map){.arena = &n.scratch};
    for (uint32_t g = 0; g < module->graph_count; g++) {
        const Graph *graph = module->graph[g];
        for (ValueId id = 0; id < graph->value_count; id++)
            if (graph->value[id].role == ROLE_PARAM || graph->value[id].role == ROLE_STATE)
                map_put(&n.params, value_show(graph, id), id);
    }
    for (uint32_t g = 0; g < module->graph_count; g++)
        name_in_graph(&n, module->graph[g]);
    arena_free(&n.scratch);
}
