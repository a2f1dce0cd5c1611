/* Order along a dimension: the positions of the elements that come first. */
#include "ops/infer.h"

#include "ir/attr.h"
#include "ops/axis.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/meaning.h"

#include <math.h>
#include <stdlib.h>

bool infer_sort(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    int64_t count = attr_int(&graph->node[node], "count");
    uint32_t axis;
    if (!infer_check_class(graph, node, 0, CLASS_NUMBER) ||
        !infer_check_axis(graph, node, attr_int(&graph->node[node], "axis"), x->shape.rank, &axis))
        return false;
    Shape shape = x->shape;
    if (count < -1 || count > shape.dim[axis])
        return infer_fail(graph, node, "count %lld is out of range: the axis has %lld elements", (long long)count,
                          (long long)shape.dim[axis]);
    shape.dim[axis] = count == -1 ? shape.dim[axis] : count;
    return infer_set_plain(graph, node, 0, DT_I64, &shape);
}

bool node_is_sorting(const Node *node)
{
    return op_info(node->op)->family == FAMILY_SORT;
}

Sorting sorting_of(const Graph *graph, const Node *node)
{
    uint32_t dimension = axis_position(attr_int(node, "axis"), value_shape(graph, node->in[0])->rank);
    return (Sorting){.dimension = dimension,
                     .count = value_shape(graph, node->out[0])->dim[dimension],
                     .descending = attr_bool(node, "largest")};
}

int64_t sorting_comparisons(const Graph *graph, const Node *node)
{
    int64_t each = 1, count = sorting_of(graph, node).count;
    while (count >> each)
        each++;
    return shape_elements(value_shape(graph, node->in[0])) * each;
}

/* Evaluation */

typedef struct Item {
    uint64_t key; /* orders as the elements do */
    int64_t position;
} Item;

static uint64_t key_of(Number number, Compute compute, bool descending)
{
    const uint64_t top = (uint64_t)1 << 63;
    Number n = number;
    uint64_t key;
    if (compute == COMPUTE_U64)
        key = n.u;
    else if (compute == COMPUTE_I64)
        key = n.u ^ top;
    else if (isnan(n.f))
        key = UINT64_MAX;
    else
        key = n.f < 0 ? ~n.u : n.u | top; /* -0 becomes 0 */
    return descending ? ~key : key;
}

static int compare_items(const void *left, const void *right)
{
    const Item *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

/* x as [outer, extent, inner]. */
void eval_sort(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    const Shape *shape = &in[0]->type->shape;
    Compute compute = elements_compute_exact(in[0]->type->dtype);
    Sorting sorting = sorting_of(graph, node);
    int64_t outer = 1, inner = 1, extent = shape->dim[sorting.dimension], *position = out[0]->data;
    for (uint32_t d = 0; d < sorting.dimension; d++)
        outer *= shape->dim[d];
    for (uint32_t d = sorting.dimension + 1; d < shape->rank; d++)
        inner *= shape->dim[d];

    Arena scratch = {0};
    Item *item = ARENA_ARRAY(&scratch, Item, extent + 1);
    Number *number = ARENA_ARRAY(&scratch, Number, extent + 1);
    for (int64_t row = 0; row < outer * inner && sorting.count; row++) {
        int64_t o = row / inner, i = row % inner;
        elements_load_run(in[0], (Run){o * extent * inner + i, inner, extent}, compute, number);
        for (int64_t k = 0; k < extent; k++)
            item[k] = (Item){key_of(number[k], compute, sorting.descending), k};
        qsort(item, (size_t)extent, sizeof *item, compare_items);
        for (int64_t k = 0; k < sorting.count; k++)
            position[(o * sorting.count + k) * inner + i] = item[k].position;
    }
    arena_free(&scratch);
}
