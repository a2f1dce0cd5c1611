/* The judge runs the steps: loops for some rounds, branches in turns, with what is passed where it points to then. */
#include <assert.h>
#include <string.h>

#include "base/number.h"
#include "ops/meaning.h"
#include "storage/flow.h"
#include "storage/judge.h"

static int64_t address_of_place(const Judge *judge, const Family *family, uint32_t place)
{
    return family->outside[place] == NONE ? family->offset[place] : judge->address[family->outside[place]];
}

/* A place that none of those is in that must stay. */
static int64_t free_place(const Judge *judge, ValueId maker, const Family *family)
{
    const ValueId *avoided = flow_avoided(judge->memory, maker);
    uint32_t place = 0;
    for (uint32_t i = 0; avoided[i] != NONE && place + 1 < family->places; i++)
        if (judge->address[avoided[i]] == address_of_place(judge, family, place)) {
            place++;
            i = UINT32_MAX; /* from the first on again */
        }
    return address_of_place(judge, family, place);
}

static bool stores_into(const Judge *judge, StorageId id)
{
    for (uint32_t i = 0; i < judge->reached.count; i++) {
        const Reach *reach = &judge->reached.at[i];
        if (reach->store && judge->kernel->buffer[reach->buffer].storage == id)
            return true;
    }
    return false;
}

/* An update in the memory of its first operand: what is not replaced goes on as the result's. */
static bool take_over(Judge *judge)
{
    const Node *node = judge->kernel->form == FORM_UPDATE ? &judge->memory->graph->node[judge->kernel->anchor] : NULL;
    ValueId owner = node ? flow_owner(judge->memory->graph, node->in[0]) : NONE;
    int64_t bytes = node ? judge->memory->storage.at[owner].bytes : 0;
    if (!bytes || judge->address[node->out[0]] != judge->address[owner] || !judge_tracks(judge, owner))
        return true;
    if (shape_elements(value_shape(judge->memory->graph, node->in[2])) && !stores_into(judge, node->out[0]))
        return true; /* it is not made */
    if (!judge_owned(judge, owner, (Extent){0, bytes}, false))
        return false;
    judge_take(judge, node->out[0], (Extent){0, bytes});
    judge->content[owner] = judge->content[node->out[0]];
    return true;
}

/* Those that the step makes first, ascending. */
static uint32_t list_begun(const Judge *judge, StorageId *id)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < judge->kernel->buffer_count; b++) {
        StorageId one = judge->kernel->buffer[b].storage;
        const Storage *storage = &judge->memory->storage.at[one];
        if (!judge->kernel->buffer[b].written || (storage->value != NONE && storage->first != judge->step))
            continue;
        uint32_t at = count++;
        for (; at > 0 && id[at - 1] > one; at--)
            id[at] = id[at - 1];
        id[at] = one;
    }
    return count;
}

static void begin_content(Judge *judge, StorageId id)
{
    if (judge->scenario.exact)
        return;
    judge->content[id] = judge->contents;
    judge->holder[judge->contents++] = id;
}

/* What the step makes first of a value is another content, at a place that is free then. */
static void begin_contents(Judge *judge)
{
    const Memory *memory = judge->memory;
    if (!memory->regions)
        return;
    StorageId *id = ARENA_ARRAY(&judge->of_step, StorageId, judge->kernel->buffer_count);
    uint32_t count = list_begun(judge, id);
    for (uint32_t i = 0; i < count; i++) {
        const Storage *storage = &memory->storage.at[id[i]];
        begin_content(judge, id[i]);
        if (storage->family != NONE && (storage->role == STORAGE_ARENA || storage->role == STORAGE_TURNS))
            judge->address[id[i]] = free_place(judge, id[i], &memory->family[storage->family]);
    }
}

/* What a body reaches of its buffers is the same wherever it stands; what that is in memory is not. */
static Reached reached_by(Judge *judge, const Kernel *kernel)
{
    Arena *arena = judge->repeated.arena;
    Str body = map_key(&kernel->body.first, sizeof kernel->body.first);
    if (!kernel->repeated)
        return reach_collect(kernel, &judge->of_step);
    uint32_t known = map_get(&judge->repeated, body);
    if (known == MAP_NONE) {
        known = judge->known_count;
        map_put(&judge->repeated, body, known);
        Reached reached = reach_collect(kernel, arena);
        ARENA_PUSH(arena, judge->known, judge->known_count, judge->known_capacity, reached);
    }
    return judge->known[known];
}

static bool run_kernel(Judge *judge, uint32_t step)
{
    ArenaMark mark = arena_mark(&judge->of_step);
    judge->step = step;
    judge->kernel = &judge->memory->kernel[step];
    begin_contents(judge);
    bool good = true;
    if (!judge->scenario.exact) {
        judge->reached = reached_by(judge, judge->kernel);
        good = take_over(judge) && judge_step(judge);
    }
    arena_reset(&judge->of_step, mark);
    return good;
}

/* A state's next value is at whichever of its two places it was made. */
static void follow_state(Judge *judge, ValueId next, ValueId from)
{
    const Storage *storage = &judge->memory->storage.at[next];
    const StateValue *state = storage_is_kept(storage->role) ? &judge->memory->state[storage->index] : NULL;
    if (state && state->next == next && state->from != NONE && judge->address[from] == judge->address[state->value])
        judge->address[next] = judge->address[from];
}

static bool misplaced(const Judge *judge, ValueId copy)
{
    *judge->message = str_format(judge->memory->graph->module->arena, STR_FMT " is not where it should end",
                                 STR_ARG(value_show(judge->memory->graph, copy)));
    return false;
}

/* A copy of what is there already, or of what the rounds to come write all of: that they do is known from the graph
 * alone, as they are more than are run here.  An output or a state may be there only after so many rounds: what it has
 * after others nobody asks. */
static bool run_copy(Judge *judge, uint32_t step)
{
    const Memory *memory = judge->memory;
    const Node *node = &memory->graph->node[memory->kernel[step].anchor];
    ValueId copy = node->out[0], from = flow_owner(memory->graph, node->in[0]);
    bool ends = memory->storage.at[copy].family == NONE && memory->kernel[step].there;
    follow_state(judge, copy, from);
    if (ends && judge->address[copy] != judge->address[from]) {
        judge->content[copy] = NONE;
        return !judge->scenario.exact || misplaced(judge, copy);
    }
    if (judge->address[copy] == judge->address[from] && judge_tracks(judge, from)) {
        judge->content[copy] = judge->content[from];
        return true;
    }
    if (memory->kernel[step].asks)
        return run_kernel(judge, step);
    begin_content(judge, copy);
    if (!judge->scenario.exact)
        judge_take(judge, copy, (Extent){0, memory->storage.at[copy].bytes});
    return true;
}

static bool run_steps(Judge *judge, uint32_t from, uint32_t end);

/* Together: some of them may be what others come to be. */
static void pass_on(Judge *judge, const ValueId *to, const ValueId *from, uint32_t count)
{
    Arena scratch = {0};
    int64_t *address = ARENA_ARRAY(&scratch, int64_t, count);
    uint32_t *content = ARENA_ARRAY(&scratch, uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        ValueId value = flow_owner(judge->memory->graph, from[i]);
        address[i] = judge->address[value];
        content[i] = judge->content[value];
    }
    for (uint32_t i = 0; i < count; i++) {
        judge->address[to[i]] = address[i];
        judge->content[to[i]] = content[i];
    }
    arena_free(&scratch);
}

static const Node *flow_node(const Judge *judge, uint32_t step)
{
    return &judge->memory->graph->node[judge->memory->kernel[step].node[0]];
}

static uint32_t region_after(const Judge *judge, RegionKind kind, uint32_t begin)
{
    const Regions *regions = judge->memory->regions;
    uint32_t r = 1;
    while (regions->at[r].begin != begin || regions->at[r].kind != kind)
        r++;
    return r;
}

static bool run_round(Judge *judge, const Region *loop)
{
    const Node *begin = flow_node(judge, loop->begin), *end = flow_node(judge, loop->end);
    bool tests_first = loop->test != NONE;
    uint32_t body = tests_first ? loop->test + 1 : loop->begin + 1;
    bool good = (!tests_first || run_steps(judge, loop->begin + 1, loop->test)) && run_steps(judge, body, loop->end);
    pass_on(judge, begin->out, end->in, begin->out_count);
    return good;
}

/* Where the addresses are what they once were, whole cycles are left out, as Brent finds them (flow_rounds.c). */
static bool run_exactly(Judge *judge, const Region *loop, int64_t rounds)
{
    Arena scratch = {0};
    bool good = true;
    size_t bytes = judge->memory->storage.count * sizeof *judge->address;
    int64_t *kept = arena_copy(&scratch, judge->address, bytes);
    for (int64_t since = 0, power = 1; rounds > 0 && good;) {
        good = run_round(judge, loop);
        rounds--;
        if (!memcmp(kept, judge->address, bytes))
            rounds %= since + 1;
        if (++since < power)
            continue;
        memcpy(kept, judge->address, bytes);
        since = 0;
        power *= 2;
    }
    arena_free(&scratch);
    return good;
}

#define MOST_LEVELS 3 /* of loops within one another, all of which run several rounds */

/* Loops that a region is inside of, itself among them. */
static uint32_t loops_around(const Regions *regions, uint32_t region)
{
    uint32_t count = 0;
    for (uint32_t r = region; r != NONE; r = regions->at[r].outer)
        count += regions->at[r].kind == REGION_LOOP;
    return count;
}

/* Are several rounds of the loop run, and its test after the last one, too?  Of all others one is. */
static bool runs_several(const Memory *memory, const Scenario *scenario, uint32_t loop)
{
    uint32_t level = loops_around(memory->regions, loop) - 1;
    return level >= scenario->level && level < scenario->level + MOST_LEVELS;
}

static bool run_loop(Judge *judge, uint32_t step, uint32_t *after)
{
    uint32_t region = region_after(judge, REGION_LOOP, step);
    const Region loop = judge->memory->regions->at[region];
    const Node *begin = flow_node(judge, step);
    bool tests_first = loop.test != NONE, good = true;
    bool several = runs_several(judge->memory, &judge->scenario, region);
    uint32_t rounds = several ? judge->scenario.rounds : (uint32_t)least(judge->scenario.rounds, 1);
    rounds = tests_first || rounds ? rounds : 1;
    *after = loop.end + 1;
    pass_on(judge, begin->out, begin->in, begin->out_count);
    if (judge->scenario.exact && !tests_first && !flow_tests(flow_node(judge, loop.end)))
        return run_exactly(judge, &loop, flow_most_rounds(begin));
    for (uint32_t round = 0; round < rounds && good; round++)
        good = run_round(judge, &loop);
    return good && (!tests_first || (!several && rounds) || run_steps(judge, step + 1, loop.test));
}

static bool run_branches(Judge *judge, uint32_t step, uint32_t *after)
{
    const Regions *regions = judge->memory->regions;
    uint32_t first = region_after(judge, REGION_BRANCH, step), count = 0, last = first;
    for (uint32_t r = first; r < regions->count; r++)
        if (regions->at[r].kind == REGION_BRANCH && regions->at[r].choice == step) {
            count++;
            last = r;
        }
    uint32_t wanted = (judge->scenario.pick + judge->scenario.picked++) % count, chosen = first;
    for (uint32_t r = first, at = 0; r <= last; r++)
        if (regions->at[r].kind == REGION_BRANCH && regions->at[r].choice == step && at++ == wanted)
            chosen = r;
    const Node *end = flow_node(judge, regions->at[last].end);
    *after = regions->at[last].end + 1;
    if (!run_steps(judge, regions->at[chosen].begin + 1, regions->at[chosen].end))
        return false;
    pass_on(judge, end->out, end->in + (size_t)wanted * end->out_count, end->out_count);
    return true;
}

static bool is_copy(const Kernel *kernel)
{
    return kernel->there || kernel->asks;
}

/* Recurses over the nesting of loops and branches. */
static bool run_steps(Judge *judge, uint32_t from, uint32_t end)
{
    bool good = true;
    for (uint32_t step = from; step < end && good;) {
        FlowKind kind = judge->memory->regions ? node_flow(flow_node(judge, step)) : FLOW_NONE;
        if (kind == FLOW_LOOP_BEGIN)
            good = run_loop(judge, step, &step);
        else if (kind == FLOW_BRANCH_BEGIN)
            good = run_branches(judge, step, &step);
        else
            good = (is_copy(&judge->memory->kernel[step]) ? run_copy : run_kernel)(judge, step), step++;
    }
    return good;
}

/* How many contents there are at most. */
static uint32_t most_contents(const Memory *memory, const Scenario *scenario)
{
    uint64_t most = memory->storage.count;
    for (uint32_t k = 0; memory->regions && k < memory->kernel_count; k++) {
        uint64_t times = 1;
        for (uint32_t r = memory->regions->of[k]; r != NONE; r = memory->regions->at[r].outer)
            if (memory->regions->at[r].kind == REGION_LOOP && runs_several(memory, scenario, r))
                times *= scenario->rounds + 1;
        most += times * (memory->kernel[k].there ? 1 : memory->kernel[k].buffer_count);
    }
    assert(most < UINT32_MAX && "a few rounds of a few levels");
    return (uint32_t)most;
}

static bool judge_scenario(const Memory *memory, Scenario scenario, Str *message)
{
    Arena scratch = {0};
    uint32_t contents = most_contents(memory, &scenario);
    Judge judge = {.memory = memory,
                   .message = message,
                   .owners = owners_new(&scratch, contents),
                   .address = ARENA_ARRAY(&scratch, int64_t, memory->storage.count),
                   .content = ARENA_ARRAY(&scratch, uint32_t, memory->storage.count),
                   .holder = ARENA_ARRAY(&scratch, StorageId, contents),
                   .scenario = scenario,
                   .repeated = {.arena = &scratch}};
    judge_buffers(&judge, &scratch);
    judge_place(&judge);
    bool good = run_steps(&judge, 0, memory->kernel_count) && (scenario.exact || judge_ends(&judge));
    arena_free(&judge.of_step);
    arena_free(&scratch);
    return good;
}

#define MOST_ROUNDS 4 /* of loops: what is carried over more of them is carried over these */
#define MOST_PICKS  4

/* Does something end where it belongs only after so many rounds? */
static bool counts_rounds(const Memory *memory)
{
    bool counts = false;
    for (uint32_t k = 0; k < memory->kernel_count; k++) {
        const Node *node = &memory->graph->node[memory->kernel[k].node[0]];
        const Storage *from =
            memory->kernel[k].there ? &memory->storage.at[flow_owner(memory->graph, node->in[0])] : NULL;
        counts |= from && from->role == STORAGE_PASSED;
    }
    return counts;
}

/* The level from which on several rounds are run last. */
static uint32_t last_level(const Memory *memory)
{
    uint32_t deepest = 0;
    for (uint32_t r = 1; memory->regions && r < memory->regions->count; r++)
        deepest = (uint32_t)most(deepest, loops_around(memory->regions, r));
    return deepest > MOST_LEVELS ? deepest - MOST_LEVELS : 0;
}

bool memory_judge(const Memory *memory, Arena *scratch, Str *message)
{
    bool good = true;
    (void)scratch;
    if (memory->regions && counts_rounds(memory))
        good = judge_scenario(memory, (Scenario){.rounds = 1, .exact = true}, message);
    for (uint32_t level = 0, last = last_level(memory); good && level <= last; level++)
        for (uint32_t rounds = 0; good && rounds <= (memory->regions ? MOST_ROUNDS : 0); rounds++)
            for (uint32_t pick = 0; good && pick < (memory->regions ? MOST_PICKS : 1); pick++)
                good = judge_scenario(memory, (Scenario){.rounds = rounds, .pick = pick, .level = level}, message);
    return good;
}
