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

/* Products */

typedef struct Factors { /* the slices of a scatter_mul, those of a position together */
    ValueId slices;      /* [..., m, ...] */
    ValueId position;    /* i64[m], from 1 on: shifting fills with 0 */
    uint32_t dimension;
    int64_t count; /* m */
} Factors;

/* Is what is `by` further on of the same position?  With dimensions of 1 behind. */
static ValueId is_together(Reverse *r, const Factors *f, int64_t by)
{
    Shape mask = {1, {f->count}};
    ValueId same = reverse_build2(r, OP_EQ, f->position, reverse_further(r, f->position, 0, by));
    for (uint32_t d = f->dimension + 1; d < reverse_shape(r, f->slices)->rank; d++)
        mask.dim[mask.rank++] = 1;
    return reverse_reshape(r, same, &mask);
}

/* What is `by` further on, where it is of the same position; 1 elsewhere. */
static ValueId together(Reverse *r, const Factors *f, ValueId x, int64_t by)
{
    ValueId one = reverse_number(r, value_type(r->graph, x)->dtype, 1);
    return reverse_select(r, is_together(r, f, by), reverse_further(r, x, f->dimension, by), one);
}

/* Of each slice the product of those of its position on one side: behind it, or with `way` -1 before it.  By doubling:
 * after each step a product has twice the factors (Hillis and Steele 1986). */
static ValueId product_beside(Reverse *r, const Factors *f, int64_t way)
{
    ValueId product = f->slices;
    for (int64_t factors = 1; factors < f->count; factors *= 2)
        product = reverse_build2(r, OP_MUL, product, together(r, f, product, way * factors));
    return together(r, f, product, way);
}

/* A tensor of slices, whose dimensions in place of the index's are one, in another order. */
static ValueId in_order(Reverse *r, ValueId slices, ValueId order, uint32_t dimension)
{
    Attr axis = {.i = dimension};
    return reverse_build(r, OP_GATHER, (ValueId[]){slices, order}, 2, &axis);
}

/* The positions of the index, those that count from the end or lie outside too: i64[m], from 1 on. */
static ValueId positions(Reverse *r, const Shape *flat)
{
    Attr axis = {.i = 0};
    Shape rows = {1, {reverse_shape(r, r->node.in[0])->dim[gather_dimension(r->graph, &r->node)]}};
    ValueId number = reverse_build2(r, OP_ADD, numbered(r, &rows), reverse_number(r, DT_I64, 1));
    return reverse_build(r, OP_GATHER, (ValueId[]){number, reverse_reshape(r, r->node.in[1], flat)}, 2, &axis);
}

static ValueId sorted(Reverse *r, ValueId x)
{
    Attr attr[3];
    attr_defaults(OP_SORTED_POSITIONS, attr);
    attr[attr_index(OP_SORTED_POSITIONS, STR("axis"))] = (Attr){.i = 0};
    return reverse_build(r, OP_SORTED_POSITIONS, &x, 1, attr);
}

/* The update with one dimension of m in place of the index's. */
static Shape flat_slices(Reverse *r, uint32_t dimension, int64_t m)
{
    Shape x = *reverse_shape(r, r->node.in[0]);
    x.dim[dimension] = m;
    return x;
}

/* Of each slice the product of all others of its position: those before it times those behind it, in the order of the
 * positions.  Nothing is divided, so that zeros are no case of their own, in derivatives of it neither. */
static ValueId product_of_others(Reverse *r)
{
    ValueId update = r->node.in[2];
    Shape whole = *reverse_shape(r, update), flat = {1, {shape_elements(reverse_shape(r, r->node.in[1]))}};
    Factors f = {.dimension = gather_dimension(r->graph, &r->node), .count = flat.dim[0]};
    Shape slices = flat_slices(r, f.dimension, f.count);
    Attr axis = {.i = 0};
    ValueId position = positions(r, &flat), order = sorted(r, position), number = numbered(r, &flat);
    ValueId back = reverse_build(r, OP_SCATTER, (ValueId[]){number, order, number}, 3, &axis);
    f.position = in_order(r, position, order, 0);
    f.slices = in_order(r, reverse_reshape(r, update, &slices), order, f.dimension);
    ValueId others = reverse_build2(r, OP_MUL, product_beside(r, &f, -1), product_beside(r, &f, 1));
    return reverse_reshape(r, in_order(r, others, back, f.dimension), &whole);
}

static ValueId reverse_factor(Reverse *r, ValueId d)
{
    ValueId given = at_slices(r, reverse_build2(r, OP_MUL, d, r->node.in[0]));
    bool single = shape_elements(reverse_shape(r, r->node.in[1])) < 2;
    return single ? given : reverse_build2(r, OP_MUL, given, product_of_others(r));
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
