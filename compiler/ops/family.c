/* The families' table, the operand count check that all of them rely on, and the ways to build inferred nodes. */
#include "ops/infer.h"

#include <assert.h>
#include <string.h>

#include "ops/families.h"
#include "ops/meaning.h"

const FamilyRow family_table[FAMILY_COUNT] = {
    [FAMILY_ELEMENTWISE] = {infer_elementwise, eval_elementwise, reverse_elementwise},
    [FAMILY_CAST] = {infer_cast, eval_cast, reverse_cast},
    [FAMILY_REDUCE] = {infer_reduce, eval_reduce, reverse_reduce},
    [FAMILY_CUMULATE] = {infer_cumulate, eval_cumulate, reverse_cumulate},
    [FAMILY_SORT] = {infer_sort, eval_sort, NULL},
    [FAMILY_CONTRACT] = {infer_contract, eval_contract, reverse_contract},
    [FAMILY_POOL] = {infer_pool, eval_pool, reverse_pool},
    [FAMILY_MATCH] = {infer_match, eval_match, reverse_match},
    [FAMILY_VIEW] = {infer_view, eval_view, reverse_view},
    [FAMILY_ASSEMBLE] = {infer_assemble, eval_assemble, reverse_assemble},
    [FAMILY_GATHER] = {infer_gather, eval_gather, reverse_gather},
    [FAMILY_DYNAMIC] = {infer_dynamic, eval_dynamic, reverse_dynamic},
    [FAMILY_GENERATE] = {infer_generate, eval_generate, NULL},
    [FAMILY_DRAW] = {infer_draw, eval_draw, NULL},
    [FAMILY_LAYOUT] = {infer_layout, eval_layout, NULL},
    [FAMILY_CONTROL] = {infer_control, eval_control, NULL},
    [FAMILY_DERIVATIVE] = {infer_derivative, NULL, NULL},
    [FAMILY_FLOW] = {infer_flow, NULL, NULL},
};

uint32_t op_result_count(OpCode op, uint32_t operands, const Attr *attr)
{
    if (op_info(op)->family == FAMILY_DERIVATIVE)
        return operands > op_first_wrt(op) ? operands - op_first_wrt(op)
                                           : 1; /* too few are an error, reported by inference */
    if (op != OP_SPLIT)
        return 1;
    int64_t sizes = attr[attr_index(OP_SPLIT, STR("sizes"))].i;
    return sizes > 0 ? (uint32_t)sizes : 1; /* an empty list is an error, reported by inference */
}

/* `x weight bias?` becomes `x, weight and optionally bias`; `x*` becomes `one or more x`. */
static void print_operand_names(Text *text, const char *names)
{
    bool first = true;
    while (*names) {
        int len = (int)strcspn(names, " ");
        char mark = names[len - 1];
        bool last = names[len] == 0;
        const char *joint = first ? "" : last ? " and " : ", ";

        if (mark == '*')
            text_printf(text, "%sone or more %.*s", joint, len - 1, names);
        else if (mark == '?')
            text_printf(text, "%soptionally %.*s", joint, len - 1, names);
        else
            text_printf(text, "%s%.*s", joint, len, names);
        first = false;
        names += len + !last;
    }
    if (first)
        text_printf(text, "no operands");
}

static bool check_operand_count(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    if (n->in_count >= op_least(n->op) && n->in_count <= op_most(n->op))
        return true;
    Text text = {0};
    print_operand_names(&text, op_info(n->op)->operands);
    infer_fail(graph, node, "takes " STR_FMT "; %u %s given", STR_ARG(text_view(&text)), n->in_count,
               n->in_count == 1 ? "is" : "are");
    text_free(&text);
    return false;
}

bool op_infer(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    if (n->op != OP_CALL && !check_operand_count(graph, node))
        return false;
    for (uint32_t i = 0; i < n->in_count; i++)
        if (!infer_in_type(graph, node, i))
            return false;
    return family_table[op_info(n->op)->family].infer(graph, node);
}

#define MOST_ATTRS 16

ValueId op_build(Graph *graph, OpCode op, const ValueId *in, uint32_t in_count, const Attr *attr, Place place)
{
    Attr defaults[MOST_ATTRS];
    assert(op_attr_count(op) <= MOST_ATTRS);
    if (!attr) {
        attr_defaults(op, defaults);
        attr = defaults;
    }
    NodeId node = graph_add_node(graph, op, in, in_count, attr, op_result_count(op, in_count, attr), place);
    op_infer(graph, node);
    return graph->node[node].out[0];
}

ValueId op_build1(Graph *graph, OpCode op, ValueId x, Place place)
{
    return op_build(graph, op, &x, 1, NULL, place);
}

ValueId op_build2(Graph *graph, OpCode op, ValueId x, ValueId y, Place place)
{
    return op_build(graph, op, (ValueId[]){x, y}, 2, NULL, place);
}
