/* Concat without copies: an operand is placed inside the result, so that the kernel that makes it writes it there.
 *
 * Concats nest, as in a DenseNet block: each takes in the one before, and all parts lie in the last.  An operand can be
 * placed once; where a second concat wants it, that one copies.  Views, inputs, constants and outputs stay where they
 * are.  The owner's memory lives from the first kernel that writes a part to the last that reads one. */
#include "program.h"

static bool can_lie_inside(const Program *program, const Node *concat, uint32_t operand, int64_t axis, int64_t begin,
                           const bool *live_out)
{
    const Graph *graph = program->graph;
    ValueId value = concat->in[operand];
    const Type *type = value_type(graph, value), *whole = value_type(graph, concat->out[0]);
    const Node *producer = value_producer(graph, value);
    if (!producer || producer->kernel == NONE || producer->kernel == concat->kernel || live_out[value] ||
        program->placement[value].owner != NONE || type->layout.block != whole->layout.block)
        return false;
    if (whole->layout.block && axis == 1 && begin % whole->layout.block != 0)
        return false;
    for (uint32_t i = 0; i < operand; i++)
        if (concat->in[i] == value)
            return false;
    return true;
}

void place_parts(Program *program, const bool *live_out)
{
    const Graph *graph = program->graph;
    program->placement = ARENA_ARRAY(graph->module->arena, Placement, graph->value_count);
    program->has_parts = ARENA_ARRAY(graph->module->arena, bool, graph->value_count);
    for (uint32_t v = 0; v < graph->value_count; v++)
        program->placement[v].owner = NONE;
    if (program->options.without & WITHOUT_PARTS)
        return;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const Node *concat = &graph->node[n];
        if (concat->op != OP_CONCAT)
            continue;
        int64_t axis = attr_int(concat, "axis"), begin = 0;
        axis += axis < 0 ? value_shape(graph, concat->out[0])->rank : 0;
        for (uint32_t i = 0; i < concat->in_count; i++) {
            if (can_lie_inside(program, concat, i, axis, begin, live_out)) {
                program->placement[concat->in[i]] = (Placement){concat->out[0], (uint32_t)axis, begin};
                program->has_parts[concat->out[0]] = true;
            }
            begin += value_shape(graph, concat->in[i])->dim[axis];
        }
    }
}
