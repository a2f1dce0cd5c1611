/* Dynamic programming over sets of items (Held and Karp, "A dynamic programming approach to sequencing problems",
 * 1962): the least height of a set is that of the set without its topmost, and on it the topmost.  A set on which the
 * rest does not fit is of no use. */
#include "plan/exact_stack.h"

#define SETS (1u << PLAN_MOST_STACKED)

typedef struct Sets {
    int64_t height[SETS];
    uint8_t topmost[SETS];
} Sets;

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

/* No order of those outside the set, on top of it, ends lower: the bound of each class of alignments. */
static int64_t least_end(const PlanStack *stack, uint32_t set, int64_t height)
{
    int64_t end = height;
    for (uint32_t u = 0; u < stack->unit_count; u++) {
        int64_t unit = stack->unit[u], sum = 0, most_slack = 0;
        for (uint32_t k = 0; k < stack->count; k++) {
            const PlanStacked *item = &stack->item[k];
            if (set >> k & 1 || (item->alignment != unit && item->alignment % unit))
                continue;
            int64_t padded = aligned(item->size, unit);
            sum += padded;
            most_slack = padded - item->size > most_slack ? padded - item->size : most_slack;
        }
        int64_t top = sum ? aligned(height, unit) + sum - most_slack : 0;
        end = top > end ? top : end;
    }
    return end;
}

static void extend(const PlanStack *stack, Sets *sets, uint32_t set)
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

static void read_order(PlanStack *stack, const Sets *sets)
{
    uint32_t set = (1u << stack->count) - 1;
    for (uint32_t n = stack->count; n-- > 0; set &= ~(1u << stack->order[n]))
        stack->order[n] = sets->topmost[set];
}

bool plan_stack_fits(PlanStack *stack)
{
    Sets sets;
    uint32_t all = (1u << stack->count) - 1;
    order_quickly(stack);
    stack->work = 1;
    if (plan_stack_height(stack) <= stack->target)
        return true;
    for (uint32_t set = 1; set <= all; set++)
        sets.height[set] = INT64_MAX;
    sets.height[0] = 0;
    stack->need = INT64_MAX;
    for (uint32_t set = 0; set <= all; set++) {
        if (sets.height[set] == INT64_MAX)
            continue;
        int64_t end = least_end(stack, set, sets.height[set]);
        stack->work++;
        if (end <= stack->target)
            extend(stack, &sets, set);
        else
            stack->need = end < stack->need ? end : stack->need;
    }
    if (sets.height[all] > stack->target)
        return false;
    read_order(stack, &sets);
    return true;
}
