/* First values that nobody sees: what a loop carries and writes all of before it is read, as the tensor that a `scan`
 * stacks its slices in.  Its memory needs no filling. */
#include "storage/flow.h"

#include "ops/meaning.h"

typedef struct Rounds { /* a loop */
    const Graph *graph;
    const Node *begin, *end;
} Rounds;

static ValueId reshaped(const Graph *graph, ValueId value)
{
    for (const Node *node; (node = value_producer(graph, value)) && view_is_reshape(node);)
        value = node->in[0];
    return value;
}

static bool is_number(const Graph *graph, ValueId value, double wanted)
{
    double number;
    const Node *node = value_producer(graph, value);
    return (value_is_number(graph, value, &number) || (node && node_is_number(node, &number))) && number == wanted;
}

/* Is the carried value 0, 1, 2 ... in the rounds, or last, last - 1, ...? */
static bool counts(const Rounds *r, ValueId value, int64_t last)
{
    for (uint32_t i = 0; i < r->begin->out_count; i++) {
        const Node *copy = value_producer(r->graph, r->begin->in[i]), *next = value_producer(r->graph, r->end->in[i]);
        double step;
        if (r->begin->out[i] != value)
            continue;
        return copy && copy->in_count == 1 && next && next->in_count == 2 && next->in[0] == value &&
               node_steps(r->graph, next, &step) && (step == 1 || step == -1) &&
               is_number(r->graph, copy->in[0], step == 1 ? 0 : (double)last);
    }
    return false;
}

/* The position along a dimension of what a slice or an update takes part in; NONE where the list is not at hand. */
static ValueId listed_position(const Graph *graph, ValueId list, uint32_t dimension)
{
    const Node *node = value_producer(graph, list);
    if (!node || !node_is_assembly(node) || assembly_of(graph, node).filled)
        return dimension ? NONE : reshaped(graph, list);
    uint32_t i = 0;
    int64_t at = dimension;
    for (int64_t extent; at >= (extent = value_shape(graph, node->in[i])->dim[0]); i++)
        at -= extent;
    return value_shape(graph, node->in[i])->dim[0] == 1 ? reshaped(graph, node->in[i]) : NONE;
}

/* Slice after slice along one dimension, in so many rounds, from the first to the last or the other way. */
static bool goes_along(const Rounds *r, const Node *update)
{
    const Shape *whole = value_shape(r->graph, update->in[0]), *part = value_shape(r->graph, update->in[2]);
    uint32_t along = NONE;
    for (uint32_t d = 0; d < whole->rank; d++) {
        if (part->dim[d] == whole->dim[d])
            continue;
        if (along != NONE || part->dim[d] != 1)
            return false;
        along = d;
    }
    if (along == NONE || flow_most_rounds(r->begin) < whole->dim[along])
        return false;
    ValueId position = listed_position(r->graph, update->in[1], along);
    return position != NONE && counts(r, position, whole->dim[along] - 1);
}

/* The nodes of the loop that read the value, also through views, which stand anywhere behind it; the last of them. */
static uint32_t count_readers(const Rounds *r, const Users *users, ValueId value, const Node **reader)
{
    uint32_t count = 0;
    for (uint32_t i = users->first[value]; i < users->first[value + 1]; i++) {
        const Node *user = &r->graph->node[users->user[i]];
        if (user->out_count && kernel_value_is_view(r->graph, user->out[0]))
            for (uint32_t k = 0; k < user->out_count; k++)
                count += count_readers(r, users, user->out[k], reader);
        else if (user <= r->end) {
            count++;
            *reader = user;
        }
    }
    return count;
}

/* The one that does; NULL. */
static const Node *only_reader(const Rounds *r, const Users *users, ValueId value)
{
    const Node *reader = NULL;
    return count_readers(r, users, value, &reader) == 1 ? reader : NULL;
}

static bool writes_all(const Rounds *r, const Users *users, uint32_t carried)
{
    const Node *update = only_reader(r, users, r->begin->out[carried]);
    return update && node_is_dynamic_update(update) && update->in[0] == r->begin->out[carried] &&
           only_reader(r, users, update->out[0]) == r->end && r->end->in[carried] == update->out[0] &&
           goes_along(r, update);
}

/* Its copy is made in the place where all that is carried lies, and comes from elsewhere. */
static void leave_first(Memory *memory, ValueId first)
{
    const Node *copy = value_producer(memory->graph, first);
    uint32_t step = copy && copy->kernel != NONE ? memory->kernel_of[copy->kernel] : NONE;
    const Storage *storage = &memory->storage.at[first];
    if (step == NONE || storage->family == NONE || memory->kernel[step].form != FORM_ASSEMBLY || node_is_assembly(copy))
        return;
    const Family *family = &memory->family[storage->family];
    if (family->places <= 1 && !family->elsewhere)
        memory->kernel[step].there = true;
}

void flow_leave_firsts(Memory *memory, const Users *users)
{
    const Graph *graph = memory->graph;
    for (uint32_t r = 0; r < memory->regions->count; r++) {
        const Region *region = &memory->regions->at[r];
        if (region->kind != REGION_LOOP || region->test != NONE)
            continue;
        Rounds rounds = {graph, &graph->node[memory->kernel[region->begin].node[0]],
                         &graph->node[memory->kernel[region->end].node[0]]};
        for (uint32_t i = 0; i < rounds.begin->out_count && !flow_tests(rounds.end); i++)
            if (writes_all(&rounds, users, i))
                leave_first(memory, rounds.begin->in[i]);
    }
}
