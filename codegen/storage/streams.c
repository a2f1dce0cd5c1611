/* Streams by longest path: of the units that could follow one on its stream, the one with the longest way to the end
 * does; the others go to a stream that is idle by then, else to a new one.  So the critical path stays on one stream
 * and needs no events.  A unit takes as long as the bytes it reads and writes. */
#include "storage/schedule.h"

typedef struct Stream {
    uint32_t tail; /* the last unit on it */
    int64_t busy;  /* until then */
} Stream;

enum { MOST_STREAMS = 64 };

static int64_t unit_time(const Schedule *s, uint32_t unit)
{
    int64_t bytes = 1;
    for (uint32_t k = s->units.node.first[unit]; k < s->units.node.first[unit + 1]; k++) {
        const Node *node = &s->graph->node[s->units.node.item[k]];
        for (uint32_t i = 0; i < node->in_count; i++)
            bytes += type_bytes(value_type(s->graph, node->in[i]));
        for (uint32_t i = 0; i < node->out_count; i++)
            bytes += type_bytes(value_type(s->graph, node->out[i]));
    }
    return bytes;
}

/* Per unit, the time from its start to the end of the graph. */
static int64_t *ways_to_end(const Schedule *s)
{
    int64_t *way = ARENA_ARRAY(s->scratch, int64_t, s->units.count);
    for (uint32_t i = s->units.count; i-- > 0;) {
        uint32_t u = s->order[i];
        for (uint32_t k = s->problem.feeds.first[u]; k < s->problem.feeds.first[u + 1]; k++)
            if (way[s->problem.feeds.item[k]] > way[u])
                way[u] = way[s->problem.feeds.item[k]];
        way[u] += unit_time(s, u);
    }
    return way;
}

/* The one that continues the stream of `unit`. */
static uint32_t heir_of(const Schedule *s, const int64_t *way, uint32_t unit)
{
    uint32_t heir = NONE;
    for (uint32_t k = s->problem.feeds.first[unit]; k < s->problem.feeds.first[unit + 1]; k++)
        if (heir == NONE || way[s->problem.feeds.item[k]] > way[heir])
            heir = s->problem.feeds.item[k];
    return heir;
}

/* `end` is 0 for what has no stream yet: a stream is free when its tail has no heir, or that one went elsewhere. */
static uint32_t choose_stream(const Stream *stream, uint32_t used, uint32_t most, const uint32_t *heir,
                              const int64_t *end, uint32_t unit, int64_t ready)
{
    uint32_t inherited = NONE, idle = NONE, soonest = 0;
    for (uint32_t k = 0; k < used; k++) {
        uint32_t next = heir[stream[k].tail];
        if (next == unit && (inherited == NONE || stream[k].busy > stream[inherited].busy))
            inherited = k; /* the one it waits for longest */
        if (idle == NONE && stream[k].busy <= ready && (next == NONE || end[next]))
            idle = k;
        if (stream[k].busy < stream[soonest].busy)
            soonest = k;
    }
    if (inherited != NONE)
        return inherited;
    return idle != NONE ? idle : used < most ? used : soonest;
}

void schedule_streams(const Schedule *s, uint32_t most)
{
    Stream stream[MOST_STREAMS];
    uint32_t used = 0, units = s->units.count;
    const int64_t *way = ways_to_end(s);
    int64_t *end = ARENA_ARRAY(s->scratch, int64_t, units);
    uint32_t *heir = ARENA_ARRAY(s->scratch, uint32_t, units);
    for (uint32_t u = 0; u < units; u++)
        heir[u] = heir_of(s, way, u);

    most = most < 1 ? 1 : most > MOST_STREAMS ? MOST_STREAMS : most;
    for (uint32_t i = 0; i < units; i++) {
        uint32_t u = s->order[i];
        int64_t ready = 0;
        for (uint32_t k = s->problem.needs.first[u]; k < s->problem.needs.first[u + 1]; k++)
            ready = end[s->problem.needs.item[k]] > ready ? end[s->problem.needs.item[k]] : ready;
        uint32_t chosen = choose_stream(stream, used, most, heir, end, u, ready);
        int64_t start = chosen < used && stream[chosen].busy > ready ? stream[chosen].busy : ready;
        used += chosen == used;
        end[u] = start + unit_time(s, u);
        stream[chosen] = (Stream){u, end[u]};
        for (uint32_t k = s->units.node.first[u]; k < s->units.node.first[u + 1]; k++)
            s->graph->node[s->units.node.item[k]].stream = chosen;
    }
}
