/* Generators: constants, ramps and random numbers from a seed.
 * In a schedule the type comes from `shape` and `dtype`; an initialiser takes the type of what it fills. */
#include "ops/infer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/attr.h"
#include "ops/axis.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/meaning.h"
#include "ops/random.h"

static bool is_random(OpCode op)
{
    return op != OP_FULL && op != OP_IOTA;
}

bool node_is_number(const Node *node, double *number)
{
    if (node->op != OP_FULL)
        return false;
    *number = attr_float(node, "value");
    return true;
}

bool node_is_sum(const Node *node)
{
    return node->op == OP_ADD;
}

bool node_steps(const Graph *graph, const Node *node, double *step)
{
    if ((node->op != OP_ADD && node->op != OP_SUB) || !value_is_number(graph, node->in[1], step))
        return false;
    *step = node->op == OP_ADD ? *step : -*step;
    return true;
}

bool node_is_ramp(const Graph *graph, const Node *node, uint32_t *dimension)
{
    if (node->op != OP_IOTA)
        return false;
    *dimension = axis_position(attr_int(node, "axis"), value_shape(graph, node->out[0])->rank);
    return true;
}

bool node_is_formula(const Node *node)
{
    return op_info(node->op)->family == FAMILY_GENERATE && !is_random(node->op);
}

/* Is there such an element? A number of floats is rounded, but not to infinity, one of integers is itself. */
static bool holds(DType dtype, double number)
{
    uint64_t bits = 0;
    const Type type = {.dtype = dtype};
    Tensor element = {.type = &type, .data = &bits};
    tensor_set_number(&element, 0, number);
    double is = tensor_number(&element, 0);
    return dtype_is_float(dtype) ? isfinite(is) || !isfinite(number) : is == number;
}

/* What is wrong with generating this type, as text; empty when nothing. */
static Str generate_complaint(Arena *arena, const Node *node, DType dtype, uint32_t rank)
{
    if (is_random(node->op) && !dtype_is_float(dtype))
        return str_format(arena, "gives floating-point numbers, not %s", dtype_name(dtype));
    double number;
    if (node_is_number(node, &number) && !holds(dtype, number))
        return str_format(arena, "%.17g is %s %s %s", number, dtype_is_float(dtype) ? "too large for" : "not",
                          strchr("if", *dtype_name(dtype)) ? "an" : "a", dtype_name(dtype));
    if (node->op != OP_IOTA)
        return (Str){0};
    int64_t axis = attr_int(node, "axis");
    if (dtype == DT_BOOL)
        return STR("gives numbers, not bool");
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return str_format(arena, "axis %" PRId64 " is out of range: the shape has %u dimensions", axis, rank);
    return (Str){0};
}

bool infer_generate(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Attr *given = attr_of(n, "shape");
    DType dtype = (DType)attr_int(n, "dtype");

    if (given->i > MAX_RANK)
        return infer_fail(graph, node, "the result would have %" PRId64 " dimensions, more than %d", given->i,
                          MAX_RANK);
    Shape shape = shape_of((uint32_t)given->i, given->ints);
    Str complaint = generate_complaint(graph->module->arena, n, dtype, shape.rank);
    if (complaint.len)
        return infer_fail(graph, node, STR_FMT, STR_ARG(complaint));
    if (!infer_check_least(graph, node, "shape", 0))
        return false;
    return infer_set_plain(graph, node, 0, dtype, &shape);
}

bool op_infer_initial(Graph *graph, ValueId value)
{
    const Value *v = graph_value(graph, value);
    const Node *n = &graph->initial[v->initial];
    const Attr *given = attr_of(n, "shape");
    Diag *diag = graph->module->diag;

    Str complaint = generate_complaint(graph->module->arena, n, v->type->dtype, v->type->shape.rank);
    if (complaint.len)
        return diag_error(diag, n->place, "%s: " STR_FMT, op_info(n->op)->name, STR_ARG(complaint));
    bool same = given->i == v->type->shape.rank;
    for (uint32_t i = 0; same && i < v->type->shape.rank; i++)
        same = given->ints[i] == v->type->shape.dim[i];
    if (given->i && !same)
        return diag_error(diag, n->place, "%s: `shape` differs from " STR_FMT ", which is " STR_FMT,
                          op_info(n->op)->name, STR_ARG(value_show(graph, value)),
                          STR_ARG(type_show(graph->module->arena, v->type)));
    return true;
}

/* Evaluation.  Random numbers come from ops/random.h in double, and are rounded once.
 * Fan in and fan out are those of a weight [o, c, window...] (c and o times the window's size) or, with two
 * dimensions, [in, out]; a vector's are its length. */

typedef struct Fan {
    double in, out;
} Fan;

static Fan fan_of(const Shape *shape)
{
    if (shape->rank == 0)
        return (Fan){1, 1};
    if (shape->rank == 1)
        return (Fan){(double)shape->dim[0], (double)shape->dim[0]};
    if (shape->rank == 2)
        return (Fan){(double)shape->dim[0], (double)shape->dim[1]};
    double window = 1;
    for (uint32_t i = 2; i < shape->rank; i++)
        window *= (double)shape->dim[i];
    return (Fan){(double)shape->dim[1] * window, (double)shape->dim[0] * window};
}

#define CHUNK 1024 /* a multiple of four */

static Random spread_of(const Node *node, const Type *type)
{
    Fan fan = fan_of(&type->shape);
    double limit;

    switch (node->op) {
    case OP_UNIFORM:
        return random_between(attr_float(node, "low"), attr_float(node, "high"), type->dtype);
    case OP_NORMAL:
        return (Random){DRAW_GAUSS, attr_float(node, "mean"), attr_float(node, "std")};
    case OP_HE_NORMAL:
        return (Random){DRAW_GAUSS, 0, sqrt(2 / fan.in)};
    default: /* uniform in [-limit, limit) has the variance limit^2 / 3 */
        limit = sqrt(6 / (node->op == OP_HE_UNIFORM ? fan.in : fan.in + fan.out));
        return random_between(-limit, limit, type->dtype);
    }
}

Initial node_initial(const Node *initial, const Type *type)
{
    if (initial->op == OP_FULL)
        return (Initial){.kind = INITIAL_NUMBER, .number = attr_float(initial, "value")};
    if (initial->op == OP_IOTA)
        return (Initial){.kind = INITIAL_RAMP, .dimension = axis_position(attr_int(initial, "axis"), type->shape.rank)};
    return (Initial){.kind = INITIAL_DRAWN, .key = attr_int(initial, "seed"), .random = spread_of(initial, type)};
}

static void fill_random(const Initial *initial, Tensor *out)
{
    int64_t elements = shape_elements(&out->type->shape);
    double numbers[CHUNK];
    for (int64_t start = 0; start < elements; start += CHUNK) {
        int64_t count = elements - start < CHUNK ? elements - start : CHUNK;
        const Random *random = &initial->random;
        (random->draw == DRAW_UNIT ? random_uniform : random_normal)((uint64_t)initial->key, start, count, random->base,
                                                                     random->scale, numbers);
        elements_store(out, start, count, COMPUTE_F64, numbers);
    }
}

static void fill_ramp(const Initial *initial, Tensor *out)
{
    const Shape *shape = &out->type->shape;
    uint32_t axis = initial->dimension;
    int64_t elements = shape_elements(shape), inner = strided_plain(shape).stride[axis];
    for (int64_t i = 0; i < elements; i++) {
        int64_t position = i / inner % shape->dim[axis];
        elements_store(out, i, 1, COMPUTE_I64, &position);
    }
}

void eval_generate(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    Initial initial = node_initial(node, out[0]->type);
    (void)graph, (void)in;
    if (initial.kind == INITIAL_NUMBER)
        elements_fill(out[0], initial.number);
    else if (initial.kind == INITIAL_RAMP)
        fill_ramp(&initial, out[0]);
    else
        fill_random(&initial, out[0]);
}
