/* What the families' inference functions share: messages in the user's names, checks of attributes, result types. */
#ifndef NNC_OPS_INFER_H
#define NNC_OPS_INFER_H

#include "ops/family.h"

/* Reports at the node's place, with the op's name in front: `add: ...`.  Always false. */
bool infer_fail(Graph *graph, NodeId node, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Operand i for a message: `bias is f32[32]`; an unnamed constant of one element shows its number. */
Str infer_show_operand(Graph *graph, NodeId node, uint32_t i);
/* All operands: `x is f32[3], y is f32[4]`. */
Str infer_show_operands(Graph *graph, NodeId node);

static inline const Type *infer_in_type(const Graph *graph, NodeId node, uint32_t i)
{
    return value_type(graph, graph->node[node].in[i]);
}
static inline const Shape *infer_in_shape(const Graph *graph, NodeId node, uint32_t i)
{
    return value_shape(graph, graph->node[node].in[i]);
}

/* Sets the type of result i; fails when it has too many elements or dimensions. */
bool infer_set_result(Graph *graph, NodeId node, uint32_t i, DType dtype, const Shape *shape, Layout layout);
bool infer_set_plain(Graph *graph, NodeId node, uint32_t i, DType dtype, const Shape *shape);

bool infer_axis_in_range(int64_t axis, uint32_t rank);
/* A dimension number from -rank to rank - 1, counted from the end when negative. */
bool infer_check_axis(Graph *graph, NodeId node, int64_t axis, uint32_t rank, uint32_t *out);
/* Every entry of a list of axes in range and none twice. */
bool infer_check_axes(Graph *graph, NodeId node, const char *name, uint32_t rank);
/* The list has `count` entries, or one that stands for all. */
bool infer_check_count(Graph *graph, NodeId node, const char *name, uint32_t count);
/* Every entry is at least `least`. */
bool infer_check_least(Graph *graph, NodeId node, const char *name, int64_t least);

/* Operand i is of the class, or an error that says what the op takes. */
bool infer_check_class(Graph *graph, NodeId node, uint32_t i, DTypeClass class);
/* Operands i and j have one dtype. */
bool infer_check_same_dtype(Graph *graph, NodeId node, uint32_t i, uint32_t j);

#endif
