/* What blocks of threads see of a contraction: rows, columns, a depth, and operands by these. */
#include "kernel/lower/blocked.h"

/* Operands */

static const Expr *fetch(const Blocked *b, ValueId value, const Index *position)
{
    return expr_cast(b->lower->arena, b->dtype, lower_value(b->lower, value, position));
}

/* The first channel of the group. */
static Index of_group(const Blocked *b, int64_t channels, Index channel)
{
    return index_add(b->lower->arena, index_scale(b->lower->arena, b->batch[1], channels / b->conv.groups), channel);
}

/* Channels and taps. */
static void unflatten_depth(const Blocked *b, Index depth, Index *tap)
{
    const Shape *w = value_shape(b->lower->graph, b->node->in[1]);
    if (b->shape.by_tap) {
        tap[0] = depth;
        index_unflatten(b->lower->arena, b->tap, w->dim + 2, b->conv.window.rank, tap + 1);
    } else
        index_unflatten(b->lower->arena, depth, w->dim + 1, 1 + b->conv.window.rank, tap);
}

/* [depth][output] or [tap][channel][output]. */
void blocked_pack(Blocked *b)
{
    int64_t channels = b->depth / b->taps, outputs = b->conv.outputs, taps = b->taps;
    Packing packing;
    if (!b->packed)
        return;
    memset(&packing, 0, sizeof packing); /* compared as bytes */
    packing.rank = 3;
    bool by_tap = b->shape.by_tap;
    packing.extent[0] = by_tap ? taps : channels, packing.stride[0] = by_tap ? 1 : taps;
    packing.extent[1] = by_tap ? channels : taps, packing.stride[1] = by_tap ? taps : 1;
    packing.extent[2] = outputs, packing.stride[2] = b->depth;
    b->weights = lower_weights(b->lower, b->node->in[1], &packing, b->depth * outputs);
}

static const Expr *packed_left(const Blocked *b, Index row, Index depth)
{
    Arena *arena = b->lower->arena;
    if (b->shape.by_tap)
        depth = index_add(arena, index_scale(arena, b->tap, b->depth / b->taps), depth);
    Index at = index_add(arena, index_scale(arena, depth, b->conv.outputs), of_group(b, b->conv.outputs, row));
    return expr_load(arena, b->dtype, b->weights, at);
}

/* Pixels of the result. */
static void unflatten_column(const Blocked *b, Index column, Index *pixel)
{
    const Shape *y = value_shape(b->lower->graph, b->node->out[0]);
    index_unflatten(b->lower->arena, column, y->dim + 2, b->conv.window.rank, pixel);
}

static const Expr *conv_left(const Blocked *b, Index row, Index depth)
{
    Index position[MAX_RANK] = {of_group(b, b->conv.outputs, row)};
    if (b->packed)
        return packed_left(b, row, depth);
    unflatten_depth(b, depth, position + 1);
    return fetch(b, b->node->in[1], position);
}

static const Expr *conv_right(const Blocked *b, Index depth, Index column, Guard *guard, uint32_t *guards)
{
    Arena *arena = b->lower->arena;
    const Window *window = &b->conv.window;
    Index tap[MAX_RANK], out[MAX_RANK], position[MAX_RANK] = {b->batch[0]};
    unflatten_depth(b, depth, tap);
    unflatten_column(b, column, out);
    position[1] = of_group(b, b->conv.channels, tap[0]);
    for (uint32_t i = 0; i < window->rank; i++) {
        const WindowDimension *d = &window->dim[i];
        position[2 + i] = lower_tap_at(arena, d, out[i], tap[1 + i]);
        guard[(*guards)++] = (Guard){position[2 + i], d->in};
    }
    return fetch(b, b->node->in[0], position);
}

static const Expr *matmul_operand(const Blocked *b, bool right, Index across, Index depth)
{
    Index position[MAX_RANK];
    lower_product_position(b->lower, b->node, &b->product, right, b->batch, across, depth, position);
    return fetch(b, b->node->in[right], position);
}

bool blocked_lies_across(const Blocked *b, bool right)
{
    return right ? !b->product.transposed : b->packed;
}

const Expr *blocked_operand(const Blocked *b, bool right, Index across, Index depth)
{
    Guarded guarded;
    Guard guard[MAX_RANK + 3];
    uint32_t guards = 0;
    lower_guard_open(b->lower, &guarded);
    const Expr *value = b->is_product ? matmul_operand(b, right, across, depth)
                        : right       ? conv_right(b, depth, across, guard, &guards)
                                      : conv_left(b, across, depth);
    guard[guards++] = (Guard){depth, b->shape.by_tap ? b->depth / b->taps : b->depth};
    if (b->shape.by_tap)
        guard[guards++] = (Guard){b->tap, b->taps};
    guard[guards++] = (Guard){across, right ? b->columns : b->rows};
    return lower_guard_close(b->lower, &guarded, value, guard, guards, expr_number(b->lower->arena, b->dtype, 0));
}

void blocked_position(const Blocked *b, Index row, Index column, Index *position)
{
    if (!b->is_product) {
        position[0] = b->batch[0];
        position[1] = of_group(b, b->conv.outputs, row);
        unflatten_column(b, column, position + 2);
        return;
    }
    uint32_t rank = b->batch_rank;
    for (uint32_t d = 0; d < rank; d++)
        position[d] = b->batch[d];
    if (b->product.has_rows)
        position[rank++] = row;
    if (b->product.has_columns)
        position[rank] = column;
}

/* Which */

static void see_product(Blocked *b, const Shape *y)
{
    b->rows = b->product.has_rows ? b->product.rows : 1;
    b->columns = b->product.has_columns ? b->product.columns : 1;
    b->depth = b->product.depth;
    b->batch_rank = b->product.batch_rank;
    for (uint32_t d = 0; d < b->batch_rank; d++)
        b->batch_extent[d] = y->dim[d];
}

static void see_conv(Blocked *b, const Shape *y)
{
    b->rows = b->conv.outputs / b->conv.groups, b->columns = 1;
    for (uint32_t i = 0; i < b->conv.window.rank; i++) {
        b->columns *= b->conv.window.dim[i].out;
        b->taps *= b->conv.window.dim[i].size;
    }
    b->depth = b->conv.channels / b->conv.groups * b->taps;
    b->packed = lower_has_constant_weights(b->lower, b->node, &b->conv);
    b->batch_rank = 2;
    b->batch_extent[0] = y->dim[0], b->batch_extent[1] = b->conv.groups;
}

bool blocked_see(Blocked *b)
{
    const Graph *graph = b->lower->graph;
    const Type *type = value_type(graph, b->node->out[0]);
    b->dtype = reduction_accumulator(type->dtype);
    b->taps = 1;
    b->is_product = product_of(graph, b->node, &b->product);
    if (b->is_product)
        see_product(b, &type->shape);
    else if (convolution_of(graph, b->node, &b->conv))
        see_conv(b, &type->shape);
    else
        return false;
    b->batches = 1;
    for (uint32_t d = 0; d < b->batch_rank; d++)
        b->batches *= b->batch_extent[d];
    return !type->layout.block;
}
