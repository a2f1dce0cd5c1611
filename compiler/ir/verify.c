#include "ir/verify.h"

typedef struct Verifier {
    const Graph *graph;
    Arena *arena;
    Str *message;
    bool *defined; /* by an earlier node or by its role */
} Verifier;

static bool wrong(Verifier *v, Str what, uint32_t index)
{
    *v->message = str_format(v->arena, STR_FMT " %u of graph " STR_FMT, STR_ARG(what), index, STR_ARG(v->graph->name));
    return false;
}

static bool verify_values(Verifier *v)
{
    const Graph *graph = v->graph;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const Value *value = &graph->value[i];
        if (value->role != ROLE_RESULT) {
            v->defined[i] = true;
            if (!value->type)
                return wrong(v, STR("no type for value"), i);
            if (value->role == ROLE_CONST && (!value->data || value->data->type->dtype != value->type->dtype))
                return wrong(v, STR("no data for constant"), i);
        }
        if (value->initial != NONE && value->initial >= graph->initial_count)
            return wrong(v, STR("bad initialiser of value"), i);
    }
    return true;
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
        if (node->in[i] >= graph->value_count || !v->defined[node->in[i]])
            return wrong(v, STR("operand before its producer in node"), n);
    for (uint32_t i = 0; i < node->out_count; i++) {
        ValueId out = node->out[i];
        if (out >= graph->value_count || graph->value[out].node != n || graph->value[out].result != i)
            return wrong(v, STR("result not linked back to node"), n);
        if (v->defined[out])
            return wrong(v, STR("second producer: node"), n);
        if (!graph->value[out].type)
            return wrong(v, STR("no result type in node"), n);
        v->defined[out] = true;
    }
    for (uint32_t i = 0; i < node->sub_count; i++)
        if (!graph_verify(node->sub[i], v->arena, v->message))
            return false;
    if (node->op == OP_CALL && (node->sub_count != 1 || !node->call || node->sub[0]->input_count != node->in_count ||
                                node->sub[0]->output_count != node->out_count))
        return wrong(v, STR("call and callee differ in node"), n);
    return true;
}

static bool verify_ends(Verifier *v)
{
    const Graph *graph = v->graph;
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->output[i].value >= graph->value_count || !v->defined[graph->output[i].value])
            return wrong(v, STR("undefined output"), i);
    for (uint32_t i = 0; i < graph->update_count; i++) {
        const Update *update = &graph->update[i];
        if (update->source >= graph->value_count || !v->defined[update->source] || update->target >= graph->value_count)
            return wrong(v, STR("undefined value in update"), i);
        const Value *target = &graph->value[update->target];
        if (target->role != ROLE_PARAM && target->role != ROLE_STATE)
            return wrong(v, STR("neither param nor state is the target of update"), i);
    }
    return true;
}

bool graph_verify(const Graph *graph, Arena *arena, Str *message)
{
    Verifier v = {graph, arena, message, ARENA_ARRAY(arena, bool, graph->value_count)};
    if (!verify_values(&v))
        return false;
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (!verify_node(&v, n))
            return false;
    return verify_ends(&v);
}
