/* The normal form of views: where in the operand each element of a result is. */
#include "ops/meaning.h"

#include "ir/attr.h"
#include "ops/axis.h"
#include "ops/view.h"

bool node_is_view(const Node *node)
{
    return op_info(node->op)->family == FAMILY_VIEW;
}

bool node_casts_input(const Graph *graph, const Node *node)
{
    if (op_info(node->op)->family != FAMILY_CAST || dtype_is_float(value_type(graph, node->in[0])->dtype))
        return false;
    ValueId v = node->in[0];
    for (const Node *view; (view = value_producer(graph, v)) && node_is_view(view);)
        v = view->in[0];
    return graph_value(graph, v)->role == ROLE_INPUT;
}

bool view_is_reshape(const Node *node)
{
    return node->op == OP_RESHAPE || node->op == OP_AFTER;
}

bool view_only_waits(const Node *node)
{
    return node->op == OP_AFTER;
}

void view_permutation(const Node *node, uint32_t rank, uint32_t axes[MAX_RANK])
{
    const Attr *given = attr_of(node, "axes");
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = given->i ? axis_position(given->ints[i], rank) : rank - 1 - i;
}

/* Slices */

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* NumPy's slice.indices(). */
static Range slice_range(int64_t extent, int64_t begin, int64_t end, int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    begin = clamp(begin < 0 ? begin + extent : begin, low, high);
    end = clamp(end < 0 ? end + extent : end, low, high);

    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step; /* also of the least int64 */
    int64_t distance = step > 0 ? end - begin : begin - end;
    Range range = {begin, step, 0};
    if (distance > 0)
        range.count = (int64_t)(((uint64_t)distance - 1) / stride) + 1;
    else
        range.begin = 0; /* an empty range still points inside */
    return range;
}

void view_slice_ranges(const Node *node, const Shape *shape, Range range[MAX_RANK])
{
    const Attr *axes = attr_of(node, "axes");
    uint32_t count = (uint32_t)axes->i;
    int64_t begin[MAX_RANK], end[MAX_RANK], step[MAX_RANK];

    attr_ints(node, "begin", count, begin);
    attr_ints(node, "end", count, end);
    attr_ints(node, "step", count, step);
    for (uint32_t i = 0; i < shape->rank; i++)
        range[i] = (Range){0, 1, shape->dim[i]};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = axis_position(axes->ints[i], shape->rank);
        range[axis] = slice_range(shape->dim[axis], begin[i], end[i], step[i]);
    }
}

/* Windows */

Sliding view_sliding(const Node *node, const Shape *x)
{
    Sliding s = {.axis = axis_position(attr_int(node, "axis"), x->rank),
                 .step = attr_int(node, "step"),
                 .size = attr_int(node, "size"),
                 .dilation = attr_int(node, "dilation")};
    int64_t most = x->dim[s.axis] - 1; /* of a step and of a dilation that are used */
    if (s.size < 1 || s.size > most + 1 || (s.size > 1 && s.dilation > most / (s.size - 1)))
        return s;
    int64_t last = s.size > 1 ? most - (s.size - 1) * s.dilation : most;
    s.count = s.step > last || s.step < -last ? 1 : last / (s.step < 0 ? -s.step : s.step) + 1;
    s.begin = s.step < 0 ? last : 0;
    return s;
}

/* Views */

static View identity(uint32_t rank)
{
    View view = {.kind = VIEW_STRIDED, .rank = rank, .slid = NONE};
    for (uint32_t d = 0; d < rank; d++) {
        view.step[d] = 1;
        view.from[d] = d;
    }
    return view;
}

static View transposed(const Node *node, uint32_t rank)
{
    uint32_t axes[MAX_RANK];
    View view = identity(rank);
    view_permutation(node, rank, axes);
    for (uint32_t i = 0; i < rank; i++)
        view.from[axes[i]] = i;
    return view;
}

static View repeated(const Shape *x, const Shape *to)
{
    View view = identity(x->rank);
    for (uint32_t d = 0; d < x->rank; d++)
        view.from[d] = x->dim[d] == 1 ? NONE : to->rank - x->rank + d;
    return view;
}

static View sliced(const Node *node, const Shape *x)
{
    Range range[MAX_RANK];
    View view = identity(x->rank);
    view_slice_ranges(node, x, range);
    for (uint32_t d = 0; d < x->rank; d++) {
        view.begin[d] = range[d].begin;
        view.step[d] = range[d].count > 1 ? range[d].step : 1; /* an unused step may be of any size */
    }
    return view;
}

static View part(const Node *node, uint32_t rank, uint32_t result)
{
    View view = identity(rank);
    const Attr *sizes = attr_of(node, "sizes");
    uint32_t axis = axis_position(attr_int(node, "axis"), rank);
    for (uint32_t i = 0; i < result; i++)
        view.begin[axis] += sizes->ints[i];
    return view;
}

static View slid(const Node *node, const Shape *x)
{
    View view = identity(x->rank);
    Sliding sliding = view_sliding(node, x);
    view.begin[sliding.axis] = sliding.begin;
    view.step[sliding.axis] = sliding.count > 1 ? sliding.step : 1;
    view.slid = sliding.axis;
    view.further = sliding.size > 1 ? sliding.dilation : 1;
    return view;
}

View view_of(const Graph *graph, const Node *node, uint32_t result)
{
    const Shape *x = value_shape(graph, node->in[0]);
    switch (node->op) {
    case OP_TRANSPOSE:
        return transposed(node, x->rank);
    case OP_BROADCAST:
        return repeated(x, value_shape(graph, node->out[result]));
    case OP_SLICE:
        return sliced(node, x);
    case OP_SPLIT:
        return part(node, x->rank, result);
    case OP_WINDOWS:
        return slid(node, x);
    case OP_AFTER:
        return identity(x->rank);
    default:
        return (View){.kind = VIEW_RESHAPE, .rank = x->rank, .slid = NONE};
    }
}

/* A view of as many elements that repeats none has all of them. */
bool view_is_rearrangement(const Graph *graph, const Node *node)
{
    if (!node_is_view(node) || node->out_count != 1)
        return false;
    const Shape *x = value_shape(graph, node->in[0]), *to = value_shape(graph, node->out[0]);
    View view = view_of(graph, node, 0);
    if (view.kind == VIEW_RESHAPE)
        return true;
    if (view.slid != NONE)
        return false;
    for (uint32_t d = 0; d < view.rank; d++)
        if (view.from[d] == NONE || view.begin[d] || view.step[d] != 1 || to->dim[view.from[d]] != x->dim[d])
            return false;
    return to->rank == x->rank;
}

bool view_keeps_matrices(const Graph *graph, const Node *node)
{
    if (!node_is_view(node) || view_only_waits(node) || node->out_count != 1)
        return false; /* others may have no operand */
    const Shape *from = value_shape(graph, node->in[0]), *to = value_shape(graph, node->out[0]);
    if (from->rank < 2 || to->rank < 2)
        return false;
    View view = view_of(graph, node, 0);
    bool in_place = view.kind == VIEW_RESHAPE;
    for (uint32_t d = 0; d < 2; d++) {
        uint32_t at = from->rank - 1 - d, of = to->rank - 1 - d;
        in_place &= from->dim[at] == to->dim[of];
    }
    bool repeats = view.kind == VIEW_STRIDED && view.slid == NONE;
    for (uint32_t d = 0; d < from->rank && repeats; d++)
        repeats = view.from[d] == NONE || (view.from[d] + from->rank == d + to->rank && view.step[d] == 1);
    return in_place || repeats;
}
