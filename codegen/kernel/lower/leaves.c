/* The constants that weights are computed of where the kernel widens them (passes/widen.h): a tensor of 8 or 16 bits,
 * and scales and zero points.  Who packs weights packs each of these. */
#include "kernel/lower/contract.h"
#include "passes/widen.h"

#include <string.h>

typedef struct Finder {
    Lower *lower;
    Leaves *leaves;
    bool constants; /* alone */
} Finder;

static bool add_leaf(Finder *f, ValueId value, Index address)
{
    const Value *v = &f->lower->graph->value[value];
    Leaves *leaves = f->leaves;
    if (f->constants && v->role != ROLE_CONST && v->role != ROLE_PARAM)
        return false;
    for (uint32_t i = 0; i < leaves->count; i++)
        if (leaves->leaf[i].value == value)
            return index_eq(leaves->leaf[i].address, address);
    if (leaves->count == MOST_LEAVES)
        return false;
    leaves->leaf[leaves->count++] = (Leaf){value, address};
    return true;
}

static bool find(Finder *f, ValueId value, const Index *position, uint32_t depth);

static bool is_f32(const Graph *graph, ValueId value)
{
    return value_type(graph, value)->dtype == DT_F32;
}

static bool find_in_operands(Finder *f, const Node *node, const Index *position, uint32_t depth)
{
    const Graph *graph = f->lower->graph;
    for (uint32_t i = 0; i < node->in_count; i++) {
        Index at[MAX_RANK];
        lower_broadcast_position(value_shape(graph, node->in[i]), value_shape(graph, node->out[0]), position, at);
        if (!is_f32(graph, node->in[i]) || !find(f, node->in[i], at, depth))
            return false;
    }
    return is_f32(graph, node->out[0]);
}

static bool find_in_memory(Finder *f, ValueId value, const Index *position)
{
    ValueId source;
    Index address;
    return lower_memory_source(f->lower, value, position, &source, &address) && add_leaf(f, source, address);
}

/* Recurses over WIDEN_DEEPEST nodes at most, and the views between them. */
static bool find(Finder *f, ValueId value, const Index *position, uint32_t depth)
{
    Lower *lower = f->lower;
    const Graph *graph = lower->graph;
    const Node *node = value_producer(graph, value);
    double number;
    if (value_is_number(graph, value, &number))
        return true;
    if (!kernel_makes(lower, value) && !kernel_value_is_view(graph, value))
        return find_in_memory(f, value, position);
    if (depth > 2 * WIDEN_DEEPEST || node_is_dynamic_slice(node))
        return false;
    if (node_is_view(node)) {
        Index operand[MAX_RANK];
        kernel_view_position(lower->arena, graph, node, graph->value[value].result, position, operand);
        return find(f, node->in[0], operand, depth + 1);
    }
    if (op_info(node->op)->family == FAMILY_ELEMENTWISE)
        return find_in_operands(f, node, position, depth + 1);
    if (op_info(node->op)->family != FAMILY_CAST || op_keeps_bits(node->op) || !is_f32(graph, node->out[0]) ||
        !widen_is_narrow(value_type(graph, node->in[0])->dtype))
        return false;
    const Node *half = value_producer(graph, node->in[0]);
    bool halved = half && kernel_makes(lower, node->in[0]) && widen_takes_half(graph, half);
    return find_in_memory(f, halved ? half->in[0] : node->in[0], position);
}

bool lower_leaves(Lower *lower, ValueId value, const Index *position, Leaves *leaves)
{
    Finder finder = {lower, leaves, true};
    leaves->count = 0;
    return find(&finder, value, position, 0) && leaves->count > 0;
}

bool lower_narrow_leaf(Lower *lower, ValueId value, const Index *position, Leaf *leaf)
{
    Leaves leaves = {.count = 0};
    Finder finder = {lower, &leaves, false};
    uint32_t found = 0;
    if (!find(&finder, value, position, 0))
        return false;
    for (uint32_t i = 0; i < leaves.count; i++) {
        const Type *type = value_type(lower->graph, leaves.leaf[i].value);
        if (shape_elements(&type->shape) == 1) /* a zero point, say, which is the same wherever it is read */
            continue;
        *leaf = leaves.leaf[i];
        found += widen_is_narrow(type->dtype) ? 1 : 2;
    }
    return found == 1;
}

/* The node that makes it, behind views. */
static const Node *maker(const Lower *lower, ValueId value)
{
    const Node *node;
    while ((node = value_producer(lower->graph, value)) && node_is_view(node))
        value = node->in[0];
    return node && kernel_makes(lower, value) ? node : NULL;
}

bool lower_is_scaled(const Lower *lower, ValueId value, const Node **product)
{
    const Node *node = maker(lower, value);
    const ScalarList *list = node ? op_info(node->op)->scalar : NULL;
    *product = node;
    return list && node->in_count == 2 && list->term[list->count - 1].word == WORD_MUL && list->count == 3;
}
