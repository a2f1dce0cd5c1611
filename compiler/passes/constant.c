#include "passes/constant.h"

/* Bytes of one tensor. The evaluator holds tensors whole, and which nodes it stands in for must not depend on the
 * memory of the machine that compiles. */
#define LARGEST ((int64_t)8 << 30)

static bool all_plain(const Graph *graph, const ValueId *value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const Type *type = value_type(graph, value[i]);
        if (type->layout.block || type_bytes(type) > LARGEST)
            return false;
    }
    return true;
}

bool constant_is_foldable(const Graph *graph, const Node *node)
{
    const OpInfo *info = op_info(node->op);
    return info->effect == EFFECT_PURE && info->family != FAMILY_CONTROL && info->family != FAMILY_LAYOUT &&
           node->out_count && all_plain(graph, node->in, node->in_count) &&
           all_plain(graph, node->out, node->out_count);
}

bool constant_has_operands(const Node *node, const bool *constant)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!constant[node->in[i]])
            return false;
    return true;
}

/* Elements may be missing: the text declares a constant, and the weights file that has it was not loaded. */
static bool has_elements(const Value *value)
{
    return value->data && value->data->data;
}

bool *constant_values(const Graph *graph, const PassContext *context, Arena *arena)
{
    bool *constant = ARENA_ARRAY(arena, bool, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Value *value = &graph->value[v];
        bool frozen = context->freeze_params && value->role == ROLE_PARAM && !value->trained;
        bool known = (value->role == ROLE_CONST || frozen) && !value->type->layout.block;
        constant[v] = known && (has_elements(value) || (!value->data && value->initial != NONE));
    }
    for (uint32_t i = 0; i < graph->update_count; i++)
        constant[graph->update[i].target] = false;

    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        bool known = !node->dead && constant_is_foldable(graph, node) && constant_has_operands(node, constant);
        for (uint32_t i = 0; i < node->out_count; i++)
            constant[node->out[i]] = known;
    }
    return constant;
}
