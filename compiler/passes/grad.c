/* Reverse-mode differentiation: each `grad` becomes the nodes that compute its gradients.
 * Needs: an expanded graph.  Keeps: the order of all other nodes.  Then replaces the calls that expand has left to it.
 *
 * One grad after the other, in the order of nodes, so that the gradients of gradients find the nodes of the first. What
 * a grad needs is active: it hangs on a tensor of `wrt`, and y hangs on it.  From y back, each active node is asked
 * what reaches its operands (ops/reverse.h); all that reaches a value is put together once, when the last of its users
 * has been asked: whole gradients are added, those of parts laid side by side, with zeros only where no part is.
 * Loops and branches: grad_control.c. */
#include "passes/grad.h"

#include <stdlib.h>
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

/* Putting together */

typedef struct Part { /* of a gradient: a box */
    ValueId value;
    uint32_t number; /* in the order they came */
    int64_t begin[MAX_RANK], end[MAX_RANK];
} Part;

typedef struct Region {
    DType dtype;
    uint32_t rank;
    int64_t begin[MAX_RANK], end[MAX_RANK];
} Region;

static Shape region_shape(const Region *region)
{
    Shape shape = {.rank = region->rank};
    for (uint32_t d = 0; d < region->rank; d++)
        shape.dim[d] = region->end[d] - region->begin[d];
    return shape;
}

static bool covers(const Part *part, const Region *region)
{
    for (uint32_t d = 0; d < region->rank; d++)
        if (part->begin[d] != region->begin[d] || part->end[d] != region->end[d])
            return false;
    return true;
}

static ValueId pad_part(Grad *g, const Part *part, const Region *region)
{
    Shape shape = region_shape(region);
    int64_t begin[MAX_RANK];
    for (uint32_t d = 0; d < region->rank; d++)
        begin[d] = part->begin[d] - region->begin[d];
    return reverse_pad(&g->reverse, part->value, begin, &shape);
}

static ValueId add(Grad *g, ValueId sum, ValueId value)
{
    return sum == NONE ? value : reverse_build2(&g->reverse, OP_ADD, sum, value);
}

/* Parts that cannot be told apart by a cut. */
static ValueId add_parts(Grad *g, const Part *part, uint32_t count, const Region *region)
{
    ValueId sum = NONE;
    for (uint32_t i = 0; i < count; i++)
        sum = add(g, sum, pad_part(g, &part[i], region));
    return sum;
}

static _Thread_local uint32_t sorted_dimension; /* qsort takes no context */

static int compare_parts(const void *a, const void *b)
{
    const Part *x = a, *y = b;
    int64_t from = x->begin[sorted_dimension], to = y->begin[sorted_dimension];
    return from != to ? (from > to) - (from < to) : (x->number > y->number) - (x->number < y->number);
}

static ValueId concat(Grad *g, const ValueId *piece, uint32_t count, uint32_t dimension)
{
    Attr axis = {.i = dimension};
    return count == 1 ? piece[0] : reverse_build(&g->reverse, OP_CONCAT, piece, count, &axis);
}

static ValueId lay(Grad *g, Part *part, uint32_t count, const Region *region);

/* Parts, sorted along the dimension, in slabs of the region that none of them sticks out of. */
static ValueId lay_slabs(Grad *g, Part *part, uint32_t count, const Region *region, uint32_t d)
{
    ValueId *piece = ARENA_ARRAY(g->scratch, ValueId, 2 * count + 1);
    uint32_t pieces = 0, first = 0;
    Region slab = *region;
    while (first < count) {
        if (part[first].begin[d] > slab.begin[d]) { /* nothing here */
            slab.end[d] = part[first].begin[d];
            piece[pieces++] = lay(g, part, 0, &slab);
            slab.begin[d] = slab.end[d];
        }
        uint32_t end = first;
        for (slab.end[d] = slab.begin[d]; end < count && (end == first || part[end].begin[d] < slab.end[d]); end++)
            slab.end[d] = part[end].end[d] > slab.end[d] ? part[end].end[d] : slab.end[d];
        piece[pieces++] = lay(g, part + first, end - first, &slab);
        slab.begin[d] = slab.end[d];
        first = end;
    }
    if (slab.begin[d] < region->end[d]) {
        slab.end[d] = region->end[d];
        piece[pieces++] = lay(g, part, 0, &slab);
    }
    return concat(g, piece, pieces, d);
}

/* Does a cut across the dimension lie between two parts? They get sorted along it. */
static bool can_cut(Part *part, uint32_t count, uint32_t dimension)
{
    int64_t end;
    sorted_dimension = dimension;
    qsort(part, count, sizeof *part, compare_parts);
    end = part[0].end[dimension];
    for (uint32_t i = 1; i < count; i++) {
        if (part[i].begin[dimension] >= end)
            return true;
        end = part[i].end[dimension] > end ? part[i].end[dimension] : end;
    }
    return false;
}

/* The tensor of the region that has these parts.  Recurses over slabs: at most as deep as cuts are nested. */
static ValueId lay(Grad *g, Part *part, uint32_t count, const Region *region)
{
    Shape shape = region_shape(region);
    if (count == 0)
        return reverse_full(&g->reverse, region->dtype, &shape, 0);
    if (count == 1)
        return covers(part, region) ? part->value : pad_part(g, part, region);
    for (uint32_t d = 0; d < region->rank; d++)
        if (can_cut(part, count, d))
            return lay_slabs(g, part, count, region, d);
    return add_parts(g, part, count, region);
}

/* All that reaches a value, as one tensor; NONE when nothing does. */
static ValueId put_together(Grad *g, ValueId v)
{
    const Type *type = value_type(g->graph, v);
    Region whole = {.dtype = type->dtype, .rank = type->shape.rank};
    uint32_t count = 0, parts = 0;
    for (const Share *share = g->share[v]; share; share = share->next)
        count++;
    memcpy(whole.end, type->shape.dim, sizeof whole.end);
    Adjoint *adjoint = ARENA_ARRAY(g->scratch, Adjoint, count);
    Part *part = ARENA_ARRAY(g->scratch, Part, count);
    uint32_t at = count;
    for (const Share *share = g->share[v]; share; share = share->next)
        adjoint[--at] = share->adjoint;

    ValueId sum = NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (adjoint[i].whole) {
            sum = add(g, sum, adjoint[i].value);
            continue;
        }
        const Shape *shape = value_shape(g->graph, adjoint[i].value);
        if (shape_elements(shape) == 0)
            continue;
        Part *next = &part[parts];
        *next = (Part){.value = adjoint[i].value, .number = parts};
        parts++;
        for (uint32_t d = 0; d < shape->rank; d++) {
            next->begin[d] = adjoint[i].begin[d];
            next->end[d] = adjoint[i].begin[d] + shape->dim[d];
        }
    }
    if (parts)
        sum = add(g, sum, lay(g, part, parts, &whole));
    else if (count && sum == NONE)
        sum = reverse_full(&g->reverse, type->dtype, &type->shape, 0);
    return sum;
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
    ValueId value = g->share[v] ? put_together(g, v) : NONE;
    g->share[v] = NULL;
    if (value != NONE)
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
static void append_gradient(Grad *g, const Node *call, const ValueId *in, ValueId *out)
{
    const Graph *gradient = call->sub[1];
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

/* A function with a gradient of its own says it itself. */
static void ask_call(Grad *g)
{
    Reverse *r = &g->reverse;
    const Node *call = &r->node;
    ValueId *in = ARENA_ARRAY(g->scratch, ValueId, call->in_count + 2 * call->out_count);
    ValueId *out = ARENA_ARRAY(g->scratch, ValueId, call->in_count);
    memcpy(in, call->in, call->in_count * sizeof *in);
    for (uint32_t i = 0; i < call->out_count; i++) {
        const Type *type = value_type(g->graph, call->out[i]);
        in[call->in_count + i] = call->out[i];
        in[call->in_count + call->out_count + i] =
            r->down[i] != NONE ? r->down[i] : reverse_full(r, type->dtype, &type->shape, 0);
    }
    append_gradient(g, call, in, out);
    for (uint32_t i = 0; i < call->in_count; i++)
        if (r->wanted[i])
            reverse_give(r, i, out[i]);
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
    if (node_has_gradient(node))
        ask_call(g);
    else if (!(node_has_bodies(node) ? grad_reverse_control(g->pass, &g->reverse) : op_reverse(&g->reverse)))
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

/* What a function says its gradient is, which stands alone: gradients that it asks for, and tapes of its loops. */
static bool prepare_gradient(GradPass *pass, Graph *gradient)
{
    bool asks = has_gradients(gradient);
    if (!grad_sink(gradient, pass->context->scratch) || !grad_nest(pass, gradient))
        return false;
    if (asks) /* and has tapes */
        return true;
    ValueId *map = identity(gradient, pass->context->scratch);
    grad_tape_loops(pass, gradient, map);
    map_uses(gradient, map);
    return true;
}

/* From the inside out: those around see the nodes. */
static bool grad_nest(GradPass *pass, Graph *graph)
{
    bool good = true;
    for (NodeId n = 0; n < graph->node_count && good; n++) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; node_has_bodies(node) && i < node->sub_count && good; i++)
            good = grad_nest(pass, node->sub[i]);
        if (good && !node->dead && node_has_gradient(node))
            good = prepare_gradient(pass, node->sub[1]);
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
                     .wanted = {.arena = &arena}};
    bool good = grad_sink(graph, context->scratch) && grad_nest(&pass, graph);
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
