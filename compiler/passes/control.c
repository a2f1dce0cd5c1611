/* Loops and branches that are known when compiling.
 * Needs: a verified graph, expanded; folded, to find more.  Keeps: the order of nodes.
 * A branch on a constant becomes the sub-graph that it chooses.  A loop whose condition hangs on constants and runs no
 * round becomes its first values, one of a single round its body; one that hangs on constants alone is evaluated.  All
 * of that is tried with a bounded amount of work: a loop that takes more, or does not end, stays.
 * What a loop carries unchanged it captures instead, and numbers that are captured become numbers inside. */
#include "passes/pass.h"

#include <string.h>

#include "ops/control.h"
#include "ops/family.h"
#include "passes/rounds.h"

#define WORK_PER_LOOP  ((int64_t)1 << 22) /* scalar operations and elements, about */
#define WORK_PER_GRAPH ((int64_t)1 << 25)

typedef struct Resolver {
    Graph *graph; /* its node array is the new schedule, still growing */
    PassContext *context;
    ValueId *map; /* what has become of the values there were at the start */
    int64_t work;
    uint32_t resolved;
} Resolver;

/* Replacing */

static void replace_result(Resolver *r, ValueId old, ValueId by)
{
    Value *from = &r->graph->value[old], *to = &r->graph->value[by];
    r->map[old] = by;
    if (to->role == ROLE_RESULT && from->name.len) {
        to->name = from->name;
        to->place = from->place;
    }
    from->name = (Str){0};
    from->node = NONE;
}

/* The body stands in place of the node. */
static void inline_body(Resolver *r, const Node *node, const Graph *body, const ValueId *in)
{
    ValueId *out = ARENA_ARRAY(r->context->scratch, ValueId, body->output_count);
    graph_append_body(r->graph, body, in, out);
    for (uint32_t i = 0; i < node->out_count; i++)
        replace_result(r, node->out[i], out[i]);
}

/* Branches */

static bool resolve_choice(Resolver *r, const Node *node)
{
    const Tensor *selector = constant_tensor(r->graph, node->in[0], r->context);
    if (!selector)
        return false;
    Branches branches = branches_of(r->graph, node);
    inline_body(r, node, node->sub[branches_select(&branches, (int64_t)tensor_number(selector, 0))], node->in + 1);
    return true;
}

/* Loops */

/* A carried value that each round hands on: bodies read its first value, which is captured. */
static void capture_unchanged(Resolver *r, Node *node)
{
    Loop loop = loop_of(r->graph, node);
    bool *drop = ARENA_ARRAY(r->context->scratch, bool, node->in_count + loop.carried);
    uint32_t dropped = 0;
    for (uint32_t i = 0; i < loop.carried && dropped + 1 < loop.carried; i++) {
        drop[i] = loop.body->output[i].value == loop.body->input[i];
        if (!drop[i])
            continue;
        uint32_t operand = node_capture(r->graph, node, node->in[i]);
        for (uint32_t s = 0; s < node->sub_count; s++) {
            Graph *body = node->sub[s];
            ValueId *map = ARENA_ARRAY(r->context->scratch, ValueId, body->value_count);
            for (ValueId v = 0; v < body->value_count; v++)
                map[v] = v == body->input[i] ? body->input[operand] : v;
            graph_replace(body, map);
        }
        dropped++;
    }
    for (uint32_t i = 0; dropped && i < loop.carried; i++)
        if (drop[i])
            replace_result(r, node->out[i], node->in[i]);
    if (dropped)
        node_drop(r->graph, node, drop);
    r->resolved += dropped;
}

static int64_t take_work(Resolver *r)
{
    int64_t work = r->work < WORK_PER_LOOP ? r->work : WORK_PER_LOOP;
    r->work -= work;
    return work;
}

/* Runs a loop of constants; it has been appended as the last node, and is dead afterwards. */
static bool evaluate_loop(Resolver *r, const Node *node)
{
    Arena scratch = {0};
    const Tensor **in = ARENA_ARRAY(&scratch, const Tensor *, node->in_count);
    Tensor **out = ARENA_ARRAY(&scratch, Tensor *, node->out_count);
    NodeId last = r->graph->node_count - 1;
    int64_t work = take_work(r);
    bool known = true;

    for (uint32_t i = 0; known && i < node->in_count; i++)
        known = (in[i] = constant_tensor(r->graph, node->in[i], r->context)) != NULL;
    known = known && eval_node_within(r->graph, last, &scratch, in, out, &work);
    for (uint32_t i = 0; known && i < node->out_count; i++) {
        Tensor *kept = tensor_new(r->graph->module->arena, out[i]->type);
        memcpy(kept->data, out[i]->data, (size_t)type_bytes(kept->type));
        Str name = kept->type->shape.rank ? r->graph->value[node->out[i]].name : (Str){0};
        replace_result(r, node->out[i], graph_add_const(r->graph, kept, name, node->place));
    }
    r->work += work > 0 ? work : 0;
    r->graph->node[last].dead = known;
    arena_free(&scratch);
    return known;
}

/* A loop of so many rounds needs no condition, and then perhaps no counter. */
static void count_rounds(Resolver *r, Node *node, Loop *loop, int64_t rounds)
{
    Graph *tests = loop->condition ? loop->condition : loop->body;
    ValueId *holds = &tests->output[tests->output_count - 1].value;
    if (tests->value[*holds].role == ROLE_CONST)
        return;
    *holds = graph_add_scalar(tests, DT_BOOL, 1);
    loop->most = rounds;
    loop_set(r->graph, node, loop);
    r->context->changes++;
}

static bool resolve_rounds(Resolver *r, Node *node)
{
    Loop loop = loop_of(r->graph, node);
    int64_t rounds, work = take_work(r);
    bool known = constant_rounds(r->graph, node, r->context, &work, &rounds);
    r->work += work > 0 ? work : 0;
    if (!known && loop.most == 1 && !loop.condition)
        known = (rounds = 1);
    if (known && rounds > 1)
        count_rounds(r, node, &loop, rounds);
    if (!known || rounds > 1)
        return false;
    if (rounds == 1)
        inline_body(r, node, loop.body, node->in);
    for (uint32_t i = 0; rounds == 0 && i < node->out_count; i++)
        replace_result(r, node->out[i], node->in[i]);
    return true;
}

/* The whole */

static void resolve_node(Resolver *r, Node *node)
{
    bool loops = node_is_loop(node);
    if (loops)
        capture_unchanged(r, node);
    if (loops ? resolve_rounds(r, node) : resolve_choice(r, node)) {
        r->resolved++;
        return;
    }
    graph_append_node(r->graph, node);
    if (loops)
        r->resolved += evaluate_loop(r, node);
}

static uint32_t sweep(Graph *graph, PassContext *context, int64_t *work)
{
    uint32_t values = graph->value_count, nodes = graph->node_count;
    Resolver r = {.graph = graph, .context = context, .work = *work};
    Node *old = arena_copy(context->scratch, graph->node, nodes * sizeof *old);
    r.map = ARENA_ARRAY(context->scratch, ValueId, values);
    for (ValueId v = 0; v < values; v++)
        r.map[v] = v;

    graph->node_count = 0;
    for (NodeId n = 0; n < nodes; n++) {
        if (old[n].dead)
            continue;
        for (uint32_t i = 0; i < old[n].in_count; i++)
            old[n].in[i] = r.map[old[n].in[i]];
        if (node_has_bodies(&old[n]))
            resolve_node(&r, &old[n]);
        else
            graph_append_node(graph, &old[n]);
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = r.map[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++)
        graph->update[i].source = r.map[graph->update[i].source];
    graph_compact(graph);
    *work = r.work;
    return r.resolved;
}

/* Captured numbers are read as numbers of the body. */
static void bring_numbers(Graph *graph, const Node *node, Graph *body, Arena *scratch)
{
    uint32_t count = body->value_count, found = 0;
    ValueId *map = ARENA_ARRAY(scratch, ValueId, count + node->in_count);
    for (ValueId v = 0; v < count + node->in_count; v++)
        map[v] = v;
    for (uint32_t i = node_first_captured(graph, node); i < node->in_count; i++) {
        const Value *value = &graph->value[node->in[i]];
        if (value->role != ROLE_CONST || value->type->shape.rank || !value->data->data)
            continue;
        map[body->input[node_input(graph, node, i)]] = graph_add_const(body, value->data, (Str){0}, value->place);
        found++;
    }
    if (found)
        graph_replace(body, map);
}

bool pass_control(Graph *graph, PassContext *context)
{
    int64_t work = WORK_PER_GRAPH;
    uint32_t resolved;
    if (!graph_has_bodies(graph))
        return true;
    do { /* a body that came in may hold what is known now: as often as they nest */
        resolved = sweep(graph, context, &work);
        context->changes += resolved;
    } while (resolved);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; node_has_bodies(&graph->node[n]) && s < graph->node[n].sub_count; s++)
            bring_numbers(graph, &graph->node[n], graph->node[n].sub[s], context->scratch);
    return true;
}
