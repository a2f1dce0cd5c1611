/* Recomputation: `checkpoint f(x)` in the text.
 *
 * What the gradient of a checkpointed call needs is not kept from the forward run, but computed again from what the
 * call reads: its nodes are copied, and their gradients see the copies (Chen et al., "Training Deep Nets with Sublinear
 * Memory Cost", 2016).  The copies read `after(x, all = gradients)` of each activation x from outside, where the
 * gradients are those that have reached the results of the call.  So they cannot run before these have arrived, in
 * whatever order, and are not the first computation again for the pass cse.  What hangs on params, states and constants
 * alone is the same forward and backward: it is not tied, and becomes one.
 *
 * A call in a checkpointed call may be checkpointed, too: then its copies are made of the outer one's, and of those the
 * outer one's gradient needs, only what leads to its operands is left (dce).  Copies come from a call of their own, so
 * that the gradient of a gradient computes them again in turn. */
#include <string.h>

#include "ops/family.h"
#include "passes/grad.h"

typedef struct Copy { /* of a value, in a region */
    uint32_t region;
    ValueId value;
    const struct Copy *next;
} Copy;

typedef struct Member {
    NodeId node;
    bool kept; /* it is not computed again */
} Member;

typedef struct Region { /* the nodes of a checkpointed call, with those of calls in it */
    uint32_t around;    /* the region that it stands in; NONE */
    Member *member;
    uint32_t count, capacity;
    bool made; /* it has been computed again, if anything arrived that this could wait for */
} Region;

struct Recompute {
    GradPass *pass;
    Graph *graph;
    Arena *scratch;
    Region *region;
    uint32_t count, capacity;
    uint32_t *of_call; /* per inlined call: its innermost region; NONE */
    uint32_t *of_node;
    const Copy **copy; /* per value that there was: from the latest to the first */
    bool *moves;       /* per value of the first `seen` nodes, and per input: it hangs on an input */
    uint32_t moves_capacity, seen;
};

/* Regions */

static uint32_t add_region(Recompute *rc, uint32_t around)
{
    Region region = {.around = around};
    ARENA_PUSH(rc->scratch, rc->region, rc->count, rc->capacity, region);
    return rc->count - 1;
}

/* Calls stand behind those around them. */
static void find_calls(Recompute *rc)
{
    const Graph *graph = rc->graph;
    for (uint32_t i = 0; i < graph->inlined_count; i++) {
        uint32_t outer = graph->inlined[i].outer, around = outer == NONE ? NONE : rc->of_call[outer];
        rc->of_call[i] = graph->inlined[i].call->checkpoint ? add_region(rc, around) : around;
    }
}

/* A call that says its gradient itself is still there, and may be a region alone. */
static uint32_t region_of(Recompute *rc, const Node *node)
{
    uint32_t around = node->from == NONE ? NONE : rc->of_call[node->from];
    return node_is_call(node) && node->call->checkpoint ? add_region(rc, around) : around;
}

/* A gradient with respect to a value would not see copies of it. */
static bool is_wanted(const Recompute *rc, const Node *node)
{
    bool wanted = false;
    for (uint32_t i = 0; i < node->out_count && !wanted && rc->pass->wanted.count; i++)
        wanted = map_get(&rc->pass->wanted, grad_key(rc->scratch, rc->graph, node->out[i])) != MAP_NONE;
    return wanted;
}

static bool is_kept(const Recompute *rc, const Node *node, uint32_t region)
{
    if (is_wanted(rc, node))
        return true;
    for (uint32_t c = node->from; c != NONE; c = rc->graph->inlined[c].outer)
        if (rc->graph->inlined[c].call->kept && rc->of_call[c] == region)
            return true;
    return false;
}

static void find_nodes(Recompute *rc)
{
    for (NodeId n = 0; n < rc->graph->node_count; n++) {
        rc->of_node[n] = region_of(rc, &rc->graph->node[n]);
        for (uint32_t r = rc->of_node[n]; r != NONE; r = rc->region[r].around) {
            Member member = {n, is_kept(rc, &rc->graph->node[n], r)};
            ARENA_PUSH(rc->scratch, rc->region[r].member, rc->region[r].count, rc->region[r].capacity, member);
        }
    }
}

Recompute *grad_recompute_open(GradPass *pass, Graph *graph, Arena *scratch)
{
    if (!grad_has_checkpoints(graph))
        return NULL;
    Recompute *rc = ARENA_NEW(scratch, Recompute);
    *rc = (Recompute){.pass = pass, .graph = graph, .scratch = scratch};
    rc->of_call = ARENA_ARRAY(scratch, uint32_t, graph->inlined_count + 1);
    rc->of_node = ARENA_ARRAY(scratch, uint32_t, graph->node_count + 1);
    rc->copy = ARENA_ARRAY(scratch, const Copy *, graph->value_count);
    find_calls(rc);
    find_nodes(rc);
    return rc;
}

/* Copies */

static ValueId copy_in(const Recompute *rc, uint32_t region, ValueId v)
{
    for (const Copy *copy = rc->copy[v]; copy; copy = copy->next)
        if (copy->region == region)
            return copy->value;
    return NONE;
}

static void note_copy(Recompute *rc, uint32_t region, ValueId v, ValueId value)
{
    Copy *copy = ARENA_NEW(rc->scratch, Copy);
    *copy = (Copy){region, value, rc->copy[v]};
    rc->copy[v] = copy;
}

/* The value as it is seen in the region. */
static ValueId seen_in(const Recompute *rc, uint32_t region, ValueId v)
{
    for (; region != NONE; region = rc->region[region].around) {
        ValueId copy = copy_in(rc, region, v);
        if (copy != NONE)
            return copy;
    }
    return v;
}

typedef struct Again { /* a region that is computed again */
    Recompute *rc;
    uint32_t region;
    const ValueId *wait; /* what it waits for, behind room for one value */
    uint32_t waits;
    uint32_t *inlined; /* per inlined call that there was: the one that copies come from; NONE: none yet */
} Again;

static bool is_activation(const Graph *graph, ValueId v)
{
    Role role = graph->value[v].role;
    return role == ROLE_RESULT || role == ROLE_INPUT;
}

/* An operand of a copy. */
static ValueId operand(Again *a, ValueId v)
{
    Recompute *rc = a->rc;
    ValueId known = copy_in(rc, a->region, v);
    if (known != NONE || !is_activation(rc->graph, v))
        return known != NONE ? known : v;
    ValueId *in = arena_copy(rc->scratch, a->wait, (a->waits + 1) * sizeof *in);
    in[0] = seen_in(rc, rc->region[a->region].around, v);
    ValueId late = op_build(rc->graph, OP_AFTER, in, a->waits + 1, NULL, rc->graph->value[v].place);
    const Node *maker = value_producer(rc->graph, in[0]);
    if (maker) /* a loop that is kept has its tape under what is seen of it, too */
        grad_tape_copied(rc->pass, rc->graph, maker, rc->graph, value_producer(rc->graph, late));
    note_copy(rc, a->region, v, late);
    return late;
}

/* A call inside of the region is one more when it is computed again.  Recurses over the nesting of calls. */
static uint32_t call_again(Again *a, uint32_t call)
{
    Graph *graph = a->rc->graph;
    if (call == NONE || a->rc->of_call[call] == NONE || a->rc->of_call[call] == a->rc->region[a->region].around)
        return call;
    if (a->inlined[call] != NONE)
        return a->inlined[call];
    Inlined again = graph->inlined[call];
    again.outer = call_again(a, again.outer);
    ARENA_PUSH(graph->module->arena, graph->inlined, graph->inlined_count, graph->inlined_capacity, again);
    return a->inlined[call] = graph->inlined_count - 1;
}

static void compute_again(Again *a, NodeId n)
{
    Recompute *rc = a->rc;
    Graph *graph = rc->graph;
    Arena *arena = graph->module->arena;
    const Node from = graph->node[n];
    Node node = from;
    node.in = ARENA_ARRAY(arena, ValueId, node.in_count);
    node.out = ARENA_ARRAY(arena, ValueId, node.out_count);
    node.from = call_again(a, node.from);
    for (uint32_t i = 0; i < node.in_count; i++)
        node.in[i] = operand(a, from.in[i]);
    for (uint32_t i = 0; i < node.out_count; i++) {
        const Value result = graph->value[from.out[i]];
        node.out[i] = graph_add_value(graph, ROLE_RESULT, result.type, (Str){0}, result.place);
        graph->value[node.out[i]].placement = result.placement;
        note_copy(rc, a->region, from.out[i], node.out[i]);
    }
    if (node_has_bodies(&from)) {
        node.sub = ARENA_ARRAY(arena, Graph *, node.sub_count);
        for (uint32_t i = 0; i < node.sub_count; i++)
            node.sub[i] = graph_clone(from.sub[i]);
        grad_tape_copied(rc->pass, graph, &from, graph, &node);
    }
    graph_append_node(graph, &node);
}

/* What has reached results of the region, behind room for one value. */
static uint32_t arrivals(Recompute *rc, const Region *region, GradArrival *arrived, void *context, ValueId **list)
{
    uint32_t count = 0, capacity = 0;
    *list = NULL;
    ARENA_PUSH(rc->scratch, *list, count, capacity, NONE);
    for (uint32_t i = 0; i < region->count; i++) {
        const Node node = rc->graph->node[region->member[i].node];
        for (uint32_t r = 0; r < node.out_count; r++) {
            ValueId gradient = arrived(context, node.out[r]);
            if (gradient != NONE)
                ARENA_PUSH(rc->scratch, *list, count, capacity, gradient);
        }
    }
    return count - 1;
}

static bool moves(const Recompute *rc, ValueId v)
{
    return rc->graph->value[v].role == ROLE_INPUT || (v < rc->moves_capacity && rc->moves[v]);
}

/* Takes in the nodes that have come since. */
static void note_moving(Recompute *rc)
{
    const Graph *graph = rc->graph;
    if (graph->value_count > rc->moves_capacity) {
        bool *more = ARENA_ARRAY(rc->scratch, bool, 2 * graph->value_count);
        if (rc->moves_capacity)
            memcpy(more, rc->moves, rc->moves_capacity * sizeof *more);
        rc->moves = more;
        rc->moves_capacity = 2 * graph->value_count;
    }
    for (; rc->seen < graph->node_count; rc->seen++) {
        const Node *node = &graph->node[rc->seen];
        bool any = false;
        for (uint32_t i = 0; i < node->in_count; i++)
            any |= moves(rc, node->in[i]);
        for (uint32_t i = 0; i < node->out_count; i++)
            rc->moves[node->out[i]] = any;
    }
}

/* What the last call gives, a loss, has a gradient that is there from the start: who computes that call again waits for
 * the loss itself. */
static void wait_for_result(Again *a, ValueId **list, ValueId result)
{
    bool any = false;
    note_moving(a->rc);
    for (uint32_t i = 1; i <= a->waits; i++)
        any |= moves(a->rc, (*list)[i]);
    if (any)
        return;
    *list = arena_copy(a->rc->scratch, *list, (a->waits + 2) * sizeof **list);
    (*list)[++a->waits] = result;
}

/* Those around come first.  Recurses over the nesting of checkpoints. */
static void make(Recompute *rc, uint32_t r, GradArrival *arrived, void *context, NodeId n)
{
    if (r == NONE || rc->region[r].made)
        return;
    Region *region = &rc->region[r];
    region->made = true;
    make(rc, region->around, arrived, context, n);
    ValueId *list;
    Again a = {.rc = rc, .region = r};
    a.waits = arrivals(rc, region, arrived, context, &list);
    if (!a.waits)
        return;
    wait_for_result(&a, &list, rc->graph->node[n].out[0]);
    a.wait = list;
    uint32_t calls = rc->graph->inlined_count + 1;
    a.inlined = ARENA_ARRAY(rc->scratch, uint32_t, calls);
    memset(a.inlined, 0xff, calls * sizeof *a.inlined); /* NONE */
    for (uint32_t i = 0; i < region->count; i++)
        if (!region->member[i].kept)
            compute_again(&a, region->member[i].node);
}

/* What remat has put together goes by no name. */
static uint32_t named(const Graph *graph, uint32_t call)
{
    while (call != NONE && !graph->inlined[call].call->name.len)
        call = graph->inlined[call].outer;
    return call;
}

void grad_forget_remat(Graph *graph)
{
    for (uint32_t i = 0; i < graph->inlined_count; i++)
        graph->inlined[i].outer = named(graph, graph->inlined[i].outer);
    for (NodeId n = 0; n < graph->node_count; n++)
        graph->node[n].from = named(graph, graph->node[n].from);
}

Node grad_recomputed(Recompute *rc, NodeId n, GradArrival *arrived, void *context)
{
    uint32_t region = rc->of_node[n];
    make(rc, region, arrived, context, n);
    Node node = rc->graph->node[n];
    if (region == NONE)
        return node;
    node.in = ARENA_ARRAY(rc->scratch, ValueId, node.in_count);
    node.out = ARENA_ARRAY(rc->scratch, ValueId, node.out_count);
    for (uint32_t i = 0; i < node.in_count; i++)
        node.in[i] = seen_in(rc, region, rc->graph->node[n].in[i]);
    for (uint32_t i = 0; i < node.out_count; i++)
        node.out[i] = seen_in(rc, region, rc->graph->node[n].out[i]);
    node.from = value_producer(rc->graph, node.out[0])->from;
    return node;
}
