/* Gradients in bodies of loops and branches are of all that y is made of, also of what stands outside.
 *
 * A body reads what it captures, but not how that hangs on a tensor of `wrt` that it captures as well. So the nodes
 * between the two are computed once more in the body, where the gradient finds them; what does not change from round to
 * round goes back out with the pass hoist.  What a loop carries is a tensor of its own in each round. */
#include "ops/control.h"
#include "ops/family.h"
#include "passes/grad.h"

typedef struct Pair { /* inputs of a body: a gradient in it is with respect to one, and of something of the other */
    uint32_t wrt, source;
} Pair;

typedef struct Pairs {
    Arena *arena;
    Pair *pair; /* (a list) */
    uint32_t count, capacity;
} Pairs;

static void add_pair(Pairs *pairs, uint32_t wrt, uint32_t source)
{
    for (uint32_t i = 0; i < pairs->count; i++)
        if (pairs->pair[i].wrt == wrt && pairs->pair[i].source == source)
            return;
    Pair pair = {wrt, source};
    ARENA_PUSH(pairs->arena, pairs->pair, pairs->count, pairs->capacity, pair);
}

static bool carries(const Graph *graph, ValueId v)
{
    return dtype_is_float(value_type(graph, v)->dtype);
}

/* Per value: it hangs on v by what gradients pass, or is v. */
static bool *hanging_on(const Graph *graph, ValueId v, Arena *scratch)
{
    bool *hangs = ARENA_ARRAY(scratch, bool, graph->value_count);
    hangs[v] = carries(graph, v);
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        bool reached = false;
        for (uint32_t i = 0; !node->dead && i < node->in_count; i++)
            reached |= hangs[node->in[i]] && op_passes_gradient(graph, node, i);
        for (uint32_t i = 0; reached && i < node->out_count; i++)
            hangs[node->out[i]] |= carries(graph, node->out[i]);
    }
    return hangs;
}

/* Per value: v hangs on it, not by way of `but`. */
static bool *sources_of(const Graph *graph, ValueId v, ValueId but, Arena *scratch)
{
    bool *needed = ARENA_ARRAY(scratch, bool, graph->value_count);
    needed[v] = v != but;
    for (NodeId n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        bool makes = false;
        for (uint32_t i = 0; !node->dead && i < node->out_count; i++)
            makes |= needed[node->out[i]];
        for (uint32_t i = 0; makes && i < node->in_count; i++)
            needed[node->in[i]] |= node->in[i] != but && op_passes_gradient(graph, node, i);
    }
    return needed;
}

/* Which captured input the value is; NONE. */
static uint32_t captured_input(const Graph *body, uint32_t carried, ValueId v)
{
    for (uint32_t i = carried; i < body->input_count; i++)
        if (body->input[i] == v)
            return i;
    return NONE;
}

/* A gradient is asked for with respect to wrt, of something that hangs on y. */
static void pair_up(const Graph *body, uint32_t carried, ValueId wrt, ValueId y, Pairs *pairs)
{
    uint32_t first = captured_input(body, carried, wrt);
    if (first == NONE)
        return;
    const bool *source = sources_of(body, y, wrt, pairs->arena);
    for (uint32_t i = carried; i < body->input_count; i++)
        if (source[body->input[i]])
            add_pair(pairs, first, i);
}

static uint32_t carried_by(const Graph *graph, const Node *node)
{
    return node_is_loop(node) ? loop_of(graph, node).carried : 0;
}

static void find_pairs(const Graph *body, uint32_t carried, Pairs *pairs);

/* Of bodies in the body: `pairs` gets those of its own inputs.  Recurses over the nesting. */
static void find_inner_pairs(const Graph *body, uint32_t carried, const Node *node, Pairs *pairs)
{
    Pairs inner = {.arena = pairs->arena};
    for (uint32_t s = 0; s < node->sub_count; s++)
        find_pairs(node->sub[s], carried_by(body, node), &inner);
    uint32_t shift = node->in_count - node->sub[0]->input_count; /* a selector */
    for (uint32_t i = 0; i < inner.count; i++)
        pair_up(body, carried, node->in[inner.pair[i].wrt + shift], node->in[inner.pair[i].source + shift], pairs);
}

static void find_pairs(const Graph *body, uint32_t carried, Pairs *pairs)
{
    for (NodeId n = 0; n < body->node_count; n++) {
        const Node *node = &body->node[n];
        if (node->dead)
            continue;
        if (node_has_bodies(node))
            find_inner_pairs(body, carried, node, pairs);
        for (uint32_t i = op_first_wrt(node->op); node_is_gradient(node) && i < node->in_count; i++)
            pair_up(body, carried, node->in[i], node->in[0], pairs);
    }
}

/* Copies in the body */

typedef struct Sink {
    Graph *graph, *body;
    NodeId node;  /* that has the body */
    ValueId *map; /* of the graph's values: what they are in the body; NONE: not yet known */
    Arena *scratch;
} Sink;

static ValueId in_body(Sink *s, ValueId v)
{
    Value value = s->graph->value[v];
    if (s->map[v] != NONE)
        return s->map[v];
    if (value.role == ROLE_CONST && value.type->shape.rank == 0)
        return s->map[v] = graph_add_const(s->body, value.data, (Str){0}, value.place);
    Node *node = &s->graph->node[s->node];
    uint32_t input = node_input(s->graph, node, node_capture(s->graph, node, v)); /* which may move the inputs */
    return s->map[v] = s->body->input[input];
}

static void copy_into(Sink *s, const Node *from)
{
    Arena *arena = s->graph->module->arena;
    Node node = *from;
    node.from = NONE;
    node.in = ARENA_ARRAY(arena, ValueId, node.in_count);
    node.out = ARENA_ARRAY(arena, ValueId, node.out_count);
    for (uint32_t i = 0; i < node.in_count; i++)
        node.in[i] = in_body(s, from->in[i]);
    for (uint32_t i = 0; i < node.out_count; i++) {
        const Value result = s->graph->value[from->out[i]];
        node.out[i] = s->map[from->out[i]] = graph_add_value(s->body, ROLE_RESULT, result.type, (Str){0}, result.place);
    }
    if (node.sub_count)
        node.sub = ARENA_ARRAY(arena, Graph *, node.sub_count);
    for (uint32_t i = 0; i < node.sub_count; i++)
        node.sub[i] = graph_clone(from->sub[i]);
    graph_append_node(s->body, &node);
}

/* The nodes that are marked, in front of those that the body has, and in the place of its input `source`. */
static void sink_nodes(Sink *s, const bool *marked, uint32_t source, ValueId v)
{
    Graph *body = s->body;
    uint32_t nodes = body->node_count;
    const Node *old = arena_copy(s->scratch, body->node, nodes * sizeof *old);
    ValueId input = body->input[source];
    body->node_count = 0;
    for (NodeId n = 0; n < s->node; n++)
        if (marked[n])
            copy_into(s, &s->graph->node[n]);
    for (NodeId n = 0; n < nodes; n++) {
        for (uint32_t i = 0; i < old[n].in_count; i++)
            old[n].in[i] = old[n].in[i] == input ? s->map[v] : old[n].in[i];
        graph_append_node(body, &old[n]);
    }
    for (uint32_t i = 0; i < body->output_count; i++)
        if (body->output[i].value == input)
            body->output[i].value = s->map[v];
}

/* What stands between the two in the graph, gradients among it; false where there is nothing. */
static bool mark_between(const Graph *graph, NodeId end, ValueId wrt, ValueId source, bool *marked, Arena *scratch)
{
    const bool *hangs = hanging_on(graph, wrt, scratch), *needed = sources_of(graph, source, wrt, scratch);
    bool any = false;
    for (NodeId n = 0; n < end; n++) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; !node->dead && i < node->out_count; i++)
            marked[n] |= hangs[node->out[i]] && needed[node->out[i]] && node->out[i] != wrt;
        any |= marked[n];
    }
    return any;
}

/* False where nothing stands between. */
static bool sink_pair(Graph *graph, NodeId n, uint32_t body, const Pair *pair, uint32_t shift, Arena *scratch)
{
    const Node *node = &graph->node[n];
    ValueId wrt = node->in[pair->wrt + shift], source = node->in[pair->source + shift];
    bool *marked = ARENA_ARRAY(scratch, bool, n + 1);
    if (wrt == source || !mark_between(graph, n, wrt, source, marked, scratch))
        return false;
    Sink sink = {.graph = graph, .body = node->sub[body], .node = n, .scratch = scratch};
    sink.map = ARENA_ARRAY(scratch, ValueId, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++)
        sink.map[v] = NONE;
    sink.map[wrt] = sink.body->input[pair->wrt];
    sink_nodes(&sink, marked, pair->source, source);
    return true;
}

/* Until there is no pair any more: a gradient that has been sunk asks for more itself. */
static void sink_body(Graph *graph, NodeId n, uint32_t body, Arena *scratch)
{
    bool any = true;
    while (any) {
        const Node *node = &graph->node[n];
        uint32_t shift = node->in_count - node->sub[body]->input_count;
        Pairs pairs = {.arena = scratch};
        find_pairs(node->sub[body], carried_by(graph, node), &pairs);
        any = false;
        for (uint32_t i = 0; i < pairs.count; i++)
            any |= sink_pair(graph, n, body, &pairs.pair[i], shift, scratch);
    }
}

/* From the outside in: what has been sunk into a body is outside for those in it.  Recurses over the nesting. */
void grad_sink(Graph *graph, Arena *scratch)
{
    for (NodeId n = 0; n < graph->node_count; n++) {
        if (graph->node[n].dead || !node_has_bodies(&graph->node[n]))
            continue;
        for (uint32_t s = 0; s < graph->node[n].sub_count; s++) {
            sink_body(graph, n, s, scratch);
            grad_sink(graph->node[n].sub[s], scratch);
        }
    }
}
