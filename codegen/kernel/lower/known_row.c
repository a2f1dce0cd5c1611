/* Positions of a gather that are known, and follow a rule: those of every element, of each second one, in reverse, or
 * of each one several times, as an image made larger takes the nearest.  Then nothing is read to find a row, and what
 * is done with a loop over it knows where its neighbours are. */
#include "kernel/lower/lower.h"

#define MOST_KNOWN (1 << 16) /* elements that are looked at */

/* first + step * i, or first + (i + shift) / repeats */
typedef struct Rule {
    int64_t first, step, shift, repeats;
} Rule;

static int64_t row_of(const Rule *rule, int64_t i)
{
    return rule->first + (rule->repeats ? (i + rule->shift) / rule->repeats : rule->step * i);
}

static int64_t row_at(const Tensor *list, int64_t i, int64_t extent)
{
    double row = tensor_number(list, i);
    return (int64_t)(row < 0 ? row + (double)extent : row);
}

/* The number of elements from `begin` on that are the same. */
static int64_t run_from(const Tensor *list, int64_t begin, int64_t count, int64_t extent)
{
    int64_t end = begin;
    while (end < count && row_at(list, end, extent) == row_at(list, begin, extent))
        end++;
    return end - begin;
}

/* By its first elements: the first run may be cut off. */
static Rule rule_of(const Tensor *list, int64_t count, int64_t extent)
{
    Rule rule = {.first = row_at(list, 0, extent)};
    int64_t run = run_from(list, 0, count, extent), next = run < count ? run_from(list, run, count, extent) : 0;
    bool repeats = run < count && (run > 1 || next > 1);
    rule.step = count > 1 ? row_at(list, 1, extent) - rule.first : 0;
    rule.repeats = repeats ? (next > run || run + next < count ? next : run) : 0;
    rule.repeats = repeats && rule.repeats < run ? run : rule.repeats;
    rule.shift = repeats ? rule.repeats - run : 0;
    return rule;
}

bool lower_known_row(Lower *lower, ValueId list, Index at, int64_t extent, Index *row)
{
    const Value *value = &lower->graph->value[list];
    int64_t count = shape_elements(&value->type->shape);
    if (value->role != ROLE_CONST || value->type->shape.rank != 1 || count < 1 || count > MOST_KNOWN)
        return false;
    Rule rule = rule_of(value->data, count, extent);
    for (int64_t i = 0; i < count; i++) {
        int64_t known = row_at(value->data, i, extent);
        if (known < 0 || known >= extent || known != row_of(&rule, i))
            return false;
    }
    Arena *arena = lower->arena;
    Index steps = rule.repeats ? index_div(arena, index_add(arena, at, index_constant(rule.shift)), rule.repeats)
                               : index_scale(arena, at, rule.step);
    *row = index_add(arena, steps, index_constant(rule.first));
    return true;
}
