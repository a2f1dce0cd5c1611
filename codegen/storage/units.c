#include "storage/units.h"

#include <string.h>

#include "ops/meaning.h"

static void number_units(const Graph *graph, Units *units, Arena *arena)
{
    uint32_t kernels = 0;
    for (NodeId n = 0; n < graph->node_count; n++)
        if (graph->node[n].kernel != NONE && graph->node[n].kernel >= kernels)
            kernels = graph->node[n].kernel + 1;
    uint32_t *of_kernel = ARENA_ARRAY(arena, uint32_t, kernels);
    memset(of_kernel, 0xff, kernels * sizeof *of_kernel); /* NONE */

    units->of = ARENA_ARRAY(arena, uint32_t, graph->node_count);
    units->together = ARENA_ARRAY(arena, bool, graph->node_count);
    for (NodeId n = 0; n < graph->node_count; n++) {
        uint32_t kernel = graph->node[n].kernel;
        uint32_t unit = kernel == NONE ? NONE : of_kernel[kernel];
        if (unit == NONE) {
            unit = units->count++;
            units->together[unit] = true;
            if (kernel != NONE)
                of_kernel[kernel] = unit;
        } else
            units->together[unit] &= units->of[n - 1] == unit;
        units->of[n] = unit;
    }
}

static void list_nodes(const Graph *graph, Units *units, Arena *arena)
{
    uint32_t *first = units->node.first = ARENA_ARRAY(arena, uint32_t, units->count + 2);
    units->node.item = ARENA_ARRAY(arena, uint32_t, graph->node_count);
    for (NodeId n = 0; n < graph->node_count; n++)
        first[units->of[n] + 2]++;
    for (uint32_t u = 0; u < units->count; u++)
        first[u + 2] += first[u + 1];
    for (NodeId n = 0; n < graph->node_count; n++)
        units->node.item[first[units->of[n] + 1]++] = n;
}

static bool stands_alone(const Units *units, NodeId n)
{
    uint32_t unit = units->of[n];
    return units->node.first[unit + 1] - units->node.first[unit] == 1;
}

static bool is_view(const Graph *graph, const Units *units, NodeId n)
{
    return node_is_view(&graph->node[n]) && stands_alone(units, n);
}

/* Ramps and single numbers outside of kernels are computed by whoever reads them. */
static bool is_ramp(const Graph *graph, const Units *units, NodeId n)
{
    return node_is_formula(&graph->node[n]) && stands_alone(units, n);
}

/* Results that a unit keeps to itself have no buffer. */
static bool *find_visible(const Graph *graph, const Units *units, Arena *arena)
{
    bool *visible = graph_live_out(graph, arena);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].in_count; i++) {
            ValueId v = graph->node[n].in[i];
            visible[v] |= graph->value[v].role == ROLE_RESULT && units->of[graph->value[v].node] != units->of[n];
        }
    for (NodeId n = 0; n < graph->node_count; n++) /* read by nobody: written all the same */
        for (uint32_t i = 0; i < graph->node[n].out_count; i++)
            visible[graph->node[n].out[i]] |= stands_alone(units, n);
    return visible;
}

static void find_buffers(const Graph *graph, Units *units, Arena *arena)
{
    bool *visible = find_visible(graph, units, arena), *out = graph_live_out(graph, arena);
    units->buffer = ARENA_ARRAY(arena, ValueId, graph->value_count);
    units->leaves = ARENA_ARRAY(arena, bool, graph->value_count);
    memset(units->buffer, 0xff, graph->value_count * sizeof *units->buffer); /* NONE */
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; i < node->out_count; i++) {
            ValueId v = node->out[i];
            if (is_view(graph, units, n))
                units->buffer[v] = units->buffer[node->in[0]];
            else if (visible[v] && !is_ramp(graph, units, n))
                units->buffer[v] = v;
            if (units->buffer[v] != NONE)
                units->leaves[units->buffer[v]] |= out[v];
        }
    }
}

/* One list per unit.  `seen` holds the last unit that a buffer was listed for, plus one. */
static void list_buffers(const Graph *graph, Units *units, bool made, Lists *lists, Arena *arena)
{
    uint32_t count = 0, capacity = 0, *seen = ARENA_ARRAY(arena, uint32_t, graph->value_count);
    lists->first = ARENA_ARRAY(arena, uint32_t, units->count + 1);
    for (uint32_t u = 0; u < units->count; u++) {
        lists->first[u] = count;
        for (uint32_t k = units->node.first[u]; k < units->node.first[u + 1]; k++) {
            const Node *node = &graph->node[units->node.item[k]];
            const ValueId *value = made ? node->out : node->in;
            for (uint32_t i = 0; i < (made ? node->out_count : node->in_count); i++) {
                ValueId b = units->buffer[value[i]];
                bool own = b != NONE && units->of[graph->value[b].node] == u;
                if (b == NONE || own != made || seen[b] == u + 1)
                    continue;
                seen[b] = u + 1;
                ARENA_PUSH(arena, lists->item, count, capacity, b);
            }
        }
    }
    lists->first[units->count] = count;
}

Units unit_list(const Graph *graph, Arena *arena)
{
    Units units = {0};
    number_units(graph, &units, arena);
    list_nodes(graph, &units, arena);
    find_buffers(graph, &units, arena);
    list_buffers(graph, &units, true, &units.made, arena);
    list_buffers(graph, &units, false, &units.read, arena);
    return units;
}

/* Does the value cover its buffer, each element in its place? A reshape does; other views do not. */
static bool covers_buffer(const Graph *graph, const Units *units, ValueId v)
{
    ValueId buffer = units->buffer[v];
    while (v != buffer) {
        const Node *node = &graph->node[graph->value[v].node];
        if (!view_is_reshape(node))
            return false;
        v = node->in[0];
    }
    return true;
}

/* Is the buffer read in the unit through this value alone? Through another view it would be read at other positions. */
static bool is_only_window(const Graph *graph, const Units *units, uint32_t unit, ValueId v)
{
    for (uint32_t k = units->node.first[unit]; k < units->node.first[unit + 1]; k++) {
        const Node *node = &graph->node[units->node.item[k]];
        for (uint32_t i = 0; i < node->in_count; i++)
            if (node->in[i] != v && units->buffer[node->in[i]] == units->buffer[v])
                return false;
    }
    return true;
}

Lists unit_overwritable(const Graph *graph, const Units *units, uint32_t which, OverwriteRule rule, Arena *arena)
{
    enum { MOST = 8 }; /* operands tried per unit: keeps kernels with many operands linear */
    Lists lists = {.first = ARENA_ARRAY(arena, uint32_t, units->count + 1)};
    uint32_t count = 0, capacity = 0;
    for (uint32_t u = 0; u < units->count; u++) {
        lists.first[u] = count;
        if (units->made.first[u + 1] - units->made.first[u] <= which || !units->together[u])
            continue;
        NodeId producer = graph->value[units->made.item[units->made.first[u] + which]].node;
        uint32_t tried = 0;
        for (uint32_t k = units->node.first[u]; k < units->node.first[u + 1]; k++) {
            const Node *node = &graph->node[units->node.item[k]];
            for (uint32_t i = 0; i < node->in_count && tried < MOST; i++) {
                ValueId v = node->in[i], b = units->buffer[v];
                if (b == NONE || units->of[graph->value[b].node] == u)
                    continue;
                tried++;
                if (covers_buffer(graph, units, v) && rule.may(rule.context, graph, producer, v) &&
                    is_only_window(graph, units, u, v))
                    ARENA_PUSH(arena, lists.item, count, capacity, v);
            }
        }
    }
    lists.first[units->count] = count;
    return lists;
}
