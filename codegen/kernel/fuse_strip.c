/* Kernels that become one which goes by strips (lower/strip.h): a product, reductions over the rows that it makes, if
 * any, and the product that alone takes these rows.
 * The first two move to the last, which all that they depend on comes before. */
#include "kernel/fuser.h"
#include "kernel/kernel.h"
#include "kernel/lower/strip.h"
#include "ops/family.h"

#define SEVERAL (NONE - 1) /* readers, or some that read through views */

typedef struct Members { /* of a kernel */
    NodeId product, first, last;
    uint32_t products, reductions, flow; /* flow: places before it where a body begins or ends */
    bool other;                          /* nodes that no strip has */
    bool marked;                         /* the text asks for another recipe */
    ValueId result;                      /* the one that another kernel reads; NONE; SEVERAL */
} Members;

typedef struct Stripper {
    Graph *graph;
    Arena *arena;
    const Target *target;
    Users users;
    Members *kernel;   /* by number */
    uint32_t *reader;  /* per value: the other kernel that reads it; NONE; SEVERAL */
    uint32_t *becomes; /* per kernel: the one that it moves to */
    uint8_t *part;     /* ... and its part there; 0 */
} Stripper;

static void add_member(Stripper *s, NodeId n, uint32_t flow)
{
    const Node *node = &s->graph->node[n];
    Members *kernel = &s->kernel[node->kernel];
    OpFamily family = op_info(node->op)->family;
    kernel->flow = flow;
    kernel->first = kernel->first == NONE ? n : kernel->first;
    kernel->last = n;
    if (family == FAMILY_CONTRACT) {
        kernel->products++;
        kernel->product = n;
    } else if (family == FAMILY_REDUCE)
        kernel->reductions++;
    else
        kernel->other |= family != FAMILY_ELEMENTWISE && family != FAMILY_CAST && !node->joined;
    kernel->marked |= node->mark && node->mark->place.source && !str_is(node->mark->provider, provider_strips.name);
}

static void note_reads(Stripper *s, const Node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++) {
        ValueId value = node->in[i];
        const Node *maker = value_producer(s->graph, value);
        if (!maker || maker->kernel == NONE || maker->kernel == node->kernel)
            continue;
        uint32_t reader = node->kernel == NONE ? SEVERAL : node->kernel;
        s->reader[value] = s->reader[value] == NONE || s->reader[value] == reader ? reader : SEVERAL;
    }
}

static void note_results(Stripper *s, const Node *node)
{
    for (uint32_t r = 0; r < node->out_count; r++) {
        Members *kernel = &s->kernel[node->kernel];
        if (s->reader[node->out[r]] != NONE)
            kernel->result = kernel->result == NONE ? node->out[r] : SEVERAL;
    }
}

static void see_kernels(Stripper *s)
{
    const Graph *graph = s->graph;
    const bool *live_out = graph_live_out(graph, s->arena);
    uint32_t kernels = 0, flow = 0;
    for (NodeId n = 0; n < graph->node_count; n++)
        if (graph->node[n].kernel != NONE && graph->node[n].kernel >= kernels)
            kernels = graph->node[n].kernel + 1;
    s->kernel = ARENA_ARRAY(s->arena, Members, kernels);
    s->becomes = ARENA_ARRAY(s->arena, uint32_t, kernels);
    s->part = ARENA_ARRAY(s->arena, uint8_t, kernels);
    s->reader = ARENA_ARRAY(s->arena, uint32_t, graph->value_count);
    for (uint32_t k = 0; k < kernels; k++) {
        s->kernel[k] = (Members){.product = NONE, .first = NONE, .result = NONE};
        s->becomes[k] = k;
    }
    for (ValueId v = 0; v < graph->value_count; v++)
        s->reader[v] = live_out[v] ? SEVERAL : NONE;
    for (NodeId n = 0; n < graph->node_count; n++) {
        flow += node_flow(&graph->node[n]) != 0;
        note_reads(s, &graph->node[n]);
        if (graph->node[n].kernel != NONE)
            add_member(s, n, flow);
    }
    for (NodeId n = 0; n < graph->node_count; n++)
        if (graph->node[n].kernel != NONE)
            note_results(s, &graph->node[n]);
}

/* The other kernel that makes the value, and nothing else that is kept, for `reader` alone; NONE. */
static uint32_t maker_for(const Stripper *s, ValueId value, uint32_t reader)
{
    const Node *maker = value_producer(s->graph, value);
    uint32_t k = maker ? maker->kernel : NONE;
    bool alone = k != NONE && k != reader && s->kernel[k].result == value && s->reader[value] == reader;
    return alone && !s->part[k] && !s->kernel[k].other && !s->kernel[k].marked &&
                   s->kernel[k].flow == s->kernel[reader].flow
               ? k
               : NONE;
}

static bool makes_product(const Stripper *s, uint32_t kernel)
{
    return kernel != NONE && s->kernel[kernel].products == 1 && !s->kernel[kernel].reductions;
}

/* Does the kernel compute an operand of its product? */
static bool makes_operand(const Stripper *s, uint32_t kernel)
{
    const Node *product = &s->graph->node[s->kernel[kernel].product];
    for (uint32_t i = 0; i < product->in_count; i++) {
        const Node *maker = value_producer(s->graph, kernel_view_owner(s->graph, product->in[i]));
        if (maker && maker->kernel == kernel && !maker->joined)
            return true;
    }
    return false;
}

static bool is_of_rows(const Graph *graph, const Node *node, const Shape *space)
{
    uint32_t rank;
    const Type *type = value_type(graph, node->in[0]);
    if (!node_is_reduction(graph, node))
        return false;
    Reduction reduction = reduction_of(graph, node);
    return !type->layout.block && shape_eq(&type->shape, space) && reduction_is_of_rows(&reduction, &rank) &&
           rank + 1 == space->rank;
}

/* The product under a kernel of rows whose space is that of its result; NONE. */
static uint32_t product_under(const Stripper *s, uint32_t rows, const Shape *space)
{
    const Graph *graph = s->graph;
    uint32_t found = NONE;
    for (NodeId n = s->kernel[rows].first; n <= s->kernel[rows].last; n++) {
        const Node *node = &graph->node[n];
        if (node->kernel != rows)
            continue;
        if (op_info(node->op)->family == FAMILY_REDUCE && !is_of_rows(graph, node, space))
            return NONE;
        for (uint32_t i = 0; i < node->in_count && found == NONE; i++) {
            uint32_t maker = maker_for(s, node->in[i], rows);
            if (makes_product(s, maker) && shape_eq(value_shape(graph, node->in[i]), space))
                found = maker;
        }
    }
    return found;
}

/* Is the value the node's first operand, and nothing else's? */
static bool is_taken_once(const Stripper *s, ValueId value)
{
    return s->users.first[value + 1] - s->users.first[value] == 1;
}

/* The product of the kernel, and those that it may take in. */
static void find_strip(Stripper *s, uint32_t kernel)
{
    const Graph *graph = s->graph;
    if (!makes_product(s, kernel) || s->part[kernel] || s->kernel[kernel].other || s->kernel[kernel].marked)
        return;
    const Node *second = &graph->node[s->kernel[kernel].product];
    uint32_t maker = maker_for(s, second->in[0], kernel), rows = NONE;
    if (maker != NONE && s->kernel[maker].reductions && !s->kernel[maker].products) {
        rows = maker;
        maker = product_under(s, rows, value_shape(graph, second->in[0]));
    }
    if (!makes_product(s, maker) || makes_operand(s, maker) || !is_taken_once(s, second->in[0]) ||
        value_type(graph, s->kernel[maker].result)->dtype != DT_F32) /* which a strip is of */
        return;
    const Node *first = &graph->node[s->kernel[maker].product];
    if (!shape_eq(value_shape(graph, first->out[0]), value_shape(graph, second->in[0])) || makes_operand(s, kernel) ||
        !strip_takes(graph, s->arena, s->target, first, second))
        return;
    s->becomes[maker] = kernel;
    s->part[maker] = STRIP_FIRST;
    s->part[kernel] = STRIP_SECOND;
    if (rows == NONE)
        return;
    s->becomes[rows] = kernel;
    s->part[rows] = STRIP_ROWS;
}

void strip_join(Graph *graph, Arena *arena, const Target *target)
{
    Stripper s = {.graph = graph, .arena = arena, .target = target, .users = graph_users(graph, arena)};
    see_kernels(&s);
    for (NodeId n = 0; n < graph->node_count; n++)
        if (graph->node[n].kernel != NONE && s.kernel[graph->node[n].kernel].product == n)
            find_strip(&s, graph->node[n].kernel);
    for (NodeId n = 0; n < graph->node_count; n++) {
        Node *node = &graph->node[n];
        if (node->kernel == NONE)
            continue;
        node->part = s.part[node->kernel];
        node->kernel = s.becomes[node->kernel];
    }
}
