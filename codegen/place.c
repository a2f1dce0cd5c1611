/* Assembly without copies: an operand of a concat or a pad is placed inside the result, so that the kernel that makes
 * it writes it there.  What is stacked is a reshape of what was made, and lies there all the same, if its elements are
 * evenly apart in the result.  So does what an output is only another shape, or another order of the axes, of.
 *
 * Concats nest, as in a DenseNet block: each takes in the one before, and all parts lie in the last.  An operand can be
 * placed once; where a second concat wants it, that one copies.  Inputs, constants and outputs stay where they are. The
 * owner's memory lives from the first kernel that writes a part to the last that reads one. */
#include "program.h"

#include "ops/family.h"

/* A kernel without loops inside its elements can store at any stride, others store vectors along the last axis. */
static bool is_map(const Graph *graph, const Kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->node_count; i++)
        switch (op_info(graph->node[kernel->node[i]].op)->family) {
        case FAMILY_CONTRACT:
        case FAMILY_POOL:
        case FAMILY_REDUCE:
            return false;
        default:
            break;
        }
    return true;
}

/* Where the value is in memory, if its elements are evenly apart along each dimension of its nest. */
static bool find_spot(Lower *lower, ValueId value, Spot *spot)
{
    Nest nest = nest_of(value_type(lower->graph, value));
    const Var *var[MAX_RANK + 1];
    Index loop[MAX_RANK + 1], position[MAX_RANK + 1];
    for (uint32_t d = 0; d < nest.rank; d++) {
        var[d] = var_new(lower->arena, "i", 0, nest.extent[d] - 1);
        loop[d] = index_var(lower->arena, var[d]);
    }
    nest_position(lower->arena, &nest, loop, position);
    Index address = value_address(lower, value, position);
    *spot = (Spot){.whole = value_whole(lower, value), .begin = address.constant};
    for (uint32_t d = 0; d < nest.rank; d++)
        if (!index_factor(address, var[d], &spot->stride[d]))
            return false;
    return true;
}

/* Are elements that follow one another in the last dimension neighbours in memory? */
static bool is_dense(const Graph *graph, ValueId value, const Spot *spot)
{
    Nest nest = nest_of(value_type(graph, value));
    for (uint32_t d = nest.rank; d-- > 0;)
        if (nest.extent[d] > 1)
            return spot->stride[d] == 1;
    return true;
}

/* Could the value be made at any stride, and does nobody but the assembly read it? */
static bool may_be_strided(const Program *program, const Lower *lower, ValueId value)
{
    const Graph *graph = program->graph;
    uint32_t kernel = program->kernel_of[value_producer(graph, value)->kernel];
    return lower->users->first[value + 1] - lower->users->first[value] == 1 && is_map(graph, &program->kernel[kernel]);
}

/* Blocks of channels: a part begins with one, and a border leaves them alone. */
static bool blocks_agree(const Graph *graph, const Node *node, uint32_t operand)
{
    const Type *type = value_type(graph, node->in[operand]), *whole = value_type(graph, node->out[0]);
    int64_t begin = 0, block = whole->layout.block;
    if (type->layout.block != whole->layout.block || !block)
        return !block && !type->layout.block;
    if (node->op == OP_PAD)
        return type->shape.dim[1] == whole->shape.dim[1] && type->shape.dim[1] % block == 0;
    int64_t axis = attr_int(node, "axis");
    for (uint32_t i = 0; i < operand && (axis == 1 || axis == 1 - (int64_t)whole->shape.rank); i++)
        begin += value_shape(graph, node->in[i])->dim[1];
    return begin % block == 0;
}

static bool can_lie_inside(const Program *program, const Lower *lower, const Node *node, uint32_t operand)
{
    const Graph *graph = program->graph;
    ValueId value = rearranged_value(graph, node->in[operand]);
    const Node *producer = value_producer(graph, value);
    if (!producer || producer->kernel == NONE || producer->kernel == node->kernel || lower->live_out[value] ||
        program->placement[value].owner != NONE || (program->copied && program->copied[value]) ||
        !blocks_agree(graph, node, operand) || (value_type(graph, value)->layout.block && value != node->in[operand]) ||
        shape_elements(value_shape(graph, value)) == 0)
        return false;
    return true;
}

static void place_operand(Program *program, Lower *lower, const Node *node, uint32_t operand)
{
    if (!can_lie_inside(program, lower, node, operand))
        return;
    const Graph *graph = program->graph;
    ValueId value = rearranged_value(graph, node->in[operand]);
    Spot spot;
    program->placement[value] = (Placement){node->out[0], operand, NULL};
    if (!find_spot(lower, value, &spot) ||
        !(is_dense(graph, value, &spot) || (value != node->in[operand] && may_be_strided(program, lower, value))))
        program->placement[value].owner = NONE;
}

/* The owners have places of their own by now: is the operand still evenly apart in the outermost of them? */
static void settle_operand(Program *program, Lower *lower, const Node *node, uint32_t operand)
{
    ValueId value = rearranged_value(program->graph, node->in[operand]);
    Placement *place = &program->placement[value];
    Spot spot;
    if (place->owner != node->out[0] || place->operand != operand)
        return;
    if (find_spot(lower, value, &spot) &&
        (is_dense(program->graph, value, &spot) || may_be_strided(program, lower, value)))
        place->spot = arena_copy(lower->arena, &spot, sizeof spot);
    else
        place->owner = NONE;
}

static void for_operands(Program *program, Lower *lower, uint32_t k,
                         void (*each)(Program *, Lower *, const Node *, uint32_t))
{
    const Kernel *kernel = &program->kernel[k];
    const Node *node = &program->graph->node[kernel->node[0]];
    if (kernel->node_count == 1 && assembles(program->graph, node))
        for (uint32_t i = 0; i < node->in_count; i++)
            each(program, lower, node, i);
}

/* First come, first placed; then from the outermost owners inwards. */
static void place_all(Program *program, Lower *lower)
{
    for (uint32_t k = 0; k < program->kernel_count; k++)
        for_operands(program, lower, k, place_operand);
    for (uint32_t k = program->kernel_count; k-- > 0;)
        for_operands(program, lower, k, settle_operand);
}

void place_parts(Program *program, Lower *lower)
{
    const Graph *graph = program->graph;
    program->has_parts = ARENA_ARRAY(graph->module->arena, bool, graph->value_count);
    program->placement = ARENA_ARRAY(graph->module->arena, Placement, graph->value_count);
    lower->placement = program->placement;
    for (ValueId v = 0; v < graph->value_count; v++)
        program->placement[v].owner = NONE;
    if (!(program->options.without & WITHOUT_PARTS))
        place_all(program, lower);
    for (ValueId v = 0; v < graph->value_count; v++)
        if (program->placement[v].owner != NONE)
            program->has_parts[program->placement[v].owner] = true;
}

ValueId whole_of(const Program *program, ValueId value)
{
    const Placement *place = &program->placement[value];
    return place->owner == NONE ? value : place->spot->whole;
}

void note_part_readers(Program *program)
{
    const Graph *graph = program->graph;
    program->parts_end = ARENA_ARRAY(graph->module->arena, int64_t, graph->value_count);
    for (uint32_t k = 0; k < program->kernel_count; k++)
        for (uint32_t n = 0; n < program->kernel[k].node_count; n++) {
            const Node *node = &graph->node[program->kernel[k].node[n]];
            for (uint32_t i = 0; i < node->in_count; i++) {
                ValueId part = view_owner(graph, node->in[i]), whole = whole_of(program, part);
                if (whole != part)
                    program->parts_end[whole] = (int64_t)k + 1;
            }
        }
}

Extent value_extent(const Program *program, ValueId value)
{
    Arena scratch = {0};
    Lower lower = {.graph = program->graph, .placement = program->placement};
    int64_t element = dtype_bytes(value_type(program->graph, value)->dtype), begin, end;
    value_range(&lower, &scratch, value, &begin, &end);
    arena_free(&scratch);
    return (Extent){begin * element, end * element};
}
