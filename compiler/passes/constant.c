#include "passes/constant.h"

#include "ops/meaning.h"

/* Bytes of one tensor. The evaluator holds tensors whole, and which nodes it stands in for must not depend on the
 * memory of the machine that compiles. */
#define LARGEST ((int64_t)8 << 30)
/* Of what is more than its operands: there is no more to store of a formula than of a written array. */
#define LARGEST_GROWN ((int64_t)256 << 20)
/* Operations, of a node and of all that a pass folds: what takes longer is computed where the model runs. */
#define MOST_WORK     ((int64_t)1 << 34)
#define MOST_WORK_ALL ((int64_t)1 << 36)

static bool all_plain(const Graph *graph, const ValueId *value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const Type *type = value_type(graph, value[i]);
        if (type->layout.block || type_bytes(type) > LARGEST)
            return false;
    }
    return true;
}

static int64_t bytes_of(const Graph *graph, const ValueId *value, uint32_t count)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += type_bytes(value_type(graph, value[i]));
    return bytes;
}

static bool grows_too_large(const Graph *graph, const Node *node)
{
    int64_t made = bytes_of(graph, node->out, node->out_count);
    return made > LARGEST_GROWN && made > bytes_of(graph, node->in, node->in_count);
}

bool constant_is_foldable(const Graph *graph, const Node *node)
{
    const OpInfo *info = op_info(node->op);
    return info->effect == EFFECT_PURE && info->family != FAMILY_CONTROL && info->family != FAMILY_LAYOUT &&
           node->out_count && all_plain(graph, node->in, node->in_count) &&
           all_plain(graph, node->out, node->out_count) && !grows_too_large(graph, node) &&
           node_flops(graph, node) <= MOST_WORK;
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

    int64_t work = 0;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        bool known = !node->dead && constant_has_operands(node, constant) && constant_is_foldable(graph, node);
        if (known)
            work += node_flops(graph, node);
        known &= work <= MOST_WORK_ALL;
        for (uint32_t i = 0; i < node->out_count; i++)
            constant[node->out[i]] = known;
    }
    return constant;
}
