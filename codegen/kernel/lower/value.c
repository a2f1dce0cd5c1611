/* Values inside a kernel: computed at a position by pulling operands, loaded where another kernel has made them. */
#include "kernel/kernel.h"
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

static void remember(Lower *lower, ValueId value, const Index *position, const Expr *expr)
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
        uses += lower->graph->node[lower->users->user[i]].kernel == lower->kernel->id;
    return uses > 1 || (uses == 1 && kernel_stores(lower, value));
}

/* Words */

/* x == x and the like, whose words compilers warn of. Floats are another matter: they may be NaN. */
static bool compares_itself(Word word, const Expr *const *arg, double *known)
{
    *known = word == WORD_EQ || word == WORD_LE;
    bool compares = *known || word == WORD_NE || word == WORD_LT || word == WORD_XOR;
    return compares && (!dtype_is_float(arg[0]->dtype) || word == WORD_LT) && expr_eq(arg[0], arg[1]);
}

/* An integer against a number at the end of its dtype's range: x < 0 of u8, x <= 127 of i8. */
static bool compares_with_end(Arena *arena, Word word, const Expr *const *arg, double *known)
{
    if ((word != WORD_LT && word != WORD_LE) || dtype_is_float(arg[0]->dtype))
        return false;
    bool equal = word == WORD_LE;
    const Expr *low = arg[0], *high = arg[1]; /* low < high, or low <= high */
    double least = expr_number(arena, low->dtype, -INFINITY)->number;
    double most = expr_number(arena, low->dtype, INFINITY)->number;
    *known = equal;
    return (low->kind == EXPR_NUMBER && low->number == (equal ? least : most)) ||
           (high->kind == EXPR_NUMBER && high->number == (equal ? most : least));
}

static const Expr *lower_term(Arena *arena, const ScalarTerm *term, const Expr *const *value)
{
    const Expr *arg[3] = {0};
    double known;
    for (uint32_t i = 0; i < term->args; i++)
        arg[i] = value[term->arg[i]];
    if (compares_itself(term->word, arg, &known) || compares_with_end(arena, term->word, arg, &known))
        return expr_number(arena, DT_BOOL, known);
    if (term->word == WORD_SELECT && arg[0]->kind == EXPR_NUMBER)
        return arg[0]->number ? arg[1] : arg[2];
    DType dtype = word_is_mask(term->word) ? DT_BOOL : arg[term->word == WORD_SELECT]->dtype;
    return expr_word(arena, term->word, dtype, arg[0], arg[1], arg[2]);
}

static bool reads_data(Index index)
{
    for (uint32_t i = 0; i < index.count; i++) {
        const Atom *atom = index.term[i].atom;
        if (atom->kind == ATOM_DATA || (atom->kind != ATOM_VAR && reads_data(atom->index)))
            return true;
    }
    return false;
}

/* What is used again gets a name, unless it is as good as one: a number, or an element at a known position. */
static const Expr *named(Lower *lower, const Expr *expr)
{
    bool load = expr->kind == EXPR_LOAD || expr->kind == EXPR_INDEX;
    if (expr->kind == EXPR_NUMBER || expr->kind == EXPR_LOCAL || (load && !reads_data(expr->index)))
        return expr;
    const Local *local = lower_local(lower, "t", expr->dtype, true);
    stmt_local(lower->arena, lower->block, local, expr);
    return expr_local(lower->arena, local);
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
            value[t] = named(lower, value[t]);
    }
    return expr_cast(arena, value_type(lower->graph, node->out[0])->dtype, value[list->count - 1]);
}

/* Guards */

void lower_guard_open(Lower *lower, Guarded *guarded)
{
    *guarded = (Guarded){.outer = lower->block, .memo_count = lower->memo_count};
    lower->block = &guarded->inside;
}

static bool always_holds(const Guard *guard)
{
    return index_low(guard->index) >= 0 && index_high(guard->index) < guard->limit;
}

/* What has no statements is an expression; else a local gets its value under an `if`, where they stand. */
const Expr *lower_guard_close(Lower *lower, Guarded *guarded, const Expr *inside, const Guard *guard, uint32_t count,
                              const Expr *outside)
{
    Arena *arena = lower->arena;
    bool holds = true;
    for (uint32_t i = 0; i < count; i++)
        holds &= always_holds(&guard[i]);
    lower->block = guarded->outer;
    if (holds) {
        block_append(lower->block, guarded->inside);
        return inside;
    }
    lower->memo_count = guarded->memo_count; /* names of inside mean nothing outside */
    if (!guarded->inside.first) {
        for (uint32_t i = 0; i < count; i++)
            inside = expr_within(arena, guard[i].index, guard[i].limit, inside, outside);
        return inside;
    }
    const Local *local = lower_local(lower, "t", inside->dtype, true);
    Block *block = lower->block;
    stmt_local(arena, block, local, outside);
    for (uint32_t i = count; i-- > 0;)
        if (!always_holds(&guard[i]))
            block = &stmt_if(arena, block, guard[i].index, 0, guard[i].limit)->body;
    block_append(block, guarded->inside);
    stmt_assign(arena, block, local, index_constant(0), index_constant(0), inside);
    return expr_local(arena, local);
}

/* Negative indices count from the end; others are clamped to the table. */
Index lower_gather_row(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    int64_t extent = value_shape(lower->graph, node->in[0])->dim[gather_dimension(lower->graph, node)];
    const Expr *at = expr_cast(arena, DT_I64, lower_value(lower, node->in[1], position));
    const Expr *zero = expr_number(arena, DT_I64, 0), *size = expr_number(arena, DT_I64, (double)extent);
    if (value_type(lower->graph, node->in[1])->dtype != DT_U8) {
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

/* The `count` leading bits of a number, those after the point included. */
static double leading_bits(double number, int count)
{
    int exponent;
    double fraction = frexp(number, &exponent);
    return ldexp(trunc(ldexp(fraction, count)), exponent - count);
}

/* base + scale * number, in double.  The scale in two parts of so few bits that both products are exact: contracted or
 * not, the bits are the same. */
static const Expr *spread(Lower *lower, const Random *random, const Expr *number)
{
    Arena *arena = lower->arena;
    double coarse = leading_bits(random->scale, 29), fine = random->scale - coarse;
    const Expr *wide = expr_cast(arena, DT_F64, fine != 0 ? named(lower, number) : number);
    const Expr *scaled = expr_word(arena, WORD_MUL, DT_F64, expr_number(arena, DT_F64, coarse), wide, NULL);
    if (fine != 0)
        scaled = expr_word(arena, WORD_ADD, DT_F64, scaled,
                           expr_word(arena, WORD_MUL, DT_F64, expr_number(arena, DT_F64, fine), wide, NULL), NULL);
    return random->base == 0
               ? scaled
               : expr_word(arena, WORD_ADD, DT_F64, expr_number(arena, DT_F64, random->base), scaled, NULL);
}

/* The same in f32, where that rounds no more: to a power of two times the number only a float is added. */
static bool is_spread_in_f32(const Random *random)
{
    int exponent;
    return fabs(frexp(random->scale, &exponent)) == 0.5 && abs(exponent) < 64 &&
           (double)(float)random->base == random->base && fabs(random->base) < 0x1p64;
}

static const Expr *spread_in_f32(Arena *arena, const Random *random, const Expr *number)
{
    const Expr *scaled = random->scale == 1 ? number
                                            : expr_word(arena, WORD_MUL, DT_F32, number,
                                                        expr_number(arena, DT_F32, random->scale), NULL);
    Word word = random->base < 0 ? WORD_SUB : WORD_ADD;
    return random->base == 0
               ? scaled
               : expr_word(arena, word, DT_F32, scaled, expr_number(arena, DT_F32, fabs(random->base)), NULL);
}

static const Expr *lower_random(Lower *lower, const Node *node, const Index *position)
{
    Arena *arena = lower->arena;
    const Type *type = value_type(lower->graph, node->out[0]);
    Random random = random_of(node);
    Index nowhere = index_constant(0), at = index_flatten(arena, position, type->shape.dim, type->shape.rank);
    const Expr *number = expr_random(arena, random.draw, lower_value(lower, node->in[0], &nowhere), at);
    bool standard = random.base == 0 && random.scale == 1;
    if (standard || (type->dtype == DT_F32 && is_spread_in_f32(&random)))
        return expr_cast(arena, type->dtype, spread_in_f32(arena, &random, number));
    return expr_cast(arena, type->dtype, spread(lower, &random, number));
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
        return expr_cast(arena, type->dtype, lower_value(lower, node->in[0], position));
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

static Index band_address(Lower *lower, const Index *position)
{
    const Shape *shape = value_shape(lower->graph, lower->band.value);
    Arena *arena = lower->arena;
    Index row = index_add(arena, position[2], index_scale(arena, lower->band.first, -1));
    Index pixel = index_add(arena, index_scale(arena, row, shape->dim[3]), position[3]);
    return index_add(arena, index_scale(arena, pixel, shape->dim[1]), position[1]);
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
    if (lower->band.filled && lower->band.value == value)
        return expr_load(lower->arena, type->dtype, lower->band.buffer, band_address(lower, position));
    const Node *node = value_producer(lower->graph, value);
    if (!node || (node->kernel != lower->kernel->id && !kernel_value_is_inline(lower->graph, value)))
        return expr_load(lower->arena, type->dtype, lower_buffer(lower, value, false),
                         lower_value_address(lower, value, position));

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
        remember(lower, value, position, expr);
    }
    return expr;
}

static void store_value(Lower *lower, ValueId value, const Index *position, const Expr *expr)
{
    stmt_store(lower->arena, lower->block, lower_buffer(lower, value, true),
               lower_value_address(lower, value, position), expr);
}

/* Channels that only fill up the last block are zeros, and nothing is read to make them. */
static void store_padded(Lower *lower, ValueId value, const Index *position)
{
    const Type *type = value_type(lower->graph, value);
    Stmt *inside = stmt_if(lower->arena, lower->block, position[1], 0, type->shape.dim[1]);
    Block *outer = lower_enter(lower, &inside->body);
    store_value(lower, value, position, lower_value(lower, value, position));
    lower_enter(lower, &inside->other);
    store_value(lower, value, position, expr_number(lower->arena, type->dtype, 0));
    lower_leave(lower, outer);
}

/* The results that the kernel writes to memory; returns how many. */
static uint32_t stored_values(const Lower *lower, ValueId **list)
{
    uint32_t count = 0, capacity = 0;
    *list = NULL;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++)
            if (kernel_stores(lower, node->out[r]))
                ARENA_PUSH(lower->arena, *list, count, capacity, node->out[r]);
    }
    return count;
}

static void store_result(Lower *lower, ValueId value, const Index *position)
{
    const Type *type = value_type(lower->graph, value);
    if (type->layout.block && type->shape.dim[1] % type->layout.block)
        store_padded(lower, value, position);
    else
        store_value(lower, value, position, lower_value(lower, value, position));
}

/* One by one, each would be written while the next still reads what it may lie over. */
static void bind_values(Lower *lower, const ValueId *value, uint32_t count, const Index *position)
{
    for (uint32_t i = 0; i < count; i++) {
        const Expr *expr = lower_value(lower, value[i], position);
        if (expr->kind == EXPR_LOCAL || expr->kind == EXPR_NUMBER)
            continue;
        const Local *local = lower_local(lower, "t", expr->dtype, true);
        stmt_local(lower->arena, lower->block, local, expr);
        remember(lower, value[i], position, expr_local(lower->arena, local));
    }
}

void lower_stores(Lower *lower, const Index *position)
{
    ValueId *value;
    if (lower->band.value != NONE && !lower->band.filled) {
        const Expr *expr = lower_value(lower, lower->band.value, position);
        stmt_store(lower->arena, lower->block, lower->band.buffer, band_address(lower, position), expr);
        return;
    }
    uint32_t count = stored_values(lower, &value);
    if (count > 1 && kernel_stores_together(lower->kernel))
        bind_values(lower, value, count, position);
    for (uint32_t i = 0; i < count; i++)
        store_result(lower, value[i], position);
}
