/* Slices at run-time positions are read where they are: each joins every kernel that reads it, a copy of the node for
 * each, with the views behind it and with the list that its positions are put together in.  No kernel copies it then.
 * What widens weights (widen.h) joins their readers, too: nowhere are they wide as a whole.  And so does what makes i32
 * of the 8 or 16 bits of an image, less a zero point, for contractions alone.
 *
 * A kernel reads the tensor that it is cut from as late as the kernel runs.  So that nothing has to be kept for that,
 * the tensor is one that nothing is written over: an input, a constant, or a result that is neither updated nor passed
 * to a loop or out of a branch.  What a loop carries changes until the loop ends, and is a result like others then: a
 * tape, which the loop of the gradient reads. */
#include "kernel/join.h"

#include "ops/family.h"
#include "ops/meaning.h"
#include "passes/constant.h"
#include "passes/widen.h"

#define MOST_READERS 64 /* more of them are worth a copy */
#define DEEPEST      16 /* slices of slices: they are lowered by recursion */

typedef struct Finder {
    const Graph *graph;
    Users users;
    const bool *live_out;
    bool *moves;   /* per value: something may come to be written over it ... */
    NodeId *until; /* ... and does before this node, behind the loop that carries it; else 0 */
    bool *widened; /* per value: weights that their readers widen */
    bool *integer; /* per value: i32 made of narrow integers and constants, element by element */
    bool *joins;   /* per node */
} Finder;

/* Through views and slices. */
static ValueId cut_from(const Graph *graph, ValueId value)
{
    const Node *node;
    while ((node = value_producer(graph, value)) && (node_is_view(node) || node_is_dynamic_slice(node)))
        value = node->in[0];
    return value;
}

/* Returns the node behind the loop that begins there.  Recurses over the nesting of loops. */
static NodeId find_carried(Finder *f, NodeId begin)
{
    const Node *node = f->graph->node;
    NodeId end = begin + 1;
    while (node_flow(&node[end]) != FLOW_LOOP_END)
        end = node_flow(&node[end]) == FLOW_LOOP_BEGIN ? find_carried(f, end) : end + 1;
    for (uint32_t r = 0; r < node[begin].out_count; r++)
        f->until[node[begin].out[r]] = end + 1;
    return end + 1;
}

static void find_moving(Finder *f)
{
    const Graph *graph = f->graph;
    for (NodeId n = 0; n < graph->node_count;)
        n = node_flow(&graph->node[n]) == FLOW_LOOP_BEGIN ? find_carried(f, n) : n + 1;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        uint32_t count = node_flow(node) ? node->in_count : node_is_update(node) ? 1 : 0;
        for (uint32_t i = 0; i < count; i++) {
            ValueId value = cut_from(graph, node->in[i]);
            f->moves[value] |= n >= f->until[value];
        }
        for (uint32_t r = 0; node_flow(node) && node_flow(node) != FLOW_LOOP_BEGIN && r < node->out_count; r++)
            f->moves[node->out[r]] = true;
    }
    for (uint32_t i = 0; i < graph->update_count; i++)
        f->moves[graph->update[i].target] = f->moves[cut_from(graph, graph->update[i].source)] = true;
}

/* A list of positions: one for each dimension. */
static bool is_list(const Graph *graph, const Node *node)
{
    return node && node_is_assembly(node) && !assembly_of(graph, node).filled &&
           value_shape(graph, node->out[0])->rank == 1;
}

/* Can the user's kernel read the operand so?  Whatever pulls single elements can, and so do the tiles of a contraction,
 * but for its bias. */
static bool takes(const Finder *f, NodeId n, uint32_t operand)
{
    const Node *user = &f->graph->node[n];
    bool positions = is_list(f->graph, value_producer(f->graph, user->in[operand]));
    if (node_is_view(user) && operand > 0) /* what it waits for is made */
        return false;
    if (f->joins[n] && !positions)
        return true;
    switch (op_info(user->op)->family) {
    case FAMILY_DYNAMIC:
        return positions ? operand == 1 : operand > 0 || node_is_dynamic_slice(user);
    case FAMILY_ELEMENTWISE:
    case FAMILY_CAST:
    case FAMILY_REDUCE:
        return !positions;
    case FAMILY_CONTRACT:
        return !positions && operand < 2;
    default:
        return false;
    }
}

static bool all_take(const Finder *f, ValueId value)
{
    uint32_t first = f->users.first[value], end = f->users.first[value + 1];
    bool all = end > first && end - first <= MOST_READERS;
    for (uint32_t i = first; i < end && all; i++) {
        const Node *user = &f->graph->node[f->users.user[i]];
        for (uint32_t k = 0; k < user->in_count; k++)
            all &= user->in[k] != value || takes(f, f->users.user[i], k);
    }
    return all;
}

/* Weights that no run changes, and what is made of them. */
static void find_widened(Finder *f, Arena *arena)
{
    const Graph *graph = f->graph;
    bool *constant = ARENA_ARRAY(arena, bool, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++) {
        Role role = graph->value[v].role;
        constant[v] = role == ROLE_CONST || (role == ROLE_PARAM && !f->moves[v]);
    }
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        bool known = constant_is_foldable(graph, node) && constant_has_operands(node, constant);
        for (uint32_t r = 0; r < node->out_count; r++)
            constant[node->out[r]] = known;
    }
    f->widened = widen_find(graph, constant, arena);
}

static bool is_constant(const Graph *graph, ValueId value)
{
    double number;
    Role role = graph->value[value].role;
    return role == ROLE_CONST || role == ROLE_PARAM ||
           (value_producer(graph, value) && node_is_number(value_producer(graph, value), &number));
}

/* The operand of which the node makes such an i32, by conversion or with constants alone; NONE. */
static ValueId integer_operand(const Finder *f, const Node *node)
{
    const Graph *graph = f->graph;
    if (node->out_count != 1 || value_type(graph, node->out[0])->dtype != DT_I32 || node_is_expensive(node))
        return NONE;
    DType from = value_type(graph, node->in[0])->dtype;
    if (op_info(node->op)->family == FAMILY_CAST)
        return dtype_is_int(from) && widen_is_narrow(from) ? node->in[0] : NONE;
    ValueId found = NONE;
    for (uint32_t i = 0; i < node->in_count && op_info(node->op)->family == FAMILY_ELEMENTWISE; i++) {
        ValueId v = node->in[i];
        if (f->integer[v] && found == NONE && shape_eq(value_shape(graph, v), value_shape(graph, node->out[0])))
            found = v;
        else if (!is_constant(graph, v))
            return NONE;
    }
    return found;
}

static void find_integers(Finder *f)
{
    const Graph *graph = f->graph;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        ValueId from = node->in_count ? integer_operand(f, node) : NONE;
        if (from != NONE)
            f->integer[node->out[0]] = f->integer[from] || !f->moves[cut_from(graph, from)];
    }
}

/* Do contractions alone read it, but for what joins them? */
static bool feeds_contractions(const Finder *f, ValueId value)
{
    uint32_t first = f->users.first[value], end = f->users.first[value + 1];
    bool all = end > first && end - first <= MOST_READERS && !f->live_out[value];
    for (uint32_t i = first; i < end && all; i++) {
        const Node *user = &f->graph->node[f->users.user[i]];
        bool contracts = op_info(user->op)->family == FAMILY_CONTRACT && (user->in_count < 3 || user->in[2] != value);
        all = contracts || (f->joins[f->users.user[i]] && user->out_count == 1 && f->integer[user->out[0]]);
    }
    return all;
}

/* Is nothing written over the value from the node on? */
static bool stays(const Finder *f, const Node *node, ValueId value)
{
    return !f->moves[value] && (NodeId)(node - f->graph->node) >= f->until[value];
}

static bool may_join(const Finder *f, const Node *node)
{
    ValueId out = node->out_count == 1 ? node->out[0] : NONE;
    if (out != NONE && (f->widened[out] || (f->integer[out] && feeds_contractions(f, out))))
        return true;
    bool slice = node_is_dynamic_slice(node) && stays(f, node, cut_from(f->graph, node->in[0]));
    return (slice || node_is_view(node) || is_list(f->graph, node)) && node->out_count == 1 &&
           !f->live_out[node->out[0]] && all_take(f, node->out[0]);
}

/* Other views are read through as ever. */
static void leave_views(Finder *f, Arena *arena)
{
    uint32_t *depth = ARENA_ARRAY(arena, uint32_t, f->graph->value_count);
    for (NodeId n = 0; n < f->graph->node_count; n++) {
        const Node *node = &f->graph->node[n], *from = node->in_count ? value_producer(f->graph, node->in[0]) : NULL;
        bool computes =
            node->out_count == 1 && !node_is_view(node) && (f->widened[node->out[0]] || f->integer[node->out[0]]);
        if (!f->joins[n] || is_list(f->graph, node) || computes)
            continue;
        uint32_t deep = depth[node->in[0]] + node_is_dynamic_slice(node);
        f->joins[n] = node_is_view(node) ? from && f->joins[from - f->graph->node] : deep <= DEEPEST;
        depth[node->out[0]] = f->joins[n] ? deep : 0;
    }
}

const bool *join_find(const Graph *graph, Arena *arena)
{
    Finder f = {.graph = graph,
                .users = graph_users(graph, arena),
                .live_out = graph_live_out(graph, arena),
                .moves = ARENA_ARRAY(arena, bool, graph->value_count),
                .until = ARENA_ARRAY(arena, NodeId, graph->value_count),
                .joins = ARENA_ARRAY(arena, bool, graph->node_count)};
    find_moving(&f);
    find_widened(&f, arena);
    f.integer = ARENA_ARRAY(arena, bool, graph->value_count);
    find_integers(&f);
    for (NodeId n = graph->node_count; n-- > 0;)
        f.joins[n] = may_join(&f, &graph->node[n]);
    leave_views(&f, arena);
    return f.joins;
}

/* Joining */

typedef struct Copy { /* of a node that joins, in a kernel */
    uint32_t kernel;
    ValueId value;
    uint32_t next; /* 1 + another of the same node; 0: none */
} Copy;

typedef struct Joiner {
    Graph *graph;
    Arena *arena;
    const bool *joins, *again;
    Node *order;
    uint32_t count, capacity; /* of order */
    Copy *copy;
    uint32_t copy_count, copy_capacity;
    uint32_t *first; /* per node: 1 + its last copy */
} Joiner;

static ValueId copy_in(Joiner *j, ValueId value, uint32_t kernel);

/* The node goes to the new order and reads copies in its kernel. */
static void emit(Joiner *j, Node node)
{
    ValueId *in = ARENA_ARRAY(j->graph->module->arena, ValueId, node.in_count);
    for (uint32_t i = 0; i < node.in_count; i++) {
        const Node *from = value_producer(j->graph, node.in[i]);
        bool again = from && j->again[node.in[i]] && from->kernel != node.kernel;
        in[i] = again || (from && j->joins[from - j->graph->node]) ? copy_in(j, node.in[i], node.kernel) : node.in[i];
    }
    node.in = in;
    ARENA_PUSH(j->graph->module->arena, j->order, j->count, j->capacity, node);
}

/* The value as the kernel reads it: of what joins, the first of its copies is itself. */
static ValueId copy_in(Joiner *j, ValueId value, uint32_t kernel)
{
    Graph *graph = j->graph;
    NodeId n = graph->value[value].node;
    for (uint32_t i = j->first[n]; i; i = j->copy[i - 1].next)
        if (j->copy[i - 1].kernel == kernel)
            return j->copy[i - 1].value;
    Node node = graph->node[n];
    Copy copy = {.kernel = kernel, .value = value, .next = j->first[n]};
    if (copy.next || !j->joins[n]) {
        copy.value = graph_add_value(graph, ROLE_RESULT, value_type(graph, value), (Str){0}, node.place);
        node.out = arena_copy(graph->module->arena, &copy.value, sizeof copy.value);
    }
    ARENA_PUSH(j->arena, j->copy, j->copy_count, j->copy_capacity, copy);
    j->first[n] = j->copy_count;
    node.kernel = kernel;
    node.joined = j->joins[n];
    emit(j, node);
    return copy.value;
}

void join_kernels(Graph *graph, Arena *arena, const bool *joins, const bool *again)
{
    Joiner j = {.graph = graph,
                .arena = arena,
                .joins = joins,
                .again = again,
                .first = ARENA_ARRAY(arena, uint32_t, graph->node_count)};
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!joins[n])
            emit(&j, graph->node[n]);
    graph->node = j.order;
    graph->node_count = j.count;
    graph->node_capacity = j.capacity;
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t r = 0; r < graph->node[n].out_count; r++)
            graph->value[graph->node[n].out[r]].node = n;
}
