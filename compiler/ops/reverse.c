/* Reverse mode: what the families build with, and those whose gradient is a row of op.def or nothing. */
#include "ops/reverse.h"

#include <assert.h>

#include "ops/families.h"
#include "ops/infer.h"

/* Building */

ValueId reverse_build(Reverse *r, OpCode op, const ValueId *in, uint32_t in_count, const Attr *attr)
{
    ValueId result = op_build(r->graph, op, in, in_count, attr, r->node.place);
    assert(value_type(r->graph, result)); /* families build only what is well typed */
    value_producer(r->graph, result)->from = r->node.from;
    return result;
}

ValueId reverse_build1(Reverse *r, OpCode op, ValueId x)
{
    return reverse_build(r, op, &x, 1, NULL);
}

ValueId reverse_build2(Reverse *r, OpCode op, ValueId x, ValueId y)
{
    return reverse_build(r, op, (ValueId[]){x, y}, 2, NULL);
}

ValueId reverse_number(Reverse *r, DType dtype, double number)
{
    return graph_add_scalar(r->graph, dtype, number);
}

ValueId reverse_full(Reverse *r, DType dtype, const Shape *shape, double number)
{
    Attr attr[8];
    if (shape->rank == 0)
        return reverse_number(r, dtype, number);
    attr_defaults(OP_FULL, attr);
    attr[attr_index(OP_FULL, STR("value"))].f = number;
    attr[attr_index(OP_FULL, STR("dtype"))].i = dtype;
    attr[attr_index(OP_FULL, STR("shape"))] = (Attr){.i = shape->rank, .ints = shape->dim};
    return reverse_build(r, OP_FULL, NULL, 0, attr);
}

static ValueId build_shaped(Reverse *r, OpCode op, ValueId x, const Shape *shape)
{
    Attr attr = {.i = shape->rank, .ints = shape->dim};
    return shape_eq(reverse_shape(r, x), shape) ? x : reverse_build(r, op, &x, 1, &attr);
}

ValueId reverse_zeros(Reverse *r, ValueId like)
{
    return reverse_full(r, value_type(r->graph, like)->dtype, reverse_shape(r, like), 0);
}

ValueId reverse_select(Reverse *r, ValueId mask, ValueId x, ValueId y)
{
    return reverse_build(r, OP_SELECT, (ValueId[]){mask, x, y}, 3, NULL);
}

ValueId reverse_convert(Reverse *r, ValueId x, ValueId like)
{
    Attr to = {.i = value_type(r->graph, like)->dtype};
    return reverse_build(r, OP_CAST, &x, 1, &to);
}

ValueId reverse_reshape(Reverse *r, ValueId x, const Shape *shape)
{
    return build_shaped(r, OP_RESHAPE, x, shape);
}

ValueId reverse_broadcast(Reverse *r, ValueId x, const Shape *shape)
{
    return build_shaped(r, OP_BROADCAST, x, shape);
}

ValueId reverse_transpose(Reverse *r, ValueId x, const uint32_t *axes)
{
    uint32_t rank = reverse_shape(r, x)->rank;
    int64_t order[MAX_RANK];
    bool same = true;
    for (uint32_t d = 0; d < rank; d++) {
        order[d] = axes[d];
        same &= axes[d] == d;
    }
    Attr attr = {.i = rank, .ints = order};
    return same ? x : reverse_build(r, OP_TRANSPOSE, &x, 1, &attr);
}

ValueId reverse_sum(Reverse *r, ValueId x, const bool *over, bool keep)
{
    uint32_t rank = reverse_shape(r, x)->rank;
    int64_t axes[MAX_RANK], count = 0;
    for (uint32_t d = 0; d < rank; d++)
        if (over[d])
            axes[count++] = d;
    if (!count)
        return x;
    Attr attr[2];
    attr[attr_index(OP_REDUCE_SUM, STR("axes"))] = (Attr){.i = count, .ints = axes};
    attr[attr_index(OP_REDUCE_SUM, STR("keep"))] = (Attr){.i = keep};
    return reverse_build(r, OP_REDUCE_SUM, &x, 1, attr);
}

ValueId reverse_sum_to(Reverse *r, ValueId x, const Shape *shape)
{
    Shape from = *reverse_shape(r, x);
    bool over[MAX_RANK];
    uint32_t more = from.rank - shape->rank;
    for (uint32_t d = 0; d < from.rank; d++)
        over[d] = d < more || (shape->dim[d - more] == 1 && from.dim[d] != 1);
    return reverse_reshape(r, reverse_sum(r, x, over, false), shape);
}

ValueId reverse_slice(Reverse *r, ValueId x, const int64_t *begin, const Shape *shape)
{
    int64_t axes[MAX_RANK], from[MAX_RANK], to[MAX_RANK], one = 1, count = 0;
    for (uint32_t d = 0; d < shape->rank; d++)
        if (shape->dim[d] != reverse_shape(r, x)->dim[d]) {
            axes[count] = d;
            from[count] = begin[d];
            to[count++] = begin[d] + shape->dim[d];
        }
    if (!count)
        return x;
    Attr attr[4];
    attr[attr_index(OP_SLICE, STR("axes"))] = (Attr){.i = count, .ints = axes};
    attr[attr_index(OP_SLICE, STR("begin"))] = (Attr){.i = count, .ints = from};
    attr[attr_index(OP_SLICE, STR("end"))] = (Attr){.i = count, .ints = to};
    attr[attr_index(OP_SLICE, STR("step"))] = (Attr){.i = 1, .ints = &one};
    return reverse_build(r, OP_SLICE, &x, 1, attr);
}

ValueId reverse_pad(Reverse *r, ValueId x, const int64_t *begin, const Shape *shape)
{
    const Shape *part = reverse_shape(r, x);
    int64_t after[MAX_RANK];
    if (shape_eq(part, shape))
        return x;
    for (uint32_t d = 0; d < shape->rank; d++)
        after[d] = shape->dim[d] - begin[d] - part->dim[d];
    Attr attr[3];
    attr[attr_index(OP_PAD, STR("before"))] = (Attr){.i = shape->rank, .ints = begin};
    attr[attr_index(OP_PAD, STR("after"))] = (Attr){.i = shape->rank, .ints = after};
    attr[attr_index(OP_PAD, STR("value"))] = (Attr){.f = 0};
    return reverse_build(r, OP_PAD, &x, 1, attr);
}

ValueId reverse_further(Reverse *r, ValueId x, uint32_t dimension, int64_t by)
{
    Shape whole = *reverse_shape(r, x), rest = whole;
    int64_t from[MAX_RANK] = {0}, to[MAX_RANK] = {0};
    rest.dim[dimension] -= by < 0 ? -by : by;
    from[dimension] = by < 0 ? 0 : by;
    to[dimension] = by < 0 ? -by : 0;
    return reverse_pad(r, reverse_slice(r, x, from, &rest), to, &whole);
}

/* Answering */

static void give(Reverse *r, Adjoint adjoint)
{
    if (adjoint.value != NONE)
        ARENA_PUSH(r->scratch, r->adjoint, r->count, r->capacity, adjoint);
}

void reverse_give(Reverse *r, uint32_t operand, ValueId value)
{
    assert(value == NONE || value_type(r->graph, value) == value_type(r->graph, r->node.in[operand]));
    give(r, (Adjoint){.operand = operand, .value = value, .whole = true});
}

void reverse_give_part(Reverse *r, uint32_t operand, ValueId value, const int64_t *begin)
{
    const Shape *whole = reverse_shape(r, r->node.in[operand]);
    Adjoint adjoint = {.operand = operand, .value = value};
    for (uint32_t d = 0; d < whole->rank; d++)
        adjoint.begin[d] = begin[d];
    adjoint.whole = shape_eq(reverse_shape(r, value), whole);
    give(r, adjoint);
}

bool op_reverse(Reverse *r)
{
    const FamilyRow *row = &family_table[op_info(r->node.op)->family];
    if (row->reverse)
        return row->reverse(r);
    return node_error(r->graph, &r->node, "%s has no gradient", op_info(r->node.op)->name);
}

static bool is_zero(const ScalarList *list)
{
    return list->count == 1 && list->term[0].word == WORD_NUMBER && list->term[0].number == 0;
}

bool op_passes_gradient(const Graph *graph, const Node *node, uint32_t operand)
{
    const OpInfo *info = op_info(node->op);
    if (!dtype_is_float(value_type(graph, node->in[operand])->dtype))
        return false;
    if (info->family == FAMILY_VIEW)
        return operand == 0;
    return info->family != FAMILY_ELEMENTWISE || !is_zero(info->gradient[operand]);
}

/* Elementwise ops: the row's own expression, a node for each of its terms. */

static ValueId build_term(Reverse *r, const ScalarList *list, const ValueId *value, uint32_t t)
{
    const ScalarTerm *term = &list->term[t];
    DType dtype = value_type(r->graph, r->down[0])->dtype;
    ValueId in[3];
    if (term->word == WORD_NUMBER)
        return reverse_number(r, dtype, term->number);
    if (term->word == WORD_OPERAND)
        return term->arg[0] < r->node.in_count    ? r->node.in[term->arg[0]]
               : term->arg[0] == r->node.in_count ? r->node.out[0]
                                                  : r->down[0];
    for (uint32_t i = 0; i < term->args; i++)
        in[i] = value[term->arg[i]];
    return reverse_build(r, op_of_word(term->word), in, term->args, NULL);
}

/* NONE where it is 0. */
static ValueId build_gradient(Reverse *r, const ScalarList *list)
{
    ValueId value[MOST_TERMS];
    if (is_zero(list))
        return NONE;
    for (uint32_t t = 0; t < list->count; t++)
        value[t] = build_term(r, list, value, t);
    return value[list->count - 1];
}

bool reverse_elementwise(Reverse *r)
{
    const OpInfo *info = op_info(r->node.op);
    for (uint32_t i = 0; i < r->node.in_count; i++) {
        ValueId gradient = r->wanted[i] ? build_gradient(r, info->gradient[i]) : NONE;
        if (gradient != NONE)
            reverse_give(r, i, reverse_sum_to(r, gradient, reverse_shape(r, r->node.in[i])));
    }
    return true;
}

bool reverse_cast(Reverse *r)
{
    Attr to = {.i = value_type(r->graph, r->node.in[0])->dtype};
    if (!op_keeps_bits(r->node.op))
        reverse_give(r, 0, reverse_build(r, OP_CAST, r->down, 1, &to));
    return true;
}
