/* Copies that are made whatever is fused: of what leaves the graph without memory of its own, of what an update reads
 * of the tensor that it is written to, in the middle of views upon views whose indices would grow without bound, and of
 * images that tiles could not walk otherwise, or would walk again and again past pixels that they do not see. */
#include "kernel/copies.h"

#include "kernel/kernel.h"
#include "ops/family.h"
#include "ops/meaning.h"

#define MOST_TURNS 3

static void take_order(Graph *graph, const Node *sorted, uint32_t count)
{
    for (NodeId n = 0; n < count; n++) {
        graph->node[n] = sorted[n];
        for (uint32_t r = 0; r < sorted[n].out_count; r++)
            graph->value[sorted[n].out[r]].node = n;
    }
}

static ValueId copy_of(Graph *graph, ValueId value, uint32_t block)
{
    Attr attr[1] = {{.i = block}};
    return op_build(graph, OP_RELAYOUT, &value, 1, attr, graph->value[value].place);
}

/* Per node: does a loop or branches begin here, in no other? */
static const bool *outer_flows(const Graph *graph, Arena *arena)
{
    bool *begins = ARENA_ARRAY(arena, bool, graph->node_count + 1);
    uint32_t depth = 0;
    for (NodeId n = 0; n < graph->node_count; n++) {
        FlowKind flow = node_flow(&graph->node[n]);
        bool begin = flow == FLOW_LOOP_BEGIN || flow == FLOW_BRANCH_BEGIN;
        begins[n] = begin && !depth;
        depth += begin;
        depth -= flow == FLOW_LOOP_END || flow == FLOW_BRANCH_END;
    }
    return begins;
}

typedef struct Shared { /* ends, whose copies are the last nodes */
    Graph *graph;
    NodeId first; /* copy */
    Users users;
    const bool *flows;
} Shared;

/* Where the first loop or branches behind what is copied begin; that of the copies where there are none, or the copy is
 * for a state that is read there or later. */
static NodeId next_flow(const Shared *s, const Node *copy)
{
    const Graph *graph = s->graph;
    const Node *made = value_producer(graph, copy->in[0]);
    NodeId flow = made ? (NodeId)(made - graph->node) + 1 : s->first;
    while (flow < s->first && !s->flows[flow])
        flow++;
    for (uint32_t i = 0; i < graph->update_count; i++) {
        ValueId state = graph->update[i].source == copy->out[0] ? graph->update[i].target : NONE;
        for (uint32_t u = state == NONE ? 0 : s->users.first[state]; state != NONE && u < s->users.first[state + 1];
             u++)
            flow = s->users.user[u] >= flow ? s->first : flow;
    }
    return flow;
}

/* Copies go before the next loop or branches, behind which what they are of would have to stay as long: nothing is
 * moved past these later on. */
static void copy_in_time(Graph *graph, NodeId first, Arena *arena)
{
    NodeId count = graph->node_count, at = 0;
    Node *sorted = ARENA_ARRAY(arena, Node, count);
    NodeId *flow = ARENA_ARRAY(arena, NodeId, count);
    const Shared shared = {graph, first, graph_users(graph, arena), outer_flows(graph, arena)};
    for (NodeId n = first; n < count; n++)
        flow[n] = next_flow(&shared, &graph->node[n]);
    for (NodeId n = 0; n <= first; n++) {
        for (NodeId copy = first; copy < count && (n == first || shared.flows[n]); copy++)
            if (flow[copy] == n)
                sorted[at++] = graph->node[copy];
        if (n < first)
            sorted[at++] = graph->node[n];
    }
    take_order(graph, sorted, count);
}

/* What leaves the graph, to the caller or into a state, is plain memory of its own: not a view, an input, a constant,
 * what a loop or branches give, nor the same value twice.  What leaves a body keeps its layout, which the loop carries.
 */
static void copy_shared_ends(Graph *graph, bool in_body, Arena *arena)
{
    bool *taken = ARENA_ARRAY(arena, bool, graph->value_count);
    uint32_t updates = graph->update_count, before = graph->node_count;
    for (uint32_t i = 0; i < graph->output_count + updates; i++) {
        ValueId *value = i < updates ? &graph->update[i].source : &graph->output[i - updates].value;
        const Node *node = value_producer(graph, *value);
        uint32_t block = value_type(graph, *value)->layout.block, kept = in_body ? block : 0;
        if (!node || block != kept || node_is_view(node) || node_is_formula(node) || node_flow(node) || taken[*value])
            *value = copy_of(graph, *value, kept);
        else
            taken[*value] = true;
    }
    if (graph->node_count > before)
        copy_in_time(graph, before, arena);
}

typedef struct Copier {
    Graph *graph;
    const Target *target; /* NULL: none */
    Arena *arena;
    Node *sorted; /* the new order */
    uint32_t count, capacity;
    uint32_t *
        turns; /* per value: how often a reshape stands over what is no reshape, in the views that it is read through */
} Copier;

/* The operand is copied in front of the node. */
static void copy_operand(Copier *c, Node *node, uint32_t operand, uint32_t block)
{
    Graph *graph = c->graph;
    NodeId at = (NodeId)(node - graph->node);
    ValueId copy = copy_of(graph, node->in[operand], block);
    graph->node[at].in[operand] = copy;
    ARENA_PUSH(c->arena, c->sorted, c->count, c->capacity, graph->node[graph->value[copy].node]);
}

/* A part of the tensor that the node updates, which may be changed while it is read. */
static bool is_of_updated(const Graph *graph, const Node *node, uint32_t operand)
{
    return node->in[operand] != node->in[0] &&
           kernel_view_owner(graph, node->in[operand]) == kernel_view_owner(graph, node->in[0]);
}

/* Each turn may double the text of an index. */
static uint32_t turns_of(const Copier *c, const Node *node)
{
    const Node *below = value_producer(c->graph, node->in[0]);
    return c->turns[node->in[0]] + (view_is_reshape(node) && below && node_is_view(below) && !view_is_reshape(below));
}

/* The pixels that it sees, one beside the other. */
static void copy_pixels(Copier *c, NodeId n)
{
    uint32_t block = value_type(c->graph, c->graph->node[n].in[0])->layout.block;
    NodeId slice = convolution_see_all(c->graph, n);
    ARENA_PUSH(c->arena, c->sorted, c->count, c->capacity, c->graph->node[slice]);
    copy_operand(c, &c->graph->node[n], 0, block);
}

/* Of what is updated only the part that is read is copied: x is written to where it lies, as its other readers allow.
 */
static void copy_for(Copier *c, NodeId n)
{
    Graph *graph = c->graph;
    for (uint32_t i = 1; node_is_update(&graph->node[n]) && i < graph->node[n].in_count; i++)
        if (is_of_updated(graph, &graph->node[n], i))
            copy_operand(c, &graph->node[n], i, 0);
    if (tiled_wants_pixels(graph, c->target, &graph->node[n]))
        copy_pixels(c, n);
    if (node_is_contraction(graph, &graph->node[n]) && tiled_wants_copy(graph, c->target, c->arena, &graph->node[n]))
        copy_operand(c, &graph->node[n], 0, 0);
    if (!node_is_view(&graph->node[n]))
        return;
    uint32_t turns = turns_of(c, &graph->node[n]);
    if (turns > MOST_TURNS) {
        copy_operand(c, &graph->node[n], 0, 0);
        turns = 0;
    }
    for (uint32_t r = 0; r < graph->node[n].out_count; r++)
        c->turns[graph->node[n].out[r]] = turns;
}

static void copy_operands(Graph *graph, const Target *target, Arena *arena)
{
    Copier c = {
        .graph = graph, .target = target, .arena = arena, .turns = ARENA_ARRAY(arena, uint32_t, graph->value_count)};
    uint32_t count = graph->node_count;
    for (NodeId n = 0; n < count; n++) {
        copy_for(&c, n);
        ARENA_PUSH(arena, c.sorted, c.count, c.capacity, graph->node[n]);
    }
    if (c.count != count)
        take_order(graph, c.sorted, c.count);
}

void kernel_add_copies(Graph *graph, const Target *target, bool in_body, Arena *scratch)
{
    copy_operands(graph, target, scratch);
    copy_shared_ends(graph, in_body, scratch);
}
