/* Steps of views, and of a pad and a concat of one value. */
#include "random_maker.h"

#include <string.h>

ValueId maker_transpose(Maker *m, ValueId x)
{
    uint32_t rank = value_shape(m->graph, x)->rank;
    int64_t axes[MAX_RANK];
    for (int times = maker_chance(m, 50) ? 1 : 2; times > 0; times--) {
        for (uint32_t i = 0; i < rank; i++) {
            uint32_t at = maker_draw(m, i + 1);
            axes[i] = axes[at];
            axes[at] = i;
        }
        x = maker_with_attr(m, OP_TRANSPOSE, &x, 1, "axes", maker_ints(axes, rank));
    }
    return x;
}

ValueId maker_reshape(Maker *m, ValueId x)
{
    const Shape *shape = value_shape(m->graph, x);
    int64_t dim[MAX_RANK] = {1, 1, 1, 1}, elements = shape_elements(shape);
    switch (maker_draw(m, 3)) {
    case 0:
        dim[0] = elements;
        return maker_with_attr(m, OP_RESHAPE, &x, 1, "shape", maker_ints(dim, 1));
    case 1:
        dim[1] = elements % 4 == 0 ? 4 : 1;
        dim[2] = elements / dim[1];
        return maker_with_attr(m, OP_RESHAPE, &x, 1, "shape", maker_ints(dim, 4));
    default:
        dim[0] = elements % 6 == 0 ? 6 : 1;
        dim[1] = elements / dim[0];
        return maker_with_attr(m, OP_RESHAPE, &x, 1, "shape", maker_ints(dim, 2));
    }
}

static ValueId sliced(Maker *m, ValueId x)
{
    static const int64_t zero[MAX_RANK];
    const Shape *shape = value_shape(m->graph, x);
    Attr attr[6];
    int64_t axis = shape->rank ? maker_draw(m, shape->rank) : 0, end = shape->rank ? shape->dim[axis] : 0, begin = 0,
            step = 1;
    if (!shape->rank)
        return NONE;
    if (maker_chance(m, 60) && end > 1)
        begin = 1;
    if (maker_chance(m, 25)) {
        step = -1;
        begin = end - 1;
        end = -shape->dim[axis] - 1;
    }
    attr_defaults(OP_SLICE, attr);
    attr[attr_index(OP_SLICE, STR("axes"))] = maker_ints(&axis, 1);
    attr[attr_index(OP_SLICE, STR("begin"))] = maker_ints(begin ? &begin : zero, 1);
    attr[attr_index(OP_SLICE, STR("end"))] = maker_ints(&end, 1);
    attr[attr_index(OP_SLICE, STR("step"))] = maker_ints(&step, 1);
    return maker_build(m, OP_SLICE, &x, 1, attr);
}

static ValueId broadcasted(Maker *m, ValueId x)
{
    Shape shape = *value_shape(m->graph, x);
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = shape.dim[i] == 1 && maker_chance(m, 60) ? 2 + maker_draw(m, 3) : shape.dim[i];
    if (shape.rank < 5 && maker_chance(m, 30)) {
        memmove(shape.dim + 1, shape.dim, shape.rank++ * sizeof shape.dim[0]);
        shape.dim[0] = 1 + (int64_t)maker_draw(m, 3);
    }
    return maker_with_attr(m, OP_BROADCAST, &x, 1, "shape", maker_ints(shape.dim, shape.rank));
}

ValueId maker_pad(Maker *m, ValueId x)
{
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    uint32_t rank = value_shape(m->graph, x)->rank;
    Attr attr[6];
    for (uint32_t i = rank > 2 ? rank - 2 : 0; i < rank; i++) {
        before[i] = maker_draw(m, 3);
        after[i] = maker_draw(m, 2);
    }
    if (maker_chance(m, 20))
        memset(before, 0, sizeof before), memset(after, 0, sizeof after);
    attr_defaults(OP_PAD, attr);
    attr[attr_index(OP_PAD, STR("before"))] = maker_ints(before, rank);
    attr[attr_index(OP_PAD, STR("after"))] = maker_ints(after, rank);
    attr[attr_index(OP_PAD, STR("value"))].f = maker_chance(m, 60) ? 0 : 1;
    return maker_build(m, OP_PAD, &x, 1, attr);
}

static ValueId doubled(Maker *m, ValueId x)
{
    ValueId in[] = {x, x};
    uint32_t rank = value_shape(m->graph, x)->rank;
    if (!rank)
        return NONE;
    return maker_with_attr(m, OP_CONCAT, in, 1 + maker_draw(m, 2), "axis", (Attr){.i = maker_draw(m, rank)});
}

static ValueId split_part(Maker *m, ValueId x)
{
    const Shape *shape = value_shape(m->graph, x);
    if (!shape->rank || shape->dim[shape->rank - 1] < 2)
        return NONE;
    int64_t sizes[] = {1, shape->dim[shape->rank - 1] - 1};
    Attr attr[6];
    attr_defaults(OP_SPLIT, attr);
    attr[attr_index(OP_SPLIT, STR("axis"))].i = -1;
    attr[attr_index(OP_SPLIT, STR("sizes"))] = maker_ints(sizes, 2);
    ValueId first = maker_build(m, OP_SPLIT, &x, 1, attr);
    ValueId second = m->graph->node[m->graph->value[first].node].out[1];
    bool swap = maker_chance(m, 50);
    if (maker_chance(m, 30))
        m->part = swap ? first : second;
    return swap ? second : first;
}

static ValueId windowed(Maker *m, ValueId x)
{
    const Shape *shape = value_shape(m->graph, x);
    Attr attr[4];
    if (!shape->rank || shape->rank > 4)
        return NONE;
    int64_t axis = maker_draw(m, shape->rank), extent = shape->dim[axis];
    if (extent < 1 || shape_elements(shape) > 2000)
        return NONE;
    int64_t size = 1 + maker_draw(m, extent < 5 ? (uint32_t)extent : 5);
    int64_t most = size > 1 ? (extent - 1) / (size - 1) : 1;
    attr_defaults(OP_WINDOWS, attr);
    attr[attr_index(OP_WINDOWS, STR("axis"))].i = axis;
    attr[attr_index(OP_WINDOWS, STR("size"))].i = size;
    attr[attr_index(OP_WINDOWS, STR("step"))].i = maker_chance(m, 30) ? -1 : 1 + (int64_t)maker_draw(m, 3);
    attr[attr_index(OP_WINDOWS, STR("dilation"))].i = 1 + maker_draw(m, most < 3 ? (uint32_t)most : 3);
    return maker_build(m, OP_WINDOWS, &x, 1, attr);
}

static ValueId late(Maker *m, ValueId x)
{
    ValueId in[] = {x, maker_pick(m), maker_pick(m)};
    return maker_build(m, OP_AFTER, in, 2 + maker_draw(m, 2), NULL);
}

ValueId step_view(Maker *m)
{
    ValueId x = maker_pick(m);
    switch (maker_draw(m, 10)) {
    case 0:
    case 1:
        return maker_transpose(m, x);
    case 2:
    case 3:
        return maker_reshape(m, x);
    case 4:
        return sliced(m, x);
    case 5:
        return broadcasted(m, x);
    case 6:
        return maker_type_of(m, x)->dtype == DT_BOOL ? NONE : maker_pad(m, x);
    case 7:
        return late(m, x);
    case 8:
        return windowed(m, x);
    default:
        return maker_chance(m, 50) ? split_part(m, x) : doubled(m, x);
    }
}

ValueId step_relayout(Maker *m)
{
    static const int64_t block[] = {4, 8, 16};
    ValueId x = maker_pick(m);
    if (value_shape(m->graph, x)->rank != 4)
        return NONE;
    ValueId y = maker_with_attr(m, OP_RELAYOUT, &x, 1, "block", (Attr){.i = block[maker_draw(m, 3)]});
    if (maker_chance(m, 50) && maker_type_of(m, y)->dtype != DT_BOOL)
        y = maker_unary(m, OP_NEG, y);
    return maker_with_attr(m, OP_RELAYOUT, &y, 1, "block", (Attr){.i = 0});
}
