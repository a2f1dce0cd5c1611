/* Where the next values of states are made (state.h). */
#include "storage/state.h"

#include "ops/meaning.h"
#include "storage/inplace.h"

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
        ARENA_PUSH(arena, *list, count, capacity, ((StateValue){.value = v, .next = NONE, .from = NONE}));
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
    uint32_t nexts, next_capacity;
    Lists feeds;           /* per unit: those that need it */
    Lists readers;         /* per value that is a state, or that a loop carries: the units that read it */
    uint32_t *seen, round; /* per unit: the round of the search that came by */
    uint32_t *stack;
    uint32_t end; /* the unit where the search ends: what stands behind it is of no interest */
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
    if (w->seen[unit] == w->round || unit > w->end)
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
    uint32_t wish = w->count;
    ARENA_PUSH(w->arena, w->next, w->nexts, w->next_capacity, w->first[before]);
    ARENA_PUSH(w->arena, w->pair, w->count, w->capacity, ((UnitPair){before, after}));
    w->first[before] = wish;
}

static uint32_t operand_count(const Graph *graph)
{
    uint32_t count = 0;
    for (NodeId n = 0; n < graph->node_count; n++)
        count += graph->node[n].in_count;
    return count;
}

static Wishes wishes_new(const Units *units, const Lists *needs, Arena *arena)
{
    Wishes w = {.units = units,
                .arena = arena,
                .first = ARENA_ARRAY(arena, uint32_t, units->count),
                .feeds = invert(needs, units->count, arena),
                .seen = ARENA_ARRAY(arena, uint32_t, units->count),
                .stack = ARENA_ARRAY(arena, uint32_t, units->count)};
    for (uint32_t u = 0; u < units->count; u++)
        w.first[u] = NONE;
    return w;
}

/* States, what loops carry, and what updates make of it on the way to its next value. */
static bool is_kept(const Graph *graph, ValueId value)
{
    const Node *node = value_producer(graph, value);
    return graph->value[value].role == ROLE_STATE ||
           (node && (node_flow(node) == FLOW_LOOP_BEGIN || node_is_update(node)));
}

/* The units that read each of these, itself or through views. */
static Lists find_readers(const Graph *graph, const Units *units, Arena *arena)
{
    Lists readers = {ARENA_ARRAY(arena, uint32_t, graph->value_count + 2),
                     ARENA_ARRAY(arena, uint32_t, operand_count(graph) + 1)};
    for (uint32_t listed = 0; listed < 2; listed++) { /* counted, then listed */
        for (NodeId n = 0; n < graph->node_count; n++)
            for (uint32_t i = 0; i < graph->node[n].in_count; i++) {
                ValueId owner = kernel_view_owner(graph, graph->node[n].in[i]);
                bool view = graph->node[n].out_count && kernel_value_is_view(graph, graph->node[n].out[0]);
                if (!is_kept(graph, owner) || view)
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

/* All that reads the value, up to the end, runs before what makes its next one. */
static void wish(Wishes *w, ValueId value, uint32_t maker, uint32_t end)
{
    w->end = end;
    mark_followers(w, maker);
    for (uint32_t i = w->readers.first[value]; i < w->readers.first[value + 1]; i++)
        if (w->seen[w->readers.item[i]] != w->round && w->readers.item[i] <= end)
            add_wish(w, w->readers.item[i], maker);
}

static bool reads(const Wishes *w, uint32_t unit, ValueId value)
{
    for (uint32_t i = w->readers.first[value]; i < w->readers.first[value + 1]; i++)
        if (w->readers.item[i] == unit)
            return true;
    return false;
}

/* Where the next value is an update of an update, each of them may be made over the one before. */
static void wish_for_updates(Wishes *w, const Graph *graph, ValueId next, ValueId value, uint32_t end)
{
    for (ValueId made = next; made != value;) {
        const Node *node = value_producer(graph, made);
        if (!node || !node_is_update(node))
            return;
        ValueId over = kernel_view_owner(graph, node->in[0]);
        if (made != next || over != value) /* which the caller sees to */
            wish(w, over, w->units->of[node - graph->node], end);
        made = over;
    }
}

/* What the loop carries and makes anew in each round, unless that takes another place anyway. */
static void wish_for_loop(Wishes *w, const Graph *graph, NodeId begin, NodeId end)
{
    const Node *first = &graph->node[begin], *last = &graph->node[end];
    for (uint32_t i = 0; i < first->out_count; i++) {
        ValueId next = kernel_view_owner(graph, last->in[i]);
        const Node *node = value_producer(graph, next);
        if (!node || node_flow(node) || node < first || node > last)
            continue;
        uint32_t maker = w->units->of[node - graph->node];
        if (!reads(w, maker, first->out[i]) || inplace_kernel_rule(graph, graph->value[next].node, first->out[i]))
            wish(w, first->out[i], maker, w->units->of[end]);
        wish_for_updates(w, graph, next, first->out[i], w->units->of[end]);
    }
}

static void wish_for_loops(Wishes *w, const Graph *graph, Arena *arena)
{
    NodeId *begin = NULL;
    uint32_t depth = 0, capacity = 0;
    for (NodeId n = 0; n < graph->node_count; n++) {
        FlowKind kind = node_flow(&graph->node[n]);
        if (kind == FLOW_LOOP_BEGIN)
            ARENA_PUSH(arena, begin, depth, capacity, n);
        else if (kind == FLOW_LOOP_END)
            wish_for_loop(w, graph, begin[--depth], n);
    }
}

uint32_t state_wishes(const Graph *graph, const Units *units, const Lists *needs, Arena *arena, UnitPair **pair)
{
    Wishes w = wishes_new(units, needs, arena);
    w.readers = find_readers(graph, units, arena);
    for (uint32_t u = 0; u < graph->update_count; u++) {
        ValueId next = graph->update[u].source;
        wish(&w, graph->update[u].target, units->of[graph->value[next].node], units->count);
    }
    wish_for_loops(&w, graph, arena);
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
        storage[from].role = storage[state->value].role;
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
        if (state->next == NONE || state->settled)
            continue;
        state->twice = !may_share(&settler, state);
        memory->storage.at[state->next].next = state->twice;
        if (!state->twice)
            settle_updated(&settler, state);
    }
}
