/* Guards: what is computed only where positions are inside. */
#include "kernel/lower/lower.h"

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
