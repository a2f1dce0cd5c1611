/* Flow in networks: as large as the least of all cuts, and the cut that is found is one of these, the nearest. */
#include "base/network.h"

#include "unit.h"

enum { NODES = 8, FROM = 0, TO = 1, ROUNDS = 400 };

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static int64_t across(const int64_t capacity[NODES][NODES], unsigned side)
{
    int64_t sum = 0;
    for (unsigned a = 0; a < NODES; a++)
        for (unsigned b = 0; b < NODES; b++)
            if (!(side >> a & 1) && side >> b & 1)
                sum += capacity[a][b];
    return sum;
}

/* Of all sets of nodes with TO and without FROM, the least; `side` is the smallest one among the least. */
static int64_t least_cut(const int64_t capacity[NODES][NODES], unsigned *side)
{
    int64_t least = -1;
    unsigned size = 0;
    for (unsigned set = 0; set < 1u << NODES; set++) {
        unsigned count = 0;
        for (unsigned n = 0; n < NODES; n++)
            count += set >> n & 1;
        if (set >> FROM & 1 || !(set >> TO & 1))
            continue;
        int64_t sum = across(capacity, set);
        if (least >= 0 && (sum > least || (sum == least && count >= size)))
            continue;
        least = sum;
        size = count;
        *side = set;
    }
    return least;
}

static bool check_random(uint32_t *seed)
{
    Arena arena = {0};
    int64_t capacity[NODES][NODES] = {{0}};
    Network network = network_new(&arena, NODES);
    uint32_t edges = draw(seed, 24);
    for (uint32_t e = 0; e < edges; e++) {
        uint32_t a = draw(seed, NODES), b = draw(seed, NODES);
        int64_t most = draw(seed, 8) ? draw(seed, 10) : NETWORK_ENDLESS / 64;
        if (a == b)
            continue;
        capacity[a][b] += most;
        network_add(&network, a, b, most);
    }
    unsigned expected = 0, found = 0;
    int64_t least = least_cut((const int64_t(*)[NODES])capacity, &expected);
    bool good = network_flow(&network, FROM, TO) == least;
    const bool *side = network_side(&network, TO);
    for (unsigned n = 0; n < NODES; n++)
        found |= (unsigned)side[n] << n;
    arena_free(&arena);
    return good && found == expected;
}

UNIT(flow_is_the_least_cut)
{
    uint32_t seed = 1, good = 0;
    for (int i = 0; i < ROUNDS; i++)
        good += check_random(&seed);
    EXPECT_INT(good, ROUNDS);
}

UNIT(what_no_edge_bounds_is_endless)
{
    Arena arena = {0};
    Network network = network_new(&arena, 3);
    network_add(&network, 0, 2, NETWORK_ENDLESS);
    network_add(&network, 2, 1, NETWORK_ENDLESS);
    EXPECT_INT(network_flow(&network, 0, 1), NETWORK_ENDLESS);
    arena_free(&arena);
}

int main(void)
{
    static const Test test[] = {RUN(flow_is_the_least_cut), RUN(what_no_edge_bounds_is_endless)};
    return UNIT_MAIN(test);
}
