/* Which params a loss reaches: found from the loss back, listed in the order of the text. */
#include "frontends/nnc/build_minimize.h"

typedef struct Reach {
    Builder *b;
    ReachedParam *param;
    uint32_t count, capacity;
    Map reached, listed; /* by name: those that the loss reaches, and those that are in `param` */
} Reach;

static void note_params(Reach *r, const Graph *graph, const bool *needed)
{
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Value *value = &graph->value[v];
        if (value->role == ROLE_PARAM && needed[v] && dtype_is_float(value->type->dtype))
            map_add(&r->reached, value->name, v);
    }
}

/* Those of a graph, then those of calls in it.  Recurses over the nesting. */
static void list_params(Reach *r, const Graph *graph)
{
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Value *value = &graph->value[v];
        if (value->role == ROLE_PARAM && map_get(&r->reached, value->name) != MAP_NONE &&
            map_add(&r->listed, value->name, r->count))
            ARENA_PUSH(r->b->scratch, r->param, r->count, r->capacity, ((ReachedParam){graph, v}));
    }
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; !node_is_minimize(&graph->node[n]) && s < graph->node[n].sub_count; s++)
            list_params(r, graph->node[n].sub[s]);
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
            needed[node->in[i]] |= op_passes_gradient(graph, node, i);
    }
    note_params(r, graph, needed);
}

const ReachedParam *build_reach(Builder *b, ValueId loss, uint32_t *count)
{
    const Graph *graph = b->frame->graph;
    Reach r = {.b = b, .reached = {.arena = b->scratch}, .listed = {.arena = b->scratch}};
    bool *needed = ARENA_ARRAY(b->scratch, bool, graph->value_count);
    needed[loss] = true;
    reach(&r, graph, needed);
    list_params(&r, graph);
    *count = r.count;
    return r.param;
}
