/* Reverse-mode differentiation: each `grad` becomes the nodes that compute its gradients.
 * Needs: an expanded graph.  Keeps: the order of all other nodes.  Then replaces the calls that expand has left to it.
 *
 * One grad after the other, in the order of nodes, so that the gradients of gradients find the nodes of the first. What
 * a grad needs is active: it hangs on a tensor of `wrt`, and y hangs on it.  From y back, each active node is asked
 * what reaches its operands (ops/reverse.h); all that reaches a value is put together once, when the last of its users
 * has been asked (grad_parts.c).  Loops and branches: grad_control.c. */
#include "passes/grad.h"

#include <string.h>

#include "ops/meaning.h"

typedef struct Share { /* of a value's gradient */
    Adjoint adjoint;
    struct Share *next; /* earlier ones */
} Share;

typedef struct Grad {
    GradPass *pass;
    Graph *graph;
    Arena *scratch;
    Reverse reverse; /* to build with; `node` is the one that is asked */
    Share **share;   /* per value that there was at the start, the last one first */
    bool *active;    /* likewise */
    uint32_t values; /* that there were */
    ValueId *owner;  /* likewise: the value whose gradient it takes part in; NULL: each its own */
    ValueId *read;   /* likewise: where gradients find it */
    Recompute *recompute;
    NodeId *first_reader; /* per value that there was; NONE: none.  Where something is computed again */
    NodeId asked;
} Grad;

static bool carries(const Graph *graph, ValueId v)
{
    return dtype_is_float(value_type(graph, v)->dtype);
}

/* Taped values: what is read in their stead has no gradient of its own. */

static void see_kept(Grad *g, const GradRequest *request)
{
    if (!request->kept_count)
        return;
    g->owner = ARENA_ARRAY(g->scratch, ValueId, g->values);
    g->read = ARENA_ARRAY(g->scratch, ValueId, g->values);
    for (ValueId v = 0; v < g->values; v++)
        g->owner[v] = g->read[v] = v;
    for (uint32_t i = 0; i < request->kept_count; i++) {
        g->owner[request->kept[i].read] = request->kept[i].value;
        g->read[request->kept[i].value] = request->kept[i].read;
    }
}

static ValueId owner_of(const Grad *g, ValueId v)
{
    return g->owner ? g->owner[v] : v;
}

/* The node as its gradient is to see it. */
static Node with_kept(const Grad *g, const Node *node)
{
    Node seen = *node;
    if (g->read) {
        seen.out = ARENA_ARRAY(g->scratch, ValueId, node->out_count);
        for (uint32_t i = 0; i < node->out_count; i++)
            seen.out[i] = g->read[node->out[i]];
    }
    return seen;
}

/* Activity */

static bool any(const bool *flag, const ValueId *value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (flag[value[i]])
            return true;
    return false;
}

static void mark_active(Grad *g, const GradRequest *request)
{
    const Graph *graph = g->graph;
    bool *hangs = ARENA_ARRAY(g->scratch, bool, g->values), *needed = ARENA_ARRAY(g->scratch, bool, g->values);
    for (uint32_t i = 0; i < request->wrt_count; i++)
        hangs[request->wrt[i]] = carries(graph, request->wrt[i]);
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        bool reached = false;
        for (uint32_t i = 0; i < node->in_count; i++)
            reached |= hangs[owner_of(g, node->in[i])] && op_passes_gradient(graph, node, i);
        for (uint32_t i = 0; reached && i < node->out_count; i++)
            hangs[node->out[i]] |= carries(graph, node->out[i]);
    }
    for (uint32_t i = 0; i < request->y_count; i++)
        needed[request->y[i]] = true;
    for (NodeId n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; any(needed, node->out, node->out_count) && i < node->in_count; i++) {
            ValueId in = owner_of(g, node->in[i]);
            needed[in] |= hangs[in] && op_passes_gradient(graph, node, i);
        }
    }
    for (ValueId v = 0; v < g->values; v++)
        g->active[v] = hangs[owner_of(g, v)] && needed[owner_of(g, v)];
}

static void share(Grad *g, ValueId v, Adjoint adjoint)
{
    Share *share = ARENA_NEW(g->scratch, Share);
    *share = (Share){adjoint, g->share[v]};
    g->share[v] = share;
}

/* The gradient of a value is put together when it is asked for, and from then on is one share. */
static ValueId gradient_of(Grad *g, ValueId v)
{
    uint32_t count = 0;
    for (const Share *share = g->share[v]; share; share = share->next)
        count++;
    if (!count)
        return NONE;
    Adjoint *adjoint = ARENA_ARRAY(g->scratch, Adjoint, count);
    uint32_t at = count; /* the first one first */
    for (const Share *share = g->share[v]; share; share = share->next)
        adjoint[--at] = share->adjoint;
    ValueId value = grad_put_together(&g->reverse, adjoint, count, value_type(g->graph, v));
    g->share[v] = NULL;
    share(g, v, (Adjoint){.value = value, .whole = true});
    return value;
}

/* The walk */

/* What comes of the gradient comes of the call, as errors say, but is not what is to be computed again of it. */
static uint32_t note_call(Graph *graph, const Node *node)
{
    Call *call = ARENA_NEW(graph->module->arena, Call);
    *call = (Call){.name = node->call->name, .library = node->call->library};
    Inlined inlined = {call, node->from, node->place};
    ARENA_PUSH(graph->module->arena, graph->inlined, graph->inlined_count, graph->inlined_capacity, inlined);
    return graph->inlined_count - 1;
}

static void append_body(Graph *graph, const Node *call, const Graph *body, const ValueId *in, ValueId *out)
{
    NodeId node = graph->node_count;
    uint32_t from = note_call(graph, call), inner = graph->inlined_count;
    graph_append_body(graph, body, in, out);
    for (; node < graph->node_count; node++)
        if (graph->node[node].from == NONE)
            graph->node[node].from = from;
    for (; inner < graph->inlined_count; inner++)
        if (graph->inlined[inner].outer == NONE)
            graph->inlined[inner].outer = from;
}

/* Its nodes at the end of the graph; loops among them keep their tapes, for gradients of gradients. */
static void append_gradient(Grad *g, const Node *call, const Graph *gradient, const ValueId *in, ValueId *out)
{
    NodeId copy = g->graph->node_count;
    append_body(g->graph, call, gradient, in, out);
    for (NodeId n = 0; n < gradient->node_count; n++) {
        if (gradient->node[n].dead)
            continue;
        if (node_is_loop(&gradient->node[n]))
            grad_tape_copied(g->pass, gradient, &gradient->node[n], g->graph, &g->graph->node[copy]);
        copy++;
    }
}

static const Graph *prepared_gradient(GradPass *pass, const Node *call);

/* A function with a gradient of its own says it itself. */
static bool ask_call(Grad *g)
{
    Reverse *r = &g->reverse;
    const Node *call = &r->node;
    const Graph *gradient = prepared_gradient(g->pass, call);
    if (!gradient)
        return false;
    ValueId *in = ARENA_ARRAY(g->scratch, ValueId, call->in_count + 2 * call->out_count);
    ValueId *out = ARENA_ARRAY(g->scratch, ValueId, call->in_count);
    memcpy(in, call->in, call->in_count * sizeof *in);
    for (uint32_t i = 0; i < call->out_count; i++) {
        const Type *type = value_type(g->graph, call->out[i]);
        in[call->in_count + i] = call->out[i];
        in[call->in_count + call->out_count + i] =
            r->down[i] != NONE ? r->down[i] : reverse_full(r, type->dtype, &type->shape, 0);
    }
    append_gradient(g, call, gradient, in, out);
    for (uint32_t i = 0; i < call->in_count; i++)
        if (r->wanted[i])
            reverse_give(r, i, out[i]);
    return true;
}

/* Who reads a value is asked before it. */
static void note_readers(Grad *g, uint32_t nodes)
{
    g->first_reader = ARENA_ARRAY(g->scratch, NodeId, g->values);
    memset(g->first_reader, 0xff, g->values * sizeof *g->first_reader); /* NONE */
    for (NodeId n = nodes; n-- > 0;)
        for (uint32_t i = 0; i < g->graph->node[n].in_count; i++)
            g->first_reader[g->graph->node[n].in[i]] = n;
}

static ValueId arrived(void *context, ValueId v)
{
    Grad *g = context;
    return g->active[v] && g->first_reader[v] > g->asked ? gradient_of(g, v) : NONE;
}

static bool ask(Grad *g, const Node *node)
{
    ValueId *down = ARENA_ARRAY(g->scratch, ValueId, node->out_count);
    bool *wanted = ARENA_ARRAY(g->scratch, bool, node->in_count), reached = false;
    g->reverse.node = with_kept(g, node);
    for (uint32_t i = 0; i < node->out_count; i++) {
        down[i] = g->active[node->out[i]] ? gradient_of(g, node->out[i]) : NONE;
        reached |= down[i] != NONE;
    }
    if (!reached)
        return true;
    for (uint32_t i = 0; i < node->in_count; i++)
        wanted[i] = g->active[node->in[i]] && op_passes_gradient(g->graph, node, i);
    if (g->recompute)
        g->reverse.node = grad_recomputed(g->recompute, g->asked, arrived, g);
    g->reverse.down = down;
    g->reverse.wanted = wanted;
    g->reverse.count = 0;
    if (!(node_has_gradient(node) ? ask_call(g)
          : node_has_bodies(node) ? grad_reverse_control(g->pass, &g->reverse)
                                  : op_reverse(&g->reverse)))
        return false;
    for (uint32_t i = 0; i < g->reverse.count; i++)
        if (wanted[g->reverse.adjoint[i].operand])
            share(g, owner_of(g, node->in[g->reverse.adjoint[i].operand]), g->reverse.adjoint[i]);
    return true;
}

bool grad_derive(GradPass *pass, Graph *graph, const GradRequest *request, ValueId *gradient)
{
    Arena *scratch = pass->context->scratch;
    ArenaMark mark = arena_mark(scratch);
    uint32_t nodes = graph->node_count;
    Grad g = {.pass = pass, .graph = graph, .scratch = scratch, .values = graph->value_count};
    g.reverse = (Reverse){.graph = graph, .scratch = scratch, .node = *request->node};
    g.share = ARENA_ARRAY(scratch, Share *, g.values);
    g.active = ARENA_ARRAY(scratch, bool, g.values);
    see_kept(&g, request);
    mark_active(&g, request);
    g.recompute = grad_recompute_open(pass, graph, scratch);
    if (g.recompute)
        note_readers(&g, nodes);

    bool good = true;
    for (uint32_t i = 0; i < request->y_count; i++)
        if (g.active[request->y[i]])
            share(&g, request->y[i], (Adjoint){.value = request->seed[i], .whole = true});
    for (NodeId n = nodes; n-- > 0 && good;) {
        const Node node = graph->node[n];
        g.asked = n;
        if (any(g.active, node.out, node.out_count) && any(g.active, node.in, node.in_count))
            good = ask(&g, &node);
    }
    g.reverse.node = *request->node;
    for (uint32_t i = 0; i < request->wrt_count && good; i++)
        gradient[i] = g.active[request->wrt[i]] ? gradient_of(&g, request->wrt[i]) : NONE;
    arena_reset(scratch, mark);
    return good;
}

/* A grad */

/* Of a library's function nobody has asked whether it may be zero: all rows of a Hessian of what is linear are. */
static bool is_of_library(const Graph *graph, const Node *node)
{
    bool library = false;
    for (uint32_t c = node->from; c != NONE && !library; c = graph->inlined[c].outer)
        library = graph->inlined[c].call->library;
    return library;
}

static void warn_unreached(const Graph *graph, const Node *grad, ValueId v)
{
    if (is_of_library(graph, grad))
        return;
    diag_warning(graph->module->diag, grad->place,
                 "the gradient with respect to " STR_FMT " is zero: " STR_FMT " does not depend on it",
                 STR_ARG(value_show(graph, v)), STR_ARG(value_show(graph, grad->in[0])));
}

static bool differentiate(GradPass *pass, Graph *graph, const Node *grad, ValueId *gradient)
{
    Reverse r = {.graph = graph, .scratch = pass->context->scratch, .node = *grad};
    const Type *y = value_type(graph, grad->in[0]);
    const ValueId *wrt = grad->in + op_first_wrt(grad->op);
    ValueId seed = op_first_wrt(grad->op) > 1 ? grad->in[1] : reverse_full(&r, y->dtype, &y->shape, 1);
    GradRequest request = {
        .y = grad->in, .seed = &seed, .y_count = 1, .wrt = wrt, .wrt_count = grad->out_count, .node = grad};
    if (!grad_derive(pass, graph, &request, gradient))
        return false;
    for (uint32_t i = 0; i < grad->out_count; i++) {
        const Type *type = value_type(graph, wrt[i]);
        if (gradient[i] != NONE)
            continue;
        warn_unreached(graph, grad, wrt[i]);
        gradient[i] = reverse_full(&r, type->dtype, &type->shape, 0);
    }
    return true;
}

/* The schedule anew, with grads replaced */

static void replace_results(Graph *graph, const Node *grad, const ValueId *gradient, uint32_t first_new, ValueId *map)
{
    for (uint32_t i = 0; i < grad->out_count; i++) {
        Value *old = graph_value(graph, grad->out[i]), *by = graph_value(graph, gradient[i]);
        map[grad->out[i]] = gradient[i];
        if (gradient[i] < first_new || by->role != ROLE_RESULT || by->name.len)
            continue;
        by->name = old->name;
        by->place = old->place;
        old->name = (Str){0};
    }
}

static bool has_gradients(const Graph *graph)
{
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead && node_is_gradient(&graph->node[n]))
            return true;
    return false;
}

static void map_uses(Graph *graph, const ValueId *map)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = map[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++)
        graph->update[i].source = map[graph->update[i].source];
}

static ValueId *identity(const Graph *graph, Arena *scratch)
{
    ValueId *map = ARENA_ARRAY(scratch, ValueId, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++)
        map[v] = v;
    return map;
}

static void note_wanted(GradPass *pass, const Graph *graph)
{
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = op_first_wrt(graph->node[n].op);
             node_is_gradient(&graph->node[n]) && i < graph->node[n].in_count; i++)
            if (graph->value[graph->node[n].in[i]].role == ROLE_RESULT)
                map_put(&pass->wanted, grad_key(pass->arena, graph, graph->node[n].in[i]), 1);
}

static bool resolve(GradPass *pass, Graph *graph)
{
    Arena *scratch = pass->context->scratch;
    ValueId *map = identity(graph, scratch);
    grad_tape_loops(pass, graph, map);
    map_uses(graph, map);
    note_wanted(pass, graph);

    uint32_t nodes = graph->node_count;
    const Node *old = arena_copy(scratch, graph->node, nodes * sizeof *old);
    map = identity(graph, scratch);
    graph->node_count = 0;
    for (NodeId n = 0; n < nodes; n++) {
        for (uint32_t i = 0; i < old[n].in_count; i++)
            old[n].in[i] = map[old[n].in[i]];
        if (!node_is_gradient(&old[n])) {
            graph_append_node(graph, &old[n]);
            continue;
        }
        ValueId *gradient = ARENA_ARRAY(scratch, ValueId, old[n].out_count);
        uint32_t first_new = graph->value_count;
        if (!differentiate(pass, graph, &old[n], gradient))
            return false;
        replace_results(graph, &old[n], gradient, first_new, map);
        pass->context->changes++;
    }
    map_uses(graph, map);
    return true;
}

static bool grad_nest(GradPass *pass, Graph *graph);

/* Gradients that it asks for, and tapes of its loops. */
static bool prepare_gradient(GradPass *pass, Graph *gradient)
{
    bool asks = has_gradients(gradient);
    grad_sink(gradient, pass->context->scratch);
    if (!grad_nest(pass, gradient))
        return false;
    if (asks) /* and has tapes */
        return true;
    ValueId *map = identity(gradient, pass->context->scratch);
    grad_tape_loops(pass, gradient, map);
    map_uses(gradient, map);
    return true;
}

/* What a function says its gradient is, when the first gradient asks for it: calls of functions of its kind in it,
 * which may be of the same one, wait until gradients of gradients do. */
static const Graph *prepared_gradient(GradPass *pass, const Node *call)
{
    Graph *said = call->call->gradient;
    Str key = map_key(arena_copy(pass->arena, &said, sizeof said), sizeof said);
    uint32_t known = map_get(&pass->prepared_at, key), at = pass->prepared_count;
    if (known != MAP_NONE && !pass->prepared[known])
        diag_error(said->module->diag, call->place, "the gradient of " STR_FMT " is made of itself",
                   STR_ARG(call->call->name));
    if (known != MAP_NONE)
        return pass->prepared[known];
    map_put(&pass->prepared_at, key, at);
    ARENA_PUSH(pass->arena, pass->prepared, pass->prepared_count, pass->prepared_capacity, NULL);
    Graph *gradient = pass_expand_gradient(call, pass->context);
    if (!prepare_gradient(pass, gradient))
        return NULL;
    return pass->prepared[at] = gradient;
}

/* From the inside out: those around see the nodes. */
static bool grad_nest(GradPass *pass, Graph *graph)
{
    bool good = true;
    for (NodeId n = 0; n < graph->node_count && good; n++) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; node_has_bodies(node) && i < node->sub_count && good; i++)
            good = grad_nest(pass, node->sub[i]);
    }
    return good && (!has_gradients(graph) || resolve(pass, graph));
}

bool grad_all(Graph *graph, PassContext *context)
{
    Arena arena = {0};
    GradPass pass = {.context = context,
                     .arena = &arena,
                     .taped = {.arena = &arena},
                     .sums = {.arena = &arena},
                     .wanted = {.arena = &arena},
                     .prepared_at = {.arena = &arena}};
    grad_sink(graph, context->scratch);
    bool good = grad_nest(&pass, graph);
    arena_free(&arena);
    return good;
}

/* Functions with gradients of their own may ask for gradients themselves: of these in the next round. */
bool pass_grad(Graph *graph, PassContext *context)
{
    bool good;
    do {
        good = grad_all(graph, context);
        grad_forget_remat(graph);
    } while (good && pass_expand_rest(graph, context));
    return good;
}
