/* Recomputation within a budget.
 * Needs: an expanded graph, before the pass grad.  Keeps: all but which calls its nodes come from.
 * Puts nodes that are differentiated together in segments (remat_segments.c), which the pass grad then treats as calls
 * that are checkpointed: each is computed again when its gradient arrives.  How much of that to do is said by
 * PassContext.remat; who has a budget plans and says more (codegen/program/fit.c). */
#include "passes/remat.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

static const Call computed_again = {.checkpoint = true}, kept = {.kept = true};

typedef struct Marking {
    Graph *graph;
    Arena *scratch;
    uint32_t *region; /* per node: the innermost, as an inlined call; NONE */
    Map again;        /* a region and a call, which is one more in it */
} Marking;

static uint32_t add_inlined(Graph *graph, const Call *call, uint32_t outer)
{
    Inlined inlined = {.call = call, .outer = outer};
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

static void sort(Segments *segments)
{
    if (segments->count)
        qsort(segments->at, segments->count, sizeof *segments->at, by_worth);
}

static void mark_coarse(Marking *m, uint32_t count)
{
    Segments segments = remat_segments(m->graph, REMAT_COARSE, m->scratch);
    sort(&segments);
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

/* Of a segment, the nodes that cost next to nothing; waits[n]: where what is not computed again, but sees what node n
 * is, belongs. */
static void mark_light(Marking *m, const Segment *segment, const bool *light, uint32_t *waits)
{
    uint32_t again = NONE, others = NONE, outer = m->region[*segment->node];
    for (uint32_t k = 0; k < segment->count; k++)
        if (light[segment->node[k]] && again == NONE)
            again = add_inlined(m->graph, &computed_again, outer);
    if (again == NONE)
        return;
    others = add_inlined(m->graph, &kept, again);
    for (uint32_t k = 0; k < segment->count; k++) {
        NodeId n = segment->node[k];
        m->region[n] = light[n] ? again : others;
        waits[n] = light[n] ? others : NONE;
    }
}

/* Contractions of later segments may read what is light in this one: they see it computed again, too. */
static void mark_readers(Marking *m, const Segment *segment, const uint32_t *waits)
{
    const Graph *graph = m->graph;
    for (uint32_t k = 0; k < segment->count; k++) {
        const Node *node = &graph->node[segment->node[k]];
        uint32_t *region = &m->region[segment->node[k]];
        for (uint32_t i = 0; i < node->in_count; i++) {
            uint32_t maker = graph->value[node->in[i]].node, others = maker == NONE ? NONE : waits[maker];
            bool beside = others != NONE && graph->inlined[graph->inlined[others].outer].outer == *region;
            if (graph->value[node->in[i]].role == ROLE_RESULT && beside)
                *region = others;
        }
    }
}

/* As a whole the `count` best, of the others what is light. */
static void mark_fine(Marking *m, uint32_t count, const PassContext *context)
{
    Segments segments = remat_segments(m->graph, REMAT_FINE, m->scratch);
    const bool *light = remat_light(m->graph, &segments, context);
    uint32_t *waits = ARENA_ARRAY(m->scratch, uint32_t, m->graph->node_count + 1);
    memset(waits, 0xff, m->graph->node_count * sizeof *waits); /* NONE */
    sort(&segments);
    for (uint32_t i = 0; i < segments.count; i++)
        if (i < count)
            mark(m, segments.at[i].node, segments.at[i].node + segments.at[i].count);
        else
            mark_light(m, &segments.at[i], light, waits);
    for (uint32_t i = count; i < segments.count; i++)
        mark_readers(m, &segments.at[i], waits);
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
    m->graph->inlined[known].place = inlined.place;
    map_put(&m->again, str_copy(m->scratch, bytes), known);
    return known;
}

bool pass_remat(Graph *graph, PassContext *context)
{
    const Remat *remat = &context->remat;
    Marking m = {.graph = graph, .scratch = context->scratch, .again = {.arena = context->scratch}};
    if (remat->rounds)
        remat_rounds(graph, remat->rounds, context);
    m.region = ARENA_ARRAY(context->scratch, uint32_t, graph->node_count + 1);
    memset(m.region, 0xff, graph->node_count * sizeof *m.region); /* NONE */
    if (remat->snapshots)
        mark_chains(&m, remat->snapshots);
    else
        mark_coarse(&m, remat->coarse);
    mark_fine(&m, remat->fine, context);
    for (NodeId n = 0; n < graph->node_count; n++)
        if (m.region[n] != NONE) {
            graph->node[n].from = call_in(&m, m.region[n], graph->node[n].from);
            context->changes++;
        }
    return true;
}
