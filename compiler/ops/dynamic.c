/* Parts at positions that are known when running: a slice reads one, an update replaces one. */
#include "ops/infer.h"

#include <inttypes.h>
#include <string.h>

#include "ir/attr.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/meaning.h"

/* Types */

static bool check_positions(Graph *graph, NodeId node)
{
    const Type *at = infer_in_type(graph, node, 1);
    uint32_t rank = infer_in_shape(graph, node, 0)->rank;
    bool wide = at->dtype == DT_I32 || at->dtype == DT_I64;
    if (wide && at->shape.rank == 1 && at->shape.dim[0] == rank)
        return true;
    return infer_fail(graph, node, "positions are an i32[%u] or i64[%u], one for each dimension: " STR_FMT, rank, rank,
                      STR_ARG(infer_show_operands(graph, node)));
}

static bool check_inside(Graph *graph, NodeId node, const Shape *part)
{
    const Shape *whole = infer_in_shape(graph, node, 0);
    for (uint32_t d = 0; d < whole->rank; d++)
        if (part->dim[d] > whole->dim[d])
            return infer_fail(graph, node, "a part of %" PRId64 " in dimension %u does not fit: " STR_FMT, part->dim[d],
                              d, STR_ARG(infer_show_operand(graph, node, 0)));
    return true;
}

static bool infer_slice(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    Shape part = {.rank = x->shape.rank};
    if (!infer_check_count(graph, node, "sizes", part.rank) || !infer_check_least(graph, node, "sizes", 0))
        return false;
    attr_ints(&graph->node[node], "sizes", part.rank, part.dim);
    return check_inside(graph, node, &part) && infer_set_plain(graph, node, 0, x->dtype, &part);
}

static bool infer_update(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0), *y = infer_in_type(graph, node, 2);
    if (!infer_check_same_dtype(graph, node, 0, 2))
        return false;
    if (x->shape.rank != y->shape.rank)
        return infer_fail(graph, node, "the part has other dimensions than the whole: " STR_FMT,
                          STR_ARG(infer_show_operands(graph, node)));
    return check_inside(graph, node, &y->shape) && infer_set_plain(graph, node, 0, x->dtype, &x->shape);
}

bool infer_dynamic(Graph *graph, NodeId node)
{
    if (!check_positions(graph, node))
        return false;
    return node_is_dynamic_slice(&graph->node[node]) ? infer_slice(graph, node) : infer_update(graph, node);
}

/* The normal form */

bool node_is_dynamic_slice(const Node *node)
{
    return node->op == OP_DYNAMIC_SLICE;
}

bool node_is_dynamic_update(const Node *node)
{
    return node->op == OP_DYNAMIC_UPDATE;
}

bool node_is_update(const Node *node)
{
    return op_info(node->op)->inplace == INPLACE_FIRST;
}

static const Shape *part_shape(const Graph *graph, const Node *node)
{
    return value_shape(graph, node_is_dynamic_slice(node) ? node->out[0] : node->in[2]);
}

int64_t node_dynamic_last(const Graph *graph, const Node *node, uint32_t dimension)
{
    return value_shape(graph, node->in[0])->dim[dimension] - part_shape(graph, node)->dim[dimension];
}

/* Evaluation */

static int64_t clamp(int64_t position, int64_t last)
{
    return position < 0 ? 0 : position > last ? last : position;
}

/* Where the part's elements are in the whole. */
static Strided part_of(const Graph *graph, const Node *node, const Tensor *at)
{
    Strided map = strided_plain(value_shape(graph, node->in[0]));
    const Shape *part = part_shape(graph, node);
    int64_t position[MAX_RANK];
    elements_load_plain(at, 0, map.rank, COMPUTE_I64, position);
    for (uint32_t d = 0; d < map.rank; d++) {
        map.offset += map.stride[d] * clamp(position[d], node_dynamic_last(graph, node, d));
        map.dim[d] = part->dim[d];
    }
    return map;
}

void eval_dynamic(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    Strided part = part_of(graph, node, in[1]);
    uint32_t bytes = dtype_bytes(in[0]->type->dtype);
    if (node_is_dynamic_slice(node)) {
        strided_read(out[0]->data, in[0]->data, &part, bytes);
        return;
    }
    memcpy(out[0]->data, in[0]->data, (size_t)shape_elements(&in[0]->type->shape) * bytes);
    strided_write(out[0]->data, in[2]->data, &part, bytes);
}
