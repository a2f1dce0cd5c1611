#include "random_maker.h"

#include <math.h>

uint64_t random_mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint32_t maker_draw(Maker *m, uint32_t below)
{
    m->state = random_mix(m->state);
    return (uint32_t)(m->state >> 33) % below;
}

bool maker_chance(Maker *m, uint32_t percent)
{
    return maker_draw(m, 100) < percent;
}

Tensor *random_tensor(Arena *arena, const Type *type, uint64_t seed)
{
    Tensor *tensor = tensor_new(arena, type);
    for (int64_t i = 0; i < shape_elements(&type->shape); i++) {
        uint64_t bits = random_mix(seed + (uint64_t)i * 0x2545f491u);
        double number = (double)(bits >> 11) / (double)((uint64_t)1 << 51) - 2;
        if (dtype_is_int(type->dtype))
            number = (double)(bits >> 40 & 7);
        tensor_set_number(tensor, i, type->dtype == DT_BOOL ? (double)(bits >> 40 & 1) : number);
    }
    return tensor;
}

static uint32_t pick_slot(Maker *m)
{
    uint32_t slot = maker_chance(m, 45) ? m->slots - 1 : maker_draw(m, m->slots); /* chains are what rules match */
    while (m->slot[slot] == NONE)
        slot = slot ? slot - 1 : m->slots - 1;
    return slot;
}

ValueId maker_pick(Maker *m)
{
    if (m->next != NONE) {
        ValueId next = m->next;
        m->next = NONE;
        return next;
    }
    uint32_t slot = pick_slot(m);
    m->result_rough |= m->rough[slot];
    return m->slot[slot];
}

ValueId maker_pick_like(Maker *m, ValueId x, uint32_t axis)
{
    Shape shape = *value_shape(m->graph, x);
    uint32_t start = maker_draw(m, m->slots);
    for (uint32_t i = 0; i < m->slots; i++) {
        uint32_t s = (start + i) % m->slots;
        if (m->slot[s] == NONE || m->slot[s] == x || maker_type_of(m, m->slot[s])->dtype != maker_type_of(m, x)->dtype)
            continue;
        Shape other = *value_shape(m->graph, m->slot[s]);
        if (axis < other.rank && axis < shape.rank)
            other.dim[axis] = shape.dim[axis];
        if (!shape_eq(&shape, &other))
            continue;
        m->result_rough |= m->rough[s];
        return m->slot[s];
    }
    return x;
}

const Type *maker_type_of(const Maker *m, ValueId v)
{
    return value_type(m->graph, v);
}

bool maker_is_main(const Maker *m, ValueId v)
{
    return maker_type_of(m, v)->dtype == m->options->dtype;
}

ValueId maker_constant(Maker *m, DType dtype, const Shape *shape)
{
    Module *module = m->graph->module;
    const Type *type = module_plain_type(module, dtype, shape->rank, shape->dim);
    return graph_add_const(m->graph, random_tensor(module->arena, type, m->state), (Str){0}, (Place){0});
}

ValueId maker_param(Maker *m, const Shape *shape)
{
    Module *module = m->graph->module;
    const Type *type = module_plain_type(module, m->options->dtype, shape->rank, shape->dim);
    if (m->body && m->graph == m->body) /* params are the graph's own */
        return maker_constant(m, m->options->dtype, shape);
    Str name = str_format(module->arena, "w%u.%u", m->step, m->graph->value_count);
    ValueId v = graph_add_value(m->graph, ROLE_PARAM, type, name, (Place){0});
    Attr attr[6];
    attr_defaults(OP_NORMAL, attr);
    attr[attr_index(OP_NORMAL, STR("seed"))].i = (int64_t)(m->state >> 40);
    attr[attr_index(OP_NORMAL, STR("std"))].f = 0.5;
    graph_add_initial(m->graph, OP_NORMAL, attr, (Place){0});
    m->graph->value[v].initial = m->graph->initial_count - 1;
    return v;
}

ValueId maker_weights(Maker *m, const Shape *shape)
{
    return maker_chance(m, 50) ? maker_param(m, shape) : maker_constant(m, m->options->dtype, shape);
}

ValueId maker_build(Maker *m, OpCode op, const ValueId *in, uint32_t count, const Attr *attr)
{
    return op_build(m->graph, op, in, count, attr, (Place){0});
}

/* Its last bits are not those of the reference. */
static bool is_approximate(OpCode op)
{
    return op == OP_TANH || op == OP_SIGMOID || op == OP_SIN || op == OP_EXP || op == OP_POW;
}

int64_t maker_channels(const Maker *m)
{
    return m->options->channels ? m->options->channels : 4;
}

ValueId maker_unary(Maker *m, OpCode op, ValueId x)
{
    m->result_rough |= m->options->emitted && is_approximate(op);
    return maker_build(m, op, &x, 1, NULL);
}

ValueId maker_changed(Maker *m, ValueId x)
{
    static const OpCode op[] = {OP_NEG, OP_ABS, OP_RELU, OP_TANH, OP_SIGMOID};
    DType dtype = maker_type_of(m, x)->dtype;
    if (dtype == DT_BOOL)
        return maker_unary(m, OP_NOT, x);
    return maker_unary(m, op[maker_draw(m, maker_is_main(m, x) ? 5 : 3)], x);
}

Attr maker_ints(const int64_t *list, uint32_t count)
{
    return (Attr){.i = count, .ints = list};
}

ValueId maker_with_attr(Maker *m, OpCode op, const ValueId *in, uint32_t count, const char *name, Attr value)
{
    Attr attr[6];
    attr_defaults(op, attr);
    attr[attr_index(op, str_from(name))] = value;
    return maker_build(m, op, in, count, attr);
}

ValueId maker_neutral(Maker *m, DType dtype, const Shape *shape)
{
    static const double number[] = {0, 1, 2, 4, -1, 0.5, 3, 0};
    double value = number[maker_draw(m, 8)];
    if (!dtype_is_float(dtype) && value == 0.5)
        value = 1;
    if (maker_chance(m, 60))
        return graph_add_scalar(m->graph, dtype, value);
    if (dtype == DT_BOOL || dtype == DT_U8 || dtype == DT_U16 || dtype == DT_U32 || dtype == DT_U64)
        value = dtype == DT_BOOL ? value != 0 : fabs(value); /* full takes what its dtype has */
    Attr attr[6];
    attr_defaults(OP_FULL, attr);
    attr[attr_index(OP_FULL, STR("value"))].f = value;
    attr[attr_index(OP_FULL, STR("shape"))] = maker_ints(shape->dim, shape->rank);
    attr[attr_index(OP_FULL, STR("dtype"))].i = dtype;
    return maker_build(m, OP_FULL, NULL, 0, attr);
}

/* Some extents become 1, leading ones may go: it still broadcasts, but perhaps not along the channels. */
Shape maker_smaller_shape(Maker *m, const Shape *shape)
{
    Shape small = {0};
    uint32_t skip = shape->rank ? maker_draw(m, shape->rank + 1) : 0;
    bool channels = shape->rank == 4 && maker_chance(m, 50);
    if (channels)
        skip = 1;
    for (uint32_t i = skip; i < shape->rank; i++)
        small.dim[small.rank++] = (channels ? i != 1 : maker_chance(m, 50)) ? 1 : shape->dim[i];
    return small;
}

ValueId maker_other_operand(Maker *m, ValueId x)
{
    Shape shape = *value_shape(m->graph, x);
    DType dtype = maker_type_of(m, x)->dtype;
    uint32_t kind = maker_draw(m, 10);
    if (kind < 3)
        return maker_neutral(m, dtype, &shape);
    if (kind < 7) {
        Shape small = maker_smaller_shape(m, &shape);
        return dtype == m->options->dtype ? maker_weights(m, &small) : maker_constant(m, dtype, &small);
    }
    ValueId y = maker_pick(m);
    Shape joint;
    if (maker_type_of(m, y)->dtype != dtype || !shape_broadcast(&shape, value_shape(m->graph, y), &joint) ||
        shape_elements(&joint) > RANDOM_LARGEST)
        return x;
    return y;
}

ValueId maker_reduced(Maker *m, OpCode op, ValueId x, int64_t axis)
{
    Attr attr[6];
    attr_defaults(op, attr);
    attr[attr_index(op, STR("axes"))] = maker_ints(&axis, 1);
    attr[attr_index(op, STR("keep"))].i = true;
    m->result_rough = true;
    return maker_build(m, op, &x, 1, attr);
}
