/* Views and what is put together: where elements come from is known, so each is a slice, a permutation, a reshape and a
 * repetition at most. */
#include "onnx/write/export.h"

static bool is_whole(const View *v, const Shape *from, const Shape *to, uint32_t d)
{
    int64_t extent = v->from[d] == NONE ? 1 : to->dim[v->from[d]];
    return v->step[d] == 0 || v->from[d] == NONE ? from->dim[d] == 1 : v->step[d] == 1 && extent == from->dim[d];
}

/* The part of the operand that is read. */
static ExportId write_slice(ExportNode *n, const View *v, const Shape *from, const Shape *to)
{
    int64_t begin[MAX_RANK], end[MAX_RANK], axes[MAX_RANK], step[MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = 0; d < v->rank; d++) {
        bool single = v->from[d] == NONE || v->step[d] == 0;
        int64_t last = single ? v->begin[d] : v->begin[d] + v->step[d] * (to->dim[v->from[d]] - 1);
        if (is_whole(v, from, to, d))
            continue;
        axes[count] = d;
        begin[count] = v->begin[d];
        step[count] = single ? 1 : v->step[d];
        end[count] = step[count] > 0 ? last + 1 : last - 1;
        if (end[count] < 0)
            end[count] = INT64_MIN / 2; /* before the first */
        count++;
    }
    if (!count)
        return n->in[0];
    return export_make(n, "Slice(x, %s, %s, %s, %s)", export_ints(n, begin, count), export_ints(n, end, count),
                       export_ints(n, axes, count), export_ints(n, step, count));
}

/* Dimensions that the result has, in its order; those that it has not, of extent 1, stand last. */
static void result_order(const View *v, int64_t *order, bool *sorted)
{
    uint32_t count = 0, kept = 0;
    *sorted = true;
    for (uint32_t r = 0; r < MAX_RANK; r++)
        for (uint32_t d = 0; d < v->rank; d++)
            if (v->from[d] == r)
                order[count++] = d;
    kept = count;
    for (uint32_t d = 0; d < v->rank; d++)
        if (v->from[d] == NONE)
            order[count++] = d;
    for (uint32_t i = 1; i < kept; i++)
        *sorted &= order[i - 1] < order[i];
}

/* Are these the last dimensions, after some of extent 1? */
static bool ends_with(const int64_t *dim, uint32_t rank, const int64_t *last, uint32_t count)
{
    for (uint32_t i = 0; i < rank; i++)
        if (dim[rank - 1 - i] != (i < count ? last[count - 1 - i] : 1))
            return false;
    return count <= rank;
}

static bool write_strided(ExportNode *n, const View *v, const Shape *to)
{
    const Shape *from = value_shape(n->graph, n->node->in[0]);
    int64_t order[MAX_RANK], dim[MAX_RANK], now[MAX_RANK];
    bool sorted, wide = false;
    result_order(v, order, &sorted);
    ExportId part = write_slice(n, v, from, to);

    for (uint32_t r = 0; r < to->rank; r++)
        dim[r] = 1;
    for (uint32_t d = 0; d < v->rank; d++)
        if (v->from[d] != NONE)
            dim[v->from[d]] = v->step[d] ? to->dim[v->from[d]] : 1;
    for (uint32_t r = 0; r < to->rank; r++)
        wide |= dim[r] != to->dim[r];
    for (uint32_t i = 0; i < v->rank; i++) {
        int64_t d = sorted ? i : order[i]; /* what is in order is not transposed */
        now[i] = v->from[d] == NONE ? 1 : dim[v->from[d]];
    }
    if (!sorted)
        part = export_make(n, "Transpose($%u){perm=%s}", part, export_ints(n, order, v->rank));
    if (!ends_with(dim, to->rank, now, v->rank) || (!wide && v->rank != to->rank))
        part = export_make(n, "Reshape($%u, %s)", part, export_ints(n, dim, to->rank));
    if (wide)
        part = export_make(n, "Expand($%u, %s)", part, export_ints(n, to->dim, to->rank));
    n->out[0] = part;
    return true;
}

/* Parts along one axis, one after another. */
static bool write_split(ExportNode *n)
{
    Export *e = n->e;
    uint32_t count = n->node->out_count, axis = MAX_RANK;
    int64_t *size = ARENA_ARRAY(e->arena, int64_t, count);
    const Shape *whole = value_shape(n->graph, n->node->in[0]);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t d = 0; d < whole->rank; d++)
            if (value_shape(n->graph, n->node->out[i])->dim[d] != whole->dim[d])
                axis = d;
    for (uint32_t i = 0; i < count; i++) {
        size[i] = value_shape(n->graph, n->node->out[i])->dim[axis];
        n->out[i] = export_id_near(e, n->wish[i]);
    }
    ExportId in[] = {n->in[0], export_list(e, DT_I64, size, count)};
    export_attribute_int(e, export_append(e, "Split", in, 2, n->out, count), "axis", axis);
    return true;
}

/* A gather, as ONNX has no such view; the dimension that it makes goes last. */
static bool write_windows(ExportNode *n, const View *v, const Shape *to)
{
    uint32_t axis = v->slid, last = to->rank - 1;
    long long begin = v->begin[axis], step = v->step[axis], further = v->further;
    int64_t order[MAX_RANK];
    for (uint32_t d = 0; d < last; d++)
        order[d] = d <= axis ? d : d + 1;
    order[last] = axis + 1;
    ExportId at =
        export_make(n, "Add(Unsqueeze(Range(i64:%lld, i64:%lld, i64:%lld), [1]), Range(i64:0, i64:%lld, i64:%lld))",
                    begin, begin + to->dim[axis] * step, step, to->dim[last] * further, further);
    return export_result(n, 0, "Transpose(Gather(x, $%u){axis=%u}){perm=%s}", at, axis,
                         export_ints(n, order, to->rank));
}

bool export_view(ExportNode *n)
{
    const Shape *to = value_shape(n->graph, n->node->out[0]);
    if (!node_is_view(n->node) || view_only_waits(n->node))
        return export_result(n, 0, "x");
    if (view_is_reshape(n->node))
        return export_result(n, 0, "Reshape(x, %s)", export_ints(n, to->dim, to->rank));
    if (n->node->out_count > 1)
        return write_split(n);
    View v = view_of(n->graph, n->node, 0);
    return v.slid == NONE ? write_strided(n, &v, to) : write_windows(n, &v, to);
}

static bool write_joined(ExportNode *n, uint32_t axis, const ExportId *in)
{
    Export *e = n->e;
    n->out[0] = in[0];
    if (n->node->in_count == 1)
        return true;
    n->out[0] = export_id_near(e, n->wish[0]);
    export_attribute_int(e, export_append(e, "Concat", in, n->node->in_count, n->out, 1), "axis", axis);
    return true;
}

static bool write_pad(ExportNode *n, double fill)
{
    const Shape *from = value_shape(n->graph, n->node->in[0]), *to = value_shape(n->graph, n->node->out[0]);
    int64_t pads[2 * MAX_RANK] = {0};
    if (from->rank == 0)
        return export_result(n, 0, "x");
    if (!shape_elements(from)) /* of which ONNX Runtime pads none */
        return export_result(n, 0, "Expand(%s, %s)", export_number(n, n->dtype, fill),
                             export_ints(n, to->dim, to->rank));
    assembly_begin(n->graph, n->node, 0, pads);
    for (uint32_t d = 0; d < from->rank; d++)
        pads[from->rank + d] = to->dim[d] - from->dim[d] - pads[d];
    return export_result(n, 0, "Pad(x, %s, %s)", export_ints(n, pads, 2 * from->rank),
                         export_number(n, n->dtype, fill));
}

bool export_assemble(ExportNode *n)
{
    uint32_t axis;
    if (node_is_stack(n->graph, n->node, &axis)) {
        ExportId *part = ARENA_ARRAY(n->e->arena, ExportId, n->node->in_count);
        for (uint32_t i = 0; i < n->node->in_count; i++)
            part[i] = export_make(n, "Unsqueeze($%u, [%u])", n->in[i], axis);
        return write_joined(n, axis, part);
    }
    Assembly a = assembly_of(n->graph, n->node);
    return a.filled ? write_pad(n, a.fill) : write_joined(n, a.axis, n->in);
}
