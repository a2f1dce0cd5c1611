#include "plan/order.h"

#include <string.h>

#include "plan/sort.h"

#define ORDER_NAME(NAME, name, first, keys) name,
#define ORDER_KEYS(NAME, name, first, keys) keys,
const char *const plan_order_name[PLAN_ORDERS] = {PLAN_ORDER_ROWS(ORDER_NAME)};
static const char *const order_keys[PLAN_ORDERS] = {PLAN_ORDER_ROWS(ORDER_KEYS)};

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

typedef struct Figures { /* those that take work, per item; NULL until asked for */
    const PlanItems *items;
    uint32_t *conflicts;
    int64_t *breadth;
} Figures;

static uint64_t sort_key(const Figures *f, uint32_t index, char key)
{
    const PlanItem *item = &f->items->item[index];
    switch (key) {
    case 's':
        return sort_falling(item->size);
    case 'l':
        return sort_falling(item->length);
    case 'a':
        return sort_falling(saturating_area(item));
    case 'c':
        return sort_falling(f->conflicts[index]);
    case 'b':
        return sort_falling(f->breadth[index]);
    case 'g':
        return sort_falling(item->alignment);
    case 'e':
        return sort_falling(f->items->piece[item->piece + item->piece_count - 1].upper);
    default:
        return (uint64_t)item->start ^ UINT64_C(1) << 63;
    }
}

static void sort_by(Arena *scratch, Figures *f, SortKey *keys, uint32_t count, char key)
{
    if (key == 'c')
        f->conflicts = plan_conflicts(scratch, f->items);
    if (key == 'b')
        f->breadth = plan_breadth(scratch, f->items);
    for (uint32_t k = 0; k < count; k++)
        keys[k].key = sort_key(f, keys[k].index, key);
    sort_ascending(scratch, keys, count);
}

uint32_t plan_order(Arena *arena, const PlanItems *items, PlanOrder order, uint32_t *sequence)
{
    ArenaMark mark = arena_mark(arena);
    SortKey *keys = ARENA_ARRAY(arena, SortKey, items->count);
    Figures figures = {.items = items};
    uint32_t count = 0;
    for (uint32_t i = 0; i < items->count; i++)
        if (items->item[i].piece_count)
            keys[count++].index = i;

    for (size_t k = strlen(order_keys[order]); k-- > 0;)
        sort_by(arena, &figures, keys, count, order_keys[order][k]);
    for (uint32_t k = 0; !items->plain && k < count; k++)
        keys[k].key = items->item[keys[k].index].pinned == PLAN_FREE;
    if (!items->plain)
        sort_ascending(arena, keys, count);
    for (uint32_t k = 0; k < count; k++)
        sequence[k] = keys[k].index;
    arena_reset(arena, mark);
    return count;
}
