/* Where what is differentiated can be cut.
 *
 * The nodes that the y of a gradient hangs on are its steps.  In the gap between two contractions or loops is a place
 * where the fewest bytes pass.  Fine segments lie between these places.  What they compute again is what stands before
 * the contraction at their end, which is not needed for its own gradient.  Coarse segments lie between those of the
 * places where no more values pass than in the gaps around: the blocks of a network.  Fine ones are parts of them.  A
 * checkpointed call is never cut. */
#include <string.h>

#include "ops/meaning.h"
#include "passes/remat.h"

#define NEIGHBOURS 4 /* gaps on either side that are looked at */

typedef struct Cut { /* behind a step */
    uint32_t step, values;
    int64_t bytes; /* of the values that pass */
} Cut;

typedef struct Forward { /* of one gradient */
    const Graph *graph;
    Arena *scratch;
    uint32_t number;
    NodeId *step; /* in order */
    uint32_t steps;
    bool *moves;    /* per value: hangs on inputs, not on params, states and constants alone */
    ValueId *owner; /* per value: whose elements a view shows */
    Cut *behind;    /* per step: what passes there */
    Cut *cut;       /* the best of each gap */
    uint32_t cuts;
} Forward;

/* Steps */

static bool any_of(const bool *flag, const ValueId *value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (flag[value[i]])
            return true;
    return false;
}

/* Not those of gradients before, nor what lies in front of one that y hangs on. */
static void list_steps(Forward *f, NodeId gradient, bool *taken)
{
    const Graph *graph = f->graph;
    bool *needed = ARENA_ARRAY(f->scratch, bool, graph->value_count);
    uint32_t at = gradient;
    NodeId *list = ARENA_ARRAY(f->scratch, NodeId, gradient + 1);
    needed[graph->node[gradient].in[0]] = true;
    for (NodeId n = gradient; n-- > 0;) {
        const Node *node = &graph->node[n];
        if (node->dead || !any_of(needed, node->out, node->out_count))
            continue;
        if (node_is_gradient(node))
            break;
        for (uint32_t i = 0; i < node->in_count; i++)
            needed[node->in[i]] = true;
        if (!taken[n])
            list[--at] = n;
        taken[n] = true;
    }
    f->step = list + at;
    f->steps = gradient - at;
}

static void find_moving(Forward *f)
{
    const Graph *graph = f->graph;
    f->moves = ARENA_ARRAY(f->scratch, bool, graph->value_count);
    f->owner = ARENA_ARRAY(f->scratch, ValueId, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++) {
        f->moves[v] = graph->value[v].role == ROLE_INPUT;
        f->owner[v] = v;
    }
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        bool moves = any_of(f->moves, node->in, node->in_count);
        for (uint32_t i = 0; i < node->out_count; i++) {
            f->moves[node->out[i]] = moves;
            f->owner[node->out[i]] = node_is_view(node) ? f->owner[node->in[0]] : node->out[i];
        }
    }
}

/* Is it in memory that the step before has made, and others read? */
static bool is_kept(const Forward *f, ValueId v)
{
    return f->moves[v] && f->owner[v] == v && f->graph->value[v].role == ROLE_RESULT;
}

static int64_t bytes_of(const Forward *f, ValueId v)
{
    return type_bytes(value_type(f->graph, v));
}

static const Node *node_at(const Forward *f, uint32_t step)
{
    return &f->graph->node[f->step[step]];
}

/* Cuts */

/* Each value passes behind all steps from the one that makes it to the last that reads it. */
static void find_passing(Forward *f)
{
    uint32_t *last = ARENA_ARRAY(f->scratch, uint32_t, f->graph->value_count);
    for (uint32_t s = 0; s < f->steps; s++)
        for (uint32_t i = 0; i < node_at(f, s)->in_count; i++)
            last[f->owner[node_at(f, s)->in[i]]] = s;
    f->behind = ARENA_ARRAY(f->scratch, Cut, f->steps + 1);
    for (uint32_t s = 0; s < f->steps; s++) {
        const Node *node = node_at(f, s);
        f->behind[s].step = s;
        for (uint32_t i = 0; i < node->out_count; i++) {
            ValueId v = node->out[i];
            if (!is_kept(f, v) || last[v] <= s)
                continue;
            f->behind[s].bytes += bytes_of(f, v);
            f->behind[s].values++;
            f->behind[last[v]].bytes -= bytes_of(f, v);
            f->behind[last[v]].values--; /* modulo 2^32 */
        }
    }
    for (uint32_t s = 1; s < f->steps; s++) {
        f->behind[s].bytes += f->behind[s - 1].bytes;
        f->behind[s].values += f->behind[s - 1].values;
    }
}

static uint32_t outermost_checkpoint(const Graph *graph, const Node *node)
{
    uint32_t found = NONE;
    for (uint32_t c = node->from; c != NONE; c = graph->inlined[c].outer)
        if (graph->inlined[c].call->checkpoint)
            found = c;
    return found;
}

static bool may_cut(const Forward *f, uint32_t step)
{
    uint32_t call = outermost_checkpoint(f->graph, node_at(f, step));
    return call == NONE || call != outermost_checkpoint(f->graph, node_at(f, step + 1));
}

static bool opens_gap(const Forward *f, uint32_t step)
{
    const Node *node = node_at(f, step);
    return f->moves[node->out[0]] && (node_is_contraction(f->graph, node) || node_has_bodies(node));
}

/* The first of those behind which the fewest bytes pass, of each gap; of the last the first: what comes behind it is
 * reversed at once. */
static void find_cuts(Forward *f)
{
    bool open = false, found = false;
    uint32_t first = 0;
    f->cut = ARENA_ARRAY(f->scratch, Cut, f->steps + 1);
    for (uint32_t s = 0; s + 1 < f->steps; s++) {
        if (opens_gap(f, s)) {
            open = true;
            found = false;
        }
        if (!open || !may_cut(f, s))
            continue;
        first = found ? first : s;
        if (!found)
            f->cut[f->cuts++] = f->behind[s];
        else if (f->behind[s].bytes < f->cut[f->cuts - 1].bytes)
            f->cut[f->cuts - 1] = f->behind[s];
        found = true;
    }
    if (f->cuts)
        f->cut[f->cuts - 1] = f->behind[first];
}

static bool is_narrow(const Forward *f, uint32_t c)
{
    uint32_t first = c > NEIGHBOURS ? c - NEIGHBOURS : 0, end = c + NEIGHBOURS + 1;
    for (uint32_t i = first; i < end && i < f->cuts; i++)
        if (f->cut[i].values < f->cut[c].values)
            return false;
    return true;
}

/* Segments */

/* Bytes of the results but those that pass on, by operation.  A contraction, and what follows it, is not computed again
 * for its own gradient. */
static double worth_of(const Forward *f, uint32_t begin, uint32_t end, int64_t passing)
{
    double flops = 1, bytes = -(double)passing;
    uint32_t last = end;
    for (uint32_t s = begin; s < end; s++)
        last = opens_gap(f, s) ? s : last;
    for (uint32_t s = begin; s < end; s++) {
        const Node *node = node_at(f, s);
        for (uint32_t i = 0; i < node->out_count; i++)
            bytes += is_kept(f, node->out[i]) ? (double)bytes_of(f, node->out[i]) : 0;
        flops += s < last ? (double)node_flops_nested(f->graph, node) : 0;
    }
    return bytes / flops;
}

static void add_segment(const Forward *f, Segments *to, uint32_t begin, uint32_t end, int64_t passing)
{
    Segment segment = {f->step + begin, end - begin, f->number, worth_of(f, begin, end, passing)};
    ARENA_PUSH(f->scratch, to->at, to->count, to->capacity, segment);
}

/* The steps behind the last cut are reversed as soon as they have been computed: no coarse segment, but a fine one. */
static void add_segments(const Forward *f, RematKind kind, Segments *to)
{
    uint32_t begin = 0;
    for (uint32_t c = 0; c < f->cuts; c++) {
        if (kind == REMAT_COARSE && !is_narrow(f, c))
            continue;
        add_segment(f, to, begin, f->cut[c].step + 1, f->cut[c].bytes);
        begin = f->cut[c].step + 1;
    }
    if (kind == REMAT_FINE && begin < f->steps)
        add_segment(f, to, begin, f->steps, 0);
}

Segments remat_segments(const Graph *graph, RematKind kind, Arena *scratch)
{
    Segments segments = {0};
    bool *taken = ARENA_ARRAY(scratch, bool, graph->node_count + 1);
    Forward all = {.graph = graph, .scratch = scratch};
    find_moving(&all);
    for (NodeId n = 0; n < graph->node_count; n++) {
        if (graph->node[n].dead || !node_is_gradient(&graph->node[n]))
            continue;
        Forward f = all;
        list_steps(&f, n, taken);
        find_passing(&f);
        find_cuts(&f);
        add_segments(&f, kind, &segments);
        all.number++;
    }
    return segments;
}

/* Recurses over the nesting of loops and branches. */
RematSupply remat_supply(Graph *graph, const PassContext *context)
{
    Arena *scratch = context->scratch;
    Segments coarse = remat_segments(graph, REMAT_COARSE, scratch);
    RematSupply supply = {remat_segments(graph, REMAT_FINE, scratch).count, coarse.count, 0,
                          remat_levels(graph, context)};
    for (uint32_t i = 0, length = 0; i < coarse.count; i++) {
        length = i && coarse.at[i].chain == coarse.at[i - 1].chain ? length + 1 : 1;
        supply.chain = length > supply.chain ? length : supply.chain;
    }
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; node_has_bodies(&graph->node[n]) && i < graph->node[n].sub_count; i++) {
            RematSupply inner = remat_supply(graph->node[n].sub[i], context);
            supply.fine = inner.fine > supply.fine ? inner.fine : supply.fine;
            supply.coarse = inner.coarse > supply.coarse ? inner.coarse : supply.coarse;
            supply.rounds = inner.rounds > supply.rounds ? inner.rounds : supply.rounds;
            supply.chain = inner.chain > supply.chain ? inner.chain : supply.chain;
        }
    return supply;
}
