#include "plan/order.h"

#include "plan/sort.h"

const char *const plan_order_name[PLAN_ORDERS] = {"size", "conflicts", "area", "length", "start", "breadth"};

uint32_t *plan_conflicts(Arena *arena, const PlanItems *items)
{
    Arena scratch = {0};
    uint32_t sections = items->section_count;
    uint32_t *begun = ARENA_ARRAY(&scratch, uint32_t, (size_t)sections + 1); /* pieces with lower <  s */
    uint32_t *ended = ARENA_ARRAY(&scratch, uint32_t, (size_t)sections + 1); /* pieces with upper <= s */
    uint32_t *conflicts = ARENA_ARRAY(arena, uint32_t, items->count);
    for (uint32_t i = 0; i < items->piece_count; i++) {
        begun[items->piece[i].lower + 1]++;
        ended[items->piece[i].upper]++;
    }
    for (uint32_t s = 1; s <= sections; s++) {
        begun[s] += begun[s - 1];
        ended[s] += ended[s - 1];
    }
    for (uint32_t i = 0; i < items->piece_count; i++) {
        const PlanPiece *piece = &items->piece[i];
        conflicts[piece->item] += begun[piece->upper] - ended[piece->lower] - 1;
    }
    arena_free(&scratch);
    return conflicts;
}

int64_t *plan_breadth(Arena *arena, const PlanItems *items)
{
    Arena scratch = {0};
    uint32_t leaves = items->section_count;
    int64_t *most = ARENA_ARRAY(&scratch, int64_t, 2 * (size_t)leaves + 1); /* a bottom-up tree of maxima */
    int64_t *breadth = ARENA_ARRAY(arena, int64_t, items->count);
    for (uint32_t s = 0; s < leaves; s++)
        most[leaves + s] = items->load[s];
    for (uint32_t s = leaves; s-- > 1;)
        most[s] = most[2 * s] > most[2 * s + 1] ? most[2 * s] : most[2 * s + 1];
    for (uint32_t i = 0; i < items->piece_count; i++) {
        int64_t *b = &breadth[items->piece[i].item];
        uint32_t lower = items->piece[i].lower + leaves, upper = items->piece[i].upper + leaves;
        for (; lower < upper; lower /= 2, upper /= 2) {
            if (lower & 1) {
                if (most[lower] > *b)
                    *b = most[lower];
                lower++;
            }
            if (upper & 1) {
                upper--;
                if (most[upper] > *b)
                    *b = most[upper];
            }
        }
    }
    arena_free(&scratch);
    return breadth;
}

static int64_t saturating_area(const PlanItem *item)
{
    return item->length && item->size > INT64_MAX / item->length ? INT64_MAX : item->size * item->length;
}

static void sort_by(Arena *scratch, SortKey *keys, uint32_t count, const PlanItems *items, PlanOrder order)
{
    uint32_t *conflicts = order == PLAN_BY_CONFLICTS ? plan_conflicts(scratch, items) : NULL;
    int64_t *breadth = order == PLAN_BY_BREADTH ? plan_breadth(scratch, items) : NULL;
    for (uint32_t k = 0; k < count; k++) {
        const PlanItem *item = &items->item[keys[k].index];
        uint64_t *key = &keys[k].key;
        switch (order) {
        case PLAN_BY_SIZE:
            *key = sort_falling(item->size);
            break;
        case PLAN_BY_CONFLICTS:
            *key = sort_falling(conflicts[keys[k].index]);
            break;
        case PLAN_BY_AREA:
            *key = sort_falling(saturating_area(item));
            break;
        case PLAN_BY_LENGTH:
            *key = sort_falling(item->length);
            break;
        case PLAN_BY_START:
            *key = (uint64_t)item->start ^ UINT64_C(1) << 63;
            break;
        case PLAN_BY_BREADTH:
            *key = sort_falling(breadth[keys[k].index]);
            break;
        case PLAN_ORDERS:
            break;
        }
    }
    sort_ascending(scratch, keys, count);
}

uint32_t plan_order(Arena *arena, const PlanItems *items, PlanOrder order, uint32_t *sequence)
{
    ArenaMark mark = arena_mark(arena);
    SortKey *keys = ARENA_ARRAY(arena, SortKey, items->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < items->count; i++)
        if (items->item[i].piece_count)
            keys[count++].index = i;

    if (order != PLAN_BY_LENGTH)
        sort_by(arena, keys, count, items, PLAN_BY_LENGTH);
    if (order != PLAN_BY_SIZE)
        sort_by(arena, keys, count, items, PLAN_BY_SIZE);
    sort_by(arena, keys, count, items, order);
    for (uint32_t k = 0; !items->plain && k < count; k++)
        keys[k].key = items->item[keys[k].index].pinned == PLAN_FREE;
    if (!items->plain)
        sort_ascending(arena, keys, count);
    for (uint32_t k = 0; k < count; k++)
        sequence[k] = keys[k].index;
    arena_reset(arena, mark);
    return count;
}
