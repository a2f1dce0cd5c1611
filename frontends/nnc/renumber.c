/* Temporaries keep the index that the text gives them: %12 becomes value 12, so that a graph prints as it was read, and
 * messages of later passes name what the reader sees.  All other values take the free places in their order. */
#include "frontends/nnc/build.h"

#include <string.h>

static bool is_in_place(const Frame *frame)
{
    for (uint32_t i = 0; i < frame->wanted_count; i++)
        if (frame->wanted[i].index != frame->wanted[i].value)
            return false;
    return true;
}

/* The new index of every value; room is bounded, so that one large number cannot exhaust memory. */
static uint32_t *assign_places(Builder *b, const Frame *frame, uint32_t *total)
{
    uint32_t count = frame->graph->value_count, most = 64 * count + 65536, high = 0, next = 0;
    uint32_t *place = ARENA_ARRAY(b->scratch, uint32_t, count);

    memset(place, 0xff, count * sizeof *place);
    for (uint32_t i = 0; i < frame->wanted_count; i++)
        if (frame->wanted[i].index < most && frame->wanted[i].index >= high)
            high = frame->wanted[i].index + 1;
    *total = high > count ? high : count;
    bool *taken = ARENA_ARRAY(b->scratch, bool, *total);
    for (uint32_t i = 0; i < frame->wanted_count; i++) {
        Wanted want = frame->wanted[i];
        if (want.index < *total && !taken[want.index] && place[want.value] == NONE) {
            place[want.value] = want.index;
            taken[want.index] = true;
        }
    }
    for (uint32_t v = 0; v < count; v++) {
        while (place[v] == NONE && next < *total && taken[next])
            next++;
        if (place[v] == NONE)
            place[v] = next++;
    }
    if (next > *total)
        *total = next;
    return place;
}

static void move_uses(Graph *graph, const uint32_t *place)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        Node *node = &graph->node[n];
        for (uint32_t i = 0; i < node->in_count; i++)
            node->in[i] = place[node->in[i]];
        for (uint32_t i = 0; i < node->out_count; i++)
            node->out[i] = place[node->out[i]];
    }
    for (uint32_t i = 0; i < graph->input_count; i++)
        graph->input[i] = place[graph->input[i]];
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = place[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++) {
        graph->update[i].target = place[graph->update[i].target];
        graph->update[i].source = place[graph->update[i].source];
    }
}

void build_renumber(Builder *b)
{
    const Frame *frame = b->frame;
    Graph *graph = frame->graph;
    uint32_t total;

    if (is_in_place(frame))
        return;
    const uint32_t *place = assign_places(b, frame, &total);
    Value *value = ARENA_ARRAY(b->arena, Value, total);
    for (uint32_t v = 0; v < total; v++) /* places without a value look like those of removed nodes */
        value[v] = (Value){.node = NONE, .initial = NONE, .inplace = NONE, .owner = NONE};
    for (uint32_t v = 0; v < graph->value_count; v++) {
        value[place[v]] = graph->value[v];
        if (graph->value[v].inplace != NONE)
            value[place[v]].inplace = place[graph->value[v].inplace];
    }
    graph->value = value;
    graph->value_count = graph->value_capacity = total;
    move_uses(graph, place);
}
