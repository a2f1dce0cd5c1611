/* Reductions, and running sums and products. */
#include "onnx/write/export.h"

static const char *reduced_axes(const ExportNode *n, const Reduction *r)
{
    int64_t axes[MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = 0; d < r->rank; d++)
        if (r->reduced[d])
            axes[count++] = d;
    return export_ints(n, axes, count);
}

static const char *reduce_op(Word combine)
{
    switch (combine) {
    case WORD_ADD:
        return "ReduceSum";
    case WORD_MUL:
        return "ReduceProd";
    case WORD_MAX:
        return "ReduceMax";
    default:
        return "ReduceMin";
    }
}

static bool write_position(ExportNode *n, const Reduction *r)
{
    uint32_t axis = 0;
    while (!r->reduced[axis])
        axis++;
    const char *op = r->combine == WORD_MAX ? "ArgMax" : "ArgMin";
    return export_result(n, 0, "%s(x){axis=%u, keepdims=%d}", op, axis, r->keep);
}

/* u64 is compared as i64 once its upper half is below the lower one. */
static bool write_values(ExportNode *n, const Reduction *r)
{
    const char *op = reduce_op(r->combine), *axes = reduced_axes(n, r);
    if (n->dtype == DT_I32 && r->combine == WORD_MUL) /* of which ONNX Runtime's stop at the largest */
        return export_result(n, 0, "Cast(%s(Cast(x){to=i64}, %s){keepdims=%d}){to=i32}", op, axes, r->keep);
    if (n->dtype != DT_U64)
        return export_result(n, 0, "%s(x, %s){keepdims=%d}", op, axes, r->keep);
    if (r->combine == WORD_ADD || r->combine == WORD_MUL)
        return export_result(n, 0, "Cast(%s(Cast(x){to=i64}, %s){keepdims=%d}){to=u64}", op, axes, r->keep);
    ExportId signs = export_make(n, "Cast(BitwiseXor(x, 9223372036854775808)){to=i64}");
    return export_result(n, 0, "BitwiseXor(Cast(%s($%u, %s){keepdims=%d}){to=u64}, 9223372036854775808)", op, signs,
                         axes, r->keep);
}

/* Of nothing it is the neutral element. */
static bool write_neutral(ExportNode *n, const Reduction *r)
{
    const Shape *shape = value_shape(n->graph, n->node->out[0]);
    const char *number = export_number(n, n->dtype, reduction_neutral(r->combine, n->dtype));
    return export_result(n, 0, "Expand(%s, %s)", number, export_ints(n, shape->dim, shape->rank));
}

bool export_reduce(ExportNode *n)
{
    Reduction r = reduction_of(n->graph, n->node);
    if (r.kind == REDUCE_POSITION && n->dtype == DT_U64)
        return n->in[0] = export_make(n, "Cast(BitwiseXor(x, 9223372036854775808)){to=i64}"), write_position(n, &r);
    if (r.kind == REDUCE_POSITION)
        return write_position(n, &r);
    if (!shape_elements(value_shape(n->graph, n->node->in[0])))
        return write_neutral(n, &r);
    if (r.rank == 0)
        return export_result(n, 0, "x");
    return write_values(n, &r);
}

/* Products in log2(n) steps: each takes in what stands 1, 2, 4, ... places before (Hillis and Steele 1986). */
static bool write_products(ExportNode *n, const Cumulation *c)
{
    const Shape *shape = value_shape(n->graph, n->node->in[0]);
    int64_t extent = shape->dim[c->dimension];
    int64_t dim[MAX_RANK];
    uint32_t axis = c->dimension;
    for (uint32_t d = 0; d < shape->rank; d++)
        dim[d] = shape->dim[d];
    ExportId sum = n->in[0];
    for (int64_t step = 1, first = c->exclusive; first || step < extent; first ? (first = 0) : (step *= 2)) {
        dim[axis] = step;
        ExportId ones = export_make(n, "Expand(1, %s)", export_ints(n, dim, shape->rank));
        long long begin = c->reverse ? step : 0, end = c->reverse ? extent : extent - step;
        ExportId rest = export_make(n, "Slice($%u, [%lld], [%lld], [%u])", sum, begin, end, axis);
        ExportId moved =
            export_make(n, "Concat($%u, $%u){axis=%u}", c->reverse ? rest : ones, c->reverse ? ones : rest, axis);
        sum = first ? moved : export_make(n, "Mul($%u, $%u)", sum, moved);
    }
    return export_result(n, 0, "Identity($%u)", sum);
}

bool export_cumulate(ExportNode *n)
{
    Cumulation c = cumulation_of(n->graph, n->node);
    if (c.combine == WORD_MUL)
        return write_products(n, &c);
    return export_result(n, 0, "CumSum(x, i64:%u){exclusive=%d, reverse=%d}", c.dimension, c.exclusive, c.reverse);
}
