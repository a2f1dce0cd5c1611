/* Steps of contractions and pooling. */
#include "random_maker.h"

/* A few operations with constants, as batch normalisation is made of: the shapes fit, but not always the channels. */
ValueId maker_affine_chain(Maker *m, ValueId x)
{
    static const OpCode op[] = {OP_ADD, OP_MUL, OP_SUB, OP_DIV};
    for (uint32_t length = maker_draw(m, 4); length > 0; length--) {
        Shape shape = *value_shape(m->graph, x), small = maker_smaller_shape(m, &shape);
        if (shape.rank < 4 && maker_chance(m, 60))
            small = shape_of(shape.rank > 0, shape.dim + shape.rank - (shape.rank > 0));
        ValueId term =
            maker_chance(m, 70) ? maker_weights(m, &small) : maker_neutral(m, m->options->dtype, &(Shape){0});
        OpCode chosen = op[maker_draw(m, 4)];
        bool left = maker_chance(m, 70);
        if (chosen == OP_DIV) {
            left = true;
            term = maker_unary(m, OP_SIGMOID, term);
        }
        x = op_build2(m->graph, chosen, left ? x : term, left ? term : x, (Place){0});
    }
    return x;
}

/* What stands before a contraction: often a scale, a border or a view of one. */
static ValueId prepared(Maker *m, ValueId x)
{
    Shape shape = *value_shape(m->graph, x), small = maker_smaller_shape(m, &shape);
    bool image = shape.rank == 4;
    switch (maker_draw(m, 8)) {
    case 0:
        return op_build2(m->graph, OP_DIV, x, graph_add_scalar(m->graph, m->options->dtype, 255), (Place){0});
    case 1:
        return op_build2(m->graph, OP_MUL, maker_weights(m, &small), x, (Place){0});
    case 2:
        x = op_build2(m->graph, OP_MUL, x, graph_add_scalar(m->graph, m->options->dtype, 3), (Place){0});
        return image ? x : maker_transpose(m, x);
    case 3:
        return image ? maker_pad(m, x) : x;
    default:
        return x;
    }
}

ValueId maker_conv_same(Maker *m, ValueId x)
{
    int64_t side = maker_chance(m, 50) ? 3 : 1, inputs = value_shape(m->graph, x)->dim[1];
    int64_t dim[] = {maker_channels(m) / 2 * (1 + maker_draw(m, 2)), inputs, side, side}, pad = side / 2;
    Shape shape = shape_of(4, dim);
    ValueId in[] = {x, maker_weights(m, &shape)};
    m->result_rough = true;
    return maker_with_attr(m, OP_CONV2D, in, 2, "pad", maker_ints(&pad, 1));
}

ValueId step_conv(Maker *m)
{
    ValueId x = maker_pick(m);
    if (maker_is_main(m, x) && value_shape(m->graph, x)->rank == 4 &&
        value_shape(m->graph, x)->dim[1] <= 3 * maker_channels(m))
        x = prepared(m, x);
    Shape shape = *value_shape(m->graph, x);
    if (!maker_is_main(m, x) || shape.rank != 4 || shape.dim[1] > 4 * maker_channels(m) || shape.dim[2] < 2 ||
        shape.dim[3] < 2)
        return NONE;
    int64_t groups = shape.dim[1] % 2 == 0 && maker_chance(m, 30) ? 2 : 1,
            outputs = maker_channels(m) / 2 * (1 + maker_draw(m, 3));
    int64_t dim[] = {outputs, shape.dim[1] / groups, 1 + maker_draw(m, 2), 1 + maker_draw(m, 2)},
            pad[] = {maker_draw(m, 2), maker_draw(m, 2)};
    Shape weight = shape_of(4, dim), bias = shape_of(1, &outputs);
    Attr attr[6];
    attr_defaults(OP_CONV2D, attr);
    attr[attr_index(OP_CONV2D, STR("groups"))].i = groups;
    attr[attr_index(OP_CONV2D, STR("pad"))] = maker_ints(pad, 2);
    ValueId in[3] = {x, maker_weights(m, &weight)};
    uint32_t count = 2;
    if (maker_chance(m, 50))
        in[count++] = maker_weights(m, &bias);
    m->result_rough = true;
    return maker_affine_chain(m, maker_build(m, OP_CONV2D, in, count, attr));
}

ValueId step_matmul(Maker *m)
{
    ValueId x = maker_pick(m);
    if (maker_is_main(m, x))
        x = prepared(m, x);
    const Shape *shape = value_shape(m->graph, x);
    if (!maker_is_main(m, x) || shape->rank < 1 || shape->dim[shape->rank - 1] > 64)
        return NONE;
    bool transposed = maker_chance(m, 40);
    int64_t k = shape->dim[shape->rank - 1], n = 1 + maker_draw(m, 5),
            dim[2] = {transposed ? n : k, transposed ? k : n};
    Shape weight = shape_of(2, dim);
    ValueId in[] = {x, maker_weights(m, &weight)};
    m->result_rough = true;
    if (transposed && maker_chance(m, 50)) {
        in[1] = maker_with_attr(m, OP_TRANSPOSE, &in[1], 1, "axes", (Attr){0});
        transposed = false;
    }
    return maker_affine_chain(m, maker_with_attr(m, OP_MATMUL, in, 2, "transpose_y", (Attr){.i = transposed}));
}

ValueId step_pool(Maker *m)
{
    ValueId x = maker_pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!maker_is_main(m, x) || shape.rank != 4 || shape.dim[2] < 2 || shape.dim[3] < 2)
        return NONE;
    int64_t window[] = {1 + maker_draw(m, 2), 1 + maker_draw(m, 2)};
    return maker_with_attr(m, maker_chance(m, 50) ? OP_MAX_POOL : OP_AVG_POOL, &x, 1, "window", maker_ints(window, 2));
}

/* Groups of channels that divide them, often of one. */
static int64_t drawn_groups(Maker *m, int64_t channels)
{
    int64_t groups = maker_chance(m, 70) ? channels : 1 + maker_draw(m, (uint32_t)channels);
    while (channels % groups)
        groups--;
    return groups;
}

/* Convolutions with strides and holes, also of groups, some of them one channel, with one filter or several. */
ValueId step_wide_conv(Maker *m)
{
    ValueId x = maker_pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!maker_is_main(m, x) || shape.rank != 4 || shape.dim[1] > 4 * maker_channels(m) || shape.dim[2] < 3 ||
        shape.dim[3] < 3)
        return NONE;
    bool grouped = maker_chance(m, 50);
    int64_t groups = grouped ? drawn_groups(m, shape.dim[1]) : 1;
    int64_t outputs = !grouped              ? maker_channels(m) * (1 + maker_draw(m, 2))
                      : maker_chance(m, 60) ? shape.dim[1]
                                            : groups * (1 + maker_draw(m, 3));
    int64_t most = grouped && maker_chance(m, 30) ? 9 : 3;
    int64_t dim[] = {outputs, shape.dim[1] / groups, 1 + maker_draw(m, 3), 1 + maker_draw(m, (uint32_t)most)};
    int64_t pad[] = {maker_draw(m, 3), maker_draw(m, 3), maker_draw(m, 2), maker_draw(m, 2)},
            stride[] = {1 + maker_draw(m, 2), 1 + maker_draw(m, 2)}, dilation = 1 + maker_draw(m, 2);
    if (shape.dim[2] + pad[0] + pad[2] <= (dim[2] - 1) * dilation ||
        shape.dim[3] + pad[1] + pad[3] <= (dim[3] - 1) * dilation)
        return NONE;
    Shape weight = shape_of(4, dim), bias = shape_of(1, &outputs);
    Attr attr[6];
    attr_defaults(OP_CONV2D, attr);
    attr[attr_index(OP_CONV2D, STR("groups"))].i = groups;
    attr[attr_index(OP_CONV2D, STR("pad"))] = maker_ints(pad, 4);
    attr[attr_index(OP_CONV2D, STR("stride"))] = maker_ints(stride, 2);
    attr[attr_index(OP_CONV2D, STR("dilation"))] = maker_ints(&dilation, 1);
    ValueId in[] = {x, maker_weights(m, &weight), maker_weights(m, &bias)};
    m->result_rough = true;
    ValueId y = maker_build(m, OP_CONV2D, in, 2 + maker_draw(m, 2), attr);
    return maker_chance(m, 50) ? maker_affine_chain(m, y) : maker_chance(m, 50) ? maker_unary(m, OP_RELU, y) : y;
}

ValueId step_wide_pool(Maker *m)
{
    ValueId x = maker_pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!maker_is_main(m, x) || shape.rank != 4 || shape.dim[2] < 3 || shape.dim[3] < 3)
        return NONE;
    int64_t window[] = {1 + maker_draw(m, 3), 1 + maker_draw(m, 3)},
            stride[] = {1 + maker_draw(m, 3), 1 + maker_draw(m, 3)};
    int64_t pad[] = {maker_draw(m, 2), maker_draw(m, 2), maker_draw(m, 2), maker_draw(m, 2)};
    for (int i = 0; i < 4; i++)
        pad[i] = pad[i] < window[i % 2] ? pad[i] : 0;
    OpCode op = maker_chance(m, 50) ? OP_MAX_POOL : OP_AVG_POOL;
    int64_t dilation = window[0] < 3 && window[1] < 3 ? 1 + maker_draw(m, 2) : 1; /* spans 3 at most, and it fits */
    Attr attr[6];
    attr_defaults(op, attr);
    attr[attr_index(op, STR("dilation"))] = maker_ints(&dilation, 1);
    attr[attr_index(op, STR("ceil"))].i = maker_chance(m, 50);
    attr[attr_index(op, STR("window"))] = maker_ints(window, 2);
    attr[attr_index(op, STR("stride"))] = maker_ints(stride, 2);
    attr[attr_index(op, STR("pad"))] = maker_ints(pad, 4);
    if (op == OP_AVG_POOL)
        attr[attr_index(op, STR("count_pad"))].i = maker_chance(m, 50);
    m->result_rough |= op == OP_AVG_POOL;
    return maker_build(m, op, &x, 1, attr);
}

/* x @ x transposed: neither operand is known before the run. */
ValueId step_product(Maker *m)
{
    ValueId x = maker_pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!maker_is_main(m, x) || shape.rank < 2 || shape.dim[shape.rank - 2] > 40)
        return NONE;
    ValueId in[] = {x, x};
    m->result_rough = true;
    return maker_unary(m, OP_TANH, maker_with_attr(m, OP_MATMUL, in, 2, "transpose_y", (Attr){.i = true}));
}
