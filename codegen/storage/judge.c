/* The judge of lowered kernels.
 *
 * It trusts neither fusion, recipes, parts, in-place nor lives: it reads the loads and stores of the loops and walks
 * the steps in order, with a map that says for every byte of the arena whose elements were written there last.
 *
 *   - An access stays inside the bytes that its storage has at that step.
 *   - A load finds its own storage's bytes: they have been written, and nobody has written over them since.  Arrays of
 *     outputs count as if they lay behind the arena.
 *   - What is not made in parts has all of its bytes from the first step to the last.
 *   - Two storages that one step writes do not share a byte; one that it reads may share those it writes only where
 *     every load stands with the store at the same element: the result in place of an operand.
 *   - Inputs and weights are not written.
 *   - At the end all of an output is written, and a state's memory holds the value that the next run is to find.
 *   - Loops run for some rounds, and branches in turns, several times over: what is passed is where it points to then,
 *     and every content that is made is another one.
 *   - A loop marked parallel stores every round elsewhere, but for scratch that each thread has for itself.
 *
 * Extents of addresses come from the ranges of loop variables.  Under a loop whose bounds vary, or a guard, they are
 * cut to the storage: whether guards are right is for the tests that run what is emitted. */
#include "base/number.h"
#include "ops/meaning.h"
#include "storage/flow.h"
#include "storage/owners.h"
#include "storage/reach.h"

/* How loops and branches run. */
typedef struct Scenario {
    uint32_t rounds;       /* of every loop */
    uint32_t pick, picked; /* branches in turns, from this one on; how many have been picked */
} Scenario;

typedef struct Judge {
    const Memory *memory;
    Str *message;
    const Kernel *kernel;
    uint32_t step;
    Arena of_step;   /* what is needed for this step only */
    Reached reached; /* of the kernel */
    Owners owners;
    int64_t *address;  /* per storage: where it is; the caller's arrays and states as if they lay behind the arena */
    uint32_t *content; /* per storage: what it holds, a number of `owners` ... */
    StorageId *holder; /* ... and per content: whose it is */
    uint32_t contents;
    Scenario scenario;
    uint32_t *first_buffer, *next_buffer; /* of the plan, by storage; those that are over by this step are gone */
} Judge;

/* Names for messages */

static Str name_of(const Judge *judge, StorageId id)
{
    const Storage *storage = &judge->memory->storage.at[id];
    return storage->value == NONE ? STR("scratch") : value_show(judge->memory->graph, storage->value);
}

static bool fault(Judge *judge, StorageId a, const char *what, StorageId b)
{
    Arena *arena = judge->memory->graph->module->arena;
    *judge->message = str_format(arena, "step %u (" STR_FMT ") %s " STR_FMT, judge->step, STR_ARG(judge->kernel->name),
                                 what, STR_ARG(name_of(judge, a)));
    if (b != NONE)
        *judge->message =
            str_format(arena, STR_FMT ", which has " STR_FMT, STR_ARG(*judge->message), STR_ARG(name_of(judge, b)));
    return false;
}

/* Bytes of an access in the arena, or in the array of its storage */

static Extent range_of(const Judge *judge, const Reach *reach)
{
    const KernelBuffer *buffer = &judge->kernel->buffer[reach->buffer];
    int64_t element = dtype_bytes(buffer->dtype);
    return (Extent){(buffer->begin + reach->low) * element, (buffer->begin + reach->high + 1) * element};
}

static bool is_planned(const Storage *storage)
{
    return storage->role == STORAGE_ARENA || storage->role == STORAGE_SCRATCH;
}

static bool lives_at(const Life *life, int64_t step)
{
    bool lives = false;
    for (uint32_t i = 0; i < life->count; i++)
        lives |= life->piece[i].first <= step && step < life->piece[i].last;
    return lives;
}

/* The bytes that the storage has at this step; fewer than in the end where parts of it are still to come. */
static int64_t bytes_now(const Judge *judge, StorageId id)
{
    const Memory *memory = judge->memory;
    const Storage *storage = &memory->storage.at[id];
    if (!is_planned(storage))
        return storage->bytes;
    if (memory->regions && storage->role == STORAGE_ARENA)
        return storage->life && lives_at(storage->life, judge->step) ? storage->bytes : -1;
    uint32_t *first = &judge->first_buffer[id];
    while (!memory->regions && *first != NONE && memory->problem.buffer[*first].last <= judge->step)
        *first = judge->next_buffer[*first];
    for (uint32_t i = *first; i != NONE; i = judge->next_buffer[i]) {
        const PlanBuffer *buffer = &memory->problem.buffer[i];
        if (buffer->first <= judge->step && judge->step < buffer->last)
            return buffer->size;
    }
    return -1;
}

/* Are its bytes written by steps of ours, or handed round by them? */
static bool is_tracked(const Judge *judge, StorageId id)
{
    StorageRole role = judge->memory->storage.at[id].role;
    return role != STORAGE_WEIGHTS && role != STORAGE_SHARED && role != STORAGE_NONE &&
           (role != STORAGE_INPUT || judge->memory->regions);
}

static int64_t offset_of(const Judge *judge, StorageId id)
{
    return judge->address[id];
}

static StorageId storage_of(const Judge *judge, const Reach *reach)
{
    return judge->kernel->buffer[reach->buffer].storage;
}

/* Inside of what the storage has; under a guard it is cut to that. */
static bool check_inside(Judge *judge, Reach *reach)
{
    StorageId id = storage_of(judge, reach);
    Extent *range = &reach->bytes;
    const Storage *storage = &judge->memory->storage.at[id];
    int64_t bytes = bytes_now(judge, id);
    *range = (Extent){0, 0};
    if (reach->guarded && !storage->bytes) /* none of its elements is ever reached */
        return true;
    *range = range_of(judge, reach);
    if (bytes < 0)
        return fault(judge, id, reach->store ? "writes, without memory," : "reads, without memory,", NONE);
    if (bytes < storage->bytes && !storage->has_parts)
        return fault(judge, id, "has too little memory for", NONE);
    if (reach->store && (storage->role == STORAGE_INPUT || storage->role == STORAGE_WEIGHTS))
        return fault(judge, id, "writes", NONE);
    if (reach->again && !storage->per_thread && storage->role != STORAGE_SHARED)
        return fault(judge, id, "stores in every round of a parallel loop to", NONE);
    if (!reach->guarded && (range->begin < 0 || range->end > bytes))
        return fault(judge, id, reach->store ? "writes outside of" : "reads outside of", NONE);
    range->begin = range->begin < 0 ? 0 : range->begin;
    range->end = range->end > bytes ? bytes : range->end;
    return true;
}

/* Whose bytes are read */

/* Of what lies around a part a load may only seem to read, when it is `loose`, and it may not be there yet. */
static bool check_owned(Judge *judge, StorageId id, Extent range, bool loose)
{
    int64_t begin = offset_of(judge, id) + range.begin, end = offset_of(judge, id) + range.end, known = begin;
    bool some = false;
    for (uint32_t i = owners_find(&judge->owners, known); i < judge->owners.count; i++) {
        const Owner *owner = &judge->owners.at[i];
        if (owner->begin >= end)
            break;
        bool own = owner->of == judge->content[id];
        if (!own && !loose)
            return fault(judge, id, "reads", judge->holder[owner->of]);
        if (owner->begin > known && !loose)
            break;
        known = owner->end;
        some |= own;
    }
    if (loose && owners_lost(&judge->owners, judge->content[id], (Extent){begin, end}))
        return fault(judge, id, "reads what has been written over of", NONE);
    return (loose && begin < end ? some : known >= end) ||
           fault(judge, id, "reads, before all of it is written,", NONE);
}

/* In place */

static bool same_element(const Judge *judge, const Reach *load, const Reach *store)
{
    const KernelBuffer *from = &judge->kernel->buffer[load->buffer], *to = &judge->kernel->buffer[store->buffer];
    return dtype_bytes(from->dtype) == dtype_bytes(to->dtype) && from->begin == to->begin &&
           offset_of(judge, from->storage) == offset_of(judge, to->storage) && index_eq(load->index, store->index);
}

static bool load_is_in_place(const Judge *judge, const Reach *load, uint32_t into)
{
    for (uint32_t i = 0; i < judge->reached.count; i++) {
        const Reach *store = &judge->reached.at[i];
        if (store->store && store->buffer == into && same_element(judge, load, store) &&
            reach_stands_with(&judge->reached, load, store))
            return true;
    }
    return false;
}

/* The hulls of all loads, or of all stores, of each buffer of the kernel, in its storage */
static bool find_hulls(Judge *judge, Extent *hull, bool *reached, bool store)
{
    for (uint32_t i = 0; i < judge->reached.count; i++) {
        Reach *reach = &judge->reached.at[i];
        if (reach->store != store || judge->memory->storage.at[storage_of(judge, reach)].role == STORAGE_SHARED)
            continue;
        if (!check_inside(judge, reach))
            return false;
        Extent range = reach->bytes;
        Extent *all = &hull[reach->buffer];
        if (!reached[reach->buffer]) {
            *all = range;
            reached[reach->buffer] = true;
        }
        all->begin = range.begin < all->begin ? range.begin : all->begin;
        all->end = range.end > all->end ? range.end : all->end;
    }
    return true;
}

typedef struct Hulls {
    Extent *load, *store;
    bool *loaded, *stored;
} Hulls;

static bool overlap(const Judge *judge, StorageId a, Extent x, StorageId b, Extent y)
{
    int64_t p = offset_of(judge, a), q = offset_of(judge, b);
    return p + x.begin < q + y.end && q + y.begin < p + x.end;
}

/* What the kernel writes through buffer b, against all else it touches. */
static bool check_store(Judge *judge, const Hulls *hulls, uint32_t b)
{
    StorageId into = judge->kernel->buffer[b].storage;
    for (uint32_t a = 0; a < judge->kernel->buffer_count; a++) {
        StorageId of = judge->kernel->buffer[a].storage;
        if (of == into || !is_tracked(judge, of))
            continue;
        if (hulls->stored[a] && overlap(judge, of, hulls->store[a], into, hulls->store[b]))
            return fault(judge, of, "writes", into);
        if (!hulls->loaded[a] || !overlap(judge, of, hulls->load[a], into, hulls->store[b]))
            continue;
        for (uint32_t i = 0; i < judge->reached.count; i++)
            if (!judge->reached.at[i].store && judge->reached.at[i].buffer == a &&
                !load_is_in_place(judge, &judge->reached.at[i], b))
                return fault(judge, of, "writes over", into);
    }
    return true;
}

static bool find_runs(const Judge *judge, const Reach *reach, ReachRuns *runs)
{
    return reach_find_runs(reach, dtype_bytes(judge->kernel->buffer[reach->buffer].dtype), runs);
}

static bool check_read(Judge *judge, const Reach *load)
{
    StorageId id = storage_of(judge, load);
    ReachRuns runs;
    if (!judge->memory->storage.at[id].has_parts)
        return check_owned(judge, id, load->bytes, false);
    if (!find_runs(judge, load, &runs))
        return check_owned(judge, id, load->bytes, true);
    for (int64_t i = 0; i < runs.all; i++)
        if (!check_owned(judge, id, reach_run(&runs, load, i), false))
            return false;
    return true;
}

static void take_bytes(Judge *judge, StorageId id, Extent range)
{
    int64_t offset = offset_of(judge, id);
    owners_take(&judge->owners, judge->content[id], (Extent){offset + range.begin, offset + range.end});
}

static void note_written(Judge *judge, const Reach *store)
{
    StorageId id = storage_of(judge, store);
    ReachRuns runs = {.all = 0};
    if (!judge->memory->storage.at[id].has_parts || !find_runs(judge, store, &runs))
        take_bytes(judge, id, store->bytes);
    else
        for (int64_t i = 0; i < runs.all; i++)
            take_bytes(judge, id, reach_run(&runs, store, i));
}

/* What a kernel writes itself, partial sums or scratch, it may read. */
static bool check_load(Judge *judge, const Hulls *hulls, const Reach *load)
{
    const Extent *store = &hulls->store[load->buffer];
    bool own = hulls->stored[load->buffer] && store->begin <= load->bytes.begin && load->bytes.end <= store->end;
    return load->store || own || !is_tracked(judge, storage_of(judge, load)) || check_read(judge, load);
}

static bool judge_step(Judge *judge)
{
    Arena *arena = &judge->of_step;
    uint32_t count = judge->kernel->buffer_count;
    Hulls hulls = {ARENA_ARRAY(arena, Extent, count), ARENA_ARRAY(arena, Extent, count),
                   ARENA_ARRAY(arena, bool, count), ARENA_ARRAY(arena, bool, count)};
    if (!find_hulls(judge, hulls.load, hulls.loaded, false) || !find_hulls(judge, hulls.store, hulls.stored, true))
        return false;
    for (uint32_t i = 0; i < judge->reached.count; i++)
        if (!check_load(judge, &hulls, &judge->reached.at[i]))
            return false;
    for (uint32_t b = 0; b < count; b++)
        if (hulls.stored[b] && is_tracked(judge, judge->kernel->buffer[b].storage) && !check_store(judge, &hulls, b))
            return false;
    for (uint32_t i = 0; i < judge->reached.count; i++) {
        const Reach *reach = &judge->reached.at[i];
        if (reach->store && is_tracked(judge, storage_of(judge, reach)))
            note_written(judge, reach);
    }
    return true;
}

static void list_buffers(Judge *judge, Arena *arena)
{
    const Memory *memory = judge->memory;
    judge->first_buffer = ARENA_ARRAY(arena, uint32_t, memory->storage.count);
    judge->next_buffer = ARENA_ARRAY(arena, uint32_t, memory->problem.count);
    for (uint32_t s = 0; s < memory->storage.count; s++)
        judge->first_buffer[s] = NONE;
    for (uint32_t i = memory->problem.count; i-- > 0;) {
        judge->next_buffer[i] = judge->first_buffer[memory->holder[i]];
        judge->first_buffer[memory->holder[i]] = i;
    }
}

/* Where everything begins: in the plan, or behind the arena, one after another; what is there before the first step is
 * whole. */
static void place_all(Judge *judge)
{
    const Memory *memory = judge->memory;
    int64_t end = memory->plan.peak;
    for (StorageId s = 0; s < memory->storage.count; s++) {
        const Storage *storage = &memory->storage.at[s];
        judge->content[s] = judge->holder[s] = s;
        judge->address[s] = is_planned(storage) ? memory->plan.offset[storage->buffer] : end;
        if (storage->role != STORAGE_INPUT && storage->role != STORAGE_OUTPUT)
            continue;
        if (storage->role == STORAGE_INPUT && memory->regions)
            owners_take(&judge->owners, s, (Extent){end, end + storage->bytes});
        end += storage->bytes;
    }
    for (uint32_t i = 0; i < memory->state_count; i++) {
        const StateValue *state = &memory->state[i];
        int64_t bytes = memory->storage.at[state->value].bytes;
        owners_take(&judge->owners, state->value, (Extent){end, end + bytes});
        judge->address[state->value] = end;
        if (state->next != NONE)
            judge->address[state->next] = end + (state->twice ? bytes : 0);
        end += 2 * bytes;
    }
    judge->contents = memory->storage.count;
}

/* Is the memory where the value is to be at the end all its own? */
static bool check_end(Judge *judge, ValueId value, const char *what)
{
    const Storage *storage = &judge->memory->storage.at[value];
    int64_t at = offset_of(judge, value), end = at + storage->bytes;
    for (uint32_t i = owners_find(&judge->owners, at); at < end; i++) {
        if (i == judge->owners.count || judge->owners.at[i].of != judge->content[value] ||
            judge->owners.at[i].begin > at) {
            Arena *arena = judge->memory->graph->module->arena;
            *judge->message = str_format(arena, "%s " STR_FMT " is not there at the end", what,
                                         STR_ARG(value_show(judge->memory->graph, value)));
            return false;
        }
        at = judge->owners.at[i].end;
    }
    return true;
}

static bool check_ends(Judge *judge)
{
    const Memory *memory = judge->memory;
    bool good = true;
    for (uint32_t i = 0; good && i < memory->graph->output_count; i++)
        good = check_end(judge, memory->graph->output[i].value, "output");
    for (uint32_t i = 0; good && i < memory->state_count; i++)
        good =
            check_end(judge, memory->state[i].next == NONE ? memory->state[i].value : memory->state[i].next, "state");
    return good;
}

/* Steps */

/* A place that none of those is in that must stay. */
static int64_t free_place(const Judge *judge, ValueId maker, const Family *family)
{
    const ValueId *avoided = flow_avoided(judge->memory, maker);
    uint32_t place = 0;
    for (uint32_t i = 0; avoided[i] != NONE && place + 1 < family->places; i++)
        if (judge->address[avoided[i]] == family->offset[place]) {
            place++;
            i = UINT32_MAX; /* from the first on again */
        }
    return family->offset[place];
}

/* An update in the memory of its first operand: what is not replaced goes on as the result's. */
static bool take_over(Judge *judge)
{
    const Node *node = judge->kernel->form == FORM_UPDATE ? &judge->memory->graph->node[judge->kernel->anchor] : NULL;
    ValueId owner = node ? flow_owner(judge->memory->graph, node->in[0]) : NONE;
    int64_t bytes = node ? judge->memory->storage.at[owner].bytes : 0;
    if (!bytes || judge->address[node->out[0]] != judge->address[owner] || !is_tracked(judge, owner))
        return true;
    if (!check_owned(judge, owner, (Extent){0, bytes}, false))
        return false;
    take_bytes(judge, node->out[0], (Extent){0, bytes});
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
        judge->content[id[i]] = judge->contents;
        judge->holder[judge->contents++] = id[i];
        if (storage->family != NONE && storage->role == STORAGE_ARENA)
            judge->address[id[i]] = free_place(judge, id[i], &memory->family[storage->family]);
    }
}

static bool run_kernel(Judge *judge, uint32_t step)
{
    ArenaMark mark = arena_mark(&judge->of_step);
    judge->step = step;
    judge->kernel = &judge->memory->kernel[step];
    begin_contents(judge);
    judge->reached = reach_collect(judge->kernel, &judge->of_step);
    bool good = take_over(judge) && judge_step(judge);
    arena_reset(&judge->of_step, mark);
    return good;
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

static bool run_loop(Judge *judge, uint32_t step, uint32_t *after)
{
    const Region loop = judge->memory->regions->at[region_after(judge, REGION_LOOP, step)];
    const Node *begin = flow_node(judge, step), *end = flow_node(judge, loop.end);
    bool tests_first = loop.test != NONE, good = true;
    uint32_t rounds = tests_first || judge->scenario.rounds ? judge->scenario.rounds : 1;
    uint32_t body = tests_first ? loop.test + 1 : step + 1;
    *after = loop.end + 1;
    pass_on(judge, begin->out, begin->in, begin->out_count);
    for (uint32_t round = 0; round < rounds && good; round++) {
        good = (!tests_first || run_steps(judge, step + 1, loop.test)) && run_steps(judge, body, loop.end);
        pass_on(judge, begin->out, end->in, begin->out_count);
    }
    return good && (!tests_first || run_steps(judge, step + 1, loop.test));
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
            good = run_kernel(judge, step++);
    }
    return good;
}

/* How many contents there are at most. */
static uint32_t most_contents(const Memory *memory, uint32_t rounds)
{
    uint64_t most = memory->storage.count;
    for (uint32_t k = 0; memory->regions && k < memory->kernel_count; k++) {
        uint64_t times = 1;
        for (uint32_t r = memory->regions->of[k]; r != NONE; r = memory->regions->at[r].outer)
            times *= memory->regions->at[r].kind == REGION_LOOP ? rounds + 1 : 1;
        most += times * memory->kernel[k].buffer_count;
    }
    return (uint32_t)most;
}

static bool judge_scenario(const Memory *memory, Scenario scenario, Str *message)
{
    Arena scratch = {0};
    uint32_t contents = most_contents(memory, scenario.rounds);
    Judge judge = {.memory = memory,
                   .message = message,
                   .owners = owners_new(&scratch, contents),
                   .address = ARENA_ARRAY(&scratch, int64_t, memory->storage.count),
                   .content = ARENA_ARRAY(&scratch, uint32_t, memory->storage.count),
                   .holder = ARENA_ARRAY(&scratch, StorageId, contents),
                   .scenario = scenario};
    list_buffers(&judge, &scratch);
    place_all(&judge);
    bool good = run_steps(&judge, 0, memory->kernel_count) && check_ends(&judge);
    arena_free(&judge.of_step);
    arena_free(&scratch);
    return good;
}

#define MOST_ROUNDS 4 /* of loops: what is carried over more of them is carried over these */
#define MOST_PICKS  4

bool memory_judge(const Memory *memory, Arena *scratch, Str *message)
{
    bool good = true;
    (void)scratch;
    for (uint32_t rounds = 0; good && rounds <= (memory->regions ? MOST_ROUNDS : 0); rounds++)
        for (uint32_t pick = 0; good && pick < (memory->regions ? MOST_PICKS : 1); pick++)
            good = judge_scenario(memory, (Scenario){.rounds = rounds, .pick = pick}, message);
    return good;
}
