/* What costs next to nothing to compute again.
 *
 * Of the values between one contraction and the next, gradients read some: of a GELU what it is applied to, and its
 * result, for the gradient of the weight behind.  Not all of these have to wait: elementwise nodes compute some of the
 * others.  Which values wait is a minimum cut of each fine segment, as between the kernels of one graph
 * (kernel/keep.c): between what is not computed again (contractions, reductions, draws, what comes from outside of the
 * segment) and what gradients read, each value weighing its bytes.  What gradients read is known by differentiating a
 * clone. */
#include "base/network.h"
#include "ops/meaning.h"
#include "passes/extremes.h"
#include "passes/grad.h"
#include "passes/remat.h"

#define MOST_NODES 512 /* of a segment that is cut: the search for a path goes through all of them */
#define LEAST_PART 8   /* of the bytes that would wait, so many of a segment must be saved */

typedef struct Light {
    const Graph *graph;
    bool dear; /* PassContext */
    Arena *scratch;
    bool *needed;     /* per value: a gradient reads it */
    bool *extreme;    /* per value (extremes.h) */
    bool *again;      /* per node: the result */
    uint32_t *vertex; /* per value: 1 + its vertex in the network at hand */
    uint32_t *inside; /* per value: the segment that makes it; 0: none */
} Light;

static bool any_of(const bool *flag, const Node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        if (flag[node->out[i]])
            return true;
    return false;
}

/* New nodes that something hangs on; what there was has the same values. */
static void note_needed(Light *light, const Graph *differentiated, Arena *scratch)
{
    bool *live = graph_live_out(differentiated, scratch);
    for (NodeId n = differentiated->node_count; n-- > 0;) {
        const Node *node = &differentiated->node[n];
        if (node->dead || (op_info(node->op)->effect == EFFECT_PURE && !any_of(live, node)))
            continue;
        for (uint32_t i = 0; i < node->in_count; i++) {
            live[node->in[i]] = true;
            if (node->out[0] >= light->graph->value_count && node->in[i] < light->graph->value_count)
                light->needed[node->in[i]] = true;
        }
    }
}

/* What gradients read: all nodes of a differentiated clone that were not there before are theirs. */
static bool find_needed(Light *light, const PassContext *context)
{
    Arena scratch = {0};
    const Graph *graph = light->graph;
    Diag *diag = graph->module->diag, quiet = {.arena = &scratch};
    PassContext own = *context;
    own.scratch = &scratch;
    own.diag = &quiet;
    own.changes = 0;
    graph->module->diag = &quiet;
    Graph *clone = graph_clone(graph);
    bool good = grad_all(clone, &own);
    graph->module->diag = diag;
    if (good)
        note_needed(light, clone, &scratch);
    diag_free(&quiet);
    arena_free(&scratch);
    return good;
}

static int64_t bytes_of(const Light *light, ValueId v)
{
    return type_bytes(value_type(light->graph, v));
}

static bool in_checkpoint(const Graph *graph, const Node *node)
{
    for (uint32_t c = node->from; c != NONE; c = graph->inlined[c].outer)
        if (graph->inlined[c].call->checkpoint)
            return true;
    return false;
}

static bool repeats(const Light *light, const Node *node)
{
    const OpInfo *info = op_info(node->op);
    bool dear = light->dear && info->scalar && word_list_is_expensive(info->scalar);
    bool bits = light->extreme[node->out[0]] && !extremes_exact(node);
    return ((info->family == FAMILY_ELEMENTWISE && !dear && !bits) || node_is_view(node)) &&
           !in_checkpoint(light->graph, node);
}

/* The network of a segment: each value has an entrance and an exit, joined by an edge of its price */

enum { FROM, TO, FIRST_VERTEX };

typedef struct Choice {
    Light *light;
    const Segment *segment;
    uint32_t number;
    Network network;
    ValueId *value; /* per vertex */
    uint32_t count, capacity;
} Choice;

static uint32_t entrance(uint32_t vertex)
{
    return FIRST_VERTEX + 2 * vertex;
}

static void add_vertex(Choice *c, ValueId value)
{
    if (c->light->vertex[value])
        return;
    ARENA_PUSH(c->light->scratch, c->value, c->count, c->capacity, value);
    c->light->vertex[value] = c->count;
}

static void add_vertices(Choice *c)
{
    const Graph *graph = c->light->graph;
    for (uint32_t i = 0; i < c->segment->count; i++) {
        const Node *node = &graph->node[c->segment->node[i]];
        for (uint32_t k = 0; k < node->in_count && repeats(c->light, node); k++)
            add_vertex(c, node->in[k]);
        for (uint32_t k = 0; k < node->out_count; k++) {
            add_vertex(c, node->out[k]);
            c->light->inside[node->out[k]] = c->number;
        }
    }
}

/* What it costs that the value waits for gradients.  A view is in the memory of its operand. */
static int64_t price(const Choice *c, ValueId v)
{
    const Light *light = c->light;
    const Value *value = &light->graph->value[v];
    const Node *producer = value_producer(light->graph, v);
    if (value->role != ROLE_RESULT || node_is_formula(producer))
        return 0;
    if (light->inside[v] != c->number)
        return light->needed[v] && !light->again[value->node] ? 0 : bytes_of(light, v);
    return node_is_view(producer) ? NETWORK_ENDLESS : bytes_of(light, v);
}

static void add_edges(Choice *c)
{
    const Light *light = c->light;
    for (uint32_t v = 0; v < c->count; v++) {
        ValueId value = c->value[v];
        bool own = light->inside[value] == c->number;
        const Node *producer = own ? value_producer(light->graph, value) : NULL;
        bool again = own && repeats(light, producer);
        network_add(&c->network, entrance(v), entrance(v) + 1, price(c, value));
        if (!again)
            network_add(&c->network, FROM, entrance(v), NETWORK_ENDLESS);
        for (uint32_t i = 0; again && i < producer->in_count; i++)
            network_add(&c->network, entrance(light->vertex[producer->in[i]] - 1) + 1, entrance(v), NETWORK_ENDLESS);
        if (own && light->needed[value])
            network_add(&c->network, entrance(v) + 1, TO, NETWORK_ENDLESS);
    }
}

/* Bytes of the segment that wait if nothing is computed again: views of one value share them. */
static int64_t bytes_needed(const Choice *c)
{
    const Light *light = c->light;
    int64_t bytes = 0;
    for (uint32_t v = 0; v < c->count; v++)
        if (light->inside[c->value[v]] == c->number && light->needed[c->value[v]] &&
            !node_is_view(value_producer(light->graph, c->value[v])))
            bytes += bytes_of(light, c->value[v]);
    return bytes;
}

static void choose(Light *light, const Segment *segment, uint32_t number)
{
    Choice c = {.light = light, .segment = segment, .number = number};
    if (segment->count > MOST_NODES)
        return;
    add_vertices(&c);
    c.network = network_new(light->scratch, FIRST_VERTEX + 2 * c.count);
    add_edges(&c);
    int64_t before = bytes_needed(&c), bytes = network_flow(&c.network, FROM, TO);
    const bool *side = network_side(&c.network, TO);
    bool less = bytes < before - before / LEAST_PART;
    for (uint32_t v = 0; v < c.count; v++) {
        if (less && side[entrance(v)])
            light->again[light->graph->value[c.value[v]].node] = true;
        light->vertex[c.value[v]] = 0;
    }
}

const bool *remat_light(const Graph *graph, const Segments *fine, const PassContext *context)
{
    Arena *scratch = context->scratch;
    Light light = {.graph = graph, .dear = context->dear, .scratch = scratch};
    light.needed = ARENA_ARRAY(scratch, bool, graph->value_count);
    light.extreme = extremes_find(graph, scratch);
    light.again = ARENA_ARRAY(scratch, bool, graph->node_count);
    light.vertex = ARENA_ARRAY(scratch, uint32_t, graph->value_count);
    light.inside = ARENA_ARRAY(scratch, uint32_t, graph->value_count);
    bool good = fine->count && find_needed(&light, context);
    for (uint32_t i = 0; good && i < fine->count; i++)
        choose(&light, &fine->at[i], i + 1);
    return light.again;
}
