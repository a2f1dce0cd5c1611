/* Steps with bodies: loops and branches, nested, whose insides are random steps again.
 *
 * A body takes over the maker: its slots are the graph's inputs, which all bodies capture, more captured values, and
 * what the loop carries.  Rounds are few, and what is carried stays small. */
#include "random_maker.h"

#include <string.h>

#include "ops/meaning.h"

#define DEEPEST  3
#define OPERANDS 16

typedef struct Operands {
    ValueId in[OPERANDS];
    uint32_t carried, count; /* carried ones first, of which the last is an i32 that counts rounds */
} Operands;

static bool is_plain(const Maker *m, ValueId v)
{
    return !maker_type_of(m, v)->layout.block;
}

static ValueId scalar(Maker *m, DType dtype, double number)
{
    return graph_add_scalar(m->graph, dtype, number);
}

/* 0 to 3, known when running: the place of a largest element. */
static ValueId running_number(Maker *m)
{
    ValueId place = maker_with_attr(m, OP_ARGMAX, &m->slot[2], 1, "axis", (Attr){.i = -1});
    place = maker_build(m, OP_REDUCE_MAX, &place, 1, NULL);
    ValueId in[] = {place, scalar(m, DT_I64, 4)};
    ValueId small = maker_build(m, OP_MOD, in, 2, NULL);
    return maker_with_attr(m, OP_CAST, &small, 1, "to", (Attr){.i = DT_I32});
}

static ValueId small_number(Maker *m)
{
    return maker_chance(m, 60) ? scalar(m, DT_I32, maker_draw(m, 5)) : running_number(m);
}

/* The inputs of the graph, then some other values, perhaps one twice. */
static void capture(Maker *m, Operands *operands)
{
    for (uint32_t i = 0; i < RANDOM_INPUTS; i++)
        operands->in[operands->count++] = m->slot[i];
    for (uint32_t extra = maker_draw(m, 4); extra > 0; extra--) {
        ValueId v = maker_pick(m);
        if (is_plain(m, v))
            operands->in[operands->count++] = v;
    }
}

/* The maker of a body. */
static Maker enter(Maker *m, const Operands *operands)
{
    Maker inner = *m;
    Graph *outer = m->graph, *body = graph_new(outer->module, STR("body"));
    inner.graph = inner.body = body;
    inner.nesting++;
    inner.step = 1000 + maker_draw(m, 1 << 30); /* names what is made inside */
    inner.next = NONE;
    inner.slots = 0;
    for (uint32_t i = 0; i < operands->count; i++) {
        bool named = i < operands->carried && maker_chance(m, 50);
        Str name = named ? str_format(outer->module->arena, "h%u", i) : (Str){0};
        graph_add_input(body, value_type(outer, operands->in[i]), name, (Place){0});
    }
    for (uint32_t i = operands->carried; i < operands->count; i++)
        inner.slot[inner.slots++] = body->input[i];
    for (uint32_t i = 0; i < operands->carried; i++)
        inner.slot[inner.slots++] = body->input[i];
    for (uint32_t i = 0; i < inner.slots; i++)
        inner.rough[i] = m->options->emitted;
    return inner;
}

static void make_steps(Maker *inner)
{
    for (uint32_t count = maker_draw(inner, 4); count > 0; count--) {
        ValueId made = maker_step(inner);
        inner->rough[inner->slots] = inner->result_rough;
        inner->slot[inner->slots++] = made;
    }
}

/* Some value of x's type, from what the body has made. */
static ValueId next_value(Maker *inner, ValueId x)
{
    ValueId like = maker_pick_like(inner, x, MAX_RANK);
    if (maker_type_of(inner, like) != maker_type_of(inner, x))
        like = x;
    switch (maker_draw(inner, 5)) {
    case 0:
        return like; /* as it is: itself, or in another place */
    case 1:
        return maker_unary(inner, OP_NEG, like);
    case 2: {
        ValueId in[] = {like, scalar(inner, inner->options->dtype, 0.5)};
        return maker_build(inner, OP_MUL, in, 2, NULL);
    }
    case 3: {
        ValueId in[] = {like, inner->slot[inner->slots - 1] == NONE ? x : like};
        return maker_unary(inner, OP_TANH, maker_build(inner, OP_SUB, in, 2, NULL));
    }
    default:
        return maker_unary(inner, OP_TANH, like);
    }
}

/* Loops */

static void carry(Maker *m, Operands *operands)
{
    for (uint32_t tries = 1 + maker_draw(m, 3); tries > 0; tries--) {
        ValueId v = maker_pick(m);
        if (maker_is_main(m, v) && is_plain(m, v))
            operands->in[operands->carried++] = v;
    }
    if (!operands->carried)
        operands->in[operands->carried++] = m->slot[2];
    operands->in[operands->carried++] = scalar(m, DT_I32, 0);
    operands->count = operands->carried;
}

/* i < bound, and perhaps something about the first carried value. */
static ValueId condition(Maker *inner, ValueId i, ValueId bound, bool data)
{
    ValueId in[] = {i, bound};
    ValueId more = maker_build(inner, OP_LT, in, 2, NULL);
    if (!data || shape_elements(value_shape(inner->graph, inner->graph->input[0])) == 0)
        return more;
    ValueId least = maker_build(inner, OP_REDUCE_MIN, &inner->graph->input[0], 1, NULL);
    ValueId under[] = {least, scalar(inner, inner->options->dtype, 0.25)};
    ValueId both[] = {more, maker_build(inner, OP_LT, under, 2, NULL)};
    return maker_build(inner, OP_AND, both, 2, NULL);
}

static Graph *loop_body(Maker *m, const Operands *operands, ValueId *count)
{
    Maker inner = enter(m, operands);
    make_steps(&inner);
    for (uint32_t i = 0; i + 1 < operands->carried; i++)
        graph_add_output(inner.graph, next_value(&inner, inner.graph->input[i]), (Str){0});
    ValueId in[] = {inner.graph->input[operands->carried - 1], scalar(&inner, DT_I32, 1)};
    *count = maker_build(&inner, OP_ADD, in, 2, NULL);
    graph_add_output(inner.graph, *count, (Str){0});
    m->state = inner.state;
    return inner.graph;
}

/* The last operand is the bound. */
static void add_condition(Maker *m, Graph *body, const Operands *operands, ValueId count, bool data)
{
    Maker inner = *m;
    inner.graph = body;
    graph_add_output(body, condition(&inner, count, body->input[operands->count - 1], data), (Str){0});
    m->state = inner.state;
}

ValueId step_loop(Maker *m)
{
    Operands operands = {0};
    Loop loop = {0};
    ValueId count;
    bool data = !m->options->emitted && maker_chance(m, 40), tests_first = maker_chance(m, 60);
    if (m->nesting >= DEEPEST)
        return NONE;
    carry(m, &operands);
    capture(m, &operands);
    operands.in[operands.count++] = small_number(m);

    loop.carried = operands.carried;
    loop.captured = operands.count - operands.carried;
    loop.most = maker_chance(m, 30) ? 1 + maker_draw(m, 4) : 0;
    loop.unroll = maker_chance(m, 30) ? maker_draw(m, 5) : 0;
    loop.body = loop_body(m, &operands, &count);
    if (tests_first) {
        Maker inner = enter(m, &operands);
        loop.condition = inner.graph;
        count = loop.condition->input[operands.carried - 1];
    }
    add_condition(m, tests_first ? loop.condition : loop.body, &operands, count, data);
    NodeId node = op_build_loop(m->graph, &loop, operands.in, (Place){0});
    m->result_rough = m->options->emitted;
    m->part = m->graph->node[node].out[operands.carried > 2 ? 1 : 0];
    return m->graph->node[node].out[0];
}

/* Branches */

ValueId step_branch(Maker *m)
{
    static const int64_t keys[] = {0, 2, 1};
    static const int64_t truth = 1;
    Operands operands = {.in = {NONE}, .count = 1};
    Graph *branch[4];
    ValueId x = maker_pick(m), number = small_number(m);
    bool flag = maker_chance(m, 40);
    Branches branches = {.keys = flag ? 1 : 1 + maker_draw(m, 3), .key = flag ? &truth : keys};

    if (m->nesting >= DEEPEST || !is_plain(m, x) || !maker_is_main(m, x))
        return NONE;
    ValueId in[] = {number, scalar(m, DT_I32, 1)};
    operands.in[0] = flag ? maker_build(m, OP_LE, in, 2, NULL) : number;
    capture(m, &operands);
    operands.in[operands.count++] = x;
    Operands inside = {.count = operands.count - 1};
    memcpy(inside.in, operands.in + 1, inside.count * sizeof *inside.in);
    branches.captured = inside.count;
    for (uint32_t i = 0; i <= branches.keys; i++) {
        Maker inner = enter(m, &inside);
        make_steps(&inner);
        ValueId own = inner.graph->input[inside.count - 1];
        graph_add_output(inner.graph, next_value(&inner, own), (Str){0});
        m->state = inner.state;
        branch[i] = inner.graph;
    }
    NodeId node = op_build_choice(m->graph, &branches, operands.in, branch, (Place){0});
    m->result_rough = m->options->emitted;
    return m->graph->node[node].out[0];
}

/* Parts at run-time positions */

/* What reads a part that nobody else does: through a view, or as it is. */
static ValueId read_part(Maker *m, ValueId part)
{
    static ValueId (*const reader[])(Maker *) = {step_rows,   step_reduce, step_matmul, step_product,
                                                 step_binary, step_arg,    step_dynamic};
    if (maker_chance(m, 60))
        part = (maker_chance(m, 60) ? maker_reshape : maker_transpose)(m, part);
    m->next = part;
    ValueId read = reader[maker_draw(m, sizeof reader / sizeof *reader)](m);
    m->next = NONE;
    return read == NONE ? part : read;
}

ValueId step_dynamic(Maker *m)
{
    ValueId x = maker_pick(m), in[3] = {x}, at[MAX_RANK];
    Shape shape = *value_shape(m->graph, x);
    int64_t sizes[MAX_RANK];
    if (!shape.rank || !is_plain(m, x))
        return NONE;
    ValueId number = running_number(m);
    for (uint32_t d = 0; d < shape.rank; d++) {
        sizes[d] =
            shape.dim[d] > 1 ? shape.dim[d] - (int64_t)maker_draw(m, (uint32_t)(shape.dim[d] - 1)) : shape.dim[d];
        at[d] = maker_chance(m, 50) ? number : scalar(m, DT_I32, (double)maker_draw(m, 9) - 4);
    }
    in[1] = maker_build(m, OP_STACK, at, shape.rank, NULL);
    ValueId part = maker_with_attr(m, OP_DYNAMIC_SLICE, in, 2, "sizes", maker_ints(sizes, shape.rank));
    if (maker_chance(m, 60))
        return maker_chance(m, 70) ? read_part(m, part) : part;
    at[0] = scalar(m, DT_I32, 1);
    in[1] = maker_build(m, OP_STACK, at, shape.rank, NULL);
    in[2] = maker_changed(m, part);
    return maker_build(m, OP_DYNAMIC_UPDATE, in, 3, NULL);
}
