/* Order of execution and streams.
 * Needs: a verified graph; kernels numbered, if fused.  Keeps: what is computed; the order of nodes with effects.
 * Drops Value.inplace (run inplace afterwards).
 *
 * Memory: looks for an order in which the largest sum of live bytes (schedule_peak) is lower than in the given one.
 * Two are tried: depth first from the outputs, larger operands first, and a list schedule that always takes the ready
 * unit which gives back most.  The best wins; the given order stays unless another is strictly lower.  Units are
 * kernels, or nodes outside of kernels (units.h).  Nodes of a kernel end up next to each other, and kernels numbered in
 * order of execution.
 *
 * Streams: streams.c, on the order found. */
#include "passes/schedule.h"

#include <string.h>

static void count_readers(const Schedule *s, uint32_t *readers)
{
    memset(readers, 0, s->graph->value_count * sizeof *readers);
    for (uint32_t i = 0; i < s->units.read.first[s->units.count]; i++)
        readers[s->units.read.item[i]]++;
    for (ValueId v = 0; v < s->graph->value_count; v++)
        readers[v] += s->units.leaves[v]; /* a reader that never comes */
}

static int64_t made_bytes(const Schedule *s, uint32_t unit)
{
    int64_t bytes = 0;
    for (uint32_t i = s->units.made.first[unit]; i < s->units.made.first[unit + 1]; i++)
        bytes += type_bytes(value_type(s->graph, s->units.made.item[i]));
    return bytes;
}

/* Does the unit's result take over an operand's memory, if the unit runs now? */
static bool runs_inplace(const Schedule *s, uint32_t unit, const uint32_t *readers)
{
    for (uint32_t i = s->overwritable.first[unit]; i < s->overwritable.first[unit + 1]; i++)
        if (readers[s->units.buffer[s->overwritable.item[i]]] == 1)
            return true;
    return false;
}

/* Runs the unit: gives back what it is the last to read, and what nobody reads.  Returns the change of live bytes. */
static int64_t run_unit(const Schedule *s, uint32_t unit, uint32_t *readers)
{
    int64_t change = made_bytes(s, unit);
    for (uint32_t i = s->units.read.first[unit]; i < s->units.read.first[unit + 1]; i++) {
        ValueId buffer = s->units.read.item[i];
        if (--readers[buffer] == 0)
            change -= type_bytes(value_type(s->graph, buffer));
    }
    for (uint32_t i = s->units.made.first[unit]; i < s->units.made.first[unit + 1]; i++)
        if (!readers[s->units.made.item[i]])
            change -= type_bytes(value_type(s->graph, s->units.made.item[i]));
    return change;
}

int64_t schedule_order_peak(const Schedule *s, const uint32_t *order)
{
    ArenaMark mark = arena_mark(s->scratch);
    uint32_t *readers = ARENA_ARRAY(s->scratch, uint32_t, s->graph->value_count);
    int64_t live = 0, peak = 0;
    count_readers(s, readers);
    for (uint32_t i = 0; i < s->units.count; i++) {
        int64_t during = live + (runs_inplace(s, order[i], readers) ? 0 : made_bytes(s, order[i]));
        peak = during > peak ? during : peak;
        live += run_unit(s, order[i], readers);
    }
    arena_reset(s->scratch, mark);
    return peak;
}

/* Dependencies between units: producers before readers, and effects in program order. */
static void find_dependencies(Schedule *s)
{
    const Graph *graph = s->graph;
    uint32_t count = 0, capacity = 0, *seen = ARENA_ARRAY(s->scratch, uint32_t, s->units.count), effect = NONE;
    s->needs.first = ARENA_ARRAY(s->scratch, uint32_t, s->units.count + 1);
    for (uint32_t u = 0; u < s->units.count; u++) {
        s->needs.first[u] = count;
        for (uint32_t k = s->units.node.first[u]; k < s->units.node.first[u + 1]; k++) {
            const Node *node = &graph->node[s->units.node.item[k]];
            for (uint32_t i = 0; i < node->in_count; i++) {
                const Value *value = &graph->value[node->in[i]];
                uint32_t maker = value->role == ROLE_RESULT ? s->units.of[value->node] : u;
                if (maker == u || seen[maker] == u + 1)
                    continue;
                seen[maker] = u + 1;
                ARENA_PUSH(s->scratch, s->needs.item, count, capacity, maker);
            }
            if (op_info(node->op)->effect == EFFECT_PURE)
                continue;
            if (effect != NONE && effect != u)
                ARENA_PUSH(s->scratch, s->needs.item, count, capacity, effect);
            effect = u;
        }
    }
    s->needs.first[s->units.count] = count;
}

static void invert(Schedule *s)
{
    uint32_t units = s->units.count, total = s->needs.first[units];
    uint32_t *first = s->feeds.first = ARENA_ARRAY(s->scratch, uint32_t, units + 2);
    s->feeds.item = ARENA_ARRAY(s->scratch, uint32_t, total);
    for (uint32_t i = 0; i < total; i++)
        first[s->needs.item[i] + 2]++;
    for (uint32_t u = 0; u < units; u++)
        first[u + 2] += first[u + 1];
    for (uint32_t u = 0; u < units; u++)
        for (uint32_t i = s->needs.first[u]; i < s->needs.first[u + 1]; i++)
            s->feeds.item[first[s->needs.item[i] + 1]++] = u;
}

/* Units by number are in the given order, except where a kernel's nodes stand apart: then its first node counts, and
 * what it needs may come later, so that only a search finds a legal order. */
static bool is_legal(const Schedule *s, const uint32_t *order)
{
    ArenaMark mark = arena_mark(s->scratch);
    uint32_t *position = ARENA_ARRAY(s->scratch, uint32_t, s->units.count);
    bool legal = true;
    for (uint32_t i = 0; i < s->units.count; i++)
        position[order[i]] = i;
    for (uint32_t u = 0; u < s->units.count; u++)
        for (uint32_t i = s->needs.first[u]; i < s->needs.first[u + 1]; i++)
            legal &= position[s->needs.item[i]] < position[u];
    arena_reset(s->scratch, mark);
    return legal;
}

static void adopt(Schedule *s, const uint32_t *order)
{
    if (!is_legal(s, order))
        return;
    int64_t peak = schedule_order_peak(s, order);
    if (s->found && peak >= s->peak)
        return;
    s->found = true;
    s->peak = peak;
    memcpy(s->order, order, s->units.count * sizeof *order);
}

static Schedule begin(Graph *graph, const PassContext *context)
{
    Schedule s = {.graph = graph, .scratch = context->scratch, .units = units_of(graph, context->scratch)};
    PassContext plain = pass_context(s.scratch, NULL); /* an estimate: targets are asked when the order is final */
    s.overwritable = units_overwritable(graph, &s.units, &plain, s.scratch);
    find_dependencies(&s);
    invert(&s);
    s.order = ARENA_ARRAY(s.scratch, uint32_t, s.units.count);
    return s;
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

bool pass_schedule(Graph *graph, PassContext *context)
{
    Schedule s = begin(graph, context);
    uint32_t *order = ARENA_ARRAY(s.scratch, uint32_t, s.units.count);
    for (uint32_t u = 0; u < s.units.count; u++)
        order[u] = u;
    adopt(&s, order);
    if (!context->keep_order || !s.found) {
        schedule_depth_first(&s, order);
        adopt(&s, order);
        schedule_by_memory(&s, order);
        adopt(&s, order);
    }
    if (!s.found) /* a cycle between kernels: the verifier's business */
        return true;
    schedule_streams(&s, context->streams);
    apply(&s, context);
    return true;
}

int64_t schedule_peak(const Graph *graph, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    PassContext context = pass_context(scratch, NULL);
    Schedule s = {.graph = (Graph *)graph, .scratch = scratch, .units = units_of(graph, scratch)};
    s.overwritable = units_overwritable(graph, &s.units, &context, scratch);
    s.order = ARENA_ARRAY(scratch, uint32_t, s.units.count);
    for (uint32_t u = 0; u < s.units.count; u++)
        s.order[u] = u;
    int64_t peak = schedule_order_peak(&s, s.order);
    arena_reset(scratch, mark);
    return peak;
}
