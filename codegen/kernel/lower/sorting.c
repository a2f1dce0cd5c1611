/* Rows, keys and results of sorting (sorting.h). */
#include "kernel/lower/sorting.h"

bool sorting_begin(const Lower *lower, const Kernel *kernel, Sort *sort)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    const Type *x = value_type(lower->graph, node->in[0]);
    DType dtype = x->dtype;
    uint32_t bits = 8 * (uint32_t)dtype_bytes(dtype);
    bool narrow = dtype == DT_F16 || dtype == DT_BF16; /* keys of them are those of f32, which end in zeros */
    *sort = (Sort){.node = node, .sorting = sorting_of(lower->graph, node)};
    sort->extent = x->shape.dim[sort->sorting.dimension];
    sort->count = sort->sorting.count;
    sort->key = bits == 64 ? DT_U64 : DT_U32;
    sort->end_bit = narrow ? 32 : bits;
    sort->low_bit = dtype == DT_F16 ? 13 : dtype == DT_BF16 ? 16 : 0;
    return shape_elements(value_shape(lower->graph, node->out[0])) > 0;
}

int64_t sorting_rows(const Lower *lower, const Sort *sort)
{
    return shape_elements(value_shape(lower->graph, sort->node->in[0])) / sort->extent;
}

void sorting_open_rows(Lower *lower, Sort *sort)
{
    const Shape *shape = value_shape(lower->graph, sort->node->in[0]);
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (d == sort->sorting.dimension)
            continue;
        const Var *var = index_var_new(lower->arena, lower_loop_names[d], 0, shape->dim[d] - 1);
        sort->position[d] = index_var(lower->arena, var);
        if (shape->dim[d] > 1)
            lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, shape->dim[d], 1, LOOP_PARALLEL)->body);
    }
}

/* What the loops are made of */

const Expr *sorting_less(Lower *lower, const Expr *a, const Expr *b)
{
    return expr_word(lower->arena, WORD_LT, DT_BOOL, a, b, NULL);
}

const Local *sorting_name(Lower *lower, const char *name, const Expr *value)
{
    const Local *local = lower_local(lower, name, value->dtype, false);
    stmt_local(lower->arena, lower->block, local, value);
    return local;
}

void sorting_set(Lower *lower, const Local *local, const Expr *value)
{
    stmt_assign(lower->arena, lower->block, local, index_constant(0), index_constant(0), value);
}

Index sorting_at(Lower *lower, const Local *local, int64_t high)
{
    return index_data(lower->arena, expr_local(lower->arena, local), 0, high);
}

Index sorting_loop(Lower *lower, const char *name, Index end, int64_t most, Block **outer)
{
    const Var *var = index_var_new(lower->arena, name, 0, most - 1);
    Stmt *loop = stmt_for(lower->arena, lower->block, var, 0, most, 1, LOOP_SERIAL);
    loop->high = end;
    *outer = lower_enter(lower, &loop->body);
    return index_var(lower->arena, var);
}

Block *sorting_if(Lower *lower, const Expr *truth)
{
    return lower_enter(lower, &stmt_where(lower->arena, lower->block, truth)->body);
}

const Expr *sorting_number(Lower *lower, double number)
{
    return expr_number(lower->arena, DT_I64, number);
}

/* Keys */

typedef struct FloatBits {          /* as numbers */
    double sign, infinite, largest; /* of magnitudes, and of keys */
} FloatBits;

static const FloatBits bits_32 = {0x1p31, 0x7F8p20, 0x1p32 - 1};
/* Any key above that of the infinite does for NaN; the largest is no double. */
static const FloatBits bits_64 = {0x1p63, 0x7FFp52, 0x1p64 - 0x1p11};

static const Expr *binary(Lower *lower, Word word, const Expr *a, double b)
{
    return expr_word(lower->arena, word, a->dtype, a, expr_number(lower->arena, a->dtype, b), NULL);
}

static const Expr *complement(Lower *lower, const Expr *x)
{
    return binary(lower, WORD_SUB, expr_word(lower->arena, WORD_NEG, x->dtype, x, NULL, NULL), 1);
}

/* Sign and magnitude become a number in two's complement, in which both zeros are one, without a branch that could be
 * mispredicted: (magnitude ^ mask) - mask, where the mask is all bits of a negative one. */
static const Expr *float_key(Lower *lower, const Sort *sort, const Expr *x)
{
    Arena *arena = lower->arena;
    DType key = sort->key;
    bool wide = key == DT_U64;
    const FloatBits *b = wide ? &bits_64 : &bits_32;
    x = expr_cast(arena, reduction_accumulator(x->dtype), x);
    const Expr *bits = expr_local(arena, sorting_name(lower, "bits", expr_bits(arena, key, x)));
    const Expr *sign = binary(lower, WORD_SHIFT_RIGHT, bits, wide ? 63 : 31);
    const Expr *mask = expr_word(arena, WORD_NEG, key, sign, NULL, NULL);
    mask = expr_local(arena, sorting_name(lower, "mask", mask));
    const Expr *twice = expr_word(arena, WORD_ADD, key, bits, bits, NULL); /* the sign is shifted out */
    const Expr *magnitude = binary(lower, WORD_SHIFT_RIGHT, twice, 1);
    magnitude = expr_local(arena, sorting_name(lower, "magnitude", magnitude));
    const Expr *turned = expr_word(arena, WORD_BIT_XOR, key, magnitude, mask, NULL);
    const Expr *number = binary(lower, WORD_BIT_XOR, expr_word(arena, WORD_SUB, key, turned, mask, NULL), b->sign);
    const Expr *is_nan = sorting_less(lower, expr_number(arena, key, b->infinite), magnitude);
    return expr_word(arena, WORD_SELECT, key, is_nan, expr_number(arena, key, b->largest), number);
}

static const Expr *integer_key(Lower *lower, const Sort *sort, const Expr *x)
{
    Arena *arena = lower->arena;
    DType dtype = x->dtype;
    if (dtype_is_unsigned(dtype))
        return expr_cast(arena, sort->key, x);
    if (sort->end_bit < 32)
        return expr_cast(arena, sort->key,
                         binary(lower, WORD_ADD, expr_cast(arena, DT_I32, x), (double)(1 << (sort->end_bit - 1))));
    return binary(lower, WORD_BIT_XOR, expr_bits(arena, sort->key, x), sort->end_bit == 64 ? 0x1p63 : 0x1p31);
}

static const Expr *descending_key(Lower *lower, const Sort *sort, const Expr *key)
{
    if (sort->end_bit >= 32)
        return complement(lower, key);
    return expr_word(lower->arena, WORD_SUB, sort->key,
                     expr_number(lower->arena, sort->key, (double)((1 << sort->end_bit) - 1)), key, NULL);
}

const Expr *sorting_key(Lower *lower, Sort *sort, Index at)
{
    sort->position[sort->sorting.dimension] = at;
    const Expr *x = lower_value(lower, sort->node->in[0], sort->position);
    const Expr *key = dtype_is_float(x->dtype) ? float_key(lower, sort, x) : integer_key(lower, sort, x);
    if (sort->sorting.descending)
        key = descending_key(lower, sort, key);
    return expr_local(lower->arena, sorting_name(lower, "key", key));
}

void sorting_store(Lower *lower, Sort *sort, Index rank, const Expr *at)
{
    ValueId result = sort->node->out[0];
    sort->position[sort->sorting.dimension] = rank;
    Index address = lower_value_address(lower, result, sort->position);
    stmt_store(lower->arena, lower->block, lower_buffer(lower, result, true), address,
               expr_cast(lower->arena, DT_I64, at));
}
