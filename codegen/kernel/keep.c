/* What kernels keep for others: as few bytes as all that others read can be made of again.
 *
 * A kernel may make several values that later ones read, above all for gradients: of gelu x / 2, x squared, tanh and
 * what follows from them.  Only some have to be stored, here x, when the others are computed again where they are read.
 * Which ones is a minimum cut: between what cannot be computed again (sums, values of other kernels, which would live
 * longer) and what others read, through the elementwise nodes of the kernel, each value weighing its bytes.  So
 * activations are chosen in PyTorch's AOTAutograd, too, for a whole graph at once (He and Yu, "Transcending
 * runtime-memory tradeoffs in checkpointing by being fusion aware", 2023). */
#include "kernel/keep.h"

#include "kernel/kernel.h"

#include "base/number.h"
#include "base/network.h"
#include "ops/family.h"
#include "ops/meaning.h"
#include "passes/extremes.h"
#include "passes/integers.h"

#define IN_CACHE     (256 << 10) /* bytes */
#define MOST_AGAIN   16          /* nodes of one kernel that others compute again */
#define LITTLE       64          /* such a part of a value decides */
#define FEW_INTEGERS 8           /* fewer of them than results, by so much */
#define MOST_READERS 8           /* kernels that compute a value again */
#define MOST_COSTLY  2           /* ... where it takes exponentials and the like */

typedef struct Keeper {
    const Graph *graph;
    const Target *target;
    Arena *arena;
    bool expensive;
    Users users;
    const bool *live_out;
    bool *again, *updated;  /* per value: the result; a state or param that is written */
    const bool *extreme;    /* per value (extremes.h) */
    uint32_t *last;         /* per value: the last kernel that reads it, through views; 0 for none */
    const uint32_t *ends;   /* per node: how many flow nodes come before */
    uint32_t *size, *first; /* per kernel: nodes; its first one */
    uint32_t *next;         /* per node: the next of its kernel, NONE */
    uint32_t *vertex;       /* per value: 1 + its vertex in the network at hand */
    uint32_t kernel_count;
} Keeper;

/* Looking at the graph */

static void find_kernels(Keeper *k)
{
    const Graph *graph = k->graph;
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (graph->node[n].kernel != NONE && graph->node[n].kernel >= k->kernel_count)
            k->kernel_count = graph->node[n].kernel + 1;
    k->size = ARENA_ARRAY(k->arena, uint32_t, k->kernel_count);
    k->first = ARENA_ARRAY(k->arena, uint32_t, k->kernel_count);
    k->next = ARENA_ARRAY(k->arena, uint32_t, graph->node_count);
    for (uint32_t i = 0; i < k->kernel_count; i++)
        k->first[i] = NONE;
    for (uint32_t n = graph->node_count; n-- > 0;) {
        uint32_t kernel = graph->node[n].kernel;
        if (kernel == NONE)
            continue;
        k->size[kernel]++;
        k->next[n] = k->first[kernel];
        k->first[kernel] = n;
    }
}

/* Users come later, so that backwards views know how long they are read. */
static void find_lives(Keeper *k)
{
    const Graph *graph = k->graph;
    k->last = ARENA_ARRAY(k->arena, uint32_t, graph->value_count);
    k->updated = ARENA_ARRAY(k->arena, bool, graph->value_count);
    for (uint32_t i = 0; i < graph->update_count; i++)
        k->updated[graph->update[i].target] = true;
    for (uint32_t n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        uint32_t until = node->kernel == NONE ? 0 : node->kernel;
        for (uint32_t r = 0; node->kernel == NONE && r < node->out_count; r++)
            until = k->last[node->out[r]] > until ? k->last[node->out[r]] : until;
        for (uint32_t i = 0; i < node->in_count; i++)
            k->last[node->in[i]] = k->last[node->in[i]] > until ? k->last[node->in[i]] : until;
    }
}

static int64_t bytes_of(const Keeper *k, ValueId value)
{
    return type_bytes(value_type(k->graph, value));
}

static bool is_number(DType dtype)
{
    return dtype == DT_F32 || dtype == DT_F64 || dtype == DT_BOOL;
}

/* Of i8, u8 and bf16, which vectors are widened of as they are loaded, to f32 */
static bool widens_bytes(const Keeper *k, const Node *node)
{
    if (!k->target || op_info(node->op)->family != FAMILY_CAST || op_keeps_bits(node->op) ||
        value_type(k->graph, node->out[0])->dtype != DT_F32)
        return false;
    DType dtype = value_type(k->graph, node->in[0])->dtype;
    return dtype == DT_BF16 ? k->target->brains : k->target->pairs && (dtype == DT_I8 || dtype == DT_U8);
}

/* A label for a row of classes is read as fast as numbers are, other integers are not. */
static bool is_read_fast(const Keeper *k, ValueId value, const Node *reader)
{
    return is_number(value_type(k->graph, value)->dtype) || widens_bytes(k, reader) ||
           shape_elements(value_shape(k->graph, value)) <=
               shape_elements(value_shape(k->graph, reader->out[0])) / FEW_INTEGERS;
}

/* Computing it takes longer than reading it from a cache. */
static bool is_costly(const Node *node)
{
    return op_info(node->op)->scalar && word_list_is_expensive(op_info(node->op)->scalar);
}

/* Would the reduction compute what it reduces? */
static bool sums_elements(const Keeper *k, const Node *node)
{
    uint32_t row_rank;
    if (!node_is_reduction(k->graph, node))
        return false;
    Reduction reduction = reduction_of(k->graph, node);
    return reduction_is_of_rows(&reduction, &row_rank) || lower_columns_take(k->graph, k->target, node) ||
           lower_runs_take(k->graph, k->target, node);
}

/* Is it there for sums alone, as the squares of a norm, or differences of all pairs for the gradients of both? */
static bool is_only_summed(const Keeper *k, ValueId value)
{
    const Type *type = value_type(k->graph, value);
    if (type->layout.block || !shape_elements(&type->shape) ||
        k->users.first[value + 1] - k->users.first[value] > MOST_READERS)
        return false;
    for (uint32_t i = k->users.first[value]; i < k->users.first[value + 1]; i++)
        if (!sums_elements(k, &k->graph->node[k->users.user[i]]))
            return false;
    return true;
}

/* Could the reader compute the value itself: at its own position, in the same stretch of nodes? */
static bool may_repeat(const Keeper *k, ValueId value, const Node *reader)
{
    const Graph *graph = k->graph;
    bool together = k->ends[reader - graph->node] == k->ends[graph->value[value].node];
    if (reader->kernel == NONE)
        return false;
    if (node_is_contraction(graph, reader))
        return together && pairs_takes_operand(graph, k->target, reader, value);
    if (op_info(reader->op)->family == FAMILY_POOL)
        return together && k->target && k->target->pairs && integers_are_narrow(graph, value);
    if (is_only_summed(k, value))
        return together;
    if (op_info(reader->op)->family != FAMILY_ELEMENTWISE && !widens_bytes(k, reader))
        return false;
    const Type *type = value_type(graph, value), *to = value_type(graph, reader->out[0]);
    return shape_eq(&type->shape, &to->shape) && type->layout.block == to->layout.block && together;
}

/* Does another node of its kernel, elementwise as well, read it at another position than its own: one for each row? */
static bool is_broadcast(const Keeper *k, const Node *node)
{
    for (uint32_t i = k->users.first[node->out[0]]; i < k->users.first[node->out[0] + 1]; i++) {
        const Node *reader = &k->graph->node[k->users.user[i]];
        if (reader->kernel == node->kernel && op_info(reader->op)->family == FAMILY_ELEMENTWISE &&
            !may_repeat(k, node->out[0], reader))
            return true;
    }
    return false;
}

/* May others compute it?  Not what reads memory at other positions than its own, but for bytes that it widens, which
 * who reads them brings into scratch anyway, nor what is read at others: a kernel has no values of another shape than
 * its own. */
static bool repeats(const Keeper *k, const Node *node)
{
    const Graph *graph = k->graph;
    if ((op_info(node->op)->family != FAMILY_ELEMENTWISE && !widens_bytes(k, node)) || node->mark ||
        (is_costly(node) && (!k->expensive || bytes_of(k, node->out[0]) < IN_CACHE)) ||
        (k->extreme[node->out[0]] && !extremes_exact(node)) || !is_number(value_type(graph, node->out[0])->dtype))
        return false;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Node *producer = value_producer(graph, node->in[i]);
        if (!is_read_fast(k, node->in[i], node) ||
            (producer && producer->kernel == NONE && !node_is_formula(producer) && !view_is_reshape(producer) &&
             !(widens_bytes(k, node) && node_is_view(producer))))
            return false;
    }
    return !is_broadcast(k, node);
}

/* Who reads the values of a kernel */

typedef struct Need {
    bool others, stored; /* others read it; it must be in memory for one of them, or as it leaves the graph */
    uint32_t last;       /* of the kernels that read it */
} Need;

static Need need_of(const Keeper *k, ValueId value)
{
    uint32_t own = value_producer(k->graph, value)->kernel;
    Need need = {.stored = k->live_out[value]};
    for (uint32_t i = k->users.first[value]; i < k->users.first[value + 1]; i++) {
        const Node *reader = &k->graph->node[k->users.user[i]];
        if (reader->kernel == own)
            continue;
        need.others = true;
        need.stored |= !may_repeat(k, value, reader);
        need.last = reader->kernel != NONE && reader->kernel > need.last ? reader->kernel : need.last;
    }
    return need;
}

/* What reads rows more than once is not written over what it reads: both are in memory, unless that alone is kept. */
static bool reduces(const Keeper *k, uint32_t kernel)
{
    for (uint32_t n = k->first[kernel]; n != NONE; n = k->next[n])
        if (node_is_reduction(k->graph, &k->graph->node[n]))
            return true;
    return false;
}

/* What it costs to have it in memory until kernel `last`; NETWORK_ENDLESS: it will not be what it was. */
static int64_t price(const Keeper *k, ValueId value, uint32_t kernel, uint32_t last)
{
    const Graph *graph = k->graph;
    Role role = graph->value[value].role;
    const Node *producer = value_producer(graph, value);
    if (role == ROLE_STATE || k->updated[value])
        return NETWORK_ENDLESS;
    if (role != ROLE_RESULT || (producer->kernel == NONE && node_is_formula(producer)))
        return 0;
    if (producer->kernel != kernel)
        return k->live_out[value] || (k->last[value] >= last && !k->again[value])
                   ? 0
                   : bytes_of(k, value) - (reduces(k, kernel) ? bytes_of(k, value) / LITTLE : 0);
    return need_of(k, value).stored ? 0 : bytes_of(k, value);
}

/* The network of a kernel: each value has an entrance and an exit, joined by an edge of its price */

enum { FROM, TO, FIRST_VERTEX };

typedef struct Choice {
    Keeper *k;
    Network network;
    uint32_t kernel, last;
    ValueId *value; /* per vertex */
    uint32_t count, capacity;
    int64_t before; /* bytes that others read now */
} Choice;

static uint32_t entrance(uint32_t vertex)
{
    return FIRST_VERTEX + 2 * vertex;
}

static void add_vertex(Choice *c, ValueId value)
{
    if (c->k->vertex[value])
        return;
    ARENA_PUSH(c->k->arena, c->value, c->count, c->capacity, value);
    c->k->vertex[value] = c->count;
}

static void add_vertices(Choice *c)
{
    Keeper *k = c->k;
    for (uint32_t n = k->first[c->kernel]; n != NONE; n = k->next[n]) {
        const Node *node = &k->graph->node[n];
        for (uint32_t i = 0; i < node->in_count && repeats(k, node); i++)
            add_vertex(c, node->in[i]);
        for (uint32_t r = 0; r < node->out_count; r++)
            add_vertex(c, node->out[r]);
    }
}

static void add_edges(Choice *c)
{
    Keeper *k = c->k;
    for (uint32_t v = 0; v < c->count; v++) {
        ValueId value = c->value[v];
        const Node *producer = value_producer(k->graph, value);
        bool own = producer && producer->kernel == c->kernel, again = own && repeats(k, producer);
        network_add(&c->network, entrance(v), entrance(v) + 1, price(k, value, c->kernel, c->last));
        if (!again)
            network_add(&c->network, FROM, entrance(v), NETWORK_ENDLESS);
        for (uint32_t i = 0; again && i < producer->in_count; i++)
            network_add(&c->network, entrance(k->vertex[producer->in[i]] - 1) + 1, entrance(v), NETWORK_ENDLESS);
        if (own && need_of(k, value).others)
            network_add(&c->network, entrance(v) + 1, TO, NETWORK_ENDLESS);
    }
}

/* Others read something that they could compute. */
static bool has_choice(Choice *c)
{
    const Keeper *k = c->k;
    bool some = false;
    for (uint32_t n = k->first[c->kernel]; n != NONE; n = k->next[n])
        for (uint32_t r = 0; r < k->graph->node[n].out_count; r++) {
            ValueId value = k->graph->node[n].out[r];
            Need need = need_of(k, value);
            if (!need.others || need.stored)
                continue;
            some |= repeats(k, &k->graph->node[n]);
            c->before += bytes_of(k, value);
            c->last = need.last > c->last ? need.last : c->last;
        }
    return some;
}

/* What others would compute again, and the kernels that would. */
typedef struct Repeats {
    uint32_t nodes, readers;
    uint32_t reader[MOST_READERS];
    bool costly, too_many;
} Repeats;

static void add_reader(Repeats *repeats, uint32_t kernel)
{
    for (uint32_t i = 0; i < repeats->readers; i++)
        if (repeats->reader[i] == kernel)
            return;
    repeats->too_many |= repeats->readers == MOST_READERS;
    if (!repeats->too_many)
        repeats->reader[repeats->readers++] = kernel;
}

static Repeats repeats_of(const Choice *c, const bool *side)
{
    const Keeper *k = c->k;
    Repeats repeats = {0};
    for (uint32_t v = 0; v < c->count; v++) {
        ValueId value = c->value[v];
        if (!side[entrance(v)])
            continue;
        repeats.nodes++;
        repeats.costly |= is_costly(value_producer(k->graph, value));
        for (uint32_t i = k->users.first[value]; i < k->users.first[value + 1]; i++) {
            uint32_t kernel = k->graph->node[k->users.user[i]].kernel;
            if (kernel != c->kernel)
                add_reader(&repeats, kernel);
        }
    }
    return repeats;
}

/* Do all who would compute them again have room for them, and are they few? */
static bool readers_agree(const Keeper *k, const Repeats *repeats)
{
    if (repeats->too_many || repeats->nodes > MOST_AGAIN || (repeats->costly && repeats->readers > MOST_COSTLY))
        return false;
    for (uint32_t i = 0; i < repeats->readers; i++)
        if (k->size[repeats->reader[i]] + repeats->nodes > MOST_NODES)
            return false;
    return true;
}

static void choose(Keeper *k, uint32_t kernel)
{
    Choice c = {.k = k, .kernel = kernel};
    if (!has_choice(&c))
        return;
    add_vertices(&c);
    c.network = network_new(k->arena, FIRST_VERTEX + 2 * c.count);
    add_edges(&c);
    int64_t bytes = network_flow(&c.network, FROM, TO);
    const bool *side = network_side(&c.network, TO);
    Repeats repeats = repeats_of(&c, side);
    bool less = bytes < c.before && readers_agree(k, &repeats);
    for (uint32_t i = 0; less && i < repeats.readers; i++)
        k->size[repeats.reader[i]] += repeats.nodes;
    for (uint32_t v = 0; v < c.count; v++) {
        k->again[c.value[v]] |= less && side[entrance(v)];
        k->vertex[c.value[v]] = 0;
    }
}

const bool *keep_find(const Graph *graph, Arena *arena, const KeepContext *context)
{
    Keeper k = {.graph = graph,
                .target = context->target,
                .arena = arena,
                .expensive = context->expensive,
                .users = context->users,
                .live_out = context->live_out,
                .ends = context->ends,
                .again = ARENA_ARRAY(arena, bool, graph->value_count),
                .extreme = extremes_find(graph, arena),
                .vertex = ARENA_ARRAY(arena, uint32_t, graph->value_count)};
    find_kernels(&k);
    find_lives(&k);
    for (uint32_t i = 0; i < k.kernel_count; i++)
        choose(&k, i);
    return k.again;
}

/* What nobody reads any more */

void keep_drop(Graph *graph, Arena *arena)
{
    uint32_t *uses = ARENA_ARRAY(arena, uint32_t, graph->value_count);
    const bool *live_out = graph_live_out(graph, arena);
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].in_count; i++)
            uses[graph->node[n].in[i]]++;
    for (uint32_t n = graph->node_count; n-- > 0;) {
        Node *node = &graph->node[n];
        ValueId out = node->out_count ? node->out[0] : NONE;
        OpFamily family = op_info(node->op)->family;
        if ((family != FAMILY_ELEMENTWISE && family != FAMILY_CAST) || uses[out] || live_out[out])
            continue;
        node->dead = true;
        for (uint32_t i = 0; i < node->in_count; i++)
            uses[node->in[i]]--;
    }
    graph_compact(graph);
}
