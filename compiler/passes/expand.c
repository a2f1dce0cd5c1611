/* Expansion of calls and stacks.
 * Needs: a verified graph.  Keeps: the order of nodes; the callees themselves, which calls may share.
 * Replaces each call, also inside other calls, by its body.  Params and states of the body become the graph's own
 * (one of each name), with their initialisers, and so do its updates.  Each node is copied once, however deep it is
 * nested, so the pass is linear in what comes out.  Each node notes which call it comes from, and each call which one
 * it stood in (Graph.inlined).
 * Each minimize becomes a grad, its body, and updates; those of one loss have one grad.
 * Each stack becomes a concat of reshapes, so no later pass and no target needs to know of it.
 * A call of a function with a gradient of its own stays until the pass grad has seen it.
 * Bodies of loops and branches follow, from the outside in: what a call there brings of params, states and arrays
 * becomes the graph's own, too, and is captured. */
#include "passes/pass.h"

#include <string.h>

#include "ops/family.h"
#include "ops/control.h"

typedef struct Expander {
    Graph *graph; /* what all bodies of calls are copied to */
    Arena *scratch;
    Map name;      /* the values of the graph by name: each name once */
    Map minimized; /* losses, to the first gradient of each */
    uint32_t expanded;
    bool all;               /* also calls of functions with gradients of their own, */
    bool some;              /* but for those in functions that ask for gradients: these come next */
    bool failed;            /* an error was reported */
    struct Expander *outer; /* where the graph is a body: of the graph around ... */
    NodeId node;            /* ... its node there */
} Expander;

static Expander open_expander(Graph *graph, Arena *scratch)
{
    return (Expander){.graph = graph, .scratch = scratch, .name = {.arena = scratch}, .minimized = {.arena = scratch}};
}

static bool is_inlined(const Expander *e, const Node *node)
{
    return node_is_call(node) && (e->all || !node_has_gradient(node));
}

/* A concat of the operands with an extent of 1 at the new axis; the reshapes are appended. */
static Node stack_as_concat(Graph *graph, Node stack, uint32_t axis)
{
    Arena *arena = graph->module->arena;
    const Value result = graph->value[stack.out[0]];
    Shape slice = result.type->shape;
    Attr shape = {.i = slice.rank, .ints = slice.dim};
    Node concat = stack;

    slice.dim[axis] = 1;
    concat.op = OP_CONCAT; /* with the same attributes */
    concat.in = ARENA_ARRAY(arena, ValueId, stack.in_count);
    for (uint32_t i = 0; i < stack.in_count; i++) {
        concat.in[i] = op_build(graph, OP_RESHAPE, &stack.in[i], 1, &shape, stack.place);
        graph->value[concat.in[i]].placement = result.placement;
        value_producer(graph, concat.in[i])->from = stack.from;
    }
    return concat;
}

static void expand_bodies(Expander *e, NodeId n);
static bool asks_for_gradients(const Graph *graph);

/* Bodies follow at once: what is behind may speak of the params in them. */
static void append_node(Expander *e, Node node)
{
    Graph *graph = e->graph;
    uint32_t axis;
    if (node_is_stack(graph, &node, &axis))
        node = stack_as_concat(graph, node, axis);
    graph_append_node(graph, &node);
    expand_bodies(e, graph->node_count - 1);
}

/* The graph's value for a param, state or constant of a callee. */
static ValueId own_leaf(Expander *e, const Graph *body, ValueId v)
{
    Graph *graph = e->graph;
    const Value *from = &body->value[v];
    bool shared = from->name.len && from->role != ROLE_CONST;
    if (shared) {
        uint32_t known = map_get(&e->name, from->name);
        if (known != MAP_NONE && graph->value[known].role == from->role && graph->value[known].type == from->type)
            return known;
    }

    Str name = from->name;
    if (from->role == ROLE_CONST && map_get(&e->name, name) != MAP_NONE)
        name = (Str){0};
    ValueId to = graph_add_value(graph, from->role, from->type, name, from->place);
    graph->value[to].data = from->data;
    graph->value[to].drawn = from->drawn;
    graph->value[to].bits = from->bits;
    graph->value[to].placement = from->placement;
    if (from->initial != NONE) {
        const Node *initial = &body->initial[from->initial];
        graph->value[to].initial = graph_add_initial(graph, initial->op, initial->attr, initial->place);
        graph->initial[graph->value[to].initial].out_count = initial->out_count;
    }
    if (name.len)
        map_add(&e->name, name, to);
    return to;
}

/* The same where the graph is a body: but for plain numbers, the leaf belongs to the outermost graph, and is captured
 * by all bodies between.  Recurses over the nesting. */
static ValueId import_leaf(Expander *e, const Graph *body, ValueId v)
{
    bool number = body->value[v].role == ROLE_CONST && body->value[v].type->shape.rank == 0;
    if (!e->outer || number)
        return own_leaf(e, body, v);
    Graph *outer = e->outer->graph;
    ValueId leaf = import_leaf(e->outer, body, v);
    Node *node = &outer->node[e->node];
    uint32_t operand = node_capture(outer, node, leaf);
    return e->graph->input[node_input(outer, node, operand)];
}

/* `layer1.dense.name`, after the labels of the calls, as params inside are called; a call without a label goes by its
 * function.  Where something else is called so, the value is a temporary. */
static Str inner_name(Expander *e, Str prefix, Str name)
{
    if (!name.len)
        return (Str){0};
    Str full = str_format(e->graph->module->arena, STR_FMT STR_FMT, STR_ARG(prefix), STR_ARG(name));
    return map_get(&e->name, full) == MAP_NONE ? full : (Str){0};
}

static void copy_node(Expander *e, const Graph *body, const Node *from, ValueId *map, Str prefix, uint32_t inlined)
{
    Graph *graph = e->graph;
    Arena *arena = graph->module->arena;
    Node node = *from;

    node.from = inlined;
    node.in = ARENA_ARRAY(arena, ValueId, node.in_count);
    node.out = ARENA_ARRAY(arena, ValueId, node.out_count);
    for (uint32_t i = 0; i < node.in_count; i++)
        node.in[i] = map[from->in[i]];
    for (uint32_t i = 0; i < node.out_count; i++) {
        const Value *result = &body->value[from->out[i]];
        Str name = inner_name(e, prefix, result->name);
        node.out[i] = graph_add_value(graph, ROLE_RESULT, result->type, name, result->place);
        graph->value[node.out[i]].placement = result->placement;
        if (name.len)
            map_add(&e->name, name, node.out[i]);
        map[from->out[i]] = node.out[i];
    }
    if (node_has_bodies(&node)) { /* which calls may share */
        node.sub = ARENA_ARRAY(arena, Graph *, node.sub_count);
        for (uint32_t i = 0; i < node.sub_count; i++)
            node.sub[i] = graph_clone(from->sub[i]);
    }
    append_node(e, node);
}

/* What a call's result is called is the better name for the value that computes it. */
static void rename_result(Expander *e, ValueId value, Str name, Place place)
{
    Value *target = &e->graph->value[value];
    if (target->role != ROLE_RESULT || !name.len)
        return;
    target->name = name;
    target->place = place;
    map_add(&e->name, name, value);
}

/* Appends what stands in the body of a call to the graph, from its inputs; gives what its values are there. */
static const ValueId *expand_body(Expander *e, const Graph *body, const ValueId *input, Str prefix, uint32_t inlined);

static void add_update(Expander *e, ValueId target, ValueId source, Place place)
{
    Graph *graph = e->graph;
    for (uint32_t i = 0; i < graph->update_count; i++)
        if (graph->update[i].target == target) {
            diag_error(graph->module->diag, place, "'" STR_FMT "' is updated already",
                       STR_ARG(value_show(graph, target)));
            diag_note(graph->module->diag, graph->update[i].place, "the other update");
            e->failed = true;
            return;
        }
    graph_add_update(graph, target, source, place);
}

/* Numbers behind the gradients that need none of them, such as the count of steps, come before them, so that an update
 * by them can be the tail of the kernel that makes a gradient. */
static void advance(Expander *e, NodeId grad)
{
    Graph *graph = e->graph;
    bool *late = ARENA_ARRAY(e->scratch, bool, graph->value_count);
    Node *behind = ARENA_ARRAY(e->scratch, Node, graph->node_count - grad);
    NodeId next = grad;
    uint32_t count = 0;
    for (NodeId n = grad; n < graph->node_count; n++) {
        Node node = graph->node[n];
        bool waits = n == grad;
        for (uint32_t i = 0; i < node.in_count; i++)
            waits |= late[node.in[i]];
        for (uint32_t i = 0; i < node.out_count; i++)
            waits |= shape_elements(value_shape(graph, node.out[i])) != 1;
        for (uint32_t i = 0; i < node.out_count; i++)
            late[node.out[i]] = waits;
        if (waits)
            behind[count++] = node;
        else
            graph->node[next++] = node;
    }
    memcpy(graph->node + next, behind, count * sizeof *behind);
    for (NodeId n = grad; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].out_count; i++)
            graph->value[graph->node[n].out[i]].node = n;
}

/* More results of a grad, for the operands behind those that it has. */
static void widen_grad(Graph *graph, NodeId grad, const ValueId *wrt, uint32_t count)
{
    Arena *arena = graph->module->arena;
    Node *node = &graph->node[grad];
    ValueId *in = ARENA_ARRAY(arena, ValueId, node->in_count + count);
    ValueId *out = ARENA_ARRAY(arena, ValueId, node->out_count + count);
    memcpy(in, node->in, node->in_count * sizeof *in);
    memcpy(in + node->in_count, wrt, count * sizeof *in);
    memcpy(out, node->out, node->out_count * sizeof *out);
    node->in = in;
    node->out = out;
    node->in_count += count;
    for (uint32_t i = 0; i < count; i++) {
        ValueId v = out[node->out_count] =
            graph_add_value(graph, ROLE_RESULT, value_type(graph, wrt[i]), (Str){0}, node->place);
        graph->value[v].node = grad;
        graph->value[v].result = node->out_count++;
    }
}

/* The grad of the loss, whose last results are those with respect to the params: one for all that minimize it, so that
 * what their gradients share is computed once. */
static NodeId add_grad(Expander *e, ValueId loss, const ValueId *param, uint32_t count, Place place, uint32_t around)
{
    Graph *graph = e->graph;
    Str key = map_key(&loss, sizeof loss);
    uint32_t known = map_get(&e->minimized, key);
    if (known != MAP_NONE) {
        widen_grad(graph, graph->value[known].node, param, count);
        return graph->value[known].node;
    }
    ValueId *in = ARENA_ARRAY(e->scratch, ValueId, count + 1);
    in[0] = loss;
    memcpy(in + 1, param, count * sizeof *in);
    ValueId first = op_build(graph, OP_GRAD, in, count + 1, NULL, place);
    graph->node[graph->value[first].node].from = around;
    map_put(&e->minimized, str_copy(e->scratch, key), first);
    return graph->value[first].node;
}

/* The gradients of the loss with respect to the params, then the body, and the updates.  `map` takes values of the
 * graph that the node stands in. */
static void expand_minimize(Expander *e, const Node *node, const ValueId *map, Str prefix, uint32_t around)
{
    Graph *graph = e->graph;
    const Graph *body = node->sub[0];
    uint32_t params = body->output_count;
    ValueId *input = ARENA_ARRAY(e->scratch, ValueId, body->input_count);
    for (uint32_t i = 0; i < params; i++)
        input[i] = map_get(&e->name, value_show(body, body->input[i]));
    NodeId grad = add_grad(e, map[node->in[0]], input, params, node->place, around);
    for (uint32_t i = 0; i < params; i++)
        input[params + i] = graph->node[grad].out[graph->node[grad].out_count - params + i];
    for (uint32_t i = 1; i < node->in_count; i++)
        input[2 * params + i - 1] = map[node->in[i]];
    const ValueId *inner = expand_body(e, body, input, prefix, around);
    advance(e, grad);
    for (uint32_t i = 0; i < params; i++)
        add_update(e, input[i], inner[body->output[i].value], node->place);
    e->expanded++;
}

static uint32_t note_call(Graph *graph, const Node *call, uint32_t outer)
{
    Inlined inlined = {call->call, outer, call->place};
    ARENA_PUSH(graph->module->arena, graph->inlined, graph->inlined_count, graph->inlined_capacity, inlined);
    return graph->inlined_count - 1;
}

/* A recipe that is asked for of a call is one for the kernel that makes its first result. */
static void hand_on_mark(Expander *e, const Node *call, ValueId result, NodeId first)
{
    Graph *graph = e->graph;
    Node *maker = value_producer(graph, result);
    if (!call->mark)
        return;
    if (!maker || graph->value[result].node < first) {
        diag_error(graph->module->diag, call->mark->place, "this call computes nothing that a recipe could be for");
        e->failed = true;
        return;
    }
    maker->kernel = call->kernel;
    maker->mark = call->mark;
}

/* Appends the body of `call` to the graph; `map` takes values of the caller, where the call's results get theirs.
 * `around` is the call in whose body this one stands, in Graph.inlined. */
static void expand_call(Expander *e, const Node *call, ValueId *map, Str outer, uint32_t around)
{
    const Graph *body = call->sub[0];
    Str label = call->call->label.len ? call->call->label : call->call->name;
    Str prefix = str_format(e->scratch, STR_FMT STR_FMT ".", STR_ARG(outer), STR_ARG(label));
    ValueId *input = ARENA_ARRAY(e->scratch, ValueId, call->in_count);
    for (uint32_t i = 0; i < call->in_count; i++)
        input[i] = map[call->in[i]];
    NodeId first = e->graph->node_count;
    bool all = e->all;
    e->all &= !e->some || !asks_for_gradients(body);
    const ValueId *inner = expand_body(e, body, input, prefix, note_call(e->graph, call, around));
    e->all = all;
    for (uint32_t i = 0; i < call->out_count; i++)
        map[call->out[i]] = inner[body->output[i].value];
    if (call->out_count)
        hand_on_mark(e, call, map[call->out[0]], first);
    e->expanded++;
}

/* Recurses over the nesting of calls. */
static const ValueId *expand_body(Expander *e, const Graph *body, const ValueId *input, Str prefix, uint32_t inlined)
{
    ValueId *inner = ARENA_ARRAY(e->scratch, ValueId, body->value_count);
    for (ValueId v = 0; v < body->value_count; v++) {
        Role role = body->value[v].role;
        inner[v] = role == ROLE_RESULT || role == ROLE_INPUT ? NONE : import_leaf(e, body, v);
    }
    for (uint32_t i = 0; i < body->input_count; i++)
        inner[body->input[i]] = input[i];
    for (NodeId n = 0; n < body->node_count; n++) {
        const Node *node = &body->node[n];
        if (node->dead)
            continue;
        if (node_is_minimize(node)) {
            expand_minimize(e, node, inner, prefix, inlined);
            continue;
        }
        if (!is_inlined(e, node)) {
            copy_node(e, body, node, inner, prefix, inlined);
            continue;
        }
        expand_call(e, node, inner, prefix, inlined);
        for (uint32_t i = 0; i < node->out_count; i++) {
            const Value *result = &body->value[node->out[i]];
            rename_result(e, inner[node->out[i]], inner_name(e, prefix, result->name), result->place);
        }
    }
    for (uint32_t i = 0; i < body->update_count; i++)
        add_update(e, inner[body->update[i].target], inner[body->update[i].source], body->update[i].place);
    return inner;
}

/* The graph's own call: its results take their values from the body, and hand on their names. */
static void expand_top(Expander *e, const Node *call, ValueId *map)
{
    expand_call(e, call, map, (Str){0}, NONE);
    for (uint32_t i = 0; i < call->out_count; i++) {
        Value *old = &e->graph->value[call->out[i]];
        Str name = old->name;
        old->name = (Str){0};
        rename_result(e, map[call->out[i]], name, old->place);
    }
}

static bool has_work(const Graph *graph)
{
    uint32_t axis;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        if (!node->dead && (node->call || node_is_stack(graph, node, &axis)))
            return true;
    }
    return false;
}

static void expand_own(Expander *e)
{
    Graph *graph = e->graph;
    uint32_t value_count = graph->value_count, node_count = graph->node_count;
    ValueId *map = ARENA_ARRAY(e->scratch, ValueId, value_count);
    for (ValueId v = 0; v < value_count; v++) {
        map[v] = v;
        graph->value[v].owner = NONE;
    }

    const Node *old = arena_copy(e->scratch, graph->node, node_count * sizeof *old);
    graph->node_count = 0;
    for (NodeId n = 0; n < node_count; n++) {
        if (old[n].dead)
            continue;
        if (is_inlined(e, &old[n])) {
            expand_top(e, &old[n], map);
            continue;
        }
        if (node_is_minimize(&old[n])) {
            expand_minimize(e, &old[n], map, (Str){0}, NONE);
            continue;
        }
        for (uint32_t i = 0; i < old[n].in_count; i++)
            old[n].in[i] = map[old[n].in[i]];
        uint32_t axis;
        e->expanded += node_is_stack(graph, &old[n], &axis);
        append_node(e, old[n]);
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = map[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++) /* those from bodies are beyond the map, and right already */
        if (graph->update[i].source < value_count)
            graph->update[i].source = map[graph->update[i].source];
}

/* Recurses over the nesting. */
static void expand_nest(Expander *e)
{
    for (ValueId v = 0; v < e->graph->value_count; v++)
        if (e->graph->value[v].name.len)
            map_add(&e->name, e->graph->value[v].name, v);
    if (has_work(e->graph))
        expand_own(e);
    else
        for (NodeId n = 0; n < e->graph->node_count; n++)
            expand_bodies(e, n);
}

static void expand_bodies(Expander *e, NodeId n)
{
    for (uint32_t s = 0; node_has_bodies(&e->graph->node[n]) && s < e->graph->node[n].sub_count; s++) {
        Expander inner = open_expander(e->graph->node[n].sub[s], e->scratch);
        inner.all = e->all;
        inner.some = e->some;
        inner.outer = e;
        inner.node = n;
        expand_nest(&inner);
        e->expanded += inner.expanded;
        e->failed |= inner.failed;
    }
}

/* The gradient stands alone: it has no leaves but constants. */
Graph *pass_expand_gradient(const Node *call, PassContext *context)
{
    Graph *gradient = graph_clone(call->call->gradient);
    Expander e = open_expander(gradient, context->scratch);
    expand_nest(&e);
    return gradient;
}

/* Is there anything that asks for a gradient?  Calls share callees: each is looked at once. */
static bool asks_within(const Graph *graph, Map *seen)
{
    Str key = map_key(&graph, sizeof graph);
    bool asks = false;
    if (map_get(seen, key) != MAP_NONE)
        return false;
    map_put(seen, str_copy(seen->arena, key), 0);
    for (NodeId n = 0; n < graph->node_count && !asks; n++) {
        const Node *node = &graph->node[n];
        asks = node_is_gradient(node) || node_is_minimize(node);
        for (uint32_t i = 0; i < node->sub_count && !asks; i++)
            asks = asks_within(node->sub[i], seen);
    }
    return asks;
}

static bool asks_for_gradients(const Graph *graph)
{
    Arena arena = {0};
    Map seen = {.arena = &arena};
    bool asks = asks_within(graph, &seen);
    arena_free(&arena);
    return asks;
}

bool pass_expand_rest(Graph *graph, PassContext *context)
{
    Expander e = open_expander(graph, context->scratch);
    e.all = true;
    e.some = asks_for_gradients(graph);
    expand_nest(&e);
    return e.some;
}

bool pass_expand(Graph *graph, PassContext *context)
{
    Expander e = open_expander(graph, context->scratch);
    e.all = !context->in_body && !asks_for_gradients(graph);
    expand_nest(&e);
    context->changes += e.expanded;
    return !e.failed;
}
