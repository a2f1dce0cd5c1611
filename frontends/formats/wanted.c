#include "formats/wanted.h"

static bool is_wanted(const Value *value)
{
    bool open = value->role == ROLE_CONST && value->data && !value->data->data && shape_elements(&value->type->shape);
    return value->type && (value->role == ROLE_PARAM || value->role == ROLE_STATE || open);
}

const Value *weights_value(const WantedTensor *wanted)
{
    return graph_value(wanted->graph, wanted->value);
}

/* Recurses over the nesting of sub-graphs. */
static void visit_graph(const Graph *graph, void (*visit)(void *, const Graph *, ValueId), void *context)
{
    for (ValueId id = 0; id < graph->value_count; id++)
        visit(context, graph, id);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; s < graph->node[n].sub_count; s++)
            visit_graph(graph->node[n].sub[s], visit, context);
}

void weights_each_value(const Module *module, void (*visit)(void *, const Graph *, ValueId), void *context)
{
    for (uint32_t g = 0; g < module->graph_count; g++)
        visit_graph(module->graph[g], visit, context);
}

/* Dimensions sorted, to compare extents whatever their order. */
static Shape sorted(const Shape *shape)
{
    Shape s = *shape;
    for (uint32_t i = 1; i < s.rank; i++)
        for (uint32_t k = i; k > 0 && s.dim[k - 1] > s.dim[k]; k--) {
            int64_t dim = s.dim[k];
            s.dim[k] = s.dim[k - 1];
            s.dim[k - 1] = dim;
        }
    return s;
}

WeightsFit weights_fit(const Type *type, const StoredTensor *stored)
{
    if (stored->dtype == DT_COUNT || stored->shape.rank > MAX_RANK)
        return FIT_OTHER;
    if (shape_eq(&stored->shape, &type->shape)) {
        bool floats = dtype_is_float(stored->dtype) && dtype_is_float(type->dtype);
        return stored->dtype == type->dtype ? FIT_SAME : floats ? FIT_WIDTH : FIT_OTHER;
    }
    Shape a = sorted(&stored->shape), b = sorted(&type->shape);
    if (!shape_eq(&a, &b))
        return FIT_OTHER;
    return type->shape.rank == 2 ? FIT_TRANSPOSED : FIT_PERMUTED;
}

/* Name and type: entries of a file may call two different tensors alike. */
static Str key_of(Arena *arena, const Graph *graph, ValueId id)
{
    return str_format(arena, "%p " STR_FMT, (const void *)value_type(graph, id), STR_ARG(value_show(graph, id)));
}

typedef struct Collector {
    Module *module;
    const Safetensors *file;
    WantedList *list;
} Collector;

/* One that is declared several times is given where any of these has an initialiser. */
static void collect_again(WantedTensor *wanted, const Graph *graph, ValueId id)
{
    if (weights_value(wanted)->initial != NONE || graph_value(graph, id)->initial == NONE)
        return;
    wanted->graph = graph;
    wanted->value = id;
}

static void collect(void *context, const Graph *graph, ValueId id)
{
    const Collector *c = context;
    const Value *value = graph_value(graph, id);
    Arena *arena = c->module->arena;

    if (!is_wanted(value))
        return;
    Str key = key_of(arena, graph, id);
    if (!map_add(&c->list->by_key, key, c->list->count)) {
        collect_again(&c->list->at[map_get(&c->list->by_key, key)], graph, id);
        return;
    }
    WantedTensor wanted = {.name = value_show(graph, id), .graph = graph, .value = id};
    uint32_t found = map_get(&c->file->by_name, wanted.name);
    if (found != MAP_NONE) {
        wanted.stored = &c->file->tensor[found];
        wanted.fit = weights_fit(value->type, wanted.stored);
        c->list->used[found] = true;
    }
    ARENA_PUSH(arena, c->list->at, c->list->count, c->list->capacity, wanted);
}

WantedList weights_wanted(Module *module, const Safetensors *file)
{
    WantedList list = {.by_key = {.arena = module->arena}, .used = ARENA_ARRAY(module->arena, bool, file->count + 1)};
    weights_each_value(module, collect, &(Collector){module, file, &list});
    return list;
}

WantedTensor *weights_wanted_of(const WantedList *list, Arena *scratch, const Graph *graph, ValueId value)
{
    if (!is_wanted(graph_value(graph, value)))
        return NULL;
    uint32_t found = map_get(&list->by_key, key_of(scratch, graph, value));
    return found == MAP_NONE ? NULL : &list->at[found];
}

static void share_in(Graph *graph, const WantedList *list, Arena *arena)
{
    for (ValueId id = 0; id < graph->value_count; id++) {
        bool kept = graph->value[id].role == ROLE_PARAM || graph->value[id].role == ROLE_STATE;
        const WantedTensor *wanted =
            kept && graph->value[id].initial == NONE ? weights_wanted_of(list, arena, graph, id) : NULL;
        if (!wanted || weights_value(wanted)->initial == NONE)
            continue;
        const Node *initial = &wanted->graph->initial[weights_value(wanted)->initial];
        NodeId own = graph_add_initial(graph, initial->op, initial->attr, graph->value[id].place);
        graph->value[id].initial = own;
    }
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; s < graph->node[n].sub_count; s++)
            share_in(graph->node[n].sub[s], list, arena);
}

void weights_share_initials(Module *module, const WantedList *list)
{
    for (uint32_t g = 0; g < module->graph_count; g++)
        share_in(module->graph[g], list, module->arena);
}
