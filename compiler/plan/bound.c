#include "plan/bound.h"

#include "base/number.h"
#include "plan/sort.h"

#define MOST_CLASSES 8
#define MOST_STACKED 12               /* items of a section that are stacked in every order */
#define MOST_STACKS  UINT64_C(400000) /* sets of items looked at so, in all */

static void add_unit(int64_t *unit, uint32_t *count, uint32_t most, int64_t value)
{
    for (uint32_t i = 0; i < *count; i++)
        if (unit[i] == value)
            return;
    if (*count < most)
        unit[(*count)++] = value;
}

uint32_t plan_classes(const PlanItems *items, int64_t *unit, uint32_t most)
{
    uint32_t count = 0;
    add_unit(unit, &count, most, items->unit);
    for (uint32_t i = 0; i < items->count && !items->uniform; i++)
        if (items->item[i].piece_count)
            add_unit(unit, &count, most, items->item[i].alignment);
    for (uint32_t a = 1, known = count; a < known; a++)
        for (uint32_t b = 1; b < a; b++)
            add_unit(unit, &count, most, number_gcd(unit[a], unit[b]));
    return count;
}

void plan_class_sizes(const PlanItems *items, int64_t unit, int64_t *size, int64_t *slack)
{
    for (uint32_t p = 0; p < items->piece_count; p++) {
        const PlanPiece *piece = &items->piece[p];
        int64_t bytes = piece->size - piece->slack;
        bool of_class = items->item[piece->item].alignment % unit == 0;
        size[p] = of_class ? plan_align(bytes, unit) : 0;
        slack[p] = of_class ? size[p] - bytes : 0;
    }
}

/* The most padding of any piece that is live, for each section: pieces in order of falling slack paint the sections
 * that are still blank; `next` skips over painted ones. */
static int64_t *most_slack(Arena *scratch, const PlanItems *items, const int64_t *slack)
{
    uint32_t n = items->piece_count, sections = items->section_count;
    int64_t *most = ARENA_ARRAY(scratch, int64_t, sections);
    uint32_t *next = ARENA_ARRAY(scratch, uint32_t, (size_t)sections + 1);
    SortKey *order = ARENA_ARRAY(scratch, SortKey, n);
    for (uint32_t i = 0; i < n; i++)
        order[i] = (SortKey){sort_falling(slack[i]), i};
    for (uint32_t s = 0; s <= sections; s++)
        next[s] = s;
    sort_ascending(scratch, order, n);
    for (uint32_t i = 0; i < n; i++) {
        const PlanPiece *piece = &items->piece[order[i].index];
        uint32_t s = piece->lower;
        while (s < piece->upper) {
            if (next[s] != s) {
                next[s] = next[next[s]];
                s = next[s];
                continue;
            }
            most[s] = slack[order[i].index];
            next[s] = s + 1;
            s++;
        }
    }
    return most;
}

static void raise_bound(PlanItems *items, int64_t to)
{
    items->lower_bound = to > items->lower_bound ? to : items->lower_bound;
}

/* What the class has live in each section, into load; the topmost of them need not keep its padding. */
static void measure_class(Arena *scratch, PlanItems *items, int64_t unit, int64_t *load)
{
    ArenaMark mark = arena_mark(scratch);
    int64_t live = 0, *change = ARENA_ARRAY(scratch, int64_t, (size_t)items->section_count + 1);
    int64_t *size = ARENA_ARRAY(scratch, int64_t, items->piece_count);
    int64_t *slack = ARENA_ARRAY(scratch, int64_t, items->piece_count);
    plan_class_sizes(items, unit, size, slack);
    for (uint32_t i = 0; i < items->piece_count; i++) {
        change[items->piece[i].lower] += size[i];
        change[items->piece[i].upper] -= size[i];
    }
    const int64_t *most = unit > 1 ? most_slack(scratch, items, slack) : NULL;
    for (uint32_t s = 0; s < items->section_count; s++) {
        live += change[s];
        load[s] = live;
        raise_bound(items, live - (most ? most[s] : 0));
    }
    arena_reset(scratch, mark);
}

/* The least height of a stack of these pieces, in any order: for each set of them the least that it can have, which is
 * that of the set without its topmost one, aligned, and the topmost one. */
static int64_t least_stack(const PlanItems *items, const uint32_t *piece, uint32_t count, int64_t *height)
{
    height[0] = 0;
    for (uint32_t set = 1; set < 1u << count; set++) {
        height[set] = INT64_MAX;
        for (uint32_t k = 0; k < count; k++) {
            if (!(set >> k & 1))
                continue;
            const PlanPiece *p = &items->piece[piece[k]];
            int64_t top = plan_align(height[set & ~(1u << k)], items->item[p->item].alignment) + p->size - p->slack;
            height[set] = top < height[set] ? top : height[set];
        }
    }
    return height[(1u << count) - 1];
}

/* Keeps those of the largest alignments, of equals the largest. */
static void keep_coarse(const PlanItems *items, Arena *scratch, uint32_t *piece, uint32_t count)
{
    ArenaMark mark = arena_mark(scratch);
    SortKey *key = ARENA_ARRAY(scratch, SortKey, count);
    for (uint32_t k = 0; k < count; k++)
        key[k] = (SortKey){sort_falling(items->piece[piece[k]].size), piece[k]};
    sort_ascending(scratch, key, count);
    for (uint32_t k = 0; k < count; k++)
        key[k].key = sort_falling(items->item[items->piece[key[k].index].item].alignment);
    sort_ascending(scratch, key, count);
    for (uint32_t k = 0; k < count; k++)
        piece[k] = key[k].index;
    arena_reset(scratch, mark);
}

/* The stack that any one section makes, as far as the work may go. */
static void measure_stacks(Arena *scratch, PlanItems *items)
{
    uint32_t n = items->piece_count, live_count = 0, begun = 0;
    SortKey *begin = ARENA_ARRAY(scratch, SortKey, n);
    uint32_t *live = ARENA_ARRAY(scratch, uint32_t, n), *some = ARENA_ARRAY(scratch, uint32_t, n);
    int64_t *height = ARENA_ARRAY(scratch, int64_t, 1u << MOST_STACKED);
    uint64_t left = MOST_STACKS;
    for (uint32_t i = 0; i < n; i++)
        begin[i] = (SortKey){items->piece[i].lower, i};
    sort_ascending(scratch, begin, n);
    for (uint32_t s = 0; s < items->section_count; s++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < live_count; k++)
            if (items->piece[live[k]].upper > s)
                live[count++] = live[k];
        for (live_count = count; begun < n && begin[begun].key == s; begun++)
            live[live_count++] = begin[begun].index;
        for (count = 0; count < live_count; count++)
            some[count] = live[count];
        if (count > MOST_STACKED)
            keep_coarse(items, scratch, some, count);
        count = count < MOST_STACKED ? count : MOST_STACKED;
        if (left < live_count + (1u << count))
            return;
        left -= live_count + (1u << count);
        raise_bound(items, least_stack(items, some, count, height));
    }
}

void plan_measure(Arena *scratch, PlanItems *items)
{
    ArenaMark mark = arena_mark(scratch);
    int64_t unit[MOST_CLASSES], *load = ARENA_ARRAY(scratch, int64_t, items->section_count);
    uint32_t classes = plan_classes(items, unit, MOST_CLASSES);
    items->lower_bound = 0;
    for (uint32_t c = 0; c < classes; c++)
        measure_class(scratch, items, unit[c], c ? load : items->load);
    if (!items->uniform)
        measure_stacks(scratch, items);
    /* A pin may reach higher than any sum. */
    for (uint32_t i = 0; i < items->piece_count; i++) {
        const PlanPiece *piece = &items->piece[i];
        int64_t pinned = items->item[piece->item].pinned;
        if (pinned != PLAN_FREE)
            raise_bound(items, pinned + piece->size - piece->slack);
    }
    arena_reset(scratch, mark);
}
