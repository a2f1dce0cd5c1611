/* Steps that put values together: concats, stacks and borders, of inputs, constants, views and results of kernels. */
#include "random_maker.h"

#include <string.h>

/* What x can be concatenated with. */
static ValueId partner(Maker *m, ValueId x, uint32_t axis)
{
    Shape shape = *value_shape(m->graph, x);
    switch (maker_draw(m, 8)) {
    case 0:
        return x;
    case 1:
        shape.dim[axis] = 1 + maker_draw(m, 3);
        return maker_is_main(m, x) ? maker_weights(m, &shape) : maker_constant(m, maker_type_of(m, x)->dtype, &shape);
    case 2:
    case 3:
        return maker_changed(m, x);
    default:
        return maker_pick_like(m, x, axis);
    }
}

static int64_t draw_axis(Maker *m, ValueId x)
{
    uint32_t rank = value_shape(m->graph, x)->rank;
    return rank == 4 && maker_chance(m, 50) ? 1 : maker_draw(m, rank);
}

/* Two to four different values, or one of them twice. */
ValueId step_concat(Maker *m)
{
    ValueId x = maker_pick(m), in[4] = {x};
    if (!value_shape(m->graph, x)->rank)
        return NONE;
    uint32_t count = 2 + maker_draw(m, 3), first = maker_draw(m, count);
    int64_t axis = draw_axis(m, x);
    for (uint32_t i = 1; i < count; i++)
        in[i] = partner(m, x, (uint32_t)axis);
    in[0] = in[first];
    in[first] = x;
    if (maker_chance(m, 40))
        m->part = in[maker_draw(m, count)];
    return maker_with_attr(m, OP_CONCAT, in, count, "axis", (Attr){.i = axis});
}

/* What a layer adds to the values so far. */
static ValueId grown(Maker *m, ValueId x, int64_t axis)
{
    Shape shape = *value_shape(m->graph, x);
    bool image = maker_is_main(m, x) && shape.rank == 4 && axis == 1 && shape.dim[1] <= 4 * maker_channels(m);
    if (image && maker_chance(m, 70)) {
        ValueId y = maker_conv_same(m, x);
        return maker_chance(m, 50) ? maker_unary(m, OP_RELU, y) : y;
    }
    if (maker_type_of(m, x)->dtype != DT_BOOL && shape.dim[axis] && maker_chance(m, 40))
        return maker_reduced(m, OP_REDUCE_MAX, x, axis);
    return partner(m, maker_chance(m, 50) ? maker_changed(m, x) : x, (uint32_t)axis);
}

/* h = concat(h, layer(h)), a few times over. */
ValueId step_dense(Maker *m)
{
    ValueId h = maker_pick(m);
    if (!value_shape(m->graph, h)->rank)
        return NONE;
    int64_t axis = draw_axis(m, h);
    h = maker_chance(m, 50) ? maker_changed(m, h) : h;
    for (uint32_t layer = 2 + maker_draw(m, 2); layer > 0; layer--) {
        ValueId more = grown(m, h, axis);
        bool swap = maker_chance(m, 20);
        ValueId in[] = {swap ? more : h, swap ? h : more};
        if (maker_chance(m, 20))
            m->part = more;
        if (shape_elements(value_shape(m->graph, h)) + shape_elements(value_shape(m->graph, more)) > RANDOM_LARGEST)
            return h;
        h = maker_with_attr(m, OP_CONCAT, in, 2, "axis", (Attr){.i = axis});
    }
    return h;
}

static ValueId with_new_axis(Maker *m, ValueId x, uint32_t at)
{
    Shape shape = *value_shape(m->graph, x);
    memmove(shape.dim + at + 1, shape.dim + at, (shape.rank++ - at) * sizeof *shape.dim);
    shape.dim[at] = 1;
    return maker_with_attr(m, OP_RESHAPE, &x, 1, "shape", maker_ints(shape.dim, shape.rank));
}

/* Values of one shape, or their transposes, along a new axis. */
ValueId step_stack(Maker *m)
{
    ValueId x = maker_pick(m), in[4];
    uint32_t rank = value_shape(m->graph, x)->rank, count = 2 + maker_draw(m, 3), at = maker_draw(m, rank + 1);
    int64_t axes[MAX_RANK];
    bool transposed = maker_chance(m, 40), by_concat = maker_chance(m, 50);
    if (rank > 5)
        return NONE;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t other = maker_draw(m, d + 1);
        axes[d] = axes[other];
        axes[other] = d;
    }
    for (uint32_t i = 0; i < count; i++) {
        ValueId y = i == 0 ? x : maker_chance(m, 50) ? maker_changed(m, x) : maker_pick_like(m, x, MAX_RANK);
        if (maker_chance(m, 20))
            m->part = y;
        if (transposed)
            y = maker_with_attr(m, OP_TRANSPOSE, &y, 1, "axes", maker_ints(axes, rank));
        in[i] = by_concat ? with_new_axis(m, y, at) : y;
    }
    return maker_with_attr(m, by_concat ? OP_CONCAT : OP_STACK, in, count, "axis", (Attr){.i = at});
}

static ValueId bordered(Maker *m, ValueId x)
{
    static const double number[] = {0, 1, -0.5, 3, -2};
    int64_t before[MAX_RANK], after[MAX_RANK];
    Attr attr[6];
    uint32_t rank = value_shape(m->graph, x)->rank;
    for (uint32_t d = 0; d < rank; d++) {
        before[d] = maker_chance(m, 50) ? maker_draw(m, 3) : 0;
        after[d] = maker_chance(m, 50) ? maker_draw(m, 3) : 0;
    }
    attr_defaults(OP_PAD, attr);
    attr[attr_index(OP_PAD, STR("before"))] = maker_ints(before, rank);
    attr[attr_index(OP_PAD, STR("after"))] = maker_ints(after, rank);
    attr[attr_index(OP_PAD, STR("value"))].f = number[maker_draw(m, maker_is_main(m, x) ? 5 : 2)];
    return maker_build(m, OP_PAD, &x, 1, attr);
}

/* A border around what a kernel has made, and the kernel that reads it. */
ValueId step_border(Maker *m)
{
    static ValueId (*const reader[])(Maker *) = {step_unary, step_binary, step_reduce,    step_rows,
                                                 step_conv,  step_matmul, step_wide_pool, step_concat};
    ValueId x = maker_pick(m);
    if (maker_type_of(m, x)->dtype == DT_BOOL)
        return NONE;
    x = maker_changed(m, x);
    if (maker_chance(m, 30))
        m->part = x;
    ValueId y = bordered(m, x);
    if (maker_chance(m, 30) || shape_elements(value_shape(m->graph, y)) > RANDOM_LARGEST)
        return y;
    m->next = y;
    ValueId made = reader[maker_draw(m, sizeof reader / sizeof *reader)](m);
    m->next = NONE;
    return made == NONE ? y : made;
}
