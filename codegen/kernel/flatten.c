/* Bodies in line: loops and branches become nodes that stand where their bodies begin and end (FAMILY_FLOW in op.def),
 * so that what follows works on one list of nodes, one table of values and one time.
 *
 * What a loop carries is a result of its loop_begin, which changes from round to round; what branches give is a result
 * of branch_end.  Nothing is ever copied there: both are pointers to what was made elsewhere (storage/flow.c).  So what
 * they are given must lie in memory as a whole: a number, a ramp, an array of the weights or a view that is no reshape
 * is stored first, by a relayout.  Recurses over the nesting of bodies. */
#include "kernel/kernel.h"

#include <string.h>

#include "base/names.h"
#include "ops/family.h"
#include "ops/meaning.h"

typedef struct Flattener {
    Graph *graph;
    Arena *arena;
    Names names; /* of values */
    Node *order;
    uint32_t count, capacity; /* of order */
    FlatBodies *bodies;       /* or NULL */
    const bool *leaves;       /* per value of the graph as it was: an output, or the source of an update */
} Flattener;

typedef struct Body { /* a graph whose nodes are being laid out, and what its values have become */
    const Graph *from;
    ValueId *map;
} Body;

static void lay_out(Flattener *f, const Body *body);

/* The last node of the graph goes to the new order. */
static Node *emit(Flattener *f, NodeId node)
{
    Graph *graph = f->graph;
    Node copy = graph->node[node];
    for (uint32_t r = 0; r < copy.out_count; r++)
        graph->value[copy.out[r]].node = f->count;
    ARENA_PUSH(f->arena, f->order, f->count, f->capacity, copy);
    return &f->order[f->count - 1];
}

/* Of the body, under a name that nothing else has. */
static ValueId add_value(Flattener *f, const Value *from, Role role)
{
    ValueId value = graph_add_value(f->graph, role, from->type, (Str){0}, from->place);
    if (from->name.len)
        f->graph->value[value].name = names_add(&f->names, f->arena, from->name, '_', value);
    f->graph->value[value].data = from->data;
    return value;
}

static const ValueId *map_all(Flattener *f, const Body *body, const ValueId *value, uint32_t count)
{
    ValueId *mapped = ARENA_ARRAY(f->arena, ValueId, count);
    for (uint32_t i = 0; i < count; i++)
        mapped[i] = body->map[value[i]];
    return mapped;
}

/* In the new order: all that a value is made by stands there when it is asked for. */
static const Node *producer(const Flattener *f, ValueId value)
{
    const Value *v = &f->graph->value[value];
    return v->role == ROLE_RESULT ? &f->order[v->node] : NULL;
}

/* Does it lie in memory of its own that a pointer can be taken of? */
static bool is_in_memory(const Flattener *f, ValueId value)
{
    const Node *node = producer(f, value);
    while (node && view_is_reshape(node)) {
        value = node->in[0];
        node = producer(f, value);
    }
    if (node)
        return !node_is_view(node) && !node_is_formula(node);
    return f->graph->value[value].role == ROLE_INPUT;
}

static ValueId add_copy(Flattener *f, ValueId value)
{
    Attr attr[1];
    Graph *graph = f->graph;
    attr_defaults(OP_RELAYOUT, attr);
    NodeId node = graph_add_node(graph, OP_RELAYOUT, &value, 1, attr, 1, graph->value[value].place);
    ValueId copy = graph->node[node].out[0];
    graph->value[copy].type = value_type(graph, value);
    emit(f, node);
    return copy;
}

static ValueId in_memory(Flattener *f, ValueId value)
{
    return is_in_memory(f, value) ? value : add_copy(f, value);
}

/* Inputs of a body are `value`; its constants come with it. */
static Body enter_body(Flattener *f, const Graph *from, const ValueId *value)
{
    Body body = {from, ARENA_ARRAY(f->arena, ValueId, from->value_count)};
    for (ValueId v = 0; v < from->value_count; v++)
        body.map[v] = from->value[v].role == ROLE_CONST ? add_value(f, &from->value[v], ROLE_CONST) : NONE;
    for (uint32_t i = 0; i < from->input_count; i++)
        body.map[from->input[i]] = value[i];
    return body;
}

/* Is its next value itself with a part replaced? Then the first is copied, once, rather than each in every round. */
static bool is_updated(const Loop *loop, uint32_t carried)
{
    const Graph *body = loop->body;
    const Node *node = value_producer(body, body->output[carried].value);
    bool updates = false;
    while (node && node_is_update(node) && !updates) {
        updates = node->in[0] == body->input[carried];
        node = value_producer(body, node->in[0]);
    }
    return updates;
}

/* What it is only another shape of. */
static ValueId owner_of(const Flattener *f, ValueId value)
{
    for (const Node *node; (node = producer(f, value)) && view_is_reshape(node);)
        value = node->in[0];
    return value;
}

/* Of an array of the caller, a copy. */
static ValueId copied(Flattener *f, ValueId value)
{
    return f->graph->value[owner_of(f, value)].role == ROLE_INPUT ? add_copy(f, value) : value;
}

/* So many rounds, whatever happens in them? */
static bool is_counted(const Loop *loop)
{
    const Graph *tests = loop->condition ? loop->condition : loop->body;
    double holds;
    return loop->most && value_is_number(tests, tests->output[tests->output_count - 1].value, &holds) && holds != 0;
}

static void lay_out_loop(Flattener *f, const Body *outer, const Node *node)
{
    Graph *graph = f->graph;
    Loop loop = loop_of(outer->from, node);
    ValueId *value = ARENA_ARRAY(f->arena, ValueId, node->in_count + 1); /* carried, captured */
    memcpy(value, map_all(f, outer, node->in, node->in_count), node->in_count * sizeof *value);
    for (uint32_t i = 0; i < loop.carried; i++)
        value[i] = is_updated(&loop, i) ? copied(f, in_memory(f, value[i])) : in_memory(f, value[i]);
    NodeId begin = flow_loop_begin(graph, value, loop.carried, loop.most, node->place);
    for (uint32_t i = 0; i < loop.carried; i++) {
        const Value *carried = &loop.body->value[loop.body->input[i]];
        value[i] = graph->node[begin].out[i];
        graph->value[value[i]].name =
            carried->name.len && map_add(&f->names.taken, carried->name, value[i]) ? carried->name : (Str){0};
        outer->map[node->out[i]] = value[i];
    }
    emit(f, begin);
    bool counted = is_counted(&loop);
    if (loop.condition && !counted) {
        Body condition = enter_body(f, loop.condition, value);
        lay_out(f, &condition);
        ValueId holds = in_memory(f, condition.map[loop.condition->output[0].value]);
        emit(f, flow_loop_test(graph, holds, node->place));
    }
    Body body = enter_body(f, loop.body, value);
    lay_out(f, &body);
    ValueId *next = ARENA_ARRAY(f->arena, ValueId, loop.carried + 1);
    bool tests = !loop.condition && !counted;
    for (uint32_t i = 0; i < loop.carried + tests; i++)
        next[i] = in_memory(f, body.map[loop.body->output[i].value]);
    emit(f, flow_loop_end(graph, next, loop.carried + tests, tests, node->place));
}

/* Of what stands before the branch, or is the caller's, a copy. */
static ValueId made_since(Flattener *f, ValueId value, uint32_t begin)
{
    const Node *node = producer(f, owner_of(f, value));
    return !node || node < &f->order[begin] ? add_copy(f, value) : value;
}

/* What leaves the graph is copied to where it belongs, once, if it only passes through a branch: then others can make
 * theirs there. */
static void lay_out_branches(Flattener *f, const Body *outer, const Node *node)
{
    Graph *graph = f->graph;
    uint32_t results = node->out_count;
    const ValueId *value = map_all(f, outer, node->in, node->in_count);
    ValueId *yield = ARENA_ARRAY(f->arena, ValueId, (size_t)results * node->sub_count);
    ValueId selector = in_memory(f, value[0]);
    emit(f, flow_branch_begin(graph, selector, node));
    for (uint32_t s = 0; s < node->sub_count; s++) {
        if (s)
            emit(f, flow_branch_next(graph, node->place));
        uint32_t begin = f->count;
        Body branch = enter_body(f, node->sub[s], value + 1);
        lay_out(f, &branch);
        for (uint32_t r = 0; r < results; r++) {
            ValueId given = in_memory(f, branch.map[node->sub[s]->output[r].value]);
            bool leaves = outer->from == graph && f->leaves[node->out[r]];
            yield[s * results + r] = leaves ? made_since(f, given, begin) : given;
        }
    }
    NodeId end = flow_branch_end(graph, yield, results * node->sub_count, results, node->place);
    for (uint32_t r = 0; r < results; r++) {
        ValueId given = graph->node[end].out[r], named = node->out[r];
        Str name = outer->from->value[named].name;
        if (outer->from == graph || (name.len && map_add(&f->names.taken, name, given)))
            graph->value[given].name = name;
        outer->map[named] = given;
    }
    emit(f, end);
}

/* An ordinary node of a body: a copy with results of its own.  Of the graph itself it is only moved. */
static void lay_out_node(Flattener *f, const Body *body, const Node *node)
{
    Graph *graph = f->graph;
    const ValueId *in = map_all(f, body, node->in, node->in_count);
    Node *copy;
    if (body->from == graph) {
        copy = emit(f, (NodeId)(node - graph->node));
    } else {
        NodeId added = graph_add_node(graph, node->op, in, node->in_count, node->attr, 0, node->place);
        ValueId *out = ARENA_ARRAY(graph->module->arena, ValueId, node->out_count);
        for (uint32_t r = 0; r < node->out_count; r++) {
            out[r] = body->map[node->out[r]] = add_value(f, &body->from->value[node->out[r]], ROLE_RESULT);
            graph->value[out[r]].result = r;
        }
        graph->node[added].out = out;
        graph->node[added].out_count = node->out_count;
        graph->node[added].mark = node->mark;
        copy = emit(f, added);
    }
    copy->in = arena_copy(graph->module->arena, in, node->in_count * sizeof *in);
}

static void lay_out(Flattener *f, const Body *body)
{
    FlatBody flat = {body->from, body->map, body->from->value_count};
    if (f->bodies)
        ARENA_PUSH(f->arena, f->bodies->at, f->bodies->count, f->bodies->capacity, flat);
    uint32_t count = body->from->node_count; /* the graph's own list grows */
    for (NodeId n = 0; n < count; n++) {
        const Node node = body->from->node[n];
        if (node.dead)
            continue;
        if (node_is_loop(&node))
            lay_out_loop(f, body, &node);
        else if (node_is_choice(&node))
            lay_out_branches(f, body, &node);
        else
            lay_out_node(f, body, &body->from->node[n]);
    }
}

/* Results of nodes that are gone have no producer. */
static void link_results(Graph *graph)
{
    for (ValueId v = 0; v < graph->value_count; v++)
        if (graph->value[v].role == ROLE_RESULT)
            graph->value[v].node = NONE;
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t r = 0; r < graph->node[n].out_count; r++)
            graph->value[graph->node[n].out[r]].node = n;
}

void kernel_flatten(Graph *graph, Arena *scratch, FlatBodies *bodies)
{
    if (!graph_has_bodies(graph) && !bodies)
        return;
    Flattener f = {.graph = graph,
                   .arena = graph->module->arena,
                   .names.taken = {.arena = scratch},
                   .bodies = bodies,
                   .leaves = graph_live_out(graph, scratch)};
    uint32_t values = graph->value_count;
    Body body = {graph, ARENA_ARRAY(f.arena, ValueId, values)};
    for (ValueId v = 0; v < values; v++) {
        body.map[v] = v;
        if (graph->value[v].name.len)
            map_add(&f.names.taken, graph->value[v].name, v);
    }
    lay_out(&f, &body);
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = body.map[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++)
        graph->update[i].source = body.map[graph->update[i].source];
    graph->node = f.order;
    graph->node_count = f.count;
    graph->node_capacity = f.capacity;
    link_results(graph);
}
