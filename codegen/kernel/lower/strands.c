/* Several accumulators of one sum, or product or extreme: a processor begins an addition in every cycle, and has its
 * result some cycles later.  In vectors, where it has registers to spare. */
#include "kernel/lower/lower.h"

#include "base/number.h"

#define FEW_ROUNDS 2 /* of each strand */

/* What takes long to compute hides the latency by itself. */
static bool hides_latency(const Block *block, const Expr *value)
{
    bool hides = expr_is_expensive(value);
    for (const Stmt *stmt = block->first; stmt && !hides; stmt = stmt->next)
        hides = (stmt->kind != STMT_LOCAL && stmt->kind != STMT_STORE) || expr_is_expensive(stmt->value);
    return hides;
}

uint32_t lower_strand_count(const Lower *lower, int64_t extent, int64_t rounds)
{
    static const uint8_t preferred[] = {4, 8, 7, 6, 5, 3, 2};
    bool suits = lower->target->dialect == DIALECT_VECTOR && !lower->target->small && !lower->team;
    for (uint32_t i = 0; i < sizeof preferred && suits; i++)
        if (extent % preferred[i] == 0 && rounds >= FEW_ROUNDS * preferred[i])
            return preferred[i];
    return 1;
}

uint32_t lower_strands_of(const Lower *lower, int64_t rounds, const Block *block, const Expr *value)
{
    return hides_latency(block, value) ? 1 : lower_strand_count(lower, rounds, rounds);
}

/* Loads fill two of the longest vectors; of what is computed for each the text would be long, and so is that of strict
 * C99, which has shorter vectors. */
uint32_t lower_strands_of_neighbours(const Lower *lower, int64_t extent, const Block *block, const Expr *value)
{
    const Target *target = lower->target;
    bool most = value->kind == EXPR_LOAD && target->dialect == DIALECT_VECTOR;
    uint32_t count = most ? MOST_ACCUMULATORS : MOST_ACCUMULATORS / 2;
    if (!dtype_is_float(value->dtype) || target->team || target->flash || target->small || hides_latency(block, value))
        return 1;
    while (count > LEAST_LANES && extent < FEW_ROUNDS * count)
        count /= 2;
    return extent < FEW_ROUNDS * count ? 1 : count;
}

void lower_strands_begin(Lower *lower, Block *block, Strands *strands)
{
    const Expr *neutral =
        expr_number(lower->arena, strands->dtype, reduction_neutral(strands->combine, strands->dtype));
    for (uint32_t s = 0; s < strands->count; s++) {
        strands->acc[s] = lower_local(lower, "acc", strands->dtype, true);
        stmt_local(lower->arena, block, strands->acc[s], neutral);
    }
}

void lower_strand_add(Lower *lower, Block *block, const Strands *strands, uint32_t s, const Expr *value)
{
    const Local *acc = strands->acc[s];
    Arena *arena = lower->arena;
    stmt_assign(arena, block, acc, index_constant(0), index_constant(0),
                expr_word(arena, strands->combine, acc->dtype, expr_local(arena, acc), value, NULL));
}

/* In pairs, as a tree. */
const Local *lower_strands_end(Lower *lower, Block *block, const Strands *strands)
{
    for (uint32_t half = 1; half < strands->count; half *= 2)
        for (uint32_t s = 0; s + half < strands->count; s += 2 * half)
            lower_strand_add(lower, block, strands, s, expr_local(lower->arena, strands->acc[s + half]));
    return strands->acc[0];
}
