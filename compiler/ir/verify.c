#include "ir/verify.h"

typedef struct Verifier {
    const Graph *graph;
    Arena *arena;
    Str *message;
    bool *defined; /* by an earlier node or by its role */
    bool callee;   /* of a call: it may update what it is given */
} Verifier;

static bool verify_graph(const Graph *graph, Arena *arena, Str *message, bool callee);

static bool wrong(Verifier *v, Str what, uint32_t index)
{
    *v->message = str_format(v->arena, STR_FMT " %u of graph " STR_FMT, STR_ARG(what), index, STR_ARG(v->graph->name));
    return false;
}

/* Elements are plain, whatever the layout. */
static bool data_fits(const Value *value)
{
    const Type *type = value->data->type;
    return type->dtype == value->type->dtype && shape_eq(&type->shape, &value->type->shape);
}

static bool verify_leaf(Verifier *v, uint32_t i)
{
    const Value *value = &v->graph->value[i];
    bool trained = value->role == ROLE_PARAM || value->role == ROLE_STATE;
    v->defined[i] = true;
    if (value->role > ROLE_CONST)
        return wrong(v, STR("bad role of value"), i);
    if (!value->type)
        return wrong(v, STR("no type for value"), i);
    if (value->role == ROLE_CONST && !value->data)
        return wrong(v, STR("no data for constant"), i);
    if (value->data && !data_fits(value))
        return wrong(v, STR("data of another type for value"), i);
    if (value->inplace != NONE)
        return wrong(v, STR("in place, but no result: value"), i);
    if (value->initial != NONE && (!trained || value->initial >= v->graph->initial_count))
        return wrong(v, STR("bad initialiser of value"), i);
    return true;
}

static bool verify_values(Verifier *v)
{
    const Graph *graph = v->graph;
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (graph->value[i].role != ROLE_RESULT && !verify_leaf(v, i))
            return false;
    return true;
}

/* The inputs are the values of that role, each once. */
static bool verify_inputs(Verifier *v)
{
    const Graph *graph = v->graph;
    uint32_t inputs = 0;
    bool *seen = ARENA_ARRAY(v->arena, bool, graph->value_count);
    for (uint32_t i = 0; i < graph->value_count; i++)
        inputs += graph->value[i].role == ROLE_INPUT;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        ValueId input = graph->input[i];
        if (input >= graph->value_count || graph->value[input].role != ROLE_INPUT || seen[input])
            return wrong(v, STR("no value of that role, or it twice, is input"), i);
        seen[input] = true;
    }
    return inputs == graph->input_count || wrong(v, STR("other values have that role than the inputs:"), inputs);
}

static bool is_defined(const Verifier *v, ValueId value)
{
    return value < v->graph->value_count && v->defined[value];
}

static bool verify_node(Verifier *v, NodeId n)
{
    const Graph *graph = v->graph;
    const Node *node = &graph->node[n];
    if (node->dead)
        return true;
    if (node->op >= OP_COUNT || node->in_count < op_least(node->op) || node->in_count > op_most(node->op))
        return wrong(v, STR("bad op or operand count in node"), n);
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!is_defined(v, node->in[i]))
            return wrong(v, STR("operand before its producer in node"), n);
    for (uint32_t i = 0; i < node->out_count; i++) {
        ValueId out = node->out[i];
        if (out < graph->value_count && v->defined[out])
            return wrong(v, STR("second producer: node"), n);
        if (out >= graph->value_count || graph->value[out].node != n || graph->value[out].result != i)
            return wrong(v, STR("result not linked back to node"), n);
        if (!graph->value[out].type)
            return wrong(v, STR("no result type in node"), n);
        if (graph->value[out].inplace != NONE && !is_defined(v, graph->value[out].inplace))
            return wrong(v, STR("in place of nothing in node"), n);
        v->defined[out] = true;
    }
    if (node->sub_count && op_info(node->op)->family != FAMILY_CONTROL)
        return wrong(v, STR("sub-graphs in node"), n);
    for (uint32_t i = 0; i < node->sub_count; i++)
        if (!node->sub[i] || !verify_graph(node->sub[i], v->arena, v->message, !node_has_bodies(node)))
            return node->sub[i] ? false : wrong(v, STR("no sub-graph in node"), n);
    const char *complaint = node_has_bodies(node) ? graph_verify_bodies(graph, node) : NULL;
    if (complaint)
        return wrong(v, str_from(complaint), n);
    if (node->op == OP_CALL && (node->sub_count != 1 || !node->call || node->sub[0]->input_count != node->in_count ||
                                node->sub[0]->output_count != node->out_count))
        return wrong(v, STR("call and callee differ in node"), n);
    if (node_has_gradient(node) && (node->call->gradient->input_count != node->in_count + 2 * node->out_count ||
                                    node->call->gradient->output_count != node->in_count))
        return wrong(v, STR("call and gradient differ in node"), n);
    if (node->op == OP_MINIMIZE && (node->sub_count != 1 || !node->call ||
                                    node->sub[0]->input_count != node->in_count - 1 + 2 * node->sub[0]->output_count))
        return wrong(v, STR("minimize and its sub-graph differ in node"), n);
    return true;
}

static bool verify_ends(Verifier *v)
{
    const Graph *graph = v->graph;
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (!is_defined(v, graph->output[i].value))
            return wrong(v, STR("undefined output"), i);
    for (uint32_t i = 0; i < graph->update_count; i++) {
        const Update *update = &graph->update[i];
        if (!is_defined(v, update->source) || update->target >= graph->value_count)
            return wrong(v, STR("undefined value in update"), i);
        const Value *target = &graph->value[update->target];
        bool kept = target->role == ROLE_PARAM || target->role == ROLE_STATE;
        if (!kept && !(v->callee && target->role == ROLE_INPUT))
            return wrong(v, STR("neither param nor state is the target of update"), i);
    }
    return true;
}

static bool verify_graph(const Graph *graph, Arena *arena, Str *message, bool callee)
{
    Verifier v = {graph, arena, message, ARENA_ARRAY(arena, bool, graph->value_count), callee};
    if (!verify_values(&v) || !verify_inputs(&v))
        return false;
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (!verify_node(&v, n))
            return false;
    return verify_ends(&v);
}

bool graph_verify(const Graph *graph, Arena *arena, Str *message)
{
    return verify_graph(graph, arena, message, false);
}
