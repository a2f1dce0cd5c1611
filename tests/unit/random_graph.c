#include "random_graph.h"

#include <string.h>

#include "ops/attrs.h"
#include "ops/family.h"

#define LARGEST 4096 /* elements of a value */
#define INPUTS  4

typedef struct Maker {
    Graph *graph;
    const RandomGraph *options;
    uint64_t state;
    uint32_t step;
    ValueId slot[INPUTS + 2 * RANDOM_MOST]; /* what later steps may read; NONE where a step was left out */
    bool rough[INPUTS + 2 * RANDOM_MOST]; /* its last bits depend on how a contraction is computed: not to be floored */
    uint32_t slots;
    bool result_rough; /* of the step being made */
} Maker;

static uint64_t mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint32_t draw(Maker *m, uint32_t below)
{
    m->state = mix(m->state);
    return (uint32_t)(m->state >> 33) % below;
}

static bool chance(Maker *m, uint32_t percent)
{
    return draw(m, 100) < percent;
}

Tensor *random_tensor(Arena *arena, const Type *type, uint64_t seed)
{
    Tensor *tensor = tensor_new(arena, type);
    for (int64_t i = 0; i < shape_elements(&type->shape); i++) {
        uint64_t bits = mix(seed + (uint64_t)i * 0x2545f491u);
        double number = (double)(bits >> 11) / (double)((uint64_t)1 << 51) - 2;
        if (dtype_is_int(type->dtype))
            number = (double)(bits >> 40 & 7);
        tensor_set_number(tensor, i, type->dtype == DT_BOOL ? (double)(bits >> 40 & 1) : number);
    }
    return tensor;
}

/* Choosing operands */

static uint32_t pick_slot(Maker *m)
{
    uint32_t slot = chance(m, 45) ? m->slots - 1 : draw(m, m->slots); /* chains are what rules match */
    while (m->slot[slot] == NONE)
        slot = slot ? slot - 1 : m->slots - 1;
    return slot;
}

static ValueId pick(Maker *m)
{
    uint32_t slot = pick_slot(m);
    m->result_rough |= m->rough[slot];
    return m->slot[slot];
}

static const Type *type_of(const Maker *m, ValueId v)
{
    return value_type(m->graph, v);
}

static bool is_main(const Maker *m, ValueId v)
{
    return type_of(m, v)->dtype == m->options->dtype;
}

static ValueId constant(Maker *m, DType dtype, const Shape *shape)
{
    Module *module = m->graph->module;
    const Type *type = module_plain_type(module, dtype, shape->rank, shape->dim);
    return graph_add_const(m->graph, random_tensor(module->arena, type, m->state), (Str){0}, (Place){0});
}

static ValueId param(Maker *m, const Shape *shape)
{
    Module *module = m->graph->module;
    const Type *type = module_plain_type(module, m->options->dtype, shape->rank, shape->dim);
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

static ValueId weights(Maker *m, const Shape *shape)
{
    return chance(m, 50) ? param(m, shape) : constant(m, m->options->dtype, shape);
}

/* Building */

static ValueId build(Maker *m, OpCode op, const ValueId *in, uint32_t count, const Attr *attr)
{
    return op_build(m->graph, op, in, count, attr, (Place){0});
}

/* Its last bits are not those of the reference. */
static bool is_approximate(OpCode op)
{
    return op == OP_TANH || op == OP_SIGMOID || op == OP_SIN || op == OP_EXP || op == OP_POW;
}

static int64_t channels(const Maker *m)
{
    return m->options->channels ? m->options->channels : 4;
}

static ValueId unary(Maker *m, OpCode op, ValueId x)
{
    m->result_rough |= m->options->emitted && is_approximate(op);
    return build(m, op, &x, 1, NULL);
}

static Attr ints(const int64_t *list, uint32_t count)
{
    return (Attr){.i = count, .ints = list};
}

static ValueId with_attr(Maker *m, OpCode op, const ValueId *in, uint32_t count, const char *name, Attr value)
{
    Attr attr[6];
    attr_defaults(op, attr);
    attr[attr_index(op, str_from(name))] = value;
    return build(m, op, in, count, attr);
}

/* Steps: each returns its result, or NONE when what it drew does not fit. */

static ValueId step_unary(Maker *m)
{
    static const OpCode smooth[] = {OP_NEG, OP_ABS, OP_RELU, OP_TANH, OP_SIGMOID, OP_SIN, OP_SQUARE, OP_NEG, OP_RELU};
    static const OpCode jumpy[] = {OP_FLOOR, OP_ROUND, OP_TRUNC, OP_SIGN, OP_CEIL};
    ValueId x = pick(m);
    if (type_of(m, x)->dtype == DT_BOOL)
        return unary(m, OP_NOT, x);
    if (!is_main(m, x))
        return unary(m, chance(m, 50) ? OP_NEG : OP_ABS, x);
    if (!m->result_rough && chance(m, 25))
        return unary(m, jumpy[draw(m, 5)], x);
    OpCode op = smooth[draw(m, 9)];
    x = op == OP_SQUARE && chance(m, 70) ? unary(m, OP_TANH, x) : x; /* lest numbers grow without bound */
    return unary(m, op, x);
}

static ValueId neutral(Maker *m, DType dtype, const Shape *shape)
{
    static const double number[] = {0, 1, 2, 4, -1, 0.5, 3, 0};
    double value = number[draw(m, 8)];
    if (!dtype_is_float(dtype) && value == 0.5)
        value = 1;
    if (chance(m, 60))
        return graph_add_scalar(m->graph, dtype, value);
    Attr attr[6];
    attr_defaults(OP_FULL, attr);
    attr[attr_index(OP_FULL, STR("value"))].f = value;
    attr[attr_index(OP_FULL, STR("shape"))] = ints(shape->dim, shape->rank);
    attr[attr_index(OP_FULL, STR("dtype"))].i = dtype;
    return build(m, OP_FULL, NULL, 0, attr);
}

/* Some extents become 1, leading ones may go: it still broadcasts, but perhaps not along the channels. */
static Shape smaller_shape(Maker *m, const Shape *shape)
{
    Shape small = {0};
    uint32_t skip = shape->rank ? draw(m, shape->rank + 1) : 0;
    bool channels = shape->rank == 4 && chance(m, 50);
    if (channels)
        skip = 1;
    for (uint32_t i = skip; i < shape->rank; i++)
        small.dim[small.rank++] = (channels ? i != 1 : chance(m, 50)) ? 1 : shape->dim[i];
    return small;
}

static ValueId other_operand(Maker *m, ValueId x)
{
    Shape shape = *value_shape(m->graph, x);
    DType dtype = type_of(m, x)->dtype;
    uint32_t kind = draw(m, 10);
    if (kind < 3)
        return neutral(m, dtype, &shape);
    if (kind < 7) {
        Shape small = smaller_shape(m, &shape);
        return dtype == m->options->dtype ? weights(m, &small) : constant(m, dtype, &small);
    }
    ValueId y = pick(m);
    Shape joint;
    if (type_of(m, y)->dtype != dtype || !shape_broadcast(&shape, value_shape(m->graph, y), &joint) ||
        shape_elements(&joint) > LARGEST)
        return x;
    return y;
}

static ValueId step_binary(Maker *m)
{
    static const OpCode op[] = {OP_ADD, OP_MUL, OP_SUB, OP_MAXIMUM, OP_MINIMUM, OP_ADD, OP_MUL};
    ValueId x = pick(m), y = other_operand(m, x);
    if (type_of(m, x)->dtype == DT_BOOL)
        return op_build2(m->graph, chance(m, 50) ? OP_AND : OP_XOR, x, y, (Place){0});
    if (is_main(m, x) && chance(m, 15)) { /* by something that is not near zero */
        y = unary(m, OP_SIGMOID, y);
        return op_build2(m->graph, OP_DIV, x, y, (Place){0});
    }
    if (is_main(m, x) && chance(m, 10)) {
        static const double divisor[] = {1, 2, 4, 255, -1, -8};
        return op_build2(m->graph, OP_DIV, x, graph_add_scalar(m->graph, m->options->dtype, divisor[draw(m, 6)]),
                         (Place){0});
    }
    if (is_main(m, x) && chance(m, 5))
        return op_build2(m->graph, OP_POW, x, graph_add_scalar(m->graph, m->options->dtype, 1 + draw(m, 2)),
                         (Place){0});
    bool swap = chance(m, 40);
    return op_build2(m->graph, op[draw(m, 7)], swap ? y : x, swap ? x : y, (Place){0});
}

static ValueId step_select(Maker *m)
{
    ValueId x = pick(m), y = other_operand(m, x);
    if (m->result_rough)
        return NONE;
    ValueId mask = op_build2(m->graph, chance(m, 50) ? OP_EQ : OP_NE, x, y, (Place){0});
    if (chance(m, 30))
        return mask;
    ValueId in[] = {mask, x, y};
    return build(m, OP_SELECT, in, 3, NULL);
}

static ValueId step_cast(Maker *m)
{
    static const DType to[] = {DT_F64, DT_F32, DT_I32, DT_I64, DT_BOOL};
    ValueId x = pick(m);
    Attr attr = {.i = is_main(m, x) ? to[draw(m, m->result_rough ? 2 : 5)] : m->options->dtype};
    ValueId y = build(m, OP_CAST, &x, 1, &attr);
    attr.i = m->options->dtype;
    return chance(m, 60) ? build(m, OP_CAST, &y, 1, &attr) : y;
}

static ValueId step_transpose(Maker *m, ValueId x)
{
    uint32_t rank = value_shape(m->graph, x)->rank;
    int64_t axes[MAX_RANK];
    for (int times = chance(m, 50) ? 1 : 2; times > 0; times--) {
        for (uint32_t i = 0; i < rank; i++) {
            uint32_t at = draw(m, i + 1);
            axes[i] = axes[at];
            axes[at] = i;
        }
        x = with_attr(m, OP_TRANSPOSE, &x, 1, "axes", ints(axes, rank));
    }
    return x;
}

static ValueId step_reshape(Maker *m, ValueId x)
{
    const Shape *shape = value_shape(m->graph, x);
    int64_t dim[MAX_RANK] = {1, 1, 1, 1}, elements = shape_elements(shape);
    switch (draw(m, 3)) {
    case 0:
        dim[0] = elements;
        return with_attr(m, OP_RESHAPE, &x, 1, "shape", ints(dim, 1));
    case 1:
        dim[1] = elements % 4 == 0 ? 4 : 1;
        dim[2] = elements / dim[1];
        return with_attr(m, OP_RESHAPE, &x, 1, "shape", ints(dim, 4));
    default:
        dim[0] = elements % 6 == 0 ? 6 : 1;
        dim[1] = elements / dim[0];
        return with_attr(m, OP_RESHAPE, &x, 1, "shape", ints(dim, 2));
    }
}

static ValueId step_slice(Maker *m, ValueId x)
{
    static const int64_t zero[MAX_RANK];
    const Shape *shape = value_shape(m->graph, x);
    Attr attr[6];
    int64_t axis = shape->rank ? draw(m, shape->rank) : 0, end = shape->rank ? shape->dim[axis] : 0, begin = 0,
            step = 1;
    if (!shape->rank)
        return NONE;
    if (chance(m, 60) && end > 1)
        begin = 1;
    if (chance(m, 25)) {
        step = -1;
        begin = end - 1;
        end = -shape->dim[axis] - 1;
    }
    attr_defaults(OP_SLICE, attr);
    attr[attr_index(OP_SLICE, STR("axes"))] = ints(&axis, 1);
    attr[attr_index(OP_SLICE, STR("begin"))] = ints(begin ? &begin : zero, 1);
    attr[attr_index(OP_SLICE, STR("end"))] = ints(&end, 1);
    attr[attr_index(OP_SLICE, STR("step"))] = ints(&step, 1);
    return build(m, OP_SLICE, &x, 1, attr);
}

static ValueId step_broadcast(Maker *m, ValueId x)
{
    Shape shape = *value_shape(m->graph, x);
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = shape.dim[i] == 1 && chance(m, 60) ? 2 + draw(m, 3) : shape.dim[i];
    if (shape.rank < 5 && chance(m, 30)) {
        memmove(shape.dim + 1, shape.dim, shape.rank++ * sizeof shape.dim[0]);
        shape.dim[0] = 1 + draw(m, 3);
    }
    return with_attr(m, OP_BROADCAST, &x, 1, "shape", ints(shape.dim, shape.rank));
}

static ValueId step_pad(Maker *m, ValueId x)
{
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    uint32_t rank = value_shape(m->graph, x)->rank;
    Attr attr[6];
    for (uint32_t i = rank > 2 ? rank - 2 : 0; i < rank; i++) {
        before[i] = draw(m, 3);
        after[i] = draw(m, 2);
    }
    if (chance(m, 20))
        memset(before, 0, sizeof before), memset(after, 0, sizeof after);
    attr_defaults(OP_PAD, attr);
    attr[attr_index(OP_PAD, STR("before"))] = ints(before, rank);
    attr[attr_index(OP_PAD, STR("after"))] = ints(after, rank);
    attr[attr_index(OP_PAD, STR("value"))].f = chance(m, 60) ? 0 : 1;
    return build(m, OP_PAD, &x, 1, attr);
}

static ValueId step_concat(Maker *m, ValueId x)
{
    ValueId in[] = {x, x};
    uint32_t rank = value_shape(m->graph, x)->rank;
    if (!rank)
        return NONE;
    return with_attr(m, OP_CONCAT, in, 1 + draw(m, 2), "axis", (Attr){.i = draw(m, rank)});
}

static ValueId step_split(Maker *m, ValueId x)
{
    const Shape *shape = value_shape(m->graph, x);
    if (!shape->rank || shape->dim[shape->rank - 1] < 2)
        return NONE;
    int64_t sizes[] = {1, shape->dim[shape->rank - 1] - 1};
    Attr attr[6];
    attr_defaults(OP_SPLIT, attr);
    attr[attr_index(OP_SPLIT, STR("axis"))].i = -1;
    attr[attr_index(OP_SPLIT, STR("sizes"))] = ints(sizes, 2);
    ValueId first = build(m, OP_SPLIT, &x, 1, attr);
    return chance(m, 50) ? first : m->graph->node[m->graph->value[first].node].out[1];
}

static ValueId step_view(Maker *m)
{
    ValueId x = pick(m);
    switch (draw(m, 8)) {
    case 0:
    case 1:
        return step_transpose(m, x);
    case 2:
    case 3:
        return step_reshape(m, x);
    case 4:
        return step_slice(m, x);
    case 5:
        return step_broadcast(m, x);
    case 6:
        return type_of(m, x)->dtype == DT_BOOL ? NONE : step_pad(m, x);
    default:
        return chance(m, 50) ? step_split(m, x) : step_concat(m, x);
    }
}

static ValueId step_reduce(Maker *m)
{
    static const OpCode op[] = {OP_REDUCE_MAX, OP_REDUCE_MIN, OP_REDUCE_SUM};
    ValueId x = pick(m);
    uint32_t rank = value_shape(m->graph, x)->rank;
    int64_t axis = rank ? draw(m, rank) : 0;
    if (type_of(m, x)->dtype == DT_BOOL || !rank || !value_shape(m->graph, x)->dim[axis])
        return NONE;
    Attr attr[6];
    attr_defaults(OP_REDUCE_SUM, attr);
    attr[attr_index(OP_REDUCE_SUM, STR("axes"))] = ints(&axis, chance(m, 80));
    attr[attr_index(OP_REDUCE_SUM, STR("keep"))].i = chance(m, 50);
    m->result_rough |= m->options->emitted;
    ValueId sum = build(m, op[draw(m, 3)], &x, 1, attr);
    return is_main(m, x) ? unary(m, OP_TANH, sum) : sum;
}

/* A few operations with constants, as batch normalisation is made of: the shapes fit, but not always the channels. */
static ValueId affine_chain(Maker *m, ValueId x)
{
    static const OpCode op[] = {OP_ADD, OP_MUL, OP_SUB, OP_DIV};
    for (uint32_t length = draw(m, 4); length > 0; length--) {
        Shape shape = *value_shape(m->graph, x), small = smaller_shape(m, &shape);
        if (shape.rank < 4 && chance(m, 60))
            small = shape_of(shape.rank > 0, shape.dim + shape.rank - (shape.rank > 0));
        ValueId term = chance(m, 70) ? weights(m, &small) : neutral(m, m->options->dtype, &(Shape){0});
        OpCode chosen = op[draw(m, 4)];
        bool left = chance(m, 70);
        if (chosen == OP_DIV) {
            left = true;
            term = unary(m, OP_SIGMOID, term);
        }
        x = op_build2(m->graph, chosen, left ? x : term, left ? term : x, (Place){0});
    }
    return x;
}

/* What stands before a contraction: often a scale, a border or a view of one. */
static ValueId prepared(Maker *m, ValueId x)
{
    Shape shape = *value_shape(m->graph, x), small = smaller_shape(m, &shape);
    bool image = shape.rank == 4;
    switch (draw(m, 8)) {
    case 0:
        return op_build2(m->graph, OP_DIV, x, graph_add_scalar(m->graph, m->options->dtype, 255), (Place){0});
    case 1:
        return op_build2(m->graph, OP_MUL, weights(m, &small), x, (Place){0});
    case 2:
        x = op_build2(m->graph, OP_MUL, x, graph_add_scalar(m->graph, m->options->dtype, 3), (Place){0});
        return image ? x : step_transpose(m, x);
    case 3:
        return image ? step_pad(m, x) : x;
    default:
        return x;
    }
}

static ValueId step_conv(Maker *m)
{
    ValueId x = pick(m);
    if (is_main(m, x) && value_shape(m->graph, x)->rank == 4 && value_shape(m->graph, x)->dim[1] <= 3 * channels(m))
        x = prepared(m, x);
    Shape shape = *value_shape(m->graph, x);
    if (!is_main(m, x) || shape.rank != 4 || shape.dim[1] > 4 * channels(m) || shape.dim[2] < 2 || shape.dim[3] < 2)
        return NONE;
    int64_t groups = shape.dim[1] % 2 == 0 && chance(m, 30) ? 2 : 1, outputs = channels(m) / 2 * (1 + draw(m, 3));
    int64_t dim[] = {outputs, shape.dim[1] / groups, 1 + draw(m, 2), 1 + draw(m, 2)}, pad[] = {draw(m, 2), draw(m, 2)};
    Shape weight = shape_of(4, dim), bias = shape_of(1, &outputs);
    Attr attr[6];
    attr_defaults(OP_CONV2D, attr);
    attr[attr_index(OP_CONV2D, STR("groups"))].i = groups;
    attr[attr_index(OP_CONV2D, STR("pad"))] = ints(pad, 2);
    ValueId in[3] = {x, weights(m, &weight)};
    uint32_t count = 2;
    if (chance(m, 50))
        in[count++] = weights(m, &bias);
    m->result_rough = true;
    return affine_chain(m, build(m, OP_CONV2D, in, count, attr));
}

static ValueId step_matmul(Maker *m)
{
    ValueId x = pick(m);
    if (is_main(m, x))
        x = prepared(m, x);
    const Shape *shape = value_shape(m->graph, x);
    if (!is_main(m, x) || shape->rank < 1 || shape->dim[shape->rank - 1] > 64)
        return NONE;
    bool transposed = chance(m, 40);
    int64_t k = shape->dim[shape->rank - 1], n = 1 + draw(m, 5), dim[2] = {transposed ? n : k, transposed ? k : n};
    Shape weight = shape_of(2, dim);
    ValueId in[] = {x, weights(m, &weight)};
    m->result_rough = true;
    if (transposed && chance(m, 50)) {
        in[1] = with_attr(m, OP_TRANSPOSE, &in[1], 1, "axes", (Attr){0});
        transposed = false;
    }
    return affine_chain(m, with_attr(m, OP_MATMUL, in, 2, "transpose_y", (Attr){.i = transposed}));
}

static ValueId step_pool(Maker *m)
{
    ValueId x = pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!is_main(m, x) || shape.rank != 4 || shape.dim[2] < 2 || shape.dim[3] < 2)
        return NONE;
    int64_t window[] = {1 + draw(m, 2), 1 + draw(m, 2)};
    return with_attr(m, chance(m, 50) ? OP_MAX_POOL : OP_AVG_POOL, &x, 1, "window", ints(window, 2));
}

/* The same op twice, on operands in either order: one value or two? */
static ValueId step_twins(Maker *m)
{
    static const OpCode op[] = {OP_ADD, OP_SUB, OP_MUL, OP_SUB};
    ValueId x = pick(m), y = other_operand(m, x);
    if (type_of(m, x)->dtype == DT_BOOL)
        return NONE;
    OpCode chosen = op[draw(m, 4)];
    ValueId a = op_build2(m->graph, chosen, x, y, (Place){0});
    ValueId b =
        chance(m, 50) ? op_build2(m->graph, chosen, x, y, (Place){0}) : op_build2(m->graph, chosen, y, x, (Place){0});
    ValueId in[] = {a, b};
    return value_shape(m->graph, a)->rank ? with_attr(m, OP_CONCAT, in, 2, "axis", (Attr){0}) : b;
}

/* A param of more than a few KB that is read, folded, once or twice. */
static ValueId step_weights(Maker *m)
{
    static const int64_t dim[] = {40, 16};
    Shape shape = shape_of(2, dim);
    ValueId w = param(m, &shape), x = m->slot[INPUTS - 1]; /* [40, 16] */
    ValueId a = unary(m, OP_NEG, w);
    ValueId b = chance(m, 50) ? unary(m, OP_TANH, w) : w;
    ValueId sum = op_build2(m->graph, OP_ADD, x, a, (Place){0});
    return op_build2(m->graph, OP_MUL, sum, b, (Place){0});
}

/* y = relu(x * w - z), with a param of its own, kept as a call. */
static ValueId step_call(Maker *m)
{
    Module *module = m->graph->module;
    Graph *outer = m->graph;
    ValueId x = pick(m);
    if (!m->options->calls || !is_main(m, x))
        return NONE;
    Shape shape = smaller_shape(m, value_shape(outer, x));
    ValueId z = other_operand(m, x), in[] = {x, z};
    Shape joint;
    if (!shape_broadcast(value_shape(outer, x), value_shape(outer, z), &joint))
        return NONE;

    Graph *body = m->graph = graph_new(module, STR("body"));
    ValueId inner = graph_add_input(body, value_type(outer, x), STR("x"), (Place){0});
    ValueId second = graph_add_input(body, value_type(outer, z), STR("z"), (Place){0});
    ValueId product = op_build2(body, OP_MUL, inner, param(m, &shape), (Place){0});
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

/* Steps for emitted code */

static ValueId reduced(Maker *m, OpCode op, ValueId x, int64_t axis)
{
    Attr attr[6];
    attr_defaults(op, attr);
    attr[attr_index(op, STR("axes"))] = ints(&axis, 1);
    attr[attr_index(op, STR("keep"))].i = true;
    m->result_rough = true;
    return build(m, op, &x, 1, attr);
}

/* softmax, or x less its mean, scaled */
static ValueId step_rows(Maker *m)
{
    ValueId x = pick(m);
    if (!is_main(m, x) || !value_shape(m->graph, x)->rank)
        return NONE;
    int64_t axis = chance(m, 80) ? -1 : 0;
    if (!value_shape(m->graph, x)->dim[axis < 0 ? value_shape(m->graph, x)->rank - 1 : 0])
        return NONE;
    if (chance(m, 50)) {
        ValueId e = unary(m, OP_EXP, op_build2(m->graph, OP_SUB, x, reduced(m, OP_REDUCE_MAX, x, axis), (Place){0}));
        return op_build2(m->graph, OP_DIV, e, reduced(m, OP_REDUCE_SUM, e, axis), (Place){0});
    }
    ValueId mean = op_build2(m->graph, OP_MUL, reduced(m, OP_REDUCE_SUM, x, axis),
                             graph_add_scalar(m->graph, m->options->dtype, 0.125), (Place){0});
    ValueId centred = op_build2(m->graph, OP_SUB, x, mean, (Place){0});
    ValueId power = reduced(m, OP_REDUCE_SUM, unary(m, OP_SQUARE, centred), axis);
    ValueId scale = unary(
        m, OP_SQRT, op_build2(m->graph, OP_ADD, power, graph_add_scalar(m->graph, m->options->dtype, 1), (Place){0}));
    return op_build2(m->graph, OP_DIV, centred, scale, (Place){0});
}

static ValueId step_gather(Maker *m)
{
    Shape table, index = {0};
    ValueId x = pick(m), in[2] = {x};
    table = *value_shape(m->graph, x);
    if (!table.rank)
        return NONE;
    int64_t axis = draw(m, table.rank);
    if (!table.dim[axis])
        return NONE;
    index.rank = draw(m, 3);
    for (uint32_t i = 0; i < index.rank; i++)
        index.dim[i] = 1 + draw(m, 3);
    if (table.rank + index.rank > MAX_RANK + 1)
        return NONE;
    in[1] = constant(m, chance(m, 50) ? DT_I64 : DT_I32, &index);
    return with_attr(m, OP_GATHER, in, 2, "axis", (Attr){.i = axis});
}

static ValueId step_iota(Maker *m)
{
    ValueId x = pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!is_main(m, x) || !shape.rank)
        return NONE;
    Attr attr[6];
    attr_defaults(OP_IOTA, attr);
    attr[attr_index(OP_IOTA, STR("axis"))].i = draw(m, shape.rank);
    attr[attr_index(OP_IOTA, STR("shape"))] = ints(shape.dim, shape.rank);
    attr[attr_index(OP_IOTA, STR("dtype"))].i = m->options->dtype;
    m->result_rough = true;
    return op_build2(m->graph, OP_MUL, x, build(m, OP_IOTA, NULL, 0, attr), (Place){0});
}

static ValueId step_relayout(Maker *m)
{
    static const int64_t block[] = {4, 8, 16};
    ValueId x = pick(m);
    if (value_shape(m->graph, x)->rank != 4)
        return NONE;
    ValueId y = with_attr(m, OP_RELAYOUT, &x, 1, "block", (Attr){.i = block[draw(m, 3)]});
    if (chance(m, 50) && type_of(m, y)->dtype != DT_BOOL)
        y = unary(m, OP_NEG, y);
    return with_attr(m, OP_RELAYOUT, &y, 1, "block", (Attr){.i = 0});
}

/* Convolutions with strides and holes, and one filter per channel. */
static ValueId step_wide_conv(Maker *m)
{
    ValueId x = pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!is_main(m, x) || shape.rank != 4 || shape.dim[1] > 4 * channels(m) || shape.dim[2] < 3 || shape.dim[3] < 3)
        return NONE;
    bool depthwise = chance(m, 40);
    int64_t groups = depthwise ? shape.dim[1] : 1, outputs = depthwise ? groups : channels(m) * (1 + draw(m, 2));
    int64_t dim[] = {outputs, depthwise ? 1 : shape.dim[1], 1 + draw(m, 3), 1 + draw(m, 3)};
    int64_t pad[] = {draw(m, 3), draw(m, 3), draw(m, 2), draw(m, 2)}, stride[] = {1 + draw(m, 2), 1 + draw(m, 2)},
            dilation = 1 + draw(m, 2);
    if (shape.dim[2] + pad[0] + pad[2] <= (dim[2] - 1) * dilation ||
        shape.dim[3] + pad[1] + pad[3] <= (dim[3] - 1) * dilation)
        return NONE;
    Shape weight = shape_of(4, dim), bias = shape_of(1, &outputs);
    Attr attr[6];
    attr_defaults(OP_CONV2D, attr);
    attr[attr_index(OP_CONV2D, STR("groups"))].i = groups;
    attr[attr_index(OP_CONV2D, STR("pad"))] = ints(pad, 4);
    attr[attr_index(OP_CONV2D, STR("stride"))] = ints(stride, 2);
    attr[attr_index(OP_CONV2D, STR("dilation"))] = ints(&dilation, 1);
    ValueId in[] = {x, weights(m, &weight), weights(m, &bias)};
    m->result_rough = true;
    ValueId y = build(m, OP_CONV2D, in, 2 + draw(m, 2), attr);
    return chance(m, 50) ? affine_chain(m, y) : chance(m, 50) ? unary(m, OP_RELU, y) : y;
}

static ValueId step_wide_pool(Maker *m)
{
    ValueId x = pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!is_main(m, x) || shape.rank != 4 || shape.dim[2] < 3 || shape.dim[3] < 3)
        return NONE;
    int64_t window[] = {1 + draw(m, 3), 1 + draw(m, 3)}, stride[] = {1 + draw(m, 3), 1 + draw(m, 3)};
    int64_t pad[] = {draw(m, 2), draw(m, 2), draw(m, 2), draw(m, 2)};
    for (int i = 0; i < 4; i++)
        pad[i] = pad[i] < window[i % 2] ? pad[i] : 0;
    OpCode op = chance(m, 50) ? OP_MAX_POOL : OP_AVG_POOL;
    Attr attr[6];
    attr_defaults(op, attr);
    attr[attr_index(op, STR("window"))] = ints(window, 2);
    attr[attr_index(op, STR("stride"))] = ints(stride, 2);
    attr[attr_index(op, STR("pad"))] = ints(pad, 4);
    if (op == OP_AVG_POOL)
        attr[attr_index(op, STR("count_pad"))].i = chance(m, 50);
    m->result_rough |= op == OP_AVG_POOL;
    return build(m, op, &x, 1, attr);
}

/* x @ x transposed: neither operand is known before the run. */
static ValueId step_product(Maker *m)
{
    ValueId x = pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (!is_main(m, x) || shape.rank < 2 || shape.dim[shape.rank - 2] > 40)
        return NONE;
    ValueId in[] = {x, x};
    m->result_rough = true;
    return unary(m, OP_TANH, with_attr(m, OP_MATMUL, in, 2, "transpose_y", (Attr){.i = true}));
}

static ValueId step_arg(Maker *m)
{
    ValueId x = pick(m);
    Shape shape = *value_shape(m->graph, x);
    if (m->result_rough || !shape.rank || type_of(m, x)->dtype == DT_BOOL)
        return NONE;
    int64_t axis = draw(m, shape.rank);
    return shape.dim[axis] ? with_attr(m, chance(m, 50) ? OP_ARGMAX : OP_ARGMIN, &x, 1, "axis", (Attr){.i = axis})
                           : NONE;
}

static ValueId step_join(Maker *m)
{
    ValueId x = pick(m), in[8] = {x};
    uint32_t rank = value_shape(m->graph, x)->rank, count = 2 + draw(m, 7);
    if (!rank)
        return NONE;
    int64_t axis = draw(m, rank);
    for (uint32_t i = 1; i < count; i++) {
        ValueId y = pick(m);
        Shape a = *value_shape(m->graph, x), b = *value_shape(m->graph, y);
        if (b.rank == rank)
            b.dim[axis] = a.dim[axis];
        in[i] = type_of(m, x)->dtype == type_of(m, y)->dtype && shape_eq(&a, &b) ? y : x;
    }
    return with_attr(m, OP_CONCAT, in, count, "axis", (Attr){.i = axis});
}

static ValueId step_emitted(Maker *m)
{
    static ValueId (*const step[])(Maker *) = {
        step_rows,      step_gather,  step_iota, step_relayout,  step_wide_conv, step_wide_conv,
        step_wide_pool, step_product, step_arg,  step_wide_pool, step_join,      step_rows,
    };
    return step[draw(m, sizeof step / sizeof step[0])](m);
}

static ValueId make_step(Maker *m)
{
    static ValueId (*const step[])(Maker *) = {
        step_unary, step_unary, step_binary, step_binary, step_binary,  step_binary, step_view,
        step_view,  step_view,  step_conv,   step_matmul, step_reduce,  step_select, step_cast,
        step_pool,  step_conv,  step_call,   step_twins,  step_weights, step_matmul,
    };
    ValueId made = NONE;
    for (int attempt = 0; attempt < 8 && made == NONE; attempt++) {
        m->result_rough = false;
        made = m->options->emitted && chance(m, 35) ? step_emitted(m) : step[draw(m, sizeof step / sizeof step[0])](m);
    }
    return made != NONE && shape_elements(value_shape(m->graph, made)) > LARGEST ? NONE : made;
}

static void add_inputs(Maker *m)
{
    const int64_t c = channels(m), dim[INPUTS][4] = {{2, c, 5, 6}, {c, 1, 1, 0}, {5, 6, 0, 0}, {40, 16, 0, 0}};
    static const uint32_t rank[INPUTS] = {4, 3, 2, 2};
    for (uint32_t i = 0; i < INPUTS; i++) {
        const Type *type = module_plain_type(m->graph->module, m->options->dtype, rank[i], dim[i]);
        Str name = str_format(m->graph->module->arena, "x%u", i);
        m->slot[m->slots++] = graph_add_input(m->graph, type, name, (Place){0});
    }
}

/* Outputs that are no memory of a kernel's own. */
static void add_odd_outputs(Maker *m)
{
    Graph *graph = m->graph;
    Shape shape = {.rank = 1, .dim = {3}};
    m->state = mix(m->options->seed);
    if (chance(m, 10))
        graph_add_output(graph, m->slot[draw(m, INPUTS)], STR("an_input"));
    if (chance(m, 10))
        graph_add_output(graph, constant(m, m->options->dtype, &shape), STR("a_constant"));
    if (chance(m, 10))
        graph_add_output(graph, step_transpose(m, m->slot[2]), STR("a_view"));
    if (chance(m, 10) && graph->output_count)
        graph_add_output(graph, graph->output[0].value, STR("again"));
}

static void add_outputs(Maker *m)
{
    Graph *graph = m->graph;
    Arena *arena = graph->module->arena;
    bool *used = ARENA_ARRAY(arena, bool, graph->value_count);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].in_count; i++)
            used[graph->node[n].in[i]] = true;
    uint32_t inner = m->slots > INPUTS ? INPUTS + (uint32_t)(m->options->seed % (m->slots - INPUTS)) : 0;
    for (uint32_t s = INPUTS; s < m->slots; s++)
        if (m->slot[s] != NONE && (!used[m->slot[s]] || s == inner))
            graph_add_output(graph, m->slot[s], str_format(arena, "out%u", s));
    if (m->options->emitted)
        add_odd_outputs(m);
    if (!graph->output_count)
        graph_add_output(graph, m->slot[0], STR("out"));
}

/* state <- the last value of the main type */
static void add_update(Maker *m)
{
    for (uint32_t s = m->slots; s-- > 0;) {
        if (m->slot[s] == NONE || !is_main(m, m->slot[s]))
            continue;
        const Shape shape = *value_shape(m->graph, m->slot[s]);
        ValueId state = param(m, &shape);
        m->graph->value[state].role = ROLE_STATE;
        ValueId moved = op_build2(m->graph, OP_SUB, state, m->slot[s], (Place){0});
        graph_add_update(m->graph, state, moved, (Place){0});
        return;
    }
}

Graph *random_graph(Module *module, const RandomGraph *options)
{
    Maker m = {.graph = graph_new(module, STR("random")), .options = options};
    add_inputs(&m);
    for (m.step = 0; m.step < options->steps && m.step < RANDOM_MOST; m.step++) {
        m.state = mix(options->seed ^ mix(m.step + 1));
        ValueId made = options->left_out[m.step] ? NONE : make_step(&m);
        m.rough[m.slots] = m.result_rough;
        m.slot[m.slots++] = made;
    }
    add_outputs(&m);
    if (options->calls && options->seed % 3 == 0)
        add_update(&m);
    return m.graph;
}

void random_shrink(RandomGraph *options, bool (*fails)(void *context, const RandomGraph *options), void *context)
{
    while (options->steps > 1) {
        RandomGraph shorter = *options;
        shorter.steps--;
        if (!fails(context, &shorter))
            break;
        *options = shorter;
    }
    for (uint32_t i = options->steps; i-- > 0;) {
        RandomGraph fewer = *options;
        fewer.left_out[i] = true;
        if (!options->left_out[i] && fails(context, &fewer))
            *options = fewer;
    }
}
