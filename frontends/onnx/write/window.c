/* What an access reads, laid out as a tensor: a dimension for each axis.  So anything that is affine in its axes
 * becomes a sum over dimensions: windows of integers, gradients of convolutions, pools that ONNX has no op for. */
#include "onnx/write/export.h"

/* Where dimension d is read for each combination of its axes, the last one fastest; `outside` where it is not. */
typedef struct Positions {
    int64_t *at;
    int64_t count;
    bool guarded, in_order; /* some are outside; they are 0, 1, 2, ... of all there are */
} Positions;

static int64_t position_of(const Access *access, uint32_t d, const uint32_t *axis, const int64_t *digit, uint32_t axes,
                           int64_t extent)
{
    int64_t at = access->begin[d];
    for (uint32_t i = 0; i < axes; i++)
        at += access->factor[d][axis[i]] * digit[i];
    return at < 0 || at % access->divisor[d] || at / access->divisor[d] >= extent ? extent : at / access->divisor[d];
}

static Positions positions_of(Arena *arena, const Access *access, uint32_t d, const Axis *axes, const uint32_t *axis,
                              uint32_t count, int64_t extent)
{
    Positions p = {.count = 1, .in_order = true};
    int64_t digit[MOST_AXES] = {0};
    for (uint32_t i = 0; i < count; i++)
        p.count *= axes[axis[i]].extent;
    p.at = ARENA_ARRAY(arena, int64_t, p.count + 1);
    for (int64_t k = 0; k < p.count; k++) {
        p.at[k] = position_of(access, d, axis, digit, count, extent);
        p.guarded |= p.at[k] == extent;
        p.in_order &= p.at[k] == k;
        for (uint32_t i = count; i-- > 0 && ++digit[i] == axes[axis[i]].extent;)
            digit[i] = 0;
    }
    p.in_order &= p.count == extent;
    return p;
}

static ExportId read_positions(ExportNode *n, ExportId x, const Positions *p, uint32_t d, uint32_t rank, double fill)
{
    Tensor *tensor = tensor_new(n->e->arena, module_plain_type(n->graph->module, DT_I64, 1, &p->count));
    int64_t pads[2 * MAX_RANK] = {0};
    for (int64_t k = 0; k < p->count; k++)
        ((int64_t *)tensor->data)[k] = p->at[k];
    pads[rank + d] = 1;
    if (p->guarded)
        x = export_make(n, "Pad($%u, %s, %s)", x, export_ints(n, pads, 2 * rank), export_number(n, n->dtype, fill));
    return export_make(n, "Gather($%u, $%u){axis=%u}", x, export_tensor(n->e, tensor, "positions"), d);
}

ExportId export_unfold(ExportNode *n, ExportId x, const Shape *shape, Unfolding *u)
{
    int64_t dim[MOST_AXES];
    bool same = true;
    u->rank = 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        uint32_t own[MOST_AXES], count = 0;
        for (uint32_t a = 0; a < u->axis_count; a++)
            if (u->access.factor[d][a])
                own[count++] = a;
        Positions p = positions_of(n->e->arena, &u->access, d, u->axis, own, count, shape->dim[d]);
        if (!p.in_order)
            x = read_positions(n, x, &p, d, shape->rank, u->fill);
        for (uint32_t i = 0; i < count; i++) {
            if (u->brief && u->axis[own[i]].extent == 1)
                continue;
            dim[u->rank] = u->axis[own[i]].extent;
            u->order[u->rank++] = own[i];
        }
        same &= count == 1 && u->rank == d + 1;
    }
    return same ? x : export_make(n, "Reshape($%u, %s)", x, export_ints(n, dim, u->rank));
}
