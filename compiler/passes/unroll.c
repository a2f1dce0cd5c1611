/* Several rounds in one, for loops that ask: `unroll = 4`.
 * Needs: a verified graph, expanded.  Keeps: what the loop gives, and its bound of rounds.
 * Where the rounds are known, what does not divide by the number asked for runs before the loop, in which the body
 * stands as often as asked.  Where they are not, each further body stands in a branch on the condition; a `do` whose
 * bound does not divide stays as it is.  What the second body before the loop computes is called x_2. */
#include "passes/pass.h"

#include <string.h>

#include "base/names.h"
#include "ops/control.h"
#include "ops/family.h"
#include "passes/rounds.h"

#define MOST_NODES ((int64_t)1 << 20) /* of an unrolled body */
#define WORK       ((int64_t)1 << 22) /* to count rounds */

/* A loop being unrolled, into some graph: values there that its operands are, of which the carried ones go round. */
typedef struct Unroller {
    Loop loop;
    Place place;
    uint32_t outputs; /* of the body: a `do` has its condition, too */
    bool known;       /* how many rounds there are: no round needs a test */
} Unroller;

/* The branch for when the condition fails: everything stays, and stays so. */
static Graph *rest_branch(const Unroller *u)
{
    const Graph *body = u->loop.body;
    Graph *rest = graph_new(body->module, body->name);
    for (uint32_t i = 0; i < body->input_count; i++)
        graph_add_input(rest, value_type(body, body->input[i]), (Str){0}, u->place);
    for (uint32_t i = 0; i < u->loop.carried; i++)
        graph_add_output(rest, rest->input[i], (Str){0});
    if (u->outputs > u->loop.carried)
        graph_add_output(rest, graph_add_scalar(rest, DT_BOOL, 0), (Str){0});
    return rest;
}

/* if (condition) { body } else { as it is } */
static void append_tested(const Unroller *u, Graph *graph, const ValueId *in, ValueId *out)
{
    static const int64_t key = 1;
    uint32_t operands = u->loop.carried + u->loop.captured;
    ValueId *all = ARENA_ARRAY(graph->module->arena, ValueId, operands + 1);
    Graph *branch[] = {graph_clone(u->loop.body), rest_branch(u)};
    Branches branches = {.keys = 1, .key = &key, .captured = operands};

    memcpy(all + 1, in, operands * sizeof *in);
    if (u->loop.condition)
        graph_append_body(graph, u->loop.condition, in, all);
    else
        all[0] = out[u->loop.carried]; /* of the round before */
    NodeId node = op_build_choice(graph, &branches, all, branch, u->place);
    memcpy(out, graph->node[node].out, u->outputs * sizeof *out);
}

/* Rounds one after another; in[] has the operands, and the carried values of the end afterwards. */
static void append_rounds(const Unroller *u, Graph *graph, ValueId *in, ValueId *out, int64_t rounds, bool first_runs)
{
    for (int64_t i = 0; i < rounds; i++) {
        if (u->known || (first_runs && i == 0))
            graph_append_body(graph, u->loop.body, in, out);
        else
            append_tested(u, graph, in, out);
        memcpy(in, out, u->loop.carried * sizeof *in);
    }
}

static Graph *unrolled_body(const Unroller *u, Arena *scratch)
{
    const Graph *body = u->loop.body;
    Graph *unrolled = graph_new(body->module, body->name);
    ValueId *in = ARENA_ARRAY(scratch, ValueId, body->input_count);
    ValueId *out = ARENA_ARRAY(scratch, ValueId, u->outputs);

    for (uint32_t i = 0; i < body->input_count; i++) {
        const Value *input = &body->value[body->input[i]];
        in[i] = graph_add_input(unrolled, input->type, input->name, input->place);
    }
    append_rounds(u, unrolled, in, out, u->loop.unroll, true);
    for (uint32_t i = 0; i < u->outputs; i++)
        graph_add_output(unrolled, out[i], body->output[i].name);
    return unrolled;
}

/* The loop that remains, of `rounds` at most, or of an unknown number when that is 0. */
static void append_loop(const Unroller *u, Graph *graph, ValueId *in, int64_t rounds, Arena *scratch)
{
    Loop loop = u->loop;
    loop.body = unrolled_body(u, scratch);
    loop.most = rounds;
    loop.unroll = 0;
    NodeId node = op_build_loop(graph, &loop, in, u->place);
    memcpy(in, graph->node[node].out, loop.carried * sizeof *in);
}

/* Appends what stands in the loop's stead; in[] has its operands, then its results. */
static void unroll(const Unroller *u, Graph *graph, ValueId *in, int64_t rounds, Arena *scratch)
{
    int64_t times = u->loop.unroll, most = u->known ? rounds : u->loop.most;
    ValueId *out = ARENA_ARRAY(scratch, ValueId, u->outputs);
    bool ends = u->known && most <= times;
    append_rounds(u, graph, in, out, ends ? most : most % times, false);
    if (!ends && (most == 0 || most >= times))
        append_loop(u, graph, in, most / times, scratch);
}

static int64_t node_total(const Graph *graph)
{
    int64_t total = graph->node_count;
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; s < graph->node[n].sub_count; s++)
            total += node_total(graph->node[n].sub[s]);
    return total;
}

static bool start(Unroller *u, Graph *graph, const Node *node, PassContext *context, int64_t *rounds)
{
    int64_t work = WORK;
    if (!node_is_loop(node))
        return false;
    *u = (Unroller){.loop = loop_of(graph, node), .place = node->place};
    u->outputs = u->loop.body->output_count;
    if (u->loop.unroll < 2)
        return false;
    if (u->loop.unroll > MOST_NODES / (node_total(u->loop.body) + 1)) {
        diag_warning(graph->module->diag, u->place,
                     "this loop is not unrolled: %lld rounds in one have more than %lld nodes",
                     (long long)u->loop.unroll, (long long)MOST_NODES);
        return false;
    }
    u->known = constant_rounds(graph, node, context, &work, rounds);
    if (u->known || u->loop.condition || u->loop.most % u->loop.unroll == 0)
        return true;
    diag_warning(graph->module->diag, u->place, "this loop is not unrolled: its max of %lld is no multiple of %lld",
                 (long long)u->loop.most, (long long)u->loop.unroll);
    return false;
}

static void name_results(Graph *graph, const Node *node, const ValueId *by, ValueId *map)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        Value *from = &graph->value[node->out[i]], *to = &graph->value[by[i]];
        map[node->out[i]] = by[i];
        if (to->role == ROLE_RESULT && from->name.len)
            to->name = from->name;
        from->name = (Str){0};
        from->node = NONE;
    }
}

/* From `first` on, several values may come from one of the body. */
static void tell_apart(Graph *graph, Names *names, ValueId first)
{
    for (ValueId v = first; v < graph->value_count; v++)
        if (graph->value[v].name.len)
            graph->value[v].name = names_add(names, graph->module->arena, graph->value[v].name, '_', v);
}

static bool has_work(const Graph *graph)
{
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead && node_is_loop(&graph->node[n]) && loop_of(graph, &graph->node[n]).unroll > 1)
            return true;
    return false;
}

static void renew_ends(Graph *graph, const ValueId *map)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = map[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++)
        graph->update[i].source = map[graph->update[i].source];
}

bool pass_unroll(Graph *graph, PassContext *context)
{
    uint32_t values = graph->value_count, nodes = graph->node_count;
    if (!has_work(graph))
        return true;
    const Node *old = arena_copy(context->scratch, graph->node, nodes * sizeof *old);
    ValueId *map = ARENA_ARRAY(context->scratch, ValueId, values);
    Names names = {.taken = {.arena = context->scratch}};
    for (ValueId v = 0; v < values; v++) {
        map[v] = v;
        if (graph->value[v].name.len)
            map_add(&names.taken, graph->value[v].name, v);
    }

    graph->node_count = 0;
    for (NodeId n = 0; n < nodes; n++) {
        Unroller u;
        int64_t rounds = 0;
        if (old[n].dead)
            continue;
        for (uint32_t i = 0; i < old[n].in_count; i++)
            old[n].in[i] = map[old[n].in[i]];
        if (!start(&u, graph, &old[n], context, &rounds)) {
            graph_append_node(graph, &old[n]);
            continue;
        }
        ValueId *in = arena_copy(context->scratch, old[n].in, old[n].in_count * sizeof *in);
        ValueId first = graph->value_count;
        unroll(&u, graph, in, rounds, context->scratch);
        tell_apart(graph, &names, first);
        name_results(graph, &old[n], in, map);
        context->changes++;
    }
    renew_ends(graph, map);
    return true;
}
