#include "cli/train_weights.h"

#include <math.h>
#include <stdio.h>

#include "formats/wanted.h"

typedef struct Collector {
    Arena *arena;
    WeightsList *list;
    bool states;
} Collector;

static void add(Collector *c, Str name, const Type *type, void *data)
{
    if (!map_add(&c->list->by_name, name, c->list->count))
        return;
    Tensor *tensor = ARENA_NEW(c->arena, Tensor);
    *tensor = (Tensor){type, data};
    ARENA_PUSH(c->arena, c->list->at, c->list->count, c->list->capacity, ((NamedTensor){name, tensor}));
}

static void collect_value(Collector *c, const Graph *graph, ValueId id)
{
    const Value *value = graph_value(graph, id);
    Str name = value_show(graph, id);
    bool stored = value->data && value->data->data && !value->drawn;
    bool kept = value->role == ROLE_PARAM || (value->role == ROLE_STATE && c->states);

    if (kept)
        add(c, name, value->type, stored ? value->data->data : NULL);
}

/* Recurses over the nesting of calls. */
static void collect_graph(Collector *c, const Graph *graph)
{
    for (ValueId id = 0; id < graph->value_count; id++)
        collect_value(c, graph, id);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; s < graph->node[n].sub_count; s++)
            collect_graph(c, graph->node[n].sub[s]);
}

WeightsList weights_list(Arena *arena, const Module *module, const Graph *trains, const WantedList *wanted)
{
    WeightsList list = {.by_name = {.arena = arena}};
    for (uint32_t g = 0; g < module->graph_count; g++) {
        Collector collector = {arena, &list, module->graph[g] != trains};
        collect_graph(&collector, module->graph[g]);
    }
    for (uint32_t i = 0; i < wanted->count; i++) {
        const WantedTensor *w = &wanted->at[i];
        if (w->tensor && weights_value(w)->role == ROLE_CONST)
            add(&(Collector){arena, &list, false}, w->name, w->tensor->type, w->tensor->data);
    }
    return list;
}

static void *find_data(const Host *host, Str name)
{
    char text[1024];
    snprintf(text, sizeof text, STR_FMT, STR_ARG(name));
    const nnc_slot *slot = nnc_slot_find(&host->model->params, text);
    if (slot)
        return nnc_slot_data(slot, host->params);
    slot = nnc_slot_find(&host->model->state, text);
    return slot ? nnc_slot_data(slot, host->state) : NULL;
}

static bool is_finite(const Tensor *tensor)
{
    int64_t count = shape_elements(&tensor->type->shape);
    bool finite = true;
    for (int64_t i = 0; finite && i < count; i++)
        finite = isfinite(tensor_number(tensor, i));
    return finite;
}

const NamedTensor *weights_list_not_finite(const WeightsList *list, const Host *host)
{
    for (uint32_t i = 0; i < list->count; i++) {
        char name[1024];
        snprintf(name, sizeof name, STR_FMT, STR_ARG(list->at[i].name));
        const nnc_slot *slot = nnc_slot_find(&host->model->params, name);
        if (slot && !is_finite(&(Tensor){list->at[i].tensor->type, nnc_slot_data(slot, host->params)}))
            return &list->at[i];
    }
    return NULL;
}

bool weights_list_write(Cli *cli, Str path, const WeightsList *list, const Host *host)
{
    const StoredText partial = {STR(SAFETENSORS_PARTIAL), STR("true")};
    Arena scratch = {0};
    NamedTensor *there = ARENA_ARRAY(&scratch, NamedTensor, list->count + 1);
    uint32_t count = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        const NamedTensor *named = &list->at[i];
        Tensor *tensor = ARENA_NEW(&scratch, Tensor);
        void *data = find_data(host, named->name);
        *tensor = (Tensor){named->tensor->type, data ? data : named->tensor->data};
        if (tensor->data)
            there[count++] = (NamedTensor){named->name, tensor};
    }
    bool good = safetensors_write(&cli->diag, path, there, count, &partial, count < list->count);
    arena_free(&scratch);
    return good;
}
