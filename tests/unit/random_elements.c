/* Steps of elementwise ops, reductions, gathers, scatters, draws and calls. */
#include "random_maker.h"

ValueId step_unary(Maker *m)
{
    static const OpCode smooth[] = {OP_NEG, OP_ABS, OP_RELU, OP_TANH, OP_SIGMOID, OP_SIN, OP_SQUARE, OP_NEG, OP_RELU};
    static const OpCode jumpy[] = {OP_FLOOR, OP_ROUND, OP_TRUNC, OP_SIGN, OP_CEIL};
    ValueId x = maker_pick(m);
    if (maker_type_of(m, x)->dtype == DT_BOOL)
        return maker_unary(m, OP_NOT, x);
    if (!maker_is_main(m, x))
        return maker_unary(m, maker_chance(m, 50) ? OP_NEG : OP_ABS, x);
    if (!m->result_rough && maker_chance(m, 25))
        return maker_unary(m, jumpy[maker_draw(m, 5)], x);
    OpCode op = smooth[maker_draw(m, 9)];
    x = op == OP_SQUARE && maker_chance(m, 70) ? maker_unary(m, OP_TANH, x) : x; /* lest numbers grow without bound */
    return maker_unary(m, op, x);
}

ValueId step_binary(Maker *m)
{
    static const OpCode op[] = {OP_ADD, OP_MUL, OP_SUB, OP_MAXIMUM, OP_MINIMUM, OP_ADD, OP_MUL};
    ValueId x = maker_pick(m), y = maker_other_operand(m, x);
    if (maker_type_of(m, x)->dtype == DT_BOOL)
        return op_build2(m->graph, maker_chance(m, 50) ? OP_AND : OP_XOR, x, y, (Place){0});
    if (maker_is_main(m, x) && maker_chance(m, 15)) { /* by something that is not near zero */
        y = maker_unary(m, OP_SIGMOID, maker_unary(m, OP_TANH, y));
        return op_build2(m->graph, OP_DIV, x, y, (Place){0});
    }
    if (maker_is_main(m, x) && maker_chance(m, 10)) {
        static const double divisor[] = {1, 2, 4, 255, -1, -8};
        return op_build2(m->graph, OP_DIV, x, graph_add_scalar(m->graph, m->options->dtype, divisor[maker_draw(m, 6)]),
                         (Place){0});
    }
    if (maker_is_main(m, x) && maker_chance(m, 5))
        return op_build2(m->graph, OP_POW, x, graph_add_scalar(m->graph, m->options->dtype, 1 + maker_draw(m, 2)),
                         (Place){0});
    bool swap = maker_chance(m, 40);
    return op_build2(m->graph, op[maker_draw(m, 7)], swap ? y : x, swap ? x : y, (Place){0});
}

ValueId step_select(Maker *m)
{
    ValueId x = maker_pick(m), y = maker_other_operand(m, x);
    if (m->result_rough)
        return NONE;
    ValueId mask = op_build2(m->graph, maker_chance(m, 50) ? OP_EQ : OP_NE, x, y, (Place){0});
    if (maker_chance(m, 30))
        return mask;
    ValueId in[] = {mask, x, y};
    return maker_build(m, OP_SELECT, in, 3, NULL);
}

ValueId step_cast(Maker *m)
{
    static const DType to[] = {DT_F64, DT_F32, DT_I32, DT_I64, DT_BOOL};
    ValueId x = maker_pick(m);
    Attr attr = {.i = maker_is_main(m, x) ? to[maker_draw(m, m->result_rough ? 2 : 5)] : m->options->dtype};
    ValueId y = maker_build(m, OP_CAST, &x, 1, &attr);
    attr.i = m->options->dtype;
    return maker_chance(m, 60) ? maker_build(m, OP_CAST, &y, 1, &attr) : y;
}

/* The same op twice, on operands in either order: one value or two? */
ValueId step_twins(Maker *m)
{
    static const OpCode op[] = {OP_ADD, OP_SUB, OP_MUL, OP_SUB};
    ValueId x = maker_pick(m), y = maker_other_operand(m, x);
    if (maker_type_of(m, x)->dtype == DT_BOOL)
        return NONE;
    OpCode chosen = op[maker_draw(m, 4)];
    ValueId a = op_build2(m->graph, chosen, x, y, (Place){0});
    ValueId b = maker_chance(m, 50) ? op_build2(m->graph, chosen, x, y, (Place){0})
                                    : op_build2(m->graph, chosen, y, x, (Place){0});
    ValueId in[] = {a, b};
    return value_shape(m->graph, a)->rank ? maker_with_attr(m, OP_CONCAT, in, 2, "axis", (Attr){0}) : b;
}

/* A param of more than a few KB that is read, folded, once or twice. */
ValueId step_weights(Maker *m)
{
    static const int64_t dim[] = {40, 16};
    Shape shape = shape_of(2, dim);
    ValueId w = maker_param(m, &shape), x = m->slot[RANDOM_INPUTS - 1]; /* [40, 16] */
    ValueId a = maker_unary(m, OP_NEG, w);
    ValueId b = maker_chance(m, 50) ? maker_unary(m, OP_TANH, w) : w;
    ValueId sum = op_build2(m->graph, OP_ADD, x, a, (Place){0});
    return op_build2(m->graph, OP_MUL, sum, b, (Place){0});
}

/* y = relu(x * w - z), with a param of its own, kept as a call. */
ValueId step_call(Maker *m)
{
    Module *module = m->graph->module;
    Graph *outer = m->graph;
    ValueId x = maker_pick(m);
    if (!m->options->calls || !maker_is_main(m, x))
        return NONE;
    Shape shape = maker_smaller_shape(m, value_shape(outer, x));
    ValueId z = maker_other_operand(m, x), in[] = {x, z};
    Shape joint;
    if (!shape_broadcast(value_shape(outer, x), value_shape(outer, z), &joint))
        return NONE;

    Graph *body = m->graph = graph_new(module, STR("body"));
    ValueId inner = graph_add_input(body, value_type(outer, x), STR("x"), (Place){0});
    ValueId second = graph_add_input(body, value_type(outer, z), STR("z"), (Place){0});
    ValueId product = op_build2(body, OP_MUL, inner, maker_param(m, &shape), (Place){0});
    ValueId sum = op_build2(body, OP_SUB, product, second, (Place){0});
    graph_add_output(body, op_build1(body, OP_RELU, sum, (Place){0}), STR("y"));
    m->graph = outer;

    NodeId n = graph_add_node(outer, OP_CALL, in, 2, NULL, 1, (Place){0});
    Node *call = &outer->node[n];
    Call *said = ARENA_NEW(module->arena, Call);
    said->name = STR("body");
    said->label = str_format(module->arena, "call%u", m->step);
    call->call = said;
    call->sub_count = 1;
    call->sub = ARENA_NEW(module->arena, Graph *);
    call->sub[0] = body;
    outer->value[call->out[0]].type = value_type(body, body->output[0].value);
    return call->out[0];
}

ValueId step_gather(Maker *m)
{
    Shape table, index = {0};
    ValueId x = maker_pick(m), in[2] = {x};
    table = *value_shape(m->graph, x);
    if (!table.rank)
        return NONE;
    int64_t axis = maker_draw(m, table.rank);
    if (!table.dim[axis])
        return NONE;
    index.rank = maker_draw(m, 3);
    for (uint32_t i = 0; i < index.rank; i++)
        index.dim[i] = 1 + maker_draw(m, 3);
    if (table.rank + index.rank > MAX_RANK + 1)
        return NONE;
    in[1] = maker_constant(m, maker_chance(m, 50) ? DT_I64 : DT_I32, &index);
    return maker_with_attr(m, OP_GATHER, in, 2, "axis", (Attr){.i = axis});
}

/* One slice or several, some at the same place, onto a value that may die here. */
ValueId step_scatter(Maker *m)
{
    ValueId x = maker_pick(m), in[3] = {x};
    const Shape shape = *value_shape(m->graph, x);
    Shape index = {.rank = 1};
    if (!shape.rank || maker_type_of(m, x)->dtype == DT_BOOL || maker_type_of(m, x)->layout.block)
        return NONE;
    int64_t axis = maker_draw(m, shape.rank);
    if (!shape.dim[axis])
        return NONE;
    index.dim[0] = maker_draw(m, 4);
    in[1] = maker_constant(m, maker_chance(m, 50) ? DT_I64 : DT_I32, &index);
    in[2] = maker_with_attr(m, OP_GATHER, (ValueId[]){maker_chance(m, 50) ? x : maker_pick_like(m, x, MAX_RANK), in[1]},
                            2, "axis", (Attr){.i = axis});
    in[0] = maker_chance(m, 60) ? maker_changed(m, x) : x;
    return maker_with_attr(m, OP_SCATTER_ADD, in, 3, "axis", (Attr){.i = axis});
}

ValueId step_iota(Maker *m)
{
    ValueId x = maker_pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!maker_is_main(m, x) || !shape.rank)
        return NONE;
    Attr attr[6];
    attr_defaults(OP_IOTA, attr);
    attr[attr_index(OP_IOTA, STR("axis"))].i = maker_draw(m, shape.rank);
    attr[attr_index(OP_IOTA, STR("shape"))] = maker_ints(shape.dim, shape.rank);
    attr[attr_index(OP_IOTA, STR("dtype"))].i = m->options->dtype;
    m->result_rough = true;
    return op_build2(m->graph, OP_MUL, x, maker_build(m, OP_IOTA, NULL, 0, attr), (Place){0});
}

/* Noise, a mask, or a choice among integers, from a key that is known when running.  The bits are equal everywhere, so
 * what is compared may be floored. */
ValueId step_random(Maker *m)
{
    ValueId x = maker_pick(m), key = maker_with_attr(m, OP_ARGMAX, &m->slot[2], 1, "axis", (Attr){.i = -1});
    Shape shape = *value_shape(m->graph, x);
    if (!maker_is_main(m, x) || maker_type_of(m, x)->layout.block)
        return NONE;
    key = maker_build(m, OP_REDUCE_MAX, &key, 1, NULL);
    if (maker_chance(m, 50))
        key = op_build2(m->graph, OP_FOLD_IN, key, graph_add_scalar(m->graph, DT_I64, maker_draw(m, 3)), (Place){0});
    bool normal = maker_chance(m, 40);
    OpCode op = normal ? OP_RANDOM_NORMAL : OP_RANDOM_UNIFORM;
    Attr attr[6];
    attr_defaults(op, attr);
    attr[attr_index(op, STR("shape"))] = maker_ints(shape.dim, shape.rank);
    attr[attr_index(op, STR("dtype"))].i = m->options->dtype;
    if (maker_chance(m, 30))
        attr[attr_index(op, normal ? STR("mean") : STR("low"))].f = maker_chance(m, 50) ? -1 : 0.3;
    ValueId numbers = maker_build(m, op, &key, 1, attr);
    if (normal || maker_chance(m, 30))
        return op_build2(m->graph, maker_chance(m, 50) ? OP_ADD : OP_MUL, x, numbers, (Place){0});
    ValueId half = graph_add_scalar(m->graph, m->options->dtype, 0.5);
    ValueId in[] = {op_build2(m->graph, OP_LT, numbers, half, (Place){0}), x, maker_chance(m, 50) ? half : x};
    in[2] = in[2] == x ? maker_unary(m, OP_NEG, x) : in[2];
    return maker_build(m, OP_SELECT, in, 3, NULL);
}

ValueId step_reduce(Maker *m)
{
    static const OpCode op[] = {OP_REDUCE_MAX, OP_REDUCE_MIN, OP_REDUCE_SUM};
    ValueId x = maker_pick(m);
    uint32_t rank = value_shape(m->graph, x)->rank;
    int64_t axis = rank ? maker_draw(m, rank) : 0;
    if (maker_type_of(m, x)->dtype == DT_BOOL || !rank || !value_shape(m->graph, x)->dim[axis])
        return NONE;
    Attr attr[6];
    attr_defaults(OP_REDUCE_SUM, attr);
    attr[attr_index(OP_REDUCE_SUM, STR("axes"))] = maker_ints(&axis, maker_chance(m, 80));
    attr[attr_index(OP_REDUCE_SUM, STR("keep"))].i = maker_chance(m, 50);
    m->result_rough |= m->options->emitted;
    ValueId sum = maker_build(m, op[maker_draw(m, 3)], &x, 1, attr);
    return maker_is_main(m, x) ? maker_unary(m, OP_TANH, sum) : sum;
}

/* Small, lest sums of sums grow. */
ValueId step_cumsum(Maker *m)
{
    ValueId x = maker_pick(m);
    uint32_t rank = value_shape(m->graph, x)->rank;
    if (!rank || maker_type_of(m, x)->dtype == DT_BOOL || maker_type_of(m, x)->layout.block)
        return NONE;
    Attr attr[3];
    attr_defaults(OP_CUMSUM, attr);
    attr[attr_index(OP_CUMSUM, STR("axis"))].i = maker_draw(m, rank);
    attr[attr_index(OP_CUMSUM, STR("exclusive"))].i = maker_chance(m, 40);
    attr[attr_index(OP_CUMSUM, STR("reverse"))].i = maker_chance(m, 40);
    m->result_rough |= m->options->emitted;
    ValueId sums = maker_build(m, OP_CUMSUM, &x, 1, attr);
    return maker_is_main(m, x) ? maker_unary(m, OP_TANH, sums) : sums;
}

/* softmax, or x less its mean, scaled */
ValueId step_rows(Maker *m)
{
    ValueId x = maker_pick(m);
    if (!maker_is_main(m, x) || !value_shape(m->graph, x)->rank)
        return NONE;
    int64_t axis = maker_chance(m, 80) ? -1 : 0;
    if (!value_shape(m->graph, x)->dim[axis < 0 ? value_shape(m->graph, x)->rank - 1 : 0])
        return NONE;
    if (maker_chance(m, 50)) {
        ValueId e = maker_unary(m, OP_EXP,
                                op_build2(m->graph, OP_SUB, x, maker_reduced(m, OP_REDUCE_MAX, x, axis), (Place){0}));
        return op_build2(m->graph, OP_DIV, e, maker_reduced(m, OP_REDUCE_SUM, e, axis), (Place){0});
    }
    ValueId mean = op_build2(m->graph, OP_MUL, maker_reduced(m, OP_REDUCE_SUM, x, axis),
                             graph_add_scalar(m->graph, m->options->dtype, 0.125), (Place){0});
    ValueId centred = op_build2(m->graph, OP_SUB, x, mean, (Place){0});
    ValueId power = maker_reduced(m, OP_REDUCE_SUM, maker_unary(m, OP_SQUARE, centred), axis);
    ValueId scale = maker_unary(
        m, OP_SQRT, op_build2(m->graph, OP_ADD, power, graph_add_scalar(m->graph, m->options->dtype, 1), (Place){0}));
    return op_build2(m->graph, OP_DIV, centred, scale, (Place){0});
}

ValueId step_arg(Maker *m)
{
    ValueId x = maker_pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (m->result_rough || !shape.rank || maker_type_of(m, x)->dtype == DT_BOOL)
        return NONE;
    int64_t axis = maker_draw(m, shape.rank);
    return shape.dim[axis]
               ? maker_with_attr(m, maker_chance(m, 50) ? OP_ARGMAX : OP_ARGMIN, &x, 1, "axis", (Attr){.i = axis})
               : NONE;
}
