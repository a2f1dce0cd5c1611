/* Which calls of an entry come again in the same order.  Steps become numbers, equal ones where two calls differ in
 * offsets alone; a stretch that is equal to what stands a period behind it is rounds. */
#include "c/rounds.h"

#define FEWEST_ROUNDS 3
#define MOST_TURNS    4
#define CALL_LENGTH   13 /* of a call with its pointers and comments, in offsets of the table */
#define FEWEST_SPARED 16 /* calls, of all rounds but the first */

/* What must be alike about an argument: all but its offset, where it has one. */
static void describe_argument(const UnitRun *run, Text *key, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    UnitPlace place = unit_run_place(run, buffer);
    bool part = unit_run_sees_part(run, buffer); /* whose offset is that of the place */
    bool array = storage->role == STORAGE_INPUT || storage->role == STORAGE_OUTPUT || storage->role == STORAGE_WEIGHTS;
    text_printf(key, " %s %d %lld ", print_buffer_type(buffer), unit_run_is_fixed(run, buffer),
                part ? -1LL : (long long)buffer->begin);
    if (place.block.len)
        text_str(key, place.block);
    else if (array)
        text_printf(key, "%d %u", (int)storage->role, storage->index);
    else
        text_printf(key, "in %u", buffer->storage);
}

/* Steps of the same text are calls that differ in offsets alone. */
static Str step_text(const UnitRun *run, const StepList *list, uint32_t s)
{
    const Step *step = &list->step[s];
    Arena *arena = run->unit->arena;
    if (step->kind != STEP_LAUNCH || run->entry->memory.kernel[step->kernel].asks)
        return str_format(arena, "%u", s);
    const Kernel *kernel = &run->entry->memory.kernel[step->kernel];
    const Launch *launch = &run->unit->of_step[run->number][step->number];
    const Sharing *sharing = &run->unit->function[launch->function].sharing;
    const bool *used = unit_parameters(run->entry, arena, step->kernel, step->deal);
    Text text = {0};
    text_printf(&text, "call %u %u %lld", launch->function, s ? step->kernel - list->step[s - 1].kernel : 0,
                step->deal && step->deal->part ? (long long)step->deal->part->high : -1LL);
    for (uint32_t n = 0; n < kernel->node_count; n++)
        text_printf(&text, " %d", (int)run->entry->graph->node[kernel->node[n]].op);
    for (uint32_t p = 0; p < sharing->count; p++)
        text_printf(&text, " %lld", (long long)launch->constant[sharing->parameter[p].constant].value);
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        if (used[b])
            describe_argument(run, &text, &kernel->buffer[b]);
    Str copy = str_copy(arena, text_view(&text));
    text_free(&text);
    return copy;
}

/* Steps as numbers, equal ones for those of the same text: the first step of them. */
static uint32_t *number_steps(const UnitRun *run, const StepList *list)
{
    Arena *arena = run->unit->arena;
    uint32_t *number = ARENA_ARRAY(arena, uint32_t, list->count);
    Map known = {.arena = arena};
    for (uint32_t s = 0; s < list->count; s++) {
        Str text = step_text(run, list, s);
        map_add(&known, text, s);
        number[s] = map_get(&known, text);
    }
    return number;
}

static uint32_t spared(Rounds rounds)
{
    return rounds.count < FEWEST_ROUNDS ? 0 : (rounds.count - 1) * rounds.period;
}

static bool starts_kernel(const UnitRun *run, const Step *step)
{
    return step->kind == STEP_LAUNCH && step_is_first(run->entry->memory.kernel, step);
}

/* Of steps [begin, end), the most rounds of `period` steps. */
static Rounds longest_of(const UnitRun *run, const StepList *list, const uint32_t *number, uint32_t begin, uint32_t end,
                         uint32_t period)
{
    Rounds best = {0};
    for (uint32_t s = begin, from = begin; s + period <= end; s++) {
        if (s + period < end && number[s] == number[s + period])
            continue; /* [from, s] comes again `period` steps on */
        while (from < s && !starts_kernel(run, &list->step[from]))
            from++;
        Rounds rounds = {from, period, (s - from) / period + 1};
        best = spared(rounds) > spared(best) ? rounds : best;
        from = s + 1;
    }
    return best;
}

/* Of steps [begin, end), the rounds that spare most calls.  A round has some step, as a rule, that comes once in it, so
 * periods are sought between a step and the next that is alike. */
static Rounds best_of(const UnitRun *run, const StepList *list, const uint32_t *number, uint32_t begin, uint32_t end)
{
    uint32_t *next = ARENA_ARRAY(run->unit->arena, uint32_t, end),
             *times = ARENA_ARRAY(run->unit->arena, uint32_t, end);
    Rounds best = {0};
    for (uint32_t s = end; s-- > begin;) {
        uint32_t again = next[number[s]];
        times[again ? again - s : 0]++;
        next[number[s]] = s;
    }
    for (uint32_t period = 1; period <= (end - begin) / FEWEST_ROUNDS; period++) {
        if (times[period] + 1 < FEWEST_ROUNDS)
            continue;
        Rounds rounds = longest_of(run, list, number, begin, end, period);
        best = spared(rounds) > spared(best) ? rounds : best;
    }
    return best;
}

const KernelBuffer *unit_rounds_buffer(const UnitRun *run, const Rounds *rounds, const Step *step, uint32_t b,
                                       uint32_t round)
{
    step += (size_t)round * rounds->period;
    return &run->entry->memory.kernel[step->kernel].buffer[b];
}

const int64_t *unit_rounds_offsets(const UnitRun *run, const Rounds *rounds, const Step *step, uint32_t b)
{
    int64_t *offset = ARENA_ARRAY(run->unit->arena, int64_t, rounds->count);
    for (uint32_t r = 0; r < rounds->count; r++)
        offset[r] = unit_run_place(run, unit_rounds_buffer(run, rounds, step, b, r)).offset;
    return offset;
}

bool unit_rounds_are_even(const int64_t *offset, uint32_t count)
{
    for (uint32_t r = 2; r < count; r++)
        if (offset[r] - offset[r - 1] != offset[1] - offset[0])
            return false;
    return true;
}

/* About how long a loop's text is: its calls and its table. */
static int64_t text_length(const UnitRun *run, const StepList *list, const Rounds *rounds)
{
    Arena *arena = run->unit->arena;
    Map columns = {.arena = arena};
    int64_t width = 0;
    for (uint32_t s = rounds->first; s < rounds->first + rounds->period; s++) {
        const Step *step = &list->step[s];
        const Kernel *kernel = &run->entry->memory.kernel[step->kernel];
        const bool *used = unit_parameters(run->entry, arena, step->kernel, step->deal);
        for (uint32_t b = 0; b < kernel->buffer_count; b++) {
            if (!used[b] || !unit_run_place(run, &kernel->buffer[b]).block.len)
                continue;
            const int64_t *offset = unit_rounds_offsets(run, rounds, step, b);
            width += !unit_rounds_are_even(offset, rounds->count) &&
                     map_add(&columns, map_key(offset, rounds->count * sizeof *offset), s);
        }
    }
    return rounds->period * CALL_LENGTH + width * rounds->count;
}

/* Layers may take turns with a few places: with as many of them in a round, each has its own.  Those of the first layer
 * may be like no other's: it is left out then. */
static Rounds shortest(const UnitRun *run, const StepList *list, Rounds rounds)
{
    Rounds best = rounds;
    int64_t least = INT64_MAX;
    for (uint32_t out = 0; out < 2; out++)
        for (uint32_t turns = 1; turns <= MOST_TURNS && (rounds.count - out) / turns >= FEWEST_ROUNDS; turns++) {
            Rounds other = {rounds.first + out * rounds.period, rounds.period * turns, (rounds.count - out) / turns};
            uint32_t left = (out + (rounds.count - out) % turns) * rounds.period;
            int64_t length = text_length(run, list, &other) + left * CALL_LENGTH;
            best = length < least ? other : best;
            least = length < least ? length : least;
        }
    return best;
}

/* Recurses into the steps before and behind those that spare most. */
static void find_rounds(const UnitRun *run, const StepList *list, const uint32_t *number, uint32_t begin, uint32_t end,
                        RoundsList *found)
{
    if (end - begin <= FEWEST_SPARED)
        return;
    Rounds rounds = best_of(run, list, number, begin, end);
    if (spared(rounds) < FEWEST_SPARED)
        return;
    rounds = shortest(run, list, rounds);
    find_rounds(run, list, number, begin, rounds.first, found);
    ARENA_PUSH(run->unit->arena, found->at, found->count, found->capacity, rounds);
    find_rounds(run, list, number, rounds.first + rounds.period * rounds.count, end, found);
}

RoundsList unit_rounds_find(const UnitRun *run, const StepList *list)
{
    RoundsList found = {0};
    if (list->count > FEWEST_SPARED)
        find_rounds(run, list, number_steps(run, list), 0, list->count, &found);
    return found;
}
