/* What makes a problem well formed, and the lower bound of its peak. */
#include "plan/problem.h"

#include <inttypes.h>

#include "base/number.h"
#include "plan/items.h"
#include "plan/sort.h"

static bool bad(Arena *arena, Str *message, uint32_t buffer, const char *what, int64_t value)
{
    *message = str_format(arena, "buffer %u: %s (%" PRId64 ")", buffer, what, value);
    return false;
}

static bool valid_buffer(Arena *arena, const PlanBuffer *b, uint32_t i, Str *message)
{
    if (b->size < 0 || b->size > PLAN_LARGEST)
        return bad(arena, message, i, "size out of range", b->size);
    if (b->alignment < 1 || b->alignment > PLAN_LARGEST)
        return bad(arena, message, i, "alignment out of range", b->alignment);
    if (b->first >= b->last)
        return bad(arena, message, i, "live range is empty", b->first);
    if (b->pinned < PLAN_FREE || b->pinned > PLAN_LARGEST)
        return bad(arena, message, i, "pinned offset out of range", b->pinned);
    if (b->pinned > 0 && b->pinned % b->alignment)
        return bad(arena, message, i, "pinned offset is not aligned", b->pinned);
    if (b->region >= PLAN_MOST_REGION)
        return bad(arena, message, i, "region out of range", b->region);
    return true;
}

/* All uses of a group must agree on a pin, and some offset must suit all alignments. */
static bool valid_groups(Arena *arena, const PlanProblem *p, Str *message)
{
    Arena scratch = {0};
    uint32_t count = 0;
    SortKey *key = ARENA_ARRAY(&scratch, SortKey, p->count);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->buffer[i].group)
            key[count++] = (SortKey){(uint64_t)p->buffer[i].region << 32 | p->buffer[i].group, i};
    sort_ascending(&scratch, key, count);

    int64_t alignment = 1, pinned = PLAN_FREE;
    bool good = true;
    for (uint32_t k = 0; k < count && good; k++) {
        const PlanBuffer *b = &p->buffer[key[k].index];
        if (k == 0 || key[k].key != key[k - 1].key) {
            alignment = 1;
            pinned = PLAN_FREE;
        }
        int64_t step = b->alignment / number_gcd(alignment, b->alignment);
        if (alignment > PLAN_LARGEST / step)
            good = bad(arena, message, key[k].index, "no offset suits all alignments of the group", b->alignment);
        else
            alignment *= step;
        if (b->pinned != PLAN_FREE && pinned != PLAN_FREE && b->pinned != pinned)
            good = bad(arena, message, key[k].index, "pinned elsewhere than its group", b->pinned);
        if (b->pinned != PLAN_FREE)
            pinned = b->pinned;
        if (good && pinned > 0 && pinned % alignment)
            good = bad(arena, message, key[k].index, "the group's pinned offset is not aligned for it", pinned);
    }
    arena_free(&scratch);
    return good;
}

bool plan_valid(Arena *arena, const PlanProblem *p, Str *message)
{
    int64_t total = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const PlanBuffer *b = &p->buffer[i];
        if (!valid_buffer(arena, b, i, message))
            return false;
        if (b->size > PLAN_LARGEST - total || b->alignment > PLAN_LARGEST - total - b->size)
            return bad(arena, message, i, "the sizes add up to more than can be planned", b->size);
        total += b->size + b->alignment;
    }
    for (uint32_t i = 0; i < p->conflict_count; i++)
        if (p->conflict[i].a >= p->count || p->conflict[i].b >= p->count) {
            *message = str_format(arena, "conflict %u: there is no such buffer", i);
            return false;
        }
    if (p->capacity < 0) {
        *message = str_format(arena, "capacity out of range (%" PRId64 ")", p->capacity);
        return false;
    }
    return valid_groups(arena, p, message);
}

int64_t plan_lower_bound(const PlanProblem *p)
{
    Arena scratch = {0};
    uint32_t regions = 1;
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->buffer[i].region >= regions)
            regions = p->buffer[i].region + 1;
    for (uint32_t r = 0; r < regions; r++) {
        PlanItems items;
        ArenaMark mark = arena_mark(&scratch);
        plan_items(&scratch, p, r, &items);
        sum += items.lower_bound;
        arena_reset(&scratch, mark);
    }
    arena_free(&scratch);
    return sum;
}
