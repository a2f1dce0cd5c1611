/* Gather: rows of a table at computed positions. */
#include "ops/infer.h"

#include "ops/attrs.h"
#include "ops/families.h"

bool infer_gather(Graph *graph, NodeId node)
{
    const Type *table = in_type(graph, node, 0);
    const Shape *index = in_shape(graph, node, 1);
    uint32_t axis;
    Shape shape = {0};

    if (!check_class(graph, node, 1, CLASS_INT) ||
        !check_axis(graph, node, attr_int(&graph->node[node], "axis"), table->shape.rank, &axis))
        return false;
    if (table->shape.rank - 1 + index->rank > MAX_RANK)
        return infer_fail(graph, node, "the result would have %u dimensions, more than %d",
                          table->shape.rank - 1 + index->rank, MAX_RANK);
    if (table->shape.dim[axis] == 0 && shape_elements(index) > 0)
        return infer_fail(graph, node, "the table has nothing to read: " STR_FMT,
                          STR_ARG(show_operand(graph, node, 0)));
    for (uint32_t i = 0; i < axis; i++)
        shape.dim[shape.rank++] = table->shape.dim[i];
    for (uint32_t i = 0; i < index->rank; i++)
        shape.dim[shape.rank++] = index->dim[i];
    for (uint32_t i = axis + 1; i < table->shape.rank; i++)
        shape.dim[shape.rank++] = table->shape.dim[i];
    return set_plain(graph, node, 0, table->dtype, &shape);
}

void eval_gather(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    (void)graph, (void)node, (void)in, (void)out;
}
