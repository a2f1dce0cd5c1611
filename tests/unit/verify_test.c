/* The verifier on graphs that were damaged at random: each kind of damage is found, every time. */
#include <string.h>

#include "ir/verify.h"
#include "ops/family.h"
#include "draw.h"
#include "random_graph.h"
#include "unit.h"

#define GRAPHS 300

typedef struct Damager {
    Graph *graph;
    uint64_t state;
} Damager;

static ValueId value_of_role(Damager *d, Role role)
{
    Graph *graph = d->graph;
    uint32_t from = draw(&d->state, graph->value_count);
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (graph->value[(from + i) % graph->value_count].role == role)
            return (from + i) % graph->value_count;
    return NONE;
}

static Node *some_node(Damager *d)
{
    return &d->graph->node[draw(&d->state, d->graph->node_count)];
}

static Node *reader(Damager *d)
{
    Node *node = some_node(d);
    while (!node->in_count)
        node = some_node(d);
    return node;
}

/* Each returns false where the graph has nothing of the kind. */

static bool operand_out_of_range(Damager *d)
{
    Node *node = reader(d);
    node->in[draw(&d->state, node->in_count)] = draw(&d->state, 2) ? NONE : d->graph->value_count;
    return true;
}

static bool operand_later(Damager *d)
{
    NodeId at = draw(&d->state, d->graph->node_count);
    Node *node = &d->graph->node[at], *later = &d->graph->node[at + draw(&d->state, d->graph->node_count - at)];
    if (!node->in_count || !later->out_count)
        return false;
    node->in[draw(&d->state, node->in_count)] = later->out[0];
    return true;
}

static bool nodes_swapped(Damager *d)
{
    Node *node = reader(d), other, *producer = value_producer(d->graph, node->in[draw(&d->state, node->in_count)]);
    if (!producer)
        return false;
    other = *node;
    *node = *producer;
    *producer = other;
    for (uint32_t i = 0; i < node->out_count; i++)
        d->graph->value[node->out[i]].node = (NodeId)(node - d->graph->node);
    for (uint32_t i = 0; i < producer->out_count; i++)
        d->graph->value[producer->out[i]].node = (NodeId)(producer - d->graph->node);
    return true;
}

static bool operands_lost(Damager *d)
{
    Node *node = reader(d);
    if (node->op == OP_CALL)
        return false;
    node->in_count = op_least(node->op) - 1;
    return true;
}

static bool result_of_another(Damager *d)
{
    Node *node = some_node(d);
    d->graph->value[node->out[0]].node += 1 + draw(&d->state, 3);
    return true;
}

static bool result_of_another_number(Damager *d)
{
    d->graph->value[some_node(d)->out[0]].result++;
    return true;
}

static bool result_out_of_range(Damager *d)
{
    some_node(d)->out[0] = d->graph->value_count + draw(&d->state, 9);
    return true;
}

static bool second_producer(Damager *d)
{
    Node *a = some_node(d), *b = some_node(d);
    if (a == b)
        return false;
    a->out[0] = b->out[0];
    return true;
}

static bool produces_an_input(Damager *d)
{
    some_node(d)->out[0] = d->graph->input[0];
    return true;
}

static bool no_result_type(Damager *d)
{
    d->graph->value[some_node(d)->out[0]].type = NULL;
    return true;
}

static bool no_type(Damager *d)
{
    static const Role role[] = {ROLE_INPUT, ROLE_PARAM, ROLE_CONST};
    ValueId v = value_of_role(d, role[draw(&d->state, 3)]);
    if (v != NONE)
        d->graph->value[v].type = NULL;
    return v != NONE;
}

static bool result_becomes_leaf(Damager *d)
{
    d->graph->value[some_node(d)->out[0]].role = draw(&d->state, 2) ? ROLE_INPUT : ROLE_PARAM;
    return true;
}

static bool input_becomes_result(Damager *d)
{
    d->graph->value[d->graph->input[0]].role = ROLE_RESULT;
    return true;
}

static bool no_such_role(Damager *d)
{
    d->graph->value[d->graph->input[0]].role = (Role)(ROLE_CONST + 1 + draw(&d->state, 5));
    return true;
}

static bool input_twice(Damager *d)
{
    d->graph->input[0] = d->graph->input[1];
    return true;
}

static bool input_lost(Damager *d)
{
    d->graph->input_count--;
    return true;
}

static bool input_out_of_range(Damager *d)
{
    d->graph->input[draw(&d->state, d->graph->input_count)] = NONE;
    return true;
}

static bool no_data(Damager *d)
{
    ValueId v = value_of_role(d, ROLE_CONST);
    if (v != NONE)
        d->graph->value[v].data = NULL;
    return v != NONE;
}

static bool data_of_another_type(Damager *d)
{
    ValueId v = value_of_role(d, ROLE_CONST);
    if (v == NONE)
        return false;
    const Type *type = d->graph->value[v].type;
    Shape shape = type->shape;
    shape.dim[shape.rank++] = 3;
    d->graph->value[v].type =
        draw(&d->state, 2) ? module_type(d->graph->module, type->dtype, &shape, type->layout)
                           : module_type(d->graph->module, (type->dtype + 1) % DT_COUNT, &type->shape, type->layout);
    return true;
}

static bool initialiser_out_of_range(Damager *d)
{
    ValueId v = value_of_role(d, ROLE_PARAM);
    if (v != NONE)
        d->graph->value[v].initial = d->graph->initial_count + draw(&d->state, 3);
    return v != NONE;
}

static bool initialiser_of_a_result(Damager *d)
{
    d->graph->value[d->graph->input[0]].initial = 0;
    return true;
}

static bool output_undefined(Damager *d)
{
    Graph *graph = d->graph;
    ValueId v = graph_add_value(graph, ROLE_RESULT, value_type(graph, 0), (Str){0}, (Place){0});
    graph->output[draw(&d->state, graph->output_count)].value = draw(&d->state, 2) ? v : NONE;
    return true;
}

static bool update_of_no_param(Damager *d)
{
    Graph *graph = d->graph;
    graph_add_update(graph, draw(&d->state, 2) ? graph->input[0] : some_node(d)->out[0], graph->input[0], (Place){0});
    return true;
}

static bool update_out_of_range(Damager *d)
{
    Graph *graph = d->graph;
    ValueId param = value_of_role(d, ROLE_PARAM);
    if (param == NONE)
        return false;
    graph_add_update(graph, draw(&d->state, 2) ? NONE : param, NONE, (Place){0});
    return true;
}

static bool inplace_of_nothing(Damager *d)
{
    d->graph->value[some_node(d)->out[0]].inplace = d->graph->value_count + draw(&d->state, 3);
    return true;
}

static bool inplace_of_itself(Damager *d)
{
    ValueId v = some_node(d)->out[0];
    d->graph->value[v].inplace = v;
    return true;
}

static bool op_unknown(Damager *d)
{
    some_node(d)->op = (OpCode)(OP_COUNT + draw(&d->state, 9));
    return true;
}

static Node *call_of(Damager *d)
{
    for (NodeId n = 0; n < d->graph->node_count; n++)
        if (d->graph->node[n].op == OP_CALL)
            return &d->graph->node[n];
    return NULL;
}

static bool callee_lost(Damager *d)
{
    Node *call = call_of(d);
    if (call)
        call->sub_count = 0;
    return call;
}

static bool callee_of_fewer_inputs(Damager *d)
{
    Node *call = call_of(d);
    if (call)
        call->in_count--;
    return call;
}

static bool callee_is_null(Damager *d)
{
    Node *call = call_of(d);
    if (call) {
        call->sub = ARENA_ARRAY(d->graph->module->arena, Graph *, 1);
        call->sub_count = 1;
    }
    return call;
}

static bool sub_graph_of_an_op(Damager *d)
{
    Node *node = some_node(d);
    if (node->op == OP_CALL)
        return false;
    node->sub = &d->graph;
    node->sub_count = 1;
    return true;
}

/* Loops and branches */

static Node *with_bodies(Damager *d, OpCode op)
{
    uint32_t from = draw(&d->state, d->graph->node_count);
    for (NodeId n = 0; n < d->graph->node_count; n++) {
        Node *node = &d->graph->node[(from + n) % d->graph->node_count];
        if (node->op == op)
            return node;
    }
    return NULL;
}

static Node *loop_or_case(Damager *d)
{
    bool loop = draw(&d->state, 2);
    Node *node = with_bodies(d, loop ? OP_WHILE : OP_CASE);
    return node ? node : with_bodies(d, loop ? OP_CASE : OP_WHILE);
}

static Graph *body_of(Damager *d)
{
    Node *node = loop_or_case(d);
    return node ? node->sub[draw(&d->state, node->sub_count)] : NULL;
}

static bool body_lost(Damager *d)
{
    Node *node = loop_or_case(d);
    if (node)
        node->sub_count = node->op == OP_CASE ? node->sub_count - 1 : 0;
    return node;
}

static bool body_is_null(Damager *d)
{
    Node *node = loop_or_case(d);
    if (node)
        node->sub[draw(&d->state, node->sub_count)] = NULL;
    return node;
}

static bool body_of_another(Damager *d)
{
    Node *node = loop_or_case(d);
    Graph *other = graph_new(d->graph->module, STR("other"));
    if (node)
        node->sub[draw(&d->state, node->sub_count)] = other;
    return node;
}

static bool capture_lost(Damager *d)
{
    Node *node = loop_or_case(d);
    if (node)
        node->in_count--;
    return node;
}

static bool capture_of_another_type(Damager *d)
{
    Graph *body = body_of(d);
    int64_t dim[] = {77};
    if (body)
        body->value[body->input[draw(&d->state, body->input_count)]].type =
            module_plain_type(d->graph->module, DT_F64, 1, dim);
    return body;
}

static bool input_of_a_body_lost(Damager *d)
{
    Graph *body = body_of(d);
    if (body)
        body->input_count--;
    return body;
}

static bool output_of_a_body_lost(Damager *d)
{
    Graph *body = body_of(d);
    if (body)
        body->output_count--;
    return body;
}

static bool output_of_another_type(Damager *d)
{
    Graph *body = body_of(d);
    if (body)
        body->output[draw(&d->state, body->output_count)].value = graph_add_scalar(body, DT_I8, 1);
    return body;
}

static bool result_of_another_type(Damager *d)
{
    Node *node = loop_or_case(d);
    int64_t dim[] = {77};
    if (node)
        d->graph->value[node->out[draw(&d->state, node->out_count)]].type =
            module_plain_type(d->graph->module, DT_F64, 1, dim);
    return node;
}

static bool set_attr(Damager *d, Node *node, const char *name, Attr value)
{
    if (!node)
        return false;
    Attr *attr = arena_copy(d->graph->module->arena, node->attr, op_attr_count(node->op) * sizeof *attr);
    attr[attr_index(node->op, str_from(name))] = value;
    node->attr = attr;
    return true;
}

static bool carries_more(Damager *d)
{
    Node *node = with_bodies(d, OP_WHILE);
    return set_attr(d, node, "carried", (Attr){.i = node ? (int64_t)node->out_count + 1 : 1});
}

static bool carries_nothing(Damager *d)
{
    return set_attr(d, with_bodies(d, OP_WHILE), "carried", (Attr){.i = -(int64_t)draw(&d->state, 2)});
}

static bool rounds_below_none(Damager *d)
{
    return set_attr(d, with_bodies(d, OP_WHILE), draw(&d->state, 2) ? "max" : "unroll", (Attr){.i = -1});
}

static bool keys_lost(Damager *d)
{
    return set_attr(d, with_bodies(d, OP_CASE), "keys", (Attr){0});
}

static bool selector_is_a_float(Damager *d)
{
    Node *node = with_bodies(d, OP_CASE);
    if (node)
        node->in[0] = d->graph->input[0];
    return node;
}

static bool condition_is_no_bool(Damager *d)
{
    Node *node = with_bodies(d, OP_WHILE);
    if (node)
        node->sub[0]->output[node->sub[0]->output_count - 1].value = node->sub[0]->input[node->out_count - 1];
    return node;
}

static bool param_in_a_body(Damager *d)
{
    Graph *body = body_of(d);
    int64_t dim[] = {3};
    if (body)
        graph_add_value(body, draw(&d->state, 2) ? ROLE_PARAM : ROLE_STATE,
                        module_plain_type(d->graph->module, DT_F32, 1, dim), STR("stray"), (Place){0});
    return body;
}

static bool update_in_a_body(Damager *d)
{
    Graph *body = body_of(d);
    if (body)
        graph_add_update(body, body->input[0], body->input[0], (Place){0});
    return body;
}

typedef struct Kind {
    const char *name;
    bool (*damage)(Damager *d);
    bool control; /* of graphs with loops and branches */
} Kind;

#define KIND(name)                                                                                                     \
    {                                                                                                                  \
#name, name, false                                                                                             \
    }
#define IN_BODIES(name)                                                                                                \
    {                                                                                                                  \
#name, name, true                                                                                              \
    }
static const Kind kinds[] = {
    KIND(operand_out_of_range),
    KIND(operand_later),
    KIND(nodes_swapped),
    KIND(operands_lost),
    KIND(result_of_another),
    KIND(result_of_another_number),
    KIND(result_out_of_range),
    KIND(second_producer),
    KIND(produces_an_input),
    KIND(no_result_type),
    KIND(no_type),
    KIND(result_becomes_leaf),
    KIND(input_becomes_result),
    KIND(no_such_role),
    KIND(input_twice),
    KIND(input_lost),
    KIND(input_out_of_range),
    KIND(no_data),
    KIND(data_of_another_type),
    KIND(initialiser_out_of_range),
    KIND(initialiser_of_a_result),
    KIND(output_undefined),
    KIND(update_of_no_param),
    KIND(update_out_of_range),
    KIND(inplace_of_nothing),
    KIND(inplace_of_itself),
    KIND(op_unknown),
    KIND(callee_lost),
    KIND(callee_of_fewer_inputs),
    KIND(callee_is_null),
    KIND(sub_graph_of_an_op),
    IN_BODIES(body_lost),
    IN_BODIES(body_is_null),
    IN_BODIES(body_of_another),
    IN_BODIES(capture_lost),
    IN_BODIES(capture_of_another_type),
    IN_BODIES(input_of_a_body_lost),
    IN_BODIES(output_of_a_body_lost),
    IN_BODIES(output_of_another_type),
    IN_BODIES(result_of_another_type),
    IN_BODIES(carries_more),
    IN_BODIES(carries_nothing),
    IN_BODIES(rounds_below_none),
    IN_BODIES(keys_lost),
    IN_BODIES(selector_is_a_float),
    IN_BODIES(condition_is_no_bool),
    IN_BODIES(param_in_a_body),
    IN_BODIES(update_in_a_body),
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* 1: found; 0: missed; -1: the graph has nothing of the kind. */
static int damage_one(Unit *unit, const Kind *kind, uint64_t seed)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Str message = {0};
    RandomGraph options = {.seed = seed, .steps = 4 + (uint32_t)seed % 16, .dtype = DT_F32, .calls = true};
    options.control = kind->control;
    Damager d = {random_graph(module_new(&arena, &diag), &options), seed + 1};
    bool sound = graph_verify(d.graph, &arena, &message);
    EXPECT(sound && !message.len);
    int found = kind->damage(&d) ? !graph_verify(d.graph, &arena, &message) : -1;
    EXPECT(found != 1 || message.len > 0);
    diag_free(&diag);
    arena_free(&arena);
    return found;
}

UNIT(damage_is_found)
{
    for (uint32_t k = 0; k < KINDS; k++) {
        unsigned done = 0, missed = 0;
        for (uint64_t seed = 0; seed < GRAPHS; seed++) {
            int found = damage_one(unit, &kinds[k], seed);
            done += found >= 0;
            if (found == 0 && !missed++)
                printf("# %s: missed in graph %llu\n", kinds[k].name, (unsigned long long)seed);
        }
        printf("# %s: %u of %u found\n", kinds[k].name, done - missed, done);
        EXPECT(done > GRAPHS / 20);
        EXPECT_INT(missed, 0);
    }
}

int main(void)
{
    static const Test test[] = {RUN(damage_is_found)};
    return UNIT_MAIN(test);
}
