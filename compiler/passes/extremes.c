#include "passes/extremes.h"

#include "ops/family.h"
#include "ops/meaning.h"

bool extremes_exact(const Node *node)
{
    const ScalarList *list = op_info(node->op)->scalar;
    if (node_is_view(node) || op_info(node->op)->family == FAMILY_CAST)
        return true;
    bool exact = op_info(node->op)->family == FAMILY_ELEMENTWISE && list;
    for (uint32_t t = 0; exact && t < list->count; t++) {
        Word word = list->term[t].word;
        exact = word == WORD_OPERAND || word == WORD_NUMBER || word == WORD_NEG || word == WORD_ABS ||
                word == WORD_SELECT || word == WORD_MAX || word == WORD_MIN || (word >= WORD_LT && word <= WORD_NOT);
    }
    return exact;
}

static bool finds_extreme(const Graph *graph, const Node *node)
{
    if (!node_is_reduction(graph, node))
        return false;
    Reduction reduction = reduction_of(graph, node);
    return reduction.kind == REDUCE_COLLECT || reduction.kind == REDUCE_SPREAD ||
           (reduction.kind == REDUCE_VALUES && (reduction.combine == WORD_MAX || reduction.combine == WORD_MIN));
}

bool *extremes_find(const Graph *graph, Arena *arena)
{
    bool *found = ARENA_ARRAY(arena, bool, graph->value_count);
    for (NodeId n = graph->node_count; n-- > 0;) { /* readers come later */
        const Node *node = &graph->node[n];
        if (node->dead)
            continue;
        bool passes = node->out_count && found[node->out[0]] && extremes_exact(node);
        for (uint32_t i = 0; i < node->in_count; i++)
            found[node->in[i]] |= passes || (i == 0 && finds_extreme(graph, node));
    }
    return found;
}
