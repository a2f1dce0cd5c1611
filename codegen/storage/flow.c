/* Regions, and who is passed to whom (flow.h). */
#include "storage/flow.h"

#include "ops/meaning.h"

/* Regions */

typedef struct Reader { /* of the steps, in order */
    Regions regions;
    Arena *arena;
    uint32_t now; /* the innermost region that is open */
} Reader;

static void open_region(Reader *r, RegionKind kind, uint32_t step, uint32_t choice)
{
    Region region = {.kind = kind, .outer = r->now, .begin = step, .choice = choice, .test = NONE};
    ARENA_PUSH(r->arena, r->regions.at, r->regions.count, r->regions.capacity, region);
    r->now = r->regions.count - 1;
}

static void close_region(Reader *r, uint32_t step)
{
    r->regions.at[r->now].end = step;
    r->now = r->regions.at[r->now].outer;
}

static void read_step(Reader *r, const Node *node, uint32_t step)
{
    uint32_t choice;
    switch (node_flow(node)) {
    case FLOW_LOOP_BEGIN:
        r->regions.of[step] = r->now;
        open_region(r, REGION_LOOP, step, NONE);
        return;
    case FLOW_LOOP_TEST:
        r->regions.at[r->now].test = step;
        r->regions.of[step] = r->now;
        return;
    case FLOW_BRANCH_BEGIN:
        r->regions.of[step] = r->now;
        open_region(r, REGION_BRANCH, step, step);
        return;
    case FLOW_BRANCH_NEXT:
        choice = r->regions.at[r->now].choice;
        close_region(r, step);
        r->regions.of[step] = r->now;
        open_region(r, REGION_BRANCH, step, choice);
        return;
    case FLOW_LOOP_END:
    case FLOW_BRANCH_END:
        close_region(r, step);
        break;
    case FLOW_NONE:
        break;
    }
    r->regions.of[step] = r->now;
}

Regions flow_regions(const Graph *graph, Arena *arena, const Kernel *kernel, uint32_t count)
{
    Reader r = {.arena = arena, .now = NONE, .regions.of = ARENA_ARRAY(arena, uint32_t, count)};
    open_region(&r, REGION_ENTRY, 0, NONE);
    for (uint32_t k = 0; k < count; k++)
        read_step(&r, &graph->node[kernel[k].node[0]], k);
    r.regions.at[0].end = count;
    return r.regions;
}

uint32_t flow_loop_of(const Regions *regions, uint32_t region)
{
    while (regions->at[region].kind == REGION_BRANCH)
        region = regions->at[region].outer;
    return region;
}

/* Members */

ValueId flow_owner(const Graph *graph, ValueId value)
{
    return kernel_view_owner(graph, value);
}

/* What becomes a member by updates alone is one too: a cache that several layers write to in turn. */
static void add_updated(const Graph *graph, bool *member)
{
    for (NodeId n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        ValueId owner = memory_updated(graph, node);
        if (owner != NONE && member[node->out[0]] && graph->value[owner].role == ROLE_RESULT)
            member[owner] = true;
    }
}

const bool *flow_members(const Graph *graph, Arena *arena)
{
    bool *member = ARENA_ARRAY(arena, bool, graph->value_count);
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        FlowKind kind = node_flow(node);
        bool passes = kind == FLOW_LOOP_BEGIN || kind == FLOW_LOOP_END || kind == FLOW_BRANCH_END;
        uint32_t count = passes ? node->in_count - (kind == FLOW_LOOP_END && flow_tests(node)) : 0;
        for (uint32_t i = 0; i < count; i++)
            member[flow_owner(graph, node->in[i])] = true;
        for (uint32_t r = 0; passes && r < node->out_count; r++)
            member[node->out[r]] = true;
    }
    add_updated(graph, member);
    return member;
}
