/* Dynamic programming over sets of items (Held and Karp, "A dynamic programming approach to sequencing problems",
 * 1962): the least height of a set is that of the set without its topmost, and on it the topmost.  A set on which the
 * rest does not fit is of no use. */
#include "plan/exact_stack.h"

#define SETS (1u << PLAN_MOST_STACKED)
#define HALF (PLAN_MOST_STACKED / 2)

typedef struct Figures {     /* of some items in a class of alignments */
    int64_t sum, most_slack; /* of padded sizes; the padding of one */
    int64_t least;           /* the lowest offset */
} Figures;

struct PlanSets {
    int64_t height[SETS];
    uint8_t topmost[SETS];
    Figures figures[PLAN_MOST_UNITS][2][1u << HALF]; /* [class][half of the items][set of these] */
};

PlanSets *plan_sets_new(Arena *arena)
{
    return ARENA_NEW(arena, PlanSets);
}

static int64_t aligned(int64_t height, int64_t unit)
{
    if (!(unit & (unit - 1)))
        return (height + unit - 1) & -unit;
    return (height + unit - 1) / unit * unit;
}

static int64_t top_on(const PlanStacked *item, int64_t height)
{
    return (height > item->least ? aligned(height, item->alignment) : item->least) + item->size;
}

int64_t plan_stack_height(const PlanStack *stack)
{
    int64_t height = 0;
    for (uint32_t k = 0; k < stack->count; k++)
        height = top_on(&stack->item[stack->order[k]], height);
    return height;
}

/* Always the item that can end lowest is next. */
static void order_quickly(PlanStack *stack)
{
    uint32_t waiting = (1u << stack->count) - 1;
    int64_t height = 0;
    for (uint32_t n = 0; n < stack->count; n++) {
        uint32_t next = 0;
        int64_t lowest = INT64_MAX;
        for (uint32_t k = 0; k < stack->count; k++)
            if (waiting >> k & 1 && top_on(&stack->item[k], height) < lowest) {
                lowest = top_on(&stack->item[k], height);
                next = k;
            }
        waiting &= ~(1u << next);
        stack->order[n] = (uint8_t)next;
        height = lowest;
    }
}

static Figures both(Figures a, Figures b)
{
    return (Figures){a.sum + b.sum, a.most_slack > b.most_slack ? a.most_slack : b.most_slack,
                     a.least < b.least ? a.least : b.least};
}

static Figures figures_of(const PlanStack *stack, uint32_t k, int64_t unit)
{
    if (k >= stack->count || (stack->item[k].alignment != unit && stack->item[k].alignment % unit))
        return (Figures){0, 0, INT64_MAX};
    int64_t padded = aligned(stack->item[k].size, unit);
    return (Figures){padded, padded - stack->item[k].size, stack->item[k].least};
}

static void fill_figures(const PlanStack *stack, PlanSets *sets)
{
    for (uint32_t u = 0; u < stack->unit_count; u++)
        for (uint32_t half = 0; half < 2; half++) {
            Figures *figures = sets->figures[u][half];
            figures[0] = (Figures){0, 0, INT64_MAX};
            for (uint32_t k = 0; k < HALF; k++) {
                Figures item = figures_of(stack, half * HALF + k, stack->unit[u]);
                for (uint32_t set = 0; set < 1u << k; set++)
                    figures[set | 1u << k] = both(figures[set], item);
            }
        }
}

/* No order of those outside the set, on top of it, ends lower: the bound of each class of alignments. */
static int64_t least_end(const PlanStack *stack, const PlanSets *sets, uint32_t set)
{
    int64_t height = sets->height[set], end = height;
    uint32_t rest = ~set & ((1u << stack->count) - 1);
    for (uint32_t u = 0; u < stack->unit_count; u++) {
        Figures f = both(sets->figures[u][0][rest & ((1u << HALF) - 1)], sets->figures[u][1][rest >> HALF]);
        int64_t floor = f.least > height ? f.least : height;
        int64_t top = f.sum ? aligned(floor, stack->unit[u]) + f.sum - f.most_slack : 0;
        end = top > end ? top : end;
    }
    return end;
}

static void extend(const PlanStack *stack, PlanSets *sets, uint32_t set)
{
    for (uint32_t k = 0; k < stack->count; k++) {
        uint32_t with = set | 1u << k;
        if (with == set)
            continue;
        int64_t top = top_on(&stack->item[k], sets->height[set]);
        if (top < sets->height[with]) {
            sets->height[with] = top;
            sets->topmost[with] = (uint8_t)k;
        }
    }
}

static void read_order(PlanStack *stack, const PlanSets *sets)
{
    uint32_t set = (1u << stack->count) - 1;
    for (uint32_t n = stack->count; n-- > 0; set &= ~(1u << stack->order[n]))
        stack->order[n] = sets->topmost[set];
}

bool plan_stack_fits(PlanStack *stack, PlanSets *sets)
{
    uint32_t all = (1u << stack->count) - 1;
    order_quickly(stack);
    stack->work = 1;
    if (plan_stack_height(stack) <= stack->target)
        return true;
    for (uint32_t set = 1; set <= all; set++)
        sets->height[set] = INT64_MAX;
    sets->height[0] = 0;
    fill_figures(stack, sets);
    stack->need = INT64_MAX;
    for (uint32_t set = 0; set <= all; set++) {
        if (sets->height[set] == INT64_MAX)
            continue;
        int64_t end = least_end(stack, sets, set);
        stack->work++;
        if (end <= stack->target)
            extend(stack, sets, set);
        else
            stack->need = end < stack->need ? end : stack->need;
    }
    if (sets->height[all] > stack->target)
        return false;
    read_order(stack, sets);
    return true;
}
