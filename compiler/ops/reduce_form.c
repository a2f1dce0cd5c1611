/* The normal form of reductions and pools. */
#include "ops/meaning.h"

#include <math.h>

#include "ir/attr.h"
#include "ops/axis.h"
#include "ops/window.h"

bool node_is_reduction(const Graph *graph, const Node *node)
{
    OpFamily family = op_info(node->op)->family;
    (void)graph;
    return family == FAMILY_REDUCE || family == FAMILY_POOL || family == FAMILY_MATCH;
}

double reduction_neutral(Word combine, DType dtype)
{
    static const double least[DT_COUNT] = {[DT_I64] = -0x1p63, [DT_I32] = -0x1p31, [DT_I16] = -0x1p15, [DT_I8] = -128};
    static const double most[DT_COUNT] = {
        [DT_I64] = 0x1p63, [DT_I32] = 0x1p31 - 1, [DT_I16] = 0x1p15 - 1, [DT_I8] = 127, [DT_U8] = 255,
        [DT_U64] = 0x1p64, [DT_U32] = 0x1p32 - 1, [DT_U16] = 0x1p16 - 1, [DT_BOOL] = 1};
    bool real = dtype_is_float(dtype);
    switch (combine) {
    case WORD_MAX:
        return real ? -INFINITY : least[dtype];
    case WORD_MIN:
        return real ? INFINITY : most[dtype];
    case WORD_MUL:
        return 1;
    default:
        return 0;
    }
}

DType reduction_accumulator(DType dtype)
{
    return dtype == DT_F16 || dtype == DT_BF16 ? DT_F32 : dtype;
}

static Word combining_word(OpCode op)
{
    switch (op) {
    case OP_REDUCE_MAX:
    case OP_ARGMAX:
    case OP_MAX_POOL:
        return WORD_MAX;
    case OP_REDUCE_MIN:
    case OP_ARGMIN:
        return WORD_MIN;
    case OP_REDUCE_PROD:
        return WORD_MUL;
    default:
        return WORD_ADD;
    }
}

static ReductionKind kind_of(OpCode op)
{
    switch (op) {
    case OP_ARGMAX:
    case OP_ARGMIN:
        return REDUCE_POSITION;
    case OP_AVG_POOL:
        return REDUCE_MEAN;
    case OP_POOL_COLLECT:
        return REDUCE_COLLECT;
    case OP_POOL_SPREAD:
        return REDUCE_SPREAD;
    default:
        return REDUCE_VALUES;
    }
}

static void read_window(const Node *node, const Shape *shape, Reduction *reduction)
{
    reduction->has_window = true;
    reduction->window = window_of(node, shape, NULL);
    reduction->count_pad = reduction->kind == REDUCE_MEAN && attr_bool(node, "count_pad");
}

/* All dimensions when none are named. */
static void read_axes(const Node *node, Reduction *reduction)
{
    bool one = reduction->kind == REDUCE_POSITION;
    const Attr *axes = attr_of(node, one ? "axis" : "axes");
    reduction->keep = attr_bool(node, "keep");
    for (uint32_t d = 0; d < reduction->rank; d++)
        reduction->reduced[d] = !one && axes->i == 0;
    if (one)
        reduction->reduced[axis_position(axes->i, reduction->rank)] = true;
    else
        for (int64_t i = 0; i < axes->i; i++)
            reduction->reduced[axis_position(axes->ints[i], reduction->rank)] = true;
}

Reduction reduction_of(const Graph *graph, const Node *node)
{
    const Type *type = value_type(graph, node->in[0]);
    Reduction reduction = {.kind = kind_of(node->op),
                           .combine = combining_word(node->op),
                           .accumulator = reduction_accumulator(type->dtype),
                           .rank = type->shape.rank};
    if (op_info(node->op)->family != FAMILY_REDUCE)
        read_window(node, &type->shape, &reduction);
    else
        read_axes(node, &reduction);
    return reduction;
}

bool reduction_is_of_rows(const Reduction *reduction, uint32_t *row_rank)
{
    uint32_t first = 0;
    if (reduction->has_window || reduction->kind == REDUCE_POSITION)
        return false;
    while (first < reduction->rank && !reduction->reduced[first])
        first++;
    *row_rank = first;
    for (uint32_t d = first; d < reduction->rank; d++)
        if (!reduction->reduced[d])
            return false;
    return first < reduction->rank;
}
