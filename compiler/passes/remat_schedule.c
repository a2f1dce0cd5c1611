/* The binomial schedule of a chain.
 *
 * With s snapshots and each step computed again at most r times, a chain of up to C(s + r, s) steps can be reversed.  A
 * chain is cut in two: the first part is computed again as a whole when the second has been reversed, with all
 * snapshots and one repetition less; the second has one snapshot less, that of the first part, and as many repetitions.
 * A cut is optimal where both parts have neither more steps than they can with these, nor fewer than they can with one
 * repetition less. */
#include "passes/remat.h"

#define MANY UINT32_MAX

/* C(s + r, s), or MANY; none where r is below 0. */
static uint32_t longest(uint32_t s, int64_t r)
{
    uint64_t steps = r < 0 ? 0 : 1;
    for (uint64_t i = 1; r >= 0 && i <= s && steps < MANY; i++)
        steps = steps * ((uint64_t)r + i) / i;
    return steps < MANY ? (uint32_t)steps : MANY;
}

static int64_t fewest_repetitions(uint32_t length, uint32_t s)
{
    int64_t r = 0;
    while (longest(s, r) < length)
        r++;
    return r;
}

uint32_t remat_snapshots(uint32_t length, uint32_t times)
{
    uint32_t s = 1;
    while (longest(s, times) < length)
        s++;
    return s;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Steps of the first part. */
static uint32_t cut(uint32_t length, uint32_t s, int64_t r)
{
    uint32_t second = longest(s - 1, r);
    return larger(1, larger(longest(s, r - 2), length > second ? length - second : 0));
}

typedef struct Draft {
    Arena *arena;
    RematRange *list;
    uint32_t count, capacity;
} Draft;

/* Recurses as deep as steps are computed again. */
static void divide(Draft *draft, uint32_t begin, uint32_t end, uint32_t s, uint32_t around)
{
    int64_t r = fewest_repetitions(end - begin, s);
    for (; end - begin > 1; s--) {
        RematRange first = {begin, begin + cut(end - begin, s, r), around};
        ARENA_PUSH(draft->arena, draft->list, draft->count, draft->capacity, first);
        divide(draft, first.begin, first.end, s, draft->count - 1);
        begin = first.end;
    }
}

uint32_t remat_schedule(Arena *arena, uint32_t length, uint32_t snapshots, RematRange **list)
{
    Draft draft = {.arena = arena};
    divide(&draft, 0, length, snapshots, NONE);
    *list = draft.list;
    return draft.count;
}
