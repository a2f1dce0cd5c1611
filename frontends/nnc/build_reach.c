/* Which params a loss passes a gradient to, as the pass grad would find; and the others of the calls in which these
 * are, which stand still or which the network updates itself.  Found from the loss back, listed in the order of the
 * text. */
#include "frontends/nnc/build_minimize.h"

#include "ops/meaning.h"

typedef struct Reach {
    Builder *b;
    bool values; /* follows all that a value is made of, not gradients alone */
    Map reached; /* by name */
} Reach;

/* A graph where it stands: a callee once for each call.  What is needed there only grows, so that rounds of a loop that
 * are looked at again, with all loops in it, go on from where they were. */
typedef struct Site {
    const Graph *graph;
    bool *needed;        /* per value */
    struct Site **inner; /* per node, a list as long as that of its sub-graphs; NULL: not looked into so far */
} Site;

static void open_site(const Reach *r, Site *site, const Graph *graph)
{
    site->graph = graph;
    site->needed = ARENA_ARRAY(r->b->scratch, bool, graph->value_count);
}

static Site *inner_of(const Reach *r, Site *site, NodeId n)
{
    const Node *node = &site->graph->node[n];
    if (!site->inner)
        site->inner = ARENA_ARRAY(r->b->scratch, Site *, site->graph->node_count);
    if (!site->inner[n]) {
        site->inner[n] = ARENA_ARRAY(r->b->scratch, Site, node->sub_count);
        for (uint32_t s = 0; s < node->sub_count; s++)
            open_site(r, &site->inner[n][s], node->sub[s]);
    }
    return site->inner[n];
}

static void note_param(Reach *r, const Graph *graph, ValueId v)
{
    const Value *value = &graph->value[v];
    if (value->role == ROLE_PARAM && dtype_is_float(value->type->dtype))
        map_add(&r->reached, value->name, v);
}

/* From what is needed of a graph back, also into calls, loops and branches.  Recurses over their nesting. */
static void reach(Reach *r, Site *site);

/* What a call needs for those of its results that are needed. */
static void reach_call(Reach *r, Site *site, NodeId n)
{
    const Node *node = &site->graph->node[n];
    Site *body = inner_of(r, site, n);
    for (uint32_t i = 0; i < node->out_count; i++)
        body->needed[body->graph->output[i].value] |= site->needed[node->out[i]];
    reach(r, body);
    for (uint32_t i = 0; r->values && i < body->graph->update_count; i++) /* running means */
        note_param(r, body->graph, body->graph->update[i].target);
    for (uint32_t i = 0; i < node->in_count; i++)
        site->needed[node->in[i]] |= body->needed[body->graph->input[i]];
}

/* Adds the operands that a body of the loop needs to the list; true where there are more of what is carried. */
static bool list_operands(const Node *node, const Site *body, uint32_t carried, bool *listed)
{
    bool more = false;
    for (uint32_t i = 0; i < node->in_count; i++) {
        more |= i < carried && !listed[i] && body->needed[body->graph->input[i]];
        listed[i] |= body->needed[body->graph->input[i]];
    }
    return more;
}

/* What is carried counts where its result is needed, or another round needs it: until that adds nothing more.  A
 * condition passes no gradient. */
static void reach_loop(Reach *r, Site *site, NodeId n)
{
    const Node *node = &site->graph->node[n];
    Loop loop = loop_of(site->graph, node);
    Site *body = inner_of(r, site, n);
    bool *listed = ARENA_ARRAY(r->b->scratch, bool, node->in_count), more;
    for (uint32_t i = 0; i < loop.carried; i++)
        listed[i] = site->needed[node->out[i]];
    for (uint32_t s = 0; s < node->sub_count; s++)
        list_operands(node, &body[s], loop.carried, listed);
    do {
        more = false;
        for (uint32_t s = 0; s < node->sub_count; s++) {
            const Graph *graph = body[s].graph;
            for (uint32_t i = 0; i < graph->output_count; i++)
                body[s].needed[graph->output[i].value] |=
                    graph == loop.body && i < loop.carried ? listed[i] : r->values;
            reach(r, &body[s]);
            more |= list_operands(node, &body[s], loop.carried, listed);
        }
    } while (more);
    for (uint32_t i = 0; i < node->in_count; i++)
        site->needed[node->in[i]] |= listed[i];
}

static void reach_choice(Reach *r, Site *site, NodeId n)
{
    const Node *node = &site->graph->node[n];
    uint32_t captured = node_first_captured(site->graph, node);
    Site *branch = inner_of(r, site, n);
    for (uint32_t s = 0; s < node->sub_count; s++) {
        const Graph *graph = branch[s].graph;
        for (uint32_t i = 0; i < node->out_count; i++)
            branch[s].needed[graph->output[i].value] |= site->needed[node->out[i]];
        reach(r, &branch[s]);
        for (uint32_t i = captured; i < node->in_count; i++)
            site->needed[node->in[i]] |= branch[s].needed[graph->input[i - captured]];
    }
    site->needed[node->in[0]] |= r->values;
}

/* A function with a gradient of its own gives one to each operand, whatever its results are made of. */
static void reach_node(Reach *r, Site *site, NodeId n)
{
    const Node *node = &site->graph->node[n];
    if (node_is_call(node) && (r->values || !node_has_gradient(node)))
        reach_call(r, site, n);
    else if (node_is_loop(node))
        reach_loop(r, site, n);
    else if (node_is_choice(node))
        reach_choice(r, site, n);
    else
        for (uint32_t i = 0; i < node->in_count; i++)
            site->needed[node->in[i]] |= r->values || op_passes_gradient(site->graph, node, i);
}

static void reach(Reach *r, Site *site)
{
    const Graph *graph = site->graph;
    for (NodeId n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        bool used = false;
        for (uint32_t i = 0; i < node->out_count; i++)
            used |= site->needed[node->out[i]];
        if (used)
            reach_node(r, site, n);
    }
    for (ValueId v = 0; v < graph->value_count; v++)
        if (site->needed[v])
            note_param(r, graph, v);
}

static Map reached_from(Builder *b, ValueId loss, bool values)
{
    Reach r = {.b = b, .values = values, .reached = {.arena = b->scratch}};
    Site site = {0};
    open_site(&r, &site, b->frame->graph);
    site.needed[loss] = true;
    reach(&r, &site);
    return r.reached;
}

typedef struct Lister {
    Arena *arena;
    Map wanted, listed;
    const Map *trained; /* NULL: those of all calls are listed, else of those in which there is one of these */
    ReachedParams list;
} Lister;

static bool is_in(const Map *map, const Value *param)
{
    return param->role == ROLE_PARAM && map_get(map, param->name) != MAP_NONE;
}

/* Recurses over the nesting. */
static bool holds_trained(const Lister *l, const Graph *graph)
{
    bool holds = false;
    for (ValueId v = 0; v < graph->value_count && !holds; v++)
        holds = is_in(l->trained, &graph->value[v]);
    for (NodeId n = 0; n < graph->node_count && !holds; n++)
        for (uint32_t s = 0; s < graph->node[n].sub_count && !holds; s++)
            holds = holds_trained(l, graph->node[n].sub[s]);
    return holds;
}

/* Those of a graph, then those of calls in it.  Recurses over the nesting. */
static void list_params(Lister *l, const Graph *graph, bool within)
{
    for (ValueId v = 0; v < graph->value_count && within; v++)
        if (is_in(&l->wanted, &graph->value[v]) && map_add(&l->listed, graph->value[v].name, v))
            ARENA_PUSH(l->arena, l->list.at, l->list.count, l->list.capacity, ((ReachedParam){graph, v}));
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; !node_is_minimize(&graph->node[n]) && s < graph->node[n].sub_count; s++)
            list_params(l, graph->node[n].sub[s], within || holds_trained(l, graph->node[n].sub[s]));
}

ReachedParams build_reach(Builder *b, ValueId loss)
{
    Lister l = {.arena = b->scratch, .wanted = reached_from(b, loss, false), .listed = {.arena = b->scratch}};
    list_params(&l, b->frame->graph, true);
    return l.list;
}

ReachedParams build_reach_others(Builder *b, ValueId loss, const ReachedParams *trained)
{
    Map names = {.arena = b->scratch};
    Lister l = {
        .arena = b->scratch, .wanted = reached_from(b, loss, true), .listed = {.arena = b->scratch}, .trained = &names};
    for (uint32_t i = 0; i < trained->count; i++) {
        Str name = graph_value(trained->at[i].graph, trained->at[i].value)->name;
        map_put(&names, name, i);
        map_put(&l.listed, name, i);
    }
    list_params(&l, b->frame->graph, false);
    return l.list;
}
