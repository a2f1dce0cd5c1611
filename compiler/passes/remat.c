/* Recomputation within a budget.
 * Needs: an expanded graph, before the pass grad.  Keeps: all but which calls its nodes come from.
 * Puts nodes that are differentiated together in segments (remat_segments.c), which the pass grad then treats as calls
 * that are checkpointed: each is computed again when its gradient arrives.  How much of that to do is said by
 * PassContext.remat; who has a budget plans and says more (codegen/program/fit.c). */
#include "passes/remat.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

static const Call computed_again = {.checkpoint = true};

typedef struct Marking {
    Graph *graph;
    Arena *scratch;
    uint32_t *region; /* per node: the innermost, as an inlined call; NONE */
    Map again;        /* a region and a call, which is one more in it */
} Marking;

static uint32_t add_inlined(Graph *graph, const Call *call, uint32_t outer)
{
    Inlined inlined = {call, outer};
    ARENA_PUSH(graph->module->arena, graph->inlined, graph->inlined_count, graph->inlined_capacity, inlined);
    return graph->inlined_count - 1;
}

/* Nodes of one region become one more region. */
static void mark(Marking *m, const NodeId *first, const NodeId *end)
{
    uint32_t region = add_inlined(m->graph, &computed_again, m->region[*first]);
    for (; first < end; first++)
        m->region[*first] = region;
}

static int by_worth(const void *a, const void *b)
{
    const Segment *x = a, *y = b;
    return x->worth != y->worth ? (x->worth < y->worth) - (x->worth > y->worth)
                                : (*x->node > *y->node) - (*x->node < *y->node);
}

static void mark_best(Marking *m, RematKind kind, uint32_t count)
{
    Segments segments = remat_segments(m->graph, kind, m->scratch);
    if (segments.count)
        qsort(segments.at, segments.count, sizeof *segments.at, by_worth);
    for (uint32_t i = 0; i < count && i < segments.count; i++)
        mark(m, segments.at[i].node, segments.at[i].node + segments.at[i].count);
}

/* Each gradient has a chain of coarse segments, with what is behind the last as one more. */
static void mark_chains(Marking *m, uint32_t snapshots)
{
    Segments segments = remat_segments(m->graph, REMAT_COARSE, m->scratch);
    for (uint32_t begin = 0, end; begin < segments.count; begin = end) {
        const Segment *of = &segments.at[begin];
        RematRange *range;
        for (end = begin; end < segments.count && segments.at[end].chain == of->chain;)
            end++;
        uint32_t count = remat_schedule(m->scratch, end - begin + 1, snapshots, &range);
        for (uint32_t i = 0; i < count; i++)
            mark(m, of[range[i].begin].node, of[range[i].end - 1].node + of[range[i].end - 1].count);
    }
}

/* Recurses over the nesting of calls. */
static uint32_t call_in(Marking *m, uint32_t region, uint32_t call)
{
    uint32_t key[] = {region, call};
    if (call == NONE)
        return region;
    Str bytes = map_key(key, sizeof key);
    uint32_t known = map_get(&m->again, bytes);
    if (known != MAP_NONE)
        return known;
    const Inlined inlined = m->graph->inlined[call];
    known = add_inlined(m->graph, inlined.call, call_in(m, region, inlined.outer));
    map_put(&m->again, str_copy(m->scratch, bytes), known);
    return known;
}

bool pass_remat(Graph *graph, PassContext *context)
{
    const Remat *remat = &context->remat;
    Marking m = {.graph = graph, .scratch = context->scratch, .again = {.arena = context->scratch}};
    if (!remat->fine && !remat->coarse && !remat->snapshots)
        return true;
    m.region = ARENA_ARRAY(context->scratch, uint32_t, graph->node_count + 1);
    memset(m.region, 0xff, graph->node_count * sizeof *m.region); /* NONE */
    if (remat->snapshots)
        mark_chains(&m, remat->snapshots);
    else
        mark_best(&m, REMAT_COARSE, remat->coarse);
    mark_best(&m, REMAT_FINE, remat->fine);
    for (NodeId n = 0; n < graph->node_count; n++)
        if (m.region[n] != NONE) {
            graph->node[n].from = call_in(&m, m.region[n], graph->node[n].from);
            context->changes++;
        }
    return true;
}
