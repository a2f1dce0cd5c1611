/* Dead code elimination.
 * Needs: a verified graph.  Keeps: the order of nodes and of values; all inputs of the graph itself.
 * Removes nodes that no output, update or effect reaches, then values that nothing mentions: their results, and
 * params, states and constants that are not read and not updated.  Values are renumbered.
 * Of loops and branches, captured values that no body reads go, results of a branch that nobody reads, and what a loop
 * carries without its condition or a result that is read depending on it; then bodies get the same treatment.
 * What `after` waits for is not read: in the place of what is not there otherwise it waits for what that would be made
 * of. */
#include "passes/pass.h"

#include <string.h>

#include "ops/control.h"
#include "ops/meaning.h"

static void mark_uses(const Node *node, bool *live)
{
    uint32_t read = view_only_waits(node) ? 1 : node->in_count;
    for (uint32_t i = 0; i < read; i++)
        live[node->in[i]] = true;
}

static bool node_is_live(const Node *node, const bool *live)
{
    if (op_info(node->op)->effect != EFFECT_PURE)
        return true;
    for (uint32_t i = 0; i < node->sub_count; i++) /* a call whose body updates a state has an effect */
        if (node->sub[i]->update_count)
            return true;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (live[node->out[i]])
            return true;
    return false;
}

/* What a loop or a branch needs of its bodies */

typedef struct Needed {
    uint32_t sub;
    ValueId value;
} Needed;

typedef struct Need {
    const Graph *graph;
    const Node *node;
    Arena *scratch;
    bool *operand;    /* is read by a body that matters */
    bool **value;     /* per body */
    uint32_t **input; /* per body and value: which operand it is, or NONE */
    Needed *stack;    /* values whose producers are still to be looked at */
    uint32_t count, capacity;
    struct Need ***inner; /* per body and node in it: of a loop or a branch, what it needs; NULL: not looked at */
} Need;

static void need_value(Need *need, uint32_t sub, ValueId v)
{
    if (need->value[sub][v])
        return;
    need->value[sub][v] = true;
    ARENA_PUSH(need->scratch, need->stack, need->count, need->capacity, ((Needed){sub, v}));
}

static void need_output(Need *need, uint32_t sub, uint32_t output)
{
    need_value(need, sub, need->node->sub[sub]->output[output].value);
}

/* A carried value that is needed is needed of the round before. */
static void need_operand(Need *need, uint32_t operand)
{
    if (need->operand[operand])
        return;
    need->operand[operand] = true;
    if (node_is_loop(need->node) && operand < loop_of(need->graph, need->node).carried)
        need_output(need, need->node->sub_count - 1, operand);
}

static void need_inner(Need *need, uint32_t sub, ValueId v);

/* Recurses over the nesting. */
static void follow(Need *need)
{
    while (need->count) {
        uint32_t sub = need->stack[--need->count].sub;
        ValueId v = need->stack[need->count].value;
        const Node *producer = value_producer(need->node->sub[sub], v);
        if (need->input[sub][v] != NONE)
            need_operand(need, need->input[sub][v]);
        if (producer && node_has_bodies(producer)) {
            need_inner(need, sub, v);
            continue;
        }
        for (uint32_t i = 0; producer && i < producer->in_count; i++)
            need_value(need, sub, producer->in[i]);
    }
}

static Need need_start(const Graph *graph, const Node *node, Arena *scratch)
{
    Need need = {.graph = graph, .node = node, .scratch = scratch};
    uint32_t left = node->in_count - node->sub[0]->input_count; /* operands that are no inputs: a selector */
    need.operand = ARENA_ARRAY(scratch, bool, node->in_count);
    need.value = ARENA_ARRAY(scratch, bool *, node->sub_count);
    need.input = ARENA_ARRAY(scratch, uint32_t *, node->sub_count);
    need.inner = ARENA_ARRAY(scratch, Need **, node->sub_count);
    for (uint32_t s = 0; s < node->sub_count; s++) {
        const Graph *body = node->sub[s];
        need.value[s] = ARENA_ARRAY(scratch, bool, body->value_count);
        need.inner[s] = ARENA_ARRAY(scratch, Need *, body->node_count);
        need.input[s] = ARENA_ARRAY(scratch, uint32_t, body->value_count);
        memset(need.input[s], 0xff, body->value_count * sizeof **need.input);
        for (uint32_t i = 0; i < body->input_count; i++)
            need.input[s][body->input[i]] = left + i;
    }
    for (uint32_t i = 0; i < left; i++)
        need.operand[i] = true;
    return need;
}

static void need_result(Need *need, uint32_t result)
{
    const Node *node = need->node;
    if (node_is_loop(node))
        need_operand(need, result);
    for (uint32_t s = 0; !node_is_loop(node) && s < node->sub_count; s++)
        need_output(need, s, result);
}

static void need_condition(Need *need)
{
    if (node_is_loop(need->node))
        need_output(need, 0, need->node->sub[0]->output_count - 1);
}

/* A result of a loop or a branch in the body needs some of its operands. */
static void need_inner(Need *need, uint32_t sub, ValueId v)
{
    const Graph *body = need->node->sub[sub];
    const Node *node = value_producer(body, v);
    Need **inner = &need->inner[sub][node - body->node];
    if (!*inner) {
        *inner = ARENA_NEW(need->scratch, Need);
        **inner = need_start(body, node, need->scratch);
        need_condition(*inner);
    }
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i] == v)
            need_result(*inner, i);
    follow(*inner);
    for (uint32_t i = 0; i < node->in_count; i++)
        if ((*inner)->operand[i])
            need_value(need, sub, node->in[i]);
}

/* Results that are read, and the condition of a loop. */
static void need_results(Need *need, const bool *live)
{
    for (uint32_t i = 0; i < need->node->out_count; i++)
        if (live[need->node->out[i]])
            need_result(need, i);
    need_condition(need);
    follow(need);
}

static bool any_of(const bool *flag, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (flag[i])
            return true;
    return false;
}

static bool drop_operands(Graph *graph, Node *node, const Need *need, PassContext *context)
{
    bool *drop = ARENA_ARRAY(context->scratch, bool, node->in_count);
    for (uint32_t i = 0; i < node->in_count; i++) {
        drop[i] = !need->operand[i];
        context->changes += drop[i];
    }
    if (!any_of(drop, node->in_count))
        return false;
    node_drop(graph, node, drop);
    return true;
}

static bool drop_results(Graph *graph, Node *node, const bool *live, Arena *scratch)
{
    bool *drop = ARENA_ARRAY(scratch, bool, node->out_count);
    for (uint32_t i = 0; i < node->out_count; i++)
        drop[i] = !live[node->out[i]];
    if (node_is_loop(node) || !any_of(drop, node->out_count))
        return false;
    node_drop_results(graph, node, drop);
    return true;
}

/* Bodies first, so that what they do not read is known; again when they give less.  Recurses over the nesting. */
static void shrink(Graph *graph, Node *node, const bool *live, PassContext *context)
{
    for (uint32_t s = 0; s < node->sub_count; s++)
        pass_dce(node->sub[s], context);
    Need need = need_start(graph, node, context->scratch);
    need_results(&need, live);
    bool less = drop_operands(graph, node, &need, context);
    less |= drop_results(graph, node, live, context->scratch);
    for (uint32_t s = 0; less && s < node->sub_count; s++)
        pass_dce(node->sub[s], context);
}

/* The order is topological, so one sweep from the end sees every user before its operand. */
static void remove_nodes(Graph *graph, bool *live, PassContext *context)
{
    for (NodeId n = graph->node_count; n-- > 0;) {
        Node *node = &graph->node[n];
        if (!node->dead && node_is_live(node, live)) {
            if (node_has_bodies(node))
                shrink(graph, node, live, context);
            mark_uses(node, live);
        } else {
            context->changes += !node->dead;
            node->dead = true;
        }
    }
}

#define MOST_WAITS 16 /* that stand for one */

/* What is there of a value that is not: the nearest live ones that it would be made of. */
typedef struct Waits {
    ValueId value[MOST_WAITS];
    uint32_t count;
} Waits;

/* Values are followed once each, though several ways lead to them. */
static const Waits *find_waits(const Graph *graph, ValueId from, const bool *live, Arena *scratch)
{
    Waits *waits = ARENA_NEW(scratch, Waits);
    bool *seen = ARENA_ARRAY(scratch, bool, graph->value_count);
    ValueId *stack = NULL;
    uint32_t count = 0, capacity = 0;
    ARENA_PUSH(scratch, stack, count, capacity, from);
    while (count && waits->count < MOST_WAITS) {
        ValueId v = stack[--count];
        const Node *producer = value_producer(graph, v);
        if (seen[v] || !producer)
            continue;
        seen[v] = true;
        if (live[v])
            waits->value[waits->count++] = v;
        for (uint32_t i = 0; !live[v] && i < producer->in_count; i++)
            ARENA_PUSH(scratch, stack, count, capacity, producer->in[i]);
    }
    return waits;
}

static void drop_waits(Graph *graph, const bool *live, PassContext *context)
{
    const Waits **known = ARENA_ARRAY(context->scratch, const Waits *, graph->value_count);
    for (NodeId n = 0; n < graph->node_count; n++) {
        Node *node = &graph->node[n];
        ValueId *in = NULL;
        uint32_t count = 0, capacity = 0, dead = 0;
        if (!view_only_waits(node) || node->dead)
            continue;
        ARENA_PUSH(context->scratch, in, count, capacity, node->in[0]);
        for (uint32_t i = 1; i < node->in_count; i++) {
            ValueId v = node->in[i];
            if (!live[v] && !known[v])
                known[v] = find_waits(graph, v, live, context->scratch);
            for (uint32_t w = 0; w < (live[v] ? 1 : known[v]->count); w++)
                ARENA_PUSH(context->scratch, in, count, capacity, live[v] ? v : known[v]->value[w]);
            dead += !live[v];
        }
        if (!dead)
            continue;
        if (count == 1) /* for nothing: for what it is */
            ARENA_PUSH(context->scratch, in, count, capacity, node->in[0]);
        node->in = arena_copy(graph->module->arena, in, count * sizeof *in);
        node->in_count = count;
        context->changes += dead;
    }
}

/* All results of a node that stays stay with it. */
static void mark_mentioned(const Graph *graph, bool *live)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        live[graph->input[i]] = true;
    for (uint32_t i = 0; i < graph->update_count; i++)
        live[graph->update[i].target] = true;
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].out_count; i++)
            live[graph->node[n].out[i]] = true;
}

/* A call's own params live as long as the call. */
static void mark_owned(const Graph *graph, bool *live)
{
    for (ValueId v = 0; v < graph->value_count; v++) {
        NodeId owner = graph->value[v].owner;
        if (owner != NONE && !graph->node[owner].dead)
            live[v] = true;
    }
}

static void renumber(ValueId *list, uint32_t count, const ValueId *number)
{
    for (uint32_t i = 0; i < count; i++)
        list[i] = number[list[i]];
}

static void remove_values(Graph *graph, const bool *live, Arena *scratch)
{
    ValueId *number = ARENA_ARRAY(scratch, ValueId, graph->value_count);
    uint32_t kept = 0;
    for (ValueId v = 0; v < graph->value_count; v++) {
        number[v] = live[v] ? kept : NONE;
        if (live[v])
            graph->value[kept++] = graph->value[v];
    }
    if (kept == graph->value_count)
        return;

    graph->value_count = kept;
    for (ValueId v = 0; v < kept; v++)
        if (graph->value[v].inplace != NONE)
            graph->value[v].inplace = number[graph->value[v].inplace];
    for (NodeId n = 0; n < graph->node_count; n++) {
        renumber(graph->node[n].in, graph->node[n].in_count, number);
        renumber(graph->node[n].out, graph->node[n].out_count, number);
    }
    renumber(graph->input, graph->input_count, number);
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = number[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++) {
        graph->update[i].target = number[graph->update[i].target];
        graph->update[i].source = number[graph->update[i].source];
    }
}

bool pass_dce(Graph *graph, PassContext *context)
{
    bool *live = graph_live_out(graph, context->scratch);
    remove_nodes(graph, live, context);
    drop_waits(graph, live, context);
    mark_owned(graph, live);
    graph_compact(graph);
    mark_mentioned(graph, live);
    remove_values(graph, live, context->scratch);
    return true;
}
