/* Tapes of some rounds.
 *
 * A loop that is differentiated writes what each round begins with on a tape (grad_tape.c).  As a loop of loops it
 * writes what each of these begins with: the gradient of the outer loop computes one inner loop again at a time, along
 * a tape of its own rounds.  So of n rounds about the m-th root of n is on each of m tapes, and each round is computed
 * m - 1 times more. */
#include "ops/control.h"
#include "ops/family.h"
#include "passes/remat.h"
#include "passes/rounds.h"

#define LEAST_ROUNDS 4 /* of a loop that is nested */
#define MOST_LEVELS  3

typedef struct Nest {
    Arena *scratch;
    Loop loop;
    const Node *node; /* as it is */
    bool counts;      /* rounds are carried, as the last: the bound would not hold otherwise */
} Nest;

/* What is carried, and captured, and the count between them; in[]: those that the loop knows. */
static Graph *open_body(const Nest *nest, const Graph *old, ValueId *in, ValueId *count)
{
    Graph *body = graph_new(old->module, old->name);
    body->place = old->place;
    for (uint32_t i = 0; i < old->input_count; i++) {
        const Value *like = &old->value[old->input[i]];
        if (nest->counts && i == nest->loop.carried)
            *count = graph_add_input(body, module_plain_type(old->module, DT_I64, 0, NULL), (Str){0}, old->place);
        in[i] = graph_add_input(body, like->type, like->name, like->place);
    }
    if (nest->counts && old->input_count == nest->loop.carried)
        *count = graph_add_input(body, module_plain_type(old->module, DT_I64, 0, NULL), (Str){0}, old->place);
    return body;
}

static Graph *condition(const Nest *nest)
{
    const Graph *old = nest->loop.condition;
    ValueId *in = ARENA_ARRAY(nest->scratch, ValueId, old->input_count + 1), count = NONE, holds;
    Graph *body = open_body(nest, old, in, &count);
    Place place = nest->node->place;
    graph_append_body(body, old, in, &holds);
    if (nest->counts) {
        ValueId more = op_build2(body, OP_LT, count, graph_add_scalar(body, DT_I64, (double)nest->loop.most), place);
        holds = op_build2(body, OP_AND, holds, more, place);
    }
    graph_add_output(body, holds, old->output[0].name);
    return body;
}

/* One round. */
static Graph *round_body(const Nest *nest)
{
    const Graph *old = nest->loop.body;
    ValueId *in = ARENA_ARRAY(nest->scratch, ValueId, old->input_count + 1), count = NONE;
    ValueId *out = ARENA_ARRAY(nest->scratch, ValueId, old->output_count + 1);
    Graph *body = open_body(nest, old, in, &count);
    graph_append_body(body, old, in, out);
    for (uint32_t i = 0; i < old->output_count; i++)
        graph_add_output(body, out[i], old->output[i].name);
    if (nest->counts)
        graph_add_output(body, op_build2(body, OP_ADD, count, graph_add_scalar(body, DT_I64, 1), nest->node->place),
                         (Str){0});
    return body;
}

static Loop loop_like(const Nest *nest, int64_t most, Graph *body)
{
    return (Loop){.carried = nest->loop.carried + nest->counts,
                  .captured = nest->loop.captured,
                  .most = most,
                  .condition = condition(nest),
                  .body = body};
}

/* A round of the outer loop: the inner one. */
static Graph *outer_body(const Nest *nest, int64_t rounds, uint32_t levels)
{
    const Graph *old = nest->loop.body;
    ValueId *in = ARENA_ARRAY(nest->scratch, ValueId, old->input_count + 1), count = NONE;
    Graph *body = open_body(nest, old, in, &count);
    Loop loop = loop_like(nest, rounds, round_body(nest));
    NodeId inner = op_build_loop(body, &loop, body->input, nest->node->place);
    if (levels > 1)
        remat_nest(body, inner, rounds, levels - 1, nest->scratch);
    for (uint32_t i = 0; i < loop.carried; i++)
        graph_add_output(body, body->node[inner].out[i], i < old->output_count ? old->output[i].name : (Str){0});
    return body;
}

/* The least whose power is at least so much. */
static int64_t root(int64_t of, uint32_t power)
{
    for (int64_t base = 1;; base++) {
        int64_t left = of;
        for (uint32_t i = 0; i < power; i++)
            left = (left + base - 1) / base;
        if (left == 1)
            return base;
    }
}

void remat_nest(Graph *graph, NodeId n, int64_t rounds, uint32_t levels, Arena *scratch)
{
    const Node old = graph->node[n];
    Nest nest = {.scratch = scratch, .loop = loop_of(graph, &old), .node = &old};
    int64_t outer = root(rounds, levels + 1);
    int64_t inner = (rounds + outer - 1) / outer;
    if (outer < 2 || inner < 2 || !nest.loop.condition)
        return;
    nest.counts = nest.loop.most && nest.loop.most % inner != 0;
    uint32_t own = nest.loop.carried;
    ValueId *in = ARENA_ARRAY(scratch, ValueId, old.in_count + 1);
    for (uint32_t i = 0; i < old.in_count; i++)
        in[i < own ? i : i + nest.counts] = old.in[i];
    if (nest.counts)
        in[own] = graph_add_scalar(graph, DT_I64, 0);
    Loop loop = loop_like(&nest, (rounds + inner - 1) / inner, outer_body(&nest, inner, levels));
    NodeId made = op_build_loop(graph, &loop, in, old.place);
    Node node = graph->node[made];
    graph->node_count--;
    for (uint32_t i = 0; i < own; i++)
        node.out[i] = old.out[i];
    node.from = old.from;
    for (uint32_t i = 0; i < node.out_count; i++)
        graph->value[node.out[i]].node = n;
    graph->node[n] = node;
}

/* Per node: a gradient is asked for of what hangs on it. */
static bool *differentiated(const Graph *graph, Arena *scratch)
{
    bool *needed = ARENA_ARRAY(scratch, bool, graph->value_count), *is = ARENA_ARRAY(scratch, bool, graph->node_count);
    for (NodeId n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        if (!node->dead && node_is_gradient(node))
            needed[node->in[0]] = true;
        for (uint32_t i = 0; i < node->out_count; i++)
            is[n] |= needed[node->out[i]];
        for (uint32_t i = 0; i < node->in_count && is[n]; i++)
            needed[node->in[i]] = true;
    }
    return is;
}

/* Rounds of a loop that can be nested; 0: it cannot. */
static int64_t rounds_of(Graph *graph, NodeId n, const PassContext *context)
{
    const Node *node = &graph->node[n];
    int64_t rounds =
        !node->dead && node_is_loop(node) && loop_of(graph, node).condition ? rounds_bound(graph, node, context) : 0;
    return rounds >= LEAST_ROUNDS ? rounds : 0;
}

/* What nobody reads of a loop would be carried by all that it becomes. */
void remat_rounds(Graph *graph, uint32_t levels, PassContext *context)
{
    pass_dce(graph, context);
    const bool *is = differentiated(graph, context->scratch);
    for (NodeId n = 0; n < graph->node_count; n++) {
        int64_t rounds = is[n] ? rounds_of(graph, n, context) : 0;
        if (rounds)
            remat_nest(graph, n, rounds, levels, context->scratch);
    }
}

uint32_t remat_levels(Graph *graph, const PassContext *context)
{
    const bool *is = differentiated(graph, context->scratch);
    int64_t most = 0;
    uint32_t levels = 0;
    for (NodeId n = 0; n < graph->node_count; n++) {
        int64_t rounds = is[n] ? rounds_of(graph, n, context) : 0;
        most = rounds > most ? rounds : most;
    }
    while (levels < MOST_LEVELS && INT64_C(1) << (levels + 2) <= most)
        levels++;
    return levels;
}
