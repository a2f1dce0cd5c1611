/* Gather: rows of a table at computed positions. */
#include "ops/infer.h"

#include <string.h>

#include "ir/attr.h"
#include "ops/axis.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/meaning.h"

bool infer_gather(Graph *graph, NodeId node)
{
    const Type *table = infer_in_type(graph, node, 0);
    const Shape *index = infer_in_shape(graph, node, 1);
    uint32_t axis;
    Shape shape = {0};

    if (!infer_check_class(graph, node, 1, CLASS_INT) ||
        !infer_check_axis(graph, node, attr_int(&graph->node[node], "axis"), table->shape.rank, &axis))
        return false;
    if (table->shape.rank - 1 + index->rank > MAX_RANK)
        return infer_fail(graph, node, "the result would have %u dimensions, more than %d",
                          table->shape.rank - 1 + index->rank, MAX_RANK);
    if (table->shape.dim[axis] == 0 && shape_elements(index) > 0)
        return infer_fail(graph, node, "the table has nothing to read: " STR_FMT,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    for (uint32_t i = 0; i < axis; i++)
        shape.dim[shape.rank++] = table->shape.dim[i];
    for (uint32_t i = 0; i < index->rank; i++)
        shape.dim[shape.rank++] = index->dim[i];
    for (uint32_t i = axis + 1; i < table->shape.rank; i++)
        shape.dim[shape.rank++] = table->shape.dim[i];
    return infer_set_plain(graph, node, 0, table->dtype, &shape);
}

uint32_t gather_dimension(const Graph *graph, const Node *node)
{
    return axis_position(attr_int(node, "axis"), value_shape(graph, node->in[0])->rank);
}

static int64_t row_of(int64_t index, int64_t rows)
{
    if (index < 0)
        index += rows;
    return index < 0 ? 0 : index >= rows ? rows - 1 : index;
}

void eval_gather(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    const Shape *table = &in[0]->type->shape;
    uint32_t axis = gather_dimension(graph, node);
    int64_t outer = 1, rows = table->dim[axis], count = shape_elements(&in[1]->type->shape);
    size_t row_bytes = dtype_bytes(in[0]->type->dtype);

    for (uint32_t i = 0; i < axis; i++)
        outer *= table->dim[i];
    for (uint32_t i = axis + 1; i < table->rank; i++)
        row_bytes *= (size_t)table->dim[i];

    char *to = out[0]->data;
    const char *from = in[0]->data;
    for (int64_t o = 0; o < outer; o++, from += (size_t)rows * row_bytes)
        for (int64_t i = 0; i < count; i++, to += row_bytes) {
            int64_t index;
            elements_load_plain(in[1], i, 1, COMPUTE_I64, &index);
            memcpy(to, from + (size_t)row_of(index, rows) * row_bytes, row_bytes);
        }
}
