/* Where the next values of states are made (state.h). */
#include "storage/state.h"

static const bool *find_used(const Graph *graph, Arena *arena)
{
    bool *used = ARENA_ARRAY(arena, bool, graph->value_count);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].in_count; i++)
            used[graph->node[n].in[i]] = true;
    for (uint32_t i = 0; i < graph->update_count; i++)
        used[graph->update[i].target] = true;
    return used;
}

uint32_t state_list(const Graph *graph, Arena *arena, StateValue **list)
{
    uint32_t count = 0, capacity = 0, *number = ARENA_ARRAY(arena, uint32_t, graph->value_count);
    const bool *used = find_used(graph, arena);
    *list = NULL;
    for (ValueId v = 0; v < graph->value_count; v++) {
        if (graph->value[v].role != ROLE_STATE || !used[v])
            continue;
        number[v] = count;
        ARENA_PUSH(arena, *list, count, capacity, ((StateValue){.value = v, .next = NONE}));
    }
    for (uint32_t i = 0; i < graph->update_count; i++)
        (*list)[number[graph->update[i].target]].next = graph->update[i].source;
    return count;
}

/* Wishes */

typedef struct Wishes {
    const Units *units;
    UnitPair *pair;
    uint32_t count, capacity;
    Arena *arena;
    uint32_t *first, *next; /* per unit: the first wish that it comes after; per wish: the next of the same unit */
    Lists feeds;            /* per unit: those that need it */
    uint32_t *seen, round;  /* per unit: the round of the search that came by */
    uint32_t *stack;
} Wishes;

static Lists invert(const Lists *needs, uint32_t units, Arena *arena)
{
    uint32_t all = needs->first[units];
    Lists feeds = {ARENA_ARRAY(arena, uint32_t, units + 2), ARENA_ARRAY(arena, uint32_t, all + 1)};
    for (uint32_t i = 0; i < all; i++)
        feeds.first[needs->item[i] + 2]++;
    for (uint32_t u = 0; u < units; u++)
        feeds.first[u + 2] += feeds.first[u + 1];
    for (uint32_t u = 0; u < units; u++)
        for (uint32_t i = needs->first[u]; i < needs->first[u + 1]; i++)
            feeds.item[feeds.first[needs->item[i] + 1]++] = u;
    return feeds;
}

static void visit(Wishes *w, uint32_t unit, uint32_t *depth)
{
    if (w->seen[unit] == w->round)
        return;
    w->seen[unit] = w->round;
    w->stack[(*depth)++] = unit;
}

/* Marks all that must run after the unit, by needs and by wishes. */
static void mark_followers(Wishes *w, uint32_t unit)
{
    uint32_t depth = 0;
    w->round++;
    visit(w, unit, &depth);
    while (depth) {
        uint32_t at = w->stack[--depth];
        for (uint32_t i = w->feeds.first[at]; i < w->feeds.first[at + 1]; i++)
            visit(w, w->feeds.item[i], &depth);
        for (uint32_t i = w->first[at]; i != NONE; i = w->next[i])
            visit(w, w->pair[i].after, &depth);
    }
}

static void add_wish(Wishes *w, uint32_t before, uint32_t after)
{
    w->next[w->count] = w->first[before];
    w->first[before] = w->count;
    w->pair[w->count++] = (UnitPair){before, after};
}

static uint32_t operand_count(const Graph *graph)
{
    uint32_t count = 0;
    for (NodeId n = 0; n < graph->node_count; n++)
        count += graph->node[n].in_count;
    return count;
}

static Wishes wishes_new(const Graph *graph, const Units *units, const Lists *needs, Arena *arena)
{
    uint32_t most = operand_count(graph);
    Wishes w = {.units = units,
                .pair = ARENA_ARRAY(arena, UnitPair, most),
                .first = ARENA_ARRAY(arena, uint32_t, units->count),
                .next = ARENA_ARRAY(arena, uint32_t, most),
                .feeds = invert(needs, units->count, arena),
                .seen = ARENA_ARRAY(arena, uint32_t, units->count),
                .stack = ARENA_ARRAY(arena, uint32_t, units->count)};
    for (uint32_t u = 0; u < units->count; u++)
        w.first[u] = NONE;
    return w;
}

/* The units that read each state, itself or through views. */
static Lists state_readers(const Graph *graph, const Units *units, Arena *arena)
{
    Lists readers = {ARENA_ARRAY(arena, uint32_t, graph->value_count + 2),
                     ARENA_ARRAY(arena, uint32_t, operand_count(graph) + 1)};
    for (uint32_t listed = 0; listed < 2; listed++) { /* counted, then listed */
        for (NodeId n = 0; n < graph->node_count; n++)
            for (uint32_t i = 0; i < graph->node[n].in_count; i++) {
                ValueId owner = kernel_view_owner(graph, graph->node[n].in[i]);
                bool view = graph->node[n].out_count && kernel_value_is_view(graph, graph->node[n].out[0]);
                if (graph->value[owner].role != ROLE_STATE || view)
                    continue;
                if (listed)
                    readers.item[readers.first[owner + 1]++] = units->of[n];
                else
                    readers.first[owner + 2]++;
            }
        for (ValueId v = 0; !listed && v < graph->value_count; v++)
            readers.first[v + 2] += readers.first[v + 1];
    }
    return readers;
}

uint32_t state_wishes(const Graph *graph, const Units *units, const Lists *needs, Arena *arena, UnitPair **pair)
{
    Wishes w = wishes_new(graph, units, needs, arena);
    Lists readers = state_readers(graph, units, arena);
    for (uint32_t u = 0; u < graph->update_count; u++) {
        ValueId state = graph->update[u].target, next = graph->update[u].source;
        uint32_t maker = units->of[graph->value[next].node];
        mark_followers(&w, maker);
        for (uint32_t i = readers.first[state]; i < readers.first[state + 1]; i++)
            if (w.seen[readers.item[i]] != w.round)
                add_wish(&w, readers.item[i], maker);
    }
    *pair = w.pair;
    return w.count;
}

/* Settling */

typedef struct Settler {
    Memory *memory;
    const Users *users;
    const bool *live_out;
} Settler;

/* Can the next value be written over this one? */
static bool may_share(const Settler *settler, const StateValue *state)
{
    const Storage *storage = settler->memory->storage.at;
    int64_t read = storage[state->value].last, made = storage[state->next].first;
    if (read <= made || !storage[state->next].bytes)
        return true;
    bool last = read == made + 1 && !storage[state->next].has_parts;
    return last &&
           memory_reads_by_element(settler->memory, settler->users, settler->live_out, state->next, state->value);
}

/* A value that becomes the next one by updates alone is made where that is, if nothing reads it beside the update. */
static void settle_updated(Settler *settler, const StateValue *state)
{
    Storage *storage = settler->memory->storage.at;
    const Graph *graph = settler->memory->graph;
    ValueId made = state->next, from;
    while ((from = memory_updated(graph, value_producer(graph, made))) != NONE && from != state->value &&
           storage[from].role == STORAGE_ARENA && storage[from].family == NONE && !storage[from].has_parts &&
           storage[from].last == storage[made].first + 1)
        made = from;
    if (from != state->value || storage[from].last > storage[made].first + 1)
        return;
    for (ValueId v = state->next; v != made; v = from) {
        from = memory_updated(graph, value_producer(graph, v));
        storage[from].role = STORAGE_STATE;
        storage[from].index = storage[state->value].index;
    }
}

void state_settle(Memory *memory)
{
    Graph *graph = memory->graph;
    Users users = graph_users(graph, graph->module->arena);
    Settler settler = {memory, &users, graph_live_out(graph, graph->module->arena)};
    for (uint32_t i = 0; i < memory->state_count; i++) {
        StateValue *state = &memory->state[i];
        if (state->next == NONE)
            continue;
        state->twice = !may_share(&settler, state);
        memory->storage.at[state->next].next = state->twice;
        if (!state->twice)
            settle_updated(&settler, state);
    }
}
