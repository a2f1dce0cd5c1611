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
 *     every load stands with the store at the same element, or of rows goes ahead of all stores to it: the result in
 *     place of an operand.
 *   - Inputs and weights are not written.
 *   - At the end all of an output is written, and a state's memory holds the value that the next run is to find.
 *   - Loops run for some rounds, and branches in turns, several times over: what is passed is where it points to then,
 *     and every content that is made is another one.
 *   - A loop marked parallel stores every round elsewhere, but for scratch that each thread has for itself.
 *
 * Extents of addresses come from the ranges of loop variables.  Under a loop whose bounds vary, or a guard, they are
 * cut to the storage: whether guards are right is for the tests that run what is emitted. */
#include "storage/judge.h"

#include "base/number.h"

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
    return storage->role == STORAGE_ARENA || storage->role == STORAGE_SCRATCH || storage->role == STORAGE_TURNS;
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
    if (memory->regions && storage->role != STORAGE_SCRATCH)
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
bool judge_tracks(const Judge *judge, StorageId id)
{
    StorageRole role = judge->memory->storage.at[id].role;
    return !storage_is_constant(role) && role != STORAGE_SHARED && role != STORAGE_NONE &&
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

/* What a kernel reaches of it: of scratch that each thread has a copy of, as much as the last one, behind which nothing
 * is left to fill a line. */
static int64_t bytes_reached(const Storage *storage, int64_t bytes)
{
    bool copies = storage->role == STORAGE_SCRATCH && storage->apart < bytes;
    return copies ? (bytes - 1) % storage->apart + 1 : bytes;
}

/* Inside of what the storage has; under a guard it is cut to that. */
static bool check_inside(Judge *judge, Reach *reach)
{
    StorageId id = storage_of(judge, reach);
    Extent *range = &reach->bytes;
    const Storage *storage = &judge->memory->storage.at[id];
    int64_t bytes = bytes_now(judge, id) << storage->nibbles; /* as many as elements */
    *range = (Extent){0, 0};
    if (reach->guarded && !storage->bytes) /* none of its elements is ever reached */
        return true;
    *range = range_of(judge, reach);
    if (bytes < 0)
        return fault(judge, id, reach->store ? "writes, without memory," : "reads, without memory,", NONE);
    if (bytes < storage->bytes && !storage->has_parts)
        return fault(judge, id, "has too little memory for", NONE);
    if (reach->store && (storage->role == STORAGE_INPUT || storage_is_constant(storage->role)))
        return fault(judge, id, "writes", NONE);
    if (reach->again && !storage->per_thread && storage->role != STORAGE_SHARED)
        return fault(judge, id, "stores in every round of a parallel loop to", NONE);
    bytes = bytes_reached(storage, bytes);
    if (!reach->guarded && (range->begin < 0 || range->end > bytes))
        return fault(judge, id, reach->store ? "writes outside of" : "reads outside of", NONE);
    range->begin = range->begin < 0 ? 0 : range->begin;
    range->end = range->end > bytes ? bytes : range->end;
    return true;
}

/* Whose bytes are read */

/* Of what lies around a part a load may only seem to read, when it is `loose`, and it may not be there yet. */
bool judge_owned(Judge *judge, StorageId id, Extent range, bool loose)
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

static bool same_place(const Judge *judge, const Reach *load, uint32_t into)
{
    const KernelBuffer *from = &judge->kernel->buffer[load->buffer], *to = &judge->kernel->buffer[into];
    return dtype_bytes(from->dtype) == dtype_bytes(to->dtype) && from->begin == to->begin &&
           offset_of(judge, from->storage) == offset_of(judge, to->storage);
}

static bool load_is_in_place(const Judge *judge, const Reach *load, uint32_t into)
{
    for (uint32_t i = 0; i < judge->reached.count; i++) {
        const Reach *store = &judge->reached.at[i];
        if (store->store && store->buffer == into && index_eq(load->index, store->index) &&
            reach_stands_with(&judge->reached, load, store))
            return true;
    }
    return false;
}

/* Nobody but rows makes use of it. */
static bool load_goes_ahead(const Judge *judge, const Reach *load, uint32_t into)
{
    if (judge->kernel->form != FORM_ROWS)
        return false;
    for (uint32_t i = 0; i < judge->reached.count; i++) {
        const Reach *store = &judge->reached.at[i];
        if (store->store && store->buffer == into && !reach_goes_ahead(&judge->reached, load, store))
            return false;
    }
    return true;
}

static bool may_lie_under(const Judge *judge, const Reach *load, uint32_t into)
{
    return same_place(judge, load, into) && (load_is_in_place(judge, load, into) || load_goes_ahead(judge, load, into));
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
        if (of == into || !judge_tracks(judge, of))
            continue;
        if (hulls->stored[a] && overlap(judge, of, hulls->store[a], into, hulls->store[b]))
            return fault(judge, of, "writes", into);
        if (!hulls->loaded[a] || !overlap(judge, of, hulls->load[a], into, hulls->store[b]))
            continue;
        for (uint32_t i = 0; i < judge->reached.count; i++)
            if (!judge->reached.at[i].store && judge->reached.at[i].buffer == a &&
                !may_lie_under(judge, &judge->reached.at[i], b))
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
        return judge_owned(judge, id, load->bytes, false);
    if (!find_runs(judge, load, &runs))
        return judge_owned(judge, id, load->bytes, true);
    for (int64_t i = 0; i < runs.all; i++)
        if (!judge_owned(judge, id, reach_run(&runs, load, i), false))
            return false;
    return true;
}

void judge_take(Judge *judge, StorageId id, Extent range)
{
    int64_t offset = offset_of(judge, id);
    owners_take(&judge->owners, judge->content[id], (Extent){offset + range.begin, offset + range.end});
}

static void note_written(Judge *judge, const Reach *store)
{
    StorageId id = storage_of(judge, store);
    ReachRuns runs = {.all = 0};
    if (!judge->memory->storage.at[id].has_parts || !find_runs(judge, store, &runs))
        judge_take(judge, id, store->bytes);
    else
        for (int64_t i = 0; i < runs.all; i++)
            judge_take(judge, id, reach_run(&runs, store, i));
}

/* What a kernel writes itself, partial sums or scratch, it may read. */
static bool check_load(Judge *judge, const Hulls *hulls, const Reach *load)
{
    const Extent *store = &hulls->store[load->buffer];
    bool own = hulls->stored[load->buffer] && store->begin <= load->bytes.begin && load->bytes.end <= store->end;
    return load->store || own || !judge_tracks(judge, storage_of(judge, load)) || check_read(judge, load);
}

bool judge_step(Judge *judge)
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
        if (hulls.stored[b] && judge_tracks(judge, judge->kernel->buffer[b].storage) && !check_store(judge, &hulls, b))
            return false;
    for (uint32_t i = 0; i < judge->reached.count; i++) {
        const Reach *reach = &judge->reached.at[i];
        if (reach->store && judge_tracks(judge, storage_of(judge, reach)))
            note_written(judge, reach);
    }
    return true;
}

void judge_buffers(Judge *judge, Arena *arena)
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
void judge_place(Judge *judge)
{
    const Memory *memory = judge->memory;
    int64_t end = memory->plan.peak, *output = ARENA_ARRAY(&judge->of_step, int64_t, memory->graph->output_count);
    for (uint32_t i = 0; i < memory->graph->output_count; i++) {
        output[i] = end;
        end += memory->storage.at[memory->graph->output[i].value].bytes;
    }
    for (StorageId s = 0; s < memory->storage.count; s++) {
        const Storage *storage = &memory->storage.at[s];
        judge->content[s] = judge->holder[s] = s;
        bool planned = is_planned(storage) && storage->role != STORAGE_TURNS;
        judge->address[s] = planned                           ? memory->plan.offset[storage->buffer]
                            : storage->role == STORAGE_OUTPUT ? output[storage->index]
                                                              : end;
        if (storage->role != STORAGE_INPUT)
            continue;
        if (memory->regions)
            owners_take(&judge->owners, s, (Extent){end, end + storage->bytes});
        end += storage->bytes;
    }
    for (uint32_t i = 0; i < memory->state_count; i++) {
        const StateValue *state = &memory->state[i];
        int64_t bytes = memory->storage.at[state->value].bytes;
        owners_take(&judge->owners, state->value, (Extent){end, end + bytes});
        for (StorageId s = 0; s < memory->storage.count; s++)
            if (storage_is_kept(memory->storage.at[s].role) && memory->storage.at[s].index == i)
                judge->address[s] = end + (memory->storage.at[s].next ? bytes : 0);
        end += 2 * bytes;
    }
    judge->contents = memory->storage.count;
}

/* Is the memory where the value is to be at the end all its own? */
static bool check_end(Judge *judge, ValueId value, const char *what)
{
    const Storage *storage = &judge->memory->storage.at[value];
    int64_t at = offset_of(judge, value), end = at + storage->bytes;
    if (judge->content[value] == NONE) /* it is there after other rounds than these */
        return true;
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

bool judge_ends(Judge *judge)
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
