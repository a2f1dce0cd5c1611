/* Which params a loss passes a gradient to; and the others of the calls in which these are, which stand still or which
 * the network updates itself.  Found from the loss back, listed in the order of the text. */
#include "frontends/nnc/build_minimize.h"

typedef struct Reach {
    Builder *b;
    bool values; /* follows all that a value is made of, not gradients alone */
    Map reached; /* by name */
} Reach;

static void note_param(Reach *r, const Graph *graph, ValueId v)
{
    const Value *value = &graph->value[v];
    if (value->role == ROLE_PARAM && dtype_is_float(value->type->dtype))
        map_add(&r->reached, value->name, v);
}

/* From what is needed of a graph back, also into calls.  Recurses over their nesting. */
static void reach(Reach *r, const Graph *graph, bool *needed);

/* What a call needs for those of its results that are needed. */
static void reach_into(Reach *r, const Node *node, bool *needed)
{
    const Graph *body = node->sub[0];
    bool *inside = ARENA_ARRAY(r->b->scratch, bool, body->value_count);
    for (uint32_t i = 0; i < node->out_count; i++)
        inside[body->output[i].value] |= needed[node->out[i]];
    reach(r, body, inside);
    for (uint32_t i = 0; r->values && i < body->update_count; i++) /* running means */
        note_param(r, body, body->update[i].target);
    for (uint32_t i = 0; i < node->in_count; i++)
        needed[node->in[i]] |= inside[body->input[i]];
}

/* All that stands in the bodies of loops and branches is taken to be needed. */
static void reach_bodies(Reach *r, const Node *node)
{
    for (uint32_t s = 0; s < node->sub_count; s++) {
        const Graph *body = node->sub[s];
        bool *inside = ARENA_ARRAY(r->b->scratch, bool, body->value_count);
        for (ValueId v = 0; v < body->value_count; v++)
            inside[v] = true;
        reach(r, body, inside);
    }
}

static void reach(Reach *r, const Graph *graph, bool *needed)
{
    for (NodeId n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        bool used = false;
        for (uint32_t i = 0; i < node->out_count; i++)
            used |= needed[node->out[i]];
        if (!used)
            continue;
        if (node_is_call(node)) {
            reach_into(r, node, needed);
            continue;
        }
        if (node_has_bodies(node))
            reach_bodies(r, node);
        for (uint32_t i = 0; i < node->in_count; i++)
            needed[node->in[i]] |= r->values || op_passes_gradient(graph, node, i);
    }
    for (ValueId v = 0; v < graph->value_count; v++)
        if (needed[v])
            note_param(r, graph, v);
}

static Map reached_from(Builder *b, ValueId loss, bool values)
{
    Reach r = {.b = b, .values = values, .reached = {.arena = b->scratch}};
    bool *needed = ARENA_ARRAY(b->scratch, bool, b->frame->graph->value_count);
    needed[loss] = true;
    reach(&r, b->frame->graph, needed);
    return r.reached;
}

typedef struct Lister {
    Arena *arena;
    Map trained, all, listed;
    ReachedParams *of_trained, *of_others;
} Lister;

static bool is_in(const Map *map, const Value *param)
{
    return param->role == ROLE_PARAM && map_get(map, param->name) != MAP_NONE;
}

/* Recurses over the nesting. */
static bool holds_trained(const Lister *l, const Graph *graph)
{
    bool holds = false;
    for (ValueId v = 0; v < graph->value_count && !holds; v++)
        holds = is_in(&l->trained, &graph->value[v]);
    for (NodeId n = 0; n < graph->node_count && !holds; n++)
        for (uint32_t s = 0; s < graph->node[n].sub_count && !holds; s++)
            holds = holds_trained(l, graph->node[n].sub[s]);
    return holds;
}

/* Those of a graph, then those of calls in it.  Recurses over the nesting. */
static void list_params(Lister *l, const Graph *graph, bool others)
{
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Value *value = &graph->value[v];
        bool trained = is_in(&l->trained, value);
        ReachedParams *list = trained ? l->of_trained : l->of_others;
        if ((trained || (others && is_in(&l->all, value))) && map_add(&l->listed, value->name, v))
            ARENA_PUSH(l->arena, list->at, list->count, list->capacity, ((ReachedParam){graph, v}));
    }
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; !node_is_minimize(&graph->node[n]) && s < graph->node[n].sub_count; s++)
            list_params(l, graph->node[n].sub[s], others || holds_trained(l, graph->node[n].sub[s]));
}

void build_reach(Builder *b, ValueId loss, ReachedParams *trained, ReachedParams *others)
{
    *trained = *others = (ReachedParams){0};
    Lister l = {.arena = b->scratch,
                .trained = reached_from(b, loss, false),
                .all = reached_from(b, loss, true),
                .listed = {.arena = b->scratch},
                .of_trained = trained,
                .of_others = others};
    list_params(&l, b->frame->graph, false);
}
