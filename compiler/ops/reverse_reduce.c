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

/* Running sums and products */

typedef struct Run { /* along a dimension */
    uint32_t dimension;
    bool exclusive, reverse;
} Run;

static ValueId cumulate(Reverse *r, OpCode op, ValueId x, Run run)
{
    Attr attr[3];
    attr[attr_index(op, STR("axis"))] = (Attr){.i = run.dimension};
    attr[attr_index(op, STR("exclusive"))] = (Attr){.i = run.exclusive};
    attr[attr_index(op, STR("reverse"))] = (Attr){.i = run.reverse};
    return reverse_build(r, op, &x, 1, attr);
}

/* The product along a dimension, which is kept. */
static ValueId product(Reverse *r, ValueId x, uint32_t dimension)
{
    int64_t axes[] = {dimension};
    Attr attr[2];
    attr[attr_index(OP_REDUCE_PROD, STR("axes"))] = (Attr){.i = 1, .ints = axes};
    attr[attr_index(OP_REDUCE_PROD, STR("keep"))] = (Attr){.i = true};
    return reverse_build(r, OP_REDUCE_PROD, &x, 1, attr);
}

/* Of each element of a product all others': those before it times those behind it.  Nothing is divided, so that zeros
 * are no case of their own, in derivatives of it neither.  One dimension after the other, the last one first. */
static ValueId reverse_product(Reverse *r, const Reduction *reduction, ValueId d)
{
    ValueId x[MAX_RANK + 1] = {r->node.in[0]};
    uint32_t rank = reverse_shape(r, x[0])->rank, count = 0, over[MAX_RANK];
    for (uint32_t axis = 0; axis < rank; axis++)
        if (reduction->reduced[axis] && reverse_shape(r, x[0])->dim[axis] != 1)
            over[count++] = axis;
    for (uint32_t i = 0; i + 1 < count; i++)
        x[i + 1] = product(r, x[i], over[i]);
    for (uint32_t i = count; i-- > 0;) {
        ValueId before = cumulate(r, OP_CUMPROD, x[i], (Run){over[i], true, false});
        ValueId behind = cumulate(r, OP_CUMPROD, x[i], (Run){over[i], true, true});
        d = reverse_build2(r, OP_MUL, d, reverse_build2(r, OP_MUL, before, behind));
    }
    return d;
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
        x = reverse_product(r, &reduction, d);
        break;
    default:
        x = reverse_extreme(r, &reduction, reverse_reshape(r, r->node.out[0], &kept), d);
    }
    reverse_give(r, 0, reverse_broadcast(r, x, &whole));
    return true;
}

/* What is `by` positions further on in the run, zeros behind the last. */
static ValueId further(Reverse *r, ValueId x, Run run, int64_t by)
{
    return reverse_further(r, x, run.dimension, run.reverse ? -by : by);
}

/* An element x_i is a factor of all products from its own on: of the gradients d_j of these it takes
 * d_i + x_(i+1) * (d_(i+1) + x_(i+2) * ...), times the product of what comes before it.  The sum is a recurrence,
 * solved by doubling (Hillis and Steele 1986): after each step it has twice the terms.  Nothing is divided, so that
 * zeros are no case of their own. */
static ValueId reverse_products(Reverse *r, Run run)
{
    ValueId x = r->node.in[0], d = r->down[0];
    int64_t count = reverse_shape(r, x)->dim[run.dimension];
    if (count == 0)
        return d;
    ValueId factor = further(r, x, run, 1), sum = run.exclusive ? further(r, d, run, 1) : d;
    for (int64_t terms = 1; terms < count; terms *= 2) {
        sum = reverse_build2(r, OP_ADD, sum, reverse_build2(r, OP_MUL, factor, further(r, sum, run, terms)));
        if (2 * terms < count)
            factor = reverse_build2(r, OP_MUL, factor, further(r, factor, run, terms));
    }
    ValueId before = cumulate(r, OP_CUMPROD, x, (Run){run.dimension, true, run.reverse});
    return reverse_build2(r, OP_MUL, before, sum);
}

/* Each element counts in all sums from its own on, or up to it. */
bool reverse_cumulate(Reverse *r)
{
    Cumulation c = cumulation_of(r->graph, &r->node);
    Run run = {(uint32_t)c.dimension, c.exclusive, c.reverse}, back = {run.dimension, c.exclusive, !c.reverse};
    reverse_give(r, 0, c.combine == WORD_MUL ? reverse_products(r, run) : cumulate(r, OP_CUMSUM, r->down[0], back));
    return true;
}
