/* Placement by stacking: a tree over sections holds the height of what lies in each. */
#include "plan/greedy.h"

typedef struct Skyline { /* implicit tree; a node's `set` is the least height of all its sections, `top` the greatest */
    int64_t *top, *set;
    uint32_t leaves;
} Skyline;

static int64_t height(const Skyline *s, uint32_t lower, uint32_t upper)
{
    int64_t most = 0;
    uint32_t l = lower + s->leaves, u = upper + s->leaves - 1; /* inclusive, both kept on one level */
    uint32_t first = l, last = u;
    for (uint32_t a = l, b = u + 1; a < b; a /= 2, b /= 2) {
        if (a & 1) {
            most = s->top[a] > most ? s->top[a] : most;
            a++;
        }
        if (b & 1) {
            b--;
            most = s->top[b] > most ? s->top[b] : most;
        }
    }
    for (; first; first /= 2, last /= 2) { /* what was set for a whole ancestor holds here, too */
        most = s->set[first] > most ? s->set[first] : most;
        most = s->set[last] > most ? s->set[last] : most;
    }
    return most;
}

static void raise(Skyline *s, uint32_t lower, uint32_t upper, int64_t to)
{
    for (uint32_t a = lower + s->leaves, b = upper + s->leaves; a < b; a /= 2, b /= 2) {
        if (a & 1) {
            s->set[a] = s->set[a] > to ? s->set[a] : to;
            for (uint32_t n = a; n && s->top[n] < to; n /= 2)
                s->top[n] = to;
            a++;
        }
        if (b & 1) {
            b--;
            s->set[b] = s->set[b] > to ? s->set[b] : to;
            for (uint32_t n = b; n && s->top[n] < to; n /= 2)
                s->top[n] = to;
        }
    }
}

bool plan_stack(const PlanItems *items, PlanOrder order, int64_t *offset)
{
    Arena scratch = {0};
    Skyline line = {.leaves = 1};
    while (line.leaves < items->section_count)
        line.leaves *= 2;
    line.top = ARENA_ARRAY(&scratch, int64_t, 2 * (size_t)line.leaves);
    line.set = ARENA_ARRAY(&scratch, int64_t, 2 * (size_t)line.leaves);
    uint32_t *sequence = ARENA_ARRAY(&scratch, uint32_t, items->count);
    uint32_t count = plan_order(&scratch, items, order, sequence);
    bool good = true;
    for (uint32_t k = 0; k < count && good; k++) {
        const PlanItem *item = &items->item[sequence[k]];
        const PlanPiece *piece = &items->piece[item->piece];
        int64_t at = 0;
        for (uint32_t p = 0; p < item->piece_count; p++) {
            int64_t h = height(&line, piece[p].lower, piece[p].upper);
            at = h > at ? h : at;
        }
        at = plan_align(at, item->alignment);
        if (item->pinned != PLAN_FREE) {
            good = at <= item->pinned;
            at = item->pinned;
        }
        for (uint32_t p = 0; p < item->piece_count; p++)
            raise(&line, piece[p].lower, piece[p].upper, at + piece[p].size);
        offset[sequence[k]] = at;
    }
    arena_free(&scratch);
    return good;
}
