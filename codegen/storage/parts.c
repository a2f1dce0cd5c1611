/* Assembly without copies: an operand of a concat or a pad is placed inside the result, so that the kernel that makes
 * it writes it there.  What is stacked is a reshape of what was made, and lies there all the same, if its elements are
 * evenly apart in the result.  So does what an output is only another shape, or another order of the axes, of.
 *
 * Concats nest, as in a DenseNet block: each takes in the one before, and all parts lie in the last.  An operand can be
 * placed once; where a second concat wants it, that one copies.  Inputs, constants and outputs stay where they are. */
#include "storage/parts.h"

#include <string.h>

#include "kernel/lower/lower.h"
#include "ops/meaning.h"
#include "storage/flow.h"

typedef struct Placer {
    Lower lower; /* for addresses */
    Graph *graph;
    Storage *storage;
    const Kernel *kernel;
    uint32_t *kernel_of; /* per Node.kernel: its position in `kernel` */
    uint32_t count;
    const bool *copied;
    const Regions *regions; /* of `kernel`; NULL where there are neither loops nor branches */
    const bool *passed;     /* per value, then: it is one of those that are passed (flow.h) */
} Placer;

/* Where the value is in memory, if its elements are evenly apart along each dimension of its nest. */
static bool find_spot(Placer *placer, ValueId value, int64_t *begin, int64_t *stride)
{
    Arena *arena = placer->lower.arena;
    Nest nest = lower_nest(value_type(placer->graph, value));
    const Var *var[MAX_RANK + 1];
    Index loop[MAX_RANK + 1], position[MAX_RANK + 1];
    for (uint32_t d = 0; d < nest.rank; d++) {
        var[d] = index_var_new(arena, "i", 0, nest.extent[d] - 1);
        loop[d] = index_var(arena, var[d]);
    }
    lower_nest_position(arena, &nest, loop, position);
    Index address = lower_memory_address(&placer->lower, value, position);
    *begin = address.constant;
    for (uint32_t d = 0; d < nest.rank; d++)
        if (!index_factor(address, var[d], &stride[d]))
            return false;
    return true;
}

/* Are elements that follow one another in the last dimension neighbours in memory? */
static bool is_dense(const Graph *graph, ValueId value, const int64_t *stride)
{
    Nest nest = lower_nest(value_type(graph, value));
    for (uint32_t d = nest.rank; d-- > 0;)
        if (nest.extent[d] > 1)
            return stride[d] == 1;
    return true;
}

/* Could the value be made at any stride, and does nobody but the assembly read it?  A kernel without loops inside its
 * elements can store at any stride, others store vectors along the last axis. */
static bool may_be_strided(const Placer *placer, ValueId value)
{
    const Node *producer = value_producer(placer->graph, value);
    const Users *users = placer->lower.users;
    Form form = placer->kernel[placer->kernel_of[producer->kernel]].form;
    return users->first[value + 1] - users->first[value] == 1 && (form == FORM_MAP || form == FORM_ASSEMBLY);
}

/* Blocks of channels: a part begins with one, and a border leaves them alone. */
static bool blocks_agree(const Graph *graph, const Node *node, uint32_t operand)
{
    const Type *type = value_type(graph, node->in[operand]), *whole = value_type(graph, node->out[0]);
    int64_t begin[MAX_RANK], block = whole->layout.block;
    if (type->layout.block != whole->layout.block || !block)
        return !block && !type->layout.block;
    if (!node_is_assembly(node))
        return true;
    Assembly assembly = assembly_of(graph, node);
    assembly_begin(graph, node, operand, begin);
    if (assembly.filled)
        return type->shape.dim[1] == whole->shape.dim[1] && type->shape.dim[1] % block == 0;
    return begin[1] % block == 0;
}

/* A part is made in the round, and in the branch, in which the whole is put together; what is passed lies alone. */
static bool region_allows(const Placer *placer, ValueId value, const Node *node)
{
    if (!placer->regions)
        return true;
    uint32_t made = placer->kernel_of[value_producer(placer->graph, value)->kernel];
    return !placer->passed[value] && node->kernel != NONE &&
           placer->regions->of[made] == placer->regions->of[placer->kernel_of[node->kernel]];
}

static bool can_lie_inside(const Placer *placer, const Node *node, uint32_t operand)
{
    const Graph *graph = placer->graph;
    ValueId value = lower_rearranged_value(graph, node->in[operand]);
    const Node *producer = value_producer(graph, value);
    return producer && producer->kernel != NONE && producer->kernel != node->kernel && !placer->lower.live_out[value] &&
           region_allows(placer, value, node) && placer->storage[value].inside == NONE &&
           !(placer->copied && placer->copied[value]) && blocks_agree(graph, node, operand) &&
           !(value_type(graph, value)->layout.block && value != node->in[operand]) &&
           shape_elements(value_shape(graph, value)) > 0;
}

static void place_operand(Placer *placer, const Node *node, uint32_t operand)
{
    int64_t begin, stride[MAX_RANK + 1];
    ValueId value = lower_rearranged_value(placer->graph, node->in[operand]);
    Storage *storage = &placer->storage[value];
    if (!can_lie_inside(placer, node, operand))
        return;
    storage->inside = node->out[0];
    storage->operand = operand;
    if (!find_spot(placer, value, &begin, stride) ||
        !(is_dense(placer->graph, value, stride) || (value != node->in[operand] && may_be_strided(placer, value))))
        storage->inside = NONE;
}

/* The owners have places of their own by now: is the operand still evenly apart in the outermost of them? */
static void settle_operand(Placer *placer, const Node *node, uint32_t operand)
{
    int64_t begin, stride[MAX_RANK + 1] = {0}; /* all of it: who looks for a kernel alike compares it */
    ValueId value = lower_rearranged_value(placer->graph, node->in[operand]);
    Storage *storage = &placer->storage[value];
    if (storage->inside != node->out[0] || storage->operand != operand)
        return;
    if (!find_spot(placer, value, &begin, stride) ||
        !(is_dense(placer->graph, value, stride) || may_be_strided(placer, value))) {
        storage->inside = NONE;
        return;
    }
    storage->settled = true;
    storage->whole = placer->storage[node->out[0]].whole;
    storage->begin = begin;
    memcpy(storage->stride, stride, sizeof stride);
}

static void for_operands(Placer *placer, uint32_t k, void (*each)(Placer *, const Node *, uint32_t))
{
    const Kernel *kernel = &placer->kernel[k];
    if (kernel->form != FORM_ASSEMBLY)
        return;
    const Node *node = &placer->graph->node[kernel->anchor];
    for (uint32_t i = 0; i < node->in_count; i++)
        each(placer, node, i);
}

static void clear(Placer *placer)
{
    const Graph *graph = placer->graph;
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Type *type = value_type(graph, v);
        placer->storage[v] = (Storage){
            .dtype = type ? type->dtype : DT_F32, .value = v, .inside = NONE, .whole = v, .first = -1, .family = NONE};
    }
}

static bool has_flow(const Kernel *kernel, uint32_t count)
{
    bool has = false;
    for (uint32_t k = 0; k < count; k++)
        has |= kernel[k].form == FORM_FLOW;
    return has;
}

Storages parts_place(Graph *graph, Arena *arena, const Kernel *kernel, uint32_t count, const bool *copied, bool none)
{
    Users users = graph_users(graph, arena);
    uint32_t room = graph->value_count + count; /* scratch of kernels comes behind those of values */
    Storage *storage = ARENA_ARRAY(arena, Storage, room);
    Storages storages = {storage, graph->value_count, room};
    Placer placer = {
        .lower = lower_new(graph, NULL, &storages, &users),
        .graph = graph,
        .storage = storage,
        .kernel = kernel,
        .kernel_of = kernel_by_number(graph, arena, kernel, count),
        .count = count,
        .copied = copied,
    };
    Regions regions;
    if (has_flow(kernel, count)) {
        regions = flow_regions(graph, arena, kernel, count);
        placer.regions = &regions;
        placer.passed = flow_members(graph, arena);
    }
    clear(&placer);
    for (uint32_t k = 0; k < count && !none; k++) /* first come, first placed ... */
        for_operands(&placer, k, place_operand);
    for (uint32_t k = count; k-- > 0 && !none;) /* ... then from the outermost owners inwards */
        for_operands(&placer, k, settle_operand);
    for (ValueId v = 0; v < graph->value_count; v++)
        if (storage[v].inside != NONE)
            storage[storage[v].inside].has_parts = true;
    return storages;
}
