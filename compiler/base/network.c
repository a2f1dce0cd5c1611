#include "base/network.h"

#include "base/number.h"

Network network_new(Arena *arena, uint32_t nodes)
{
    return (Network){.arena = arena, .first = ARENA_ARRAY(arena, uint32_t, nodes), .node_count = nodes};
}

static void add_half(Network *network, uint32_t from, uint32_t to, int64_t left)
{
    NetworkEdge edge = {to, network->first[from], left};
    ARENA_PUSH(network->arena, network->edge, network->edge_count, network->edge_capacity, edge);
    network->first[from] = network->edge_count;
}

void network_add(Network *network, uint32_t from, uint32_t to, int64_t capacity)
{
    add_half(network, from, to, capacity);
    add_half(network, to, from, 0);
}

typedef struct Search {   /* breadth first */
    uint32_t *queue, *by; /* by: per node, 1 + the edge that it was reached by */
    bool *seen;
} Search;

/* Finds a shortest path with something left on it. */
static bool find_path(const Network *network, Search *search, uint32_t from, uint32_t to)
{
    uint32_t begin = 0, end = 0;
    for (uint32_t n = 0; n < network->node_count; n++)
        search->seen[n] = false;
    search->seen[from] = true;
    search->queue[end++] = from;
    while (begin < end && !search->seen[to])
        for (uint32_t e = network->first[search->queue[begin++]]; e; e = network->edge[e - 1].next) {
            const NetworkEdge *edge = &network->edge[e - 1];
            if (!edge->left || search->seen[edge->to])
                continue;
            search->seen[edge->to] = true;
            search->by[edge->to] = e;
            search->queue[end++] = edge->to;
        }
    return search->seen[to];
}

static int64_t push_along(Network *network, const Search *search, uint32_t from, uint32_t to)
{
    int64_t flow = NETWORK_ENDLESS;
    for (uint32_t n = to; n != from; n = network->edge[(search->by[n] - 1) ^ 1].to)
        flow = least(flow, network->edge[search->by[n] - 1].left);
    for (uint32_t n = to; n != from; n = network->edge[(search->by[n] - 1) ^ 1].to) {
        network->edge[search->by[n] - 1].left -= flow;
        network->edge[(search->by[n] - 1) ^ 1].left += flow;
    }
    return flow;
}

int64_t network_flow(Network *network, uint32_t from, uint32_t to)
{
    Search search = {ARENA_ARRAY(network->arena, uint32_t, network->node_count),
                     ARENA_ARRAY(network->arena, uint32_t, network->node_count),
                     ARENA_ARRAY(network->arena, bool, network->node_count)};
    int64_t flow = 0;
    while (flow < NETWORK_ENDLESS && find_path(network, &search, from, to))
        flow += push_along(network, &search, from, to);
    return least(flow, NETWORK_ENDLESS);
}

const bool *network_side(const Network *network, uint32_t to)
{
    bool *side = ARENA_ARRAY(network->arena, bool, network->node_count);
    uint32_t *queue = ARENA_ARRAY(network->arena, uint32_t, network->node_count), begin = 0, end = 0;
    side[to] = true;
    queue[end++] = to;
    while (begin < end)
        for (uint32_t e = network->first[queue[begin++]]; e; e = network->edge[e - 1].next) {
            uint32_t from = network->edge[e - 1].to; /* of the edge that comes here */
            if (side[from] || !network->edge[(e - 1) ^ 1].left)
                continue;
            side[from] = true;
            queue[end++] = from;
        }
    return side;
}
