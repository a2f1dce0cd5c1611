/* Loops and branches for the verifier: their sub-graphs have the inputs and outputs that the node says. */
#include "ir/attr.h"
#include "ir/verify.h"

static const Type *output_type(const Graph *body, uint32_t i)
{
    return value_type(body, body->output[i].value);
}

static bool is_scalar(const Type *type, DType dtype)
{
    return type && type->dtype == dtype && type->shape.rank == 0;
}

static bool takes_operands(const Graph *graph, const Graph *body, const ValueId *in, uint32_t count)
{
    if (body->input_count != count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (value_type(body, body->input[i]) != value_type(graph, in[i]))
            return false;
    return true;
}

static bool gives_results(const Graph *graph, const Graph *body, const Node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        if (output_type(body, i) != value_type(graph, node->out[i]))
            return false;
    return true;
}

/* Params and states exist once, whatever rounds there are, and an update is made at the end of a run. */
static bool stands_alone(const Graph *body)
{
    for (ValueId v = 0; v < body->value_count; v++)
        if (body->value[v].role == ROLE_PARAM || body->value[v].role == ROLE_STATE)
            return false;
    return body->update_count == 0;
}

static const char *loop_complaint(const Graph *graph, const Node *node)
{
    const Graph *body = node->sub[node->sub_count - 1];
    int64_t carried = attr_int(node, "carried");
    bool tests_first = node->sub_count == 2;

    if (carried < 1 || carried > node->in_count || node->out_count != carried)
        return "bad number of carried values in node";
    if (attr_int(node, "max") < 0 || attr_int(node, "unroll") < 0)
        return "rounds below none in node";
    for (uint32_t i = 0; i < node->sub_count; i++)
        if (!takes_operands(graph, node->sub[i], node->in, node->in_count))
            return "a body does not take the operands of node";
    if (body->output_count != carried + !tests_first || !gives_results(graph, body, node))
        return "a body does not give the results of node";
    for (uint32_t i = 0; i < carried; i++)
        if (value_type(graph, node->in[i]) != value_type(graph, node->out[i]))
            return "a carried value changes its type in node";
    const Graph *tests = node->sub[0];
    if ((tests_first && tests->output_count != 1) || !is_scalar(output_type(tests, tests->output_count - 1), DT_BOOL))
        return "the condition is not one bool in node";
    return NULL;
}

static bool keys_fit(const Attr *keys, const Node *node, DType selector)
{
    if (keys->i != node->sub_count - 1 || (selector == DT_BOOL && (keys->i != 1 || keys->ints[0] != 1)))
        return false;
    for (int64_t i = 0; i < keys->i; i++)
        for (int64_t k = 0; k < i; k++)
            if (keys->ints[k] == keys->ints[i])
                return false;
    return true;
}

static const char *case_complaint(const Graph *graph, const Node *node)
{
    const Type *selector = value_type(graph, node->in[0]);
    if (!is_scalar(selector, DT_I32) && !is_scalar(selector, DT_BOOL))
        return "the selector is no i32[] or bool[] in node";
    if (!keys_fit(attr_of(node, "keys"), node, selector->dtype))
        return "keys and branches differ in node";
    for (uint32_t i = 0; i < node->sub_count; i++) {
        if (!takes_operands(graph, node->sub[i], node->in + 1, node->in_count - 1))
            return "a branch does not take the operands of node";
        if (node->sub[i]->output_count != node->out_count || !gives_results(graph, node->sub[i], node))
            return "a branch does not give the results of node";
    }
    return NULL;
}

const char *graph_verify_bodies(const Graph *graph, const Node *node)
{
    bool loop = node->op == OP_WHILE;
    if (node->sub_count < 1 || (loop && node->sub_count > 2) || !node->out_count)
        return "bad number of sub-graphs or results in node";
    for (uint32_t i = 0; i < node->sub_count; i++)
        if (!stands_alone(node->sub[i]))
            return "a param, a state or an update in a body of node";
    return loop ? loop_complaint(graph, node) : case_complaint(graph, node);
}
