/* Lives with holes, and families (flow.h). */
#include "storage/flow.h"

#include <string.h>

#include "base/number.h"
#include "ops/meaning.h"
#include "storage/inplace.h"

typedef struct Lives {
    Memory *memory;
    Arena *arena, *scratch;
    const Users *users;
    const bool *live_out, *member;
    Life *life;       /* per value in memory: when it, or what is inside it, is there */
    uint32_t *region; /* per value: where it is made or passed; NONE: before all steps */
    int64_t *made;    /* per value: the first step that makes any of it */
    ValueId *root;    /* per member: of its family, as a forest */
} Lives;

/* Pieces: what ends where another begins is kept apart, since that may be another content. */

static void add_piece(Arena *arena, Life *life, int64_t first, int64_t last)
{
    uint32_t at = 0, end;
    if (first >= last)
        return;
    while (at < life->count && life->piece[at].last <= first)
        at++;
    for (end = at; end < life->count && life->piece[end].first < last; end++) {
        first = least(first, life->piece[end].first);
        last = most(last, life->piece[end].last);
    }
    if (end == at) { /* it joins none: room between two others */
        ARENA_PUSH(arena, life->piece, life->count, life->capacity, (LifePiece){0});
        memmove(&life->piece[at + 1], &life->piece[at], (life->count - 1 - at) * sizeof *life->piece);
        end++;
    }
    life->piece[at] = (LifePiece){first, last};
    memmove(&life->piece[at + 1], &life->piece[end], (life->count - end) * sizeof *life->piece);
    life->count -= end - at - 1;
}

/* In the step, and beyond it where `beyond` is 1? */
static bool is_alive(const Life *life, int64_t step, int64_t beyond)
{
    for (uint32_t i = 0; i < life->count; i++)
        if (life->piece[i].first <= step && step + beyond < life->piece[i].last)
            return true;
    return false;
}

/* Lives of values */

static const Region *region_at(const Lives *l, uint32_t region)
{
    return &l->memory->regions->at[region];
}

static bool is_within(const Lives *l, uint32_t region, uint32_t outer)
{
    while (region != NONE && region != outer)
        region = region_at(l, region)->outer;
    return region != NONE;
}

/* From step `from` in region `outer` to a use inside: through the whole of the outermost loop between them, and not
 * through branches that are not taken then. */
static void live_until(Lives *l, Life *life, int64_t from, uint32_t outer, int64_t use, uint32_t region)
{
    int64_t end = use + 1;
    for (uint32_t r = region; r != outer; r = region_at(l, r)->outer)
        if (region_at(l, r)->kind == REGION_LOOP) {
            end = (int64_t)region_at(l, r)->end + 1;
            region = region_at(l, r)->outer;
        }
    for (; region != outer; region = region_at(l, region)->outer) { /* branches only */
        add_piece(l->arena, life, region_at(l, region)->begin, end);
        end = (int64_t)region_at(l, region)->choice + 1;
    }
    add_piece(l->arena, life, from, end);
}

/* What a loop carries is still there when it is left, and the loop's result from then on. */
static void live_beyond(Lives *l, ValueId value, int64_t use, uint32_t region)
{
    const Region *loop = region_at(l, l->region[value]);
    if (loop->test != NONE)
        live_until(l, &l->life[value], l->made[value], l->region[value], loop->test, l->region[value]);
    live_until(l, &l->life[value], loop->end, loop->outer, use, region);
}

static ValueId whole_of(const Lives *l, ValueId value)
{
    return l->memory->storage.at[flow_owner(l->memory->graph, value)].whole;
}

/* Is it in memory that steps write, or that is kept? */
static bool is_followed(const Lives *l, ValueId value)
{
    Role role = l->memory->graph->value[value].role;
    return (role == ROLE_RESULT || role == ROLE_STATE) && !kernel_value_is_inline(l->memory->graph, value);
}

static void note_use(Lives *l, ValueId operand, int64_t step, uint32_t region)
{
    ValueId value = whole_of(l, operand);
    if (!is_followed(l, value))
        return;
    if (l->made[value] < 0) { /* a state, or nothing that anybody makes: an empty tensor */
        l->made[value] = 0;
        l->region[value] = 0;
    }
    if (is_within(l, region, l->region[value]))
        live_until(l, &l->life[value], l->made[value], l->region[value], step, region);
    else
        live_beyond(l, value, step, region);
}

static void note_made(Lives *l, ValueId result, int64_t step, uint32_t region)
{
    ValueId value = l->memory->storage.at[result].whole;
    if (l->made[value] < 0) {
        l->made[value] = step;
        l->region[value] = region;
    }
    add_piece(l->arena, &l->life[value], step, step + 1);
}

/* The branch that ends at the step, or the loop. */
static uint32_t region_that_ends(const Lives *l, uint32_t step)
{
    uint32_t r = l->memory->regions->count - 1;
    while (region_at(l, r)->kind == REGION_ENTRY || region_at(l, r)->end != step)
        r--;
    return r;
}

/* The values that branches give are read where each of them ends. */
static void note_branch_end(Lives *l, const Node *node, uint32_t step)
{
    const Regions *regions = l->memory->regions;
    uint32_t branch = 0, choice = region_at(l, region_that_ends(l, step))->choice;
    for (uint32_t r = 0; r < regions->count; r++) {
        if (regions->at[r].kind != REGION_BRANCH || regions->at[r].choice != choice)
            continue;
        for (uint32_t i = 0; i < node->out_count; i++)
            note_use(l, node->in[branch * node->out_count + i], regions->at[r].end, r);
        branch++;
    }
    for (uint32_t i = 0; i < node->out_count; i++)
        note_made(l, node->out[i], step, regions->of[step]);
}

static uint32_t region_that_begins(const Lives *l, uint32_t step)
{
    uint32_t r = 1;
    while (region_at(l, r)->begin != step)
        r++;
    return r;
}

static void note_flow(Lives *l, const Node *node, uint32_t step)
{
    FlowKind kind = node_flow(node);
    uint32_t region = l->memory->regions->of[step];
    if (kind == FLOW_BRANCH_END) {
        note_branch_end(l, node, step);
        return;
    }
    region = kind == FLOW_LOOP_END ? region_that_ends(l, step) : region;
    for (uint32_t i = 0; i < node->in_count; i++)
        note_use(l, node->in[i], step, region);
    for (uint32_t i = 0; i < node->out_count; i++)
        note_made(l, node->out[i], step, region_that_begins(l, step));
}

static void note_kernel(Lives *l, Kernel *kernel, uint32_t step)
{
    const Graph *graph = l->memory->graph;
    uint32_t region = l->memory->regions->of[step];
    Lower lower = {.graph = l->memory->graph, .kernel = kernel, .users = l->users, .live_out = l->live_out};
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++)
            if (kernel_stores(&lower, node->out[r]))
                note_made(l, node->out[r], step, region);
        for (uint32_t i = 0; i < node->in_count; i++)
            if (!kernel_makes(&lower, flow_owner(graph, node->in[i])))
                note_use(l, node->in[i], step, region);
    }
}

static void note_lives(Lives *l)
{
    Memory *memory = l->memory;
    for (uint32_t k = 0; k < memory->kernel_count; k++) {
        if (memory->kernel[k].form == FORM_FLOW)
            note_flow(l, &memory->graph->node[memory->kernel[k].node[0]], k);
        else
            note_kernel(l, &memory->kernel[k], k);
    }
}

/* Families */

static ValueId root_of(Lives *l, ValueId value)
{
    while (l->root[value] != value)
        value = l->root[value] = l->root[l->root[value]];
    return value;
}

static bool is_passed(const Lives *l, ValueId value)
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
    ValueId from = whole_of(l, operand);
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
    if (!may_join(l, whole_of(l, operand)))
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

/* Is what the other points to still read when, or while, this one is made? */
static bool conflicts(const Lives *l, ValueId maker, ValueId other)
{
    int64_t step = l->made[maker];
    if (other == maker || !is_alive(&l->life[other], step, 0))
        return false;
    return is_alive(&l->life[other], step, 1) ||
           !memory_reads_by_element(l->memory, l->users, l->live_out, maker, other);
}

static void count_places(Lives *l, Family *family)
{
    for (uint32_t m = 0; m < family->count; m++) {
        ValueId maker = family->member[m], *avoided;
        uint32_t count = 0;
        if (is_passed(l, maker))
            continue;
        avoided = ARENA_ARRAY(l->arena, ValueId, family->count + 1);
        uint32_t conflicting = 0;
        for (uint32_t i = 0; i < family->count; i++) {
            ValueId other = family->member[i];
            if (!conflicts(l, maker, other))
                continue;
            conflicting++;
            if (l->made[other] != l->made[maker] || other < maker || is_passed(l, other))
                avoided[count++] = other;
        }
        avoided[count] = NONE;
        l->memory->avoided[maker] = avoided;
        if (conflicting + 1 < family->places)
            continue;
        family->places = conflicting + 1;
        family->maker = maker;
        family->conflict = count ? avoided[0] : NONE;
    }
}

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

static ValueId copied_by(const Lives *l, uint32_t step)
{
    return l->memory->graph->node[l->memory->kernel[step].anchor].in[0];
}

/* The family of one place that is always there, and is what the step copies from then on; NULL. */
static Family *family_copied(const Lives *l, uint32_t step)
{
    ValueId from = copied_by(l, step);
    uint32_t number = l->memory->storage.at[from].family;
    Family *family = number == NONE || !is_passed(l, from) ? NULL : &l->memory->family[number];
    if (!family || family->places != 1 || family->elsewhere)
        return NULL;
    for (uint32_t m = 0; m < family->count; m++)
        if (l->made[family->member[m]] > step)
            return NULL;
    return family;
}

/* A family lies where its last member would be copied to.  Nothing of it is in the arena then. */
static void move_to(Lives *l, Family *family, uint32_t step, ValueId end)
{
    Memory *memory = l->memory;
    memory->kernel[step].there = true;
    family->places = 0;
    for (uint32_t m = 0; m < family->count; m++) {
        memory->storage.at[family->member[m]].role = memory->storage.at[end].role;
        memory->storage.at[family->member[m]].index = memory->storage.at[end].index;
    }
}

static void move_to_outputs(Lives *l)
{
    const Graph *graph = l->memory->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        ValueId output = graph->output[i].value;
        uint32_t step = copying_step(l, output);
        Family *family = step == NONE ? NULL : family_copied(l, step);
        if (family)
            move_to(l, family, step, output);
    }
}

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
        if (!is_passed(l, maker) && step_from_state(l, maker, state) == NONE && conflicts(l, maker, state))
            return false;
    }
    return true;
}

/* What ends as a state's next value is there all the time, if that was the state's value before. */
static void move_to_states(Lives *l)
{
    for (uint32_t i = 0; i < l->memory->state_count; i++) {
        const StateValue *state = &l->memory->state[i];
        uint32_t end = state->next == NONE ? NONE : copying_step(l, state->next);
        Family *family = end == NONE ? NULL : family_copied(l, end);
        if (!family || !may_lie_in(l, family, state->value))
            continue;
        for (uint32_t m = 0; m < family->count; m++) {
            uint32_t begin = step_from_state(l, family->member[m], state->value);
            if (begin != NONE)
                l->memory->kernel[begin].there = true;
        }
        move_to(l, family, end, state->next);
    }
}

static void make_families(Lives *l)
{
    Memory *memory = l->memory;
    each_pass(l, pass);
    join_updates(l);
    list_families(l);
    each_pass(l, note_elsewhere);
    memory->avoided = ARENA_ARRAY(l->arena, const ValueId *, memory->graph->value_count);
    for (uint32_t f = 0; f < memory->family_count; f++)
        count_places(l, &memory->family[f]);
    move_to_states(l);
    move_to_outputs(l);
    flow_leave_firsts(memory, l->users);
}

/* A place of a family is there as long as any member is. */
static void share_lives(Lives *l)
{
    Memory *memory = l->memory;
    for (uint32_t f = 0; f < memory->family_count; f++) {
        const Family *family = &memory->family[f];
        Life all = {0};
        for (uint32_t m = 0; m < family->count; m++)
            for (uint32_t i = 0; i < l->life[family->member[m]].count; i++) {
                LifePiece piece = l->life[family->member[m]].piece[i];
                add_piece(l->arena, &all, piece.first, piece.last);
            }
        for (uint32_t m = 0; m < family->count; m++)
            l->life[family->member[m]] = all;
    }
}

static void write_down(Lives *l)
{
    Memory *memory = l->memory;
    for (ValueId v = 0; v < memory->graph->value_count; v++) {
        Storage *storage = &memory->storage.at[v];
        const Life *life = &l->life[v];
        if (!life->count)
            continue;
        storage->first = storage->family == NONE ? life->piece[0].first : l->made[v];
        storage->last = life->piece[life->count - 1].last;
        storage->life = arena_copy(l->arena, life, sizeof *life);
        if (storage->family == NONE || memory->family[storage->family].elsewhere)
            continue;
        bool outside = storage->role == STORAGE_OUTPUT || storage_is_kept(storage->role);
        storage->fixed = outside || memory->family[storage->family].places == 1;
        if (storage->role == STORAGE_PASSED && storage->fixed)
            storage->role = STORAGE_ARENA;
    }
}

static void assign_roles(Lives *l)
{
    Memory *memory = l->memory;
    for (ValueId v = 0; v < memory->graph->value_count; v++) {
        const Node *node = value_producer(memory->graph, v);
        Storage *storage = &memory->storage.at[v];
        if (!l->life[v].count || storage->role != STORAGE_NONE)
            continue;
        storage->role = node && node_flow(node) ? STORAGE_PASSED : STORAGE_ARENA;
    }
}

void flow_lives(Memory *memory, Arena *scratch)
{
    uint32_t values = memory->graph->value_count;
    Users users = graph_users(memory->graph, scratch);
    Lives l = {.memory = memory,
               .arena = memory->graph->module->arena,
               .scratch = scratch,
               .users = &users,
               .live_out = graph_live_out(memory->graph, scratch),
               .member = flow_members(memory->graph, scratch),
               .life = ARENA_ARRAY(memory->graph->module->arena, Life, values),
               .region = ARENA_ARRAY(scratch, uint32_t, values),
               .made = ARENA_ARRAY(scratch, int64_t, values),
               .root = ARENA_ARRAY(scratch, ValueId, values)};
    for (ValueId v = 0; v < values; v++) {
        l.made[v] = -1;
        l.root[v] = v;
    }
    note_lives(&l);
    assign_roles(&l);
    make_families(&l);
    share_lives(&l);
    write_down(&l);
}

const ValueId *flow_avoided(const Memory *memory, ValueId maker)
{
    static const ValueId none[] = {NONE};
    return memory->avoided && memory->avoided[maker] ? memory->avoided[maker] : none;
}
