/* Gradients of loops and branches.
 *
 * The gradient of a branch is a branch: what is selected is computed again from the captured values, and asked back.
 *
 * The gradient of a loop is a loop that goes through the rounds from the last to the first.  A round is computed again
 * from what it began with, which the loop itself has written on a tape: one slice for each round of every value it
 * carries.  So a loop needs a bound on its rounds.  Carried backward are the gradients of what the loop carries, and
 * the sums of what reaches the captured values. */
#include "ops/control.h"
#include "passes/grad.h"

static bool carries(const Graph *graph, ValueId v)
{
    return dtype_is_float(value_type(graph, v)->dtype);
}

/* Bodies that go back */

/* Appends the body and asks it back: what reaches its inputs when seed[i] reaches output i, for those outputs that
 * carry gradients; NONE where nothing does. */
static bool ask_body(GradPass *pass, Graph *graph, const Node *node, const Graph *body, const ValueId *in,
                     const ValueId *seed, ValueId *gradient)
{
    Arena *scratch = pass->context->scratch;
    uint32_t outputs = body->output_count, count = 0;
    ValueId *out = ARENA_ARRAY(scratch, ValueId, outputs), *y = ARENA_ARRAY(scratch, ValueId, outputs);
    ValueId *reaches = ARENA_ARRAY(scratch, ValueId, outputs);
    graph_append_body(graph, body, in, out);

    uint32_t values = graph->value_count;
    ValueId *map = ARENA_ARRAY(scratch, ValueId, values);
    for (ValueId v = 0; v < values; v++)
        map[v] = v;
    grad_tape_loops(pass, graph, map);
    for (uint32_t i = 0; i < outputs; i++)
        if (seed[i] != NONE) {
            y[count] = map[out[i]];
            reaches[count++] = seed[i];
        }
    Node asking = *node;
    asking.from = NONE;
    return grad_derive(
        pass, graph,
        &(GradRequest){
            .y = y, .seed = reaches, .y_count = count, .wrt = in, .wrt_count = body->input_count, .node = &asking},
        gradient);
}

/* A loop backward: carries the number of the round, the gradients of what the loop carries, and sums for what it
 * captures; captures the tapes, and what the loop captures. */
typedef struct Backward {
    GradPass *pass;
    Reverse *r;
    Loop loop;
    uint32_t own;             /* values that the loop carries beside count and tapes */
    uint32_t gradients, sums; /* how many there are, and of which operands: */
    uint32_t *carried, *captured;
    ValueId *in;
    uint32_t in_count;
} Backward;

static const Graph *outside(const Backward *b)
{
    return b->r->graph;
}

/* Adds those carried values that a gradient of the next value of some in the list reaches in one round; true when there
 * were any. */
static bool reach_further(const Backward *b, bool *listed)
{
    const Graph *body = b->loop.body;
    bool *reached = ARENA_ARRAY(b->pass->context->scratch, bool, body->value_count), more = false;
    for (uint32_t i = 0; i < b->loop.carried; i++)
        reached[body->output[i].value] |= listed[i];
    for (NodeId n = body->node_count; n-- > 0;) {
        const Node *node = &body->node[n];
        bool asked = false;
        for (uint32_t i = 0; i < node->out_count; i++)
            asked |= reached[node->out[i]];
        for (uint32_t i = 0; asked && i < node->in_count; i++)
            reached[node->in[i]] |= op_passes_gradient(body, node, i);
    }
    for (uint32_t i = 0; i < b->loop.carried; i++)
        if (!listed[i] && reached[body->input[i]] && carries(body, body->input[i]))
            more = listed[i] = true;
    return more;
}

static void list_carried(Backward *b)
{
    const Node *node = &b->r->node;
    bool *listed = ARENA_ARRAY(b->pass->context->scratch, bool, b->loop.carried);
    for (uint32_t i = 0; i < b->loop.carried; i++)
        listed[i] = b->r->down[i] != NONE;
    while (reach_further(b, listed))
        ;
    for (uint32_t i = 0; i < b->loop.carried; i++)
        if (listed[i])
            b->carried[b->gradients++] = i;
    for (uint32_t i = b->loop.carried; i < node->in_count; i++)
        if (b->r->wanted[i])
            b->captured[b->sums++] = i;
}

static void list_operands(Backward *b)
{
    Reverse *r = b->r;
    const Node *node = &r->node;
    const ValueId *out = node->out;
    ValueId count = out[b->own];
    b->in[b->in_count++] = reverse_build2(r, OP_SUB, count, reverse_number(r, DT_I64, 1));
    for (uint32_t g = 0; g < b->gradients; g++) {
        ValueId v = out[b->carried[g]], down = r->down[b->carried[g]];
        b->in[b->in_count++] =
            down != NONE ? down : reverse_full(r, value_type(r->graph, v)->dtype, reverse_shape(r, v), 0);
    }
    for (uint32_t s = 0; s < b->sums; s++) {
        ValueId v = node->in[b->captured[s]];
        b->in[b->in_count++] = reverse_full(r, value_type(r->graph, v)->dtype, reverse_shape(r, v), 0);
    }
    for (uint32_t i = 0; i < b->own; i++)
        b->in[b->in_count++] = out[b->own + 1 + i];
    for (uint32_t i = b->loop.carried; i < node->in_count; i++)
        b->in[b->in_count++] = node->in[i];
}

static Graph *open_backward(const Backward *b, const char *name)
{
    Graph *body = graph_new(outside(b)->module, str_from(name));
    body->place = b->r->node.place;
    for (uint32_t i = 0; i < b->in_count; i++)
        graph_add_input(body, value_type(outside(b), b->in[i]), (Str){0}, b->r->node.place);
    return body;
}

static Graph *backward_condition(const Backward *b)
{
    Graph *body = open_backward(b, "condition");
    ValueId zero = graph_add_scalar(body, DT_I64, 0);
    graph_add_output(body, op_build2(body, OP_GE, body->input[0], zero, b->r->node.place), (Str){0});
    return body;
}

/* What the round began with: from the tape, the number of the round, and for tapes, which nothing of a round depends on
 * but that it writes them, anything. */
static ValueId *begin_round(const Backward *b, Reverse *r)
{
    Arena *scratch = b->pass->context->scratch;
    const Node *node = &b->r->node;
    ValueId *in = ARENA_ARRAY(scratch, ValueId, node->in_count);
    const ValueId *input = r->graph->input + 1 + b->gradients + b->sums;
    for (uint32_t i = 0; i < b->own; i++)
        in[i] = grad_read_slice(r, input[i], r->graph->input[0], value_shape(outside(b), node->in[i]));
    if (b->own < b->loop.carried)
        in[b->own] = r->graph->input[0];
    for (uint32_t i = b->own + 1; i < b->loop.carried; i++) {
        const Type *type = value_type(outside(b), node->in[i]);
        in[i] = reverse_full(r, type->dtype, &type->shape, 0);
    }
    for (uint32_t i = b->loop.carried; i < node->in_count; i++)
        in[i] = input[b->own + i - b->loop.carried];
    return in;
}

/* Where a loop backward adds up all that reaches a value, and nobody else asks for it, it may begin with what there is
 * rather than with zero. */
static bool goes_on(const GradPass *pass, Graph *body, ValueId reached, ValueId sum)
{
    if (map_get(&pass->sums, grad_key(pass->context->scratch, body, reached)) == MAP_NONE)
        return false;
    for (NodeId n = 0; n < body->node_count; n++)
        for (uint32_t i = 0; i < body->node[n].in_count; i++)
            if (body->node[n].in[i] == reached)
                return false;
    Node *loop = graph_node(body, body->value[reached].node);
    for (uint32_t i = 0; i < loop->out_count; i++)
        if (loop->out[i] == reached)
            loop->in[i] = sum;
    return true;
}

static Graph *backward_body(const Backward *b)
{
    Arena *scratch = b->pass->context->scratch;
    const Node *node = &b->r->node;
    Graph *body = open_backward(b, "backward");
    Reverse r = {.graph = body, .scratch = scratch, .node = *node};
    r.node.from = NONE;
    ValueId *seed = ARENA_ARRAY(scratch, ValueId, b->loop.body->output_count);
    ValueId *gradient = ARENA_ARRAY(scratch, ValueId, node->in_count);
    const ValueId *in = begin_round(b, &r);

    for (uint32_t i = 0; i < b->loop.body->output_count; i++)
        seed[i] = NONE;
    for (uint32_t g = 0; g < b->gradients; g++)
        seed[b->carried[g]] = body->input[1 + g];
    if (!ask_body(b->pass, body, node, b->loop.body, in, seed, gradient))
        return NULL;
    graph_add_output(body, reverse_build2(&r, OP_SUB, body->input[0], reverse_number(&r, DT_I64, 1)), (Str){0});
    for (uint32_t g = 0; g < b->gradients; g++) {
        ValueId reached = gradient[b->carried[g]];
        const Type *type = value_type(outside(b), node->in[b->carried[g]]);
        graph_add_output(body, reached != NONE ? reached : reverse_full(&r, type->dtype, &type->shape, 0), (Str){0});
    }
    for (uint32_t s = 0; s < b->sums; s++) {
        ValueId sum = body->input[1 + b->gradients + s], reached = gradient[b->captured[s]];
        if (reached == NONE || goes_on(b->pass, body, reached, sum))
            graph_add_output(body, reached == NONE ? sum : reached, (Str){0});
        else
            graph_add_output(body, reverse_build2(&r, OP_ADD, sum, reached), (Str){0});
    }
    return body;
}

static bool reverse_loop(GradPass *pass, Reverse *r)
{
    Arena *scratch = pass->context->scratch;
    const Node *node = &r->node;
    uint32_t own = grad_taped(pass, r->graph, node);
    Backward b = {.pass = pass, .r = r, .loop = loop_of(r->graph, node), .own = own};
    if (own == MAP_NONE)
        return diag_error(r->graph->module->diag, node->place,
                          "the gradient of a loop needs a bound on its rounds: max = N");
    b.carried = ARENA_ARRAY(scratch, uint32_t, node->in_count);
    b.captured = ARENA_ARRAY(scratch, uint32_t, node->in_count);
    b.in = ARENA_ARRAY(scratch, ValueId, 2 * node->in_count + 1);
    list_carried(&b);
    list_operands(&b);

    Loop loop = {.carried = 1 + b.gradients + b.sums, .most = value_shape(r->graph, node->out[own + 1])->dim[0]};
    loop.captured = b.in_count - loop.carried;
    loop.body = backward_body(&b);
    if (!loop.body)
        return false;
    loop.condition = backward_condition(&b);
    NodeId made = grad_append_loop(pass, r->graph, &loop, b.in, node);
    const ValueId *result = r->graph->node[made].out;
    for (uint32_t g = 0; g < b.gradients; g++)
        if (r->wanted[b.carried[g]])
            reverse_give(r, b.carried[g], result[1 + g]);
    for (uint32_t s = 0; s < b.sums; s++) {
        ValueId sum = result[1 + b.gradients + s];
        map_put(&pass->sums, grad_key(pass->arena, r->graph, sum), s);
        reverse_give(r, b.captured[s], sum);
    }
    return true;
}

/* Branches */

/* What reaches the captured values that are wanted, from inside one branch. */
static Graph *backward_branch(GradPass *pass, Reverse *r, const Graph *old, const ValueId *in, uint32_t in_count,
                              const uint32_t *down)
{
    Arena *scratch = pass->context->scratch;
    const Node *node = &r->node;
    Graph *body = graph_new(r->graph->module, old->name);
    Reverse inner = {.graph = body, .scratch = scratch, .node = *node};
    inner.node.from = NONE;
    ValueId *seed = ARENA_ARRAY(scratch, ValueId, old->output_count);
    ValueId *gradient = ARENA_ARRAY(scratch, ValueId, old->input_count);
    body->place = old->place;
    for (uint32_t i = 1; i < in_count; i++)
        graph_add_input(body, value_type(r->graph, in[i]), (Str){0}, node->place);
    for (uint32_t i = 0; i < old->output_count; i++)
        seed[i] = down[i] == NONE ? NONE : body->input[down[i] - 1];
    const ValueId *captured = arena_copy(scratch, body->input, old->input_count * sizeof *captured);
    if (!ask_body(pass, body, node, old, captured, seed, gradient))
        return NULL;
    for (uint32_t i = 0; i < old->input_count; i++) {
        const Type *type = value_type(r->graph, node->in[i + 1]);
        if (r->wanted[i + 1])
            graph_add_output(
                body, gradient[i] != NONE ? gradient[i] : reverse_full(&inner, type->dtype, &type->shape, 0), (Str){0});
    }
    return body;
}

static bool reverse_choice(GradPass *pass, Reverse *r)
{
    Arena *scratch = pass->context->scratch;
    const Node *node = &r->node;
    Branches branches = branches_of(r->graph, node);
    uint32_t count = node->in_count, results = node->out_count;
    ValueId *in = ARENA_ARRAY(scratch, ValueId, count + results);
    uint32_t *down = ARENA_ARRAY(scratch, uint32_t, results); /* which operand each result's gradient is */
    Graph **sub = ARENA_ARRAY(scratch, Graph *, node->sub_count);
    for (uint32_t i = 0; i < count; i++)
        in[i] = node->in[i];
    for (uint32_t i = 0; i < results; i++) {
        down[i] = r->down[i] == NONE ? NONE : count;
        if (r->down[i] != NONE)
            in[count++] = r->down[i];
    }
    for (uint32_t s = 0; s < node->sub_count; s++)
        if (!(sub[s] = backward_branch(pass, r, node->sub[s], in, count, down)))
            return false;
    branches.captured = count - 1;
    NodeId made = op_build_choice(r->graph, &branches, in, sub, node->place);
    graph_node(r->graph, made)->from = node->from;
    for (uint32_t i = 1, k = 0; i < r->node.in_count; i++)
        if (r->wanted[i])
            reverse_give(r, i, r->graph->node[made].out[k++]);
    return true;
}

bool grad_reverse_control(GradPass *pass, Reverse *r)
{
    return node_is_loop(&r->node) ? reverse_loop(pass, r) : reverse_choice(pass, r);
}
