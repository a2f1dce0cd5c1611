/* Positions of a gather that are known, and follow a rule: those of every element, of each second one, in reverse, or
 * of each one several times, as an image made larger takes the nearest.  Then nothing is read to find a row, and what
 * is done with a loop over it knows where its neighbours are. */
#include "base/number.h"
#include "kernel/lower/lower.h"

#include <math.h>
#include <string.h>

#define MOST_KNOWN (1 << 16) /* elements that are looked at */

static int64_t number_at(const ListRule *rule, int64_t i)
{
    return rule->first + (rule->repeats ? (i + rule->shift) / rule->repeats : rule->step * i);
}

/* Those of a table are far smaller. */
static bool is_position(const Tensor *list, int64_t i)
{
    return fabs(tensor_number(list, i)) < 0x1p53;
}

/* How many from `begin` on are the same. */
static int64_t run_from(const Tensor *list, int64_t begin, int64_t count)
{
    int64_t end = begin;
    while (end < count && tensor_number(list, end) == tensor_number(list, begin))
        end++;
    return end - begin;
}

/* By its first elements: the first run may be cut off, and so may the second, if it is the last. */
static ListRule first_rule(const Tensor *list, int64_t count)
{
    ListRule rule = {.first = (int64_t)tensor_number(list, 0)};
    int64_t run = run_from(list, 0, count), next = run < count ? run_from(list, run, count) : 0;
    if (next && (run > 1 || next > 1)) {
        rule.repeats = run + next < count || next > run ? next : run;
        rule.repeats = most(rule.repeats, run);
        rule.shift = rule.repeats - run;
    } else if (next)
        rule.step = (int64_t)tensor_number(list, 1) - rule.first;
    return rule;
}

bool lower_rule_of(const Graph *graph, ValueId list, ListRule *rule)
{
    const Value *value = &graph->value[list];
    int64_t count = shape_elements(&value->type->shape);
    memset(rule, 0, sizeof *rule); /* compared as bytes */
    if (value->role != ROLE_CONST || !dtype_is_int(value->type->dtype) || value->type->shape.rank != 1 || count < 1 ||
        count > MOST_KNOWN || !is_position(value->data, 0) || (count > 1 && !is_position(value->data, 1)))
        return false;
    ListRule found = first_rule(value->data, count);
    for (int64_t i = 0; i < count; i++)
        if (tensor_number(value->data, i) != (double)number_at(&found, i))
            return false;
    *rule = found;
    return true;
}

bool lower_known_row(Lower *lower, ValueId list, Index at, int64_t extent, Index *row)
{
    ListRule rule;
    if (!lower_rule_of(lower->graph, list, &rule))
        return false;
    int64_t begin = rule.first, end = number_at(&rule, value_shape(lower->graph, list)->dim[0] - 1);
    if (begin < 0 && end < 0) /* counted from the end */
        rule.first += extent, begin += extent, end += extent;
    if (least(begin, end) < 0 || most(begin, end) >= extent)
        return false;
    Arena *arena = lower->arena;
    Index steps = rule.repeats ? index_div(arena, index_add(arena, at, index_constant(rule.shift)), rule.repeats)
                               : index_scale(arena, at, rule.step);
    *row = index_add(arena, steps, index_constant(rule.first));
    return true;
}
