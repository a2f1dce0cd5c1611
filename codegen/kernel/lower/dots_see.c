/* The operands of dot products: where they are, what they are made of, and whether rows of them can be read. */
#include "kernel/lower/dots.h"
#include "passes/widen.h"

#include <string.h>

#define FEW_VECTORS  2  /* of sums, which multiply-adds of a step of the depth do not fill */
#define FEW_COLUMNS  4  /* in a vector, which tiles of several rows would fill up with zeros */
#define LONG_VECTORS 16 /* of the depth, beside which the lanes' total at its end is little */
#define SOME_VECTORS 2  /* of it, that are worth a total for each row */

static void operand_position(const Dots *d, bool right, Index depth, Index *position)
{
    Index row = index_var(d->lower->arena, d->loop[d->product.batch_rank]);
    lower_product_position(d->lower, d->node, &d->product, right, d->batch, right ? d->column : row, depth, position);
}

/* Where one of the factors of scaled rows is, which may lie behind views. */
static ValueId factor_position(const Dots *d, uint32_t which, Index depth, Index *position)
{
    const Graph *graph = d->lower->graph;
    Index whole[MAX_RANK];
    operand_position(d, true, depth, whole);
    for (ValueId value = d->node->in[1]; value != d->scaled->out[0];) {
        const Node *view = value_producer(graph, value);
        kernel_view_position(d->lower->arena, graph, view, graph->value[value].result, whole, position);
        value = view->in[0];
        for (uint32_t i = 0; i < value_shape(graph, value)->rank; i++)
            whole[i] = position[i];
    }
    ValueId factor = d->scaled->in[which];
    lower_broadcast_position(value_shape(graph, factor), value_shape(graph, d->scaled->out[0]), whole, position);
    return factor;
}

static const Expr *packed_element(const Dots *d, Index depth)
{
    Arena *arena = d->lower->arena;
    DType dtype = value_type(d->lower->graph, d->source)->dtype;
    Index at = index_add(arena, index_scale(arena, d->column, d->product.depth), depth);
    return expr_cast(arena, DT_F32, expr_load(arena, dtype, d->weights, at));
}

const Expr *dots_element(const Dots *d, bool right, Index depth)
{
    Index position[MAX_RANK];
    if (right && d->scaled)
        return lower_value(d->lower, factor_position(d, 1 - d->scale, depth, position), position);
    if (right && d->packed)
        return packed_element(d, depth);
    operand_position(d, right, depth, position);
    return lower_value(d->lower, d->node->in[right], position);
}

const Expr *dots_scale(const Dots *d, Index depth)
{
    Index position[MAX_RANK];
    ValueId factor = factor_position(d, d->scale, depth, position);
    return lower_value(d->lower, factor, position);
}

static int64_t elements(const Graph *graph, ValueId value)
{
    return shape_elements(value_shape(graph, value));
}

/* What is widened, scaled and viewed to the operand: what has most elements. */
static ValueId rows_of(const Lower *lower, ValueId value)
{
    const Graph *graph = lower->graph;
    const Node *node;
    while ((node = value_producer(graph, value)) &&
           (kernel_makes(lower, value) || kernel_value_is_view(graph, value))) {
        ValueId most = node->in[0];
        for (uint32_t i = 1; i < node->in_count; i++)
            most = elements(graph, node->in[i]) > elements(graph, most) ? node->in[i] : most;
        value = most;
    }
    return value;
}

static bool is_constant(const Graph *graph, ValueId value)
{
    Role role = graph->value[value].role;
    return role == ROLE_CONST || role == ROLE_PARAM;
}

bool dots_suits_constant(const Lower *lower, const Node *node)
{
    const Target *target = lower->target;
    ValueId weights = rows_of(lower, node->in[1]);
    const Type *type = value_type(lower->graph, weights);
    Product product;
    if (!is_constant(lower->graph, weights) || lower->nibbles[weights] || !product_of(lower->graph, node, &product))
        return false;
    bool row = elements(lower->graph, node->out[0]) == product.columns;
    int64_t few = row ? FEW_VECTORS * target->lanes : target->lanes / FEW_COLUMNS;
    return (product.columns <= few && product.depth >= LONG_VECTORS * target->lanes) ||
           (row && type_bytes(type) > (type->dtype == DT_F32 ? target->l2_bytes : target->l1_bytes));
}

bool dots_suits_column(const Lower *lower, const Node *node)
{
    Product product;
    return product_of(lower->graph, node, &product) && product.columns == 1 &&
           product.depth >= SOME_VECTORS * lower->target->lanes;
}

/* Of elements that lie two to a byte, is the first one of even steps of the depth the low one? */
static bool begins_with_byte(const Dots *d, ValueId source, Index address, const Var *k)
{
    Index start = index_substitute(d->lower->arena, address, k, index_constant(0));
    return !d->lower->nibbles[source] || index_is_even(start);
}

/* In memory, one element behind the other? */
static bool follows_depth(const Dots *d, bool right)
{
    Lower *lower = d->lower;
    ValueId value = lower_stored_operand(lower, d->node->in[right]), source;
    DType dtype = value_type(lower->graph, value)->dtype;
    const Var *k = index_var_new(lower->arena, "k", 0, d->product.depth - 1);
    Index position[MAX_RANK], address;
    int64_t step;
    operand_position(d, right, index_var(lower->arena, k), position);
    return (dtype == DT_F32 || widen_is_narrow(dtype)) && !kernel_computes(lower, value) &&
           lower_memory_source(lower, value, position, &source, &address) && index_factor(address, k, &step) &&
           step == 1 && begins_with_byte(d, source, address, k);
}

bool dots_packing(const Dots *d, ValueId *source, Packing *packing)
{
    Arena *arena = d->lower->arena;
    Dots whole = *d;
    const Var *digit[] = {index_var_new(arena, "column", 0, d->product.columns - 1),
                          index_var_new(arena, "depth", 0, d->product.depth - 1)};
    Index position[MAX_RANK], address;
    memset(packing, 0, sizeof *packing); /* compared as bytes */
    whole.column = index_var(arena, digit[0]);
    operand_position(&whole, true, index_var(arena, digit[1]), position);
    ValueId stored = lower_stored_operand(d->lower, d->node->in[1]);
    if (kernel_computes(d->lower, stored) || !lower_memory_source(d->lower, stored, position, source, &address) ||
        !is_constant(d->lower->graph, *source) || address.count > 2)
        return false;
    packing->rank = 2;
    packing->start = address.constant;
    for (uint32_t i = 0; i < packing->rank; i++) {
        packing->extent[i] = digit[i]->high + 1;
        if (!index_factor(address, digit[i], &packing->stride[i]))
            return false;
    }
    return true;
}

/* For which tiles would pack the constants, too. */
static bool packs_constant(Dots *d)
{
    const Graph *graph = d->lower->graph;
    Packing packing;
    DType dtype = value_type(graph, lower_stored_operand(d->lower, d->node->in[1]))->dtype;
    return (dtype == DT_F32 || widen_is_narrow(dtype)) && dots_suits_constant(d->lower, d->node) &&
           dots_packing(d, &d->source, &packing);
}

/* The leaf of most elements follows the depth within a block, and the others stay where they are. */
static bool is_row(const Dots *d, uint32_t which, Index start, const Var *k)
{
    Arena *arena = d->lower->arena;
    Index position[MAX_RANK];
    ValueId factor = factor_position(d, which, index_add(arena, start, index_var(arena, k)), position);
    Leaves leaves;
    int64_t step, rows = 0;
    if (!lower_leaves(d->lower, factor, position, &leaves))
        return false;
    for (uint32_t i = 0; i < leaves.count; i++) {
        const Leaf *leaf = &leaves.leaf[i];
        if (!index_factor(leaf->address, k, &step) || step > 1 || step < 0 ||
            !begins_with_byte(d, leaf->value, leaf->address, k))
            return false;
        rows += step;
    }
    return rows == 1;
}

static bool is_scale(const Dots *d, Index start, const Var *k)
{
    Arena *arena = d->lower->arena;
    Index position[MAX_RANK];
    ValueId factor = factor_position(d, d->scale, index_add(arena, start, index_var(arena, k)), position);
    Leaves leaves;
    int64_t step;
    bool still = lower_leaves(d->lower, factor, position, &leaves);
    for (uint32_t i = 0; still && i < leaves.count; i++)
        still = index_factor(leaves.leaf[i].address, k, &step) && step == 0;
    return still;
}

/* For how many steps of the depth the factor stays the same; 0 when it may not be a scale. */
static int64_t scale_block(const Dots *d, uint32_t which)
{
    const Var *k = index_var_new(d->lower->arena, "k", 0, d->product.depth - 1);
    Index position[MAX_RANK];
    ValueId factor = factor_position(d, which, index_var(d->lower->arena, k), position);
    Leaves leaves;
    int64_t block = 0;
    if (!lower_leaves(d->lower, factor, position, &leaves))
        return 0;
    for (uint32_t i = 0; i < leaves.count; i++) {
        int64_t cut = index_cut(leaves.leaf[i].address, k, NULL);
        block = cut > 1 && (!block || cut < block) ? cut : block;
    }
    return block;
}

/* Blocks of whole vectors, none left over; each stream's rows and scales lie so. */
static bool scales_blocks(Dots *d)
{
    int64_t lanes = d->lower->target->lanes, depth = d->product.depth;
    for (d->scale = 0; d->scale < 2; d->scale++) {
        d->block = scale_block(d, d->scale);
        if (!d->block || d->block % lanes || depth % d->block)
            continue;
        const Var *block = index_var_new(d->lower->arena, "block", 0, depth / d->block - 1);
        const Var *k = index_var_new(d->lower->arena, "k", 0, d->block - 1);
        Index start = index_scale(d->lower->arena, index_var(d->lower->arena, block), d->block);
        if (is_scale(d, start, k) && is_row(d, 1 - d->scale, start, k))
            return true;
    }
    return false;
}

static void make_loops(Dots *d)
{
    Arena *arena = d->lower->arena;
    const Shape *result = value_shape(d->lower->graph, d->node->out[0]);
    uint32_t batch = d->product.batch_rank;
    for (uint32_t i = 0; i < batch; i++) {
        d->loop[i] = index_var_new(arena, lower_loop_names[i], 0, result->dim[i] - 1);
        d->batch[i] = index_var(arena, d->loop[i]);
    }
    d->loop[batch] = index_var_new(arena, "row", 0, d->product.rows - 1);
}

static void set_streams(Dots *d, int64_t first, int64_t streams, int64_t columns)
{
    d->first = first;
    d->streams = streams;
    d->loop[d->product.batch_rank + 1] = index_var_new(d->lower->arena, "column", 0, columns / streams - 1);
}

Index dots_column(const Dots *d, int64_t stream)
{
    const Var *column = d->loop[d->product.batch_rank + 1];
    Index first = index_constant(d->first + stream * (column->high + 1));
    return index_add(d->lower->arena, index_var(d->lower->arena, column), first);
}

/* A view may break where a later stream begins, and not where the first does. */
static bool streams_follow_depth(Dots *d)
{
    bool follow = true;
    for (int64_t s = 0; s < d->streams; s++) {
        d->column = dots_column(d, s);
        follow = follow && (d->scaled ? scales_blocks(d) : follows_depth(d, true));
    }
    return follow;
}

/* So many that there is no rest. */
static int64_t whole_parts(int64_t of, int64_t size, int64_t most)
{
    while (most > 1 && of % (most * size))
        most /= 2;
    return most;
}

static void set_sums(Dots *d)
{
    int64_t lanes = d->lower->target->lanes;
    d->sums = d->scaled ? whole_parts(d->block, lanes, MOST_SUMS)
                        : whole_parts(d->product.depth / lanes * lanes, lanes, MOST_SUMS / d->streams);
    d->kept = d->scaled ? 1 : d->sums;
}

bool dots_rest(Dots *d)
{
    int64_t columns = d->product.columns, rest = columns % d->streams;
    if (rest)
        set_streams(d, columns - rest, 1, rest);
    set_sums(d);
    return rest > 0;
}

static bool all_follow_depth(Dots *d)
{
    bool follow = streams_follow_depth(d);
    Dots rest = *d;
    return follow && (!dots_rest(&rest) || streams_follow_depth(&rest));
}

bool dots_see(Dots *d)
{
    const Lower *lower = d->lower;
    const Type *type = value_type(lower->graph, d->node->out[0]);
    if (lower->target->dialect != DIALECT_VECTOR || !product_of(lower->graph, d->node, &d->product) ||
        type->layout.block || type->dtype != DT_F32 || !shape_elements(&type->shape) ||
        d->product.depth < lower->target->lanes)
        return false;
    int64_t columns = d->product.columns, streams = columns < MOST_SUMS ? columns : MOST_SUMS;
    if (!lower_is_scaled(lower, d->node->in[1], &d->scaled))
        d->scaled = NULL;
    d->nibbles = lower->nibbles[rows_of(lower, d->node->in[1])];
    make_loops(d);
    set_streams(d, 0, streams, columns);
    bool lies = all_follow_depth(d);
    d->packed = !lies && !d->scaled && packs_constant(d);
    set_sums(d);
    return (lies || d->packed) && follows_depth(d, false);
}
