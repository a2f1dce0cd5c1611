#include "plan/runs.h"

#include <string.h>

#define BLOCK_RUNS 16u

static PlanRun *take_block(RunStore *store)
{
    if (store->spare_count)
        return store->spare[--store->spare_count];
    return ARENA_ARRAY(store->arena, PlanRun, BLOCK_RUNS);
}

static void refresh(RunBlock *block)
{
    const PlanRun *run = block->run;
    int64_t room = 0;
    for (uint32_t i = 1; i < block->count; i++) {
        int64_t gap = run[i].begin - run[i - 1].end;
        room = gap > room ? gap : room;
    }
    block->begin = run[0].begin;
    block->end = run[block->count - 1].end;
    block->room = room;
}

/* The first block, of those from `low` on, that begins after the address. */
static uint32_t block_after(const Runs *runs, uint32_t low, int64_t address)
{
    uint32_t high = runs->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (runs->block[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first run of the block that ends at or after the address. */
static uint32_t run_at(const RunBlock *block, int64_t address)
{
    uint32_t low = 0, high = block->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (block->run[middle].end < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_block(RunStore *store, Runs *runs, uint32_t at, RunBlock block)
{
    ARENA_PUSH(store->arena, runs->block, runs->count, runs->capacity, block);
    memmove(&runs->block[at + 1], &runs->block[at], sizeof block * (runs->count - 1 - at));
    runs->block[at] = block;
}

static void drop_blocks(RunStore *store, Runs *runs, uint32_t from, uint32_t to)
{
    for (uint32_t b = from; b < to; b++)
        ARENA_PUSH(store->arena, store->spare, store->spare_count, store->spare_capacity, runs->block[b].run);
    memmove(&runs->block[from], &runs->block[to], sizeof *runs->block * (runs->count - to));
    runs->count -= to - from;
}

static void drop_runs(RunBlock *block, uint32_t from, uint32_t to)
{
    memmove(&block->run[from], &block->run[to], sizeof(PlanRun) * (block->count - to));
    block->count -= to - from;
}

/* Moves the upper half of a full block into a new one behind it. */
static void split(RunStore *store, Runs *runs, uint32_t b)
{
    uint32_t half = BLOCK_RUNS / 2;
    RunBlock upper = {.run = take_block(store), .count = BLOCK_RUNS - half};
    memcpy(upper.run, &runs->block[b].run[half], sizeof(PlanRun) * upper.count);
    refresh(&upper);
    runs->block[b].count = half;
    refresh(&runs->block[b]);
    insert_block(store, runs, b + 1, upper);
}

static void insert_run(RunStore *store, Runs *runs, uint32_t b, uint32_t at, PlanRun run)
{
    if (runs->block[b].count == BLOCK_RUNS) {
        split(store, runs, b);
        if (at > runs->block[b].count)
            at -= runs->block[b++].count;
    }
    RunBlock *block = &runs->block[b];
    memmove(&block->run[at + 1], &block->run[at], sizeof run * (block->count - at));
    block->run[at] = run;
    block->count++;
    refresh(block);
}

/* Lets a run reach to `end`, and over all that it meets there. */
static void extend(RunStore *store, Runs *runs, uint32_t b, uint32_t at, int64_t end)
{
    RunBlock *block = &runs->block[b];
    uint32_t beyond = at + 1, next = b + 1;
    for (; beyond < block->count && block->run[beyond].begin <= end; beyond++)
        ;
    end = block->run[beyond - 1].end > end ? block->run[beyond - 1].end : end;
    if (beyond == block->count) {
        for (; next < runs->count && runs->block[next].end <= end; next++)
            ;
        if (next < runs->count && runs->block[next].begin <= end) {
            RunBlock *last = &runs->block[next];
            uint32_t met = 0;
            for (; met < last->count && last->run[met].begin <= end; met++)
                ;
            end = last->run[met - 1].end > end ? last->run[met - 1].end : end;
            if (met < last->count) {
                drop_runs(last, 0, met);
                refresh(last);
            } else {
                next++;
            }
        }
    }
    block->run[at].end = end;
    drop_runs(block, at + 1, beyond);
    refresh(block);
    if (next > b + 1)
        drop_blocks(store, runs, b + 1, next);
}

void runs_add(RunStore *store, Runs *runs, int64_t begin, int64_t end)
{
    PlanRun run = {begin, end};
    store->looks++;
    if (!runs->count) {
        RunBlock first = {.begin = begin, .end = end, .run = take_block(store), .count = 1};
        first.run[0] = run;
        insert_block(store, runs, 0, first);
        return;
    }
    uint32_t b = block_after(runs, 0, begin);
    b -= b > 0;
    uint32_t at = run_at(&runs->block[b], begin);
    if (at == runs->block[b].count && b + 1 < runs->count && runs->block[b + 1].begin <= end) {
        b++;
        at = 0;
    }
    PlanRun *met = &runs->block[b].run[at];
    if (at == runs->block[b].count || met->begin > end) {
        insert_run(store, runs, b, at, run);
    } else if (met->begin > begin || met->end < end) {
        met->begin = met->begin < begin ? met->begin : begin;
        extend(store, runs, b, at, end);
    }
}

/* Looks for a gap in front of a run of the block, from the place's run on; else `from` ends behind the last one. */
static bool gap_inside(RunStore *store, const RunBlock *block, RunPlace *place, int64_t *from, int64_t size)
{
    store->looks++;
    if (block->room >= size && block->end > *from) {
        uint32_t i = place->run;
        for (; block->run[i].end <= *from; i++)
            ;
        for (; i < block->count && block->run[i].begin - *from < size; i++)
            *from = block->run[i].end;
        store->looks += i - place->run;
        place->run = i;
        if (i < block->count)
            return true;
    }
    if (block->end > *from)
        *from = block->end;
    return false;
}

PlanRun runs_gap(RunStore *store, const Runs *runs, RunPlace *place, int64_t from, int64_t size)
{
    uint32_t next = place->next;
    if (next < runs->count && runs->block[next].begin <= from) {
        next = block_after(runs, next + 1, from);
        place->run = 0;
    }
    for (;; next++, place->run = 0) {
        place->next = next;
        if (next > 0 && gap_inside(store, &runs->block[next - 1], place, &from, size))
            return (PlanRun){from, runs->block[next - 1].run[place->run].begin};
        int64_t end = next < runs->count ? runs->block[next].begin : INT64_MAX;
        if (end - from >= size)
            return (PlanRun){from, end};
    }
}
