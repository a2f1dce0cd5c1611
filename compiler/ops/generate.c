/* Generators: constants, ramps and random numbers from a seed.
 * In a schedule the type comes from `shape` and `dtype`; an initialiser takes the type of what it fills. */
#include "ops/infer.h"

#include <inttypes.h>

#include "ops/families.h"

static bool is_random(OpCode op)
{
    return op != OP_FULL && op != OP_IOTA;
}

/* What is wrong with generating this type, as text; empty when nothing. */
static Str generate_complaint(Arena *arena, const Node *node, DType dtype, uint32_t rank)
{
    if (is_random(node->op) && !dtype_is_float(dtype))
        return str_format(arena, "gives floating-point numbers, not %s", dtype_name(dtype));
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
    const Attr *given = node_attr(n, "shape");
    DType dtype = (DType)attr_int(n, "dtype");

    if (given->i > MAX_RANK)
        return infer_fail(graph, node, "the result would have %" PRId64 " dimensions, more than %d", given->i,
                          MAX_RANK);
    Shape shape = shape_of((uint32_t)given->i, given->ints);
    Str complaint = generate_complaint(graph->module->arena, n, dtype, shape.rank);
    if (complaint.len)
        return infer_fail(graph, node, STR_FMT, STR_ARG(complaint));
    if (!check_least(graph, node, "shape", 0))
        return false;
    return set_plain(graph, node, 0, dtype, &shape);
}

bool op_infer_initial(Graph *graph, ValueId value)
{
    const Value *v = graph_value(graph, value);
    const Node *n = &graph->initial[v->initial];
    const Attr *given = node_attr(n, "shape");
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

void eval_generate(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    (void)graph, (void)node, (void)in, (void)out;
}
