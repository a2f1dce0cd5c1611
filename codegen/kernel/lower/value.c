/* Values inside a kernel: computed at a position by pulling operands, loaded where another kernel has made them. */
#include "kernel/lower/strip.h"
#include "ops/meaning.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Expr *remembered(Lower *lower, ValueId value, const Index *position)
{
    uint32_t rank = value_shape(lower->graph, value)->rank;
    for (uint32_t i = 0; i < lower->memo_count; i++) {
        if (lower->memo[i].value != value)
            continue;
        uint32_t d = 0;
        while (d < rank && index_eq(lower->memo[i].position[d], position[d]))
            d++;
        if (d == rank)
            return lower->memo[i].expr;
    }
    return NULL;
}

void lower_remember(Lower *lower, ValueId value, const Index *position, const Expr *expr)
{
    Memo memo = {.value = value, .expr = expr};
    uint32_t rank = value_shape(lower->graph, value)->rank;
    for (uint32_t d = 0; d < rank; d++)
        memo.position[d] = position[d];
    ARENA_PUSH(lower->arena, lower->memo, lower->memo_count, lower->memo_capacity, memo);
}

static bool used_twice_here(const Lower *lower, ValueId value)
{
    uint32_t uses = 0;
    for (uint32_t i = lower->users->first[value]; i < lower->users->first[value + 1]; i++)
        uses += kernel_has(lower, &lower->graph->node[lower->users->user[i]]);
    return uses > 1 || (uses == 1 && kernel_stores(lower, value));
}

/* The op's terms, each written once.  f16 and bf16 are computed in f32 and rounded after each op, as the reference
 * does. */
static const Expr *lower_elementwise(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    const Shape *result = value_shape(lower->graph, node->out[0]);
    const ScalarList *list = op_info(node->op)->scalar;
    const Expr *operand[3] = {0}, *value[MOST_TERMS];
    for (uint32_t i = 0; i < node->in_count; i++) {
        Index at[MAX_RANK];
        lower_broadcast_position(value_shape(lower->graph, node->in[i]), result, position, at);
        operand[i] = lower_value(lower, node->in[i], at);
        operand[i] = expr_cast(arena, reduction_accumulator(operand[i]->dtype), operand[i]);
    }
    DType number = operand[node->in_count - 1]->dtype; /* a mask comes first */
    for (uint32_t t = 0; t < list->count; t++) {
        const ScalarTerm *term = &list->term[t];
        value[t] = term->word == WORD_OPERAND  ? operand[term->arg[0]]
                   : term->word == WORD_NUMBER ? expr_number(arena, number, term->number)
                                               : lower_term(arena, term, value);
        if (term->uses > 1)
            value[t] = lower_named(lower, value[t]);
    }
    return expr_cast(arena, value_type(lower->graph, node->out[0])->dtype, value[list->count - 1]);
}

/* Is it what has no sign, in whatever wider integers?  Compilers warn of tests whether that is below 0. */
static bool is_unsigned(const Expr *expr)
{
    while (expr->kind == EXPR_CAST && dtype_is_int(expr->dtype) && !dtype_is_unsigned(expr->dtype) &&
           dtype_bytes(expr->arg[0]->dtype) < dtype_bytes(expr->dtype))
        expr = expr->arg[0];
    return dtype_is_unsigned(expr->dtype) || expr->dtype == DT_BOOL;
}

/* Negative indices count from the end; others are clamped to the table. */
Index lower_gather_row(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    int64_t extent = value_shape(lower->graph, node->in[0])->dim[gather_dimension(lower->graph, node)];
    DType dtype = value_type(lower->graph, node->in[1])->dtype;
    Index known;
    if (lower_known_row(lower, node->in[1], position[0], extent, &known))
        return known;
    const Expr *at = lower_value(lower, node->in[1], position);
    if (dtype == DT_U64) /* before it becomes one with a sign */
        at = expr_word(arena, WORD_MIN, dtype, at, expr_number(arena, dtype, (double)(extent - 1)), NULL);
    at = expr_cast(arena, DT_I64, at);
    const Expr *zero = expr_number(arena, DT_I64, 0), *size = expr_number(arena, DT_I64, (double)extent);
    if (!dtype_is_unsigned(dtype) && !is_unsigned(at)) {
        at = expr_word(arena, WORD_SELECT, DT_I64, expr_word(arena, WORD_LT, DT_BOOL, at, zero, NULL),
                       expr_word(arena, WORD_ADD, DT_I64, at, size, NULL), at);
        at = expr_word(arena, WORD_MAX, DT_I64, at, zero, NULL);
    }
    at = expr_word(arena, WORD_MIN, DT_I64, at, expr_number(arena, DT_I64, (double)(extent - 1)), NULL);
    return index_data(arena, at, 0, extent - 1);
}

static const Expr *lower_gather(Lower *lower, const Node *node, const Index *position)
{
    const Shape *table = value_shape(lower->graph, node->in[0]), *index = value_shape(lower->graph, node->in[1]);
    uint32_t axis = gather_dimension(lower->graph, node);
    Index operand[MAX_RANK];
    for (uint32_t i = 0; i < table->rank; i++)
        operand[i] = i < axis    ? position[i]
                     : i == axis ? lower_gather_row(lower, node, position + axis)
                                 : position[i + index->rank - 1];
    return lower_value(lower, node->in[0], operand);
}

/* An element of a list of positions, which has joined the kernel that asks for it. */
static const Expr *lower_listed(Lower *lower, const Node *node, const Index *position)
{
    int64_t at = position[0].constant;
    uint32_t i = 0;
    assert(!position[0].count);
    for (int64_t extent; at >= (extent = value_shape(lower->graph, node->in[i])->dim[0]); i++)
        at -= extent;
    Index operand = index_constant(at);
    return lower_value(lower, node->in[i], &operand);
}

static const Expr *lower_pad(Lower *lower, const Node *node, const Index *position)
{
    const Shape *from = value_shape(lower->graph, node->in[0]);
    int64_t before[MAX_RANK];
    Index operand[MAX_RANK];
    Guard guard[MAX_RANK];
    assembly_begin(lower->graph, node, 0, before);
    for (uint32_t i = 0; i < from->rank; i++) {
        operand[i] = index_add(lower->arena, position[i], index_constant(-before[i]));
        guard[i] = (Guard){operand[i], from->dim[i]};
    }
    Guarded guarded;
    lower_guard_open(lower, &guarded);
    const Expr *value = lower_value(lower, node->in[0], operand);
    const Expr *border = expr_number(lower->arena, value->dtype, assembly_of(lower->graph, node).fill);
    return lower_guard_close(lower, &guarded, value, guard, from->rank, border);
}

static const Expr *lower_formula(Lower *lower, const Node *node, const Index *position)
{
    DType dtype = value_type(lower->graph, node->out[0])->dtype;
    double number;
    uint32_t dimension = 0;
    if (node_is_number(node, &number))
        return expr_number(lower->arena, dtype, number);
    bool ramp = node_is_ramp(lower->graph, node, &dimension);
    assert(ramp);
    (void)ramp;
    /* f16 is bits: through f32 */
    return expr_cast(lower->arena, dtype, expr_index(lower->arena, reduction_accumulator(dtype), position[dimension]));
}

static const Expr *lower_random(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    const Type *type = value_type(lower->graph, node->out[0]);
    Random random = random_of(node);
    Index nowhere = index_constant(0), at = index_flatten(arena, position, type->shape.dim, type->shape.rank);
    const Expr *number = expr_random(arena, random.draw, lower_value(lower, node->in[0], &nowhere), at);
    return lower_spread(lower, &random, type->dtype, number);
}

static const Expr *lower_made(Lower *lower, const Node *node, uint32_t result, const Index *position)
{
    Arena *arena = lower->arena;
    const Type *type = value_type(lower->graph, node->out[result]);
    Index operand[MAX_RANK];

    switch (op_info(node->op)->family) {
    case FAMILY_ELEMENTWISE:
        return lower_elementwise(lower, node, position);
    case FAMILY_CAST:
        return (op_keeps_bits(node->op) ? expr_bits : expr_cast)(arena, type->dtype,
                                                                 lower_value(lower, node->in[0], position));
    case FAMILY_LAYOUT:
        return lower_value(lower, node->in[0], position);
    case FAMILY_VIEW:
        kernel_view_position(arena, lower->graph, node, result, position, operand);
        return lower_value(lower, node->in[0], operand);
    case FAMILY_GATHER:
        return lower_gather(lower, node, position);
    case FAMILY_DYNAMIC:
        assert(node_is_dynamic_slice(node));
        lower_dynamic_position(lower, node, position, operand);
        return lower_value(lower, node->in[0], operand);
    case FAMILY_ASSEMBLE:
        return assembly_of(lower->graph, node).filled ? lower_pad(lower, node, position)
                                                      : lower_listed(lower, node, position);
    case FAMILY_GENERATE:
        return lower_formula(lower, node, position);
    case FAMILY_DRAW:
        return lower_random(lower, node, position);
    default:
        assert(!"anchors are bound before their users are lowered");
        return NULL;
    }
}

/* Keeps an expensive intermediate of a row in scratch for the later stages that need it again. */
static const Expr *spilled_value(Lower *lower, ValueId value)
{
    uint32_t buffer = lower->spill[value] - 1;
    return expr_load(lower->arena, value_type(lower->graph, value)->dtype, buffer, lower->row_position);
}

Index lower_band_address(Lower *lower, const Index *position)
{
    const Shape *shape = value_shape(lower->graph, lower->band.value);
    Arena *arena = lower->arena;
    Index row = index_add(arena, position[2], index_scale(arena, lower->band.first, -1));
    Index pixel = index_add(arena, index_scale(arena, row, shape->dim[3]), position[3]);
    return index_add(arena, index_scale(arena, pixel, shape->dim[1]), position[1]);
}

/* Between elements of a tensor that has memory of its own there are elements of it. */
static const Expr *load_element(Lower *lower, ValueId value, const Index *position)
{
    DType dtype = value_type(lower->graph, value)->dtype;
    uint32_t buffer = lower_buffer(lower, value, false);
    const Storage *storage = &lower->storage->at[lower->kernel->buffer[buffer].storage];
    bool whole = dtype == DT_F32 && storage->inside == NONE && !storage->has_parts;
    return (whole ? expr_load_spread : expr_load)(lower->arena, dtype, buffer,
                                                  lower_value_address(lower, value, position));
}

const Expr *lower_value(Lower *lower, ValueId value, const Index *position)
{
    const Type *type = value_type(lower->graph, value);
    double number;
    if (value_is_number(lower->graph, value, &number))
        return expr_number(lower->arena, type->dtype, number);
    if (lower->bound[value])
        return lower->bound[value];
    if (lower->spilled[value])
        return spilled_value(lower, value);
    if (lower->turned.filled && lower->turned.value == value)
        return expr_load(lower->arena, type->dtype, lower->turned.buffer,
                         index_add(lower->arena, lower->turned.row, lower->row_position));
    if (lower->band.filled && lower->band.value == value)
        return expr_load(lower->arena, type->dtype, lower->band.buffer, lower_band_address(lower, position));
    if (lower->strip && strip_holds(lower->strip, value) && !kernel_makes(lower, value))
        return expr_load(lower->arena, type->dtype, lower->strip->buffer, strip_address(lower, position));
    const Node *node = value_producer(lower->graph, value);
    if (!node || (!kernel_has(lower, node) && !kernel_value_is_inline(lower->graph, value)))
        return load_element(lower, value, position);

    const Expr *known = remembered(lower, value, position);
    if (known)
        return known;
    const Expr *expr = lower_made(lower, node, lower->graph->value[value].result, position);
    bool keep = !kernel_value_is_inline(lower->graph, value) && !kernel_only_reads(lower->graph, node) &&
                (used_twice_here(lower, value) || lower->spill[value]) && expr->kind != EXPR_NUMBER &&
                expr->kind != EXPR_LOCAL;
    if (keep) {
        const Local *local = lower_local(lower, "t", type->dtype, true);
        stmt_local(lower->arena, lower->block, local, expr);
        expr = expr_local(lower->arena, local);
        if (lower->spill[value])
            stmt_store(lower->arena, lower->block, lower->spill[value] - 1, lower->row_position, expr);
        lower_remember(lower, value, position, expr);
    }
    return expr;
}

Index lower_dynamic_begin(Lower *lower, const Node *node, uint32_t dimension)
{
    Arena *arena = lower->arena;
    int64_t last = node_dynamic_last(lower->graph, node, dimension);
    if (!last)
        return index_constant(0);
    if (!lower->block) /* a recipe is being chosen, for whatever it may be */
        return index_data(arena, expr_number(arena, DT_I64, 0), 0, last);
    Index at = index_constant(dimension);
    const Expr *begin = lower_value(lower, node->in[1], &at);
    if (begin->kind == EXPR_NUMBER)
        return index_constant((int64_t)(begin->number < 0              ? 0
                                        : begin->number < (double)last ? begin->number
                                                                       : (double)last));
    begin = expr_cast(arena, DT_I64, begin);
    begin = expr_word(arena, WORD_MAX, DT_I64, begin, expr_number(arena, DT_I64, 0), NULL);
    begin = expr_word(arena, WORD_MIN, DT_I64, begin, expr_number(arena, DT_I64, (double)last), NULL);
    return index_data(arena, begin, 0, last);
}

void lower_dynamic_position(Lower *lower, const Node *node, const Index *position, Index *whole)
{
    for (uint32_t d = 0; d < value_shape(lower->graph, node->in[0])->rank; d++)
        whole[d] = index_add(lower->arena, position[d], lower_dynamic_begin(lower, node, d));
}

/* The view, or the slice of its own, through which the kernel reads the value; NULL. */
static const Node *read_through(const Lower *lower, ValueId value)
{
    const Node *node = value_producer(lower->graph, value);
    bool own = node && kernel_has(lower, node) && (node_is_view(node) || node_is_dynamic_slice(node));
    return own || kernel_value_is_view(lower->graph, value) ? node : NULL;
}

bool kernel_computes(const Lower *lower, ValueId value)
{
    for (const Node *node; (node = read_through(lower, value));)
        value = node->in[0];
    return kernel_makes(lower, value);
}

bool lower_memory_source(Lower *lower, ValueId value, const Index *position, ValueId *source, Index *address)
{
    const Graph *graph = lower->graph;
    Index at[MAX_RANK], operand[MAX_RANK];
    double number;
    memcpy(at, position, sizeof at);
    for (const Node *node; (node = read_through(lower, value)); value = node->in[0]) {
        if (node_is_dynamic_slice(node))
            lower_dynamic_position(lower, node, at, operand);
        else
            kernel_view_position(lower->arena, graph, node, graph->value[value].result, at, operand);
        memcpy(at, operand, sizeof at);
    }
    if (kernel_value_is_inline(graph, value) || value_is_number(graph, value, &number))
        return false;
    *source = value;
    *address = lower_memory_address(lower, value, at);
    return true;
}
