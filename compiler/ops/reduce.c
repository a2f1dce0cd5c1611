/* Reductions over dimensions, and the position of an extreme along one. */
#include "ops/reduce.h"

#include <math.h>

#include "ir/attr.h"
#include "ops/families.h"
#include "ops/infer.h"

static bool check_reduced(Graph *graph, NodeId node, uint32_t rank)
{
    const Node *n = &graph->node[node];
    uint32_t axis;
    if (n->op != OP_ARGMAX && n->op != OP_ARGMIN)
        return infer_check_axes(graph, node, "axes", rank);
    if (rank == 0)
        return infer_fail(graph, node, "takes at least one dimension: " STR_FMT,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    return infer_check_axis(graph, node, attr_int(n, "axis"), rank, &axis);
}

bool infer_reduce(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = infer_in_type(graph, node, 0);

    if (!infer_check_class(graph, node, 0, CLASS_NUMBER) || !check_reduced(graph, node, x->shape.rank))
        return false;

    Reduction reduction = reduction_of(graph, n);
    bool empty_fits = reduction.combine == WORD_ADD || reduction.combine == WORD_MUL;
    Shape shape = {0};
    for (uint32_t i = 0; i < x->shape.rank; i++) {
        bool reduced = reduction.reduced[i];
        if (reduced && x->shape.dim[i] == 0 && !empty_fits)
            return infer_fail(graph, node, "nothing to choose from, dimension %u is empty: " STR_FMT, i,
                              STR_ARG(infer_show_operand(graph, node, 0)));
        if (!reduced || reduction.keep)
            shape.dim[shape.rank++] = reduced ? 1 : x->shape.dim[i];
    }
    return infer_set_plain(graph, node, 0, reduction.kind == REDUCE_POSITION ? DT_I64 : x->dtype, &shape);
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
DEFINE_FOLDS(u64, uint64_t)

static void combine_f64(Word combine, double *to, int64_t stride, const double *from, int64_t count)
{
    if (combine == WORD_ADD)
        sum_f64(to, stride, from, count);
    else if (combine == WORD_MUL)
        prod_f64(to, stride, from, count);
    else if (combine == WORD_MAX)
        max_f64(to, stride, from, count);
    else
        min_f64(to, stride, from, count);
}

static void combine_i64(Word combine, int64_t *to, int64_t stride, const int64_t *from, int64_t count)
{
    if (combine == WORD_ADD)
        sum_i64(to, stride, from, count);
    else if (combine == WORD_MUL)
        prod_i64(to, stride, from, count);
    else if (combine == WORD_MAX)
        max_i64(to, stride, from, count);
    else
        min_i64(to, stride, from, count);
}

static void combine_u64(Word combine, uint64_t *to, int64_t stride, const uint64_t *from, int64_t count)
{
    if (combine == WORD_ADD)
        sum_u64(to, stride, from, count);
    else if (combine == WORD_MUL)
        prod_u64(to, stride, from, count);
    else if (combine == WORD_MAX)
        max_u64(to, stride, from, count);
    else
        min_u64(to, stride, from, count);
}

void reduce_combine(Word combine, Compute compute, Number *to, int64_t stride, const Number *from, int64_t count)
{
    if (compute == COMPUTE_F64)
        combine_f64(combine, &to->f, stride, &from->f, count);
    else if (compute == COMPUTE_U64)
        combine_u64(combine, &to->u, stride, &from->u, count);
    else
        combine_i64(combine, &to->i, stride, &from->i, count);
}

Number reduce_neutral(Word combine, Compute compute)
{
    if (compute == COMPUTE_F64)
        return (Number){.f = reduction_neutral(combine, DT_F64)};
    if (combine == WORD_MIN)
        return compute == COMPUTE_U64 ? (Number){.u = UINT64_MAX} : (Number){.i = INT64_MAX}; /* no double */
    if (compute == COMPUTE_U64)
        return (Number){.u = combine == WORD_MUL};
    return (Number){.i = (int64_t)reduction_neutral(combine, DT_I64)};
}

/* For each element of the operand its accumulator: the result's strides, 0 along what is reduced. */
static Strided accumulator_map(const Shape *x, const bool *reduced)
{
    Strided map = {.rank = x->rank};
    int64_t stride = 1;
    for (uint32_t i = x->rank; i-- > 0;) {
        map.dim[i] = x->dim[i];
        map.stride[i] = reduced[i] ? 0 : stride;
        stride *= reduced[i] ? 1 : x->dim[i];
    }
    strided_coalesce(&map);
    return map;
}

static void reduce(const Reduction *reduction, const Tensor *x, Tensor *out)
{
    Compute compute = elements_compute_exact(x->type->dtype);
    Strided map = accumulator_map(&x->type->shape, reduction->reduced);
    int64_t elements = shape_elements(&x->type->shape), results = shape_elements(&out->type->shape);
    Arena scratch = {0};
    Number *sum = ARENA_ARRAY(&scratch, Number, results), chunk[CHUNK];

    for (int64_t i = 0; i < results; i++)
        sum[i] = reduce_neutral(reduction->combine, compute);
    for (int64_t start = 0; start < elements; start += CHUNK) {
        int64_t count = elements - start < CHUNK ? elements - start : CHUNK, at = 0;
        elements_load_plain(x, start, count, compute, chunk);
        Walk walk = strided_walk(&map, start, count);
        for (Run run; strided_next(&walk, &run); at += run.count)
            reduce_combine(reduction->combine, compute, &sum[run.offset], run.stride, &chunk[at], run.count);
    }
    elements_store(out, 0, results, compute, sum);
    arena_free(&scratch);
}

/* argmax, argmin: x as [outer, extent, inner]; the first NaN wins. */

static bool beats_f64(Word combine, double e, double best)
{
    if (isnan(best))
        return false;
    return isnan(e) || (combine == WORD_MAX ? e > best : e < best);
}

static bool beats(Word combine, Compute compute, Number e, Number best)
{
    if (compute == COMPUTE_F64)
        return beats_f64(combine, e.f, best.f);
    if (compute == COMPUTE_U64)
        return combine == WORD_MAX ? e.u > best.u : e.u < best.u;
    return combine == WORD_MAX ? e.i > best.i : e.i < best.i;
}

static void arg_extreme(const Reduction *reduction, const Tensor *x, Tensor *out)
{
    const Shape *shape = &x->type->shape;
    Compute compute = elements_compute_exact(x->type->dtype);
    uint32_t axis = 0;
    while (!reduction->reduced[axis])
        axis++;
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
                if (k == 0 || beats(reduction->combine, compute, row[i], best[i])) {
                    best[i] = row[i];
                    position[i] = k;
                }
        }
    arena_free(&scratch);
}

void eval_reduce(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    Reduction reduction = reduction_of(graph, node);
    if (reduction.kind == REDUCE_POSITION)
        arg_extreme(&reduction, in[0], out[0]);
    else
        reduce(&reduction, in[0], out[0]);
}
