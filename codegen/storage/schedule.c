/* Order of execution and streams.
 * Needs: a verified graph; kernels numbered, if fused.  Keeps: what is computed; the order of nodes with effects.
 * Drops Value.inplace (run inplace afterwards).
 *
 * Memory: looks for an order in which the largest sum of live bytes (schedule_peak) is lower than in the given one: by
 * two rules (order_lists.c), then by search from the best (order.c).  The given order stays unless another is strictly
 * lower.  Units are kernels, or nodes outside of kernels (units.h).  Nodes of a kernel end up next to each other, and
 * kernels numbered in order of execution.
 *
 * Streams: streams.c, on the order found. */
#include "storage/schedule.h"

#include "ops/meaning.h"
#include "passes/pass.h"
#include "storage/inplace.h"
#include "storage/state.h"

#include <string.h>

/* Dependencies between units: producers before readers, effects in program order, and nothing past a place where a
 * body begins or ends. */
static Lists find_needs(const Graph *graph, const Units *units, Arena *arena)
{
    Lists needs = {.first = ARENA_ARRAY(arena, uint32_t, units->count + 1)};
    uint32_t count = 0, capacity = 0, *seen = ARENA_ARRAY(arena, uint32_t, units->count), effect = NONE, fence = NONE;
    for (uint32_t u = 0; u < units->count; u++) {
        needs.first[u] = count;
        bool is_fence = node_flow(&graph->node[units->node.item[units->node.first[u]]]) != FLOW_NONE;
        if (fence != NONE)
            ARENA_PUSH(arena, needs.item, count, capacity, fence);
        for (uint32_t before = fence == NONE ? 0 : fence + 1; is_fence && before < u; before++)
            ARENA_PUSH(arena, needs.item, count, capacity, before);
        fence = is_fence ? u : fence;
        for (uint32_t k = units->node.first[u]; k < units->node.first[u + 1]; k++) {
            const Node *node = &graph->node[units->node.item[k]];
            for (uint32_t i = 0; i < node->in_count; i++) {
                const Value *value = &graph->value[node->in[i]];
                uint32_t maker = value->role == ROLE_RESULT ? units->of[value->node] : u;
                if (maker == u || seen[maker] == u + 1)
                    continue;
                seen[maker] = u + 1;
                ARENA_PUSH(arena, needs.item, count, capacity, maker);
            }
            if (op_info(node->op)->effect == EFFECT_PURE)
                continue;
            if (effect != NONE && effect != u)
                ARENA_PUSH(arena, needs.item, count, capacity, effect);
            effect = u;
        }
    }
    needs.first[units->count] = count;
    return needs;
}

/* What leaves the graph lies in the caller's memory or in a state: it costs nothing here. */
static const int64_t *buffer_bytes(const Graph *graph, const Units *units, Arena *arena)
{
    int64_t *bytes = ARENA_ARRAY(arena, int64_t, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++)
        if (units->buffer[v] == v && !units->leaves[v] && !node_flow(value_producer(graph, v)))
            bytes[v] = type_bytes(value_type(graph, v));
    return bytes;
}

/* The needs, and for each state and what loops carry that its readers run before its next value is made, as far as that
 * can be. */
static Lists with_wishes(const Graph *graph, const Units *units, Lists needs, Arena *arena)
{
    UnitPair *pair;
    uint32_t count = state_wishes(graph, units, &needs, arena, &pair), at = 0, *first, *item;
    if (!count)
        return needs;
    Lists more = {first = ARENA_ARRAY(arena, uint32_t, units->count + 2),
                  item = ARENA_ARRAY(arena, uint32_t, needs.first[units->count] + count)};
    for (uint32_t i = 0; i < count; i++)
        first[pair[i].after + 2]++;
    for (uint32_t u = 0; u < units->count; u++)
        first[u + 2] += first[u + 1] + needs.first[u + 1] - needs.first[u];
    for (uint32_t u = 0; u < units->count; u++)
        for (at = needs.first[u]; at < needs.first[u + 1]; at++)
            item[first[u + 1]++] = needs.item[at];
    for (uint32_t i = 0; i < count; i++)
        item[first[pair[i].after + 1]++] = pair[i].before;
    return more;
}

/* By buffer, for units that make one alone: an estimate, as recipes come later. */
static Lists find_over(const Graph *graph, const Units *units, Arena *arena)
{
    Lists over = unit_overwritable(graph, units, 0, inplace_rule, arena);
    uint32_t kept = 0;
    for (uint32_t u = 0, i = 0; u < units->count; u++) {
        bool alone = units->made.first[u + 1] - units->made.first[u] == 1;
        uint32_t end = over.first[u + 1];
        over.first[u] = kept;
        for (; i < end; i++)
            if (alone)
                over.item[kept++] = units->buffer[over.item[i]];
    }
    over.first[units->count] = kept;
    return over;
}

static OrderProblem pose(const Graph *graph, const Units *units, bool keep, Arena *arena)
{
    Lists needs = find_needs(graph, units, arena);
    OrderProblem problem = {.units = units->count,
                            .values = graph->value_count,
                            .needs = keep ? needs : with_wishes(graph, units, needs, arena),
                            .made = units->made,
                            .read = units->read,
                            .over = find_over(graph, units, arena),
                            .bytes = buffer_bytes(graph, units, arena),
                            .stays = units->leaves};
    order_prepare(&problem, arena);
    return problem;
}

static Schedule begin(Graph *graph, bool keep, Arena *scratch)
{
    Schedule s = {.graph = graph, .scratch = scratch, .units = unit_list(graph, scratch)};
    s.problem = pose(graph, &s.units, keep, scratch);
    s.order = ARENA_ARRAY(scratch, uint32_t, s.units.count);
    for (uint32_t u = 0; u < s.units.count; u++)
        s.order[u] = u;
    return s;
}

/* Units by number are in the given order, except where a kernel's nodes stand apart: then its first node counts, and
 * what it needs may come later, so that only a rule finds a legal order. */
static void adopt(Schedule *s, const uint32_t *order)
{
    if (!order_is_legal(&s->problem, order, s->scratch))
        return;
    int64_t peak = order_peak(&s->problem, order, s->scratch);
    if (s->found && peak >= s->peak)
        return;
    s->found = true;
    s->peak = peak;
    memcpy(s->order, order, s->units.count * sizeof *order);
}

static void find_order(Schedule *s, bool keep)
{
    uint32_t *order = arena_copy(s->scratch, s->order, s->units.count * sizeof *order);
    adopt(s, order);
    if (s->found && keep)
        return;
    order_depth_first(&s->problem, order, s->scratch);
    adopt(s, order);
    order_by_memory(&s->problem, order, s->scratch);
    adopt(s, order);
    if (s->found && !keep)
        order_improve(&s->problem, s->order, &order_effort, s->scratch);
}

static void number_kernels(Graph *graph)
{
    uint32_t kernels = 0, previous = NONE;
    for (NodeId n = 0; n < graph->node_count; n++) {
        uint32_t kernel = graph->node[n].kernel;
        if (kernel != NONE) {
            kernels += kernel != previous;
            graph->node[n].kernel = kernels - 1;
        }
        previous = kernel;
    }
}

static void apply(Schedule *s, PassContext *context)
{
    Graph *graph = s->graph;
    const Node *old = arena_copy(s->scratch, graph->node, graph->node_count * sizeof *old);
    uint32_t position = 0;
    for (uint32_t i = 0; i < s->units.count; i++)
        for (uint32_t k = s->units.node.first[s->order[i]]; k < s->units.node.first[s->order[i] + 1]; k++) {
            NodeId n = s->units.node.item[k];
            context->changes += n != position;
            graph->node[position] = old[n];
            for (uint32_t r = 0; r < old[n].out_count; r++)
                graph->value[old[n].out[r]].node = position;
            position++;
        }
    number_kernels(graph);
    for (ValueId v = 0; v < graph->value_count; v++)
        graph->value[v].inplace = NONE;
}

bool stage_schedule(Graph *graph, PassContext *context)
{
    Schedule s = begin(graph, context->keep_order, context->scratch);
    find_order(&s, context->keep_order);
    if (!s.found) /* a cycle between kernels: the verifier's business */
        return true;
    schedule_streams(&s, context->streams);
    apply(&s, context);
    return true;
}

int64_t schedule_peak(const Graph *graph, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    Schedule s = begin((Graph *)graph, true, scratch);
    int64_t peak = order_peak(&s.problem, s.order, scratch);
    arena_reset(scratch, mark);
    return peak;
}
