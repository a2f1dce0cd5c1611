#include "api/loops.h"

#include "ops/meaning.h"
#include "storage/flow.h"

/* A value as the model calls it: where it is passed on under no name, what it is passed. */
static Str title_of(const Entry *entry, ValueId value)
{
    return value == NONE ? (Str){0} : value_title(entry->graph, value);
}

static PlanCarried carried_of(const Entry *entry, ValueId value)
{
    const Storage *storage = entry_storage(entry, value);
    PlanCarried carried = {.name = title_of(entry, value), .places = 0};
    if (storage->family == NONE)
        return carried;
    const Family *family = &entry->memory.family[storage->family];
    carried.places = storage->fixed ? 1 : family->places;
    for (uint32_t p = 0; p < family->places; p++)
        carried.outside += family->outside[p] != NONE;
    carried.in_output = storage->role == STORAGE_OUTPUT;
    carried.elsewhere = family->elsewhere;
    if (family->places > 1) {
        carried.maker = title_of(entry, family->maker);
        carried.conflict = title_of(entry, family->conflict);
    }
    return carried;
}

static bool is_within(const Regions *regions, uint32_t region, uint32_t loop)
{
    while (region != NONE && region != loop)
        region = regions->at[region].outer;
    return region != NONE;
}

/* The bytes that the step only moves: a copy of what lies in memory, or of all that an update leaves as it is. */
static int64_t moved_bytes(const Entry *entry, uint32_t step)
{
    const Kernel *kernel = &entry->memory.kernel[step];
    const Graph *graph = entry->graph;
    if (kernel->there || (kernel->form != FORM_ASSEMBLY && kernel->form != FORM_UPDATE))
        return 0;
    const Node *node = &graph->node[kernel->anchor];
    const Storage *from = entry_storage(entry, flow_owner(graph, node->in[0]));
    int64_t bytes = type_bytes(value_type(graph, node->out[0]));
    if (kernel->form == FORM_UPDATE) {
        bool reads = false;
        for (uint32_t b = 0; b < kernel->buffer_count; b++)
            reads |= kernel->buffer[b].read && kernel->buffer[b].storage == from->whole;
        return reads ? bytes : 0;
    }
    return node_is_assembly(node) || from->role == STORAGE_NONE ? 0 : bytes;
}

static int64_t copied_per_round(const Entry *entry, uint32_t loop)
{
    const Regions *regions = entry->memory.regions;
    int64_t bytes = 0;
    for (uint32_t k = 0; k < entry->memory.kernel_count; k++)
        if (is_within(regions, regions->of[k], loop) && flow_loop_of(regions, regions->of[k]) == loop)
            bytes += moved_bytes(entry, k);
    return bytes;
}

static PlanLoop loop_of_region(Arena *arena, const Entry *entry, uint32_t region)
{
    const Region *r = &entry->memory.regions->at[region];
    const Node *begin = &entry->graph->node[entry->memory.kernel[r->begin].node[0]];
    PlanCarried *carried = ARENA_ARRAY(arena, PlanCarried, begin->out_count);
    for (uint32_t i = 0; i < begin->out_count; i++)
        carried[i] = carried_of(entry, begin->out[i]);
    return (PlanLoop){.first = r->begin,
                      .last = (int64_t)r->end + 1,
                      .rounds = flow_most_rounds(begin),
                      .counted =
                          r->test == NONE && !flow_tests(&entry->graph->node[entry->memory.kernel[r->end].node[0]]),
                      .carried = carried,
                      .carried_count = begin->out_count,
                      .copied = copied_per_round(entry, region)};
}

void loops_note(Arena *arena, const Entry *entry, PlanReport *report)
{
    const Regions *regions = entry->memory.regions;
    PlanLoop *loop = ARENA_ARRAY(arena, PlanLoop, regions ? regions->count : 0);
    report->loop = loop;
    for (uint32_t r = 0; regions && r < regions->count; r++)
        if (regions->at[r].kind == REGION_LOOP)
            loop[report->loop_count++] = loop_of_region(arena, entry, r);
}
