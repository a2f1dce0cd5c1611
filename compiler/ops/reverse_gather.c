/* Reverse mode of gathers and scatters, which are each other's transposes. */
#include "ops/families.h"
#include "ops/meaning.h"
#include "ops/reverse.h"

static ValueId along_axis(Reverse *r, OpCode op, const ValueId *in, uint32_t in_count)
{
    Attr axis = {.i = gather_dimension(r->graph, &r->node)};
    return reverse_build(r, op, in, in_count, &axis);
}

/* What x has where the node's slices are. */
static ValueId at_slices(Reverse *r, ValueId x)
{
    return along_axis(r, OP_GATHER, (ValueId[]){x, r->node.in[1]}, 2);
}

static ValueId scattered(Reverse *r, OpCode op, ValueId x, ValueId slices)
{
    return along_axis(r, op, (ValueId[]){x, r->node.in[1], slices}, 3);
}

/* 0, 1, 2, ... for the positions in the index. */
static ValueId numbered(Reverse *r, const Shape *index)
{
    Shape flat = {1, {shape_elements(index)}};
    Attr attr[3];
    attr[attr_index(OP_IOTA, STR("axis"))] = (Attr){.i = 0};
    attr[attr_index(OP_IOTA, STR("shape"))] = (Attr){.i = 1, .ints = flat.dim};
    attr[attr_index(OP_IOTA, STR("dtype"))] = (Attr){.i = DT_I64};
    return reverse_reshape(r, reverse_build(r, OP_IOTA, NULL, 0, attr), index);
}

/* Is a slice the last one of its position?  With dimensions of 1 for those behind the axis. */
static ValueId is_last(Reverse *r)
{
    Graph *graph = r->graph;
    ValueId index = r->node.in[1];
    Shape row = {1, {reverse_shape(r, r->node.in[0])->dim[gather_dimension(graph, &r->node)]}};
    Shape mask = *reverse_shape(r, index);
    ValueId number = numbered(r, &mask), none = reverse_full(r, DT_I64, &row, -1);
    Attr axis = {.i = 0};
    ValueId last = reverse_build(r, OP_SCATTER, (ValueId[]){none, index, number}, 3, &axis);
    last = reverse_build(r, OP_GATHER, (ValueId[]){last, index}, 2, &axis);
    for (uint32_t d = gather_dimension(graph, &r->node) + 1; d < reverse_shape(r, r->node.in[0])->rank; d++)
        mask.dim[mask.rank++] = 1;
    return reverse_reshape(r, reverse_build2(r, OP_EQ, last, number), &mask);
}

/* What is replaced counts no more, nor does a slice that a later one replaces. */
static void reverse_replaced(Reverse *r, ValueId d)
{
    ValueId update = r->node.in[2], zero = reverse_number(r, value_type(r->graph, update)->dtype, 0);
    if (r->wanted[0])
        reverse_give(r, 0, scattered(r, OP_SCATTER, d, reverse_zeros(r, update)));
    if (r->wanted[2])
        reverse_give(r, 2, reverse_select(r, is_last(r), at_slices(r, d), zero));
}

/* The product of all other factors: of those that are not 0, divided by the slice where none is, as it is at the only
 * 0, else 0. */
static ValueId reverse_factor(Reverse *r, ValueId d)
{
    ValueId x = r->node.in[0], update = r->node.in[2];
    DType dtype = value_type(r->graph, x)->dtype;
    ValueId zero = reverse_number(r, dtype, 0), one = reverse_number(r, dtype, 1);
    ValueId is_zero = reverse_build2(r, OP_EQ, update, zero);
    ValueId zeros = at_slices(r, scattered(r, OP_SCATTER_ADD, reverse_zeros(r, x), reverse_convert(r, is_zero, x)));
    ValueId factor = reverse_select(r, is_zero, one, update);
    ValueId all = at_slices(r, scattered(r, OP_SCATTER_MUL, reverse_build2(r, OP_MUL, d, x), factor));
    ValueId only =
        reverse_select(r, is_zero, reverse_build2(r, OP_EQ, zeros, one), reverse_build2(r, OP_EQ, zeros, zero));
    return reverse_select(r, only, reverse_build2(r, OP_DIV, all, factor), zero);
}

/* Those that are the extreme share alike. */
static void reverse_extreme(Reverse *r, ValueId d)
{
    ValueId x = r->node.in[0], update = r->node.in[2], y = r->node.out[0];
    ValueId zero = reverse_number(r, value_type(r->graph, x)->dtype, 0);
    ValueId kept = reverse_build2(r, OP_EQ, x, y), taken = reverse_build2(r, OP_EQ, update, at_slices(r, y));
    ValueId ties = scattered(r, OP_SCATTER_ADD, reverse_convert(r, kept, x), reverse_convert(r, taken, x));
    ValueId share = reverse_build2(r, OP_DIV, d, ties);
    if (r->wanted[0])
        reverse_give(r, 0, reverse_select(r, kept, share, zero));
    if (r->wanted[2])
        reverse_give(r, 2, reverse_select(r, taken, at_slices(r, share), zero));
}

static bool reverse_scatter(Reverse *r)
{
    ValueId d = r->down[0];
    switch (gather_combine(&r->node)) {
    case WORD_ADD:
        reverse_give(r, 0, d);
        if (r->wanted[2])
            reverse_give(r, 2, at_slices(r, d));
        break;
    case WORD_MUL:
        if (r->wanted[0])
            reverse_give(r, 0, scattered(r, OP_SCATTER_MUL, d, r->node.in[2]));
        if (r->wanted[2])
            reverse_give(r, 2, reverse_factor(r, d));
        break;
    case WORD_OPERAND:
        reverse_replaced(r, d);
        break;
    default:
        reverse_extreme(r, d);
    }
    return true;
}

bool reverse_gather(Reverse *r)
{
    if (node_is_scatter(&r->node))
        return reverse_scatter(r);
    reverse_give(r, 0, scattered(r, OP_SCATTER_ADD, reverse_zeros(r, r->node.in[0]), r->down[0]));
    return true;
}
