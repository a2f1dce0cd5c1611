/* Reading and writing at computed positions.  Positions beyond an end are brought to it before, as the language says;
 * ONNX's own ops fail there. */
#include "onnx/write/export.h"

static const char *combine_name(Word combine)
{
    switch (combine) {
    case WORD_ADD:
        return "add";
    case WORD_MUL:
        return "mul";
    case WORD_MAX:
        return "max";
    case WORD_MIN:
        return "min";
    default:
        return "none";
    }
}

/* Are they known, and all of them there? */
static bool are_inside(const ExportNode *n, int64_t extent)
{
    const Tensor *index = n->e->tensor[n->in[1]].known;
    if (!index)
        return false;
    for (int64_t i = 0; i < shape_elements(&index->type->shape); i++) {
        double at = tensor_number(index, i);
        if (at < (double)-extent || at >= (double)extent)
            return false;
    }
    return true;
}

/* ... with negative ones still counted from the end. */
static ExportId write_positions(ExportNode *n, int64_t extent)
{
    DType dtype = value_type(n->graph, n->node->in[1])->dtype;
    bool wide = dtype == DT_I32 || dtype == DT_I64;
    if (are_inside(n, extent))
        return wide ? n->in[1] : export_make(n, "Cast(y){to=i64}");
    if (wide)
        return export_make(n, "Clip(y, %s:%lld, %s:%lld)", dtype_name(dtype), -(long long)extent, dtype_name(dtype),
                           (long long)extent - 1);
    return export_make(n, "Clip(Cast(y){to=i64}, i64:%lld, i64:%lld)", -(long long)extent, (long long)extent - 1);
}

static int64_t extent_of(const Shape *shape, uint32_t begin, uint32_t end)
{
    int64_t extent = 1;
    for (uint32_t d = begin; d < end; d++)
        extent *= shape->dim[d];
    return extent;
}

/* As rows of [outer, n, inner]: an index for each element, since one for each slice may meet another of its own in any
 * order. */
static bool write_scatter(ExportNode *n, uint32_t axis, ExportId at)
{
    const Shape *x = value_shape(n->graph, n->node->in[0]), *index = value_shape(n->graph, n->node->in[1]);
    long long outer = extent_of(x, 0, axis), inner = extent_of(x, axis + 1, x->rank), many = shape_elements(index);
    if (!many || !outer || !inner)
        return export_result(n, 0, "x");
    ExportId rows = export_make(n, "Reshape(x, [%lld, %lld, %lld])", outer, (long long)x->dim[axis], inner);
    ExportId each =
        export_make(n, "Expand(Reshape($%u, [1, %lld, 1]), [%lld, %lld, %lld])", at, many, outer, many, inner);
    ExportId update = export_make(n, "Reshape(z, [%lld, %lld, %lld])", outer, many, inner);
    return export_result(n, 0, "Reshape(ScatterElements($%u, $%u, $%u){axis=1, reduction='%s'}, %s)", rows, each,
                         update, combine_name(gather_combine(n->node)), export_ints(n, x->dim, x->rank));
}

bool export_gather(ExportNode *n)
{
    uint32_t axis = gather_dimension(n->graph, n->node);
    int64_t extent = value_shape(n->graph, n->node->in[0])->dim[axis];
    ExportId at = write_positions(n, extent);
    if (node_is_scatter(n->node))
        return write_scatter(n, axis, at);
    return export_result(n, 0, "Gather(x, $%u){axis=%u}", at, axis);
}

/* Parts that begin at run-time positions */

/* The position in each dimension, as i64, brought to where the part stays inside. */
static ExportId write_begin(ExportNode *n, uint32_t rank)
{
    int64_t last[MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        last[d] = node_dynamic_last(n->graph, n->node, d);
    return export_make(n, "Max(Min(Cast(y){to=i64}, %s), i64:0)", export_ints(n, last, rank));
}

/* begin[d], begin[d] + 1, ... as a vector. */
static ExportId write_range(ExportNode *n, ExportId begin, uint32_t d, int64_t count)
{
    return export_make(n, "Add(Gather($%u, [%u]), Range(i64:0, i64:%lld, i64:1))", begin, d, (long long)count);
}

static bool write_dynamic_slice(ExportNode *n, const Shape *whole, const Shape *part)
{
    ExportId begin = write_begin(n, whole->rank), sum = n->in[0];
    for (uint32_t d = 0; d < whole->rank; d++)
        if (part->dim[d] < whole->dim[d])
            sum = export_make(n, "Gather($%u, $%u){axis=%u}", sum, write_range(n, begin, d, part->dim[d]), d);
    n->out[0] = sum;
    return true;
}

/* Positions among all elements, in order. */
static bool write_dynamic_update(ExportNode *n, const Shape *whole, const Shape *part)
{
    ExportId begin = write_begin(n, whole->rank), at = EXPORT_LEFT_OUT;
    for (uint32_t d = 0; d < whole->rank; d++) {
        long long stride = extent_of(whole, d + 1, whole->rank);
        int64_t dim[MAX_RANK];
        for (uint32_t k = 0; k < whole->rank; k++)
            dim[k] = k == d ? part->dim[d] : 1;
        ExportId own = export_make(n, "Mul(Reshape($%u, %s), i64:%lld)", write_range(n, begin, d, part->dim[d]),
                                   export_ints(n, dim, whole->rank), stride);
        at = at == EXPORT_LEFT_OUT ? own : export_make(n, "Add($%u, $%u)", at, own);
    }
    return export_result(n, 0, "Reshape(ScatterElements(Reshape(x, [-1]), Reshape($%u, [-1]), Reshape(z, [-1])), %s)",
                         at, export_ints(n, whole->dim, whole->rank));
}

bool export_dynamic(ExportNode *n)
{
    bool update = node_is_dynamic_update(n->node);
    const Shape *whole = value_shape(n->graph, n->node->in[0]);
    const Shape *part = value_shape(n->graph, n->node->in[update ? 2 : 0]);
    if (!update)
        part = value_shape(n->graph, n->node->out[0]);
    if (whole->rank == 0)
        return export_result(n, 0, update ? "z" : "x");
    if (update && !shape_elements(part))
        return export_result(n, 0, "x");
    return update ? write_dynamic_update(n, whole, part) : write_dynamic_slice(n, whole, part);
}
