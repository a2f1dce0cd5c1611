/* Reverse mode of contractions, which are contractions: of the three tensors that a sum of products runs over, any two
 * give what reaches the third. */
#include "ops/contract.h"
#include "ops/families.h"
#include "ops/reverse.h"

/* Products of matrices */

static ValueId matmul(Reverse *r, ValueId x, ValueId y, bool transposed)
{
    Attr attr = {.i = transposed};
    return reverse_build(r, OP_MATMUL, (ValueId[]){x, y}, 2, &attr);
}

static ValueId transposed(Reverse *r, ValueId x)
{
    uint32_t rank = reverse_shape(r, x)->rank, axes[MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        axes[d] = d + 2 < rank ? d : 2 * rank - 3 - d;
    return reverse_transpose(r, x, axes);
}

/* All leading dimensions joined with the rows. */
static ValueId as_rows(Reverse *r, ValueId x)
{
    const Shape *from = reverse_shape(r, x);
    Shape shape = {2, {1, from->dim[from->rank - 1]}};
    for (uint32_t d = 0; d + 1 < from->rank; d++)
        shape.dim[0] *= from->dim[d];
    return reverse_reshape(r, x, &shape);
}

/* The gradient of a matrix operand with its leading dimensions, where `own` may repeat some. */
static void give_matrix(Reverse *r, uint32_t operand, ValueId gradient, const Shape *matrix)
{
    ValueId sum = reverse_sum_to(r, gradient, matrix);
    reverse_give(r, operand, reverse_reshape(r, sum, reverse_shape(r, r->node.in[operand])));
}

static void reverse_matmul(Reverse *r, const Product *p)
{
    Shape x_shape = *reverse_shape(r, r->node.in[0]), y_shape = *reverse_shape(r, r->node.in[1]);
    Shape d_shape = *reverse_shape(r, r->down[0]);
    if (!p->has_rows)
        x_shape = (Shape){2, {1, p->depth}};
    if (!p->has_columns)
        y_shape = (Shape){2, {p->depth, 1}};
    d_shape.rank = p->batch_rank;
    d_shape.dim[d_shape.rank++] = p->rows;
    d_shape.dim[d_shape.rank++] = p->columns;
    ValueId x = reverse_reshape(r, r->node.in[0], &x_shape), y = reverse_reshape(r, r->node.in[1], &y_shape);
    ValueId d = reverse_reshape(r, r->down[0], &d_shape);

    if (r->wanted[0])
        give_matrix(r, 0, matmul(r, d, y, !p->transposed), &x_shape);
    if (!r->wanted[1])
        return;
    if (y_shape.rank == 2) { /* one sum over all rows there are */
        x = as_rows(r, x);
        d = as_rows(r, d);
    }
    give_matrix(r, 1, p->transposed ? matmul(r, transposed(r, d), x, false) : matmul(r, transposed(r, x), d, false),
                &y_shape);
}

/* Convolutions: of an image, a weight and a result, two give the third. */

typedef struct Geometry {
    int64_t stride[MAX_RANK], pad[2 * MAX_RANK], dilation[MAX_RANK], image[MAX_RANK], taps[MAX_RANK], groups;
    uint32_t rank;
} Geometry;

static Geometry geometry_of(const Convolution *conv)
{
    Geometry g = {.groups = conv->groups, .rank = conv->window.rank};
    for (uint32_t d = 0; d < g.rank; d++) {
        const WindowDimension *w = &conv->window.dim[d];
        g.stride[d] = w->stride;
        g.pad[d] = w->before;
        g.pad[g.rank + d] = w->after;
        g.dilation[d] = w->dilation;
        g.image[d] = w->in;
        g.taps[d] = w->size;
    }
    return g;
}

/* `size` is that of the image or of the weight, where the op asks for it. */
static ValueId convolve(Reverse *r, ConvolutionKind kind, const Geometry *g, ValueId x, ValueId y)
{
    OpCode op = convolution_op(kind, g->rank);
    Attr attr[8];
    attr_defaults(op, attr);
    attr[attr_index(op, STR("stride"))] = (Attr){.i = g->rank, .ints = g->stride};
    attr[attr_index(op, STR("pad"))] = (Attr){.i = 2 * g->rank, .ints = g->pad};
    attr[attr_index(op, STR("dilation"))] = (Attr){.i = g->rank, .ints = g->dilation};
    attr[attr_index(op, STR("groups"))] = (Attr){.i = g->groups};
    if (kind != CONVOLVES_TO_RESULT)
        attr[attr_index(op, STR("size"))] =
            (Attr){.i = g->rank, .ints = kind == CONVOLVES_TO_IMAGE ? g->image : g->taps};
    return reverse_build(r, op, (ValueId[]){x, y}, 2, attr);
}

/* One number per channel: the sum over all else. */
static ValueId sum_of_channels(Reverse *r, ValueId d)
{
    bool over[MAX_RANK];
    for (uint32_t i = 0; i < reverse_shape(r, d)->rank; i++)
        over[i] = i != 1;
    return reverse_sum(r, d, over, false);
}

static void reverse_convolution(Reverse *r)
{
    Convolution conv = convolution_relating(r->graph, &r->node);
    Geometry g = geometry_of(&conv);
    ValueId x = r->node.in[0], y = r->node.in[1], d = r->down[0];
    bool first = r->wanted[0], second = r->wanted[1];
    switch (convolution_kind(&r->node)) {
    case CONVOLVES_TO_RESULT: /* image, weight */
        reverse_give(r, 0, first ? convolve(r, CONVOLVES_TO_IMAGE, &g, d, y) : NONE);
        reverse_give(r, 1, second ? convolve(r, CONVOLVES_TO_WEIGHT, &g, x, d) : NONE);
        break;
    case CONVOLVES_TO_IMAGE: /* result, weight */
        reverse_give(r, 0, first ? convolve(r, CONVOLVES_TO_RESULT, &g, d, y) : NONE);
        reverse_give(r, 1, second ? convolve(r, CONVOLVES_TO_WEIGHT, &g, d, x) : NONE);
        break;
    default: /* image, result */
        reverse_give(r, 0, first ? convolve(r, CONVOLVES_TO_IMAGE, &g, y, d) : NONE);
        reverse_give(r, 1, second ? convolve(r, CONVOLVES_TO_RESULT, &g, x, d) : NONE);
    }
    if (r->node.in_count > 2 && r->wanted[2])
        reverse_give(r, 2, sum_of_channels(r, d));
}

bool reverse_contract(Reverse *r)
{
    Product product;
    if (product_of(r->graph, &r->node, &product))
        reverse_matmul(r, &product);
    else
        reverse_convolution(r);
    return true;
}
