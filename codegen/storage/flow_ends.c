/* Families lie where they end (flow.h).
 *
 * What is passed and leaves the graph is copied by a kernel of its own, to an output or to a state's next value.  That
 * copy is left out wherever its source can lie there:
 *
 *   - A family of one place lies in the output, or in the state if nobody reads the state's value any more whenever a
 *     member is made.
 *   - One whose members take turns has the output as one of its places: where the rounds of all loops are known, the
 *     one that the last round writes; else any, and the copy asks where its source is.
 *   - A state's value is a member of the family that ends in it, and the state has memory twice: its two places are
 *     places of the family, and whichever holds the last member has the state's value from then on.
 *   - What is updated in part stays in one place: the state's other one, if its value is still read. */
#include "storage/flow_lives.h"

#include "ops/meaning.h"

/* Copies */

/* The step that makes the value, and only copies another to it; NONE. */
static uint32_t copying_step(const Lives *l, ValueId copy)
{
    const Memory *memory = l->memory;
    const Node *node = value_producer(memory->graph, copy);
    uint32_t step = node && node->kernel != NONE ? memory->kernel_of[node->kernel] : NONE;
    if (step == NONE || memory->kernel[step].form != FORM_ASSEMBLY || node_is_assembly(node) || node->in_count != 1)
        return NONE;
    return value_type(memory->graph, node->in[0]) == value_type(memory->graph, copy) ? step : NONE;
}

/* What the step copies, or that is only another shape of. */
static ValueId copied_by(const Lives *l, uint32_t step)
{
    const Graph *graph = l->memory->graph;
    ValueId value = graph->node[l->memory->kernel[step].anchor].in[0];
    for (const Node *node; (node = value_producer(graph, value)) && view_is_reshape(node);)
        value = node->in[0];
    return value;
}

typedef struct End { /* a family that ends in an output or in a state */
    Family *family;
    uint32_t step; /* the copy */
    ValueId from, to;
} End;

/* Nothing of the family is made after the copy. */
static bool find_end(const Lives *l, ValueId to, End *end)
{
    uint32_t step = to == NONE ? NONE : copying_step(l, to);
    ValueId from = step == NONE ? NONE : copied_by(l, step);
    uint32_t number = step == NONE ? NONE : l->memory->storage.at[from].family;
    if (number == NONE || !flow_is_passed(l, from) || !l->memory->family[number].places)
        return false;
    *end = (End){&l->memory->family[number], step, from, to};
    for (uint32_t m = 0; m < end->family->count; m++)
        if (l->made[end->family->member[m]] > step)
            return false;
    return true;
}

/* Is what is copied the only one of the family that is read from then on, and the state's value, if any, not either? */
static bool ends_alone(const Lives *l, const End *end, ValueId state)
{
    bool alone = state == NONE || !flow_is_alive(&l->life[state], end->step, 1);
    for (uint32_t m = 0; m < end->family->count; m++) {
        ValueId member = end->family->member[m];
        alone &= member == end->from || !flow_is_alive(&l->life[member], end->step, 1);
    }
    return alone;
}

/* The copy finds its source where it is to be, or asks whether it is there. */
static void leave_copy(Lives *l, const End *end, bool there)
{
    l->memory->kernel[end->step].there = there;
    l->memory->kernel[end->step].asks = !there;
}

/* Makers of a family of one place write to the array of the output or state. */
static void lie_in(Lives *l, const Family *family, ValueId array)
{
    Storages storage = l->memory->storage;
    for (uint32_t m = 0; m < family->count; m++) {
        ValueId member = family->member[m];
        if (family->elsewhere && !flow_is_made(l, member))
            continue;
        storage.at[member].role = storage.at[array].role;
        storage.at[member].index = storage.at[array].index;
        storage.at[member].next = storage.at[array].next;
    }
}

/* All of it lies there, all the time; or, where the first may be elsewhere, once it has been made.  What lies there
 * before is the state's value, or NONE. */
static bool settle_one_place(Lives *l, const End *end, ValueId array, ValueId state)
{
    bool there = !end->family->elsewhere || flow_place_at(l, end->family, end->from, end->step) == 0;
    if (!there && !ends_alone(l, end, state))
        return false;
    leave_copy(l, end, there);
    lie_in(l, end->family, array);
    end->family->outside[0] = array;
    if (!end->family->elsewhere)
        end->family->places = 0;
    return true;
}

/* Outputs */

static bool has_outside(const Family *family)
{
    bool has = false;
    for (uint32_t p = 0; p < family->places; p++)
        has |= family->outside[p] != NONE;
    return has;
}

static void settle_known_output(Lives *l, ValueId output)
{
    End end;
    if (!find_end(l, output, &end))
        return;
    if (end.family->places == 1) {
        if (!has_outside(end.family))
            settle_one_place(l, &end, output, NONE);
        return;
    }
    uint32_t place = flow_place_at(l, end.family, end.from, end.step);
    if (place == NONE || end.family->outside[place] != NONE)
        return;
    end.family->outside[place] = output;
    leave_copy(l, &end, true);
}

static void settle_other_output(Lives *l, ValueId output)
{
    End end;
    if (!find_end(l, output, &end) || l->memory->kernel[end.step].there || has_outside(end.family) ||
        !ends_alone(l, &end, NONE))
        return;
    end.family->outside[0] = output;
    leave_copy(l, &end, false);
}

static void settle_outputs(Lives *l)
{
    const Graph *graph = l->memory->graph;
    for (uint32_t i = 0; i < graph->output_count; i++)
        settle_known_output(l, graph->output[i].value);
    for (uint32_t i = 0; i < graph->output_count; i++)
        settle_other_output(l, graph->output[i].value);
}

/* States */

/* Is the member only a copy of the state? */
static uint32_t step_from_state(const Lives *l, ValueId member, ValueId state)
{
    uint32_t step = copying_step(l, member);
    return step != NONE && copied_by(l, step) == state ? step : NONE;
}

/* Does nobody read the state any more when a member is made, unless it is a copy of it? */
static bool may_lie_in(const Lives *l, const Family *family, ValueId state)
{
    for (uint32_t m = 0; m < family->count; m++) {
        ValueId maker = family->member[m];
        if (flow_is_made(l, maker) && step_from_state(l, maker, state) == NONE && flow_conflicts(l, maker, state))
            return false;
    }
    return true;
}

/* Copies of the state are the state. */
static void leave_firsts(Lives *l, const Family *family, ValueId state, bool leave)
{
    Storages storage = l->memory->storage;
    for (uint32_t m = 0; m < family->count; m++) {
        uint32_t step = step_from_state(l, family->member[m], state);
        if (step == NONE)
            continue;
        l->memory->kernel[step].there = leave;
        storage.at[family->member[m]].role = leave ? storage.at[state].role : STORAGE_ARENA;
        storage.at[family->member[m]].index = storage.at[state].index;
    }
}

static bool is_updated(const Lives *l, const Family *family)
{
    bool updated = false;
    for (uint32_t m = 0; m < family->count; m++)
        updated |= memory_updated(l->memory->graph, value_producer(l->memory->graph, family->member[m])) != NONE;
    return updated;
}

/* The state's value is a member, and has a place. */
static void join_state(Lives *l, Family *family, ValueId state)
{
    ARENA_PUSH(l->arena, family->member, family->count, family->capacity, state);
    l->memory->storage.at[state].family = (uint32_t)(family - l->memory->family);
    leave_firsts(l, family, state, true);
    flow_count_places(l, family);
    family->outside[0] = state;
}

static void part_state(Lives *l, Family *family, ValueId state)
{
    family->count--;
    l->memory->storage.at[state].family = NONE;
    leave_firsts(l, family, state, false);
    flow_count_places(l, family);
}

/* The state has memory twice, and both are places of the family. */
static void settle_turns(Lives *l, StateValue *state, const End *end)
{
    Family *family = end->family;
    join_state(l, family, state->value);
    uint32_t place = flow_place_at(l, family, end->from, end->step);
    bool there = place != NONE || (family->places == 2 && !family->elsewhere);
    if (family->places == 1 || (!there && !ends_alone(l, end, NONE))) {
        part_state(l, family, state->value);
        return;
    }
    family->outside[place == NONE || place == 0 ? 1 : place] = state->next;
    l->memory->storage.at[state->next].next = true;
    leave_copy(l, end, there);
    state->settled = state->twice = true;
    state->from = end->from;
}

static void settle_state(Lives *l, StateValue *state)
{
    End end;
    if (!find_end(l, state->next, &end) || has_outside(end.family))
        return;
    bool one = end.family->places == 1;
    if (one && may_lie_in(l, end.family, state->value)) {
        leave_firsts(l, end.family, state->value, true);
        state->settled = settle_one_place(l, &end, state->next, state->value);
        if (!state->settled)
            leave_firsts(l, end.family, state->value, false);
    } else if (!is_updated(l, end.family)) {
        settle_turns(l, state, &end);
    } else if (one && !end.family->elsewhere) {
        l->memory->storage.at[state->next].next = true;
        settle_one_place(l, &end, state->next, NONE);
        state->settled = state->twice = true;
    }
}

void flow_settle_ends(Lives *l)
{
    for (uint32_t i = 0; i < l->memory->state_count; i++)
        settle_state(l, &l->memory->state[i]);
    settle_outputs(l);
}
