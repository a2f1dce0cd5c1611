/* Reductions over dimensions, and the position of an extreme along one. */
#include "ops/infer.h"

#include <math.h>

#include "ops/attrs.h"
#include "ops/elements.h"
#include "ops/families.h"

static bool is_arg(OpCode op)
{
    return op == OP_ARGMAX || op == OP_ARGMIN;
}

static bool check_reduced(Graph *graph, NodeId node, uint32_t rank)
{
    const Node *n = &graph->node[node];
    uint32_t axis;
    if (!is_arg(n->op))
        return check_axes(graph, node, "axes", rank);
    if (rank == 0)
        return infer_fail(graph, node, "takes at least one dimension: " STR_FMT, STR_ARG(show_operand(graph, node, 0)));
    return check_axis(graph, node, attr_int(n, "axis"), rank, &axis);
}

bool infer_reduce(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = in_type(graph, node, 0);
    bool keep = attr_bool(n, "keep"), empty_fits = n->op == OP_REDUCE_SUM || n->op == OP_REDUCE_PROD;

    if (!check_class(graph, node, 0, CLASS_NUMBER) || !check_reduced(graph, node, x->shape.rank))
        return false;

    uint32_t mask = reduce_mask(n, x->shape.rank);
    Shape shape = {0};
    for (uint32_t i = 0; i < x->shape.rank; i++) {
        bool reduced = mask >> i & 1;
        if (reduced && x->shape.dim[i] == 0 && !empty_fits)
            return infer_fail(graph, node, "nothing to choose from, dimension %u is empty: " STR_FMT, i,
                              STR_ARG(show_operand(graph, node, 0)));
        if (!reduced || keep)
            shape.dim[shape.rank++] = reduced ? 1 : x->shape.dim[i];
    }
    return set_plain(graph, node, 0, is_arg(n->op) ? DT_I64 : x->dtype, &shape);
}

/* Evaluation.  The operand streams by once, in chunks; an index map over its shape says to which accumulator (double
 * or int64) each element belongs.  Results are rounded once. */

#define CHUNK 1024

#define DEFINE_FOLD(NAME, T, EXPRESSION)                                                                               \
    static void NAME(T *to, int64_t stride, const T *from, int64_t count)                                              \
    {                                                                                                                  \
        T a = *to;                                                                                                     \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            T e = from[i];                                                                                             \
            if (stride)                                                                                                \
                a = to[i * stride];                                                                                    \
            a = EXPRESSION;                                                                                            \
            if (stride)                                                                                                \
                to[i * stride] = a;                                                                                    \
        }                                                                                                              \
        if (!stride)                                                                                                   \
            *to = a;                                                                                                   \
    }
#define DEFINE_FOLDS(SUFFIX, T)                                                                                        \
    DEFINE_FOLD(sum_##SUFFIX, T, a + e)                                                                                \
    DEFINE_FOLD(prod_##SUFFIX, T, a *e)                                                                                \
    DEFINE_FOLD(max_##SUFFIX, T, e > a || e != e ? e : a) /* NaN wins, and stays */                                    \
    DEFINE_FOLD(min_##SUFFIX, T, e < a || e != e ? e : a)
DEFINE_FOLDS(f64, double)
DEFINE_FOLDS(i64, int64_t)

static void fold_f64(OpCode op, double *to, int64_t stride, const double *from, int64_t count)
{
    if (op == OP_REDUCE_SUM)
        sum_f64(to, stride, from, count);
    else if (op == OP_REDUCE_PROD)
        prod_f64(to, stride, from, count);
    else if (op == OP_REDUCE_MAX)
        max_f64(to, stride, from, count);
    else
        min_f64(to, stride, from, count);
}

static void fold_i64(OpCode op, int64_t *to, int64_t stride, const int64_t *from, int64_t count)
{
    if (op == OP_REDUCE_SUM)
        sum_i64(to, stride, from, count);
    else if (op == OP_REDUCE_PROD)
        prod_i64(to, stride, from, count);
    else if (op == OP_REDUCE_MAX)
        max_i64(to, stride, from, count);
    else
        min_i64(to, stride, from, count);
}

typedef union Number {
    double f;
    int64_t i;
} Number;

static Number neutral(OpCode op, Compute compute)
{
    bool f = compute == COMPUTE_F64;
    switch (op) {
    case OP_REDUCE_PROD:
        return f ? (Number){.f = 1} : (Number){.i = 1};
    case OP_REDUCE_MAX:
        return f ? (Number){.f = -INFINITY} : (Number){.i = INT64_MIN};
    case OP_REDUCE_MIN:
        return f ? (Number){.f = INFINITY} : (Number){.i = INT64_MAX};
    default:
        return f ? (Number){.f = 0} : (Number){.i = 0};
    }
}

/* For each element of the operand its accumulator: the result's strides, 0 along what is reduced. */
static Strided accumulator_map(const Shape *x, uint32_t mask)
{
    Strided map = {.rank = x->rank};
    int64_t stride = 1;
    for (uint32_t i = x->rank; i-- > 0;) {
        bool reduced = mask >> i & 1;
        map.dim[i] = x->dim[i];
        map.stride[i] = reduced ? 0 : stride;
        stride *= reduced ? 1 : x->dim[i];
    }
    strided_coalesce(&map);
    return map;
}

static void reduce(const Node *node, const Tensor *x, Tensor *out)
{
    Compute compute = compute_exact(x->type->dtype);
    Strided map = accumulator_map(&x->type->shape, reduce_mask(node, x->type->shape.rank));
    int64_t elements = shape_elements(&x->type->shape), results = shape_elements(&out->type->shape);
    Arena scratch = {0};
    Number *sum = ARENA_ARRAY(&scratch, Number, results), chunk[CHUNK];

    for (int64_t i = 0; i < results; i++)
        sum[i] = neutral(node->op, compute);
    for (int64_t start = 0; start < elements; start += CHUNK) {
        int64_t count = elements - start < CHUNK ? elements - start : CHUNK, at = 0;
        elements_load_plain(x, start, count, compute, chunk);
        Walk walk = walk_start(&map, start, count);
        for (Run run; walk_next(&walk, &run); at += run.count)
            if (compute == COMPUTE_F64)
                fold_f64(node->op, &sum[run.offset].f, run.stride, &chunk[at].f, run.count);
            else
                fold_i64(node->op, &sum[run.offset].i, run.stride, &chunk[at].i, run.count);
    }
    elements_store(out, 0, results, compute, sum);
    arena_free(&scratch);
}

/* argmax, argmin: x as [outer, extent, inner]; the first NaN wins. */

static bool beats_f64(OpCode op, double e, double best)
{
    if (isnan(best))
        return false;
    return isnan(e) || (op == OP_ARGMAX ? e > best : e < best);
}

static bool beats(OpCode op, Compute compute, Number e, Number best)
{
    if (compute == COMPUTE_F64)
        return beats_f64(op, e.f, best.f);
    return op == OP_ARGMAX ? e.i > best.i : e.i < best.i;
}

static void arg_extreme(const Node *node, const Tensor *x, Tensor *out)
{
    const Shape *shape = &x->type->shape;
    uint32_t axis = axis_position(attr_int(node, "axis"), shape->rank);
    Compute compute = compute_exact(x->type->dtype);
    int64_t outer = 1, inner = 1, extent = shape->dim[axis], *position = out->data;
    for (uint32_t i = 0; i < axis; i++)
        outer *= shape->dim[i];
    for (uint32_t i = axis + 1; i < shape->rank; i++)
        inner *= shape->dim[i];

    Arena scratch = {0};
    Number *best = ARENA_ARRAY(&scratch, Number, inner), *row = ARENA_ARRAY(&scratch, Number, inner);
    for (int64_t o = 0; o < outer; o++, position += inner)
        for (int64_t k = 0; k < extent; k++) {
            elements_load_plain(x, (o * extent + k) * inner, inner, compute, row);
            for (int64_t i = 0; i < inner; i++)
                if (k == 0 || beats(node->op, compute, row[i], best[i])) {
                    best[i] = row[i];
                    position[i] = k;
                }
        }
    arena_free(&scratch);
}

void eval_reduce(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    (void)graph;
    if (is_arg(node->op))
        arg_extreme(node, in[0], out[0]);
    else
        reduce(node, in[0], out[0]);
}
