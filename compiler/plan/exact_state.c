/* The state of the exhaustive search, changed step by step and taken back.
 *
 * Bounds look at every section once for each class of alignments: the items whose alignment is a multiple of the
 * class's unit lie at multiples of it, so padded to it they still do not overlap. */
#include "plan/exact_state.h"

#include <string.h>

#include "plan/bound.h"
#include "plan/order.h"

#define STACKS_PER_NODE      32 /* sets looked at */
#define FEW                  40 /* items, of which nodes are few enough to look at more sets in each */
#define MOST_STACKED_OF_MANY 14

uint32_t plan_exact_lower(const PlanExact *x, uint32_t item)
{
    return x->items->piece[x->items->item[item].piece].lower;
}

uint32_t plan_exact_upper(const PlanExact *x, uint32_t item)
{
    const PlanItem *it = &x->items->item[item];
    return x->items->piece[it->piece + it->piece_count - 1].upper;
}

/* Lists the pieces of each section, those of a class alone. */
static void index_sections(Arena *arena, const PlanItems *items, const int64_t *size, uint32_t **piece_start,
                           uint32_t **section_piece)
{
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, (size_t)items->section_count + 2), sum = 0;
    for (uint32_t i = 0; i < items->piece_count; i++)
        for (uint32_t s = items->piece[i].lower; size[i] && s < items->piece[i].upper; s++, sum++)
            start[s + 2]++;
    for (uint32_t s = 2; s < items->section_count + 2; s++)
        start[s] += start[s - 1];
    uint32_t *list = ARENA_ARRAY(arena, uint32_t, sum);
    for (uint32_t i = 0; i < items->piece_count; i++)
        for (uint32_t s = items->piece[i].lower; size[i] && s < items->piece[i].upper; s++)
            list[start[s + 1]++] = i;
    *piece_start = start;
    *section_piece = list;
}

static void add_class(PlanExact *x, int64_t unit)
{
    const PlanItems *items = x->items;
    ExactClass *c = &x->class[x->class_count++];
    uint32_t *list;
    *c = (ExactClass){.unit = unit,
                      .size = ARENA_ARRAY(x->arena, int64_t, items->piece_count),
                      .slack = ARENA_ARRAY(x->arena, int64_t, items->piece_count),
                      .most_slack = ARENA_ARRAY(x->arena, int64_t, items->section_count),
                      .rest = ARENA_ARRAY(x->arena, int64_t, items->section_count),
                      .witness = ARENA_ARRAY(x->arena, uint32_t, items->section_count)};
    plan_class_sizes(items, unit, c->size, c->slack);
    index_sections(x->arena, items, c->size, &c->start, &list);
    c->item_slack = ARENA_ARRAY(x->arena, int64_t, c->start[items->section_count]);
    for (uint32_t s = 0; s < items->section_count; s++)
        for (uint32_t k = c->start[s]; k < c->start[s + 1]; k++) {
            int64_t slack = c->item_slack[k] = c->slack[list[k]];
            c->most_slack[s] = slack > c->most_slack[s] ? slack : c->most_slack[s];
            list[k] = items->piece[list[k]].item;
        }
    c->item = list;
}

/* Fills the neighbour lists.  An item of several pieces meets another as often as their pieces meet; the largest of its
 * pieces that do so counts. */
static void index_neighbours(PlanExact *x, const uint32_t *start, const uint32_t *list)
{
    const PlanItems *items = x->items;
    uint32_t *seen = ARENA_ARRAY(x->arena, uint32_t, items->count);
    uint32_t capacity = 0, count = 0;
    memset(seen, 0xff, sizeof *seen * items->count);
    x->neighbour_start = ARENA_ARRAY(x->arena, uint32_t, (size_t)items->count + 1);
    for (uint32_t i = 0; i < items->count; i++) {
        const PlanItem *item = &items->item[i];
        uint32_t begin = x->neighbour_start[i] = count;
        for (uint32_t p = item->piece; p < item->piece + item->piece_count; p++)
            for (uint32_t k = start[items->piece[p].lower]; k < start[items->piece[p].upper]; k++) {
                uint32_t other = items->piece[list[k]].item;
                if (other == i)
                    continue;
                if (seen[other] == PLAN_NONE || seen[other] < begin) {
                    seen[other] = count;
                    ARENA_PUSH(x->arena, x->neighbour, count, capacity, ((ExactNeighbour){other, 0, 0}));
                }
                ExactNeighbour *n = &x->neighbour[seen[other]];
                int64_t size = items->piece[list[k]].size;
                n->reach = items->piece[p].size > n->reach ? items->piece[p].size : n->reach;
                n->lift = size > n->lift ? size : n->lift;
            }
    }
    x->neighbour_start[items->count] = count;
}

/* Items of one life, size and alignment: exchanged they make no other placement, so they come in order of index. */
static void find_twins(PlanExact *x)
{
    for (uint32_t i = 0; i < x->items->count; i++) {
        const PlanItem *a = &x->items->item[i];
        x->twin[i] = PLAN_NONE;
        for (uint32_t k = x->neighbour_start[i]; k < x->neighbour_start[i + 1]; k++) {
            uint32_t other = x->neighbour[k].item;
            const PlanItem *b = &x->items->item[other];
            bool like = a->piece_count == 1 && b->piece_count == 1 && a->size == b->size &&
                        a->alignment == b->alignment && a->pinned == PLAN_FREE && b->pinned == PLAN_FREE &&
                        x->items->piece[a->piece].slack == x->items->piece[b->piece].slack &&
                        plan_exact_lower(x, i) == plan_exact_lower(x, other) &&
                        plan_exact_upper(x, i) == plan_exact_upper(x, other);
            if (like && other < i && (x->twin[i] == PLAN_NONE || other > x->twin[i]))
                x->twin[i] = other;
        }
    }
}

PlanExact *plan_exact_new(Arena *arena, const PlanItems *items)
{
    PlanExact *x = ARENA_NEW(arena, PlanExact);
    uint32_t n = items->count, sections = items->section_count, *start;
    *x = (PlanExact){.arena = arena, .items = items};
    uint32_t classes = plan_classes(items, x->unit, MOST_CLASSES);
    for (uint32_t c = 0; c < classes; c++)
        add_class(x, x->unit[c]);
    index_sections(arena, items, x->class[0].size, &start, &x->section_piece);
    index_neighbours(x, start, x->section_piece);
    x->conflicts = plan_conflicts(arena, items);
    x->twin = ARENA_ARRAY(arena, uint32_t, n);
    find_twins(x);
    if (classes > 1) {
        x->most_stacked = n <= FEW ? PLAN_MOST_STACKED : MOST_STACKED_OF_MANY;
        x->sets = plan_sets_new(arena);
        x->order = ARENA_ARRAY(arena, uint32_t, (size_t)sections * PLAN_MOST_STACKED);
        memset(x->order, 0xff, sizeof *x->order * sections * PLAN_MOST_STACKED);
    }

    x->least = ARENA_ARRAY(arena, int64_t, n);
    x->support = ARENA_ARRAY(arena, int64_t, n);
    x->placed = ARENA_ARRAY(arena, int64_t, n);
    x->rank = ARENA_ARRAY(arena, uint32_t, n);
    x->next = ARENA_ARRAY(arena, uint32_t, (size_t)n + 1);
    x->prev = ARENA_ARRAY(arena, uint32_t, (size_t)n + 1);
    x->cut = ARENA_ARRAY(arena, uint32_t, sections);
    x->blame = ARENA_ARRAY(arena, int64_t, sections);
    x->path = ARENA_ARRAY(arena, ExactStep, n);
    return x;
}

static void change(PlanExact *x, int64_t *where, int64_t value)
{
    ARENA_PUSH(x->arena, x->undo, x->undo_count, x->undo_capacity, ((ExactUndo){where, *where}));
    *where = value;
}

void plan_exact_undo(PlanExact *x, uint32_t undo_count)
{
    while (x->undo_count > undo_count) {
        const ExactUndo *u = &x->undo[--x->undo_count];
        *u->where = u->value;
    }
}

/* The least offset >= at that suits the item and lies clear of all pinned neighbours, which do not move. */
static int64_t clear_of_pins(const PlanExact *x, uint32_t item, int64_t at)
{
    const PlanItem *it = &x->items->item[item];
    at = plan_align(at, it->alignment);
    if (x->items->plain)
        return at;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t k = x->neighbour_start[item]; k < x->neighbour_start[item + 1]; k++) {
            const ExactNeighbour *n = &x->neighbour[k];
            int64_t pin = x->items->item[n->item].pinned;
            if (pin == PLAN_FREE || at + n->reach <= pin)
                continue;
            if (at < pin + n->lift) {
                at = plan_align(pin + n->lift, it->alignment);
                moved = true;
            }
        }
    }
    return at;
}

/* Raises what the item, now placed, supports; widens *hull to the sections in which a bound may have changed. */
static void lift_neighbours(PlanExact *x, uint32_t item, ExactPart *hull)
{
    int64_t offset = x->placed[item];
    for (uint32_t k = x->neighbour_start[item]; k < x->neighbour_start[item + 1]; k++) {
        uint32_t other = x->neighbour[k].item;
        int64_t top = offset + x->neighbour[k].reach;
        if (x->placed[other] >= 0 || x->support[other] >= top || x->items->item[other].pinned != PLAN_FREE)
            continue;
        top = clear_of_pins(x, other, top);
        change(x, &x->support[other], top);
        if (x->least[other] >= top)
            continue;
        change(x, &x->least[other], top);
        uint32_t lower = plan_exact_lower(x, other), upper = plan_exact_upper(x, other);
        hull->lower = lower < hull->lower ? lower : hull->lower;
        hull->upper = upper > hull->upper ? upper : hull->upper;
    }
}

bool plan_exact_reaches(PlanExact *x, int64_t height)
{
    if (height <= x->target)
        return true;
    x->leap = height < x->leap ? height : x->leap;
    return false;
}

/* Does what is left of a section, in one class, fit above its floor, the lowest least offset?  The topmost need not
 * keep its padding.  Mostly the floor is not needed, only a witness: an item that can lie low enough.  The last one
 * mostly still is one. */
static bool row_fits(PlanExact *x, ExactClass *c, uint32_t s)
{
    int64_t limit = x->target - c->rest[s], floor = INT64_MAX, slack = 0;
    if (!c->rest[s] || x->least[c->item[c->witness[s]]] - c->item_slack[c->witness[s]] <= limit)
        return true;
    for (uint32_t k = c->start[s]; k < c->start[s + 1]; k++) {
        int64_t least = x->least[c->item[k]];
        if (least == INT64_MAX)
            continue;
        if (least - c->item_slack[k] <= limit) {
            c->witness[s] = k;
            return true;
        }
        floor = least < floor ? least : floor;
        slack = c->item_slack[k] > slack ? c->item_slack[k] : slack;
    }
    if (floor - slack <= limit)
        return true;
    x->blame[s]++;
    return plan_exact_reaches(x, floor - slack + c->rest[s]);
}

/* Lists what the section has yet to place; false when that is too much. */
static bool list_stack(const PlanExact *x, uint32_t s, PlanStack *stack)
{
    const ExactClass *c = &x->class[0];
    stack->count = 0;
    for (uint32_t k = c->start[s]; k < c->start[s + 1]; k++) {
        uint32_t item = c->item[k];
        if (x->least[item] == INT64_MAX)
            continue;
        if (stack->count == x->most_stacked)
            return false;
        const PlanPiece *piece = &x->items->piece[x->section_piece[k]];
        stack->item[stack->count++] =
            (PlanStacked){x->least[item], piece->size - piece->slack, x->items->item[item].alignment, item};
    }
    return true;
}

/* Does the order that was found when last looked at still do?  It may have more items than are left. */
static bool order_stands(const PlanExact *x, uint32_t s, PlanStack *stack)
{
    const uint32_t *order = &x->order[(size_t)s * PLAN_MOST_STACKED];
    uint32_t count = 0;
    for (uint32_t n = 0; n < PLAN_MOST_STACKED; n++)
        for (uint32_t k = 0; k < stack->count; k++)
            if (stack->item[k].item == order[n])
                stack->order[count++] = (uint8_t)k;
    return count == stack->count && plan_stack_height(stack) <= x->target;
}

static bool stack_fits(PlanExact *x, uint32_t s)
{
    PlanStack stack = {.target = x->target, .unit = x->unit, .unit_count = x->class_count};
    if (!list_stack(x, s, &stack) || order_stands(x, s, &stack))
        return true;
    bool fits = plan_stack_fits(&stack, x->sets);
    x->nodes += stack.work / STACKS_PER_NODE;
    for (uint32_t n = 0; fits && n < stack.count; n++)
        x->order[(size_t)s * PLAN_MOST_STACKED + n] = stack.item[stack.order[n]].item;
    if (fits)
        return true;
    x->blame[s]++;
    return plan_exact_reaches(x, stack.need);
}

static bool sections_fit(PlanExact *x, const ExactPart *hull)
{
    for (uint32_t k = 0; k < x->class_count; k++)
        for (uint32_t s = hull->lower; s < hull->upper; s++)
            if (!row_fits(x, &x->class[k], s))
                return false;
    for (uint32_t s = hull->lower; x->class_count > 1 && s < hull->upper; s++)
        if (!stack_fits(x, s))
            return false;
    return true;
}

/* Adds the item to what is to be placed, or with `sign` -1 takes it away. */
static void change_rest(PlanExact *x, uint32_t item, int64_t sign)
{
    const PlanItem *it = &x->items->item[item];
    for (uint32_t k = 0; k < x->class_count; k++) {
        ExactClass *c = &x->class[k];
        for (uint32_t p = it->piece; p < it->piece + it->piece_count && it->alignment % c->unit == 0; p++)
            for (uint32_t s = x->items->piece[p].lower; s < x->items->piece[p].upper; s++)
                c->rest[s] += sign * c->size[p];
    }
}

bool plan_exact_put(PlanExact *x, uint32_t item, int64_t offset)
{
    ExactPart hull = {0, plan_exact_lower(x, item), plan_exact_upper(x, item)};
    x->path[x->path_count++] = (ExactStep){item, x->undo_count};
    x->placed[item] = offset;
    change(x, &x->least[item], INT64_MAX);
    x->next[x->prev[item]] = x->next[item];
    x->prev[x->next[item]] = x->prev[item];
    change_rest(x, item, -1);
    lift_neighbours(x, item, &hull);
    return sections_fit(x, &hull);
}

void plan_exact_take_back(PlanExact *x)
{
    ExactStep step = x->path[--x->path_count];
    uint32_t item = step.item;
    plan_exact_undo(x, step.undo_count);
    change_rest(x, item, 1);
    x->next[x->prev[item]] = item;
    x->prev[x->next[item]] = item;
    x->placed[item] = -1;
}

bool plan_exact_pass_over(PlanExact *x, uint32_t item, int64_t offset)
{
    int64_t lowest = INT64_MAX;
    for (uint32_t k = x->neighbour_start[item]; k < x->neighbour_start[item + 1]; k++) {
        uint32_t other = x->neighbour[k].item;
        if (x->placed[other] >= 0)
            continue;
        int64_t top = (x->least[other] > offset ? x->least[other] : offset) + x->neighbour[k].lift;
        lowest = top < lowest ? top : lowest;
    }
    if (lowest == INT64_MAX || x->items->item[item].pinned != PLAN_FREE)
        return false;
    if (lowest <= x->least[item])
        return true;
    change(x, &x->least[item], clear_of_pins(x, item, lowest));
    return sections_fit(x, &(ExactPart){0, plan_exact_lower(x, item), plan_exact_upper(x, item)});
}

bool plan_exact_cut(PlanExact *x, uint32_t item, uint32_t by)
{
    bool zero = false;
    for (uint32_t s = plan_exact_lower(x, item); s + 1 < plan_exact_upper(x, item); s++)
        zero |= (x->cut[s] += by) == 0;
    return zero;
}

int64_t plan_exact_most_rest(const PlanExact *x, const ExactPart *part)
{
    int64_t most = 0;
    for (uint32_t k = 0; k < x->class_count; k++)
        for (uint32_t s = part->lower; s < part->upper; s++) {
            int64_t rest = x->class[k].rest[s] - x->class[k].most_slack[s];
            most = rest > most ? rest : most;
        }
    return most;
}

static void reset_class(PlanExact *x, ExactClass *c)
{
    const PlanItems *items = x->items;
    memset(c->rest, 0, sizeof *c->rest * items->section_count);
    for (uint32_t p = 0; p < items->piece_count; p++)
        for (uint32_t s = items->piece[p].lower; c->size[p] && s < items->piece[p].upper; s++)
            c->rest[s] += c->size[p];
    for (uint32_t s = 0; s < items->section_count; s++)
        c->witness[s] = c->start[s];
}

bool plan_exact_reset(PlanExact *x)
{
    const PlanItems *items = x->items;
    x->leap = INT64_MAX;
    x->undo_count = x->candidate_count = x->path_count = 0;
    memset(x->cut, 0, sizeof *x->cut * items->section_count);
    for (uint32_t k = 0; k < x->class_count; k++)
        reset_class(x, &x->class[k]);
    for (uint32_t i = 0; i < items->count; i++) {
        x->placed[i] = -1;
        if (!items->item[i].piece_count)
            continue;
        x->support[i] = items->item[i].pinned != PLAN_FREE ? items->item[i].pinned : clear_of_pins(x, i, 0);
        x->least[i] = x->support[i];
        plan_exact_cut(x, i, 1);
    }
    return items->lower_bound <= x->target;
}
