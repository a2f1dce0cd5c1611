/* Gradients of loops and branches.
 *
 * The gradient of a branch is a branch: what is selected is computed again from the captured values, and asked back.
 *
 * The gradient of a loop is a loop that goes through the rounds from the last to the first.  A round is computed again
 * from what it began with, which the loop itself has written on a tape: one slice for each round of every value it
 * carries, and of what would take long to compute again.  So a loop needs a bound on its rounds.  Carried backward are
 * the gradients of what the loop carries, and the sums of what reaches the captured values (grad_sums.c). */
#include <math.h>

#include "ops/control.h"
#include "passes/grad.h"

static bool carries(const Graph *graph, ValueId v)
{
    return dtype_is_float(value_type(graph, v)->dtype);
}

/* Bodies that go back */

typedef struct Asked { /* a body, what its inputs are, and what reaches its outputs; NONE where nothing does */
    const Graph *body;
    const ValueId *in, *seed;
    const ValueId *value, *read; /* of the body, that are not computed again, and what is read in their stead */
    uint32_t kept;
} Asked;

/* Nodes that read a kept value read the tape. */
static Taped *read_kept(Graph *graph, const Asked *asked, const ValueId *value, Arena *scratch)
{
    Taped *kept = ARENA_ARRAY(scratch, Taped, asked->kept);
    for (uint32_t k = 0; k < asked->kept; k++) {
        kept[k] = (Taped){value[k], asked->read[k]};
        for (NodeId n = 0; n < graph->node_count; n++)
            for (uint32_t i = 0; i < graph->node[n].in_count; i++)
                if (graph->node[n].in[i] == value[k])
                    graph->node[n].in[i] = asked->read[k];
    }
    return kept;
}

/* Appends the body and asks it back: what reaches its inputs; NONE where nothing does. */
static bool ask_body(GradPass *pass, Graph *graph, const Node *node, const Asked *asked, ValueId *gradient)
{
    Arena *scratch = pass->context->scratch;
    const Graph *body = asked->body;
    const ValueId *seed = asked->seed;
    uint32_t outputs = body->output_count, count = 0;
    ValueId *out = ARENA_ARRAY(scratch, ValueId, outputs + asked->kept), *y = ARENA_ARRAY(scratch, ValueId, outputs);
    ValueId *reaches = ARENA_ARRAY(scratch, ValueId, outputs);
    grad_append_keeping(graph, body, asked->value, asked->kept, asked->in, out);

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
    GradRequest request = {.y = y,
                           .seed = reaches,
                           .y_count = count,
                           .wrt = asked->in,
                           .wrt_count = body->input_count,
                           .node = &asking,
                           .kept = read_kept(graph, asked, out + outputs, scratch),
                           .kept_count = asked->kept};
    return grad_derive(pass, graph, &request, gradient);
}

typedef struct Later { /* a sum that is made after the loop */
    bool is;
    GradProduct product;
    uint32_t second; /* the sum that stacks its second factor */
} Later;

/* A loop backward: carries the number of the round, the gradients of what the loop carries, and sums for what it
 * captures; captures the tapes, and what the loop captures. */
typedef struct Backward {
    GradPass *pass;
    Reverse *r;
    Loop loop;
    const Tape *tape;
    uint32_t gradients, sums; /* how many there are, and of which operands: */
    uint32_t *carried, *captured;
    Later *later; /* per sum */
    bool *adds;   /* per sum: the loop adds up what reaches it, from zero */
    GradRounds rounds;
    ValueId *in;
    uint32_t in_count;
} Backward;

/* The first of the backward body's inputs, and of the operands, that is a tape. */
static uint32_t first_tape(const Backward *b)
{
    return 1 + b->gradients + b->sums;
}

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
    uint32_t own = b->tape->own;
    int64_t rounds = b->tape->rounds;
    b->in[b->in_count++] = rounds >= 0 ? reverse_number(r, DT_I64, (double)(rounds - 1))
                                       : reverse_build2(r, OP_SUB, out[own], reverse_number(r, DT_I64, 1));
    for (uint32_t g = 0; g < b->gradients; g++) {
        ValueId v = out[b->carried[g]], down = r->down[b->carried[g]];
        b->in[b->in_count++] =
            down != NONE ? down : reverse_full(r, value_type(r->graph, v)->dtype, reverse_shape(r, v), 0);
    }
    for (uint32_t s = 0; s < b->sums; s++) {
        ValueId v = node->in[b->captured[s]];
        b->in[b->in_count++] = reverse_full(r, value_type(r->graph, v)->dtype, reverse_shape(r, v), 0);
    }
    for (uint32_t i = 0; i < own + b->tape->kept; i++)
        b->in[b->in_count++] = out[own + 1 + i];
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

/* The number of the round, as what counts the rounds from `begin` on has it, of one element. */
static ValueId count_of_round(Reverse *r, DType dtype, double begin)
{
    ValueId first = reverse_number(r, dtype, begin), number = reverse_convert(r, r->graph->input[0], first);
    return begin == 0 ? number : reverse_build2(r, OP_ADD, number, first);
}

/* What the round began with: from the tape, or the number of the round, and for tapes, which nothing of a round depends
 * on but that it writes them, anything. */
static ValueId *begin_round(Backward *b, Reverse *r)
{
    Arena *scratch = b->pass->context->scratch;
    const Node *node = &b->r->node;
    uint32_t own = b->tape->own;
    ValueId *in = ARENA_ARRAY(scratch, ValueId, node->in_count), *number = ARENA_ARRAY(scratch, ValueId, own + 1);
    const ValueId *input = r->graph->input + first_tape(b), round = r->graph->input[0];
    b->rounds = (GradRounds){.count = b->tape->rounds, .number = number, .number_count = 1};
    number[0] = round;
    for (uint32_t i = 0; i < own; i++) {
        double begin = b->tape->counter[i];
        const Type *type = value_type(outside(b), node->in[i]);
        if (isnan(begin)) {
            in[i] = grad_read_slice(r, input[i], round, &type->shape);
            continue;
        }
        ValueId count = count_of_round(r, type->dtype, begin);
        in[i] = reverse_reshape(r, count, &type->shape);
        if (begin == 0)
            number[b->rounds.number_count++] = count;
    }
    if (own < b->loop.carried)
        in[own] = round;
    for (uint32_t i = own + 1; i < b->loop.carried; i++) {
        const Type *type = value_type(outside(b), node->in[i]);
        in[i] = reverse_full(r, type->dtype, &type->shape, 0);
    }
    for (uint32_t i = b->loop.carried; i < node->in_count; i++)
        in[i] = input[own + b->tape->kept + i - b->loop.carried];
    return in;
}

static ValueId *read_tapes(const Backward *b, Reverse *r)
{
    ValueId *read = ARENA_ARRAY(b->pass->context->scratch, ValueId, b->tape->kept);
    for (uint32_t k = 0; k < b->tape->kept; k++)
        read[k] = grad_read_slice(r, r->graph->input[first_tape(b) + b->tape->own + k], r->graph->input[0],
                                  value_shape(b->loop.body, b->tape->value[k]));
    return read;
}

/* Which operand of the loop the input of its body is. */
static uint32_t operand_of(const Graph *body, ValueId input)
{
    uint32_t operand = 0;
    while (body->input[operand] != input)
        operand++;
    return operand;
}

/* A sum of products may wait until after the loop, where another one stacks the second factors, and where the first
 * ones are slices of what no round changes. */
static Later find_later(const Backward *b, const Graph *body, const ValueId *slice, ValueId reached)
{
    Later later = {0};
    if (reached == NONE || !grad_product_of_slices(&b->rounds, body, reached, &later.product) ||
        operand_of(body, later.product.first) < first_tape(b))
        return later;
    for (uint32_t s = 0; s < b->sums && !later.is; s++) {
        later.is = grad_is_same_slice(body, slice[s], &later.product);
        later.second = s;
    }
    return later;
}

static ValueId add_slice(Reverse *r, ValueId stack, ValueId slice)
{
    Shape shape = *reverse_shape(r, slice);
    shape.rank--;
    for (uint32_t d = 0; d < shape.rank; d++)
        shape.dim[d] = shape.dim[d + 1];
    return grad_write_slice(r, stack, r->graph->input[0], reverse_reshape(r, slice, &shape));
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

/* The next values of the sums, as outputs of the body. */
static void add_sums(const Backward *b, Reverse *r, const ValueId *gradient)
{
    Graph *body = r->graph;
    ValueId *slice = ARENA_ARRAY(b->pass->context->scratch, ValueId, b->sums);
    for (uint32_t s = 0; s < b->sums; s++) {
        ValueId reached = gradient[b->captured[s]];
        slice[s] = reached == NONE ? NONE : grad_slice_of_round(&b->rounds, body, reached);
    }
    for (uint32_t s = 0; s < b->sums; s++) {
        ValueId sum = body->input[1 + b->gradients + s], reached = gradient[b->captured[s]];
        b->later[s] = find_later(b, body, slice, reached);
        b->adds[s] = slice[s] == NONE && !b->later[s].is;
        if (slice[s] != NONE)
            sum = add_slice(r, sum, slice[s]);
        else if (reached != NONE && !b->later[s].is)
            sum = goes_on(b->pass, body, reached, sum) ? reached : reverse_build2(r, OP_ADD, sum, reached);
        graph_add_output(body, sum, (Str){0});
    }
}

static Graph *backward_body(Backward *b)
{
    Arena *scratch = b->pass->context->scratch;
    const Node *node = &b->r->node;
    Graph *body = open_backward(b, "backward");
    Reverse r = {.graph = body, .scratch = scratch, .node = *node};
    r.node.from = NONE;
    ValueId *seed = ARENA_ARRAY(scratch, ValueId, b->loop.body->output_count);
    ValueId *gradient = ARENA_ARRAY(scratch, ValueId, node->in_count);
    const ValueId *in = begin_round(b, &r), *read = read_tapes(b, &r);

    for (uint32_t i = 0; i < b->loop.body->output_count; i++)
        seed[i] = NONE;
    for (uint32_t g = 0; g < b->gradients; g++)
        seed[b->carried[g]] = body->input[1 + g];
    Asked asked = {
        .body = b->loop.body, .in = in, .seed = seed, .value = b->tape->value, .read = read, .kept = b->tape->kept};
    if (!ask_body(b->pass, body, node, &asked, gradient))
        return NULL;
    graph_add_output(body, reverse_build2(&r, OP_SUB, body->input[0], reverse_number(&r, DT_I64, 1)), (Str){0});
    for (uint32_t g = 0; g < b->gradients; g++) {
        ValueId reached = gradient[b->carried[g]];
        const Type *type = value_type(outside(b), node->in[b->carried[g]]);
        graph_add_output(body, reached != NONE ? reached : reverse_full(&r, type->dtype, &type->shape, 0), (Str){0});
    }
    add_sums(b, &r, gradient);
    return body;
}

/* The gradient of a captured value. */
static ValueId gathered(const Backward *b, const Graph *body, const ValueId *result, uint32_t sum)
{
    const Later *later = &b->later[sum];
    const ValueId *sums = result + 1 + b->gradients;
    if (!later->is)
        return sums[sum];
    return grad_build_product(b->r, &b->rounds, &later->product, b->in[operand_of(body, later->product.first)],
                              sums[later->second]);
}

static bool reverse_loop(GradPass *pass, Reverse *r)
{
    Arena *scratch = pass->context->scratch;
    const Node *node = &r->node;
    const Tape *tape = grad_taped(pass, r->graph, node);
    if (!tape)
        return node_error(r->graph, node,
                          loop_of(r->graph, node).most
                              ? "what the gradient of this loop keeps of its rounds is too large"
                              : "the gradient of a loop needs a bound on its rounds: max = N");
    const Tape of = *tape; /* the list grows */
    Backward b = {.pass = pass, .r = r, .loop = loop_of(r->graph, node), .tape = &of};
    b.carried = ARENA_ARRAY(scratch, uint32_t, node->in_count);
    b.captured = ARENA_ARRAY(scratch, uint32_t, node->in_count);
    b.in = ARENA_ARRAY(scratch, ValueId, 2 * node->in_count + 1);
    list_carried(&b);
    list_operands(&b);
    b.later = ARENA_ARRAY(scratch, Later, b.sums);
    b.adds = ARENA_ARRAY(scratch, bool, b.sums);

    Loop loop = {.carried = first_tape(&b), .most = value_shape(r->graph, node->out[of.own + 1])->dim[0]};
    loop.captured = b.in_count - loop.carried;
    loop.body = backward_body(&b);
    if (!loop.body)
        return false;
    loop.condition = backward_condition(&b);
    NodeId made = grad_append_loop(pass, r->graph, &loop, b.in, node);
    const ValueId *result = arena_copy(scratch, r->graph->node[made].out, loop.carried * sizeof *result);
    for (uint32_t g = 0; g < b.gradients; g++)
        if (r->wanted[b.carried[g]])
            reverse_give(r, b.carried[g], result[1 + g]);
    for (uint32_t s = 0; s < b.sums; s++) {
        ValueId sum = gathered(&b, loop.body, result, s);
        if (b.adds[s])
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
    Asked asked = {.body = old, .in = captured, .seed = seed};
    if (!ask_body(pass, body, node, &asked, gradient))
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
