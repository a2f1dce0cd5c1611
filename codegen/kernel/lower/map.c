/* Maps: loops over the result's memory, adjacent ones merged where every access allows.  And assemblies: one map for
 * each operand that does not lie in its part of the result already. */
#include "kernel/lower/lower.h"
#include "ops/meaning.h"

#include <string.h>

static ValueId root_of(const Lower *lower)
{
    for (uint32_t n = lower->kernel->node_count; n-- > 0;) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++)
            if (kernel_stores(lower, node->out[r]))
                return node->out[r];
    }
    return lower->graph->node[lower->kernel->node[lower->kernel->node_count - 1]].out[0];
}

static void store_element(Lower *lower, void *context, const Index *position)
{
    (void)context;
    lower_stores(lower, position);
}

/* The position is one of an operand of an assembly; what it is another shape or order of the axes of is stored. */
static void store_rearranged(Lower *lower, void *context, const Index *position)
{
    const Graph *graph = lower->graph;
    ValueId operand = *(const ValueId *)context, value = lower_rearranged_value(graph, operand);
    Index from[MAX_RANK], to[MAX_RANK];
    memcpy(to, position, value_shape(graph, operand)->rank * sizeof *to);
    for (; operand != value; operand = value_producer(graph, operand)->in[0]) {
        kernel_view_position(lower->arena, graph, value_producer(graph, operand), 0, to, from);
        memcpy(to, from, sizeof to);
    }
    lower_stores(lower, to);
}

static void store_result(Lower *lower, void *context, const Index *position)
{
    ValueId value = *(const ValueId *)context;
    const Expr *element = lower_value(lower, value, position);
    stmt_store(lower->arena, lower->block, lower_buffer(lower, value, true),
               lower_value_address(lower, value, position), element);
}

/* The results of a split that copies have different shapes. */
static void map_each(Lower *lower, const Node *node)
{
    for (uint32_t r = 0; r < node->out_count; r++) {
        const Type *type = value_type(lower->graph, node->out[r]);
        if (kernel_stores(lower, node->out[r]) && shape_elements(&type->shape) > 0)
            lower_nest_each(lower, type, store_result, &node->out[r]);
    }
}

/* Loops follow the result's memory: that of the operand it lies in another one as. */
static void map_lower(Lower *lower)
{
    const Node *first = &lower->graph->node[lower->kernel->node[0]];
    if (first->out_count > 1) {
        map_each(lower, first);
        return;
    }
    ValueId root = root_of(lower);
    const Storage *storage = &lower->storage->at[root];
    ValueId operand =
        storage->inside == NONE ? root : value_producer(lower->graph, storage->inside)->in[storage->operand];
    if (operand == root)
        lower_nest_each(lower, value_type(lower->graph, root), store_element, NULL);
    else
        lower_nest_each(lower, value_type(lower->graph, operand), store_rearranged, &operand);
}

/* Assembly: what does not lie in its part of the result already is copied, or computed, into it. */

typedef struct Part { /* of a result, from `begin` on; filled with the operand, or with a number */
    ValueId operand, result;
    double number; /* where operand is NONE */
    int64_t begin[MAX_RANK];
} Part;

static void part_element(Lower *lower, void *context, const Index *position)
{
    const Part *part = context;
    const Type *type = value_type(lower->graph, part->result);
    Index to[MAX_RANK];
    for (uint32_t d = 0; d < type->shape.rank; d++)
        to[d] = index_add(lower->arena, position[d], index_constant(part->begin[d]));
    const Expr *value = part->operand == NONE ? expr_number(lower->arena, type->dtype, part->number)
                                              : lower_value(lower, part->operand, position);
    stmt_store(lower->arena, lower->block, lower_buffer(lower, part->result, true),
               lower_value_address(lower, part->result, to), value);
}

/* Has its kernel written the operand in place? */
static bool is_placed(const Lower *lower, const Node *node, uint32_t operand)
{
    const Storage *storage = &lower->storage->at[lower_rearranged_value(lower->graph, node->in[operand])];
    return storage->inside == node->out[0] && storage->operand == operand;
}

#define MOST_TURNS 8 /* stores of a loop: text stays short */

/* Elements by turns: each operand has one of those that follow each other, and no place in the result. */
static bool has_turns(const Lower *lower, const Node *node)
{
    const Type *result = value_type(lower->graph, node->out[0]);
    uint32_t axis = assembly_of(lower->graph, node).axis;
    bool turns = !result->layout.block && shape_elements(&result->shape) > 0 && node->in_count <= MOST_TURNS;
    for (uint32_t d = axis; d < result->shape.rank; d++)
        turns &= result->shape.dim[d] == (d == axis ? node->in_count : 1);
    for (uint32_t i = 0; i < node->in_count && turns; i++)
        turns = !is_placed(lower, node, i) && value_shape(lower->graph, node->in[i])->dim[axis] == 1;
    return turns;
}

static void turn_elements(Lower *lower, void *context, const Index *position)
{
    const Node *node = *(const Node *const *)context;
    Part part = {.result = node->out[0]};
    uint32_t axis = assembly_of(lower->graph, node).axis;
    for (uint32_t i = 0; i < node->in_count; i++) {
        part.operand = node->in[i];
        part_element(lower, &part, position);
        part.begin[axis]++;
    }
}

static void lower_concat(Lower *lower, const Node *node)
{
    if (has_turns(lower, node)) {
        lower_nest_each(lower, value_type(lower->graph, node->in[0]), turn_elements, &node);
        return;
    }
    const Type *result = value_type(lower->graph, node->out[0]);
    uint32_t axis = assembly_of(lower->graph, node).axis;
    Part copy = {.result = node->out[0]};
    for (uint32_t i = 0; i < node->in_count; i++) {
        Type part = *value_type(lower->graph, node->in[i]);
        copy.operand = node->in[i];
        if (result->layout.block && part.shape.dim[1] % result->layout.block == 0)
            part.layout = result->layout;
        if (!is_placed(lower, node, i) && shape_elements(&part.shape) > 0)
            lower_nest_each(lower, &part, part_element, &copy);
        copy.begin[axis] += part.shape.dim[axis];
    }
}

/* The border is made of slabs: before and after along each axis, over the operand's extent of those before and the
 * whole extent of those after. */
static void lower_border(Lower *lower, const Node *node)
{
    const Type *result = value_type(lower->graph, node->out[0]);
    const Shape *inside = value_shape(lower->graph, node->in[0]);
    Part slab = {.operand = NONE, .result = node->out[0], .number = assembly_of(lower->graph, node).fill};
    Type type = *result;
    int64_t before[MAX_RANK];
    assembly_begin(lower->graph, node, 0, before);
    for (uint32_t d = 0; d < inside->rank; d++) {
        int64_t after = result->shape.dim[d] - inside->dim[d] - before[d];
        for (int end = 0; end < 2; end++) {
            type.shape.dim[d] = end ? after : before[d];
            slab.begin[d] = end ? before[d] + inside->dim[d] : 0;
            if (shape_elements(&type.shape) > 0)
                lower_nest_each(lower, &type, part_element, &slab);
        }
        type.shape.dim[d] = inside->dim[d];
        slab.begin[d] = before[d];
    }
}

static void assembly_lower(Lower *lower)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    bool parts = node_is_assembly(node), filled = parts && assembly_of(lower->graph, node).filled;
    if (parts && !filled)
        lower_concat(lower, node);
    else if (!is_placed(lower, node, 0))
        map_lower(lower);
    else if (filled)
        lower_border(lower, node);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    (void)lower, (void)kernel, (void)recipe;
    return true;
}

static bool map_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    lower_copy_scratch(lower, kernel, recipe);
    return true;
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)shape_elements(value_shape(lower->graph, lower->graph->node[kernel->node[0]].out[0]));
}

static const KnobSpec no_knobs[] = {{NULL, 0, NULL}};

const Provider provider_map = {
    .name = "map",
    .doc = "loops over the result, each element at its own position",
    .knob = no_knobs,
    .forms = 1u << FORM_MAP,
    .offers = map_offers,
    .cost = cost,
    .lower = map_lower,
};
const Provider provider_assembly = {
    .name = "assembly",
    .doc = "a map for each part that is not in its place already",
    .knob = no_knobs,
    .forms = 1u << FORM_ASSEMBLY,
    .offers = offers,
    .cost = cost,
    .lower = assembly_lower,
};
