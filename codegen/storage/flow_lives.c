/* Lives with holes (flow.h). */
#include "storage/flow_lives.h"

#include <string.h>

#include "base/number.h"
#include "kernel/lower/lower.h"
#include "ops/meaning.h"

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
        flow_add_piece(l->arena, life, region_at(l, region)->begin, end);
        end = (int64_t)region_at(l, region)->choice + 1;
    }
    flow_add_piece(l->arena, life, from, end);
}

/* What a loop carries is still there when it is left, and the loop's result from then on. */
static void live_beyond(Lives *l, ValueId value, int64_t use, uint32_t region)
{
    const Region *loop = region_at(l, l->region[value]);
    if (loop->test != NONE)
        live_until(l, &l->life[value], l->made[value], l->region[value], loop->test, l->region[value]);
    live_until(l, &l->life[value], loop->end, loop->outer, use, region);
}

/* Is it in memory that steps write, or that is kept? */
static bool is_followed(const Lives *l, ValueId value)
{
    Role role = l->memory->graph->value[value].role;
    return (role == ROLE_RESULT || role == ROLE_STATE) && !kernel_value_is_inline(l->memory->graph, value);
}

static void note_use(Lives *l, ValueId operand, int64_t step, uint32_t region)
{
    ValueId value = flow_whole(l, operand);
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
    flow_add_piece(l->arena, &l->life[value], step, step + 1);
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

/* What comes of families */

/* A place of a family is there as long as any member is; a state is there always. */
static void share_lives_of(Lives *l, const Family *family)
{
    const Storage *storage = l->memory->storage.at;
    Life all = {0};
    for (uint32_t m = 0; m < family->count; m++) {
        const Life *life = &l->life[family->member[m]];
        for (uint32_t i = 0; i < life->count && !storage_is_kept(storage[family->member[m]].role); i++)
            flow_add_piece(l->arena, &all, life->piece[i].first, life->piece[i].last);
    }
    for (uint32_t m = 0; m < family->count; m++)
        if (!storage_is_kept(storage[family->member[m]].role))
            l->life[family->member[m]] = all;
}

static void share_lives(Lives *l)
{
    for (uint32_t f = 0; f < l->memory->family_count; f++)
        share_lives_of(l, &l->memory->family[f]);
}

static void write_down_member(Storage *storage, const Family *family)
{
    bool outside = storage->role == STORAGE_OUTPUT || storage_is_kept(storage->role);
    if (storage->role == STORAGE_ARENA && family->places > 1)
        storage->role = STORAGE_TURNS;
    if (family->elsewhere)
        return;
    storage->fixed = outside || family->places == 1;
    if (storage->role == STORAGE_PASSED && storage->fixed)
        storage->role = STORAGE_ARENA;
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
        if (storage->family != NONE)
            write_down_member(storage, &memory->family[storage->family]);
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
    flow_make_families(&l);
    flow_settle_ends(&l);
    flow_leave_firsts(memory, &users);
    share_lives(&l);
    write_down(&l);
}
