/* In-place results.
 * Needs: the final order; the nodes of a kernel next to each other.  Keeps: everything but Value.inplace.
 * Sets Value.inplace of a result to the operand whose memory it takes over: one that dies at this unit (with all views
 * of it), is itself a result (inputs, params and constants are not ours to write), does not leave the graph, and which
 * the unit reads at exactly the position it writes, with as many bytes per element.  Results that leave the graph lie
 * in the caller's memory or in a state and are left alone.
 *
 * For a node that is exactly the ops with INPLACE_SAME in op.def.  For a kernel, inplace_kernel_rule asks that every
 * path from the operand to the result, and every other use of the operand in the kernel, goes through such nodes of the
 * result's shape: the residual of conv + add + relu may be overwritten; the input of the convolution may not; the image
 * of a max pooling may be by its gradient.  The rule takes for granted that the kernel reads position i before it
 * writes it and writes it once.  Where recipes are known, memory.c adds what they say (results that are written more
 * than once; rows that are read several times, of which the last is where they are written: a softmax), and what parts
 * say. */
#include "storage/inplace.h"

#include <string.h>

#include "kernel/kernel.h"

#define MOST_RESULTS 4 /* of a kernel: the others are written over nothing */

static bool same_positions(const Type *a, const Type *b)
{
    return shape_eq(&a->shape, &b->shape) && a->layout.block == b->layout.block &&
           dtype_bytes(a->dtype) == dtype_bytes(b->dtype);
}

static bool goes_by_position(const Graph *graph, const Node *node, const Type *result)
{
    const OpInfo *info = op_info(node->op);
    return info->inplace == INPLACE_SAME && info->family != FAMILY_VIEW && node->out_count == 1 &&
           value_shape(graph, node->out[0])->rank == result->shape.rank &&
           shape_eq(value_shape(graph, node->out[0]), &result->shape) &&
           value_type(graph, node->out[0])->layout.block == result->layout.block;
}

/* What windows give to elements: those are read where the result is, the first operand. */
static bool spreads_by_position(const Graph *graph, const Node *node, uint32_t operand, const Type *result)
{
    const Type *out = value_type(graph, node->out[0]);
    return operand == 0 && node_is_reduction(graph, node) && reduction_of(graph, node).kind == REDUCE_SPREAD &&
           shape_eq(&out->shape, &result->shape) && out->layout.block == result->layout.block;
}

/* Like its first operand but where it is written: over that, if the others lie elsewhere. */
static bool goes_over_first(const Graph *graph, const Node *node, ValueId operand)
{
    ValueId owner = kernel_view_owner(graph, operand);
    bool over = node->in[0] == operand;
    for (uint32_t i = 1; i < node->in_count; i++)
        over &= kernel_view_owner(graph, node->in[i]) != owner;
    return over;
}

/* Does all that the kernel makes of the operand go by the result's positions?  Is the result one of it?  What rows
 * are reduced to, which have the result's shape, is no longer of the operand. */
static bool all_by_position(const Graph *graph, NodeId producer, ValueId operand, bool rows, bool *made_of)
{
    enum { MOST = 256 }; /* nodes of a kernel */
    bool reached[MOST] = {false};
    const Type *result = value_type(graph, graph->node[producer].out[0]);
    uint32_t kernel = graph->node[producer].kernel;
    NodeId first = producer, end = producer + 1;

    while (kernel != NONE && first > 0 && graph->node[first - 1].kernel == kernel)
        first--;
    while (kernel != NONE && end < graph->node_count && graph->node[end].kernel == kernel)
        end++;
    if (end - first > MOST || !same_positions(result, value_type(graph, operand)))
        return false;

    for (NodeId n = first; n < end; n++) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; i < node->in_count; i++) {
            const Value *value = &graph->value[node->in[i]];
            bool here = node->in[i] == operand || (value->role == ROLE_RESULT && value->node >= first &&
                                                   value->node < n && reached[value->node - first]);
            if (here && rows && node_is_reduction(graph, node))
                continue;
            if (here && !goes_by_position(graph, node, result) && !spreads_by_position(graph, node, i, result))
                return false;
            reached[n - first] |= here;
        }
    }
    *made_of = reached[producer - first];
    return true;
}

bool inplace_kernel_rule(const Graph *graph, NodeId producer, ValueId operand)
{
    bool made_of = false;
    if (op_info(graph->node[producer].op)->inplace == INPLACE_FIRST)
        return goes_over_first(graph, &graph->node[producer], operand);
    return all_by_position(graph, producer, operand, false, &made_of) && made_of;
}

bool inplace_map_rule(const Graph *graph, NodeId producer, ValueId operand)
{
    bool made_of;
    return all_by_position(graph, producer, operand, false, &made_of);
}

bool inplace_rows_rule(const Graph *graph, NodeId producer, ValueId operand)
{
    bool made_of;
    return all_by_position(graph, producer, operand, true, &made_of);
}

/* Are all results of the unit stored where an element has been computed, none while others are still to be?  Not by
 * kernels of several stages. */
static bool stores_at_once(const Graph *graph, const Units *units, uint32_t u)
{
    bool reduces = false;
    for (uint32_t k = units->node.first[u]; k < units->node.first[u + 1]; k++)
        reduces |= node_is_reduction(graph, &graph->node[units->node.item[k]]);
    return !reduces || units->made.first[u + 1] - units->made.first[u] == 1;
}

static uint32_t *last_readers(const Graph *graph, const Units *units, Arena *arena)
{
    uint32_t *last = ARENA_ARRAY(arena, uint32_t, graph->value_count);
    for (uint32_t u = 0; u < units->count; u++)
        for (uint32_t i = units->read.first[u]; i < units->read.first[u + 1]; i++)
            last[units->read.item[i]] = u; /* ascending */
    return last;
}

void inplace_find(Graph *graph, OverwriteRule rule, Arena *scratch, uint32_t *changes)
{
    for (ValueId v = 0; v < graph->value_count; v++)
        graph->value[v].inplace = NONE;
    if (!rule.may)
        return;
    Units units = unit_list(graph, scratch);
    const uint32_t *last = last_readers(graph, &units, scratch);
    bool *taken = ARENA_ARRAY(scratch, bool, graph->value_count); /* per buffer: another result is written over it */
    for (uint32_t which = 0; which < MOST_RESULTS; which++) {
        Lists candidates = unit_overwritable(graph, &units, which, rule, scratch);
        for (uint32_t u = 0; u < units.count; u++)
            for (uint32_t i = candidates.first[u]; i < candidates.first[u + 1]; i++) {
                ValueId operand = candidates.item[i], buffer = units.buffer[operand];
                ValueId result = units.made.item[units.made.first[u] + which];
                bool stored_last = rule.last && rule.last(rule.context, graph, graph->value[result].node);
                if (last[buffer] != u || units.leaves[buffer] || units.leaves[result] || taken[buffer] ||
                    (!stored_last && !stores_at_once(graph, &units, u)))
                    continue;
                graph->value[result].inplace = operand;
                taken[buffer] = true;
                ++*changes;
                break;
            }
    }
}

static bool rule_of_nodes(void *context, const Graph *graph, NodeId producer, ValueId operand)
{
    (void)context;
    return inplace_kernel_rule(graph, producer, operand);
}

const OverwriteRule inplace_rule = {.may = rule_of_nodes};
