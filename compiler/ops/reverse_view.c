/* Reverse mode of what moves elements: views, assemblies, and parts at run-time positions. */
#include "ops/families.h"
#include "ops/meaning.h"
#include "ops/reverse.h"

#define MOST_PIECES 16 /* of windows that overlap */

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

/* Windows */

/* start, start + step, ... */
static ValueId counted(Reverse *r, const Shape *shape, int64_t start, int64_t step)
{
    Attr attr[3];
    attr[attr_index(OP_IOTA, STR("axis"))] = (Attr){.i = 0};
    attr[attr_index(OP_IOTA, STR("shape"))] = (Attr){.i = shape->rank, .ints = shape->dim};
    attr[attr_index(OP_IOTA, STR("dtype"))] = (Attr){.i = DT_I64};
    ValueId count = reverse_build(r, OP_IOTA, NULL, 0, attr);
    count = reverse_build2(r, OP_MUL, count, reverse_number(r, DT_I64, (double)step));
    return reverse_build2(r, OP_ADD, count, reverse_number(r, DT_I64, (double)start));
}

/* Where windows overlap, what reaches them adds up: the transpose of the gather that they are. */
static void reverse_gathered(Reverse *r, const View *view, ValueId seen)
{
    const Shape shape = *reverse_shape(r, seen);
    Shape row = {2, {shape.dim[view->slid], 1}}, column = {1, {shape.dim[view->slid + 1]}};
    ValueId at = reverse_build2(r, OP_ADD, counted(r, &row, view->begin[view->slid], view->step[view->slid]),
                                counted(r, &column, 0, view->further));
    ValueId in[] = {reverse_zeros(r, r->node.in[0]), at, seen};
    Attr axis = {.i = view->slid};
    reverse_give(r, 0, reverse_build(r, OP_SCATTER_ADD, in, 3, &axis));
}

/* As many elements of each window as there are from one to the next, `from` its begin, lie beside those of its
 * neighbours. */
static void reverse_piece(Reverse *r, const View *view, ValueId seen, int64_t from)
{
    uint32_t axis = view->slid;
    int64_t begin[MAX_RANK] = {0}, step = view->step[axis], size = reverse_shape(r, seen)->dim[axis + 1];
    Shape part = *reverse_shape(r, seen), whole = *reverse_shape(r, r->node.in[0]), cut;
    begin[axis + 1] = from;
    part.dim[axis + 1] = size - from < step ? size - from : step;
    ValueId piece = reverse_slice(r, seen, begin, &part);
    int64_t missing = step - part.dim[axis + 1];
    part.dim[axis + 1] = step;
    begin[axis + 1] = 0;
    piece = reverse_pad(r, piece, begin, &part);
    whole.dim[axis] = part.dim[axis] * step;
    cut = whole;
    cut.dim[axis] -= missing;
    piece = reverse_slice(r, reverse_reshape(r, piece, &whole), begin, &cut);
    begin[axis] = view->begin[axis] + from;
    reverse_give_part(r, 0, piece, begin);
}

static void reverse_windows(Reverse *r)
{
    View view = view_of(r->graph, &r->node, 0);
    const Shape shape = *reverse_shape(r, r->down[0]);
    uint32_t axes[MAX_RANK], axis = view.slid, last = shape.rank - 1;
    for (uint32_t d = 0; d < shape.rank; d++)
        axes[d] = d <= axis ? d : d == axis + 1 ? last : d - 1;
    ValueId seen = reverse_transpose(r, r->down[0], axes); /* what a window sees beside it */
    if (view.step[axis] < 0 && view.further == 1) {
        seen = flipped(r, seen, axis);
        view.begin[axis] += view.step[axis] * (shape.dim[axis] - 1);
        view.step[axis] *= -1;
    }
    if (view.further != 1 || shape.dim[last] > MOST_PIECES * view.step[axis])
        reverse_gathered(r, &view, seen);
    else
        for (int64_t from = 0; from < shape.dim[last]; from += view.step[axis])
            reverse_piece(r, &view, seen, from);
}

bool reverse_view(Reverse *r)
{
    for (uint32_t i = 0; i < r->node.out_count; i++) {
        if (r->down[i] == NONE)
            continue;
        if (view_is_reshape(&r->node))
            reverse_give(r, 0, reverse_reshape(r, r->down[i], reverse_shape(r, r->node.in[0])));
        else if (view_of(r->graph, &r->node, i).slid != NONE)
            reverse_windows(r);
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
