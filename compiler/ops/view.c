/* Views: the operand's elements under another index.  The evaluator copies; plans alias where strides allow. */
#include "ops/view.h"

#include <inttypes.h>

#include "ir/attr.h"
#include "ops/families.h"
#include "ops/infer.h"
#include "ops/meaning.h"
#include "ops/strided.h"

static bool read_shape(Graph *graph, NodeId node, Shape *shape)
{
    const Attr *attr = attr_of(&graph->node[node], "shape");
    if (attr->i > MAX_RANK)
        return infer_fail(graph, node, "the result would have %" PRId64 " dimensions, more than %d", attr->i, MAX_RANK);
    *shape = shape_of((uint32_t)attr->i, attr->ints);
    return true;
}

/* Puts the extent that -1 stands for into the shape, when one does. */
static bool fill_wildcard(Graph *graph, NodeId node, Shape *shape)
{
    int64_t known, elements = shape_elements(infer_in_shape(graph, node, 0));
    int wildcard = -1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] != -1)
            continue;
        if (wildcard >= 0)
            return infer_fail(graph, node, "only one extent may be -1");
        wildcard = (int)i;
        shape->dim[i] = 1;
    }
    if (wildcard < 0 || !shape_checked_elements(shape, &known))
        return true;
    if (known == 0 || elements % known)
        return infer_fail(graph, node, "no extent fits for -1, the others make %" PRId64 ": " STR_FMT, known,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    shape->dim[wildcard] = elements / known;
    return true;
}

static bool infer_reshape(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    int64_t elements, have = shape_elements(&x->shape);
    Shape shape;

    if (!read_shape(graph, node, &shape) || !fill_wildcard(graph, node, &shape))
        return false;
    for (uint32_t i = 0; i < shape.rank; i++)
        if (shape.dim[i] < 0)
            return infer_fail(graph, node, "an extent cannot be %" PRId64, shape.dim[i]);
    if (!shape_checked_elements(&shape, &elements))
        return infer_fail(graph, node, "the result would have too many elements");
    if (elements != have)
        return infer_fail(graph, node, "the shape has %" PRId64 " elements, the operand %" PRId64 ": " STR_FMT,
                          elements, have, STR_ARG(infer_show_operand(graph, node, 0)));
    return infer_set_plain(graph, node, 0, x->dtype, &shape);
}

static bool infer_transpose(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    uint32_t rank = x->shape.rank, axes[MAX_RANK];
    int64_t given = attr_of(&graph->node[node], "axes")->i;
    Shape shape = {.rank = rank};

    if (given && given != rank)
        return infer_fail(graph, node, "`axes` must list all %u dimensions, not %" PRId64 ": " STR_FMT, rank, given,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    if (!infer_check_axes(graph, node, "axes", rank))
        return false;
    view_permutation(&graph->node[node], rank, axes);
    for (uint32_t i = 0; i < rank; i++)
        shape.dim[i] = x->shape.dim[axes[i]];
    return infer_set_plain(graph, node, 0, x->dtype, &shape);
}

static bool infer_broadcast(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    Shape shape, joint;

    if (!read_shape(graph, node, &shape))
        return false;
    if (!shape_broadcast(&x->shape, &shape, &joint) || !shape_eq(&joint, &shape)) {
        const Type *to = module_type(graph->module, x->dtype, &shape, (Layout){0});
        return infer_fail(graph, node, "does not broadcast to " STR_FMT ": " STR_FMT,
                          STR_ARG(type_show(graph->module->arena, to)), STR_ARG(infer_show_operand(graph, node, 0)));
    }
    return infer_set_plain(graph, node, 0, x->dtype, &shape);
}

static bool infer_slice(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = infer_in_type(graph, node, 0);
    const Attr *step = attr_of(n, "step");
    uint32_t count = (uint32_t)attr_of(n, "axes")->i;
    Range range[MAX_RANK];

    if (!infer_check_axes(graph, node, "axes", x->shape.rank) || !infer_check_count(graph, node, "begin", count) ||
        !infer_check_count(graph, node, "end", count) || !infer_check_count(graph, node, "step", count))
        return false;
    for (int64_t i = 0; i < step->i; i++)
        if (step->ints[i] == 0)
            return infer_fail(graph, node, "a step cannot be 0");
    Shape shape = x->shape;
    view_slice_ranges(n, &x->shape, range);
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = range[i].count;
    return infer_set_plain(graph, node, 0, x->dtype, &shape);
}

static bool infer_split(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = infer_in_type(graph, node, 0);
    const Attr *sizes = attr_of(n, "sizes");
    uint32_t axis;
    Shape shape = x->shape;

    if (!infer_check_axis(graph, node, attr_int(n, "axis"), shape.rank, &axis) ||
        !infer_check_least(graph, node, "sizes", 0))
        return false;
    int64_t left = shape.dim[axis];
    bool fits = sizes->i == n->out_count;
    for (int64_t i = 0; i < sizes->i && fits; i++) {
        fits = sizes->ints[i] <= left;
        left -= fits ? sizes->ints[i] : 0;
    }
    if (!fits || left)
        return infer_fail(graph, node, "`sizes` must add up to %" PRId64 ", the extent of dimension %u: " STR_FMT,
                          shape.dim[axis], axis, STR_ARG(infer_show_operand(graph, node, 0)));
    for (uint32_t i = 0; i < n->out_count; i++) {
        shape.dim[axis] = sizes->ints[i];
        if (!infer_set_plain(graph, node, i, x->dtype, &shape))
            return false;
    }
    return true;
}

static bool infer_windows(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = infer_in_type(graph, node, 0);
    Shape shape = x->shape;
    uint32_t axis;

    if (!infer_check_axis(graph, node, attr_int(n, "axis"), shape.rank, &axis))
        return false;
    if (attr_int(n, "size") < 1 || attr_int(n, "dilation") < 1)
        return infer_fail(graph, node, "`size` and `dilation` must be at least 1");
    if (attr_int(n, "step") == 0)
        return infer_fail(graph, node, "a step cannot be 0");
    if (shape.rank == MAX_RANK)
        return infer_fail(graph, node, "the result would have %d dimensions, more than %d", MAX_RANK + 1, MAX_RANK);
    Sliding sliding = view_sliding(n, &shape);
    if (!sliding.count)
        return infer_fail(graph, node,
                          "a window of %" PRId64 " elements, %" PRId64 " apart, is more than the %" PRId64
                          " of dimension %u: " STR_FMT,
                          sliding.size, sliding.dilation, shape.dim[axis], axis,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    shape.dim[axis] = sliding.count;
    shape.dim[shape.rank++] = sliding.size;
    return infer_set_plain(graph, node, 0, x->dtype, &shape);
}

static bool infer_after(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    return infer_set_result(graph, node, 0, x->dtype, &x->shape, x->layout);
}

bool infer_view(Graph *graph, NodeId node)
{
    switch (graph->node[node].op) {
    case OP_RESHAPE:
        return infer_reshape(graph, node);
    case OP_TRANSPOSE:
        return infer_transpose(graph, node);
    case OP_BROADCAST:
        return infer_broadcast(graph, node);
    case OP_SLICE:
        return infer_slice(graph, node);
    case OP_WINDOWS:
        return infer_windows(graph, node);
    case OP_AFTER:
        return infer_after(graph, node);
    default:
        return infer_split(graph, node);
    }
}

/* Evaluation: each result is read from the operand through an index map. */

static Strided map_of(const View *view, const Shape *x, const Shape *to)
{
    Strided own = strided_plain(x), map = {.rank = to->rank};
    if (view->kind == VIEW_RESHAPE)
        return own;
    for (uint32_t i = 0; i < to->rank; i++)
        map.dim[i] = to->dim[i];
    for (uint32_t d = 0; d < x->rank; d++) {
        map.offset += view->begin[d] * own.stride[d];
        if (view->from[d] != NONE)
            map.stride[view->from[d]] += view->step[d] * own.stride[d];
        if (view->slid == d)
            map.stride[to->rank - 1] += view->further * own.stride[d];
    }
    return map;
}

void eval_view(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        View view = view_of(graph, node, i);
        Strided map = map_of(&view, &in[0]->type->shape, &out[i]->type->shape);
        strided_read(out[i]->data, in[0]->data, &map, dtype_bytes(in[0]->type->dtype));
    }
}
