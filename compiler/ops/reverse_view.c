/* Reverse mode of what moves elements: views, assemblies, and parts at run-time positions. */
#include "ops/families.h"
#include "ops/meaning.h"
#include "ops/reverse.h"

/* Strided views, whose result has some elements of the operand, and may repeat them. */

/* The last one first, along a dimension. */
static ValueId flipped(Reverse *r, ValueId x, uint32_t dimension)
{
    int64_t axis = dimension, extent = reverse_shape(r, x)->dim[dimension];
    int64_t begin = extent - 1, end = -extent - 1, step = -1; /* counted from the end, `end` is before all */
    Attr attr[4];
    attr[attr_index(OP_SLICE, STR("axes"))] = (Attr){.i = 1, .ints = &axis};
    attr[attr_index(OP_SLICE, STR("begin"))] = (Attr){.i = 1, .ints = &begin};
    attr[attr_index(OP_SLICE, STR("end"))] = (Attr){.i = 1, .ints = &end};
    attr[attr_index(OP_SLICE, STR("step"))] = (Attr){.i = 1, .ints = &step};
    return reverse_build(r, OP_SLICE, &x, 1, attr);
}

/* step - 1 zeros between neighbours along a dimension: behind each, and those behind the last cut off. */
static ValueId spread(Reverse *r, ValueId x, uint32_t dimension, int64_t step)
{
    Shape whole = *reverse_shape(r, x), padded = {4, {1, whole.dim[dimension], step, 1}};
    for (uint32_t d = 0; d < whole.rank; d++)
        if (d != dimension)
            padded.dim[d < dimension ? 0 : 3] *= whole.dim[d];
    Shape single = padded, joined = {3, {padded.dim[0], padded.dim[1] * step, padded.dim[3]}}, cut = joined;
    single.dim[2] = 1;
    cut.dim[1] -= step - 1;
    whole.dim[dimension] = cut.dim[1];
    const int64_t origin[MAX_RANK] = {0};
    ValueId y = reverse_pad(r, reverse_reshape(r, x, &single), origin, &padded);
    return reverse_reshape(r, reverse_slice(r, reverse_reshape(r, y, &joined), origin, &cut), &whole);
}

static void reverse_strided(Reverse *r, uint32_t result)
{
    View view = view_of(r->graph, &r->node, result);
    Shape operand = *reverse_shape(r, r->node.in[0]);
    uint32_t rank = reverse_shape(r, r->down[result])->rank, axes[MAX_RANK], left = 0;
    bool over[MAX_RANK];

    for (uint32_t i = 0; i < rank; i++) /* what is repeated adds up */
        over[i] = true;
    for (uint32_t d = 0; d < view.rank; d++)
        if (view.from[d] != NONE)
            over[view.from[d]] = false;
    ValueId x = reverse_sum(r, r->down[result], over, false);
    for (uint32_t d = 0; d < view.rank; d++) {
        if (view.from[d] == NONE)
            continue;
        axes[left] = 0; /* its number among those that are left */
        for (uint32_t i = 0; i < view.from[d]; i++)
            axes[left] += !over[i];
        left++;
    }
    x = reverse_transpose(r, x, axes);
    for (uint32_t d = 0, i = 0; d < view.rank; d++)
        operand.dim[d] = view.from[d] == NONE ? 1 : reverse_shape(r, x)->dim[i++];
    x = reverse_reshape(r, x, &operand);
    for (uint32_t d = 0; d < view.rank; d++) {
        int64_t step = view.step[d], last = reverse_shape(r, x)->dim[d] - 1;
        if (step < 0) {
            x = flipped(r, x, d);
            view.begin[d] += step * last;
        }
        if (step > 1 || step < -1)
            x = spread(r, x, d, step < 0 ? -step : step);
    }
    reverse_give_part(r, 0, x, view.begin);
}

bool reverse_view(Reverse *r)
{
    for (uint32_t i = 0; i < r->node.out_count; i++) {
        if (r->down[i] == NONE)
            continue;
        if (view_is_reshape(&r->node))
            reverse_give(r, 0, reverse_reshape(r, r->down[i], reverse_shape(r, r->node.in[0])));
        else
            reverse_strided(r, i);
    }
    return true;
}

bool reverse_assemble(Reverse *r)
{
    int64_t begin[MAX_RANK];
    for (uint32_t i = 0; i < r->node.in_count; i++) {
        if (!r->wanted[i])
            continue;
        assembly_begin(r->graph, &r->node, i, begin);
        reverse_give(r, i, reverse_slice(r, r->down[0], begin, reverse_shape(r, r->node.in[i])));
    }
    return true;
}

/* Run-time positions */

static ValueId dynamic_slice(Reverse *r, ValueId x, ValueId at, const Shape *shape)
{
    Attr sizes = {.i = shape->rank, .ints = shape->dim};
    return reverse_build(r, OP_DYNAMIC_SLICE, (ValueId[]){x, at}, 2, &sizes);
}

static ValueId dynamic_update(Reverse *r, ValueId x, ValueId at, ValueId y)
{
    return reverse_build(r, OP_DYNAMIC_UPDATE, (ValueId[]){x, at, y}, 3, NULL);
}

bool reverse_dynamic(Reverse *r)
{
    const ValueId *in = r->node.in;
    ValueId at = in[1], d = r->down[0];
    if (node_is_dynamic_slice(&r->node)) {
        reverse_give(r, 0, dynamic_update(r, reverse_zeros(r, in[0]), at, d));
        return true;
    }
    if (r->wanted[0])
        reverse_give(r, 0, dynamic_update(r, d, at, reverse_zeros(r, in[2])));
    if (r->wanted[2])
        reverse_give(r, 2, dynamic_slice(r, d, at, reverse_shape(r, in[2])));
    return true;
}
