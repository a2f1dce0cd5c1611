/* Families: who is passed to whom, and in how many places they take turns (flow.h). */
#include "storage/flow_lives.h"

#include "ops/meaning.h"

static ValueId root_of(Lives *l, ValueId value)
{
    while (l->root[value] != value)
        value = l->root[value] = l->root[l->root[value]];
    return value;
}

bool flow_is_passed(const Lives *l, ValueId value)
{
    return l->memory->storage.at[value].role == STORAGE_PASSED;
}

/* Arrays of the caller and states are not ours to hand round. */
static bool may_join(const Lives *l, ValueId value)
{
    StorageRole role = l->memory->storage.at[value].role;
    return role == STORAGE_PASSED || role == STORAGE_ARENA;
}

static void pass(Lives *l, ValueId to, ValueId operand)
{
    ValueId from = flow_whole(l, operand);
    if (may_join(l, from) && may_join(l, to))
        l->root[root_of(l, from)] = root_of(l, to);
}

static void each_pass(Lives *l, void (*take)(Lives *l, ValueId to, ValueId operand))
{
    const Graph *graph = l->memory->graph;
    const ValueId **carried = ARENA_ARRAY(l->scratch, const ValueId *, l->memory->regions->count); /* open loops */
    uint32_t depth = 0;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        FlowKind kind = node_flow(node);
        uint32_t count = kind == FLOW_LOOP_END ? node->in_count - flow_tests(node) : node->in_count;
        if (kind == FLOW_LOOP_BEGIN)
            carried[depth++] = node->out;
        for (uint32_t i = 0; i < count; i++) {
            if (kind == FLOW_LOOP_BEGIN || kind == FLOW_BRANCH_END)
                take(l, node->out[i % node->out_count], node->in[i]);
            else if (kind == FLOW_LOOP_END)
                take(l, carried[depth - 1][i], node->in[i]);
        }
        depth -= kind == FLOW_LOOP_END;
    }
}

/* What is updated goes on as the result. */
static void join_updates(Lives *l)
{
    const Graph *graph = l->memory->graph;
    for (NodeId n = 0; n < graph->node_count; n++) {
        ValueId owner = memory_updated(graph, &graph->node[n]);
        if (owner != NONE && l->member[owner] && l->member[graph->node[n].out[0]])
            pass(l, graph->node[n].out[0], owner);
    }
}

static void note_elsewhere(Lives *l, ValueId to, ValueId operand)
{
    if (!may_join(l, flow_whole(l, operand)))
        l->memory->family[l->memory->storage.at[to].family].elsewhere = true;
}

static void list_families(Lives *l)
{
    Memory *memory = l->memory;
    uint32_t capacity = 0;
    memory->family = NULL;
    memory->family_count = 0;
    for (ValueId v = 0; v < memory->graph->value_count; v++) {
        Storage *storage = &memory->storage.at[v];
        if (storage->whole != v || l->life[v].count == 0 || !l->member[v] || !may_join(l, v))
            continue;
        Storage *root = &memory->storage.at[root_of(l, v)];
        if (root->family == NONE) {
            root->family = memory->family_count;
            ARENA_PUSH(l->arena, memory->family, memory->family_count, capacity,
                       ((Family){.maker = NONE, .conflict = NONE}));
        }
        storage->family = root->family;
        Family *family = &memory->family[storage->family];
        family->bytes = type_bytes(value_type(memory->graph, v));
        ARENA_PUSH(l->arena, family->member, family->count, family->capacity, v);
    }
}

bool flow_conflicts(const Lives *l, ValueId maker, ValueId other)
{
    int64_t step = l->made[maker];
    if (other == maker || !flow_is_alive(&l->life[other], step, 0))
        return false;
    return flow_is_alive(&l->life[other], step, 1) ||
           !memory_reads_by_element(l->memory, l->users, l->live_out, maker, other);
}

bool flow_is_made(const Lives *l, ValueId member)
{
    return l->memory->storage.at[member].role == STORAGE_ARENA;
}

/* Who must stay where it is when the value is made.  Gives how many places that may be. */
static uint32_t list_avoided(Lives *l, const Family *family, ValueId maker)
{
    ValueId *avoided = ARENA_ARRAY(l->arena, ValueId, family->count + 1);
    uint32_t count = 0, places = 0;
    bool state = false; /* it, and copies of it: one place */
    for (uint32_t i = 0; i < family->count; i++) {
        ValueId other = family->member[i];
        if (!flow_conflicts(l, maker, other))
            continue;
        bool fixed = storage_is_kept(l->memory->storage.at[other].role);
        places += !fixed || !state;
        state |= fixed;
        if (l->made[other] != l->made[maker] || other < maker || !flow_is_made(l, other))
            avoided[count++] = other;
    }
    avoided[count] = NONE;
    l->memory->avoided[maker] = avoided;
    return places;
}

void flow_count_places(Lives *l, Family *family)
{
    family->places = 0;
    for (uint32_t m = 0; m < family->count; m++) {
        ValueId maker = family->member[m];
        if (!flow_is_made(l, maker))
            continue;
        uint32_t avoided = list_avoided(l, family, maker);
        if (avoided + 1 < family->places)
            continue;
        family->places = avoided + 1;
        family->maker = maker;
        family->conflict = avoided ? l->memory->avoided[maker][0] : NONE;
    }
    family->outside = ARENA_ARRAY(l->arena, ValueId, family->places);
    for (uint32_t p = 0; p < family->places; p++)
        family->outside[p] = NONE;
}

void flow_make_families(Lives *l)
{
    Memory *memory = l->memory;
    each_pass(l, pass);
    join_updates(l);
    list_families(l);
    each_pass(l, note_elsewhere);
    memory->avoided = ARENA_ARRAY(l->arena, const ValueId *, memory->graph->value_count);
    for (uint32_t f = 0; f < memory->family_count; f++)
        flow_count_places(l, &memory->family[f]);
}

const ValueId *flow_avoided(const Memory *memory, ValueId maker)
{
    static const ValueId none[] = {NONE};
    return memory->avoided && memory->avoided[maker] ? memory->avoided[maker] : none;
}
