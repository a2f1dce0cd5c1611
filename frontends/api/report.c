#include "api/report.h"

#include <inttypes.h>

#include "api/loops.h"
#include "api/uses.h"
#include "base/map.h"
#include "kernel/kernel.h"

/* A kernel's scratch is called after its step. */
static Str scratch_name(const Memory *memory, uint32_t i, Arena *arena)
{
    const PlanBuffer *buffer = memory->problem.buffer;
    uint32_t before = 0;
    for (uint32_t k = i; k-- > 0 && buffer[k].first == buffer[i].first;)
        before += memory->storage.at[memory->holder[k]].role == STORAGE_SCRATCH;
    return before ? str_format(arena, "scratch@%" PRId64 ".%u", buffer[i].first, before)
                  : str_format(arena, "scratch@%" PRId64, buffer[i].first);
}

/* Of what is no value of the model, which may have one that is called so. */
static Str free_name(Map *taken, Arena *arena, Str name)
{
    while (!map_add(taken, name, 0))
        name = str_format(arena, STR_FMT "'", STR_ARG(name));
    return name;
}

static PlanRow row_of(const Entry *entry, uint32_t i, Map *taken, Arena *arena)
{
    const Memory *memory = &entry->memory;
    const PlanBuffer *buffer = &memory->problem.buffer[i];
    const Storage *storage = &memory->storage.at[memory->holder[i]];
    PlanRow row = {.kind = PLAN_TENSOR,
                   .bytes = buffer->size,
                   .span = buffer->size,
                   .offset = memory->plan.offset[i],
                   .first = buffer->first,
                   .last = buffer->last,
                   .region = buffer->region,
                   .alias_of = PLAN_NO_ROW,
                   .reuses = PLAN_NO_ROW};
    if (storage->role == STORAGE_SCRATCH) {
        row.kind = PLAN_SCRATCH;
        row.name = free_name(taken, arena, scratch_name(memory, i, arena));
        return row;
    }
    row.name = value_title(entry->graph, storage->value);
    bool whole = i == storage->buffer;
    if (whole || storage->life)
        row.type = type_show(arena, value_type(entry->graph, storage->value));
    if (!whole) { /* another place or piece of its life; or a concat of which only some parts have been made */
        row.kind = storage->life ? PLAN_TENSOR : PLAN_GROWING;
        row.name = str_format(arena, STR_FMT "@%" PRId64, STR_ARG(row.name), buffer->first);
        row.name = free_name(taken, arena, row.name);
    }
    return row;
}

/* The steps in which kernels read each value: itself, or through views. */
static PlanRow *find_reads(Arena *arena, const Entry *entry)
{
    const Graph *graph = entry->graph;
    PlanRow *read = ARENA_ARRAY(arena, PlanRow, graph->value_count);
    for (uint32_t k = 0; k < entry->memory.kernel_count; k++)
        for (uint32_t i = 0; i < entry->memory.kernel[k].node_count; i++) {
            const Node *node = &graph->node[entry->memory.kernel[k].node[i]];
            for (uint32_t r = 0; r < node->in_count; r++)
                for (ValueId v = node->in[r]; v != NONE;
                     v = kernel_value_is_view(graph, v) ? value_producer(graph, v)->in[0] : NONE) {
                    if (!read[v].last)
                        read[v].first = k;
                    read[v].last = (int64_t)k + 1;
                }
        }
    return read;
}

/* Adds a row for a value in the memory of another: a part of it, or a view.  Not for one that repeats elements, since
 * it has no bytes to show. */
static uint32_t add_alias(Arena *arena, const Entry *entry, ValueId value, PlanRow life, PlanRow *row, uint32_t count)
{
    const Graph *graph = entry->graph;
    const Storage *whole = entry_storage(entry, memory_whole(&entry->memory, value));
    int64_t bytes = type_bytes(value_type(graph, value));
    if ((whole->role != STORAGE_ARENA && whole->role != STORAGE_TURNS) || whole->buffer == NONE || !bytes)
        return count;
    Extent extent = memory_extent(&entry->memory, value);
    if (extent.end - extent.begin < bytes)
        return count;
    row[count] = life;
    row[count].name = value_title(graph, value);
    row[count].type = type_show(arena, value_type(graph, value));
    row[count].bytes = bytes;
    row[count].offset = row[whole->buffer].offset + extent.begin;
    row[count].span = extent.end - extent.begin;
    row[count].region = row[whole->buffer].region;
    row[count].alias_of = whole->buffer;
    return count + 1;
}

/* Parts live from the kernel that makes them, or, when they have come together from parts themselves, from the first
 * that reads them, to the end of the whole; views where kernels read through them. */
static uint32_t add_aliases(Arena *arena, const Entry *entry, PlanRow *row, uint32_t count)
{
    const Graph *graph = entry->graph;
    const PlanRow *read = find_reads(arena, entry);
    for (ValueId v = 0; v < graph->value_count; v++) {
        PlanRow life = read[v];
        if (entry_storage(entry, v)->inside != NONE) {
            uint32_t step = entry->memory.kernel_of[value_producer(graph, v)->kernel];
            life.first = step == NONE ? life.first : step;
            life.last = step == NONE && !life.last ? 0 : entry_storage(entry, memory_whole(&entry->memory, v))->last;
        } else if (!kernel_value_is_view(graph, v))
            continue;
        if (life.last)
            count = add_alias(arena, entry, v, life, row, count);
    }
    return count;
}

PlanReport report_of_entry(Arena *arena, const Entry *entry)
{
    const Memory *memory = &entry->memory;
    uint32_t count = memory->problem.count;
    PlanRow *row = ARENA_ARRAY(arena, PlanRow, count + entry->graph->value_count);
    Str *step = ARENA_ARRAY(arena, Str, memory->kernel_count + 1);
    Map taken = {.arena = arena};
    const Program *program = entry->program;
    Str title = program->entry_count == 1
                    ? program->options.name
                    : str_format(arena, STR_FMT "_" STR_FMT, STR_ARG(program->options.name), STR_ARG(entry->name));

    for (ValueId v = 0; v < entry->graph->value_count; v++)
        if (entry->graph->value[v].name.len)
            map_add(&taken, entry->graph->value[v].name, v);
    for (uint32_t i = 0; i < count; i++)
        row[i] = row_of(entry, i, &taken, arena);
    count = add_aliases(arena, entry, row, count);
    uses_note(arena, entry, row);
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        step[k] = memory->kernel[k].name;
    PlanReport report = {.title = title,
                         .row = row,
                         .count = count,
                         .step = step,
                         .step_count = memory->kernel_count,
                         .region_count = 1,
                         .peak = memory->plan.peak,
                         .lower_bound = memory->plan.lower_bound,
                         .proven = memory->plan.proven,
                         .nodes = memory->plan.nodes,
                         .allocator = memory->plan.allocator};
    const Fit *fit = &entry->fit;
    if (fit_recomputes(fit))
        report.recomputed = (PlanRecomputed){fit->peak_before, fit->operations_before, fit->operations};
    loops_note(arena, entry, &report);
    plan_report_finish(arena, &report);
    return report;
}
