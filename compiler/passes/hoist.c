/* Moves out of bodies what does not belong there.
 * Needs: a verified graph, expanded.  Keeps: the order of nodes that stay; what a body gives.
 * Out of loops: what every round computes alike, from captured values and constants.  A loop may run no round at all,
 * but every op is total, and what is computed once is computed no more often than before in all others; loops and
 * branches themselves stay, since a loop need not end.  Out of branches, whose work may not be wanted: what is computed
 * from constants alone, so that fold finds it.  Views and formulas cost nothing where they are read; they go along when
 * something that computes needs them.  So do casts that widen constants of 8 and 16 bits, with what is made of them:
 * outside they would have to lie in memory.
 * Constants with a name, or of more than one element, become the graph's own: each exists once, however bodies are
 * copied.  From the inside out, so that what leaves the innermost body can go on. */
#include "passes/pass.h"

#include <string.h>

#include "ops/control.h"
#include "passes/constant.h"
#include "passes/widen.h"

typedef struct Hoister {
    Graph *graph; /* its node array is the new schedule, still growing */
    Arena *scratch;
    const bool *constant; /* of the graph's values; those beyond `known` are not */
    uint32_t known;
    uint32_t moved;
} Hoister;

typedef struct Body {
    Graph *graph;
    bool *invariant;  /* per value */
    bool *moves;      /* per node */
    ValueId *outside; /* per value: what it is in the graph around, or NONE */
} Body;

static bool is_free(const Node *node)
{
    return node_is_view(node) || node_is_formula(node);
}

static bool widens(const Graph *graph, const Node *node, const bool *narrow)
{
    return op_info(node->op)->family == FAMILY_CAST && narrow[node->in[0]] &&
           type_bytes(value_type(graph, node->out[0])) > type_bytes(value_type(graph, node->in[0]));
}

/* What is the same in each round: captured values, constants, and what is computed from them. */
static void find_invariant(const Hoister *h, const Node *node, Body *body)
{
    const Graph *graph = body->graph;
    bool branch = !node_is_loop(node), *narrow = ARENA_ARRAY(h->scratch, bool, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++) {
        body->invariant[v] = graph->value[v].role == ROLE_CONST;
        narrow[v] = body->invariant[v] && widen_is_worth(value_type(graph, v));
    }
    for (uint32_t i = node_first_captured(h->graph, node); i < node->in_count; i++) {
        ValueId outer = node->in[i];
        ValueId inner = graph->input[node_input(h->graph, node, i)];
        bool known = outer < h->known && h->constant[outer];
        body->invariant[inner] = !branch || known;
        narrow[inner] = known && widen_is_worth(value_type(graph, inner));
    }
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *inner = &graph->node[n];
        bool moves = !inner->dead && !inner->sub_count && inner->out_count && !widens(graph, inner, narrow) &&
                     op_info(inner->op)->effect == EFFECT_PURE && constant_has_operands(inner, body->invariant) &&
                     (!branch || constant_is_foldable(graph, inner));
        body->moves[n] = moves;
        for (uint32_t i = 0; i < inner->out_count; i++)
            body->invariant[inner->out[i]] = moves;
    }
}

/* Free nodes stay, but for those that a node which goes reads. */
static void keep_free(Body *body, Arena *scratch)
{
    const Graph *graph = body->graph;
    bool *wanted = ARENA_ARRAY(scratch, bool, graph->value_count);
    for (NodeId n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        bool read = false;
        for (uint32_t i = 0; i < node->out_count; i++)
            read |= wanted[node->out[i]];
        body->moves[n] &= read || !is_free(node);
        for (uint32_t i = 0; body->moves[n] && i < node->in_count; i++)
            wanted[node->in[i]] = true;
    }
}

/* Moving */

static ValueId move_value(Hoister *h, Body *body, ValueId v)
{
    Value *from = &body->graph->value[v];
    ValueId to = graph_add_value(h->graph, from->role, from->type, from->name, from->place);
    h->graph->value[to].data = from->data;
    h->graph->value[to].placement = from->placement;
    body->outside[v] = to;
    return to;
}

static ValueId outside_of(Hoister *h, Body *body, ValueId v)
{
    return body->outside[v] == NONE ? move_value(h, body, v) : body->outside[v];
}

/* Results are moved before their readers, and constants when they are read. */
static void move_node(Hoister *h, Body *body, Node *inner)
{
    Arena *arena = h->graph->module->arena;
    Node node = *inner;
    node.in = ARENA_ARRAY(arena, ValueId, node.in_count);
    node.out = ARENA_ARRAY(arena, ValueId, node.out_count);
    node.from = NONE; /* calls are numbered by the body */
    for (uint32_t i = 0; i < node.in_count; i++)
        node.in[i] = outside_of(h, body, inner->in[i]);
    for (uint32_t i = 0; i < node.out_count; i++)
        node.out[i] = move_value(h, body, inner->out[i]);
    graph_append_node(h->graph, &node);
    inner->dead = true;
    h->moved++;
}

static bool is_array(const Value *value)
{
    return value->role == ROLE_CONST && (value->name.len || value->type->shape.rank);
}

/* Which values are read by what stays, or given. */
static bool *find_read(const Graph *graph, Arena *scratch)
{
    bool *read = graph_live_out(graph, scratch);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; !graph->node[n].dead && i < graph->node[n].in_count; i++)
            read[graph->node[n].in[i]] = true;
    return read;
}

/* What has left and is still read is captured.  The node is a copy, which the caller appends. */
static void capture_moved(Hoister *h, Node *node, Body *body)
{
    Graph *graph = body->graph;
    uint32_t count = graph->value_count; /* captures add inputs */
    const bool *read = find_read(graph, h->scratch);
    ValueId *map = ARENA_ARRAY(h->scratch, ValueId, count + node->in_count + graph->value_count);
    for (ValueId v = 0; v < count; v++) {
        Value *value = &graph->value[v];
        map[v] = v;
        bool leaves =
            value->role != ROLE_INPUT && body->outside[v] != NONE && (value->role == ROLE_RESULT || is_array(value));
        if (!read[v] || !(leaves || is_array(value)))
            continue;
        ValueId outer = outside_of(h, body, v);
        uint32_t operand = node_capture(h->graph, node, outer);
        map[v] = graph->input[node_input(h->graph, node, operand)];
    }
    graph_replace(graph, map);
    graph_compact(graph);
}

static void hoist_body(Hoister *h, Node *node, Graph *graph)
{
    Body body = {.graph = graph};
    body.invariant = ARENA_ARRAY(h->scratch, bool, graph->value_count);
    body.moves = ARENA_ARRAY(h->scratch, bool, graph->node_count);
    body.outside = ARENA_ARRAY(h->scratch, ValueId, graph->value_count);
    memset(body.outside, 0xff, graph->value_count * sizeof *body.outside);
    for (uint32_t i = node_first_captured(h->graph, node); i < node->in_count; i++)
        body.outside[graph->input[node_input(h->graph, node, i)]] = node->in[i];

    find_invariant(h, node, &body);
    keep_free(&body, h->scratch);
    for (NodeId n = 0; n < graph->node_count; n++)
        if (body.moves[n])
            move_node(h, &body, &graph->node[n]);
    capture_moved(h, node, &body);
}

bool pass_hoist(Graph *graph, PassContext *context)
{
    if (!graph_has_bodies(graph))
        return true;
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; node_has_bodies(&graph->node[n]) && s < graph->node[n].sub_count; s++)
            pass_hoist(graph->node[n].sub[s], context);

    Hoister h = {.graph = graph, .scratch = context->scratch, .known = graph->value_count};
    h.constant = constant_values(graph, context, context->scratch);
    uint32_t count = graph->node_count;
    Node *old = arena_copy(context->scratch, graph->node, count * sizeof *old);
    graph->node_count = 0;
    for (NodeId n = 0; n < count; n++) {
        if (old[n].dead)
            continue;
        for (uint32_t s = 0; node_has_bodies(&old[n]) && s < old[n].sub_count; s++)
            hoist_body(&h, &old[n], old[n].sub[s]);
        graph_append_node(graph, &old[n]);
    }
    context->changes += h.moved;
    return true;
}
