/* Running sums and products along a dimension. */
#include "ops/infer.h"

#include "ir/attr.h"
#include "ops/axis.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/meaning.h"
#include "ops/scalar.h"

bool infer_cumulate(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    uint32_t axis;
    return infer_check_class(graph, node, 0, CLASS_NUMBER) &&
           infer_check_axis(graph, node, attr_int(&graph->node[node], "axis"), x->shape.rank, &axis) &&
           infer_set_plain(graph, node, 0, x->dtype, &x->shape);
}

bool node_is_cumulation(const Node *node)
{
    return op_info(node->op)->family == FAMILY_CUMULATE;
}

Cumulation cumulation_of(const Graph *graph, const Node *node)
{
    const Type *x = value_type(graph, node->in[0]);
    return (Cumulation){.combine = node->op == OP_CUMPROD ? WORD_MUL : WORD_ADD,
                        .accumulator = reduction_accumulator(x->dtype),
                        .dimension = axis_position(attr_int(node, "axis"), x->shape.rank),
                        .exclusive = attr_bool(node, "exclusive"),
                        .reverse = attr_bool(node, "reverse")};
}

static void combine(Word word, Compute compute, Number *sum, const Number *more, int64_t count)
{
    scalar_loops(compute)[word](count, sum, more, more, sum);
}

/* x as [outer, extent, inner]; sums are kept in double, and rounded where they are stored. */
void eval_cumulate(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    const Shape *shape = &in[0]->type->shape;
    Compute compute = elements_compute_exact(in[0]->type->dtype);
    Cumulation cumulation = cumulation_of(graph, node);
    double start = reduction_neutral(cumulation.combine, in[0]->type->dtype);
    int64_t outer = 1, inner = 1, extent = shape->dim[cumulation.dimension];
    for (uint32_t i = 0; i < cumulation.dimension; i++)
        outer *= shape->dim[i];
    for (uint32_t i = cumulation.dimension + 1; i < shape->rank; i++)
        inner *= shape->dim[i];

    Arena scratch = {0};
    Number *sum = ARENA_ARRAY(&scratch, Number, inner), *row = ARENA_ARRAY(&scratch, Number, inner);
    for (int64_t o = 0; o < outer && extent && inner; o++) {
        for (int64_t i = 0; i < inner; i++)
            sum[i] = compute == COMPUTE_F64 ? (Number){.f = start} : (Number){.i = (int64_t)start};
        for (int64_t k = 0; k < extent; k++) {
            int64_t at = (o * extent + (cumulation.reverse ? extent - 1 - k : k)) * inner;
            elements_load_plain(in[0], at, inner, compute, row);
            if (cumulation.exclusive)
                elements_store(out[0], at, inner, compute, sum);
            combine(cumulation.combine, compute, sum, row, inner);
            if (!cumulation.exclusive)
                elements_store(out[0], at, inner, compute, sum);
        }
    }
    arena_free(&scratch);
}
