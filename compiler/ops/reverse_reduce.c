/* Reverse mode of reductions, and of running sums and products. */
#include "ops/families.h"
#include "ops/meaning.h"
#include "ops/reverse.h"

/* The shape of the result with the reduced dimensions kept. */
static Shape kept_shape(const Reverse *r, const Reduction *reduction)
{
    Shape shape = *reverse_shape(r, r->node.in[0]);
    for (uint32_t d = 0; d < shape.rank; d++)
        shape.dim[d] = reduction->reduced[d] ? 1 : shape.dim[d];
    return shape;
}

/* Those that are the extreme share alike. */
static ValueId reverse_extreme(Reverse *r, const Reduction *reduction, ValueId y, ValueId d)
{
    ValueId x = r->node.in[0], is_extreme = reverse_build2(r, OP_EQ, x, y);
    ValueId ties = reverse_sum(r, reverse_convert(r, is_extreme, x), reduction->reduced, true);
    ValueId zero = reverse_number(r, value_type(r->graph, x)->dtype, 0);
    return reverse_select(r, is_extreme, reverse_build2(r, OP_DIV, d, ties), zero);
}

static ValueId product(Reverse *r, ValueId x, const Shape *kept)
{
    int64_t axes[MAX_RANK], count = 0;
    for (uint32_t d = 0; d < kept->rank; d++)
        if (kept->dim[d] != reverse_shape(r, x)->dim[d])
            axes[count++] = d;
    Attr attr[2];
    attr[attr_index(OP_REDUCE_PROD, STR("axes"))] = (Attr){.i = count, .ints = axes};
    attr[attr_index(OP_REDUCE_PROD, STR("keep"))] = (Attr){.i = true};
    return count ? reverse_build(r, OP_REDUCE_PROD, &x, 1, attr) : x;
}

/* The product of all others, also where one is 0: the product of those that are not 0, divided by x where there is no 0
 * at all, as it is at the only 0, else 0. */
static ValueId reverse_product(Reverse *r, const Reduction *reduction, const Shape *kept, ValueId d)
{
    ValueId x = r->node.in[0];
    DType dtype = value_type(r->graph, x)->dtype;
    ValueId zero = reverse_number(r, dtype, 0), one = reverse_number(r, dtype, 1);
    ValueId is_zero = reverse_build2(r, OP_EQ, x, zero);
    ValueId zeros = reverse_sum(r, reverse_convert(r, is_zero, x), reduction->reduced, true);
    ValueId others = reverse_select(r, is_zero, one, x), all = product(r, others, kept);
    ValueId only =
        reverse_select(r, is_zero, reverse_build2(r, OP_EQ, zeros, one), reverse_build2(r, OP_EQ, zeros, zero));
    ValueId rest = reverse_select(r, only, reverse_build2(r, OP_DIV, all, others), zero);
    return reverse_build2(r, OP_MUL, d, rest);
}

bool reverse_reduce(Reverse *r)
{
    Reduction reduction = reduction_of(r->graph, &r->node);
    Shape whole = *reverse_shape(r, r->node.in[0]), kept = kept_shape(r, &reduction);
    ValueId d = reverse_reshape(r, r->down[0], &kept), x;
    switch (reduction.combine) {
    case WORD_ADD:
        x = d;
        break;
    case WORD_MUL:
        x = reverse_product(r, &reduction, &kept, d);
        break;
    default:
        x = reverse_extreme(r, &reduction, reverse_reshape(r, r->node.out[0], &kept), d);
    }
    reverse_give(r, 0, reverse_broadcast(r, x, &whole));
    return true;
}

/* Running sums */

static ValueId cumulate(Reverse *r, OpCode op, ValueId x, bool exclusive, bool reverse)
{
    Attr attr[3];
    attr[attr_index(op, STR("axis"))] = (Attr){.i = cumulation_of(r->graph, &r->node).dimension};
    attr[attr_index(op, STR("exclusive"))] = (Attr){.i = exclusive};
    attr[attr_index(op, STR("reverse"))] = (Attr){.i = reverse};
    return reverse_build(r, op, &x, 1, attr);
}

/* An element is a factor of all products from its own on.  Before the first 0 that is the sum of d times these, divided
 * by the element; at the first 0 that of the products with 1 in its place; behind it all products are 0. */
static ValueId reverse_products(Reverse *r, const Cumulation *c)
{
    ValueId x = r->node.in[0], d = r->down[0];
    DType dtype = value_type(r->graph, x)->dtype;
    ValueId zero = reverse_number(r, dtype, 0), one = reverse_number(r, dtype, 1);
    ValueId is_zero = reverse_build2(r, OP_EQ, x, zero);
    ValueId zeros = cumulate(r, OP_CUMSUM, reverse_convert(r, is_zero, x), false, c->reverse);
    ValueId before = reverse_build2(r, OP_EQ, zeros, zero);
    ValueId first = reverse_build2(r, OP_AND, is_zero, reverse_build2(r, OP_EQ, zeros, one));
    ValueId filled = cumulate(r, OP_CUMPROD, reverse_select(r, first, one, x), c->exclusive, c->reverse);
    ValueId others = cumulate(r, OP_CUMSUM, reverse_build2(r, OP_MUL, d, filled), c->exclusive, !c->reverse);
    ValueId all = reverse_build2(r, OP_MUL, d, r->node.out[0]);
    ValueId sum = cumulate(r, OP_CUMSUM, all, c->exclusive, !c->reverse);
    ValueId each = reverse_build2(r, OP_DIV, sum, reverse_select(r, is_zero, one, x));
    return reverse_select(r, before, each, reverse_select(r, first, others, zero));
}

/* Each element counts in all sums from its own on, or up to it. */
bool reverse_cumulate(Reverse *r)
{
    Cumulation c = cumulation_of(r->graph, &r->node);
    reverse_give(r, 0,
                 c.combine == WORD_MUL ? reverse_products(r, &c)
                                       : cumulate(r, OP_CUMSUM, r->down[0], c.exclusive, !c.reverse));
    return true;
}
