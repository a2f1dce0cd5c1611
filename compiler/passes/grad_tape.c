/* Loops with tapes, which their gradients go back along (grad_control.c).
 *
 * Each round writes what it begins with: one slice for each round of every value that the loop carries, and the number
 * of rounds; and what would take long to compute again (grad_keep.c).  What no gradient reads of it is dead, and goes
 * with the pass dce. */
#include <math.h>

#include "ops/control.h"
#include "passes/grad.h"
#include "passes/rounds.h"

static ValueId add_like(Graph *body, const Graph *graph, ValueId v)
{
    const Value *like = graph_value(graph, v);
    return graph_add_input(body, like->type, like->name, like->place);
}

/* Tapes: [rounds, ...], or [rounds, elements] where the value has all dimensions already. */

static Shape slice_shape(const Shape *value)
{
    Shape shape = {.rank = value->rank < MAX_RANK ? value->rank + 1 : 2, .dim = {1}};
    for (uint32_t d = 0; value->rank < MAX_RANK && d < value->rank; d++)
        shape.dim[d + 1] = value->dim[d];
    if (value->rank == MAX_RANK)
        shape.dim[1] = shape_elements(value);
    return shape;
}

static const Type *tape_type(Graph *graph, ValueId v, int64_t rounds)
{
    Shape shape = slice_shape(value_shape(graph, v));
    int64_t elements;
    shape.dim[0] = rounds;
    return shape_checked_elements(&shape, &elements)
               ? module_plain_type(graph->module, value_type(graph, v)->dtype, shape.rank, shape.dim)
               : NULL;
}

/* The position of slice `round`: [round, 0, ...]. */
static ValueId slice_at(Reverse *r, ValueId round, uint32_t rank)
{
    const Shape one = {1, {1}};
    const Type *type = module_plain_type(r->graph->module, DT_I64, 1, (int64_t[]){rank - 1});
    ValueId at = reverse_reshape(r, round, &one);
    Attr axis = {0};
    if (rank == 1)
        return at;
    ValueId zeros = graph_add_const(r->graph, tensor_new(r->graph->module->arena, type), (Str){0}, r->node.place);
    return reverse_build(r, OP_CONCAT, (ValueId[]){at, zeros}, 2, &axis);
}

ValueId grad_write_slice(Reverse *r, ValueId tape, ValueId round, ValueId value)
{
    Shape slice = slice_shape(reverse_shape(r, value));
    ValueId in[] = {tape, slice_at(r, round, slice.rank), reverse_reshape(r, value, &slice)};
    return reverse_build(r, OP_DYNAMIC_UPDATE, in, 3, NULL);
}

ValueId grad_read_slice(Reverse *r, ValueId tape, ValueId round, const Shape *shape)
{
    Shape slice = slice_shape(shape);
    Attr sizes = {.i = slice.rank, .ints = slice.dim};
    ValueId in[] = {tape, slice_at(r, round, slice.rank)};
    return reverse_reshape(r, reverse_build(r, OP_DYNAMIC_SLICE, in, 2, &sizes), shape);
}

/* Taping */

typedef struct Taping {
    Graph *graph;
    Node node;
    Loop loop;
    int64_t rounds;          /* at most */
    uint32_t kept;           /* values of the body */
    const ValueId *value;    /* which */
    uint32_t carried;        /* with the count of rounds, and a tape for each value */
    const Type *const *type; /* of what is carried in addition */
} Taping;

Str grad_key(Arena *arena, const Graph *graph, ValueId result)
{
    struct {
        const Graph *graph;
        uintptr_t result;
    } key = {graph, result};
    return map_key(arena_copy(arena, &key, sizeof key), sizeof key);
}

/* A body with inputs for all that is carried and captured; in[] are those that the old body knows. */
static Graph *open_body(const Taping *t, Arena *scratch, const Graph *old, ValueId **in, ValueId **more)
{
    Graph *body = graph_new(t->graph->module, old->name);
    uint32_t own = t->loop.carried, extra = t->carried - own;
    *in = ARENA_ARRAY(scratch, ValueId, t->node.in_count);
    *more = ARENA_ARRAY(scratch, ValueId, extra);
    body->place = old->place;
    for (uint32_t i = 0; i < own; i++)
        (*in)[i] = add_like(body, old, old->input[i]);
    for (uint32_t i = 0; i < extra; i++)
        (*more)[i] = graph_add_input(body, t->type[i], (Str){0}, t->node.place);
    for (uint32_t i = own; i < t->node.in_count; i++)
        (*in)[i] = add_like(body, old, old->input[i]);
    return body;
}

static Graph *taped_condition(const Taping *t, Arena *scratch)
{
    ValueId *in, *more, holds;
    Graph *body = open_body(t, scratch, t->loop.condition, &in, &more);
    graph_append_body(body, t->loop.condition, in, &holds);
    graph_add_output(body, holds, t->loop.condition->output[0].name);
    return body;
}

/* The tape is written first, so that the values may be overwritten; kept[] gets what the body keeps. */
static Graph *taped_body(const Taping *t, Arena *scratch, ValueId *kept)
{
    const Graph *old = t->loop.body;
    uint32_t outputs = old->output_count;
    ValueId *in, *more, *out = ARENA_ARRAY(scratch, ValueId, outputs + t->kept);
    Graph *body = open_body(t, scratch, old, &in, &more);
    uint32_t own = t->loop.carried;
    Reverse r = {.graph = body, .scratch = scratch, .node = t->node};
    r.node.from = NONE;
    ValueId *next = ARENA_ARRAY(scratch, ValueId, own + 1);
    next[0] = reverse_build2(&r, OP_ADD, more[0], reverse_number(&r, DT_I64, 1));
    for (uint32_t i = 0; i < own; i++)
        next[i + 1] = grad_write_slice(&r, more[i + 1], more[0], in[i]);
    grad_append_keeping(body, old, t->value, t->kept, in, out);
    for (uint32_t i = 0; i < own; i++)
        graph_add_output(body, out[i], old->output[i].name);
    for (uint32_t i = 0; i < own + 1; i++)
        graph_add_output(body, next[i], (Str){0});
    for (uint32_t i = 0; i < t->kept; i++) {
        kept[i] = out[outputs + i];
        graph_add_output(body, grad_write_slice(&r, more[1 + own + i], more[0], kept[i]), (Str){0});
    }
    if (!t->loop.condition) /* what the body itself says of another round */
        graph_add_output(body, out[own], old->output[own].name);
    return body;
}

static bool add_tape_types(Taping *t, Arena *scratch)
{
    uint32_t own = t->loop.carried;
    const Type **type = ARENA_ARRAY(scratch, const Type *, 1 + own + t->kept);
    bool fits = true;
    type[0] = module_plain_type(t->graph->module, DT_I64, 0, NULL);
    for (uint32_t i = 0; i < own; i++)
        fits &= (type[i + 1] = tape_type(t->graph, t->node.in[i], t->rounds)) != NULL;
    for (uint32_t i = 0; i < t->kept; i++)
        fits &= (type[1 + own + i] = tape_type(t->loop.body, t->value[i], t->rounds)) != NULL;
    t->type = type;
    t->carried = own + 1 + own + t->kept;
    return fits;
}

/* What an integer begins with that each round adds one to; NAN: it does something else. */
static double counts_from(const Taping *t, uint32_t carried)
{
    const Graph *body = t->loop.body;
    const Node *next = value_producer(body, body->output[carried].value);
    double step, number;
    bool adds = next && dtype_is_int(value_type(body, next->out[0])->dtype) && node_steps(body, next, &step) &&
                step == 1 && next->in[0] == body->input[carried];
    return adds && value_is_number(t->graph, t->node.in[carried], &number) ? number : NAN;
}

static const double *find_counters(const Taping *t, Arena *arena)
{
    double *counter = ARENA_ARRAY(arena, double, t->loop.carried);
    for (uint32_t i = 0; i < t->loop.carried; i++)
        counter[i] = counts_from(t, i);
    return counter;
}

static void note_tape(GradPass *pass, const Graph *graph, NodeId made, const Tape *tape)
{
    map_put(&pass->taped, grad_key(pass->arena, graph, graph->node[made].out[0]), pass->tape_count);
    ARENA_PUSH(pass->arena, pass->tape, pass->tape_count, pass->tape_capacity, *tape);
}

/* Appends the loop with a tape; its first results are those of the node.  False where no bound is known, or a tape
 * would be too large: then nothing is appended. */
static bool append_taped(GradPass *pass, Graph *graph, const Node *node, NodeId *made)
{
    Arena *scratch = pass->context->scratch;
    Taping t = {.graph = graph, .node = *node, .loop = loop_of(graph, node)};
    int64_t known = rounds_known(graph, node, pass->context);
    t.rounds = known > 0 ? known : known == 0 ? 1 : t.loop.most;
    t.kept = t.rounds > 0 ? grad_choose_kept(graph, node, t.rounds, scratch, &t.value) : 0;
    if (t.rounds < 1 || !add_tape_types(&t, scratch))
        return false;

    uint32_t own = t.loop.carried, extra = own + t.kept;
    ValueId *kept = ARENA_ARRAY(pass->arena, ValueId, t.kept);
    Tape tape = {.own = own, .kept = t.kept, .value = kept, .counter = find_counters(&t, pass->arena), .rounds = known};
    ValueId *in = ARENA_ARRAY(scratch, ValueId, t.carried + t.loop.captured);
    Reverse r = {.graph = graph, .scratch = scratch, .node = *node};
    for (uint32_t i = 0; i < node->in_count; i++)
        in[i < own ? i : i + extra + 1] = node->in[i];
    in[own] = reverse_number(&r, DT_I64, 0);
    for (uint32_t i = 0; i < extra; i++)
        in[own + 1 + i] = reverse_full(&r, t.type[i + 1]->dtype, &t.type[i + 1]->shape, 0);
    Loop loop = {.carried = t.carried,
                 .captured = t.loop.captured,
                 .most = t.loop.most,
                 .unroll = t.loop.unroll,
                 .condition = t.loop.condition ? taped_condition(&t, scratch) : NULL,
                 .body = taped_body(&t, scratch, kept)};
    *made = op_build_loop(graph, &loop, in, node->place);
    graph->node[*made].from = node->from;
    note_tape(pass, graph, *made, &tape);
    return true;
}

static void hand_on(Graph *graph, ValueId from, ValueId to)
{
    graph->value[to].name = graph->value[from].name;
    graph->value[to].place = graph->value[from].place;
    graph->value[from].name = (Str){0};
}

void grad_tape_loops(GradPass *pass, Graph *graph, ValueId *map)
{
    uint32_t nodes = graph->node_count;
    const Node *old = arena_copy(pass->context->scratch, graph->node, nodes * sizeof *old);
    graph->node_count = 0;
    for (NodeId n = 0; n < nodes; n++) {
        NodeId made;
        if (old[n].dead)
            continue;
        for (uint32_t i = 0; i < old[n].in_count; i++)
            old[n].in[i] = map[old[n].in[i]];
        if (!node_is_loop(&old[n]) || !append_taped(pass, graph, &old[n], &made)) {
            graph_append_node(graph, &old[n]);
            continue;
        }
        for (uint32_t i = 0; i < old[n].out_count; i++) {
            map[old[n].out[i]] = graph->node[made].out[i];
            hand_on(graph, old[n].out[i], map[old[n].out[i]]);
        }
    }
}

NodeId grad_append_loop(GradPass *pass, Graph *graph, const Loop *loop, const ValueId *in, const Node *node)
{
    NodeId plain = op_build_loop(graph, loop, in, node->place), taped;
    graph->node[plain].from = node->from;
    const Node made = graph->node[plain];
    graph->node_count--;
    if (append_taped(pass, graph, &made, &taped))
        return taped;
    graph_append_node(graph, &made);
    return graph->node_count - 1;
}

const Tape *grad_taped(const GradPass *pass, const Graph *graph, const Node *loop)
{
    uint32_t tape = map_get(&pass->taped, grad_key(pass->context->scratch, graph, loop->out[0]));
    return tape == MAP_NONE ? NULL : &pass->tape[tape];
}

void grad_tape_copied(GradPass *pass, const Graph *graph, const Node *loop, const Graph *to, const Node *copy)
{
    uint32_t tape = map_get(&pass->taped, grad_key(pass->context->scratch, graph, loop->out[0]));
    if (tape != MAP_NONE)
        map_put(&pass->taped, grad_key(pass->arena, to, copy->out[0]), tape);
}
